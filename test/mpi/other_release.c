/* Preloaded into a program, it makes Open MPI say that it is another release. */

#include <mpi.h>
#include <stdio.h>

__attribute__((visibility("default"))) int MPI_Get_library_version(char *version, int *length)
{
    *length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v4.1.99, ident: 4.1.99");
    return MPI_SUCCESS;
}

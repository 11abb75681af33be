/* Whose functions the world's communicator has: prints "COLLECTIVE COMPONENT" lines. */

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The component is a shared object of its own, mca_coll_NAME.so. */
static void print(const char *name, void *function)
{
    static const char prefix[] = "mca_coll_";
    Dl_info info;
    const char *at;

    if (dladdr(function, &info) != 0 && (at = strstr(info.dli_fname, prefix)) != NULL) {
        at += strlen(prefix);
        printf("%s %.*s\n", name, (int)strcspn(at, "."), at);
    }
}

int main(int argc, char **argv)
{
    mca_coll_base_comm_coll_t *coll;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    coll = ompi_mpi_comm_world.comm.c_coll;
    if (rank == 0) {
        print("allgather", (void *)coll->coll_allgather);
        print("allreduce", (void *)coll->coll_allreduce);
        print("alltoall", (void *)coll->coll_alltoall);
        print("bcast", (void *)coll->coll_bcast);
        print("scatterv", (void *)coll->coll_scatterv);
        print("ibcast", (void *)coll->coll_ibcast);
    }
    MPI_Finalize();
    return 0;
}

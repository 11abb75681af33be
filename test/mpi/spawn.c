/* Parents and children that MPI_Comm_spawn starts, apart and merged. */

#include "job.h"

enum { CHILDREN = 2 };

static void use(MPI_Comm inter, int high, int parents)
{
    MPI_Comm all;
    int one = 1, sum = 0, size;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == (high ? parents : CHILDREN), "allreduce over the intercommunicator: %d", sum);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_size(all, &size);
    CHECK(size == parents + CHILDREN, "%d ranks after the merge", size);
    check_communicator(all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_remote_size(parent, &size);
        use(parent, 1, size);
    } else {
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
        use(inter, 0, size);
    }
    MPI_Finalize();
    return 0;
}

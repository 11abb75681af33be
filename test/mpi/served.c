/* Whose functions the world's communicator has: prints "COLLECTIVE COMPONENT" lines. */

#include "ompi_config.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/coll.h"

#include <stdio.h>
#include <string.h>

/* By the class of the module: mca_coll_NAME_module_t, ompi_coll_NAME_module_t. */
static void print(const char *name, const mca_coll_base_module_t *module)
{
    const char *at = strstr(((const opal_object_t *)module)->obj_class->cls_name, "coll_");

    if (at != NULL) {
        at += strlen("coll_");
        printf("%s %.*s\n", name, (int)strcspn(at, "_"), at);
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
        print("allgather", coll->coll_allgather_module);
        print("allreduce", coll->coll_allreduce_module);
        print("alltoall", coll->coll_alltoall_module);
        print("bcast", coll->coll_bcast_module);
        print("scatterv", coll->coll_scatterv_module);
        print("ibcast", coll->coll_ibcast_module);
    }
    MPI_Finalize();
    return 0;
}

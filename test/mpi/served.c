/* Whose functions the world's communicator has, or one like it with a preference: prints "COLLECTIVE COMPONENT" lines.
 *     served [PREFERENCE] */

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
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Info info;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 2) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "ompi_comm_coll_preference", argv[1]);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
    }
    coll = comm->c_coll;
    if (rank == 0) {
        print("allgather", coll->coll_allgather_module);
        print("allreduce", coll->coll_allreduce_module);
        print("alltoall", coll->coll_alltoall_module);
        print("bcast", coll->coll_bcast_module);
        print("scatterv", coll->coll_scatterv_module);
        print("ibcast", coll->coll_ibcast_module);
    }
    if (argc == 2) {
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return 0;
}

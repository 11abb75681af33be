/* Every way to make a communicator; each one is then used. */

#include "job.h"

#include <stdio.h>

static int world_rank, world_size;

static void check_and_free(MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL) {
        check_communicator(comm);
        MPI_Comm_free(&comm);
    }
}

static MPI_Group even_ranks(void)
{
    MPI_Group world, even;
    int range[1][3] = {{0, world_size - 1, 2}};

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &even);
    MPI_Group_free(&world);
    return even;
}

static void check_dup(void)
{
    MPI_Comm dup, again, later;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_dup_with_info(dup, MPI_INFO_NULL, &again);
    MPI_Comm_free(&dup); /* a child outlives its parent */
    check_and_free(again);
    MPI_Comm_idup(MPI_COMM_WORLD, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_and_free(later);
}

static void check_split(void)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comm);
    check_and_free(comm);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank == 0 ? MPI_UNDEFINED : 0, 0, &comm);
    check_and_free(comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank == 0 ? 0 : world_size - world_rank, &comm);
    check_and_free(comm);
    for (int turned = 0; turned < 2; turned++) { /* the same ranks twice, fewer than all */
        MPI_Comm_split(MPI_COMM_WORLD, world_rank == world_size - 1 ? MPI_UNDEFINED : 0,
                       turned && world_rank > 0 ? world_size - world_rank : world_rank, &comm);
        check_and_free(comm);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    check_and_free(comm);
}

static void check_create(void)
{
    MPI_Group even = even_ranks();
    MPI_Comm comm = MPI_COMM_NULL;

    MPI_Comm_create(MPI_COMM_WORLD, even, &comm);
    check_and_free(comm);
    comm = MPI_COMM_NULL;
    if (world_rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, even, 7, &comm);
    }
    check_and_free(comm);
    MPI_Group_free(&even);
}

static void check_merge(void)
{
    MPI_Comm half, inter, merged;
    int color = world_rank % 2;

    if (world_size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, color, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 3, &inter);
    MPI_Intercomm_merge(inter, color, &merged);
    check_and_free(merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static int copies;

static int count_copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

/* A delete callback may use the communicator that goes. */
static int use_at_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    int one = 1, size, sum = 0;

    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size, "a collective in a delete callback counts %d of %d", sum, size);
    copies--;
    return MPI_SUCCESS;
}

static void check_attributes(void)
{
    MPI_Comm dup, again;
    int key, present;
    void *value;

    MPI_Comm_create_keyval(count_copy, use_at_delete, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_attr(dup, key, &copies);
    MPI_Comm_dup(dup, &again);
    MPI_Comm_get_attr(again, key, &value, &present);
    CHECK(copies == 1 && present && value == (void *)&copies, "the attribute was not copied");
    MPI_Comm_free(&again);
    MPI_Comm_free(&dup);
    CHECK(copies == -1, "%d delete callbacks are missing", copies + 1);
    MPI_Comm_free_keyval(&key);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check_communicator(MPI_COMM_WORLD);
    check_communicator(MPI_COMM_SELF);
    check_dup();
    check_split();
    check_create();
    check_merge();
    check_attributes();
    MPI_Finalize();
    return 0;
}

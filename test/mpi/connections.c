/*
 * connections [MOST [CALLS]]: every collective, or the first CALLS, and how many connections the rank
 * with most has made after each. With MOST: no more than that.
 */
#include <stdio.h>
#include <stdlib.h>

#include "job.h"

int main(int argc, char **argv)
{
    unsigned long long limit = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, most = 0;
    size_t calls = argc > 2 ? strtoull(argv[2], NULL, 10) : JOB_COLLECTIVE_COUNT;
    struct counter made;
    int rank, size, level;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    made = counter_begin("coll_ibshift_connections");
    for (size_t i = 0; i < calls; i++) {
        struct job job = job_of(MPI_COMM_WORLD, (enum job_collective)i, 1, 1, MPI_SUM, MPI_INT, 0);
        unsigned long long own;

        job_check(&job, MPI_COMM_WORLD, FORM_BLOCKING);
        job_free(&job);
        own = counter_read(&made);
        MPI_Allreduce(&own, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%d ranks, after %s: at most %llu connections made\n", size, job_names[i], most);
        }
        CHECK(limit == 0 || most <= limit, "%s makes connection %llu on a rank", job_names[i],
              most);
    }
    CHECK(limit == 0 || most > 0, "no connection was made: are all ranks on one host?");
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

/*
 * connections [MOST [CALLS [AGAIN]]]: every collective, AGAIN times over (0: the first CALLS), and how many
 * connections the rank with most has made after each. With MOST: the first CALLS of them make no more
 * than that, and after the others no rank has more, once those that are not used are taken down.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "job.h"

enum { SETTLE_ROUNDS = 1000 };

static struct counter made, closed;

/* On the rank where it is most. */
static unsigned long long most_of(unsigned long long value)
{
    unsigned long long most;

    MPI_Allreduce(&value, &most, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static unsigned long long most_now(void)
{
    return most_of(counter_read(&made) - counter_read(&closed));
}

/* The connections that are left once those that nobody uses have been taken down. */
static unsigned long long settle(unsigned long long most)
{
    unsigned long long now;

    for (int i = 0; (now = most_now()) > most && i < SETTLE_ROUNDS; i++) {
        usleep(20000);
    }
    return now;
}

int main(int argc, char **argv)
{
    unsigned long long most = argc > 1 ? strtoull(argv[1], NULL, 10) : 0, all = 0;
    size_t few = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    size_t count = JOB_COLLECTIVE_COUNT;
    size_t again = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int rank, size, level;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    made = counter_begin("coll_ibshift_connections");
    closed = counter_begin("coll_ibshift_connections_closed");
    for (size_t i = 0; i < (again > 0 ? again * count : few); i++) {
        struct job job =
            job_of(MPI_COMM_WORLD, (enum job_collective)(i % count), 1, 1, MPI_SUM, MPI_INT, 0);

        job_check(&job, MPI_COMM_WORLD, FORM_BLOCKING);
        job_free(&job);
        all = most_of(counter_read(&made));
        if (rank == 0) {
            printf("%d ranks, after %s: at most %llu connections made\n", size,
                   job_names[i % count], all);
        }
        CHECK(most == 0 || i >= few || all <= most, "%s makes connection %llu on a rank",
              job_names[i % count], all);
        if (most > 0) {
            unsigned long long left = settle(most);

            CHECK(left <= most, "%llu connections on a rank after %s, at most %llu are allowed",
                  left, job_names[i % count], most);
        }
    }
    CHECK(most == 0 || all > 0, "no connection was made: are all ranks on one host?");
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

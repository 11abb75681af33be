/* MPI_THREAD_MULTIPLE: each thread has its communicators and runs all collectives on them. */

#include "job.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 3, COMMS = 2, ROUNDS = 3 };

struct work {
    pthread_t thread;
    MPI_Comm comms[COMMS];
};

static void *collectives(void *argument)
{
    struct work *work = argument;

    for (int i = 0; i < ROUNDS * COMMS; i++) {
        check_communicator(work->comms[i % COMMS]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct work work[THREADS];
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "this Open MPI has no MPI_THREAD_MULTIPLE");
    for (int i = 0; i < THREADS; i++) {
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_dup(MPI_COMM_WORLD, &work[i].comms[j]);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&work[i].thread, NULL, collectives, &work[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(work[i].thread, NULL);
        for (int j = 0; j < COMMS; j++) {
            MPI_Comm_free(&work[i].comms[j]);
        }
    }
    MPI_Finalize();
    return 0;
}

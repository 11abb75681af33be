/*
 * The truth test: each collective, drawn at random, runs in ibshift and in the component beneath
 * it, on two communicators of the same ranks, and the memory of both runs is compared byte by byte.
 *     truth JOBS [SEED] [THREADS]
 * JOBS: for each communicator; collectives and forms take turns over all of them, so that 51 jobs
 * in all see each collective in each form. SEED 0: drawn and printed. THREADS: each with
 * communicators of its own. The reference is always blocking: it is the nonblocking ones that are
 * wrong beneath.
 */

#include "job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pair {
    MPI_Comm ours, beneath;
};

struct work {
    struct pair pair;
    const struct job_kit *kit;
    uint64_t seed;
    int first, jobs; /* their numbers */
};

/* The parameter that a communicator reads when it is made. */
static void set_native(bool value)
{
    int provided;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    parameter_set("coll_ibshift_native", value);
    MPI_T_finalize();
}

static struct pair pair_create(MPI_Comm parent, int color, int key)
{
    struct pair pair;

    MPI_Comm_split(parent, color, key, &pair.ours);
    set_native(false);
    MPI_Comm_dup(pair.ours, &pair.beneath);
    set_native(true);
    return pair;
}

/* The last collective on it outlives it. */
static void pair_free(struct pair *pair)
{
    int one = 1, sum = 0, size;
    MPI_Request request;

    MPI_Comm_size(pair->ours, &size);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair->ours, &request);
    MPI_Comm_free(&pair->ours);
    MPI_Comm_free(&pair->beneath);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == size, "allreduce of a freed communicator: %d of %d ranks", sum, size);
}

static void run(struct job *job, MPI_Comm comm, enum form form)
{
    MPI_Request request;

    job_fill(job);
    CHECK(job_start(job, comm, form, &request) == MPI_SUCCESS, "%s failed", job_names[job->which]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (form == FORM_PERSISTENT) {
        MPI_Request_free(&request);
    }
}

static void compare_side(const struct job *job, enum form form, const struct job_side *got,
                         const char *expected, const char *name)
{
    char what[256];

    for (size_t i = 0; i < got->compared; i++) {
        if (got->memory[i] != expected[i]) {
            job_describe(job, what, sizeof(what));
            CHECK(false, "%s %s: byte %td of the %s buffer is %#x, beneath %#x", form_names[form],
                  what, &got->memory[i] - got->start, name, (unsigned char)got->memory[i],
                  (unsigned char)expected[i]);
        }
    }
}

static void check_one(const struct work *work, int number, uint64_t seed)
{
    enum job_collective which = (enum job_collective)(number % JOB_COLLECTIVE_COUNT);
    enum form form = (enum form)(number % FORM_COUNT);
    struct job job = job_draw(work->kit, work->pair.ours, seed, which, -1);
    char *send = malloc(job.send.size), *recv = malloc(job.recv.size);

    CHECK(send != NULL && recv != NULL, "no memory");
    run(&job, work->pair.beneath, FORM_BLOCKING);
    memcpy(send, job.send.memory, job.send.size);
    memcpy(recv, job.recv.memory, job.recv.size);
    run(&job, work->pair.ours, form);
    compare_side(&job, form, &job.recv, recv, "receive");
    compare_side(&job, form, &job.send, send, "send");
    free(send);
    free(recv);
    job_free(&job);
}

static void *check_pair(void *argument)
{
    const struct work *work = argument;
    uint64_t state = work->seed;

    for (int i = 0; i < work->jobs; i++) {
        check_one(work, work->first + i, job_random(&state));
    }
    return NULL;
}

/* All sizes from 2 up: the first n ranks, backwards, and the others; then odd ones and even ones.
 */
static void check_splits(struct work work, int threads)
{
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int n = (size + 1) / 2; n <= size + 1; n++) {
        pthread_t thread[8];
        struct work works[8] = {work};

        for (int t = 0; t < threads; t++) {
            works[t] = work;
            works[t].seed += (uint64_t)(n * 8 + t);
            works[t].first = (n * threads + t) * work.jobs;
            works[t].pair = n > size ? pair_create(MPI_COMM_WORLD, rank % 2, rank * 7 % size)
                                     : pair_create(MPI_COMM_WORLD, rank < n, -rank);
        }
        for (int t = 1; t < threads; t++) {
            pthread_create(&thread[t], NULL, check_pair, &works[t]);
        }
        check_pair(&works[0]);
        for (int t = 1; t < threads; t++) {
            pthread_join(thread[t], NULL);
        }
        for (int t = 0; t < threads; t++) {
            pair_free(&works[t].pair);
        }
    }
}

int main(int argc, char **argv)
{
    struct work work = {.jobs = argc > 1 ? atoi(argv[1]) : 20};
    int threads = argc > 3 ? atoi(argv[3]) : 1, provided, rank;
    unsigned long long seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    struct job_kit *kit;

    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CHECK(threads >= 1 && threads <= 8 && work.jobs >= 1, "truth JOBS [SEED [THREADS up to 8]]");
    CHECK(threads == 1 || provided == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE here");
    if (seed == 0) {
        seed = (unsigned long long)time(NULL);
    }
    MPI_Bcast(&seed, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("truth: seed %llu\n", seed);
    }
    work.seed = seed;
    work.kit = kit = job_kit_create();
    check_splits(work, threads);
    job_kit_free(kit);
    MPI_Finalize();
    return 0;
}

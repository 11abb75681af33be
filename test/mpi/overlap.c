/*
 * A long all-to-all whose program does not look at it between start and wait: its data are there
 * before the wait, for all of it was posted when the start was over; and so was that of a reduction.
 * Ranks that come late are not waited for, so it is tried until they have come together some times.
 * Who always is the first waits in few starts only.
 *     overlap hasty        no start waits, as the lane says
 *     overlap late RANK    one rank does not start again: the deadline ends the wait of the others
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum {
    BLOCK = 200000,
    TRIES = 300,
    WANTED = 5, /* of them */
    PAUSE = 20 * 1000 /* us */,
    LATE = 1000,      /* us that the root of a reduction comes after the others */
    STARTS = 40,      /* of the first */
    NS_PER_BYTE = 500 /* of the model that the lane has written */
};

static int rank, ranks;
static char *from, *to;

static void fill(int run)
{
    for (int i = 0; i < ranks; i++) {
        memset(from + (size_t)i * BLOCK, 1 + (rank * ranks + i + run) % 100, BLOCK);
    }
    memset(to, 0, (size_t)ranks * BLOCK);
}

/* Whether all that others send has come; the last byte of a message is written last. */
static int is_full(int run)
{
    const volatile char *at = to;
    int is_full = 1;

    for (int i = 0; i < ranks; i++) {
        for (size_t byte = 0; byte < BLOCK; byte += BLOCK / 8 - 1) {
            is_full &=
                i == rank || at[(size_t)i * BLOCK + byte] == 1 + (i * ranks + rank + run) % 100;
        }
    }
    return is_full;
}

/* The number of tries until all ranks had all data before their wait so many times. */
static int overlap(enum form form)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int all, count = 0, run = 0;

    if (form == FORM_PERSISTENT) {
        PERSISTENT(Alltoall)
        (from, BLOCK, MPI_CHAR, to, BLOCK, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    }
    while (count < WANTED && run++ < TRIES) {
        int mine;

        fill(run);
        MPI_Barrier(MPI_COMM_WORLD);
        if (form == FORM_PERSISTENT) {
            MPI_Start(&request);
        } else {
            MPI_Ialltoall(from, BLOCK, MPI_CHAR, to, BLOCK, MPI_CHAR, MPI_COMM_WORLD, &request);
        }
        usleep(PAUSE);
        mine = is_full(run);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(is_full(run), "%s: not all that was sent has come", form_names[form]);
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        count += all;
    }
    if (form == FORM_PERSISTENT) {
        MPI_Request_free(&request);
    }
    CHECK(count == WANTED, "%s: %d times in %d tries all data before the wait", form_names[form],
          count, TRIES);
    return run;
}

/* The same of a reduction by a linear plan, of which each rank but the root has posted its message when its start is over; or has
 * not, where no start lingers. */
static int reduce(bool lingers)
{
    struct counter posted = counter_begin("coll_ibshift_rendezvous");
    int all, count = 0, run = 0;

    while (count < WANTED && run++ < TRIES) {
        unsigned long long before;
        MPI_Request request;
        int mine;

        MPI_Barrier(MPI_COMM_WORLD);
        usleep(rank == 0 ? LATE : 0);
        before = counter_read(&posted);
        MPI_Ireduce(from, to, BLOCK, MPI_BYTE, MPI_BXOR, 0, MPI_COMM_WORLD, &request);
        mine = rank == 0 || counter_read(&posted) > before;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        count += all;
    }
    (void)counter_end(&posted);
    CHECK((count == WANTED) == lingers, "reduce: %d times in %d tries all was posted", count,
          TRIES);
    return run;
}

/* Nobody answers its starts. One that waits takes at least a twentieth of the call's modelled time, and most do not wait; the
 * shortest of those that do takes less than an eighth. */
static void be_first(void)
{
    double time = 1e-9 * ranks * BLOCK * NS_PER_BYTE, shortest = time;
    MPI_Comm comm; /* on which no start has been in vain */
    int waits = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int run = 0; run < STARTS; run++) {
        MPI_Request request;
        double start;

        if (rank > 0) {
            MPI_Recv(NULL, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        start = MPI_Wtime();
        MPI_Ialltoall(from, BLOCK, MPI_CHAR, to, BLOCK, MPI_CHAR, comm, &request);
        start = MPI_Wtime() - start;
        if (start >= time / 20) {
            waits++;
            shortest = start < shortest ? start : shortest;
        }
        for (int peer = 1; rank == 0 && peer < ranks; peer++) {
            MPI_Send(NULL, 0, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&comm);
    CHECK(rank > 0 || (waits > 0 && waits <= STARTS / 2 && shortest < time / 8),
          "%d of %d starts waited, %f s of %f at least", waits, STARTS, shortest, time);
}

/* Errors of all but the late one, which comes when they have theirs. */
static void be_late(int late)
{
    MPI_Request request;
    int rc = MPI_SUCCESS;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    PERSISTENT(Alltoall)
    (from, BLOCK, MPI_CHAR, to, BLOCK, MPI_CHAR, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3 && rc == MPI_SUCCESS; i++) {
        if (i == 2 && rank == late) {
            sleep(12);
        }
        MPI_Start(&request);
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(rc != MPI_SUCCESS, "no error");
    fprintf(stderr, "rank %d has an error\n", rank);
    fflush(NULL);
    sleep(rank == late ? 0 : 14); /* who ends early looks as if it had died */
    _exit(0);
}

int main(int argc, char **argv)
{
    int level, tries;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    from = malloc((size_t)ranks * BLOCK);
    to = malloc((size_t)ranks * BLOCK);
    CHECK(from != NULL && to != NULL, "no memory");
    if (argc == 3 && strcmp(argv[1], "late") == 0) {
        be_late(atoi(argv[2]));
    }
    for (int form = FORM_NONBLOCKING; argc == 1 && form <= FORM_PERSISTENT; form++) {
        tries = overlap((enum form)form);
        if (rank == 0) {
            printf("%s: all data before the wait the fifth time in try %d\n", form_names[form],
                   tries);
        }
    }
    tries = reduce(argc == 1);
    if (rank == 0 && argc == 1) {
        printf("reduce: all was posted the fifth time in try %d\n", tries);
    }
    if (argc == 1) {
        be_first();
    }
    free(from);
    free(to);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}

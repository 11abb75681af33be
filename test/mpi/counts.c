/*
 * Counts of vectors that come again, change, or do not match.
 *     counts change SEED                alltoallv over and over, blocking and nonblocking in turn: with the counts of before, with
 *                                       others of one rank, or all anew; some blocks are long
 *     counts recur SEED                 blocking alltoallv, alltoallw on types with gaps, and in place, with equal counts that come
 *                                       again; now and then those of a pair of ranks change alone, or all
 *     counts long TIMES [stopped]       blocking alltoallv with equal counts, then so often with one block that is long, from rank 0 to
 *                                       rank 1; stopped: until rank 0 has been in the middle of it for more than 2 seconds, stopped by
 *                                       the last rank, which has no long block and so has ended the call
 *     counts overlap COUNT              alltoallv of blocks that all begin at one place, to places that overlap, which MPI forbids:
 *                                       what is written there may be anything, but nothing else, and nobody hangs
 *     counts unlike FORM NAME FROM TO   rank TO awaits one int more from rank FROM than that sends: an MPI error, and nobody hangs
 * FORM: blocking, nonblocking, recurring (blocking, after calls with equal counts). NAME: alltoallv, gatherv (TO is the root), scatterv (FROM is).
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { CALLS = 60, RANKS_MOST = 64, SHORT = 20, LONG = 40000, PATIENCE = 60 };
enum { EQUAL_CALLS = 3, STOPPED = 3 /* seconds */, LONG_TO_STOP = 20 * 1000 * 1000 };

static int rank, size;

static int below(uint64_t *state, int bound)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((*state >> 33) % (uint64_t)bound);
}

static int value_of(int from, int to, int i, int call)
{
    return from * 1000003 + to * 1009 + i * 7 + call;
}

/* All ranks draw the same. */
static void draw(int counts[][RANKS_MOST], int only, uint64_t *random)
{
    for (int from = 0; from < size; from++) {
        for (int to = 0; to < size; to++) {
            int count = below(random, 4) == 0    ? 0
                        : below(random, 40) == 0 ? below(random, LONG)
                                                 : below(random, SHORT);

            if (only < 0 || from == only || to == only) {
                counts[from][to] = count;
            }
        }
    }
}

/* Each int has a gap as long behind it. */
static void call_typed(const int *out, int *in, const int *scounts, int *sdispls,
                       const int *rcounts, int *rdispls)
{
    static MPI_Datatype types[RANKS_MOST];
    MPI_Datatype pairs;

    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &pairs);
    MPI_Type_commit(&pairs);
    for (int i = 0; i < size; i++) {
        types[i] = pairs;
        sdispls[i] *= 2 * (int)sizeof(int);
        rdispls[i] *= 2 * (int)sizeof(int);
    }
    MPI_Alltoallw(out, scounts, sdispls, types, in, rcounts, rdispls, types, MPI_COMM_WORLD);
    MPI_Type_free(&pairs);
    for (int i = 0; i < size; i++) {
        sdispls[i] /= 2 * (int)sizeof(int);
        rdispls[i] /= 2 * (int)sizeof(int);
    }
}

enum how { BLOCKING, NONBLOCKING, TYPED, IN_PLACE, HOWS };

/* On buffers with a gap behind each block. */
static void call_once(int counts[][RANKS_MOST], int call, enum how how)
{
    int stride = how == TYPED ? 2 : 1;
    static int scounts[RANKS_MOST], sdispls[RANKS_MOST], rcounts[RANKS_MOST], rdispls[RANKS_MOST];
    int *out, *in;
    int outs = 0, ins = 0, wrong = 0;

    for (int at = 0; at < size; at++) {
        int i = call % 2 == 0 ? at : size - 1 - at; /* displacements run backwards */

        scounts[i] = counts[rank][i];
        rcounts[i] = counts[i][rank];
        sdispls[i] = outs;
        rdispls[i] = ins;
        outs += scounts[i] + 1;
        ins += rcounts[i] + 1;
    }
    out = calloc((size_t)(outs * stride), sizeof(int));
    in = malloc((size_t)(ins * stride) * sizeof(int));
    memset(in, 0x55, (size_t)(ins * stride) * sizeof(int));
    for (int i = 0; i < size; i++) {
        for (int k = 0; k < scounts[i]; k++) {
            (how == IN_PLACE ? in : out)[(sdispls[i] + k) * stride] = value_of(rank, i, k, call);
        }
    }
    if (how == TYPED) {
        call_typed(out, in, scounts, sdispls, rcounts, rdispls);
    } else if (how == IN_PLACE) {
        MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in, rcounts, rdispls, MPI_INT,
                      MPI_COMM_WORLD);
    } else if (how == BLOCKING) {
        MPI_Alltoallv(out, scounts, sdispls, MPI_INT, in, rcounts, rdispls, MPI_INT,
                      MPI_COMM_WORLD);
    } else {
        MPI_Request request;

        MPI_Ialltoallv(out, scounts, sdispls, MPI_INT, in, rcounts, rdispls, MPI_INT,
                       MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < size; i++) {
        for (int k = 0; k < rcounts[i]; k++) {
            wrong += in[(rdispls[i] + k) * stride] != value_of(i, rank, k, call);
            wrong += stride > 1 && in[(rdispls[i] + k) * stride + 1] != 0x55555555;
        }
        wrong += in[(rdispls[i] + rcounts[i]) * stride] != 0x55555555;
    }
    if (wrong > 0) {
        printf("rank %d: call %d: %d ints are wrong\n", rank, call, wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(out);
    free(in);
}

static int overlap(int count)
{
    int counts[RANKS_MOST], sdispls[RANKS_MOST] = {0}, rdispls[RANKS_MOST];
    int step = count / 2, end = (size - 1) * step + count;
    int *out = calloc((size_t)count, sizeof(int)), *in = calloc((size_t)end + 1, sizeof(int));

    for (int i = 0; i < size; i++) {
        counts[i] = count;
        rdispls[i] = (size - 1 - i) * step;
    }
    in[end] = size;
    for (int i = 0; i < count; i++) {
        out[i] = rank + 1;
    }
    for (int call = 0; call < CALLS; call++) {
        MPI_Alltoallv(out, counts, sdispls, MPI_INT, in, counts, rdispls, MPI_INT, MPI_COMM_WORLD);
        CHECK(in[0] == size && in[end - 1] == 1 && in[end] == size, "call %d: %d, %d, %d", call,
              in[0], in[end - 1], in[end]);
    }
    free(out);
    free(in);
    return 0;
}

static int changes(uint64_t random)
{
    static int counts[RANKS_MOST][RANKS_MOST];

    if (rank == 0) {
        printf("counts: seed %llu\n", (unsigned long long)random);
    }
    draw(counts, -1, &random);
    for (int call = 0; call < CALLS; call++) {
        switch (below(&random, 4)) {
        case 0:
            draw(counts, below(&random, size), &random);
            break;
        case 1:
            draw(counts, -1, &random);
            break;
        default:
            break;
        }
        call_once(counts, call, call % 2 == 0 ? BLOCKING : NONBLOCKING);
    }
    return 0;
}

/* In place a rank gets from another as much as it sends. */
static void set_pair(int counts[][RANKS_MOST], int a, int b, int there, int back)
{
    counts[a][b] = there;
    counts[b][a] = back;
}

static void set_all(int counts[][RANKS_MOST], int count)
{
    for (int from = 0; from < size; from++) {
        for (int to = 0; to < size; to++) {
            counts[from][to] = count;
        }
    }
}

static int length_of(uint64_t *random)
{
    static const int bounds[] = {1, SHORT, 1000, LONG};

    return below(random, bounds[below(random, 4)]);
}

static int recurs(uint64_t random)
{
    static int counts[RANKS_MOST][RANKS_MOST];

    if (rank == 0) {
        printf("counts: seed %llu\n", (unsigned long long)random);
    }
    for (int call = 0, most = 2; call < 4 * CALLS; call++) {
        enum how how = (enum how)below(&random, HOWS);
        int a = below(&random, size), b = below(&random, size), there = length_of(&random);

        if (call % 30 == 0) {
            most = below(&random, 3) == 0 ? length_of(&random) : 1 + below(&random, SHORT);
        }
        set_all(counts, most);
        if (below(&random, 8) == 0) {
            set_pair(counts, a, b, there, how == IN_PLACE ? there : length_of(&random));
        }
        call_once(counts, call, how);
    }
    return 0;
}

/* The last rank's part once it is back; true on all ranks: rank 1 has waited for the stopped one. */
static bool stop_the_sender(int sender, double began)
{
    int has_waited;

    if (rank == size - 1) {
        kill((pid_t)sender, SIGSTOP);
        sleep(STOPPED);
        kill((pid_t)sender, SIGCONT);
    }
    has_waited = MPI_Wtime() - began > 0.7 * STOPPED;
    MPI_Bcast(&has_waited, 1, MPI_INT, 1, MPI_COMM_WORLD);
    return has_waited != 0;
}

static int has_long(int times, bool stopped)
{
    static int scounts[RANKS_MOST], rcounts[RANKS_MOST], displs[RANKS_MOST];
    const int length = stopped ? LONG_TO_STOP : LONG, other = rank == 0 ? 1 : 0;
    int *out = calloc((size_t)(size + length), sizeof(int));
    int *in = calloc((size_t)(size + length), sizeof(int));
    int sender = (int)getpid(), wrong = 0;
    bool is_hit = false;

    MPI_Bcast(&sender, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int call = 0; call < EQUAL_CALLS + times && !is_hit; call++) {
        double began = MPI_Wtime();

        for (int i = 0; i < size; i++) {
            bool is_long = call >= EQUAL_CALLS;

            scounts[i] = is_long && rank == 0 && i == 1 ? length : 1;
            rcounts[i] = is_long && rank == 1 && i == 0 ? length : 1;
            displs[i] = i == other ? size : i; /* behind the short ones */
            for (int k = 0; k < scounts[i]; k++) {
                out[displs[i] + k] = value_of(rank, i, k, call);
            }
        }
        MPI_Alltoallv(out, scounts, displs, MPI_INT, in, rcounts, displs, MPI_INT, MPI_COMM_WORLD);
        if (stopped && call >= EQUAL_CALLS) {
            is_hit = stop_the_sender(sender, began);
        }
        for (int i = 0; i < size; i++) {
            for (int k = 0; k < rcounts[i]; k++) {
                wrong += in[displs[i] + k] != value_of(i, rank, k, call);
            }
        }
    }
    free(out);
    free(in);
    if (wrong > 0 || is_hit != stopped) {
        printf("counts: rank %d: %d ints are wrong%s\n", rank, wrong,
               is_hit == stopped ? "" : "; rank 0 was never in the middle of its long block");
    }
    return wrong > 0 || is_hit != stopped;
}

struct unlike {
    const char *form, *name;
    int from, to;
    int scounts[RANKS_MOST], rcounts[RANKS_MOST], displs[RANKS_MOST];
};

static int start(struct unlike *u, int *out, int *in, MPI_Comm comm, MPI_Request *request)
{
    int own = strcmp(u->name, "gatherv") == 0 ? u->scounts[u->to] : u->rcounts[u->from];

    if (strcmp(u->name, "alltoallv") == 0) {
        return request == NULL ? MPI_Alltoallv(out, u->scounts, u->displs, MPI_INT, in, u->rcounts,
                                               u->displs, MPI_INT, comm)
                               : MPI_Ialltoallv(out, u->scounts, u->displs, MPI_INT, in, u->rcounts,
                                                u->displs, MPI_INT, comm, request);
    }
    if (strcmp(u->name, "gatherv") == 0) {
        return request == NULL
                   ? MPI_Gatherv(out, own, MPI_INT, in, u->rcounts, u->displs, MPI_INT, u->to, comm)
                   : MPI_Igatherv(out, own, MPI_INT, in, u->rcounts, u->displs, MPI_INT, u->to,
                                  comm, request);
    }
    return request == NULL
               ? MPI_Scatterv(out, u->scounts, u->displs, MPI_INT, in, own, MPI_INT, u->from, comm)
               : MPI_Iscatterv(out, u->scounts, u->displs, MPI_INT, in, own, MPI_INT, u->from, comm,
                               request);
}

static int unlike(struct unlike *u)
{
    static int out[RANKS_MOST * SHORT], in[RANKS_MOST * SHORT];
    MPI_Request request;
    MPI_Comm comm;
    int rc, failed, any, one = 1;

    for (int i = 0; i < size; i++) {
        u->scounts[i] = 3;
        u->rcounts[i] = 3;
        u->displs[i] = i * SHORT;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            MPI_ERRORS_RETURN); /* of requests Open MPI 4.1 tells that one */
    alarm(PATIENCE);                            /* nobody hangs */
    for (int i = 0; i < EQUAL_CALLS && strcmp(u->form, "recurring") == 0; i++) {
        (void)start(u, out, in, comm, NULL);
    }
    if (rank == u->to) {
        u->rcounts[u->from]++;
    }
    if (strcmp(u->form, "nonblocking") != 0) {
        rc = start(u, out, in, comm, NULL);
    } else {
        rc = start(u, out, in, comm, &request);
        rc = rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    }
    if (rc == MPI_SUCCESS) { /* who had its part already learns it from the next one */
        rc = MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
    }
    failed = rc != MPI_SUCCESS;
    if (failed) { /* nobody has died */
        MPI_Error_class(rc, &rc);
        CHECK(rc == MPI_ERR_OTHER || rc == MPI_ERR_TRUNCATE, "an error of class %d", rc);
    }
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("counts: %s %s: %d of %d ranks get an error\n", u->form, u->name, any, size);
    }
    return any == 0;
}

int main(int argc, char **argv)
{
    int rc = 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size <= RANKS_MOST && argc == 3 && strcmp(argv[1], "change") == 0) {
        rc = changes(strtoull(argv[2], NULL, 0));
    } else if (size <= RANKS_MOST && argc == 3 && strcmp(argv[1], "overlap") == 0) {
        rc = overlap(atoi(argv[2]));
    } else if (size <= RANKS_MOST && argc == 3 && strcmp(argv[1], "recur") == 0) {
        rc = recurs(strtoull(argv[2], NULL, 0));
    } else if (size <= RANKS_MOST && argc >= 3 && strcmp(argv[1], "long") == 0) {
        rc = has_long(atoi(argv[2]), argc == 4 && strcmp(argv[3], "stopped") == 0);
    } else if (size <= RANKS_MOST && argc == 6 && strcmp(argv[1], "unlike") == 0) {
        struct unlike u = {
            .form = argv[2], .name = argv[3], .from = atoi(argv[4]), .to = atoi(argv[5])};

        rc = unlike(&u);
    }
    MPI_Finalize();
    return rc;
}

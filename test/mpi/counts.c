/*
 * Counts of vectors that come again, change, or do not match.
 *     counts change SEED                alltoallv over and over, blocking and nonblocking in turn: with the counts of before, with
 *                                       others of one rank, or all anew; some blocks are long
 *     counts unlike FORM NAME FROM TO   rank TO awaits one int more from rank FROM than that sends: an MPI error, and nobody hangs
 * FORM: blocking, nonblocking. NAME: alltoallv, gatherv (TO is the root), scatterv (FROM is).
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS = 60, RANKS_MOST = 64, SHORT = 20, LONG = 40000, PATIENCE = 60 };

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

/* On buffers with a gap behind each block. */
static void call_once(int counts[][RANKS_MOST], int call)
{
    static int scounts[RANKS_MOST], sdispls[RANKS_MOST], rcounts[RANKS_MOST], rdispls[RANKS_MOST];
    int *out, *in;
    int outs = 0, ins = 0, wrong = 0;

    for (int i = 0; i < size; i++) {
        scounts[i] = counts[rank][i];
        rcounts[i] = counts[i][rank];
        sdispls[i] = outs;
        rdispls[i] = ins;
        outs += scounts[i] + 1;
        ins += rcounts[i] + 1;
    }
    out = malloc((size_t)outs * sizeof(int));
    in = malloc((size_t)ins * sizeof(int));
    memset(in, 0x55, (size_t)ins * sizeof(int));
    for (int i = 0; i < size; i++) {
        for (int k = 0; k < scounts[i]; k++) {
            out[sdispls[i] + k] = value_of(rank, i, k, call);
        }
    }
    if (call % 2 == 0) {
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
            wrong += in[rdispls[i] + k] != value_of(i, rank, k, call);
        }
        wrong += in[rdispls[i] + rcounts[i]] != 0x55555555;
    }
    if (wrong > 0) {
        printf("rank %d: call %d: %d ints are wrong\n", rank, call, wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(out);
    free(in);
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
        call_once(counts, call);
    }
    return 0;
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
        u->rcounts[i] = 3 + (rank == u->to && i == u->from);
        u->displs[i] = i * SHORT;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD,
                            MPI_ERRORS_RETURN); /* of requests Open MPI 4.1 tells that one */
    alarm(PATIENCE);                            /* nobody hangs */
    if (strcmp(u->form, "blocking") == 0) {
        rc = start(u, out, in, comm, NULL);
    } else {
        rc = start(u, out, in, comm, &request);
        rc = rc == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    }
    if (rc == MPI_SUCCESS) { /* who had its part already learns it from the next one */
        rc = MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
    }
    failed = rc != MPI_SUCCESS;
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
    } else if (size <= RANKS_MOST && argc == 6 && strcmp(argv[1], "unlike") == 0) {
        struct unlike u = {
            .form = argv[2], .name = argv[3], .from = atoi(argv[4]), .to = atoi(argv[5])};

        rc = unlike(&u);
    }
    MPI_Finalize();
    return rc;
}

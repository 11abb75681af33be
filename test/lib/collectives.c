/* All collectives of libibshift against what they mean: sizes, roots, in place, counts, groups within the
 * job, several at once. Seeded: all ranks draw the same numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/processes.h"

enum { MOST = 70000, ROUNDS = 120, AT_ONCE = 6 };

static unsigned seed = 1;

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* What rank has at that place of what it sends to another one. */
static uint32_t value(uint32_t number, uint32_t rank, uint32_t to, size_t i)
{
    return (number * 2654435761u) ^ (rank * 40503u + to * 10007u + (uint32_t)i * 97u);
}

/* Not commutative: 2 x 2 matrices over 32 bits. */
struct matrix {
    uint32_t a, b, c, d;
};

static struct matrix times(struct matrix x, struct matrix y)
{
    return (struct matrix){x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c,
                           x.c * y.b + x.d * y.d};
}

static void multiply(void *context, const void *left, void *right, size_t elements)
{
    const struct matrix *x = left;
    struct matrix *y = right;

    for (size_t i = 0; i < elements; i++) {
        y[i] = times(x[i], y[i]);
    }
}

static struct matrix matrix_of(uint32_t number, uint32_t rank, size_t i)
{
    uint32_t v = value(number, rank, 0, i);

    return (struct matrix){v, v * 3 + 1, v * 5 + 2, v ^ 0x5a5a5a5au};
}

/* The product of ranks 0 to last. */
static struct matrix product(uint32_t number, uint32_t last, size_t i)
{
    struct matrix all = matrix_of(number, 0, i);

    for (uint32_t rank = 1; rank <= last; rank++) {
        all = times(all, matrix_of(number, rank, i));
    }
    return all;
}

/* One collective of a rank: what it has and what it should get. */
struct trial {
    struct ibs_call call;
    uint32_t number, rank, ranks;
    char *send, *recv, *want;
    size_t want_bytes;
    size_t counts[2][RANKS_MAX];
    ptrdiff_t places[2][RANKS_MAX];
    struct ibs_request *request;
};

static void fill_moved(struct trial *t)
{
    uint32_t *send = (uint32_t *)t->send, *recv = (uint32_t *)t->recv, *want = (uint32_t *)t->want;
    bool is_root = t->rank == t->call.root, in_place = t->call.send == NULL;
    size_t n = t->call.count;

    for (uint32_t other = 0; other < t->ranks; other++) {
        for (size_t i = 0; i < n; i++) {
            size_t at = other * n + i;

            switch (t->call.collective) {
            case IBS_BCAST:
                recv[i] = is_root ? value(t->number, t->rank, 0, i) : 0;
                want[i] = value(t->number, t->call.root, 0, i);
                break;
            case IBS_SCATTER:
                send[at] = value(t->number, t->rank, other, i);
                want[i] = value(t->number, t->call.root, t->rank, i);
                break;
            case IBS_ALLTOALL:
                (in_place ? recv : send)[at] = value(t->number, t->rank, other, i);
                want[at] = value(t->number, other, t->rank, i);
                break;
            default: /* gather and allgather */
                if (in_place) {
                    recv[at] = other == t->rank ? value(t->number, t->rank, 0, i) : 0;
                } else {
                    send[i] = value(t->number, t->rank, 0, i);
                }
                want[at] = value(t->number, other, 0, i);
            }
        }
    }
    t->want_bytes = n * sizeof(uint32_t);
    t->want_bytes *=
        t->call.collective == IBS_BCAST || t->call.collective == IBS_SCATTER ? 1 : t->ranks;
    if (t->call.collective == IBS_GATHER && !is_root) {
        t->want_bytes = 0;
    }
}

static void fill_reduced(struct trial *t)
{
    bool scatters = t->call.collective == IBS_REDUCE_SCATTER;
    struct matrix *mine = (struct matrix *)(t->call.send == NULL ? t->recv : t->send),
                  *want = (struct matrix *)t->want;
    size_t n = t->call.count, all = scatters ? n * t->ranks : n;
    uint32_t last = t->ranks - 1;

    for (size_t i = 0; i < all; i++) {
        mine[i] = matrix_of(t->number, t->rank, i);
    }
    if (t->call.collective == IBS_SCAN || t->call.collective == IBS_EXSCAN) {
        last = t->rank - (t->call.collective == IBS_EXSCAN);
    }
    t->want_bytes = n * sizeof(*want);
    if ((t->call.collective == IBS_EXSCAN && t->rank == 0) ||
        (t->call.collective == IBS_REDUCE && t->rank != t->call.root)) {
        t->want_bytes = 0;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        want[i] = product(t->number, last, scatters ? t->rank * n + i : i);
    }
}

/* Blocks of unlike sizes; of an all-to-all with gaps between them, and the last ones first. */
static void fill_counted(struct trial *t, uint64_t *state, uint32_t most)
{
    size_t count[RANKS_MAX][RANKS_MAX], at[2] = {0, 0};
    bool is_alltoall = t->call.collective == IBS_ALLTOALL, in_place = t->call.send == NULL;
    uint32_t *send = (uint32_t *)t->send, *recv = (uint32_t *)t->recv, *want = (uint32_t *)t->want;

    for (uint32_t i = 0; i < t->ranks; i++) {
        for (uint32_t j = 0; j < t->ranks; j++) {
            count[i][j] = draw(state, 3) == 0 ? 0 : draw(state, most + 1);
            if (!is_alltoall && j > 0) {
                count[i][j] = count[i][0];
            }
            if (is_alltoall && in_place && j < i) { /* what comes has the place of what goes */
                count[i][j] = count[j][i];
            }
        }
    }
    for (uint32_t k = 0; k < t->ranks; k++) {
        uint32_t other = is_alltoall ? t->ranks - 1 - k : k;
        size_t gap = is_alltoall ? 1 : 0;

        t->counts[0][other] = count[t->rank][other];
        t->counts[1][other] = count[other][t->rank];
        t->places[0][other] = (ptrdiff_t)at[0];
        t->places[1][other] = (ptrdiff_t)at[1];
        at[0] += t->counts[0][other] + gap;
        at[1] += t->counts[1][other] + gap;
    }
    memset(recv, 0x77, at[1] * sizeof(*recv));
    memset(want, 0x77, at[1] * sizeof(*want));
    for (uint32_t other = 0; other < t->ranks; other++) {
        for (size_t i = 0; i < t->counts[1][other]; i++) {
            want[t->places[1][other] + (ptrdiff_t)i] =
                value(t->number, other, is_alltoall ? t->rank : 0, i);
        }
        for (size_t i = 0; i < t->counts[0][other]; i++) {
            uint32_t v = value(t->number, t->rank, is_alltoall ? other : 0, i);

            if (is_alltoall) {
                (in_place ? recv : send)[t->places[0][other] + (ptrdiff_t)i] = v;
            } else if (in_place) {
                recv[t->places[1][t->rank] + (ptrdiff_t)i] = v;
            } else {
                send[i] = v;
            }
        }
    }
    t->want_bytes = at[1] * sizeof(*want);
    t->call.count = 0;
    t->call.recv_counts = t->counts[1];
    t->call.recv_places = t->places[1];
    if (is_alltoall && !in_place) {
        t->call.send_counts = t->counts[0];
        t->call.send_places = t->places[0];
    }
}

static void make(struct trial *t, uint64_t *state, uint32_t number)
{
    enum ibs_collective collective = (enum ibs_collective)draw(state, IBS_EXSCAN + 1);
    bool reduces = collective >= IBS_REDUCE;
    uint32_t most = draw(state, 4) == 0 ? MOST / (4 * t->ranks) : draw(state, 3) == 0 ? 2000 : 16;
    bool may_be_in_place =
        collective != IBS_BARRIER && collective != IBS_BCAST && collective != IBS_SCATTER;
    bool in_place = draw(state, 2) == 0 && may_be_in_place;

    t->number = number;
    t->call = (struct ibs_call){.collective = collective,
                                .root = draw(state, t->ranks),
                                .send = in_place ? NULL : t->send,
                                .recv = t->recv,
                                .count = draw(state, most + 1),
                                .element = reduces ? sizeof(struct matrix) : sizeof(uint32_t),
                                .reduce = reduces ? multiply : NULL};
    if (in_place &&
        ((collective == IBS_GATHER || collective == IBS_REDUCE) && t->rank != t->call.root)) {
        t->call.send = t->send; /* the root alone has a place for it */
    }
    memset(t->want, 0, (size_t)MOST * 4);
    memset(t->recv, 0, (size_t)MOST * 4);
    t->want_bytes = 0;
    if (draw(state, 2) == 0 && (collective == IBS_ALLTOALL || collective == IBS_ALLGATHER)) {
        fill_counted(t, state, most / 2);
    } else if (reduces) {
        t->call.count /= 4;
        fill_reduced(t);
    } else if (collective != IBS_BARRIER) {
        fill_moved(t);
    } else {
        t->call.count = 0;
    }
}

static int compare(const struct process *process, const struct trial *t)
{
    char what[160];
    size_t i = 0;

    while (i < t->want_bytes && t->recv[i] == t->want[i]) {
        i++;
    }
    if (i == t->want_bytes) {
        return 0;
    }
    snprintf(what, sizeof(what),
             "call %u, collective %d, root %u, count %zu%s%s: byte %zu is wrong", t->number,
             (int)t->call.collective, t->call.root, t->call.count,
             t->call.send == NULL ? ", in place" : "",
             t->call.recv_counts != NULL ? ", with counts" : "", i);
    return processes_fail(process, what, 0);
}

/* Several at once, begun in one order and ended in whichever. */
static int round_of(struct process *process, struct ibs_group *group, struct trial *trials,
                    uint64_t *state, uint32_t round)
{
    uint32_t count = 1 + draw(state, AT_ONCE);
    bool waits = draw(state, 2) == 0;
    int rc = 0, running = IBS_RUNNING;

    count = waits ? 1 : count;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        make(&trials[i], state, round * AT_ONCE + i);
        rc = waits ? ibs_run(group, &trials[i].call)
                   : ibs_start(group, &trials[i].call, &trials[i].request);
        memset(trials[i].places, 0, waits ? 0 : sizeof(trials[i].places)); /* they are not kept */
    }
    while (!waits && rc == 0 && running == IBS_RUNNING) {
        running = 0;
        for (uint32_t i = 0; rc == 0 && i < count; i++) {
            int end = trials[i].request == NULL ? 0 : ibs_test(trials[i].request);

            running = end == IBS_RUNNING ? end : running;
            trials[i].request = end == IBS_RUNNING ? trials[i].request : NULL;
            rc = end < 0 ? end : 0;
        }
    }
    if (rc != 0) {
        fprintf(stderr, "%s", ibs_group_error(group));
        return processes_fail(process, "a collective failed", rc);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (compare(process, &trials[i]) != 0) {
            return 1;
        }
    }
    return 0;
}

static int run_group(struct process *process, uint32_t id, const uint32_t *ranks, uint32_t count,
                     uint32_t rank, uint32_t rounds)
{
    struct trial *trials = calloc(AT_ONCE, sizeof(*trials));
    struct ibs_group *group;
    uint64_t state = seed * 1000003u + id;
    int rc = trials == NULL ? -ENOMEM : ibs_group_create(process->job, id, ranks, count, &group);

    if (rc != 0) {
        free(trials);
        return processes_fail(process, "no group", rc);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        trials[i].rank = rank;
        trials[i].ranks = ranks == NULL ? process->ranks : count;
        trials[i].send = malloc((size_t)MOST * 4);
        trials[i].recv = malloc((size_t)MOST * 4);
        trials[i].want = malloc((size_t)MOST * 4);
    }
    for (uint32_t round = 0; rc == 0 && round < rounds; round++) {
        rc = round_of(process, group, trials, &state, round);
    }
    for (int i = 0; i < AT_ONCE; i++) {
        free(trials[i].send);
        free(trials[i].recv);
        free(trials[i].want);
    }
    free(trials);
    return rc != 0 ? rc : ibs_group_free(group);
}

/* All; then those with even and with odd numbers apart, in falling order; then all again under a number that was free. */
static int work(struct process *process)
{
    uint32_t half[RANKS_MAX], count = 0, rank = 0;
    int rc = run_group(process, 7, NULL, 0, process->rank, ROUNDS);

    for (uint32_t i = process->ranks; i-- > 0;) {
        if (i % 2 == process->rank % 2) {
            rank = i == process->rank ? count : rank;
            half[count++] = i;
        }
    }
    rc = rc == 0 ? run_group(process, 8 + process->rank % 2, half, count, rank, ROUNDS / 3) : rc;
    rc = rc == 0 ? run_group(process, 7, NULL, 0, process->rank, ROUNDS / 6) : rc;
    return rc == 0 ? ibs_close(process->job) : 1;
}

int main(int count, char **words)
{
    uint32_t ranks = count > 1 ? (uint32_t)atoi(words[1]) : 4;

    seed = count > 2 ? (unsigned)atoi(words[2]) : seed;
    printf("%u ranks, seed %u\n", ranks, seed);
    return processes_run(ranks, true, 0, work);
}

/*
 * The comparison of clocks (exec/pace/clock.h) between processes over verbs, against the truth: every
 * rank's clock is the machine's, ahead by up to a second and fast or slow by up to PPM.
 *
 *     clocks [-n RANKS] [-c COMPARISONS] [-g GAP_MS] [-d PPM] [-s SEED]
 *
 * Prints in ns how far the ranks' common time is from the truth right after a comparison and at the
 * end of the gap that follows it, and the error that they tell themselves. With PPM 0 an error
 * above the one that is told fails.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "exec/engine.h"
#include "exec/pace/pace.h"
#include "ranks.h"

enum { COMPARISONS_MAX = 1000, UNIT_NS = 1000000, SECOND_NS = 1000000000 };

struct sample {
    int64_t fresh, aged; /* off by, ns */
    uint64_t told;
};

static long comparisons = 20, gap_ms = 600, ppm = 50, seed = 1;
static uint64_t epoch;
static int64_t ahead[RANKS_MAX];
static double drift[RANKS_MAX];
static struct shared {
    uint32_t arrived;
    struct sample sample[RANKS_MAX][COMPARISONS_MAX + 1];
} * shared;
static int me;

static uint64_t machine_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static uint64_t clock_of(int rank, uint64_t time)
{
    int64_t passed = (int64_t)(time - epoch);
    return time + (uint64_t)(ahead[rank] + (int64_t)(drift[rank] * (double)passed));
}

static uint64_t own_now(struct ibshift_net *net)
{
    (void)net;
    return clock_of(me, machine_time());
}

static void make_clocks(void)
{
    uint64_t state = (uint64_t)seed;

    epoch = machine_time();
    for (int i = 0; i < RANKS_MAX; i++) {
        ahead[i] = (int64_t)(ranks_random(&state) % SECOND_NS);
        drift[i] = ((double)(ranks_random(&state) % 2001) - 1000) * 1e-9 * (double)ppm;
    }
}

static int64_t off_by(const struct ibshift_clock *clock)
{
    uint64_t time = machine_time();
    int64_t off = ibshift_clock_common(clock, clock_of(me, time)) - (int64_t)clock_of(0, time);
    return off < 0 ? -off : off;
}

static void compare_once(struct ranks *r, struct ibshift_engine *engine, struct ibshift_op *op,
                         uint32_t seq)
{
    ibshift_engine_start(engine, op, seq);
    while (!ibshift_op_is_done(op)) {
        if (ibshift_engine_progress(engine) == 0) {
            sched_yield();
        }
    }
    if (op->status != 0) {
        ranks_fail(r, "comparison %u: status %d with peer %u", seq, op->status, op->failed_peer);
    }
}

/* All ranks, so that nobody sleeps while others compare. */
static void meet(const struct ranks *r, struct ibshift_engine *engine, long number)
{
    uint32_t all = (uint32_t)(r->count * (number + 1));
    __atomic_fetch_add(&shared->arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&shared->arrived, __ATOMIC_ACQUIRE) < all) {
        if (ibshift_engine_progress(engine) == 0) {
            sched_yield();
        }
    }
}

static void prepare(struct ranks *r, struct ibshift_op *op, struct ibshift_pace *pace, char *block)
{
    ibshift_pace_default(pace, IBSHIFT_PACE_CLK);
    pace->unit = UNIT_NS;
    pace->sync = 1;
    op->params.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "shift");
    op->params.plan.ranks = (uint32_t)r->count;
    op->params.rank = (uint32_t)r->self;
    op->params.window = 1;
    op->params.comm = 1;
    op->params.pace = pace;
    for (int i = 0; i < IBSHIFT_TMP; i++) {
        op->params.blocks[i] = (struct ibshift_blocks){
            .base = block + i * RANKS_MAX, .unit = 1, .layout = IBSHIFT_UNIFORM};
    }
    ibshift_op_init(op);
}

static int run(struct ranks *r)
{
    static struct ibshift_op op;
    static char block[IBSHIFT_TMP * RANKS_MAX];
    struct ibshift_clock clock = {0};
    struct ibshift_pace pace;
    const struct ibshift_engine_options none = {0};
    static struct ibshift_net_ops ops; /* outlives this call, as the net does */

    ops = *r->net->ops;

    me = r->self;
    ops.now = own_now;
    r->net->ops = &ops;
    struct ibshift_engine *engine = ibshift_engine_create(r->net, &none);
    prepare(r, &op, &pace, block);
    pace.clock = &clock;
    if (engine == NULL || ibshift_engine_attach(engine, &op) != 0) {
        ranks_fail(r, "out of memory");
    }
    for (long i = 0; i <= comparisons; i++) {
        compare_once(r, engine, &op, (uint32_t)i);
        struct sample *s = &shared->sample[r->self][i];
        s->fresh = off_by(&clock);
        s->told = clock.error;
        if (ppm == 0 && clock.drift == 0 && s->fresh > (int64_t)s->told + 1) {
            ranks_fail(r, "comparison %ld: off by %lld ns, %llu told", i, (long long)s->fresh,
                       (unsigned long long)s->told);
        }
        meet(r, engine, i);
        usleep((useconds_t)gap_ms * 1000);
        s->aged = off_by(&clock);
    }
    ibshift_engine_detach(engine, &op);
    ibshift_engine_free(engine);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print(const char *what, int64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    printf("%s median %lld p90 %lld worst %lld\n", what, (long long)values[count / 2],
           (long long)values[count * 9 / 10], (long long)values[count - 1]);
}

/* All but rank 0, whose clock it is, and all but the first comparison, which knows no drift. */
static int report(int ranks)
{
    size_t count = 0, most = (size_t)(ranks - 1) * (size_t)comparisons;
    int64_t *columns = calloc(most, 3 * sizeof(*columns));

    for (int rank = 1; columns != NULL && rank < ranks; rank++) {
        for (long i = 1; i <= comparisons; i++, count++) {
            const struct sample *s = &shared->sample[rank][i];
            columns[count] = s->fresh;
            columns[most + count] = s->aged;
            columns[2 * most + count] = (int64_t)s->told;
        }
    }
    if (columns == NULL) {
        return 1;
    }
    print("fresh", columns, count);
    print("aged", columns + most, count);
    print("told", columns + 2 * most, count);
    free(columns);
    return 0;
}

int main(int argc, char **argv)
{
    struct ranks r = {.count = 2, .max_ports = 1, .options = ibshift_net_verbs_defaults};
    const struct ranks_option options[] = {
        {'n', &r.count, sizeof(r.count), 2, RANKS_MAX},
        {'c', &comparisons, sizeof(comparisons), 1, COMPARISONS_MAX},
        {'g', &gap_ms, sizeof(gap_ms), 0, 60000},
        {'d', &ppm, sizeof(ppm), 0, 400},
        {'s', &seed, sizeof(seed), 0, 1 << 30},
        {0, NULL, 0, 0, 0},
    };
    int rc;

    ranks_options(argc, argv, options);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return 1;
    }
    make_clocks();
    rc = ranks_run(&r, run, 0);
    return rc != 0 ? rc : report(r.count);
}

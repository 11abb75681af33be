#include "tune/tune.h"

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 17, CHUNK = 5, MOST = 2000, EMPTY = 200, COPY = 1 << 16, COPIES = 200 };
enum { IDLE_TURNS = 4 }; /* as the component waits (coll_ibshift_request.c) */

struct pair {
    struct tune_wires *wires;
    struct ibshift_engine *engine;
    struct ibshift_op op;
    struct ibshift_net_mem *mem;
    struct ibshift_net *net;
    uint32_t peers[2];
    int self, other; /* 0 or 1; the other's rank */
    uint32_t seq;
    char *data;
    double pause; /* us until the partner waits for a message surely, or has them all */
    double times[MOST + CHUNK];
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void wait_until(double time)
{
    while (now() < time) {
    }
}

static void prepare(struct pair *p, const struct tune_probe *probe)
{
    struct ibshift_op_params *params = &p->op.params;

    params->alg = tune_alg(probe);
    params->plan = tune_plan(probe, p->net->max_eager);
    for (int i = IBSHIFT_SEND; i <= IBSHIFT_RECV; i++) {
        params->blocks[i] = (struct ibshift_blocks){
            .base = p->data, .unit = probe->bytes, .layout = IBSHIFT_UNIFORM};
        params->mem[i] = p->mem;
    }
}

/* The other rank may wait for what never comes. */
static void fail(const struct pair *p)
{
    char text[TUNE_TEXT] = "";

    ibshift_net_describe(p->net, (uint32_t)p->other, text, sizeof(text));
    fprintf(stderr, "ibshift tune: a message between ranks 0 and %u failed: %s: %s\n", p->peers[1],
            strerror(-p->op.status), text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Whoever waits in a collective looks after Open MPI's own messages too, which takes as long as a short message. */
static void wait_a_little(const struct pair *p, int turn)
{
    int is_there;

    if (turn % IDLE_TURNS == 0) {
        MPI_Iprobe(p->other, TAG + 1, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    } else if (p->wires->is_crowded) {
        sched_yield();
    }
}

/* Only what comes behind the start of an op counts: a call costs the same in every algorithm. */
static double run(struct pair *p)
{
    double begin = now();
    int turns = 0;

    ibshift_engine_start(p->engine, &p->op, p->seq++);
    while (!ibshift_op_is_done(&p->op)) {
        if (ibshift_engine_progress(p->engine) <= 0) {
            wait_a_little(p, ++turns);
        }
    }
    begin = now() - begin;
    if (p->op.status != 0) {
        fail(p);
    }
    return begin;
}

static void tell(struct pair *p, double *value, int from)
{
    if (p->self == from) {
        MPI_Send(value, 1, MPI_DOUBLE, p->other, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(value, 1, MPI_DOUBLE, p->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static double stream_once(struct pair *p)
{
    if (p->self == 0) {
        wait_until(now() + p->pause);
    }
    return run(p);
}

/* Rank 0 posts, and then, when all is there, rank 1 takes. */
static double post_once(struct pair *p)
{
    double token = 0, time = 0;

    if (p->self == 0) {
        time = run(p);
    }
    tell(p, &token, 0);
    if (p->self == 1) {
        wait_until(now() + p->pause);
        time = run(p);
    }
    tell(p, &token, 1);
    return time;
}

static double once(struct pair *p, const struct tune_probe *probe)
{
    return probe->kind == TUNE_STREAM ? stream_once(p) : post_once(p);
}

/* In the least run every look came just in time, which programs cannot count on. */
static double median(struct pair *p, int runs)
{
    qsort(p->times, (size_t)runs, sizeof(p->times[0]), tune_by_value);
    return p->times[runs / 2];
}

/* Returns the median of as many runs as there is time for. Rank 0 says after some runs whether there is time for more: on a busy machine one may take a thousand times as long as
 * another. */
static double repeat(struct pair *p, const struct tune_probe *probe, double share)
{
    double more = 1, end = now() + share * 1e6;
    int runs = 0;

    prepare(p, probe);
    while (more > 0) {
        for (int i = 0; i < CHUNK; i++) {
            p->times[runs++] = once(p, probe);
        }
        more = runs < MOST && now() < end;
        tell(p, &more, 0);
    }
    return median(p, runs);
}

/* A call without messages, which every probe begins with. */
static double empty_call(struct pair *p)
{
    const struct tune_probe nothing = {.kind = TUNE_POST, .count = 0, .bytes = TUNE_SHORT};

    prepare(p, &nothing);
    for (int i = 0; i < EMPTY; i++) {
        p->times[i] = run(p);
    }
    return median(p, EMPTY);
}

/* Connections are made, rings are given out. */
static void warm_up(struct pair *p)
{
    const struct tune_probe many = {TUNE_STREAM, TUNE_COUNT_MAX, TUNE_SHORT};
    const struct tune_probe one = {TUNE_STREAM, 1, TUNE_SHORT};
    double least = INFINITY;

    for (int i = 0; i < 8; i++) {
        prepare(p, &many);
        (void)run(p);
        prepare(p, &one);
        least = fmin(least, run(p));
    }
    tell(p, &least, 0);
    p->pause = fmax(5, 2 * least);
}

static int open_pair(struct pair *p, enum tune_level level, int partner,
                     const struct tune_points *points)
{
    uint64_t most = 0;

    for (int i = 0; i < points->count; i++) {
        most = points->probes[i].bytes > most ? points->probes[i].bytes : most;
    }
    p->self = p->wires->rank != 0;
    p->other = p->self == 0 ? partner : 0;
    p->peers[1] = (uint32_t)partner;
    p->engine = p->wires->engine[level];
    p->net = p->wires->net[level];
    p->data = calloc(1, most);
    if (p->data == NULL) {
        return -ENOMEM;
    }
    p->mem = ibshift_net_mem_register(p->net, p->data, most);
    ibshift_op_init(&p->op);
    p->op.params.rank = (uint32_t)p->self;
    p->op.params.peers = p->peers;
    p->op.params.window = IBSHIFT_WINDOW_MAX;
    p->op.params.is_attended = true;
    p->op.params.comm = 1;
    p->op.params.element = 1;
    return ibshift_engine_attach(p->engine, &p->op);
}

static void close_pair(struct pair *p)
{
    ibshift_engine_detach(p->engine, &p->op);
    ibshift_net_mem_release(p->net, p->mem);
    free(p->data);
}

/* L, f and g hang on short messages in rows; overheads are the same in each run, nearly. */
static double weight(const struct tune_probe *probe)
{
    return probe->kind == TUNE_TAKE     ? 0
           : probe->kind == TUNE_POST   ? 1
           : probe->bytes <= TUNE_SHORT ? 6
                                        : 2;
}

static void pass_once(struct pair *p, double share, double *us, const struct tune_points *points)
{
    double empty = empty_call(p);

    for (int i = 0; i < points->count; i++) {
        const struct tune_probe *probe = &points->probes[i];

        if (probe->kind == TUNE_TAKE) {
            continue;
        }
        us[i] = repeat(p, probe, share * weight(probe)) - empty;
        if (i + 1 < points->count && points->probes[i + 1].kind == TUNE_TAKE) {
            us[i + 1] = us[i];
            tell(p, &us[i + 1], 1);
        }
    }
}

/* A message and its answer between two ranks that share a processor, as a crowded job waits; false: they are on two machines, or may
 * not move. */
static bool share_processor(struct pair *p, double share, double *us)
{
    static const struct tune_probe one = {TUNE_STREAM, 1, TUNE_SHORT};
    const struct tune_card *cards = p->wires->cards;
    bool was_crowded = p->wires->is_crowded;
    double processor = sched_getcpu(), has_moved = 0, empty = empty_call(p);
    cpu_set_t own, shared;

    if (cards[0].machine != cards[p->peers[1]].machine) {
        return false;
    }
    tell(p, &processor, 0); /* rank 0 may be there: it is */
    CPU_ZERO(&shared);
    CPU_SET(processor < 0 ? 0 : (size_t)processor, &shared);
    (void)sched_getaffinity(0, sizeof(own), &own);
    has_moved = sched_setaffinity(0, sizeof(shared), &shared) == 0;
    tell(p, &has_moved, 1);
    if (has_moved != 0) {
        tune_wires_crowd(p->wires, true);
        *us = repeat(p, &one, share) - empty;
        tune_wires_crowd(p->wires, was_crowded);
    }
    (void)sched_setaffinity(0, sizeof(own), &own);
    return has_moved != 0;
}

int tune_measure(struct tune_wires *wires, enum tune_level level, int partner, double seconds,
                 void (*heard)(enum tune_level level, int pass), struct tune_points *points)
{
    struct pair p = {.wires = wires};
    double sum = 1; /* the processor that is shared */
    int rc;

    points->count = tune_probes(tune_wires_eager(wires, level), points->probes);
    rc = open_pair(&p, level, partner, points);
    if (rc != 0) {
        return rc;
    }
    for (int i = 0; i < points->count; i++) {
        sum += weight(&points->probes[i]);
    }
    warm_up(&p);
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        pass_once(&p, seconds / TUNE_PASSES / sum, points->us[pass], points);
        if (p.self == 0) {
            heard(level, pass);
        }
    }
    points->is_shared = true;
    for (int pass = 0; pass < TUNE_PASSES && points->is_shared; pass++) {
        /* Behind the other passes: ranks that were together stay so for a while. */
        points->is_shared = share_processor(&p, seconds / TUNE_PASSES / sum, &points->shared[pass]);
    }
    close_pair(&p);
    return 0;
}

double tune_copy_rate(void)
{
    char *from = calloc(2, COPY);
    double least = INFINITY;

    for (int i = 0; from != NULL && i < COPIES; i++) {
        double begin = now();

        memcpy(from + COPY, from, COPY);
        from[i] = from[COPY + i + 1];
        least = fmin(least, now() - begin);
    }
    free(from);
    return isfinite(least) ? least / COPY : 1e-4;
}

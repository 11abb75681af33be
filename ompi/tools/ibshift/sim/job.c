#include "sim/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Nobody looks at the bytes of most simulations: then all ranks share one address range for each
 * buffer, of which the system gives only the pages that copies touch. To be verified, each rank has
 * its own.
 */
struct sim_job_memory {
    uint32_t ranks;
    size_t length[IBSHIFT_BUFFERS]; /* the largest of any rank */
    char *shared[IBSHIFT_BUFFERS];  /* mapped */
    char *own;                      /* [rank][SEND, RECV], or NULL */
    size_t **offsets;               /* [rank]: TMP's, or NULL */
};

static struct ibshift_blocks uniform(size_t bytes)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_UNIFORM, .unit = bytes};
}

static struct ibshift_blocks vector(const struct ibshift_op_params *p, size_t bytes)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_PIECES,
                                   .unit = 1,
                                   .pieces = ibshift_alg_pieces(p->alg, &p->plan),
                                   .elements = bytes};
}

/* Layouts of SEND and RECV (plan/step.h) and their bytes; returns what sizes TMP's blocks. */
static struct ibshift_blocks lay_out(struct ibshift_op_params *p, size_t bytes, size_t *length)
{
    struct ibshift_blocks *send = &p->blocks[IBSHIFT_SEND], *recv = &p->blocks[IBSHIFT_RECV];

    switch (p->alg->collective) {
    case IBSHIFT_BCAST:
    case IBSHIFT_REDUCE:
    case IBSHIFT_ALLREDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        *send = *recv = vector(p, bytes);
        length[IBSHIFT_SEND] = length[IBSHIFT_RECV] = bytes;
        break;
    case IBSHIFT_BARRIER:
        *send = *recv = uniform(0);
        break;
    default:
        *send = *recv = uniform(bytes);
        length[IBSHIFT_SEND] = bytes * ibshift_alg_blocks(p->alg, &p->plan, p->rank, IBSHIFT_SEND);
        length[IBSHIFT_RECV] = bytes * ibshift_alg_blocks(p->alg, &p->plan, p->rank, IBSHIFT_RECV);
    }
    return *send;
}

static int lay_out_rank(struct sim_job_memory *memory, struct ibshift_op_params *p, size_t bytes)
{
    size_t length[IBSHIFT_BUFFERS] = {0}, offsets;
    struct ibshift_blocks sizes = lay_out(p, bytes, length);

    offsets = ibshift_tmp_offsets(p->alg, &p->plan, p->rank, &sizes);
    if (offsets > 0) {
        memory->offsets[p->rank] = calloc(offsets, sizeof(size_t));
        if (memory->offsets[p->rank] == NULL) {
            return -ENOMEM;
        }
    }
    length[IBSHIFT_TMP] = ibshift_tmp_layout(p->alg, &p->plan, p->rank, &sizes,
                                             memory->offsets[p->rank], &p->blocks[IBSHIFT_TMP]);
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        memory->length[b] = length[b] > memory->length[b] ? length[b] : memory->length[b];
    }
    return 0;
}

static struct ibshift_blocks row(const struct sim_sizes *sizes, const int *all, uint32_t rank)
{
    return (struct ibshift_blocks){.layout = IBSHIFT_INT_COUNTS,
                                   .unit = 1,
                                   .counts = all + (size_t)rank * sizes->ranks,
                                   .displs = sizes->places};
}

/* All messages of an alltoallv come from the same place and go there. */
static void lay_out_sizes(struct sim_job_memory *memory, struct ibshift_op_params *p,
                          const struct sim_sizes *sizes)
{
    p->blocks[IBSHIFT_SEND] = row(sizes, sizes->sent, p->rank);
    p->blocks[IBSHIFT_RECV] = row(sizes, sizes->received, p->rank);
    memory->length[IBSHIFT_SEND] = memory->length[IBSHIFT_RECV] = sim_sizes_most(sizes);
}

static int map_shared(struct sim_job_memory *memory, const struct ibshift_alg *alg)
{
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        /* A plan that copies nothing but each rank's own block: that onto itself is no copy. */
        if (b == IBSHIFT_RECV && alg->collective == IBSHIFT_ALLTOALL && alg->tmp == NULL) {
            memory->shared[b] = memory->shared[IBSHIFT_SEND];
            continue;
        }
        memory->shared[b] = mmap(NULL, memory->length[b] + 1, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory->shared[b] == MAP_FAILED) {
            memory->shared[b] = NULL;
            return -ENOMEM;
        }
    }
    return 0;
}

static char pattern(uint32_t from, uint32_t to, size_t at)
{
    uint64_t h = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15ull + at * 0xc2b2ae3d27d4eb4full;

    return (char)(h >> 56);
}

static char *own_buffer(const struct sim_job_memory *memory, uint32_t rank,
                        enum ibshift_buffer which)
{
    size_t send = memory->length[IBSHIFT_SEND], recv = memory->length[IBSHIFT_RECV];

    return memory->own + rank * (send + recv) + (which == IBSHIFT_RECV ? send : 0);
}

/* What rank `from` has for rank `to`; to all alike in an allgather. */
static int fill_own(struct sim_job_memory *memory, size_t bytes)
{
    size_t each = memory->length[IBSHIFT_SEND] + memory->length[IBSHIFT_RECV];

    memory->own = calloc((size_t)memory->ranks * each + 1, 1);
    if (memory->own == NULL) {
        return -ENOMEM;
    }
    for (uint32_t r = 0; r < memory->ranks; r++) {
        char *send = own_buffer(memory, r, IBSHIFT_SEND);

        for (size_t i = 0; i < memory->length[IBSHIFT_SEND]; i++) {
            send[i] = pattern(r, (uint32_t)(i / bytes), i % bytes);
        }
    }
    return 0;
}

static int bring_memory(struct sim_job_memory *memory, struct ibshift_op_params *const *params,
                        size_t bytes, bool verify)
{
    int rc = map_shared(memory, params[0]->alg);

    rc = rc == 0 && verify ? fill_own(memory, bytes) : rc;
    for (uint32_t r = 0; r < memory->ranks && rc == 0; r++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            params[r]->blocks[b].base = memory->own != NULL && b != IBSHIFT_TMP
                                            ? own_buffer(memory, r, b)
                                            : memory->shared[b];
        }
    }
    return rc;
}

/* Sets params->blocks of all ranks: params[rank], `bytes` and `sizes` as in sim_job.h. -ENOMEM;
 * -ENOTSUP: cannot be verified, or not with sizes. */
static void memory_free(struct sim_job_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        bool is_double = b == IBSHIFT_RECV && memory->shared[b] == memory->shared[IBSHIFT_SEND];

        if (memory->shared[b] != NULL && !is_double) {
            munmap(memory->shared[b], memory->length[b] + 1);
        }
    }
    for (uint32_t r = 0; memory->offsets != NULL && r < memory->ranks; r++) {
        free(memory->offsets[r]);
    }
    free(memory->offsets);
    free(memory->own);
    free(memory);
}

static int memory_create(struct ibshift_op_params *const *params, uint32_t ranks, size_t bytes,
                         const struct sim_sizes *sizes, bool verify, struct sim_job_memory **memory)
{
    const struct ibshift_alg *alg = params[0]->alg;
    struct sim_job_memory *m;
    int rc = 0;

    if (verify && ((alg->collective != IBSHIFT_ALLTOALL && alg->collective != IBSHIFT_ALLGATHER) ||
                   alg->tmp != NULL || sizes != NULL)) {
        return -ENOTSUP;
    }
    if (sizes != NULL && (alg->collective != IBSHIFT_ALLTOALL || alg->tmp != NULL)) {
        return -ENOTSUP;
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return -ENOMEM;
    }
    m->ranks = ranks;
    m->offsets = calloc(ranks + 1u, sizeof(*m->offsets));
    rc = m->offsets == NULL ? -ENOMEM : 0;
    for (uint32_t r = 0; r < ranks && rc == 0; r++) {
        if (sizes != NULL) {
            lay_out_sizes(m, params[r], sizes);
        } else {
            rc = lay_out_rank(m, params[r], bytes);
        }
    }
    rc = rc == 0 ? bring_memory(m, params, bytes, verify) : rc;
    if (rc != 0) {
        memory_free(m);
        return rc;
    }
    *memory = m;
    return 0;
}

/* The first rank whose received bytes are wrong, or `ranks`. */
static uint32_t memory_check(const struct sim_job_memory *memory,
                             enum ibshift_collective collective, size_t bytes)
{
    for (uint32_t to = 0; to < memory->ranks; to++) {
        const char *recv = own_buffer(memory, to, IBSHIFT_RECV);

        for (size_t i = 0; i < memory->length[IBSHIFT_RECV]; i++) {
            uint32_t block = collective == IBSHIFT_ALLGATHER ? 0 : to;

            if (recv[i] != pattern((uint32_t)(i / bytes), block, i % bytes)) {
                return to;
            }
        }
    }
    return memory->ranks;
}

enum {
    EVENTS_PER_LOOK = 1 << 18,     /* at the progress, and at the limit */
    LOOKS_PER_DEADLOCK_CHECK = 64, /* that check costs a walk over the fabric */
};

struct sim_job_rank {
    struct sim_job *job;
    struct ibshift_engine *engine;
    bool has_begun;
    struct ibshift_pace pace;
    struct ibshift_clock clock;
    struct ibshift_pace_memory learned;
    struct ibshift_op op;
};

static void rank_ended(struct ibshift_op *op)
{
    struct sim_job_rank *rank = op->owner;
    struct sim_job *job = rank->job;
    uint64_t time = sim_net_time(job->net, op->params.rank);

    job->running--;
    job->time = time > job->time ? time : job->time;
    if (op->status != 0 && job->status == 0) {
        job->status = op->status;
        job->failed_rank = op->params.rank;
    }
}

static void turn(void *context, uint32_t r)
{
    struct sim_job *job = context;
    struct sim_job_rank *rank = &job->rank[r];

    if (!rank->has_begun) {
        rank->has_begun = true;
        ibshift_engine_start(rank->engine, &rank->op, 0);
    }
    while (ibshift_engine_progress(rank->engine) > 0) {
    }
    if (job->params.pace != NULL) {
        uint64_t wake = ibshift_engine_wake_at(rank->engine);

        if (wake != UINT64_MAX) {
            sim_net_wake_at(job->net, r, wake);
        }
    }
}

static void set_pace(struct sim_job *job, struct sim_job_rank *rank)
{
    rank->pace = *job->params.pace;
    if (job->params.pace->sync == 0) {
        rank->clock = sim_net_clock(job->net, rank->op.params.rank);
    }
    rank->pace.clock = &rank->clock;
    rank->pace.memory = &rank->learned;
    rank->op.params.pace = &rank->pace;
}

static int prepare_rank(struct sim_job *job, uint32_t r)
{
    struct ibshift_engine_options options = {.pages = job->pages};
    struct sim_job_rank *rank = &job->rank[r];
    struct ibshift_op_params *params = &rank->op.params;

    rank->job = job;
    params->alg = job->params.alg;
    params->plan = *job->params.plan;
    params->rank = r;
    params->window = job->params.window;
    params->piece = job->params.piece;
    params->element = 1;
    if (job->params.pace != NULL) {
        set_pace(job, rank);
    }
    ibshift_op_init(&rank->op);
    rank->op.ended = rank_ended;
    rank->op.owner = rank;
    rank->engine = ibshift_engine_create(sim_net_end(job->net, r), &options);
    return rank->engine == NULL ? -ENOMEM : ibshift_engine_attach(rank->engine, &rank->op);
}

static void no_reduction(void *context, const void *in, void *inout, size_t elements)
{
    (void)context;
    (void)in;
    (void)inout;
    (void)elements;
}

static int prepare_ranks(struct sim_job *job)
{
    uint32_t ranks = job->params.ranks;
    struct ibshift_op_params **params = calloc(ranks + 1u, sizeof(struct ibshift_op_params *));
    int rc = params == NULL ? -ENOMEM : 0;

    job->rank = calloc(ranks + 1u, sizeof(*job->rank));
    job->pages = calloc(1, sizeof(*job->pages));
    rc = job->rank == NULL || job->pages == NULL ? -ENOMEM : rc;
    for (uint32_t r = 0; r < ranks && rc == 0; r++) {
        rc = prepare_rank(job, r);
        params[r] = &job->rank[r].op.params;
        params[r]->reduce = no_reduction;
    }
    if (rc == 0) {
        rc = memory_create(params, ranks, job->params.bytes, job->params.sizes, job->params.verify,
                           &job->memory);
    }
    free(params);
    return rc;
}

/* What arrives is the ranks' or the background's. */
static void arrived(void *context, uint32_t user, enum sim_arrival arrival)
{
    struct sim_job *job = context;

    if ((user & SIM_USER_TRAFFIC) && !(user & SIM_USER_GRANT)) {
        sim_traffic_arrived(job->traffic, user);
    } else {
        job->net_user.arrived(job->net_user.context, user, arrival);
    }
}

static int prepare_background(struct sim_job *job)
{
    const struct sim_job_params *params = &job->params;
    uint32_t *group;
    int rc;

    if (params->background.load <= 0) {
        return 0;
    }
    group = calloc(params->other_count + 1u, sizeof(*group));
    if (group == NULL) {
        return -ENOMEM;
    }
    rc = sim_traffic_create(params->graph, &params->background, params->others, group,
                            params->other_count, job->fabric, &job->queue, &job->traffic);
    free(group);
    return rc;
}

int sim_job_open(struct sim_job *job, const struct sim_job_params *params,
                 struct ibshift_error *err)
{
    struct sim_fabric_user user;
    int rc;

    memset(job, 0, sizeof(*job));
    job->params = *params;
    job->params.net.moves_data = params->verify;
    sim_queue_init(&job->queue);
    rc = sim_net_create(params->graph, &job->params.net, params->host_of, params->ranks,
                        &job->queue, &job->net);
    if (rc != 0) {
        return ibshift_fail(err, rc, "no memory for %u ranks", params->ranks);
    }
    job->net_user = sim_net_user(job->net);
    user = (struct sim_fabric_user){.context = job, .arrived = arrived};
    rc = sim_fabric_create(params->graph, &params->fabric, &user, &job->queue, &job->fabric, err);
    if (rc != 0) {
        return rc;
    }
    sim_net_attach(job->net, job->fabric);
    rc = prepare_ranks(job);
    rc = rc == 0 ? prepare_background(job) : rc;
    if (rc == 0 && params->bins > 0) {
        rc = sim_fabric_keep_time(job->fabric, params->bins);
    }
    return rc == 0          ? 0
           : rc == -ENOTSUP ? ibshift_fail(err, -EINVAL,
                                           "only an all-to-all or allgather without intermediate "
                                           "buffers, and of one size, can be verified")
                            : ibshift_fail(err, rc, "no memory for %u ranks", params->ranks);
}

void sim_job_close(struct sim_job *job)
{
    for (uint32_t r = 0; job->rank != NULL && r < job->params.ranks; r++) {
        if (job->rank[r].engine != NULL) {
            ibshift_engine_detach(job->rank[r].engine, &job->rank[r].op);
            ibshift_engine_free(job->rank[r].engine);
        }
    }
    free(job->rank);
    free(job->pages);
    memory_free(job->memory);
    sim_traffic_free(job->traffic);
    sim_fabric_free(job->fabric);
    sim_net_free(job->net);
    sim_queue_free(&job->queue);
}

static bool is_deadlocked(struct sim_job *job)
{
    int links = sim_fabric_deadlock(job->fabric, job->circle, SIM_CIRCLE_MAX);

    if (links > 0) {
        job->status = -EDEADLK;
        job->circle_length = links;
    }
    return links > 0;
}

/* Now and then; false: there is no point in going on. */
static bool look(struct sim_job *job)
{
    const struct ibshift_walk *walk = &job->rank[0].op.walk;

    if (job->params.progress != NULL && walk->rounds > 0) {
        job->params.progress(job->params.progress_context,
                             (double)walk->progress.received / walk->rounds);
    }
    if (job->params.limit > 0 && job->queue.now > job->params.limit) {
        job->status = is_deadlocked(job) ? -EDEADLK : -ETIMEDOUT;
        return false;
    }
    return (job->queue.events / EVENTS_PER_LOOK) % LOOKS_PER_DEADLOCK_CHECK != 0 ||
           !is_deadlocked(job);
}

void sim_job_run(struct sim_job *job)
{
    struct sim_event event;
    int kind;

    job->running = job->params.ranks;
    sim_net_begin(job->net, turn, job);
    if (job->traffic != NULL) {
        sim_traffic_begin(job->traffic);
    }
    while (job->running > 0 && sim_queue_pop(&job->queue, &event, &kind)) {
        if (kind < SIM_KINDS_FABRIC) {
            sim_fabric_event(job->fabric, kind, &event);
        } else if (kind < SIM_KINDS_NET) {
            sim_net_event(job->net, kind, &event);
        } else {
            sim_traffic_event(job->traffic, &event);
        }
        if (job->queue.events % EVENTS_PER_LOOK == 0 && !look(job)) {
            return;
        }
    }
    if (job->queue.is_broken) {
        job->status = -ENOMEM;
    } else if (job->running > 0 && !is_deadlocked(job)) {
        job->status = -EDOM;
    } else if (job->status == 0 && job->params.verify) {
        job->failed_rank =
            memory_check(job->memory, job->params.alg->collective, job->params.bytes);
        job->status = job->failed_rank < job->params.ranks ? -EBADMSG : 0;
    }
}

static uint64_t clock_error(const struct sim_job *job, uint32_t r)
{
    uint64_t own = ibshift_net_now(sim_net_end(job->net, r));
    struct ibshift_clock truth = sim_net_clock(job->net, r);
    int64_t error =
        ibshift_clock_common(&job->rank[r].clock, own) - ibshift_clock_common(&truth, own);

    return (uint64_t)(error < 0 ? -error : error);
}

struct sim_job_pacing sim_job_pacing(const struct sim_job *job)
{
    struct sim_job_pacing sum = {0};

    for (uint32_t r = 0; r < job->params.ranks; r++) {
        sum.left += job->rank[r].learned.left;
        sum.jumps += job->rank[r].learned.jumps;
        if (job->params.pace != NULL && job->params.pace->sync != 0) {
            uint64_t error = clock_error(job, r), told = job->rank[r].clock.error;

            sum.clock_error = error > sum.clock_error ? error : sum.clock_error;
            sum.clock_told = told > sum.clock_told ? told : sum.clock_told;
        }
    }
    return sum;
}

uint64_t sim_job_bound(const struct sim_job *job, uint32_t *link)
{
    uint64_t bound = 0;

    *link = 0;
    for (uint32_t i = 0; i < job->params.graph->port_count; i++) {
        uint64_t busy = sim_fabric_busy(job->fabric, i, false);

        if (busy > bound) {
            bound = busy;
            *link = i;
        }
    }
    return bound;
}

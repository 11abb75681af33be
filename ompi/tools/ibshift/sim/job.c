#include "sim/job.h"

#include <errno.h>
#include <sys/mman.h>

struct sim_job_rank {
    struct sim_job *job;
    struct ibshift_engine *engine;
    bool has_begun;
    struct ibshift_pace pace;
    struct ibshift_clock clock;
    struct ibshift_pace_memory learned;
    struct ibshift_op op;
};

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

static void lay_out_rank(struct sim_job_memory *memory, struct ibshift_op_params *p, size_t bytes)
{
    size_t length[IBSHIFT_BUFFERS] = {0};
    struct ibshift_blocks sizes = lay_out(p, bytes, length);
    size_t offsets = ibshift_tmp_offsets(p->alg, &p->plan, p->rank, &sizes);

    memory->offsets[p->rank] = offsets > 0 ? sim_zeroed(offsets, sizeof(size_t)) : NULL;
    length[IBSHIFT_TMP] = ibshift_tmp_layout(p->alg, &p->plan, p->rank, &sizes,
                                             memory->offsets[p->rank], &p->blocks[IBSHIFT_TMP]);
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        memory->length[b] = length[b] > memory->length[b] ? length[b] : memory->length[b];
    }
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

static void map_shared(struct sim_job_memory *memory, const struct ibshift_alg *alg)
{
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        /* A plan that copies nothing but each rank's own block: that onto itself is no copy. */
        if (b == IBSHIFT_RECV && alg->collective == IBSHIFT_ALLTOALL && alg->tmp == NULL) {
            memory->shared[b] = memory->shared[IBSHIFT_SEND];
            continue;
        }
        memory->shared[b] = mmap(NULL, memory->length[b] + 1, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        sim_need(memory->shared[b] == MAP_FAILED ? NULL : memory->shared[b]);
    }
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
static void fill_own(struct sim_job_memory *memory, size_t bytes)
{
    size_t each = memory->length[IBSHIFT_SEND] + memory->length[IBSHIFT_RECV];

    memory->own = sim_zeroed((size_t)memory->ranks * each, 1);
    for (uint32_t r = 0; r < memory->ranks; r++) {
        char *send = own_buffer(memory, r, IBSHIFT_SEND);

        for (size_t i = 0; i < memory->length[IBSHIFT_SEND]; i++) {
            send[i] = pattern(r, (uint32_t)(i / bytes), i % bytes);
        }
    }
}

static void memory_free(struct sim_job_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
        bool is_double = b == IBSHIFT_RECV && memory->shared[b] == memory->shared[IBSHIFT_SEND];

        if (!is_double) {
            munmap(memory->shared[b], memory->length[b] + 1);
        }
    }
    for (uint32_t r = 0; r < memory->ranks; r++) {
        free(memory->offsets[r]);
    }
    free(memory->offsets);
    free(memory->own);
    free(memory);
}

/* Sets the blocks of all ranks' ops. */
static void memory_create(struct sim_job *job)
{
    const struct sim_job_params *params = &job->params;
    struct sim_job_memory *m = sim_zeroed(1, sizeof(*m));

    job->memory = m;
    m->ranks = params->ranks;
    m->offsets = sim_zeroed(m->ranks, sizeof(*m->offsets));
    for (uint32_t r = 0; r < m->ranks; r++) {
        if (params->sizes != NULL) {
            lay_out_sizes(m, &job->rank[r].op.params, params->sizes);
        } else {
            lay_out_rank(m, &job->rank[r].op.params, params->bytes);
        }
    }
    map_shared(m, params->alg);
    if (params->verify) {
        fill_own(m, params->bytes);
    }
    for (uint32_t r = 0; r < m->ranks; r++) {
        for (int b = 0; b < IBSHIFT_BUFFERS; b++) {
            job->rank[r].op.params.blocks[b].base =
                m->own != NULL && b != IBSHIFT_TMP ? own_buffer(m, r, b) : m->shared[b];
        }
    }
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

static void rank_ended(struct ibshift_op *op)
{
    struct sim_job_rank *rank = op->owner;
    struct sim_job *job = rank->job;
    uint64_t time = job->net->ends[op->params.rank].at;

    assert(op->status == 0);
    job->running--;
    job->time = time > job->time ? time : job->time;
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

static void no_reduction(void *context, const void *left, void *right, void *target,
                         size_t elements)
{
    (void)context;
    (void)left;
    (void)right;
    (void)target;
    (void)elements;
}

static void prepare_rank(struct sim_job *job, uint32_t r)
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
    params->reduce = no_reduction;
    if (job->params.pace != NULL) {
        set_pace(job, rank);
    }
    ibshift_op_init(&rank->op);
    rank->op.ended = rank_ended;
    rank->op.owner = rank;
    rank->engine = sim_need(ibshift_engine_create(sim_net_end(job->net, r), &options));
    sim_need(ibshift_engine_attach(rank->engine, &rank->op) == 0 ? rank : NULL);
}

/* What arrives is the ranks' or the background's. */
static void arrived(void *context, uint32_t user, enum sim_arrival arrival)
{
    struct sim_job *job = context;

    if ((user & SIM_USER_TRAFFIC) && !(user & SIM_USER_GRANT)) {
        sim_traffic_arrived(job->traffic, user);
    } else {
        sim_net_arrived(job->net, user, arrival);
    }
}

static void prepare_background(struct sim_job *job)
{
    const struct sim_job_params *params = &job->params;
    uint32_t *group = sim_zeroed(params->other_count, sizeof(*group));

    job->traffic = sim_traffic_create(params->graph, &params->background, params->others, group,
                                      params->other_count, job->fabric, &job->queue);
    free(group);
}

/* The bytes of which plans can be looked at, or can differ from pair to pair. */
static bool has_plain_blocks(const struct sim_job_params *p)
{
    bool is_alltoall = p->alg->collective == IBSHIFT_ALLTOALL;

    return p->alg->tmp == NULL &&
           (p->sizes != NULL ? is_alltoall && !p->verify
                             : is_alltoall || p->alg->collective == IBSHIFT_ALLGATHER);
}

int sim_job_open(struct sim_job *job, const struct sim_job_params *params,
                 struct ibshift_error *err)
{
    struct sim_fabric_user user = {.context = job, .arrived = arrived};
    int rc;

    memset(job, 0, sizeof(*job));
    job->params = *params;
    job->params.net.moves_data = params->verify;
    if ((params->verify || params->sizes != NULL) && !has_plain_blocks(params)) {
        return ibshift_fail(err, -EINVAL,
                            "only an all-to-all or allgather without intermediate buffers, and of "
                            "one size, can be verified");
    }
    sim_queue_init(&job->queue);
    job->net = sim_net_create(params->graph, &job->params.net, params->host_of, params->ranks,
                              &job->queue);
    rc = sim_fabric_create(params->graph, &params->fabric, &user, &job->queue, &job->fabric, err);
    if (rc != 0) {
        return rc;
    }
    job->rank = sim_zeroed(params->ranks, sizeof(*job->rank));
    job->pages = sim_zeroed(1, sizeof(*job->pages));
    for (uint32_t r = 0; r < params->ranks; r++) {
        prepare_rank(job, r);
    }
    memory_create(job);
    if (params->background.load > 0) {
        prepare_background(job);
    }
    return 0;
}

void sim_job_close(struct sim_job *job)
{
    for (uint32_t r = 0; job->rank != NULL && r < job->params.ranks; r++) {
        ibshift_engine_detach(job->rank[r].engine, &job->rank[r].op);
        ibshift_engine_free(job->rank[r].engine);
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
    sim_net_begin(job->net, job->fabric, turn, job);
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
    if (job->running > 0 && !is_deadlocked(job)) {
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
        uint64_t busy = job->fabric->ports[i].busy[false];

        if (busy > bound) {
            bound = busy;
            *link = i;
        }
    }
    return bound;
}

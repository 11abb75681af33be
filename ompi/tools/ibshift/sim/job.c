#include "sim/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory.h"

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
        rc = sim_memory_create(params, ranks, job->params.bytes, job->params.sizes,
                               job->params.verify, &job->memory);
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
    sim_memory_free(job->memory);
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
            sim_memory_check(job->memory, job->params.alg->collective, job->params.bytes);
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

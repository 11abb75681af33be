/* The ranks of a job: each has an engine that runs the job's collective. */
#include "sim/job.h"

#include <errno.h>

static void call_again(struct sim_job *job, uint32_t r)
{
    job->rank[r].is_due = true;
    sim_end_wake(job->run->net, job->first + r, job->run->queue.now);
}

/* A rank that has no message to exchange would call for ever at one time. */
static bool exchanges(const struct sim_job *job, uint32_t r)
{
    struct ibshift_engine_stats stats = ibshift_engine_stats(job->rank[r].engine);

    return stats.sends + stats.recvs > 0;
}

/* Its counted calls are over; what it calls for the others' sake begins on all ranks at once. */
static void job_ended(struct sim_job *job)
{
    job->run->running--;
    for (uint32_t r = 0; job->run->running > 0 && r < job->params.ranks; r++) {
        if (exchanges(job, r)) {
            call_again(job, r);
        }
    }
}

static void rank_ended(struct ibshift_op *op)
{
    struct sim_job_rank *rank = op->owner;
    struct sim_job *job = rank->job;
    uint32_t r = op->params.rank, calls = job->params.calls > 1 ? job->params.calls : 1;
    uint64_t time = job->run->net->ends[job->first + r].at - job->params.start;

    assert(op->status == 0);
    if (rank->begun < calls || (rank->begun > calls && job->run->running > 0)) {
        call_again(job, r);
    } else if (rank->begun == calls) {
        job->time = time > job->time ? time : job->time;
        if (--job->running == 0) {
            job_ended(job);
        }
    }
}

void sim_job_turn(struct sim_job *job, uint32_t r)
{
    struct sim_job_rank *rank = &job->rank[r];

    if (rank->is_due) {
        rank->is_due = false;
        ibshift_engine_start(rank->engine, &rank->op, rank->begun++);
    }
    while (ibshift_engine_progress(rank->engine) > 0) {
    }
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
    struct ibshift_engine_options options = {.pages = job->run->pages};
    struct sim_job_rank *rank = &job->rank[r];
    struct ibshift_op_params *params = &rank->op.params;

    rank->job = job;
    rank->is_due = true;
    params->alg = job->params.alg;
    params->plan = *job->params.plan;
    params->rank = r;
    params->window = job->params.window;
    params->piece = job->params.piece;
    params->element = 1;
    params->reduce = no_reduction;
    ibshift_op_init(&rank->op);
    rank->op.ended = rank_ended;
    rank->op.owner = rank;
    rank->engine =
        sim_need(ibshift_engine_create(sim_net_end(job->run->net, job->first + r), &options));
    sim_need(ibshift_engine_attach(rank->engine, &rank->op) == 0 ? rank : NULL);
}

/* The bytes of which plans can be looked at, or can differ from pair to pair. */
static bool has_plain_blocks(const struct sim_job_params *p)
{
    bool is_alltoall = p->alg->collective == IBSHIFT_ALLTOALL;

    return p->alg->tmp == NULL &&
           (p->sizes != NULL ? is_alltoall && !p->verify
                             : is_alltoall || p->alg->collective == IBSHIFT_ALLGATHER);
}

int sim_job_open(struct sim_job *job, struct ibshift_error *err)
{
    const struct sim_job_params *params = &job->params;

    if ((params->verify || params->sizes != NULL) && !has_plain_blocks(params)) {
        return ibshift_fail(err, -EINVAL,
                            "only an all-to-all or allgather without intermediate buffers, and of "
                            "one size, can be verified");
    }
    job->running = params->ranks;
    job->rank = sim_zeroed(params->ranks, sizeof(*job->rank));
    for (uint32_t r = 0; r < params->ranks; r++) {
        prepare_rank(job, r);
    }
    sim_memory_create(job);
    return 0;
}

void sim_job_close(struct sim_job *job)
{
    for (uint32_t r = 0; job->rank != NULL && r < job->params.ranks; r++) {
        ibshift_engine_detach(job->rank[r].engine, &job->rank[r].op);
        ibshift_engine_free(job->rank[r].engine);
    }
    free(job->rank);
    sim_memory_free(job->memory);
}

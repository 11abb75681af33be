/* Jobs that run on one fabric: its events, one after the other, until all jobs have ended. */
#include "sim/job.h"

#include <errno.h>

enum {
    EVENTS_PER_LOOK = 1 << 18,     /* at the progress, and at the limit */
    LOOKS_PER_DEADLOCK_CHECK = 64, /* that check costs a walk over the fabric */
};

static void arrived(void *context, uint32_t user)
{
    struct sim_run *run = context;

    sim_net_arrived(run->net, user);
}

static void turn(void *context, uint32_t rank)
{
    struct sim_run *run = context;
    struct sim_job *job = &run->job[run->job_of[rank]];

    sim_job_turn(job, rank - job->first);
}

/* Their ranks are numbered job by job. */
static void number_ranks(struct sim_run *run, const struct sim_job_params *jobs)
{
    uint32_t ranks = 0, *host_of;

    for (uint32_t j = 0; j < run->jobs; j++) {
        run->job[j] = (struct sim_job){.params = jobs[j], .run = run, .first = ranks};
        run->params.net.moves_data |= jobs[j].verify;
        ranks += jobs[j].ranks;
    }
    run->job_of = sim_zeroed(ranks, sizeof(*run->job_of));
    host_of = sim_zeroed(ranks, sizeof(*host_of));
    for (uint32_t j = 0; j < run->jobs; j++) {
        const struct sim_job *job = &run->job[j];

        memcpy(host_of + job->first, jobs[j].host_of, jobs[j].ranks * sizeof(*host_of));
        for (uint32_t r = 0; r < jobs[j].ranks; r++) {
            run->job_of[job->first + r] = j;
        }
    }
    run->net = sim_net_create(run->params.graph, &run->params.net, host_of, ranks, &run->queue);
    for (uint32_t j = 0; j < run->jobs; j++) {
        sim_net_set_job(run->net, &(struct sim_net_job){
                                      .first = run->job[j].first,
                                      .ranks = jobs[j].ranks,
                                      .start = jobs[j].start,
                                      .max_eager = jobs[j].eager > 0 ? jobs[j].eager
                                                                     : run->params.net.max_eager,
                                      .lid_offsets = jobs[j].lid_offsets,
                                      .lid_offset = jobs[j].lid_offset});
    }
    free(host_of);
}

int sim_run_open(struct sim_run *run, const struct sim_run_params *params,
                 const struct sim_job_params *jobs, uint32_t count, struct ibshift_error *err)
{
    struct sim_fabric_user user = {.context = run, .arrived = arrived};
    int rc;

    memset(run, 0, sizeof(*run));
    run->params = *params;
    run->job = sim_zeroed(count, sizeof(*run->job));
    run->jobs = run->running = count;
    sim_queue_init(&run->queue);
    number_ranks(run, jobs);
    rc = sim_fabric_create(params->graph, &params->fabric, &user, &run->queue, &run->fabric, err);
    run->pages = sim_zeroed(1, sizeof(*run->pages));
    for (uint32_t j = 0; rc == 0 && j < count; j++) {
        rc = sim_job_open(&run->job[j], err);
    }
    return rc;
}

void sim_run_close(struct sim_run *run)
{
    for (uint32_t j = 0; run->job != NULL && j < run->jobs; j++) {
        sim_job_close(&run->job[j]);
    }
    free(run->job);
    free(run->job_of);
    free(run->pages);
    sim_fabric_free(run->fabric);
    sim_net_free(run->net);
    sim_queue_free(&run->queue);
}

static bool is_deadlocked(struct sim_run *run)
{
    int links = sim_fabric_deadlock(run->fabric, run->circle, SIM_CIRCLE_MAX);

    if (links > 0) {
        run->status = -EDEADLK;
        run->circle_length = links;
    }
    return links > 0;
}

/* Of the first job's first rank. */
static double share_done(const struct sim_run *run)
{
    const struct sim_job_rank *rank = &run->job[0].rank[0];
    const struct ibshift_walk *walk = &rank->op.walk;
    double calls = run->job[0].params.calls > 1 ? run->job[0].params.calls : 1, done = 0;

    if (walk->rounds > 0 && rank->begun > 0) {
        done = (rank->begun - 1 + (double)walk->progress.received / walk->rounds) / calls;
    }
    return done < 1 ? done : 1;
}

/* Now and then; false: there is no point in going on. */
static bool look(struct sim_run *run)
{
    if (run->params.progress != NULL) {
        run->params.progress(run->params.progress_context, share_done(run));
    }
    if (run->params.limit > 0 && run->queue.now > run->params.limit) {
        run->status = is_deadlocked(run) ? -EDEADLK : -ETIMEDOUT;
        return false;
    }
    return (run->queue.events / EVENTS_PER_LOOK) % LOOKS_PER_DEADLOCK_CHECK != 0 ||
           !is_deadlocked(run);
}

static void verify(struct sim_run *run)
{
    for (uint32_t j = 0; run->status == 0 && j < run->jobs; j++) {
        const struct sim_job *job = &run->job[j];

        if (job->params.verify) {
            run->failed_job = j;
            run->failed_rank = sim_memory_check(job);
            run->status = run->failed_rank < job->params.ranks ? -EBADMSG : 0;
        }
    }
}

void sim_run_go(struct sim_run *run)
{
    struct sim_event event;
    int kind;

    sim_net_begin(run->net, run->fabric, turn, run);
    while (run->running > 0 && sim_queue_pop(&run->queue, &event, &kind)) {
        if (kind < SIM_KINDS_FABRIC) {
            sim_fabric_event(run->fabric, kind, &event);
        } else {
            sim_net_event(run->net, kind, &event);
        }
        if (run->queue.events % EVENTS_PER_LOOK == 0 && !look(run)) {
            return;
        }
    }
    if (run->running > 0 && !is_deadlocked(run)) {
        run->status = -EDOM;
    }
    verify(run);
}

uint64_t sim_run_bound(const struct sim_run *run, uint32_t *link)
{
    uint64_t bound = 0;

    *link = 0;
    for (uint32_t i = 0; i < run->params.graph->port_count; i++) {
        uint64_t busy = run->fabric->ports[i].busy[false];

        if (busy > bound) {
            bound = busy;
            *link = i;
        }
    }
    return bound;
}

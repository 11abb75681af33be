#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/badge.h"
#include "group/choose.h"
#include "group/order.h"
#include "group/report.h"
#include "job/say.h"
#include "lib/private.h"
#include "lib/work.h"

/* How the ranks tell each other what one has found for all (fabric/table/found.h). */
static void take_lesser(void *context, const void *left, void *right, size_t elements)
{
    const int *from = left;
    int *to = right;

    for (size_t i = 0; i < elements; i++) {
        to[i] = from[i] < to[i] ? from[i] : to[i];
    }
}

static int least(void *context, int mine, int *least_one)
{
    return ibs_run(context, &(struct ibs_call){.collective = IBS_REDUCE,
                                               .send = &mine,
                                               .recv = least_one,
                                               .count = 1,
                                               .element = sizeof(int),
                                               .reduce = take_lesser,
                                               .is_commutative = true});
}

static int tell(void *context, int *words, int count)
{
    return ibs_run(context, &(struct ibs_call){.collective = IBS_BCAST,
                                               .recv = words,
                                               .count = (size_t)count,
                                               .element = sizeof(int)});
}

static int deal(void *context, const int *rows, int *row, int count)
{
    return ibs_run(context, &(struct ibs_call){.collective = IBS_SCATTER,
                                               .send = rows,
                                               .recv = row,
                                               .count = (size_t)count,
                                               .element = sizeof(int)});
}

static void reduce(void *context, const void *left, void *right, void *target, size_t elements)
{
    const struct ibs_request *request = context;

    if (target != right) {
        memmove(target, right, elements * request->op.params.element);
    }
    request->reduce(request->context, left, target, elements);
}

/* The blocks of both sides, with so many words for their arrays and for the offsets of TMP. */
static int describe(const struct ibshift_lib_work *work, struct ibs_request *request, size_t words)
{
    struct ibshift_op_params *params = &request->op.params;
    size_t *arrays = ibshift_memory_reserve(&request->arrays, words * sizeof(size_t));

    if (arrays == NULL && words > 0) {
        return -ENOMEM;
    }
    ibshift_lib_blocks(work, arrays, params->blocks);
    params->blocks[IBSHIFT_SEND].pieces = params->blocks[IBSHIFT_RECV].pieces =
        ibshift_alg_pieces(params->alg, &params->plan);
    return 0;
}

/* Memory of the run: what is in place and may not be, then TMP. */
static int lay_out(const struct ibshift_lib_work *work, struct ibs_request *request)
{
    struct ibshift_op_params *params = &request->op.params;
    struct ibshift_blocks *send = &params->blocks[IBSHIFT_SEND];
    const struct ibshift_blocks *sizes = ibshift_op_tmp_sizes(params);
    size_t copies = work->is_counted ? 4 * (size_t)work->ranks : 0, offsets, staged = 0, tmp;
    bool is_staged = work->is_in_place && (params->alg->flags & IBSHIFT_ALG_IN_PLACE) == 0;
    char *scratch;

    if (describe(work, request, copies) != 0) {
        return -ENOMEM;
    }
    offsets = ibshift_tmp_offsets(params->alg, &params->plan, params->rank, sizes);
    if (offsets > 0 && describe(work, request, copies + offsets) != 0) { /* the arrays may move */
        return -ENOMEM;
    }
    tmp = ibshift_tmp_layout(params->alg, &params->plan, params->rank, sizes,
                             (size_t *)request->arrays.at + copies, &params->blocks[IBSHIFT_TMP]);
    if (is_staged) {
        staged = ibshift_lib_span(work, send, &request->from);
    }
    scratch = ibshift_memory_reserve(&request->scratch, ibshift_memory_align(staged) + tmp);
    if (scratch == NULL && staged + tmp > 0) {
        return -ENOMEM;
    }
    request->from_size = staged;
    if (staged > 0) {
        send->base = scratch + (send->base - request->from);
    }
    params->blocks[IBSHIFT_TMP].base =
        scratch == NULL ? NULL : scratch + ibshift_memory_align(staged);
    return 0;
}

static struct ibs_request *take(struct ibs_job *job)
{
    struct ibs_request *request;

    pthread_mutex_lock(&job->lock);
    request = job->idle;
    if (request != NULL) {
        job->idle = request->next;
    }
    pthread_mutex_unlock(&job->lock);
    if (request != NULL) {
        return request;
    }
    request = calloc(1, sizeof(*request));
    if (request != NULL) {
        ibshift_op_init(&request->op);
        if (ibshift_endpoint.engine != NULL &&
            ibshift_engine_attach(ibshift_endpoint.engine, &request->op) != 0) {
            free(request);
            request = NULL;
        }
    }
    return request;
}

static void give_back(struct ibs_request *request)
{
    struct ibs_job *job = request->group->job;

    atomic_fetch_sub(&request->group->running, 1);
    pthread_mutex_lock(&job->lock);
    request->next = job->idle;
    job->idle = request;
    pthread_mutex_unlock(&job->lock);
}

void ibshift_lib_requests_free(struct ibs_job *job)
{
    while (job->idle != NULL) {
        struct ibs_request *request = job->idle;

        job->idle = request->next;
        if (ibshift_endpoint.engine != NULL) {
            ibshift_engine_detach(ibshift_endpoint.engine, &request->op);
        }
        ibshift_memory_drop(&request->scratch);
        ibshift_memory_drop(&request->arrays);
        free(request);
    }
}

/* A rank that cannot go on ends the group for all. */
static int fail(struct ibs_group *group, int status, const char *name)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&group->failed, &none, status)) {
        if (group->why[0] == '\0') {
            snprintf(group->why, sizeof(group->why), "%s of %s: %s", name, group->name,
                     ibshift_cause_text(status));
        }
        if (ibshift_endpoint.engine != NULL) {
            ibshift_engine_give_up(ibshift_endpoint.engine, group->group.id,
                                   group->group.peers[group->group.rank], status);
        }
    }
    return status;
}

static int decide(const struct ibshift_lib_work *work, bool is_blocking,
                  struct ibs_request *request)
{
    struct ibs_group *group = request->group;
    struct ibshift_op_params *params = &request->op.params;
    const struct ibshift_wanted wanted = ibshift_lib_wanted(work, is_blocking);
    const struct ibshift_together together = {group, least, tell, deal, NULL};
    int rc = ibshift_group_find(&group->group, &wanted, &together);

    *params = (struct ibshift_op_params){.rank = work->rank,
                                         .peers = group->group.peers,
                                         .comm = group->group.id,
                                         .element = work->element,
                                         .reduce = reduce,
                                         .reduce_context = request};
    rc = rc == 0 ? ibshift_group_choose(&group->group, &wanted, work->call->root, params) : rc;
    if (rc != 0) {
        return rc;
    }
    params->badge = ibshift_badge(work->is_counted ? IBSHIFT_BADGE_COUNTED : IBSHIFT_BADGE_EVEN, 0,
                                  params->alg, &params->plan, work->call->root);
    request->name = work->form->name;
    request->reduce = work->call->reduce;
    request->context = work->call->context;
    return lay_out(work, request);
}

static void start(struct ibs_request *request)
{
    struct ibs_group *group = request->group;
    uint32_t seq = group->seq++ & ~IBSHIFT_PERSISTENT_SEQ;

    ibshift_ledger_write(&group->group.ledger,
                         ibshift_net_comm_seq(ibshift_op_word(&request->op), seq));
    if (request->from_size > 0) {
        memcpy(request->scratch.at, request->from, request->from_size);
    }
    ibshift_engine_start(ibshift_endpoint.engine, &request->op, seq);
}

static int begin(struct ibs_group *group, const struct ibs_call *call, bool is_blocking,
                 struct ibs_request **out)
{
    struct ibshift_lib_work work;
    struct ibs_request *request;
    int rc = group == NULL || out == NULL ? -EINVAL : ibshift_lib_check(&group->group, call, &work);

    if (rc != 0 || (rc = atomic_load(&group->failed)) != 0) {
        return rc;
    }
    request = take(group->job);
    if (request == NULL) {
        return fail(group, -ENOMEM, work.form->name);
    }
    request->group = group;
    atomic_fetch_add(&group->running, 1);
    *out = request;
    if (work.ranks == 1) {
        ibshift_lib_alone(&work);
        request->op.status = 0;
        return 0;
    }
    rc = decide(&work, is_blocking, request);
    if (rc != 0) {
        give_back(request);
        return rc == -ENOTSUP ? rc : fail(group, rc, work.form->name); /* all ranks say so */
    }
    start(request);
    return 0;
}

/* After the end. */
static int finish(struct ibs_request *request)
{
    struct ibs_group *group = request->group;
    int status = request->op.status;

    if (status != 0) {
        if (group->why[0] == '\0') {
            ibshift_lib_why = group->why;
            ibshift_report(&group->group, ibshift_endpoint.net, &request->op, request->name);
            ibshift_lib_why = NULL;
        }
        (void)fail(group, status, request->name);
    }
    give_back(request);
    return status;
}

int ibs_start(struct ibs_group *group, const struct ibs_call *call, struct ibs_request **request)
{
    return begin(group, call, false, request);
}

int ibs_test(struct ibs_request *request)
{
    if (request == NULL) {
        return -EINVAL;
    }
    if (!ibshift_op_is_done(&request->op)) {
        (void)ibshift_engine_progress(ibshift_endpoint.engine);
        if (!ibshift_op_is_done(&request->op)) {
            return IBS_RUNNING;
        }
    }
    return finish(request);
}

int ibs_wait(struct ibs_request *request)
{
    if (request == NULL) {
        return -EINVAL;
    }
    while (!ibshift_op_is_done(&request->op)) {
        if (ibshift_engine_progress(ibshift_endpoint.engine) == 0 && ibshift_endpoint.is_crowded) {
            (void)sched_yield();
        }
    }
    return finish(request);
}

int ibs_run(struct ibs_group *group, const struct ibs_call *call)
{
    struct ibs_request *request;
    int rc = begin(group, call, true, &request);

    return rc == 0 ? ibs_wait(request) : rc;
}

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/badge.h"
#include "group/decide.h"
#include "group/order.h"
#include "group/report.h"
#include "job/say.h"
#include "lib/private.h"

/* What a rank has on a side: one block, one for each rank, or a vector. */
enum side { NOTHING, BLOCK, BLOCKS, VECTOR };

static const struct form {
    const char *name;
    enum side send, recv;
    bool root_sends, root_receives; /* it alone */
    bool is_counted;                /* it may have counts */
} forms[IBSHIFT_COLLECTIVES] = {
    [IBSHIFT_BARRIER] = {"barrier", NOTHING, NOTHING},
    [IBSHIFT_BCAST] = {"bcast", NOTHING, VECTOR},
    [IBSHIFT_SCATTER] = {"scatter", BLOCKS, BLOCK, .root_sends = true},
    [IBSHIFT_GATHER] = {"gather", BLOCK, BLOCKS, .root_receives = true},
    [IBSHIFT_ALLGATHER] = {"allgather", BLOCK, BLOCKS, .is_counted = true},
    [IBSHIFT_ALLTOALL] = {"alltoall", BLOCKS, BLOCKS, .is_counted = true},
    [IBSHIFT_REDUCE] = {"reduce", VECTOR, VECTOR, .root_receives = true},
    [IBSHIFT_ALLREDUCE] = {"allreduce", VECTOR, VECTOR},
    [IBSHIFT_REDUCE_SCATTER] = {"reduce_scatter", BLOCKS, BLOCK},
    [IBSHIFT_SCAN] = {"scan", VECTOR, VECTOR},
    [IBSHIFT_EXSCAN] = {"exscan", VECTOR, VECTOR},
};

static_assert((int)IBS_EXSCAN == IBSHIFT_EXSCAN && (int)IBS_ALLTOALL == IBSHIFT_ALLTOALL &&
                  (int)IBS_REDUCE_SCATTER == IBSHIFT_REDUCE_SCATTER,
              "the header's numbers are those of the plans");

/* A call as one rank has it. */
struct work {
    const struct ibs_call *call;
    const struct form *form;
    enum ibshift_collective collective;
    uint32_t rank, ranks;
    size_t element, bytes; /* of a block, or the vector; with counts the mean */
    bool sends, receives, is_counted, is_in_place;
};

static size_t blocks_of(enum side side, uint32_t ranks)
{
    return side == NOTHING ? 0 : side == BLOCKS ? ranks : 1;
}

/* The elements of all ranks' blocks; false: more than there is memory. */
static bool add_counts(const size_t *counts, uint32_t ranks, size_t element, size_t *bytes)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < ranks; i++) {
        if (__builtin_add_overflow(sum, counts[i], &sum)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(sum, element, bytes) && *bytes <= PTRDIFF_MAX;
}

static bool lie_together(const size_t *counts, const ptrdiff_t *places, uint32_t ranks)
{
    for (uint32_t i = 1; i < ranks; i++) {
        if (places[i] != places[i - 1] + (ptrdiff_t)counts[i - 1]) {
            return false;
        }
    }
    return true;
}

static int check_counts(struct work *work)
{
    const struct ibs_call *call = work->call;
    bool is_alltoall = work->collective == IBSHIFT_ALLTOALL;
    size_t sent = 0, received = 0;

    if (!work->form->is_counted || call->recv_counts == NULL || call->recv_places == NULL ||
        (is_alltoall && call->send != NULL &&
         (call->send_counts == NULL || call->send_places == NULL))) {
        return -EINVAL;
    }
    if (!add_counts(call->recv_counts, work->ranks, work->element, &received) ||
        (is_alltoall && call->send != NULL &&
         !add_counts(call->send_counts, work->ranks, work->element, &sent))) {
        return -EINVAL;
    }
    if (!is_alltoall && !lie_together(call->recv_counts, call->recv_places, work->ranks)) {
        return -EINVAL;
    }
    work->bytes = received / work->ranks;
    return call->recv == NULL && received > 0 ? -EINVAL : 0;
}

static int check(const struct ibs_group *group, const struct ibs_call *call, struct work *work)
{
    size_t all;

    if (group == NULL || call == NULL || (unsigned)call->collective >= IBSHIFT_COLLECTIVES ||
        call->root >= group->group.size) {
        return -EINVAL;
    }
    *work = (struct work){.call = call,
                          .collective = (enum ibshift_collective)call->collective,
                          .rank = group->group.rank,
                          .ranks = group->group.size,
                          .element = call->element == 0 ? 1 : call->element};
    work->form = &forms[work->collective];
    work->is_counted = call->recv_counts != NULL || call->send_counts != NULL;
    work->sends =
        work->form->send != NOTHING && (!work->form->root_sends || work->rank == call->root);
    work->receives =
        work->form->recv != NOTHING && (!work->form->root_receives || work->rank == call->root);
    work->is_in_place =
        work->sends && work->receives && call->send == NULL && work->collective != IBSHIFT_SCATTER;
    if (__builtin_mul_overflow(call->count, work->element, &work->bytes) ||
        __builtin_mul_overflow(work->bytes, work->ranks, &all) || all > PTRDIFF_MAX ||
        (work->collective >= IBSHIFT_REDUCE && call->reduce == NULL)) {
        return -EINVAL;
    }
    if (work->is_counted) {
        return check_counts(work);
    }
    return work->bytes > 0 && ((work->receives && call->recv == NULL) ||
                               (work->sends && !work->is_in_place && call->send == NULL))
               ? -EINVAL
               : 0;
}

static struct ibshift_wanted wanted_of(const struct work *work, bool is_blocking)
{
    return (struct ibshift_wanted){
        .collective = work->collective,
        .name = work->form->name,
        .needs = !work->is_counted                      ? 0
                 : work->collective == IBSHIFT_ALLTOALL ? IBSHIFT_ALG_SIZES
                                                        : IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL,
        .bytes = work->collective == IBSHIFT_ALLTOALL && work->is_counted ? 0 : work->bytes,
        .is_counted = work->is_counted,
        .commutes = work->collective >= IBSHIFT_REDUCE && work->call->is_commutative,
        .is_blocking = is_blocking};
}

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

static int reserve(void **memory, size_t *has, size_t size)
{
    if (size > *has) {
        free(*memory);
        *memory = aligned_alloc(64, (size + 63) / 64 * 64);
        *has = *memory == NULL ? 0 : size;
    }
    return *memory == NULL && size > 0 ? -ENOMEM : 0;
}

/* The blocks of a side with counts are described by copies, as the caller may change his. */
static void set_side(const struct work *work, enum side side, const void *base, size_t **copies,
                     const size_t *counts, const ptrdiff_t *places, struct ibshift_blocks *blocks)
{
    *blocks = (struct ibshift_blocks){.base = (char *)(uintptr_t)base, .unit = work->bytes};
    if (side == VECTOR) {
        blocks->layout = IBSHIFT_PIECES;
        blocks->pieces = 1;
        blocks->unit = work->element;
        blocks->elements = work->call->count;
    } else if (side == BLOCKS && work->is_counted) {
        memcpy(*copies, counts, work->ranks * sizeof(**copies));
        memcpy(*copies + work->ranks, places, work->ranks * sizeof(*places));
        blocks->layout = IBSHIFT_SIZE_COUNTS;
        blocks->unit = work->element;
        blocks->size_counts = *copies;
        blocks->size_displs = (ptrdiff_t *)(*copies + work->ranks);
        *copies += 2 * (size_t)work->ranks;
    } else if (work->is_counted) { /* the own block of an allgather */
        blocks->unit = counts[work->rank] * work->element;
    }
}

/* What a side that is in place takes up, from the lowest byte on. */
static size_t span_of(const struct work *work, const char **from)
{
    const struct ibs_call *call = work->call;
    ptrdiff_t low = 0, high = 0;
    bool is_first = true;

    *from = call->recv;
    if (work->is_counted && work->form->send == BLOCK) {
        return call->recv_counts[work->rank] * work->element;
    }
    if (!work->is_counted) {
        return blocks_of(work->form->send, work->ranks) * work->bytes;
    }
    for (uint32_t i = 0; i < work->ranks; i++) {
        ptrdiff_t begin = call->recv_places[i], end = begin + (ptrdiff_t)call->recv_counts[i];

        low = is_first || begin < low ? begin : low;
        high = is_first || end > high ? end : high;
        is_first = false;
    }
    *from += low * (ptrdiff_t)work->element;
    return (size_t)(high - low) * work->element;
}

static void set_blocks(const struct work *work, struct ibs_request *request)
{
    const struct ibs_call *call = work->call;
    struct ibshift_op_params *params = &request->op.params;
    size_t *copies = request->arrays;
    bool is_own = work->form->send == BLOCK && work->form->recv == BLOCKS;
    const char *send = work->is_in_place ? call->recv : call->send;

    if (work->is_in_place && is_own) { /* it lies where it is received */
        send += work->is_counted ? call->recv_places[work->rank] * (ptrdiff_t)work->element
                                 : (ptrdiff_t)(work->rank * work->bytes);
    }
    if (work->sends) {
        bool is_as_recv = work->is_in_place || is_own;

        set_side(work, work->form->send, send, &copies,
                 is_as_recv ? call->recv_counts : call->send_counts,
                 is_as_recv ? call->recv_places : call->send_places, &params->blocks[IBSHIFT_SEND]);
    }
    if (work->receives) {
        set_side(work, work->form->recv, call->recv, &copies, call->recv_counts, call->recv_places,
                 &params->blocks[IBSHIFT_RECV]);
    }
}

/* Whose blocks say how large a block of TMP is. */
static const struct ibshift_blocks *tmp_sizes(const struct ibshift_op_params *params)
{
    return &params->blocks[params->alg->collective == IBSHIFT_BCAST ||
                                   params->alg->collective == IBSHIFT_SCATTER ||
                                   params->alg->collective == IBSHIFT_ALLGATHER
                               ? IBSHIFT_RECV
                               : IBSHIFT_SEND];
}

static size_t align(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* Memory of the run: what is in place and may not be, then TMP. */
static int lay_out(const struct work *work, struct ibs_request *request)
{
    struct ibshift_op_params *params = &request->op.params;
    uint32_t pieces = ibshift_alg_pieces(params->alg, &params->plan);
    size_t copies = work->is_counted ? 4 * (size_t)work->ranks : 0, offsets, staged = 0, tmp;
    bool is_staged = work->is_in_place && (params->alg->flags & IBSHIFT_ALG_IN_PLACE) == 0;
    struct ibshift_blocks *send = &params->blocks[IBSHIFT_SEND];
    const char *from;

    if (reserve((void **)&request->arrays, &request->arrays_size, copies * sizeof(size_t)) != 0) {
        return -ENOMEM;
    }
    set_blocks(work, request);
    params->blocks[IBSHIFT_SEND].pieces = params->blocks[IBSHIFT_RECV].pieces = pieces;
    offsets = ibshift_tmp_offsets(params->alg, &params->plan, params->rank, tmp_sizes(params));
    if (offsets > 0) { /* the arrays may move */
        if (reserve((void **)&request->arrays, &request->arrays_size,
                    (copies + offsets) * sizeof(size_t)) != 0) {
            return -ENOMEM;
        }
        set_blocks(work, request);
        params->blocks[IBSHIFT_SEND].pieces = params->blocks[IBSHIFT_RECV].pieces = pieces;
    }
    tmp = ibshift_tmp_layout(params->alg, &params->plan, params->rank, tmp_sizes(params),
                             request->arrays + copies, &params->blocks[IBSHIFT_TMP]);
    if (is_staged) {
        staged = span_of(work, &from);
        if (work->form->send == BLOCK) {
            from = send->base;
        }
    }
    if (reserve((void **)&request->scratch, &request->scratch_size, align(staged) + tmp) != 0) {
        return -ENOMEM;
    }
    if (staged > 0) {
        request->from = from;
        request->from_size = staged;
        send->base = request->scratch + (send->base - from);
    }
    params->blocks[IBSHIFT_TMP].base = request->scratch + align(staged);
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
        free(request->scratch);
        free(request->arrays);
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

static int decide(const struct work *work, bool is_blocking, struct ibs_request *request)
{
    struct ibs_group *group = request->group;
    struct ibshift_op_params *params = &request->op.params;
    const struct ibshift_wanted wanted = wanted_of(work, is_blocking);
    const struct ibshift_together together = {group, least, tell, deal, NULL};
    int rc = ibshift_group_order_find(&group->group, &wanted, &together);

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
    request->from = NULL;
    return lay_out(work, request);
}

static void start(struct ibs_request *request)
{
    struct ibs_group *group = request->group;
    uint32_t seq = group->seq++ & ~IBSHIFT_PERSISTENT_SEQ;

    ibshift_ledger_write(&group->group.ledger,
                         ibshift_net_comm_seq(ibshift_op_word(&request->op), seq));
    if (request->from != NULL) {
        memcpy(request->scratch, request->from, request->from_size);
    }
    ibshift_engine_start(ibshift_endpoint.engine, &request->op, seq);
}

/* What one rank has of itself. */
static void copy_alone(const struct work *work)
{
    const struct ibs_call *call = work->call;
    const char *send = call->send;
    char *recv = call->recv;
    size_t bytes = work->bytes;

    if (send == NULL || work->collective == IBSHIFT_BCAST || work->collective == IBSHIFT_EXSCAN) {
        return;
    }
    if (work->is_counted) {
        recv += call->recv_places[0] * (ptrdiff_t)work->element;
        send += call->send_places != NULL ? call->send_places[0] * (ptrdiff_t)work->element : 0;
    }
    if (bytes > 0) {
        memmove(recv, send, bytes);
    }
}

static int begin(struct ibs_group *group, const struct ibs_call *call, bool is_blocking,
                 struct ibs_request **out)
{
    struct work work;
    struct ibs_request *request;
    int rc = check(group, call, &work);

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
        copy_alone(&work);
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

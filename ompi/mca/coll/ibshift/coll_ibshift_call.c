/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include "ompi/op/op.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_KEPT = 1 << 20 /* a call that is over keeps no more for itself */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers idle and large */
static ibshift_call_t *idle;

/* What was more than that, by kind: once for all calls, for it may be much, and its pages are new to whom gets it anew. */
static struct ibshift_memory large[IBSHIFT_MIXED_MEMORIES];

/* Ours for the large one, if that has at least so many bytes but less than that. */
static void trade_large(struct ibshift_memory *memory, enum ibshift_mixed_memory which,
                        size_t least, size_t end)
{
    struct ibshift_memory ours = *memory;

    pthread_mutex_lock(&lock);
    if (large[which].size >= least && large[which].size < end) {
        *memory = large[which];
        large[which] = ours;
    }
    pthread_mutex_unlock(&lock);
}

static void leave_large(struct ibshift_memory *memory, enum ibshift_mixed_memory which)
{
    if (memory->size > SCRATCH_KEPT && memory->size <= ibshift_params.leader_memory) {
        trade_large(memory, which, 0, memory->size);
    }
    if (memory->size > SCRATCH_KEPT) {
        ibshift_memory_drop(memory);
    }
}

static void *reserve_large(struct ibshift_memory *memory, enum ibshift_mixed_memory which,
                           size_t bytes)
{
    if (bytes > SCRATCH_KEPT && bytes > memory->size) {
        trade_large(memory, which, bytes, SIZE_MAX);
    }
    return ibshift_memory_reserve(memory, bytes);
}

/* The program may free or change what it called with; a blocking call ends before it can. */
static int keep_arguments(ibshift_call_t *call)
{
    size_t size = ibshift_side_keep_bytes(&call->send) + ibshift_side_keep_bytes(&call->recv);
    char *memory = ibshift_memory_reserve(&call->kept, size);

    if (NULL == memory && size > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memory = ibshift_side_keep(&call->send, memory);
    (void)ibshift_side_keep(&call->recv, memory);
    if (NULL != call->reducer.op && !ompi_op_is_intrinsic(call->reducer.op)) {
        OBJ_RETAIN(call->reducer.op);
    }
    call->keeps = true;
    return OMPI_SUCCESS;
}

static void let_go(ibshift_call_t *call)
{
    ibshift_side_let_go(&call->send);
    ibshift_side_let_go(&call->recv);
    if (NULL != call->reducer.op && !ompi_op_is_intrinsic(call->reducer.op)) {
        OBJ_RELEASE(call->reducer.op);
    }
    call->keeps = false;
}

static bool is_home_again(ibshift_call_t *call)
{
    ibshift_call_t *none = NULL;

    return NULL != call->home && !call->keeps &&
           atomic_compare_exchange_strong(&call->home->call, &none, call);
}

ibshift_call_t *ibshift_call_take_spare(struct ibshift_spare *spare)
{
    ibshift_call_t *call = atomic_load_explicit(&spare->call, memory_order_relaxed);

    if (NULL == call) {
        return NULL;
    }
    call = atomic_exchange(&spare->call, NULL);
    if (NULL != call && call->home_id != spare->id) {
        call->home = NULL;
        ibshift_call_give_back(call);
        call = NULL;
    }
    return call;
}

void ibshift_call_give_back(ibshift_call_t *call)
{
    if (is_home_again(call)) {
        return;
    }
    call->home = NULL;
    ibshift_repeat_leave(&call->repeat, &call->op);
    if (call->keeps) {
        let_go(call);
    }
    free(call->tape);
    call->tape = NULL;
    leave_large(&call->scratch, IBSHIFT_MIXED_DATA);
    for (int i = 0; NULL != call->mixed && i < IBSHIFT_MIXED_MEMORIES; i++) {
        leave_large(&call->mixed->memory[i], (enum ibshift_mixed_memory)i);
    }
    pthread_mutex_lock(&lock);
    call->next = idle;
    idle = call;
    pthread_mutex_unlock(&lock);
}

static void call_construct(ibshift_call_t *call)
{
    call->request.super.req_type = OMPI_REQUEST_COLL;
    call->request.super.req_status._cancelled = 0;
    call->kept = call->offsets = call->tmp_offsets = call->scratch =
        (struct ibshift_memory){NULL, 0};
    call->mixed = NULL;
    call->keeps = false;
    call->tape = NULL;
    call->repeat = NULL;
    call->home = NULL;
    ibshift_op_init(&call->op);
    call->op.owner = call;
}

static void call_destruct(ibshift_call_t *call)
{
    ibshift_memory_drop(&call->kept);
    ibshift_memory_drop(&call->offsets);
    ibshift_memory_drop(&call->tmp_offsets);
    ibshift_memory_drop(&call->scratch);
    for (int i = 0; NULL != call->mixed && i < IBSHIFT_MIXED_MEMORIES; i++) {
        ibshift_memory_drop(&call->mixed->memory[i]);
    }
    if (NULL != call->mixed) {
        ibshift_memory_drop(&call->mixed->places);
    }
    free(call->mixed);
}

static OBJ_CLASS_INSTANCE(ibshift_call_t, ompi_coll_base_nbc_request_t, call_construct,
                          call_destruct);

static ibshift_call_t *take_idle(void)
{
    ibshift_call_t *call;

    pthread_mutex_lock(&lock);
    call = idle;
    if (NULL != call) {
        idle = call->next;
    }
    pthread_mutex_unlock(&lock);
    if (NULL != call) {
        return call;
    }
    call = OBJ_NEW(ibshift_call_t);
    if (NULL != call && 0 != ibshift_engine_attach(ibshift_endpoint.engine, &call->op)) {
        OBJ_RELEASE(call);
        return NULL;
    }
    return call;
}

void ibshift_calls_free(void)
{
    while (NULL != idle) {
        ibshift_call_t *call = idle;

        idle = call->next;
        ibshift_engine_detach(ibshift_endpoint.engine, &call->op);
        OBJ_RELEASE(call);
    }
    for (int i = 0; i < IBSHIFT_MIXED_MEMORIES; i++) {
        ibshift_memory_drop(&large[i]);
    }
}

/* Block i is that of the rank at place i. */
static void place_blocks(const struct ibshift_rank_map *map, struct ibshift_blocks *blocks)
{
    blocks->layout = IBSHIFT_INT_COUNTS;
    blocks->counts = map->ones;
    blocks->displs = (const int *)map->order.rank_at;
}

static void set_blocks(ibshift_call_t *call)
{
    struct ibshift_op_params *params = &call->op.params;
    uint32_t pieces = ibshift_alg_pieces(params->alg, &params->plan);

    ibshift_side_blocks(&call->send, pieces, &params->blocks[IBSHIFT_SEND]);
    ibshift_side_blocks(&call->recv, pieces, &params->blocks[IBSHIFT_RECV]);
    if (NULL != call->map && IBSHIFT_ALLGATHER == params->alg->collective) {
        place_blocks(call->map, &params->blocks[IBSHIFT_RECV]);
    }
}

/* Of a blocking call. */
static void number_standing(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                            bool renames, struct ibshift_op_params *params)
{
    uint64_t elements = ibshift_job_elements(job, module->group.size),
             total = elements * params->element;

    if (0 != total && total <= IBSHIFT_STANDING_MOST && job->bytes > ibshift_params.eager_limit) {
        params->standing = ibshift_standing_number(&module->standing, params, elements, renames);
    }
}

/* What is staged, and TMP. */
static int place_scratch(ibshift_call_t *call, size_t tmp_bytes)
{
    struct ibshift_op_params *params = &call->op.params;
    size_t staged =
        ibshift_call_scratch(call, IBSHIFT_SEND) + ibshift_call_scratch(call, IBSHIFT_RECV);
    const struct ibshift_channels over = {.max_eager = ibshift_endpoint.net->max_eager,
                                          .is_near = ibshift_card_is_near};
    char *scratch, *tmp;

    call->tmp = tmp_bytes;
    tmp = ibshift_standing_tmp(call->module->standing, params, tmp_bytes, &over);
    params->is_tmp_standing = NULL != tmp;
    tmp_bytes = NULL != tmp ? 0 : tmp_bytes;
    scratch = reserve_large(&call->scratch, IBSHIFT_MIXED_DATA, staged + tmp_bytes);
    if (NULL == scratch && staged + tmp_bytes > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    ibshift_call_set_scratch(call, scratch);
    params->blocks[IBSHIFT_TMP].base = NULL != tmp       ? tmp
                                       : NULL == scratch ? NULL
                                                         : scratch + staged;
    set_blocks(call);
    return OMPI_SUCCESS;
}

/* Where its blocks are, for stages that take some of them. */
static int lay_out_mixed(ibshift_call_t *call)
{
    struct ibshift_call_mixed *own = call->mixed;
    const struct ibshift_side *sides[2] = {&call->send, &call->recv};
    uint32_t sends = IBSHIFT_SIDE_ABSENT == call->send.shape ? 0 : call->send.blocks;
    uint32_t recvs = IBSHIFT_SIDE_ABSENT == call->recv.shape ? 0 : call->recv.blocks;
    const uint32_t blocks[2] = {sends, recvs};
    int rc = place_scratch(call, 0);
    size_t *at = ibshift_memory_reserve(&own->places, 2 * ((size_t)sends + recvs) * sizeof(size_t));

    if (NULL == at || OMPI_SUCCESS != rc) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < 2; i++) {
        ptrdiff_t *places = (ptrdiff_t *)(at + blocks[i]);

        own->mixed.sides[i] =
            (struct ibshift_mixed_side){call->op.params.blocks[i].base, blocks[i], at, places};
        if (blocks[i] > 0) {
            ibshift_side_places(sides[i], at, places);
        }
        at += 2 * (size_t)blocks[i];
    }
    own->mixed.by_node = call->op.params;
    return OMPI_SUCCESS;
}

/* All memory that the runs need: offsets first, for the size of TMP depends on the blocks. */
int ibshift_call_lay_out(ibshift_call_t *call)
{
    struct ibshift_op_params *params = &call->op.params;
    const struct ibshift_blocks *sizes;
    size_t sends = ibshift_side_offsets(&call->send), recvs = ibshift_side_offsets(&call->recv);
    size_t *offsets = ibshift_memory_reserve(&call->offsets, (sends + recvs) * sizeof(size_t));
    size_t tmp_count, tmp_bytes;

    if (NULL == offsets && sends + recvs > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    call->send.offsets = offsets;
    call->recv.offsets = sends + recvs > 0 ? offsets + sends : NULL;
    set_blocks(call);
    if (call->tells_counts) {
        return lay_out_mixed(call);
    }
    sizes = ibshift_op_tmp_sizes(params);
    tmp_count = ibshift_tmp_offsets(params->alg, &params->plan, params->rank, sizes);
    if (NULL == ibshift_memory_reserve(&call->tmp_offsets, tmp_count * sizeof(size_t)) &&
        tmp_count > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    tmp_bytes = ibshift_tmp_layout(params->alg, &params->plan, params->rank, sizes,
                                   call->tmp_offsets.at, &params->blocks[IBSHIFT_TMP]);
    return place_scratch(call, tmp_bytes);
}

static void fill_params(ibshift_call_t *call, mca_coll_ibshift_module_t *module,
                        const struct ibshift_job *job)
{
    struct ibshift_op_params *params = &call->op.params;

    params->rank = module->group.rank;
    params->peers = module->group.peers;
    params->comm = module->group.id;
    call->reducer.op = NULL;
    if (NULL != job->op) {
        call->reducer = ibshift_job_operator(job);
        params->element = call->reducer.extent;
        params->reduce = ibshift_operator_reduce;
        params->reduce_context = &call->reducer;
    }
}

/* Ranks become places of the order. */
static void follow_map(ibshift_call_t *call, const struct ibshift_rank_map *map)
{
    struct ibshift_op_params *params = &call->op.params;

    call->map = map;
    params->rank = map->order.slot_of[params->rank];
    params->plan.root = map->order.slot_of[params->plan.root];
    params->peers = map->peers;
    params->names = map->order.rank_at;
}

/* What the algorithm cannot do on the user's memory. */
static void stage_what_must(ibshift_call_t *call, const struct ibshift_job *job)
{
    const struct ibshift_alg *alg = call->op.params.alg;

    if (job->in_place && 0 == (alg->flags & IBSHIFT_ALG_IN_PLACE)) {
        call->send.is_apart = true;
    }
    if (IBSHIFT_ALLGATHER == alg->collective && 0 == (alg->flags & IBSHIFT_ALG_SINGLE) &&
        !ibshift_side_is_dense(&call->recv)) {
        call->recv.is_apart = true;
    }
}

static void *reserve_mixed(void *owner, enum ibshift_mixed_memory which, size_t bytes)
{
    return reserve_large(&((struct ibshift_call_mixed *)owner)->memory[which], which, bytes);
}

/* Its long blocks go by the plan that they would all go by if there were no other, which is chosen first: the other one is what
 * who looks on sees. */
static int choose_mixed(ibshift_call_t *call, const struct ibshift_job *job, enum ibshift_form form)
{
    mca_coll_ibshift_module_t *module = call->module;
    const struct ibshift_choice *choice =
        atomic_load_explicit(&module->group.choices.last[job->collective], memory_order_relaxed);
    struct ibshift_wanted flat = ibshift_job_wanted(job, form);
    struct ibshift_call_mixed *own = call->mixed;
    int rc;

    if (NULL == own) {
        own = call->mixed = calloc(1, sizeof(*own));
    }
    if (NULL == own) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    own->mixed.most = choice->most;
    own->mixed.has_told = false;
    own->mixed.unlike = (struct ibshift_mixed_unlike){0};
    own->mixed.reserve = reserve_mixed;
    own->mixed.owner = own;
    own->is_waited = IBSHIFT_BLOCKING == form;
    flat.needs &= ~(uint32_t)IBSHIFT_ALG_SIZES_NODE;
    own->mixed.flat = call->op.params;
    rc = ibshift_code(ibshift_group_choose(&module->group, &flat, job->root, &own->mixed.flat));
    atomic_store_explicit(&module->group.choices.last[job->collective], choice,
                          memory_order_relaxed);
    return rc;
}

/* Long blocks beside others that go padded are a call of those ranks alone that have some: it is not counted, nor is it where all
 * search together. What went padded, on all ranks, has found the order. */
static int find_order(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_wanted *wanted)
{
    const struct ibshift_together together = ibshift_job_together(comm);
    bool is_due = ibshift_group_cast_is_due(&module->group, wanted);
    int rc = ibshift_needs_long_part(wanted->needs)
                 ? OMPI_SUCCESS
                 : ibshift_code(ibshift_group_find(&module->group, wanted, &together));

    if (is_due) { /* an earlier tape may be of another plan: it is compared again */
        memset(module->latest, 0, sizeof(module->latest));
    }
    return rc;
}

int ibshift_call_make(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_job *job, enum ibshift_form form, ibshift_call_t **out)
{
    const struct ibshift_wanted wanted = ibshift_job_wanted(job, form);
    int rc = find_order(module, comm, &wanted);
    ibshift_call_t *call = OMPI_SUCCESS == rc ? take_idle() : NULL;

    if (NULL == call) {
        return OMPI_SUCCESS == rc ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    }
    call->op.params = (struct ibshift_op_params){0};
    call->module = module;
    call->map = NULL;
    fill_params(call, module, job);
    rc = ibshift_code(ibshift_group_choose(&module->group, &wanted, job->root, &call->op.params));
    if (OMPI_SUCCESS == rc) {
        if (ibshift_group_order_renames(&module->group, &wanted, call->op.params.alg)) {
            follow_map(call, &module->group.order.map);
        }
        call->op.params.badge = ibshift_job_badge(job, call->op.params.alg, &call->op.params.plan);
        call->collective = job->collective;
        call->tells_counts = ibshift_job_tells_counts(job, call->op.params.alg);
        rc = call->tells_counts ? choose_mixed(call, job, form) : OMPI_SUCCESS;
    }
    if (OMPI_SUCCESS == rc) {
        call->name = job->name;
        call->send = job->send;
        call->recv = job->recv;
        call->send.is_host = call->recv.is_host = ibshift_comm_is_host_only(comm);
        if (IBSHIFT_BLOCKING == form) {
            number_standing(module, job, NULL != call->map, &call->op.params);
        }
        rc = IBSHIFT_BLOCKING == form ? OMPI_SUCCESS : keep_arguments(call);
    }
    if (OMPI_SUCCESS == rc) {
        stage_what_must(call, job);
        ibshift_side_prepare(&call->send);
        ibshift_side_prepare(&call->recv);
        ibshift_call_find_gaps(call, &wanted);
    }
    if (OMPI_SUCCESS != rc) {
        ibshift_call_give_back(call);
        return rc;
    }
    *out = call;
    return OMPI_SUCCESS;
}

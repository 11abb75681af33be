#include "coll_ibshift_call.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_alltoall_order.h"
#include "coll_ibshift_transport.h"

#include "ompi/op/op.h"
#include "opal/runtime/opal_progress.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * One collective under way; as a request it starts with what Open MPI expects. Idle calls are kept
 * with their memory and their place in the engine.
 */
struct memory {
    void *at;
    size_t size;
};

struct ibshift_call_t {
    ompi_coll_base_nbc_request_t request;
    struct ibshift_op op;
    struct ibshift_side send, recv;
    mca_coll_ibshift_module_t *module;
    const struct ibshift_line *line; /* the plan's ranks are places along it; NULL: they are not */
    const char *name;
    struct ompi_op_t *mpi_op;
    struct ompi_datatype_t *operand;
    ptrdiff_t lower_bound;
    uint32_t first_seq; /* of a persistent call: its id, where the runs are counted from */
    uint32_t runs;
    bool keeps; /* has copied the arguments' arrays to kept, holds types and operator */
    struct memory kept, offsets, tmp_offsets, scratch;
    struct ibshift_call_t *next; /* idle */
};
typedef struct ibshift_call_t ibshift_call_t;

/*
 * The numbers of collectives on a communicator. Blocking and nonblocking ones count upwards:
 * all ranks start them in the same order. Persistent ones are created in the same order but may be
 * started in any: each has an id and counts its runs.
 *
 *     bit 31  0: number, 31 bits        1: id, 19 bits    run, 12 bits
 *
 * Only neighbouring runs can be on the way at a time, so the run may wrap; an id may not.
 */
enum {
    RUN_BITS = 12,
    MAX_PERSISTENT = 1 << 19,
    SCRATCH_KEPT = 1 << 20,
    IDLE_TURNS = 4, /* of our own, for one of Open MPI's */
};
#define PERSISTENT_SEQ 0x80000000u

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers idle */
static ibshift_call_t *idle;

/*
 * The failed request that this thread freed last, when nothing of ours has come after it. Open MPI
 * frees the requests that make a communicator, whatever their outcome, and goes on to enable its
 * modules in the same breath.
 */
static _Thread_local struct {
    int code;
    uint32_t peer;
    int status;
} unseen;

static void *reserve(struct memory *memory, size_t size)
{
    if (size > memory->size) {
        free(memory->at);
        memory->at = aligned_alloc(64, (size + 63) / 64 * 64);
        memory->size = NULL == memory->at ? 0 : size;
    }
    return memory->at;
}

static void drop(struct memory *memory)
{
    free(memory->at);
    *memory = (struct memory){NULL, 0};
}

static int request_start(size_t count, ompi_request_t **requests);
static void ended(struct ibshift_op *op);

static int request_cancel(ompi_request_t *request, int flag)
{
    return MPI_ERR_REQUEST;
}

/* The program may free or change what it called with; a blocking call ends before it can. */
static int keep_arguments(ibshift_call_t *call)
{
    size_t size = ibshift_side_keep_bytes(&call->send) + ibshift_side_keep_bytes(&call->recv);
    char *memory = reserve(&call->kept, size);

    if (NULL == memory && size > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memory = ibshift_side_keep(&call->send, memory);
    (void)ibshift_side_keep(&call->recv, memory);
    if (NULL != call->mpi_op && !ompi_op_is_intrinsic(call->mpi_op)) {
        OBJ_RETAIN(call->mpi_op);
    }
    call->keeps = true;
    return OMPI_SUCCESS;
}

static void let_go(ibshift_call_t *call)
{
    ibshift_side_let_go(&call->send);
    ibshift_side_let_go(&call->recv);
    if (NULL != call->mpi_op && !ompi_op_is_intrinsic(call->mpi_op)) {
        OBJ_RELEASE(call->mpi_op);
    }
    call->keeps = false;
}

static void give_back(ibshift_call_t *call)
{
    if (call->keeps) {
        let_go(call);
    }
    if (call->scratch.size > SCRATCH_KEPT) {
        drop(&call->scratch);
    }
    pthread_mutex_lock(&lock);
    call->next = idle;
    idle = call;
    pthread_mutex_unlock(&lock);
}

static int request_free(ompi_request_t **request)
{
    ibshift_call_t *call = (ibshift_call_t *)*request;

    if (!REQUEST_COMPLETE(*request)) {
        return MPI_ERR_REQUEST;
    }
    unseen.code = (*request)->req_status.MPI_ERROR;
    unseen.peer = ibshift_op_peer(&call->op, call->op.failed_rank);
    unseen.status = call->op.status;
    OMPI_REQUEST_FINI(*request);
    OBJ_RELEASE(call->request.super.req_mpi_object.comm);
    give_back(call);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void call_construct(ibshift_call_t *call)
{
    call->request.super.req_type = OMPI_REQUEST_COLL;
    call->request.super.req_status._cancelled = 0;
    call->request.super.req_start = request_start;
    call->request.super.req_cancel = request_cancel;
    call->kept = call->offsets = call->tmp_offsets = call->scratch = (struct memory){NULL, 0};
    call->keeps = false;
    ibshift_op_init(&call->op);
    call->op.owner = call;
}

static void call_destruct(ibshift_call_t *call)
{
    drop(&call->kept);
    drop(&call->offsets);
    drop(&call->tmp_offsets);
    drop(&call->scratch);
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
    if (NULL != call && 0 != ibshift_engine_attach(ibshift_transport_engine(), &call->op)) {
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
        ibshift_engine_detach(ibshift_transport_engine(), &call->op);
        OBJ_RELEASE(call);
    }
}

static void reduce(void *context, const void *in, void *inout, size_t elements)
{
    ibshift_call_t *call = context;
    ptrdiff_t extent = (ptrdiff_t)call->op.params.element;
    char *source = (char *)(uintptr_t)in - call->lower_bound;
    char *target = (char *)inout - call->lower_bound;

    while (elements > 0) {
        size_t n = elements < INT_MAX ? elements : INT_MAX;

        ompi_op_reduce(call->mpi_op, source, target, n, call->operand);
        source += (ptrdiff_t)n * extent;
        target += (ptrdiff_t)n * extent;
        elements -= n;
    }
}

/* Whose blocks say how large a block of TMP is. */
static const struct ibshift_blocks *tmp_sizes(const struct ibshift_op_params *params)
{
    switch (params->alg->collective) {
    case IBSHIFT_BCAST:
    case IBSHIFT_SCATTER:
    case IBSHIFT_ALLGATHER:
        return &params->blocks[IBSHIFT_RECV];
    default:
        return &params->blocks[IBSHIFT_SEND];
    }
}

static size_t align(size_t size)
{
    return (size + 63) / 64 * 64;
}

static size_t scratch_bytes(const struct ibshift_side *side)
{
    return side->is_staged ? align(side->bytes) : 0;
}

/* Block i is that of the rank at place i. */
static void place_blocks(const struct ibshift_line *line, struct ibshift_blocks *blocks)
{
    blocks->layout = IBSHIFT_INT_COUNTS;
    blocks->counts = line->ones;
    blocks->displs = (const int *)line->rank_at;
}

static void set_blocks(ibshift_call_t *call)
{
    struct ibshift_op_params *params = &call->op.params;
    uint32_t pieces = ibshift_alg_pieces(params->alg, &params->plan);

    ibshift_side_blocks(&call->send, pieces, &params->blocks[IBSHIFT_SEND]);
    ibshift_side_blocks(&call->recv, pieces, &params->blocks[IBSHIFT_RECV]);
    if (NULL != call->line && IBSHIFT_ALLGATHER == params->alg->collective) {
        place_blocks(call->line, &params->blocks[IBSHIFT_RECV]);
    }
}

/* All memory that the runs need: offsets first, for the size of TMP depends on the blocks. */
static int prepare_memory(ibshift_call_t *call)
{
    struct ibshift_op_params *params = &call->op.params;
    size_t sends = ibshift_side_offsets(&call->send), recvs = ibshift_side_offsets(&call->recv);
    size_t *offsets = reserve(&call->offsets, (sends + recvs) * sizeof(size_t));
    size_t tmp_count, tmp_bytes, staged;
    char *scratch;

    if (NULL == offsets && sends + recvs > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    call->send.offsets = offsets;
    call->recv.offsets = sends + recvs > 0 ? offsets + sends : NULL;
    set_blocks(call);
    tmp_count = ibshift_tmp_offsets(params->alg, &params->plan, params->rank, tmp_sizes(params));
    if (NULL == reserve(&call->tmp_offsets, tmp_count * sizeof(size_t)) && tmp_count > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    tmp_bytes = ibshift_tmp_layout(params->alg, &params->plan, params->rank, tmp_sizes(params),
                                   call->tmp_offsets.at, &params->blocks[IBSHIFT_TMP]);
    staged = scratch_bytes(&call->send) + scratch_bytes(&call->recv);
    scratch = reserve(&call->scratch, staged + tmp_bytes);
    if (NULL == scratch && staged + tmp_bytes > 0) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    call->send.scratch = scratch;
    call->recv.scratch = NULL == scratch ? NULL : scratch + scratch_bytes(&call->send);
    params->blocks[IBSHIFT_TMP].base = NULL == scratch ? NULL : scratch + staged;
    set_blocks(call);
    return OMPI_SUCCESS;
}

static void fill_params(ibshift_call_t *call, mca_coll_ibshift_module_t *module,
                        const struct ibshift_job *job)
{
    struct ibshift_op_params *params = &call->op.params;

    params->rank = module->rank;
    params->peers = module->peers;
    params->comm = module->wire_id;
    params->plan.ranks = module->size;
    params->plan.root = job->root;
    if (IBSHIFT_ALLTOALL == job->collective) {
        params->plan.order = module->order.order;
        params->plan.stages = module->order.stages;
    }
    call->mpi_op = job->op;
    if (NULL != job->op) {
        call->operand = job->send.type;
        call->lower_bound = ibshift_type_lower_bound(job->send.type);
        params->plan.commutative = ompi_op_is_commute(job->op);
        params->element = (size_t)ibshift_type_extent(job->send.type);
        params->reduce = reduce;
        params->reduce_context = call;
    }
}

/* The program may free the communicator before the collective has ended. */
static void become_request(ibshift_call_t *call)
{
    OBJ_RETAIN(call->request.super.req_mpi_object.comm);
    call->op.ended = ended;
}

/* Ranks become places along the line. */
static void follow_line(ibshift_call_t *call, const struct ibshift_line *line)
{
    struct ibshift_op_params *params = &call->op.params;

    call->line = line;
    params->rank = line->place_of[params->rank];
    params->plan.root = line->place_of[params->plan.root];
    params->peers = line->peers;
    params->names = line->rank_at;
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

/*
 * No rank may leave out a collective that the others are in, and then come to the next one: after
 * an error there is no next one on the communicator. Returns the first error's code.
 */
static int give_up(mca_coll_ibshift_module_t *module, int code)
{
    int first = OMPI_SUCCESS;

    return atomic_compare_exchange_strong(&module->failed, &first, code) ? code : first;
}

void ibshift_calls_enter(mca_coll_ibshift_module_t *module)
{
    if (OMPI_SUCCESS != unseen.code) {
        ibshift_engine_give_up(ibshift_transport_engine(), module->wire_id, unseen.peer,
                               unseen.status);
        (void)give_up(module, unseen.code);
        unseen.code = OMPI_SUCCESS;
    }
}

void ibshift_calls_look_away(void)
{
    unseen.code = OMPI_SUCCESS;
}

/* What has settled the order of all-to-alls has other plans to choose from. */
static int find_order(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                      const struct ibshift_job *job, enum form form)
{
    static const enum ibshift_patience patience[] = {[BLOCKING] = IBSHIFT_PATIENCE_ONCE,
                                                     [NONBLOCKING] = IBSHIFT_PATIENCE_NONE,
                                                     [PERSISTENT] = IBSHIFT_PATIENCE_LONG};
    enum ibshift_order_state before = module->order.state;
    int rc = ibshift_comm_order_find(module, comm, job, patience[form]);

    if (IBSHIFT_ORDER_SETTLED == module->order.state && IBSHIFT_ORDER_SETTLED != before) {
        ibshift_choices_forget(&module->choices, IBSHIFT_ALLTOALL);
    }
    return rc;
}

static int fill_call(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                     const struct ibshift_job *job, enum form form, ibshift_call_t **out)
{
    int rc = find_order(module, comm, job, form);
    ibshift_call_t *call = OMPI_SUCCESS == rc ? take_idle() : NULL;

    if (NULL == call) {
        return OMPI_SUCCESS == rc ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    }
    call->op.params = (struct ibshift_op_params){0};
    call->module = module;
    call->line = NULL;
    fill_params(call, module, job);
    rc = ibshift_choose(module, comm, job, &call->op.params);
    if (OMPI_SUCCESS == rc) {
        rc = ibshift_pace_find(module, comm, job, &call->op.params);
    }
    if (OMPI_SUCCESS == rc) {
        if (ibshift_comm_order_renames(module, job, call->op.params.alg)) {
            follow_line(call, &module->order.line);
        }
        call->name = job->name;
        call->send = job->send;
        call->recv = job->recv;
        rc = BLOCKING == form ? OMPI_SUCCESS : keep_arguments(call);
    }
    if (OMPI_SUCCESS == rc) {
        stage_what_must(call, job);
        ibshift_side_prepare(&call->send);
        ibshift_side_prepare(&call->recv);
        rc = prepare_memory(call);
    }
    if (OMPI_SUCCESS != rc) {
        give_back(call);
        return rc;
    }
    OMPI_REQUEST_INIT(&call->request.super, PERSISTENT == form);
    call->request.super.req_free = request_free; /* Open MPI hooks into it while it is in use */
    call->request.super.req_mpi_object.comm = comm;
    call->request.super.req_status.MPI_ERROR = MPI_SUCCESS;
    memset(&call->request.data, 0, sizeof(call->request.data)); /* hooks of the last use */
    *out = call;
    return OMPI_SUCCESS;
}

/* What fails here on one rank alone must end the collective on all. */
static int call_create(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const struct ibshift_job *job, enum form form, ibshift_call_t **out)
{
    int rc = atomic_load_explicit(&module->failed, memory_order_relaxed);

    unseen.code = OMPI_SUCCESS;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = fill_call(module, comm, job, form, out);
    if (OMPI_SUCCESS != rc && OMPI_ERR_NOT_SUPPORTED != rc) {
        ibshift_engine_give_up(ibshift_transport_engine(), module->wire_id,
                               module->peers[module->rank],
                               OMPI_ERR_OUT_OF_RESOURCE == rc ? -ENOMEM : -EIO);
        rc = give_up(module, rc);
    }
    return rc;
}

void ibshift_call_key(const struct ibshift_op *op, char *key, size_t size)
{
    uint32_t number = op->seq & ~PERSISTENT_SEQ;

    if (0 == (op->seq & PERSISTENT_SEQ)) {
        snprintf(key, size, "%u.%u", op->params.comm, number);
    } else {
        snprintf(key, size, "%u.p%u.%u", op->params.comm, number >> RUN_BITS,
                 number & ((1u << RUN_BITS) - 1));
    }
}

void ibshift_call_title(const struct ibshift_op *op, char *title, size_t size)
{
    const ibshift_call_t *call = op->owner;

    snprintf(title, size, "%s on %s", call->name, call->request.super.req_mpi_object.comm->c_name);
}

static void start(ibshift_call_t *call, uint32_t seq)
{
    ibshift_side_load(&call->send);
    ibshift_side_load(&call->recv);
    ibshift_engine_start(ibshift_transport_engine(), &call->op, seq);
}

/* After the end; the OMPI code of the collective. */
static int finish(ibshift_call_t *call)
{
    if (0 != call->op.status) {
        int code = ibshift_transport_report(call->request.super.req_mpi_object.comm, &call->op,
                                            call->name);

        (void)give_up(call->module, code);
        return code;
    }
    ibshift_side_store(&call->recv);
    ibshift_pace_look(call->request.super.req_mpi_object.comm, &call->op.params);
    return OMPI_SUCCESS;
}

static uint32_t next_seq(mca_coll_ibshift_module_t *module)
{
    return atomic_fetch_add_explicit(&module->seq, 1, memory_order_relaxed) & ~PERSISTENT_SEQ;
}

/*
 * Poll our engine many times per opal_progress(), which is expensive. It must still run: a peer may
 * be blocked on a point-to-point message that only we can progress. Where ranks outnumber
 * processors, yield after each idle poll, so that the rank we wait for can run.
 */
static void wait_for(ibshift_call_t *call)
{
    struct ibshift_engine *engine = ibshift_transport_engine();
    bool is_crowded = ibshift_transport_is_crowded();
    unsigned turns = 0;

    while (!ibshift_op_is_done(&call->op)) {
        if (0 != ibshift_engine_progress(engine)) {
            continue;
        }
        if (0 == ++turns % IDLE_TURNS) {
            opal_progress();
        } else if (is_crowded) {
            (void)sched_yield();
        }
    }
}

int ibshift_call_blocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                          const struct ibshift_job *job)
{
    ibshift_call_t *call;
    int rc = call_create(module, comm, job, BLOCKING, &call);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->op.ended = NULL;
    start(call, next_seq(module));
    wait_for(call);
    rc = finish(call);
    give_back(call);
    return rc;
}

static void ended(struct ibshift_op *op)
{
    ibshift_call_t *call = op->owner;

    call->request.super.req_status.MPI_ERROR = finish(call);
    ompi_request_complete(&call->request.super, true);
}

int ibshift_call_nonblocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                             const struct ibshift_job *job, ompi_request_t **request)
{
    ibshift_call_t *call;
    int rc = call_create(module, comm, job, NONBLOCKING, &call);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    become_request(call);
    call->request.super.req_state = OMPI_REQUEST_ACTIVE;
    *request = &call->request.super;
    start(call, next_seq(module));
    return OMPI_SUCCESS;
}

int ibshift_call_persistent(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                            const struct ibshift_job *job, ompi_request_t **request)
{
    ibshift_call_t *call;
    uint32_t id = atomic_load_explicit(&module->persistent, memory_order_relaxed);
    int rc;

    if (id >= MAX_PERSISTENT) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    rc = call_create(module, comm, job, PERSISTENT, &call);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    atomic_store_explicit(&module->persistent, id + 1, memory_order_relaxed);
    call->first_seq = PERSISTENT_SEQ | id << RUN_BITS;
    call->runs = 0;
    become_request(call);
    *request = &call->request.super;
    return OMPI_SUCCESS;
}

static int request_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        ibshift_call_t *call = (ibshift_call_t *)requests[i];
        uint32_t run = call->runs++ & ((1u << RUN_BITS) - 1);

        requests[i]->req_complete = REQUEST_PENDING;
        requests[i]->req_state = OMPI_REQUEST_ACTIVE;
        requests[i]->req_status.MPI_ERROR = MPI_SUCCESS;
        unseen.code = OMPI_SUCCESS;
        start(call, call->first_seq | run);
    }
    return OMPI_SUCCESS;
}

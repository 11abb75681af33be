/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_tapes.h"

#include "opal/runtime/opal_progress.h"

#include <errno.h>
#include <string.h>

enum {
    SPRINT_TURNS = 64,
    TURNS_AT_ONCE = 64, /* of the engine, in one of Open MPI's */
    IDLE_LOOKS = 2      /* where nothing has come: a net looks at some places every other time */
};

/* The failed request that this thread freed last, when nothing of ours has come after it. Open MPI
 * frees the requests that make a communicator, whatever their outcome, and goes on to enable its
 * modules in the same breath. */
static _Thread_local struct {
    int code;
    uint32_t peer;
    int status;
} unseen;
static atomic_bool any_unseen; /* ever, on any thread: until then nobody looks at the above */

/* Something of ours comes after it. */
static void see(void)
{
    if (atomic_load_explicit(&any_unseen, memory_order_relaxed)) {
        unseen.code = OMPI_SUCCESS;
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

void ibshift_requests_enter(mca_coll_ibshift_module_t *module)
{
    if (atomic_load_explicit(&any_unseen, memory_order_relaxed) && OMPI_SUCCESS != unseen.code) {
        ibshift_engine_give_up(ibshift_endpoint.engine, module->group.id, unseen.peer,
                               unseen.status);
        (void)give_up(module, unseen.code);
        see();
    }
}

static int request_start(size_t count, ompi_request_t **requests);

static int request_cancel(ompi_request_t *request, int flag)
{
    return MPI_ERR_REQUEST;
}

static int request_free(ompi_request_t **request)
{
    ibshift_call_t *call = (ibshift_call_t *)*request;
    struct ompi_communicator_t *comm;

    if (!REQUEST_COMPLETE(*request)) {
        return MPI_ERR_REQUEST;
    }
    if (OMPI_SUCCESS != (*request)->req_status.MPI_ERROR) {
        unseen.code = (*request)->req_status.MPI_ERROR;
        unseen.peer = call->op.failed_peer;
        unseen.status = call->op.status;
        atomic_store_explicit(&any_unseen, true, memory_order_relaxed);
    } else {
        see();
    }
    OMPI_REQUEST_FINI(*request);
    comm = call->request.super.req_mpi_object.comm;
    ibshift_call_give_back(call); /* first: where it waits may end with the communicator */
    OBJ_RELEASE(comm);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* After the end; the OMPI code of the collective. */
static int finish(ibshift_call_t *call)
{
    ibshift_repeat_end(&call->repeat, &call->op);
    if (0 != call->op.status) {
        int code = ibshift_call_report(call);

        (void)give_up(call->module, code);
        return code;
    }
    ibshift_side_move(&call->recv, false);
    return OMPI_SUCCESS;
}

static void ended(struct ibshift_op *op)
{
    ibshift_call_t *call = op->owner;

    call->request.super.req_status.MPI_ERROR = finish(call);
    ompi_request_complete(&call->request.super, true);
}

static void start(ibshift_call_t *call, uint32_t seq)
{
    ibshift_repeat_begin(call->repeat, &call->op);
    ibshift_side_move(&call->send, true);
    ibshift_side_move(&call->recv, true);
    if (call->tells_counts) {
        ibshift_mixed_start(call, seq, ended);
    } else {
        ibshift_engine_start(ibshift_endpoint.engine, &call->op, seq);
    }
}

/* The program may free the communicator before the collective has ended. */
static void become_request(ibshift_call_t *call)
{
    OBJ_RETAIN(call->request.super.req_mpi_object.comm);
    call->op.ended = ended;
}

static void init_request(ibshift_call_t *call, struct ompi_communicator_t *comm,
                         enum ibshift_form form)
{
    ompi_request_t *request = &call->request.super;

    OMPI_REQUEST_INIT(request, IBSHIFT_PERSISTENT == form);
    request->req_start = request_start;
    request->req_cancel = request_cancel;
    request->req_free = request_free; /* Open MPI hooks into it while it is in use */
    request->req_mpi_object.comm = comm;
    request->req_status.MPI_ERROR = MPI_SUCCESS;
    memset(&call->request.data, 0, sizeof(call->request.data)); /* hooks of the last use */
}

static inline uint64_t next_number(mca_coll_ibshift_module_t *module)
{
    const uint64_t one = ibshift_net_comm_seq(0, 2); /* wraps as the number's 31 bits do */

    return atomic_fetch_add_explicit(&module->seq, one, memory_order_relaxed) / 2;
}

/* The next call's first two words of keys; word: the first. */
static inline uint64_t next_comm_seq(mca_coll_ibshift_module_t *module, uint32_t word)
{
    uint64_t number = next_number(module);

    ibshift_ledger_write(&module->group.ledger, number | word);
    return number | word;
}

/* Of a call that has an op, or one for each stage: of those only the first is written, for between two no op runs. */
static uint32_t next_seq(ibshift_call_t *call)
{
    uint32_t word = ibshift_op_word(&call->op);
    uint32_t seq = (uint32_t)(next_comm_seq(call->module, word) >> 32);

    for (int i = 1; call->tells_counts && i < IBSHIFT_MIXED_STAGES; i++) {
        (void)next_number(call->module);
    }
    return seq;
}

static bool has_ended(ibshift_call_t *call)
{
    return call->tells_counts ? atomic_load_explicit(&call->mixed->has_ended, memory_order_acquire)
                              : ibshift_op_is_done(&call->op);
}

static void wait_for(ibshift_call_t *call)
{
    unsigned turns = 0;

    while (!has_ended(call)) {
        if (0 == ibshift_engine_progress(ibshift_endpoint.engine)) {
            ibshift_idle(++turns);
        }
    }
}

void ibshift_call_skip(mca_coll_ibshift_module_t *module)
{
    (void)next_number(module);
}

int ibshift_call_fail(mca_coll_ibshift_module_t *module, int rc)
{
    if (OMPI_SUCCESS == rc || OMPI_ERR_NOT_SUPPORTED == rc) {
        return rc;
    }
    see();
    ibshift_engine_give_up(ibshift_endpoint.engine, module->group.id,
                           module->group.peers[module->group.rank], ibshift_errno(rc));
    return give_up(module, rc);
}

static int create(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                  const struct ibshift_job *job, enum ibshift_form form, ibshift_call_t **out)
{
    int rc = atomic_load_explicit(&module->failed, memory_order_relaxed);
    ibshift_call_t *call;

    see();
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = ibshift_call_make(module, comm, job, form, &call);
    if (OMPI_SUCCESS == rc) {
        init_request(call, comm, form);
        rc = ibshift_call_lay_out(call);
        rc = OMPI_SUCCESS == rc ? ibshift_repeat_of_call(call, job, form) : rc;
        if (OMPI_SUCCESS != rc) {
            ibshift_call_give_back(call);
        }
    }
    rc = ibshift_call_fail(module, rc);
    *out = OMPI_SUCCESS == rc ? call : NULL;
    return rc;
}

/* As wait_for(), but not for long: then an op waits, which also sees what went wrong. A receive
 * looks for itself; that there is room for a send again is news that only polls bring. */
__attribute__((noinline)) static bool go_on(struct ibshift_tape_run *run)
{
    uint32_t before = 0;
    unsigned turns = 0;

    do {
        turns = run->next == before ? turns + 1 : 1;
        before = run->next;
        if (turns == SPRINT_TURNS) {
            return false;
        }
        if (IBSHIFT_TAPE_SEND == run->tape->steps[run->next].action) {
            (void)ibshift_engine_progress(ibshift_endpoint.engine);
        }
        ibshift_idle(turns);
    } while (!ibshift_engine_sprint(ibshift_endpoint.engine, run));
    return true;
}

/* An op goes on where the run has stopped. */
static void hand_over(ibshift_call_t *call, const struct ibshift_tape_run *run)
{
    if (run->next > 0 && run->tape->tmp > 0) {
        memcpy(call->op.params.blocks[IBSHIFT_TMP].base, run->base[IBSHIFT_TMP], run->tape->tmp);
    }
    ibshift_engine_take_over(ibshift_endpoint.engine, &call->op, run);
}

bool ibshift_call_run(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run)
{
    see();
    run->comm_seq = next_comm_seq(module, run->comm);
    return ibshift_engine_sprint(ibshift_endpoint.engine, run) || go_on(run);
}

/* Begins a call as an op: where its tape has been left, or, without a run, anew. */
static int begin(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                 const struct ibshift_job *job, enum ibshift_form form,
                 const struct ibshift_tape_run *run, ibshift_call_t **out)
{
    ibshift_call_t *call =
        NULL == run ? NULL : ibshift_tape_leave(module, form, job->collective, run);
    int rc = OMPI_SUCCESS;

    if (NULL != call) {
        init_request(call, comm, form);
    } else if (OMPI_SUCCESS != (rc = create(module, comm, job, form, &call))) {
        return rc;
    }
    *out = call;
    call->op.ended = NULL;
    if (IBSHIFT_BLOCKING != form) {
        become_request(call);
        call->request.super.req_state = OMPI_REQUEST_ACTIVE;
    }
    if (NULL != run) {
        ibshift_tape_adopt(run, call);
        hand_over(call, run);
    } else {
        start(call, next_seq(call));
    }
    return OMPI_SUCCESS;
}

/* Then it needs no request of its own. */
bool ibshift_call_at_once(mca_coll_ibshift_module_t *module, struct ibshift_tape_run *run,
                          ompi_request_t **request)
{
    see();
    run->comm_seq = next_comm_seq(module, run->comm);
    if (!ibshift_engine_sprint(ibshift_endpoint.engine, run)) {
        return false;
    }
    *request = &ompi_request_empty;
    return true;
}

static int run_once(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    enum ibshift_form form, const struct ibshift_job *job,
                    const struct ibshift_raw *raw, struct ibshift_tape_run *run,
                    ompi_request_t **request)
{
    struct ibshift_kept_tape *kept = NULL;
    ibshift_call_t *call;
    int rc;

    if (NULL == run) {
        rc = ibshift_tape_find(module, form, job, raw, &kept);
        if (OMPI_SUCCESS != rc) {
            return ibshift_call_fail(module, rc);
        }
    }
    rc = begin(module, comm, job, form, run, &call);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (IBSHIFT_BLOCKING != form) {
        *request = &call->request.super;
        ibshift_tape_keep(module, form, kept, job, call);
        ibshift_call_linger(call);
        return OMPI_SUCCESS;
    }
    wait_for(call);
    rc = finish(call);
    ibshift_tape_keep(module, form, kept, job, call);
    ibshift_call_give_back(call);
    return rc;
}

/* The last run that has begun (with stages, that is over: between two no op runs), or, before the first, the one before that. */
static void write_run(ibshift_call_t *call)
{
    uint32_t last = call->tells_counts ? (call->runs - 1) * IBSHIFT_MIXED_STAGES : call->runs;
    uint32_t run = (last - 1) & IBSHIFT_RUN_MASK;
    uint64_t number = ibshift_net_comm_seq(ibshift_op_word(&call->op), call->first_seq | run);

    ibshift_ledger_write_persistent(&call->module->group.ledger, number);
}

static int make_persistent(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                           const struct ibshift_job *job, ompi_request_t **request)
{
    uint32_t id = atomic_load_explicit(&module->persistent, memory_order_relaxed);
    ibshift_call_t *call;
    int rc = id >= IBSHIFT_PERSISTENT_MAX ? OMPI_ERR_NOT_SUPPORTED
                                          : create(module, comm, job, IBSHIFT_PERSISTENT, &call);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    atomic_store_explicit(&module->persistent, id + 1, memory_order_relaxed);
    call->first_seq = IBSHIFT_PERSISTENT_SEQ | id << IBSHIFT_RUN_BITS;
    call->runs = 0;
    write_run(call);
    call->has_tried_tape = false;
    become_request(call);
    *request = &call->request.super;
    return OMPI_SUCCESS;
}

int ibshift_call(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                 const struct ibshift_called *called, struct ibshift_tape_run *run,
                 ompi_request_t **request)
{
    const struct ibshift_raw *raw = &called->raw;
    enum ibshift_form form = called->form;
    struct ibshift_job job;
    int rc;

    if (NULL == run && IBSHIFT_PERSISTENT != form) {
        run = ibshift_tape_again(module, form, called->collective, raw);
        if (NULL != run &&
            (IBSHIFT_BLOCKING == form ? ibshift_call_run(module, run)
                                      : ibshift_call_at_once(module, run, request))) {
            return OMPI_SUCCESS;
        }
    }
    if (module->group.id >= IBSHIFT_AGREEING) {
        rc = IBSHIFT_BLOCKING == form && IBSHIFT_NO_NUMBER == module->group.id
                 ? ibshift_number_agree(module, comm)
                 : OMPI_ERR_NOT_SUPPORTED;
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    rc = ibshift_neighbors_find(module, comm, called);
    rc = OMPI_SUCCESS == rc ? ibshift_job_describe(module, called, &job) : rc;
    if (OMPI_SUCCESS != rc) {
        return ibshift_call_fail(module, rc);
    }
    return IBSHIFT_PERSISTENT == form ? make_persistent(module, comm, &job, request)
                                      : run_once(module, comm, form, &job, raw, run, request);
}

/* On the op's own memory, whoever staged it. True: it has ended. */
static bool sprint(ibshift_call_t *call, struct ibshift_tape_run *run)
{
    const struct ibshift_op_params *params = &call->op.params;

    for (int i = 0; i < IBSHIFT_BUFFERS; i++) {
        run->base[i] = params->blocks[i].base;
    }
    if (NULL != call->reducer.op) {
        run->element = params->element;
        run->reduce = ibshift_operator_short(&call->reducer);
        run->reduce_context = &call->reducer;
    }
    call->op.seq = run->seq;
    return ibshift_engine_sprint(ibshift_endpoint.engine, run);
}

static void start_again(ibshift_call_t *call, uint32_t seq)
{
    struct ibshift_tape_run run = {
        .tape = ibshift_tape_of_call(call), .comm = ibshift_op_word(&call->op), .seq = seq};

    if (NULL == run.tape) {
        start(call, seq);
        return;
    }
    ibshift_side_move(&call->send, true);
    ibshift_side_move(&call->recv, true);
    if (sprint(call, &run)) {
        call->op.status = 0;
        ended(&call->op);
    } else {
        ibshift_engine_take_over(ibshift_endpoint.engine, &call->op, &run);
    }
}

static int request_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        ibshift_call_t *call = (ibshift_call_t *)requests[i];

        if (OMPI_REQUEST_ACTIVE == requests[i]->req_state) {
            if (!atomic_exchange(&call->module->is_twice_told, true)) {
                ibshift_help("started-twice", call->name, call->module->group.name,
                             call->module->group.rank, ompi_process_info.nodename);
            }
            return MPI_ERR_REQUEST;
        }
        requests[i]->req_complete = REQUEST_PENDING;
        requests[i]->req_state = OMPI_REQUEST_ACTIVE;
        requests[i]->req_status.MPI_ERROR = MPI_SUCCESS;
        see();
        start_again(call, call->first_seq | (call->runs++ & IBSHIFT_RUN_MASK));
        write_run(call); /* from here on an answer that it has ended is true */
    }
    for (size_t i = 0; i < count; i++) {
        ibshift_call_linger((ibshift_call_t *)requests[i]);
    }
    return OMPI_SUCCESS;
}

/* A program that calls MPI now and then has done by then what can be: one look brings some events, whose steps bring more. */
static int progress(void)
{
    int turns = 0, idle = 0, count = 0;

    see();
    if (IBSHIFT_LOOKS_FOR_LOST && ibshift_compat_is_tolerant()) {
        ibshift_revoke_lost();
    }
    do {
        int happened = ibshift_engine_progress(ibshift_endpoint.engine);

        count += happened;
        idle = happened > 0 ? 0 : idle + 1;
    } while (count > 0 && idle < IDLE_LOOKS && ++turns < TURNS_AT_ONCE);
    return count;
}

void ibshift_requests_open(void)
{
    if (NULL != ibshift_endpoint.engine) {
        opal_progress_register(progress);
    }
}

void ibshift_requests_close(void)
{
    if (NULL != ibshift_endpoint.engine) {
        opal_progress_unregister(progress);
        ibshift_calls_free();
    }
}

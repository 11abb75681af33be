/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/* A call of several ops, one after the other (exec/mixed.h). */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include <errno.h>

/* What people are told of it names the call, not its last stage. */
static void end(ibshift_call_t *call)
{
    call->op.seq = call->mixed->seq;
    ibshift_engine_count(ibshift_endpoint.engine, call->op.status);
    if (call->mixed->is_waited) {
        atomic_store_explicit(&call->mixed->has_ended, true, memory_order_release);
    } else {
        call->mixed->ended(&call->op);
    }
}

/* The number of a stage: a run has one for each. */
static uint32_t number_of_stage(const struct ibshift_call_mixed *own)
{
    uint32_t stage = (uint32_t)own->mixed.stage, runs = IBSHIFT_RUN_MASK;

    return 0 == (own->seq & IBSHIFT_PERSISTENT_SEQ)
               ? (own->seq + stage) & ~IBSHIFT_PERSISTENT_SEQ
               : (own->seq & ~runs) | ((own->seq * IBSHIFT_MIXED_STAGES + stage) & runs);
}

/* What fails between ops on one rank must end the collective on all. */
static void fail(ibshift_call_t *call, int status)
{
    uint32_t self = call->module->group.peers[call->module->group.rank];

    call->op.status = status;
    call->op.failed_peer = self;
    ibshift_engine_give_up(ibshift_endpoint.engine, call->module->group.id, self, status);
}

static void go_on(ibshift_call_t *call)
{
    int rc = ibshift_mixed_next(&call->mixed->mixed, &call->op.params);

    if (1 == rc) {
        ibshift_engine_start(ibshift_endpoint.engine, &call->op, number_of_stage(call->mixed));
        return;
    }
    if (0 != rc) {
        fail(call, rc);
    }
    end(call);
}

static void stage_ended(struct ibshift_op *op)
{
    ibshift_call_t *call = op->owner;

    if (0 == op->status) {
        go_on(call);
    } else {
        end(call);
    }
}

void ibshift_mixed_start(ibshift_call_t *call, uint32_t seq, void (*ended)(struct ibshift_op *op))
{
    call->mixed->seq = seq;
    call->mixed->ended = ended;
    atomic_store_explicit(&call->mixed->has_ended, false, memory_order_relaxed);
    call->op.status = 0;
    call->op.ended = stage_ended;
    if (ibshift_mixed_begin(&call->mixed->mixed)) {
        go_on(call);
    } else {
        fail(call, -ENOMEM);
        end(call);
    }
}

/* Of what began without a death nobody has died, whoever noticed it. */
static int code_of(const struct ibshift_op *op)
{
    int code = ibshift_code(op->status);
    bool is_told = -ECONNABORTED == op->status || -ECONNRESET == op->status;

    return is_told && code != ibshift_code(op->root) ? MPI_ERR_OTHER : code;
}

int ibshift_call_report(const ibshift_call_t *call)
{
    int lost = ibshift_comm_lost(call->request.super.req_mpi_object.comm);
    const struct ibshift_mixed_unlike *unlike =
        call->tells_counts ? &call->mixed->mixed.unlike : NULL;

    if (NULL != unlike && unlike->sent != unlike->awaited) {
        ibshift_report_counts(&call->module->group, call->op.seq, unlike, call->name);
        return ibshift_code(-EMSGSIZE);
    }
    if (OMPI_SUCCESS != lost) {
        return lost; /* the program hears of it */
    }
    /* A program that tolerates deaths deals with what others tell; who noticed has said so. */
    if (-ECONNABORTED != call->op.status || !ibshift_compat_is_tolerant()) {
        ibshift_report(&call->module->group, ibshift_endpoint.net, &call->op, call->name);
    }
    return code_of(&call->op);
}

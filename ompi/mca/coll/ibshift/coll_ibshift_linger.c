/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/*
 * Overlap of long calls whose program never looks at them between start and wait. An adapter writes by itself what has been posted,
 * but a long message is posted when its receiver has granted it, and that grant takes a moment to come. So a start waits for that
 * moment: not longer than a small part of the time that the call's bytes take, and not each time where that was in vain.
 */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include "opal/runtime/opal_progress.h"

#include <sched.h>

enum {
    IDLE_TURNS = 4, /* of our own, for one of Open MPI's */
    PART = 20,      /* a moment, of the time that the call's bytes take on the wire, */
    PART_MOST = 8,  /* and of all moments */
    WAYS = 2, /* of a short message: a moment is no shorter, where all moments may take that */
    SKIPPED_MOST = 6 /* starts, as a power of two */
};

/*
 * Our engine is polled many times per opal_progress(), which is expensive. It must still run: a
 * peer may be blocked on a point-to-point message that only we can progress. Where ranks outnumber
 * processors, yield after each idle poll, so that the rank we wait for can run.
 */
void ibshift_idle(unsigned turn)
{
    if (0 == turn % IDLE_TURNS) {
        opal_progress();
    } else if (ibshift_endpoint.is_crowded) {
        (void)sched_yield();
    }
}

/* ns that what this rank sends takes on the wire; 0: it has no long message, and what waits for grants is another call's. So a
 * short call that Open MPI starts from its progress, to make a communicator, does not come back there. Who has the data of all at
 * the end sends about as much, whatever it brings. */
static uint64_t wire_time(const ibshift_call_t *call)
{
    bool has_all = IBSHIFT_BCAST == call->collective || IBSHIFT_ALLGATHER == call->collective;
    size_t bytes = has_all ? call->recv.bytes : call->send.bytes;

    if (bytes <= ibshift_params.eager_limit || !ibshift_params.linger) {
        return 0;
    }
    return (uint64_t)((double)bytes * call->module->group.choices.model->gap_byte * 1000);
}

/* A start that has waited so costs little, for nothing: each time in a row twice as many of the next ones do not. */
static void be_in_vain(struct ibshift_patience *patience)
{
    uint32_t in_vain = atomic_load_explicit(&patience->in_vain, memory_order_relaxed);

    atomic_store_explicit(&patience->left, (1u << in_vain) - 1, memory_order_relaxed);
    atomic_store_explicit(&patience->in_vain, in_vain < SKIPPED_MOST ? in_vain + 1 : in_vain,
                          memory_order_relaxed);
}

/* Whether more has come before the moment was over. */
static bool look_on(uint64_t moment, uint64_t *held_up, const ibshift_call_t *call)
{
    uint64_t end = ibshift_net_now(ibshift_endpoint.net) + moment, before = *held_up;
    unsigned turns = 0;

    do {
        if (0 == ibshift_engine_progress(ibshift_endpoint.engine)) {
            ibshift_idle(++turns);
        }
        *held_up = ibshift_engine_held_up(ibshift_endpoint.engine, &call->op);
    } while (*held_up >= before && ibshift_net_now(ibshift_endpoint.net) < end);
    return *held_up < before;
}

/* A moment, and another one after each that has brought something. */
void ibshift_call_linger(ibshift_call_t *call)
{
    struct ibshift_patience *patience = &call->module->patience;
    uint32_t left = atomic_load_explicit(&patience->left, memory_order_relaxed);
    uint64_t held_up =
        call->tells_counts ? 0 : ibshift_engine_held_up(ibshift_endpoint.engine, &call->op);
    uint64_t time, moment, begun;

    time = 0 == held_up ? 0 : wire_time(call);
    if (0 == time) {
        return;
    }
    if (left > 0) {
        atomic_store_explicit(&patience->left, left - 1, memory_order_relaxed);
        return;
    }
    moment = (uint64_t)(call->module->group.choices.model->latency * WAYS * 1000);
    moment = moment < time / PART_MOST ? moment : time / PART_MOST;
    moment = moment > time / PART ? moment : time / PART;
    begun = ibshift_net_now(ibshift_endpoint.net);
    if (!look_on(moment, &held_up, call)) {
        be_in_vain(patience);
        return;
    }
    atomic_store_explicit(&patience->in_vain, 0, memory_order_relaxed);
    while (0 != held_up && ibshift_net_now(ibshift_endpoint.net) - begun < time / PART_MOST &&
           look_on(moment, &held_up, call)) {
    }
}

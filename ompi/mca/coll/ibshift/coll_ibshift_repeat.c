/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/*
 * Persistent all-to-alls and allgathers of long blocks: grants for what is got stand from the first start
 * on, so that the others need none, only to know who has begun (exec/opening.h). The first start tells
 * whether that pays on all ranks.
 *
 * Between two starts the memory is the program's, which may unmap it and map other at the same address: so
 * nothing is held then, and what a start gets from the registration cache tells whether it is what was
 * granted. If not, the rank's byte says that it grants anew.
 */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include <stdlib.h>

enum { GAPS = 2 /* so many times the data is registered, at most */ };

/* Memory that is registered during each run. */
struct held {
    char *base;
    size_t bytes; /* 0: for each message */
};

struct ibshift_repeat {
    struct ibshift_opening *opening;
    struct held held[IBSHIFT_BUFFERS]; /* of TMP none */
    uint64_t granted;                  /* the registration that grants stand for; 0: none do */
};

/* From the first byte of its blocks to behind the last one; 0: there is none. */
static size_t span(const struct ibshift_blocks *blocks, uint32_t count, char **base)
{
    char *first = NULL, *end = NULL, *at;
    size_t length;

    for (uint32_t i = 0; i < count; i++) {
        if (0 != ibshift_blocks_range(blocks, i, 1, &at, &length) || 0 == length) {
            continue;
        }
        first = NULL == first || at < first ? at : first;
        end = NULL == end || at + length > end ? at + length : end;
    }
    *base = first;
    return (size_t)(end - first);
}

static void find_memory(const ibshift_call_t *call, enum ibshift_buffer buffer, struct held *held)
{
    const struct ibshift_side *side = IBSHIFT_SEND == buffer ? &call->send : &call->recv;

    held->bytes = span(&call->op.params.blocks[buffer], side->blocks, &held->base);
    if (held->bytes / GAPS > side->bytes) {
        held->bytes = 0;
    }
}

/* The registration of what is got, or 0. */
static uint64_t hold(ibshift_call_t *call)
{
    uint64_t number = 0;

    for (int buffer = IBSHIFT_SEND; buffer <= IBSHIFT_RECV; buffer++) {
        const struct held *held = &call->repeat->held[buffer];

        number = 0;
        call->op.params.mem[buffer] =
            0 == held->bytes ? NULL : ibshift_transport_hold(held->base, held->bytes, &number);
    }
    return number;
}

/* The same on all ranks. */
static bool is_wanted(const ibshift_call_t *call, const struct ibshift_job *job)
{
    const struct ibshift_choices *choices = &call->module->group.choices;
    bool are_all_near = NULL != choices->near && 1 == choices->nodes.nodes;

    return (IBSHIFT_ALLTOALL == job->collective || IBSHIFT_ALLGATHER == job->collective) &&
           !call->tells_counts && NULL == call->op.params.pace && !are_all_near &&
           (ibshift_needs_any_size(job->needs) || job->bytes > ibshift_params.eager_limit);
}

int ibshift_repeat_make(ibshift_call_t *call, const struct ibshift_job *job, uint32_t number)
{
    struct ibshift_op_params *params = &call->op.params;
    struct ibshift_repeat *repeat;

    if (!is_wanted(call, job)) {
        return OMPI_SUCCESS;
    }
    repeat = calloc(1, sizeof(*repeat));
    call->repeat = repeat;
    if (NULL == repeat || NULL == (repeat->opening = ibshift_opening_make(&call->op))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    params->opening = repeat->opening;
    params->standing = IBSHIFT_NET_OPENED | number;
    find_memory(call, IBSHIFT_SEND, &repeat->held[IBSHIFT_SEND]);
    find_memory(call, IBSHIFT_RECV, &repeat->held[IBSHIFT_RECV]);
    return OMPI_SUCCESS;
}

/* Whether this rank has few grants to save. */
static bool refuses(const ibshift_call_t *call)
{
    const struct ibshift_op_params *params = &call->op.params;
    const struct ibshift_channels over = {.max_eager = ibshift_endpoint.net->max_eager,
                                          .is_near = ibshift_card_is_near};

    return 0 == call->repeat->granted ||
           ibshift_opening_refuses(params->plan.ranks,
                                   ibshift_standing_count(params, IBSHIFT_RECV, &over));
}

void ibshift_repeat_begin(ibshift_call_t *call)
{
    struct ibshift_repeat *repeat = call->repeat;
    struct ibshift_opening *opening;
    bool is_first = 1 == call->runs;
    uint64_t number;

    if (NULL == repeat) {
        return;
    }
    opening = repeat->opening;
    if (!is_first && ibshift_opening_is_refused(opening, call->op.params.plan.ranks)) {
        ibshift_repeat_free(call);
        return;
    }
    number = hold(call);
    opening->told = 0 != number && number == repeat->granted ? 0 : IBSHIFT_OPENING_ANEW;
    repeat->granted = number;
    if (is_first && refuses(call)) {
        opening->told |= IBSHIFT_OPENING_REFUSED;
    }
}

void ibshift_repeat_end(ibshift_call_t *call)
{
    for (int buffer = IBSHIFT_SEND; NULL != call->repeat && buffer <= IBSHIFT_RECV; buffer++) {
        if (NULL != call->op.params.mem[buffer]) {
            ibshift_transport_let_go(call->op.params.mem[buffer]);
            call->op.params.mem[buffer] = NULL;
        }
    }
}

void ibshift_repeat_free(ibshift_call_t *call)
{
    struct ibshift_op_params *params = &call->op.params;

    if (0 != params->standing) {
        ibshift_transport_revoke(params->comm, params->standing, call->op.seq);
        params->standing = 0;
    }
    params->opening = NULL;
    free(call->repeat->opening);
    free(call->repeat);
    call->repeat = NULL;
}

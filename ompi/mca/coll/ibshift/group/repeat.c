/*
 * Persistent all-to-alls and allgathers of long blocks. Grants for what is got stand, so that later starts need none, only to know
 * who has begun (exec/opening.h). What all ranks have told in a start decides, alike on all of them, whether the next one is opened.
 *
 * Between two starts the memory is the program's, which may unmap it and map other at the same address: so
 * nothing is held then, and what a start gets from the registration cache tells whether it is what was
 * granted. If not, the rank's byte says that it grants anew.
 */
#include "group/repeat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exec/opening.h"
#include "exec/standing.h"
#include "group/endpoint.h"
#include "group/order.h"
#include "job/cards.h"
#include "job/params.h"
#include "job/say.h"

enum {
    GAPS = 2,     /* so many times the data is registered, at most */
    ANEW_MOST = 4 /* starts in a row in which any rank grants anew: it will go on so */
};

/* Memory that is registered during each run. */
struct held {
    char *base;
    size_t bytes; /* 0: for each message */
};

struct ibshift_repeat {
    const struct ibshift_group *group;
    const char *name; /* of the collective */
    struct ibshift_opening *opening;
    struct held held[IBSHIFT_BUFFERS]; /* of TMP none */
    uint64_t granted;                  /* the registration that grants stand for; 0: none do */
    uint32_t runs;                     /* that were opened */
    uint32_t anew; /* of these the last ones, in which any rank has granted anew */
};

/* From the first byte of its blocks to behind the last one, if there is one. */
static void find_memory(const struct ibshift_repeated *call, struct ibshift_repeat *repeat,
                        enum ibshift_buffer buffer)
{
    char *first = NULL, *end = NULL, *at;
    size_t length, data = 0;

    for (uint32_t i = 0; i < call->blocks[buffer]; i++) {
        if (ibshift_blocks_range(&call->op->params.blocks[buffer], i, 1, &at, &length) != 0 ||
            length == 0) {
            continue;
        }
        first = first == NULL || at < first ? at : first;
        end = end == NULL || at + length > end ? at + length : end;
        data += length;
    }
    repeat->held[buffer] = (struct held){first, (size_t)(end - first)};
    if ((size_t)(end - first) / GAPS > data) {
        repeat->held[buffer].bytes = 0;
    }
}

/* What cannot be registered as one, as with pages missing in a gap, is not tried again: the cache lets go of all else before it
 * gives that up. */
static struct ibshift_net_mem *hold_one(struct held *held, uint64_t *number)
{
    struct ibshift_net_mem *mem = NULL;

    if (held->bytes > 0 && ibshift_endpoint.finds_again != NULL && ibshift_endpoint.finds_again()) {
        mem = ibshift_net_mem_register(ibshift_endpoint.net, held->base, held->bytes);
        held->bytes = mem != NULL ? held->bytes : 0;
    }
    *number = mem == NULL ? 0 : ((struct ibshift_region *)mem)->number;
    return mem;
}

/* The registration of what is got, or 0. */
static uint64_t hold(struct ibshift_repeat *repeat, struct ibshift_op *op)
{
    uint64_t number = 0;

    ibshift_engine_lock(ibshift_endpoint.engine);
    for (int buffer = IBSHIFT_SEND; buffer <= IBSHIFT_RECV; buffer++) {
        op->params.mem[buffer] = hold_one(&repeat->held[buffer], &number);
    }
    ibshift_engine_unlock(ibshift_endpoint.engine);
    return number;
}

static void let_go(struct ibshift_op *op)
{
    ibshift_engine_lock(ibshift_endpoint.engine);
    for (int buffer = IBSHIFT_SEND; buffer <= IBSHIFT_RECV; buffer++) {
        ibshift_net_mem_release(ibshift_endpoint.net, op->params.mem[buffer]);
        op->params.mem[buffer] = NULL;
    }
    ibshift_engine_unlock(ibshift_endpoint.engine);
}

/* No run is under way. */
static void revoke(uint32_t comm, uint32_t standing)
{
    ibshift_engine_lock(ibshift_endpoint.engine);
    ibshift_net_revoke(ibshift_endpoint.net, comm, standing, NULL);
    ibshift_engine_unlock(ibshift_endpoint.engine);
}

bool ibshift_repeat_is_wanted(const struct ibshift_group *group,
                              const struct ibshift_wanted *wanted,
                              const struct ibshift_op_params *params)
{
    bool are_all_near = group->choices.near != NULL && group->choices.nodes.nodes == 1;

    return wanted->is_again && !are_all_near &&
           (wanted->collective == IBSHIFT_ALLTOALL || wanted->collective == IBSHIFT_ALLGATHER) &&
           !ibshift_opening_refuses(params->plan.ranks, (params->plan.ranks - 1) / 2) &&
           !ibshift_needs_long_part(wanted->needs) &&
           (ibshift_needs_any_size(wanted->needs) || wanted->bytes > ibshift_params.eager_limit);
}

int ibshift_repeat_make(struct ibshift_group *group, const struct ibshift_repeated *call,
                        struct ibshift_repeat **out)
{
    struct ibshift_op_params *params = &call->op->params;
    struct ibshift_repeat *repeat;

    *out = NULL;
    if (!ibshift_repeat_is_wanted(group, call->wanted, params)) {
        return 0;
    }
    repeat = calloc(1, sizeof(*repeat));
    if (repeat == NULL) {
        return -ENOMEM;
    }
    repeat->opening = ibshift_opening_make(params->plan.ranks);
    if (repeat->opening == NULL) {
        free(repeat);
        return -ENOMEM;
    }
    *out = repeat;
    repeat->group = group;
    repeat->name = call->wanted->name;
    params->standing = IBSHIFT_NET_OPENED | call->number;
    ibshift_opening_take(repeat->opening, call->op);
    params->opening = repeat->opening;
    find_memory(call, repeat, IBSHIFT_SEND);
    find_memory(call, repeat, IBSHIFT_RECV);
    return 0;
}

/* Whether this rank has few grants to save. A message of the opening takes about as many instructions as two grants (counted, 4
 * ranks), and what is opened shall not be slower. */
static bool refuses(const struct ibshift_repeat *repeat, const struct ibshift_op *op)
{
    const struct ibshift_op_params *params = &op->params;
    const struct ibshift_channels over = {.max_eager = ibshift_endpoint.net->max_eager,
                                          .is_near = ibshift_card_is_near};
    uint32_t grants = ibshift_standing_count(params, IBSHIFT_RECV, &over);

    return repeat->granted == 0 || ibshift_opening_refuses(params->plan.ranks, grants / 2);
}

void ibshift_repeat_begin(struct ibshift_repeat *repeat, struct ibshift_op *op)
{
    bool is_granted;
    uint64_t number;

    if (repeat == NULL) {
        return;
    }
    number = hold(repeat, op);
    is_granted = number != 0 && number == repeat->granted;
    repeat->opening->told = is_granted ? 0 : IBSHIFT_OPENING_ANEW;
    repeat->granted = number;
    if (repeat->runs++ == 0 && refuses(repeat, op)) {
        repeat->opening->told |= IBSHIFT_OPENING_REFUSED;
    }
}

/* After a start without error: whether all ranks know that another one had better not be opened. */
static bool is_over(struct ibshift_repeat *repeat, const struct ibshift_op *op)
{
    uint32_t ranks = op->params.plan.ranks;
    bool is_anew = ibshift_opening_has_told(repeat->opening, ranks, IBSHIFT_OPENING_ANEW);

    repeat->anew = is_anew ? repeat->anew + 1 : 0;
    return repeat->anew >= ANEW_MOST ||
           ibshift_opening_has_told(repeat->opening, ranks, IBSHIFT_OPENING_REFUSED);
}

static void explain(const struct ibshift_repeat *repeat)
{
    if (ibshift_params.explain && repeat->group->rank == 0) {
        ibshift_say("ibshift: %s: %s: each start sends grants again, for %s\n", repeat->group->name,
                    repeat->name,
                    repeat->anew >= ANEW_MOST
                        ? "some rank's memory was another one four times in a row"
                        : "some rank has fewer of them than it takes to say who has begun, "
                          "or cannot register its memory as one");
    }
}

void ibshift_repeat_end(struct ibshift_repeat **repeated, struct ibshift_op *op)
{
    if (*repeated == NULL) {
        return;
    }
    let_go(op);
    if (op->status == 0 && is_over(*repeated, op)) {
        explain(*repeated);
        ibshift_repeat_leave(repeated, op);
    }
}

void ibshift_repeat_leave(struct ibshift_repeat **repeated, struct ibshift_op *op)
{
    struct ibshift_repeat *repeat = *repeated;

    if (repeat == NULL) {
        return;
    }
    *repeated = NULL;
    revoke(op->params.comm, op->params.standing);
    free(repeat->opening);
    free(repeat);
    op->params.opening = NULL;
    op->params.standing = 0;
}

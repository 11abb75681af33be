/*
 * All-to-alls and allgathers of long blocks that come again: persistent ones, and blocking ones like an earlier
 * one. Grants for what is got stand, so that later runs need none, only to know who has begun
 * (exec/opening.h). What all ranks have told in a run decides, alike on all of them, whether the next one is opened.
 *
 * Between two runs the memory is the program's, which may unmap it and map other at the same address: so
 * nothing is held then, and what a run gets from the registration cache tells whether it is what was
 * granted. If not, or if a blocking call's blocks go elsewhere, the rank's byte says that it grants anew.
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

enum {
    GAPS = 2, /* so many times the data is registered, at most */
    KINDS =
        8, /* of blocking calls of a communicator: others take the place of the one that came longest ago */
    FIRST_APART = 4,
    MOST_APART = 1024,
    BLOCKING = IBSHIFT_PERSISTENT_MAX, /* numbers from here on */
};

/* Memory that is registered during each run. */
struct held {
    char *base;
    size_t bytes; /* 0: for each message */
};

/* Blocking calls that are like each other, on all ranks. */
struct kind {
    const struct ibshift_alg *alg;
    const void *map, *order, *stages;
    uint64_t bytes, form, shape; /* zero where it does not count */
};

struct ibshift_repeat {
    struct ibshift_opening *opening;   /* NULL: none yet */
    struct held held[IBSHIFT_BUFFERS]; /* of TMP none */
    uint64_t granted;                  /* the registration that grants stand for; 0: none do */
    uint64_t places, granted_places;   /* of the blocks that are got: a digest */
    uint32_t runs;                     /* that were opened, one after the other */

    /* Of blocking calls. */
    struct kind kind;
    uint32_t
        used; /* the number of the communicator's call of such kinds that was the last; 0: never */
    uint32_t left;  /* calls that are not opened, from now on */
    uint32_t apart; /* as many as there were the last time */
};

struct ibshift_repeats {
    uint32_t calls;
    struct ibshift_repeat kinds[KINDS];
};

/* From the first byte of its blocks to behind the last one, if there is one. */
static void find_memory(const struct ibshift_repeated *call, struct ibshift_repeat *repeat,
                        enum ibshift_buffer buffer)
{
    char *first = NULL, *end = NULL, *at;
    uint64_t places = 0;
    size_t length, data = 0;

    for (uint32_t i = 0; i < call->blocks[buffer]; i++) {
        if (ibshift_blocks_range(&call->op->params.blocks[buffer], i, 1, &at, &length) != 0 ||
            length == 0) {
            continue;
        }
        first = first == NULL || at < first ? at : first;
        end = end == NULL || at + length > end ? at + length : end;
        data += length;
        places = (places ^ (uintptr_t)at) * 0x9e3779b97f4a7c15u + i;
    }
    repeat->places = places;
    repeat->held[buffer] = (struct held){first, (size_t)(end - first)};
    if ((size_t)(end - first) / GAPS > data) {
        repeat->held[buffer].bytes = 0;
    }
}

static struct ibshift_net_mem *hold_one(const struct held *held, uint64_t *number)
{
    struct ibshift_net_mem *mem = NULL;

    if (held->bytes > 0 && ibshift_endpoint.finds_again != NULL && ibshift_endpoint.finds_again()) {
        mem = ibshift_net_mem_register(ibshift_endpoint.net, held->base, held->bytes);
    }
    *number = mem == NULL ? 0 : ((struct ibshift_region *)mem)->number;
    return mem;
}

/* The registration of what is got, or 0. */
static uint64_t hold(const struct ibshift_repeat *repeat, struct ibshift_op *op)
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

/* The same on all ranks. */
static bool is_wanted(const struct ibshift_group *group, const struct ibshift_repeated *call)
{
    const struct ibshift_wanted *wanted = call->wanted;
    bool are_all_near = group->choices.near != NULL && group->choices.nodes.nodes == 1;

    /* A rank that grants anew does so with each message, so each has to come in each run: with counts only persistent ones. */
    return (wanted->is_again || (wanted->is_blocking && wanted->needs == 0)) && !are_all_near &&
           (wanted->collective == IBSHIFT_ALLTOALL || wanted->collective == IBSHIFT_ALLGATHER) &&
           call->op->params.pace == NULL && !ibshift_needs_long_part(wanted->needs) &&
           (ibshift_needs_any_size(wanted->needs) || wanted->bytes > ibshift_params.eager_limit);
}

static struct kind kind_of(const struct ibshift_repeated *call)
{
    const struct ibshift_plan *plan = &call->op->params.plan;

    return (struct kind){.alg = call->op->params.alg,
                         .map = call->map,
                         .order = plan->order,
                         .stages = plan->stages,
                         .bytes =
                             ibshift_needs_any_size(call->wanted->needs) ? 0 : call->wanted->bytes,
                         .form = (uint64_t)call->form << 1 | plan->in_sequence,
                         .shape = (uint64_t)plan->radix << 32 | plan->leaders};
}

/* Grants of another kind may have that number. */
static void replace(const struct ibshift_group *group, struct ibshift_repeat *repeat,
                    uint32_t number, const struct kind *kind)
{
    struct ibshift_opening *opening = repeat->opening;

    if (opening != NULL) {
        revoke(group->id, IBSHIFT_NET_OPENED | number);
    }
    memset(repeat, 0, sizeof(*repeat));
    repeat->opening = opening;
    repeat->kind = *kind;
    repeat->left = 1; /* the first one may be the only one */
    repeat->apart = FIRST_APART;
}

/* Of a blocking call; number: of its messages. NULL: no memory. */
static struct ibshift_repeat *find_kind(struct ibshift_group *group,
                                        const struct ibshift_repeated *call, uint32_t *number)
{
    const struct kind kind = kind_of(call);
    struct ibshift_repeat *kinds;
    uint32_t place = 0, oldest = 0;

    if (group->repeats == NULL) {
        group->repeats = calloc(1, sizeof(*group->repeats));
    }
    if (group->repeats == NULL) {
        return NULL;
    }
    kinds = group->repeats->kinds;
    while (place < KINDS && memcmp(&kinds[place].kind, &kind, sizeof(kind)) != 0) {
        oldest = kinds[place].used < kinds[oldest].used ? place : oldest;
        place++;
    }
    if (place == KINDS) {
        place = oldest;
        replace(group, &kinds[place], BLOCKING + place, &kind);
    }
    kinds[place].used = ++group->repeats->calls;
    *number = BLOCKING + place;
    return &kinds[place];
}

static bool is_persistent(const struct ibshift_op *op)
{
    return (op->params.standing & BLOCKING) == 0;
}

int ibshift_repeat_make(struct ibshift_group *group, const struct ibshift_repeated *call,
                        struct ibshift_repeat **out)
{
    struct ibshift_op_params *params = &call->op->params;
    uint32_t number = call->number;
    struct ibshift_repeat *repeat;

    *out = NULL;
    if (!is_wanted(group, call)) {
        return 0;
    }
    repeat = call->wanted->is_again ? calloc(1, sizeof(*repeat)) : find_kind(group, call, &number);
    if (repeat == NULL) {
        return -ENOMEM;
    }
    if (repeat->left > 0) {
        repeat->left--;
        return 0;
    }
    *out = repeat;
    params->standing = IBSHIFT_NET_OPENED | number;
    if (repeat->opening == NULL) {
        repeat->opening = ibshift_opening_make(params->plan.ranks);
    }
    if (repeat->opening == NULL) {
        return -ENOMEM;
    }
    ibshift_opening_take(repeat->opening, call->op);
    params->opening = repeat->opening;
    find_memory(call, repeat, IBSHIFT_SEND);
    find_memory(call, repeat, IBSHIFT_RECV);
    return 0;
}

/*
 * Whether this rank has few grants to save. A message of the opening takes about as many instructions as two grants
 * (counted, 4 ranks): who asks for a persistent call pays them for one that needs no grants, but no blocking call becomes slower.
 */
static bool refuses(const struct ibshift_repeat *repeat, const struct ibshift_op *op)
{
    const struct ibshift_op_params *params = &op->params;
    const struct ibshift_channels over = {.max_eager = ibshift_endpoint.net->max_eager,
                                          .is_near = ibshift_card_is_near};

    uint32_t grants = ibshift_standing_count(params, IBSHIFT_RECV, &over);

    return repeat->granted == 0 ||
           ibshift_opening_refuses(params->plan.ranks, is_persistent(op) ? grants : grants / 2);
}

void ibshift_repeat_begin(struct ibshift_repeat *repeat, struct ibshift_op *op)
{
    bool is_granted;
    uint64_t number;

    if (repeat == NULL) {
        return;
    }
    number = hold(repeat, op);
    is_granted =
        number != 0 && number == repeat->granted && repeat->places == repeat->granted_places;
    repeat->opening->told = is_granted ? 0 : IBSHIFT_OPENING_ANEW;
    repeat->granted = number;
    repeat->granted_places = repeat->places;
    if (repeat->runs++ == 0 && refuses(repeat, op)) {
        repeat->opening->told |= IBSHIFT_OPENING_REFUSED;
    }
}

/* After a run without error: whether all ranks know that another one had better not be opened. */
static bool is_over(const struct ibshift_repeat *repeat, const struct ibshift_op *op)
{
    uint32_t ranks = op->params.plan.ranks;

    return ibshift_opening_has_told(repeat->opening, ranks, IBSHIFT_OPENING_REFUSED) ||
           (!is_persistent(op) && repeat->runs > 1 &&
            ibshift_opening_has_told(repeat->opening, ranks, IBSHIFT_OPENING_ANEW));
}

void ibshift_repeat_end(struct ibshift_repeat **repeated, struct ibshift_op *op)
{
    struct ibshift_repeat *repeat = *repeated;

    if (repeat == NULL) {
        return;
    }
    let_go(op);
    if (op->status != 0 || !is_over(repeat, op)) {
        return;
    }
    if (is_persistent(op)) {
        ibshift_repeat_leave(repeated, op);
        return;
    }
    repeat->apart = repeat->apart < MOST_APART ? 2 * repeat->apart : MOST_APART;
    repeat->left = repeat->apart;
    repeat->runs = 0;
    repeat->granted = 0; /* it grants anew when it is opened again, as all do */
}

void ibshift_repeat_leave(struct ibshift_repeat **repeated, struct ibshift_op *op)
{
    struct ibshift_repeat *repeat = *repeated;

    if (repeat == NULL) {
        return;
    }
    *repeated = NULL;
    if (is_persistent(op)) {
        revoke(op->params.comm, op->params.standing);
        free(repeat->opening);
        free(repeat);
    }
    op->params.opening = NULL;
    op->params.standing = 0;
}

void ibshift_repeats_free(struct ibshift_repeats *repeats)
{
    for (int i = 0; repeats != NULL && i < KINDS; i++) {
        free(repeats->kinds[i].opening);
    }
    free(repeats);
}

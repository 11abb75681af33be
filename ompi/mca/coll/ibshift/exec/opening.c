#include "exec/opening.h"

#include <stdlib.h>
#include <string.h>

#include "exec/standing.h"

struct ibshift_opening *ibshift_opening_make(uint32_t ranks)
{
    struct ibshift_opening *opening = calloc(1, sizeof(*opening) + 2 * (size_t)ranks);

    if (opening != NULL) {
        opening->heard = (uint8_t *)(opening + 1);
    }
    return opening;
}

void ibshift_opening_take(struct ibshift_opening *opening, const struct ibshift_op *op)
{
    struct ibshift_op_params *params = &opening->child.params;

    *params = (struct ibshift_op_params){
        .alg = ibshift_alg_find(IBSHIFT_ALLGATHER, "bruck"),
        .plan = {.ranks = op->params.plan.ranks, .radix = 1, .segments = 1, .commutative = true},
        .rank = op->params.rank,
        .window = 1,
        .peers = op->params.peers,
        .names = op->params.names,
        .comm = op->params.comm,
        .badge = op->params.badge,
        .tags = IBSHIFT_CHILD_TAG,
        .element = 1};
    for (int buf = 0; buf < IBSHIFT_BUFFERS; buf++) {
        params->blocks[buf] = (struct ibshift_blocks){.unit = 1, .layout = IBSHIFT_UNIFORM};
    }
    params->blocks[IBSHIFT_SEND].base = (char *)&opening->told;
    params->blocks[IBSHIFT_RECV].base = (char *)opening->heard + op->params.plan.ranks;
    params->blocks[IBSHIFT_TMP].base = (char *)opening->heard;
}

static uint32_t distance(const struct ibshift_op *op, uint32_t rank)
{
    uint32_t ranks = op->params.plan.ranks;

    return (rank + ranks - op->params.rank) % ranks;
}

/* The child's receive of round i brings the distances from 2^i on. */
static bool has_begun(const struct ibshift_op *op, uint32_t rank)
{
    uint32_t received = op->params.opening->child.walk.progress.received;

    return received >= 32 || distance(op, rank) >> received == 0;
}

bool ibshift_opening_admits(const struct ibshift_op *op, struct ibshift_net *net,
                            const struct ibshift_step *step)
{
    char *address;
    size_t length = 0;

    if (has_begun(op, step->peer)) {
        return true;
    }
    (void)ibshift_blocks_range(&op->params.blocks[step->buf], step->first, step->count, &address,
                               &length);
    return length <= net->max_eager ||
           ibshift_net_part(net, ibshift_op_peer(op, step->peer))->ops->revoke == NULL;
}

void ibshift_opening_annotate(const struct ibshift_op *op, const struct ibshift_step *step,
                              struct ibshift_net_message *message)
{
    const struct ibshift_opening *opening = op->params.opening;
    bool is_send = step->kind == IBSHIFT_STEP_SEND;
    uint8_t state = is_send ? opening->heard[distance(op, step->peer)] : opening->told;

    /* What the net registers for a message of its own it would hold for as long as the grant stands. */
    if (is_send ||
        (op->params.mem[IBSHIFT_RECV] != NULL && ibshift_step_can_stand(step, IBSHIFT_RECV))) {
        message->standing = op->params.standing;
        message->is_anew = (state & IBSHIFT_OPENING_ANEW) != 0;
    }
}

uint32_t ibshift_opening_lacks(const struct ibshift_op *op, uint32_t *first)
{
    const struct ibshift_walk *walk =
        op->params.opening != NULL ? &op->params.opening->child.walk : NULL;
    uint32_t ranks = op->params.plan.ranks;

    if (walk == NULL || walk->progress.received >= walk->rounds) {
        return 0;
    }
    *first = 1u << walk->progress.received;
    return *first < ranks - *first ? *first : ranks - *first;
}

bool ibshift_opening_has_told(const struct ibshift_opening *opening, uint32_t ranks, uint8_t what)
{
    bool has_told = false;

    for (uint32_t i = 0; i < ranks; i++) {
        has_told |= (opening->heard[ranks + i] & what) != 0;
    }
    return has_told;
}

bool ibshift_opening_refuses(uint32_t ranks, uint32_t grants)
{
    uint32_t rounds = 0;

    while (1u << rounds < ranks) {
        rounds++;
    }
    return grants < rounds;
}

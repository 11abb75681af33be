#include "exec/tape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What making a tape needs for a while. */
struct maker {
    const struct ibshift_op_params *params;
    struct ibshift_net *net;
    uint32_t count;
    struct ibshift_walk walk;
    struct ibshift_pages pages;
    struct ibshift_tape_step steps[IBSHIFT_TAPE_STEPS];
};

/* The next step of the tape, zero, or NULL: it is too long. */
static struct ibshift_tape_step *add(struct maker *maker, enum ibshift_class which)
{
    const struct ibshift_cursor *cursor = &maker->walk.cursor[which];
    struct ibshift_tape_step *step;

    if (maker->count == IBSHIFT_TAPE_STEPS) {
        return NULL;
    }
    step = &maker->steps[maker->count++];
    *step = (struct ibshift_tape_step){.which = (uint8_t)which,
                                       .is_last = true,
                                       .index = (uint8_t)cursor->index,
                                       .round = (uint8_t)cursor->round};
    return step;
}

/* Where an address is, from the buffer's base. */
static int place(const struct maker *maker, enum ibshift_buffer buf, const char *address,
                 size_t length, int32_t *at)
{
    int64_t offset = (int64_t)((intptr_t)address - (intptr_t)maker->params->blocks[buf].base);

    *at = (int32_t)offset;
    return *at == offset && length <= INT32_MAX ? 0 : -EMSGSIZE;
}

static int add_message(struct maker *maker, const struct ibshift_step *step)
{
    enum ibshift_class which = ibshift_step_class(step);
    struct ibshift_tape_step *to = add(maker, which);
    char *address;
    size_t length;

    if (to == NULL ||
        ibshift_blocks_range(&maker->params->blocks[step->buf], step->first, step->count, &address,
                             &length) != 0 ||
        place(maker, step->buf, address, length, &to->at) != 0 || length > maker->net->max_tried) {
        return -ENOTSUP;
    }
    to->buf = step->buf;
    to->peer = maker->params->peers != NULL ? maker->params->peers[step->peer] : step->peer;
    to->tag = ibshift_step_key(step);
    to->length = (uint32_t)length;
    if (length > 0 || step->count == 0) {
        to->action = which == IBSHIFT_CLASS_SEND ? IBSHIFT_TAPE_SEND : IBSHIFT_TAPE_RECV;
        to->channel = ibshift_net_channel(maker->net, to->peer);
    }
    return to->action == IBSHIFT_TAPE_NOTHING || to->channel != NULL ? 0 : -ENOTSUP;
}

/* Each piece is a step; one of no blocks is a step all the same. */
static int add_local(struct maker *maker, const struct ibshift_step *step)
{
    struct ibshift_tape_step *to;
    struct ibshift_piece piece;
    uint32_t i = 0;

    do {
        to = add(maker, IBSHIFT_CLASS_LOCAL);
        if (to == NULL) {
            return -ENOSPC;
        }
        if (step->count == 0) {
            return 0;
        }
        if (ibshift_blocks_piece(maker->params->blocks, step, &i, &piece) != 0 ||
            place(maker, step->buf, piece.to, piece.length, &to->at) != 0 ||
            place(maker, step->src, piece.from, piece.length, &to->from) != 0) {
            return -ENOTSUP;
        }
        if (step->kind != IBSHIFT_STEP_COPY &&
            place(maker, step->with, piece.with, piece.length, &to->beside) != 0) {
            return -ENOTSUP;
        }
        to->buf = step->buf;
        to->src = step->src;
        to->with = step->kind != IBSHIFT_STEP_COPY ? step->with : 0;
        to->length = (uint32_t)piece.length;
        to->action = step->kind == IBSHIFT_STEP_COPY ? IBSHIFT_TAPE_COPY
                     : step->kind == IBSHIFT_STEP_REDUCE || maker->params->plan.commutative
                         ? IBSHIFT_TAPE_REDUCE
                         : IBSHIFT_TAPE_REDUCE_AFTER;
        to->is_last = i == step->count;
    } while (i < step->count);
    return 0;
}

/* What others wait for comes first: sends, then local steps; one receive at a time. */
static int unroll(struct maker *maker)
{
    static const enum ibshift_class order[] = {IBSHIFT_CLASS_SEND, IBSHIFT_CLASS_LOCAL,
                                               IBSHIFT_CLASS_RECV};
    struct ibshift_walk *walk = &maker->walk;
    int rc = 0;

    while (rc == 0 && !ibshift_walk_is_done(walk)) {
        const struct ibshift_step *step = NULL;
        enum ibshift_class which = IBSHIFT_CLASS_SEND;

        for (int i = 0; i < IBSHIFT_CLASSES && step == NULL; i++) {
            which = order[i];
            step = ibshift_walk_next(walk, which);
        }
        if (step == NULL) {
            return -ENOTSUP; /* no plan that passed the checker */
        }
        rc = which == IBSHIFT_CLASS_LOCAL ? add_local(maker, step) : add_message(maker, step);
        if (which == IBSHIFT_CLASS_LOCAL) {
            (void)ibshift_walk_start(walk, which);
        } else {
            ibshift_walk_skip(walk, which);
        }
    }
    return rc;
}

void ibshift_tape_count(const struct ibshift_tape *tape, uint32_t steps,
                        struct ibshift_engine_stats *stats)
{
    for (const struct ibshift_tape_step *step = tape->steps; step < tape->steps + steps; step++) {
        if (step->action == IBSHIFT_TAPE_SEND) {
            stats->sends++;
            stats->send_bytes += step->length;
        }
        stats->recvs += step->action == IBSHIFT_TAPE_RECV;
    }
}

static struct ibshift_tape *copy_of(const struct maker *maker, size_t tmp)
{
    size_t size = maker->count * sizeof(maker->steps[0]);
    struct ibshift_tape *tape = malloc(sizeof(*tape) + size);
    struct ibshift_engine_stats all = {.sends = 0};

    if (tape != NULL) {
        *tape = (struct ibshift_tape){.count = maker->count, .tmp = tmp};
        memcpy(tape->steps, maker->steps, size);
        ibshift_tape_count(tape, tape->count, &all);
        tape->sends = (uint32_t)all.sends;
        tape->recvs = (uint32_t)all.recvs;
        tape->send_bytes = all.send_bytes;
    }
    return tape;
}

struct ibshift_tape *ibshift_tape_make(const struct ibshift_op_params *params,
                                       struct ibshift_net *net, size_t tmp)
{
    struct ibshift_tape *tape = NULL;
    struct maker *maker;

    if (net->max_tried == 0 || params->cast != NULL || tmp > IBSHIFT_TAPE_TMP ||
        params->alg->rounds(&params->plan, params->rank) > IBSHIFT_TAPE_STEPS) {
        return NULL;
    }
    maker = calloc(1, sizeof(*maker));
    if (maker == NULL) {
        return NULL;
    }
    maker->params = params;
    maker->net = net;
    ibshift_walk_begin(&maker->walk, &maker->pages, params->alg, &params->plan, params->rank,
                       params->window);
    if (unroll(maker) == 0) {
        tape = copy_of(maker, tmp);
    }
    free(maker);
    return tape;
}

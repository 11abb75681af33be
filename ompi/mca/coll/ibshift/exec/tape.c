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

/* Where a range of blocks is, from the buffer's base. */
static int place(const struct maker *maker, enum ibshift_buffer buf, uint32_t first, uint32_t count,
                 int32_t *at, size_t *length)
{
    const struct ibshift_blocks *blocks = &maker->params->blocks[buf];
    char *address;
    int rc = ibshift_blocks_range(blocks, first, count, &address, length);
    int64_t offset;

    if (rc != 0) {
        return rc;
    }
    offset = (int64_t)((intptr_t)address - (intptr_t)blocks->base);
    *at = (int32_t)offset;
    return *at == offset && *length <= INT32_MAX ? 0 : -EMSGSIZE;
}

static int add_message(struct maker *maker, const struct ibshift_step *step)
{
    enum ibshift_class which = ibshift_step_class(step);
    struct ibshift_tape_step *to = add(maker, which);
    size_t length;
    int rc =
        to == NULL ? -ENOSPC : place(maker, step->buf, step->first, step->count, &to->at, &length);

    if (rc != 0 || length > maker->net->max_tried) {
        return -ENOTSUP;
    }
    to->buf = step->buf;
    to->peer = maker->params->peers != NULL ? maker->params->peers[step->peer] : step->peer;
    to->tag = ibshift_step_key(step);
    to->length = (uint32_t)length;
    if (length > 0 || step->count == 0) {
        to->action = which == IBSHIFT_CLASS_SEND ? IBSHIFT_TAPE_SEND : IBSHIFT_TAPE_RECV;
        to->channel = maker->net->ops->channel(maker->net, to->peer);
    }
    return to->action == IBSHIFT_TAPE_NOTHING || to->channel != NULL ? 0 : -ENOTSUP;
}

/* A copy or reduction of blocks that lie in one piece on both sides. */
static int add_piece(struct maker *maker, const struct ibshift_step *step, uint32_t first,
                     uint32_t from, uint32_t count)
{
    struct ibshift_tape_step *to = add(maker, IBSHIFT_CLASS_LOCAL);
    size_t length = 0, source = 0;
    int rc = to == NULL ? -ENOSPC : place(maker, step->buf, first, count, &to->at, &length);

    if (rc == 0) {
        rc = place(maker, step->src, from, count, &to->from, &source);
    }
    if (rc != 0 || length != source) {
        maker->count -= to != NULL;
        return rc != 0 ? rc : -ENOTSUP;
    }
    to->buf = step->buf;
    to->src = step->src;
    to->length = (uint32_t)length;
    to->action = step->kind == IBSHIFT_STEP_COPY ? IBSHIFT_TAPE_COPY
                 : step->kind == IBSHIFT_STEP_REDUCE || maker->params->plan.commutative
                     ? IBSHIFT_TAPE_REDUCE
                     : IBSHIFT_TAPE_REDUCE_AFTER;
    return 0;
}

/* As the engine does: in one piece where they lie so, else block by block. */
static int add_run(struct maker *maker, const struct ibshift_step *step, uint32_t first,
                   uint32_t from, uint32_t count)
{
    int rc = add_piece(maker, step, first, from, count);

    if (rc == -EINVAL && step->kind == IBSHIFT_STEP_COPY) {
        rc = 0;
        for (uint32_t i = 0; i < count && rc == 0; i++) {
            rc = add_piece(maker, step, first + i, from + i, 1);
        }
    }
    return rc;
}

static int add_local(struct maker *maker, const struct ibshift_step *step)
{
    uint32_t before = maker->count, i = 0, first, from;
    int rc = 0;

    while (rc == 0 && i < step->count) {
        uint32_t count = ibshift_step_run(step, i, &first, &from);

        rc = add_run(maker, step, first, from, count);
        i += count;
    }
    if (rc == 0 && maker->count == before && add(maker, IBSHIFT_CLASS_LOCAL) == NULL) {
        rc = -ENOSPC; /* a step of no blocks is a step all the same */
    }
    for (uint32_t k = before; k + 1 < maker->count; k++) {
        maker->steps[k].is_last = false;
    }
    return rc;
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

static void count_messages(struct ibshift_tape *tape)
{
    for (uint32_t i = 0; i < tape->count; i++) {
        const struct ibshift_tape_step *step = &tape->steps[i];

        if (step->action == IBSHIFT_TAPE_SEND) {
            tape->sends++;
            tape->send_bytes += step->length;
        }
        tape->recvs += step->action == IBSHIFT_TAPE_RECV;
    }
}

struct ibshift_tape *ibshift_tape_make(const struct ibshift_op_params *params,
                                       struct ibshift_net *net, size_t tmp)
{
    struct ibshift_tape *tape = NULL;
    struct maker *maker;

    if (net->ops->channel == NULL || params->pace != NULL || tmp > IBSHIFT_TAPE_TMP ||
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
        size_t size = maker->count * sizeof(maker->steps[0]);

        tape = malloc(sizeof(*tape) + size);
        if (tape != NULL) {
            *tape = (struct ibshift_tape){.count = maker->count, .tmp = tmp};
            memcpy(tape->steps, maker->steps, size);
            count_messages(tape);
        }
    }
    free(maker);
    return tape;
}

void ibshift_tape_skip(const struct ibshift_tape_run *run, struct ibshift_walk *walk)
{
    for (uint32_t i = 0; i < run->next; i++) {
        const struct ibshift_tape_step *step = &run->tape->steps[i];

        if (step->is_last && step->which == IBSHIFT_CLASS_LOCAL) {
            (void)ibshift_walk_start(walk, IBSHIFT_CLASS_LOCAL);
        } else if (step->is_last) {
            ibshift_walk_skip(walk, step->which);
        }
    }
}

#include "proof/check_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The last steps, in plan order, that touched a block; all fields are round + 1, 0 is never. */
struct trace {
    uint32_t written;
    uint32_t read; /* by a local step */
    uint32_t sent;
    bool written_locally;
};

struct walk_order {
    struct check_state *state;
    struct trace *trace; /* one for each cell of the rank */
    struct check_place place;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS]; /* of the round at hand */
    const struct ibshift_step *step;
};

static struct trace *trace_of(const struct walk_order *walk, enum ibshift_buffer buf,
                              uint32_t block)
{
    return &walk->trace[walk->state->layout[walk->place.rank].offset[buf] + block];
}

static int read_block(struct walk_order *walk, enum ibshift_buffer buf, uint32_t block)
{
    const struct ibshift_step *step = walk->step;
    struct trace *trace = trace_of(walk, buf, block);
    bool local = ibshift_step_is_local(step);

    if (trace->written > step->need && !(local && trace->written_locally)) {
        return check_fail(walk->state, &walk->place,
                          "reads %s block %u, written in round %u, with need %u",
                          check_buffer_name[buf], block, trace->written - 1, step->need);
    }
    if (local) {
        trace->read = walk->place.round + 1;
    } else {
        trace->sent = walk->place.round + 1;
    }
    return 0;
}

static int write_block(struct walk_order *walk, enum ibshift_buffer buf, uint32_t block)
{
    const struct ibshift_step *step = walk->step;
    struct trace *trace = trace_of(walk, buf, block);
    bool local = ibshift_step_is_local(step);

    if (trace->written > step->need && !(local && trace->written_locally)) {
        return check_fail(walk->state, &walk->place,
                          "overwrites %s block %u, written in round %u, with need %u",
                          check_buffer_name[buf], block, trace->written - 1, step->need);
    }
    if (trace->read > step->need && !local) {
        return check_fail(walk->state, &walk->place,
                          "overwrites %s block %u, read in round %u, with need %u",
                          check_buffer_name[buf], block, trace->read - 1, step->need);
    }
    if (trace->sent > step->drain) {
        return check_fail(walk->state, &walk->place,
                          "overwrites %s block %u, sent in round %u, with drain %u",
                          check_buffer_name[buf], block, trace->sent - 1, step->drain);
    }
    trace->written = walk->place.round + 1;
    trace->written_locally = local;
    return 0;
}

/* A side of the step within its buffer: the first and last block that it touches. */
static int check_bounds(struct walk_order *walk, enum ibshift_buffer buf, uint32_t first,
                        bool strided)
{
    const struct ibshift_step *step = walk->step;
    uint32_t blocks = walk->state->layout[walk->place.rank].blocks[buf];

    for (uint32_t i = 0; i < step->count; i += strided || step->count == 1 ? 1 : step->count - 1) {
        uint32_t block = strided ? ibshift_step_strided_block(step, first, i) : first + i;

        if (block >= blocks) {
            return check_fail(walk->state, &walk->place, "touches %s block %u of %u",
                              check_buffer_name[buf], block, blocks);
        }
    }
    return 0;
}

static int check_shape(struct walk_order *walk)
{
    const struct ibshift_step *step = walk->step;
    bool local = ibshift_step_is_local(step);
    const char *wrong = NULL;
    int rc;

    if (step->kind > IBSHIFT_STEP_REDUCE_AFTER || step->buf >= IBSHIFT_BUFFERS ||
        (local && step->src >= IBSHIFT_BUFFERS) || step->strided > IBSHIFT_STRIDED_TARGET) {
        wrong = "is no step at all";
    } else if (step->need > walk->place.round || step->drain > walk->place.round) {
        wrong = "waits for its own round";
    } else if (step->buf == IBSHIFT_SEND && step->kind != IBSHIFT_STEP_SEND && step->count > 0) {
        wrong = "writes to SEND";
    } else if (!local &&
               (step->peer >= walk->state->plan->ranks || step->peer == walk->place.rank)) {
        wrong = "has a peer that is no other rank";
    } else if (step->strided != IBSHIFT_CONTIGUOUS &&
               (step->kind != IBSHIFT_STEP_COPY || step->run == 0)) {
        wrong = "is strided but no copy, or has no runs";
    } else if (step->kind == IBSHIFT_STEP_REDUCE_AFTER && step->src != IBSHIFT_TMP) {
        wrong = "uses up what is not TMP";
    } else if (local && step->count == 0) {
        wrong = "does nothing";
    }
    if (wrong != NULL) {
        return check_fail(walk->state, &walk->place, "%s", wrong);
    }
    rc = check_bounds(walk, step->buf, step->first, step->strided == IBSHIFT_STRIDED_TARGET);
    return rc < 0 || !local
               ? rc
               : check_bounds(walk, step->src, step->from, step->strided == IBSHIFT_STRIDED_SOURCE);
}

static int check_local(struct walk_order *walk)
{
    const struct ibshift_step *step = walk->step;
    int rc = 0;

    for (uint32_t i = 0; i < step->count && rc == 0; i++) {
        uint32_t to = step->strided == IBSHIFT_STRIDED_TARGET
                          ? ibshift_step_strided_block(step, step->first, i)
                          : step->first + i;
        uint32_t from = step->strided == IBSHIFT_STRIDED_SOURCE
                            ? ibshift_step_strided_block(step, step->from, i)
                            : step->from + i;

        if (trace_of(walk, step->buf, to) == trace_of(walk, step->src, from)) {
            continue; /* a copy onto itself is skipped */
        }
        rc = read_block(walk, step->src, from);
        rc = rc == 0 && step->kind != IBSHIFT_STEP_COPY ? read_block(walk, step->buf, to) : rc;
        rc = rc == 0 && step->kind == IBSHIFT_STEP_REDUCE_AFTER ? write_block(walk, step->src, from)
                                                                : rc;
        rc = rc == 0 ? write_block(walk, step->buf, to) : rc;
    }
    return rc;
}

static int check_step(struct walk_order *walk)
{
    const struct ibshift_step *step = walk->step;
    int rc = check_shape(walk);

    if (rc < 0 || ibshift_step_is_local(step)) {
        return rc < 0 ? rc : check_local(walk);
    }
    walk->state->result->messages += step->kind == IBSHIFT_STEP_SEND;
    walk->state->result->blocks += step->kind == IBSHIFT_STEP_SEND ? step->count : 0;
    for (uint32_t i = 0; i < step->count && rc == 0; i++) {
        rc = step->kind == IBSHIFT_STEP_SEND ? read_block(walk, step->buf, step->first + i)
                                             : write_block(walk, step->buf, step->first + i);
    }
    return rc;
}

static int check_rank(struct walk_order *walk)
{
    uint32_t rank = walk->place.rank, rounds = walk->state->alg->rounds(walk->state->plan, rank);

    memset(walk->trace, 0, walk->state->layout[rank].cells * sizeof(*walk->trace));
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t count = walk->state->alg->emit(walk->state->plan, rank, round, walk->steps);

        walk->place.round = round;
        walk->state->result->steps += count;
        for (walk->place.index = 0; walk->place.index < count; walk->place.index++) {
            int rc;

            walk->step = &walk->steps[walk->place.index];
            rc = check_step(walk);
            if (rc < 0) {
                return rc;
            }
        }
    }
    return 0;
}

int check_order_all(struct check_state *state)
{
    struct walk_order walk = {.state = state};
    int rc = 0;

    walk.trace = calloc((size_t)state->cells_max + 1, sizeof(*walk.trace));
    if (walk.trace == NULL) {
        return -ENOMEM;
    }
    for (walk.place.rank = 0; walk.place.rank < state->plan->ranks && rc == 0; walk.place.rank++) {
        rc = check_rank(&walk);
    }
    free(walk.trace);
    return rc;
}

#include "proof/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/check_impl.h"

const char *const check_buffer_name[IBSHIFT_BUFFERS] = {"SEND", "RECV", "TMP"};

int check_fail(struct check_state *state, const struct check_place *place, const char *format, ...)
{
    char *why = state->result->why;
    size_t size = sizeof(state->result->why);
    va_list arguments;
    int used =
        snprintf(why, size, "rank %u round %u step %u: ", place->rank, place->round, place->index);

    va_start(arguments, format);
    vsnprintf(why + used, size - (size_t)used, format, arguments);
    va_end(arguments);
    return -EBADMSG;
}

/* A number that stands for a rank in sums; sums of different sets of ranks differ (64 random bits).
 */
static uint64_t rank_mark(uint32_t rank)
{
    uint64_t x = (rank + 1) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static bool is_reduction(const struct ibshift_alg *alg)
{
    return alg->collective >= IBSHIFT_REDUCE;
}

/* Lets SEND and RECV share cells, see alg.h. */
static void overlap(const struct check_state *state, uint32_t rank, struct check_layout *layout)
{
    uint32_t *send = &layout->offset[IBSHIFT_SEND], *recv = &layout->offset[IBSHIFT_RECV];
    enum ibshift_collective collective = state->alg->collective;
    bool is_rooted = collective == IBSHIFT_SCATTER || collective == IBSHIFT_GATHER ||
                     collective == IBSHIFT_REDUCE;

    if (is_rooted && rank != state->plan->root) {
        return;
    }
    switch (collective) {
    case IBSHIFT_ALLGATHER:
    case IBSHIFT_GATHER:
        *send = *recv + rank;
        break;
    case IBSHIFT_SCATTER:
        *recv = *send + rank;
        break;
    case IBSHIFT_REDUCE_SCATTER:
        *recv = *send;
        break;
    case IBSHIFT_BARRIER:
    case IBSHIFT_BCAST:
        break;
    default:
        *send = *recv;
    }
}

int check_cells_layout(struct check_state *state)
{
    size_t total = 0;

    state->layout = calloc(state->plan->ranks, sizeof(*state->layout));
    if (state->layout == NULL) {
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < state->plan->ranks; rank++) {
        struct check_layout *layout = &state->layout[rank];

        layout->base = total;
        for (int buf = 0; buf < IBSHIFT_BUFFERS; buf++) {
            layout->blocks[buf] = ibshift_alg_blocks(state->alg, state->plan, rank, buf);
            layout->offset[buf] = layout->cells;
            layout->cells += layout->blocks[buf];
        }
        if (state->check->in_place) {
            overlap(state, rank, layout);
        }
        total += layout->cells;
        state->cells_max = layout->cells > state->cells_max ? layout->cells : state->cells_max;
    }
    state->cells = calloc(total + 1, sizeof(*state->cells));
    return state->cells == NULL ? -ENOMEM : 0;
}

void check_cells_fill(struct check_state *state)
{
    enum ibshift_buffer buf = state->alg->collective == IBSHIFT_BCAST ? IBSHIFT_RECV : IBSHIFT_SEND;

    for (uint32_t rank = 0; rank < state->plan->ranks; rank++) {
        if (state->alg->collective == IBSHIFT_BCAST && rank != state->plan->root) {
            continue;
        }
        for (uint32_t block = 0; block < state->layout[rank].blocks[buf]; block++) {
            *check_cell(state, rank, buf, block) =
                (struct check_cell){block, rank, 1, 0, rank_mark(rank)};
        }
    }
}

static uint64_t sum_of(const struct check_cell *cell)
{
    uint64_t sum = 0;

    for (uint32_t rank = cell->lo; rank < cell->lo + cell->count; rank++) {
        sum += rank_mark(rank);
    }
    return sum;
}

static void describe(const struct check_cell *cell, char *text, size_t size)
{
    if (cell->count == 0 || cell->lost) {
        snprintf(text, size, cell->lost ? "something lost" : "nothing");
    } else {
        snprintf(text, size, "block %u of %u rank(s) from %u", cell->block, cell->count, cell->lo);
    }
}

int check_cells_expect(struct check_state *state)
{
    struct check_cell last = {0};

    for (uint32_t rank = 0; rank < state->plan->ranks; rank++) {
        for (uint32_t block = 0; block < state->layout[rank].blocks[IBSHIFT_RECV]; block++) {
            const struct check_cell *cell = check_cell(state, rank, IBSHIFT_RECV, block);
            struct check_cell want = check_expected(state, rank, block);
            char is[64], should[64];

            want.sum = want.count == last.count && want.lo == last.lo ? last.sum : sum_of(&want);
            last = want;
            if (want.count == 0 || check_cells_equal(cell, &want)) {
                continue;
            }
            describe(cell, is, sizeof(is));
            describe(&want, should, sizeof(should));
            snprintf(state->result->why, sizeof(state->result->why),
                     "rank %u: RECV block %u holds %s, should hold %s", rank, block, is, should);
            return -EBADMSG;
        }
    }
    return 0;
}

int check_cells_store(struct check_state *state, const struct check_place *place,
                      const struct ibshift_step *step, uint32_t block,
                      const struct check_cell *from)
{
    struct check_cell *to = check_cell(state, place->rank, step->buf, block);
    const char *buffer = check_buffer_name[step->buf];

    if (from->count == 0 || from->lost) {
        return check_fail(state, place, "%s block %u would get nothing: its source is %s", buffer,
                          block, from->lost ? "lost" : "empty");
    }
    if (step->kind == IBSHIFT_STEP_RECV && check_cells_equal(to, from)) {
        return check_fail(state, place, "%s block %u comes from rank %u but is there already",
                          buffer, block, step->peer);
    }
    if (state->pairs != NULL && step->buf == IBSHIFT_TMP) {
        const struct check_pair *pair = &state->pairs[to - state->cells];

        if (pair->from != from->lo || pair->to != from->block) {
            return check_fail(state, place, "TMP block %u is for %u to %u but gets %u to %u", block,
                              pair->from, pair->to, from->lo, from->block);
        }
    } else if (state->check->sizes && check_size_of_block(state, place->rank, step->buf, block) !=
                                          check_size_of_cell(state, from)) {
        return check_fail(state, place, "%s block %u has the size of block %u but gets block %u",
                          buffer, block, check_size_of_block(state, place->rank, step->buf, block),
                          check_size_of_cell(state, from));
    }
    *to = *from;
    return 0;
}

/* left op right. */
static int reduce(struct check_state *state, const struct check_place *place,
                  const struct check_cell *left, const struct check_cell *right,
                  struct check_cell *result)
{
    if (left->count == 0 || right->count == 0 || left->lost || right->lost) {
        return check_fail(state, place, "reduces what is not there");
    }
    if (!is_reduction(state->alg) || left->block != right->block) {
        return check_fail(state, place, "reduces block %u with block %u", left->block,
                          right->block);
    }
    if (!state->plan->commutative && left->lo + left->count != right->lo) {
        return check_fail(state, place, "reduces ranks %u..%u with ranks %u..%u in that order",
                          left->lo, left->lo + left->count - 1, right->lo,
                          right->lo + right->count - 1);
    }
    *result = (struct check_cell){left->block, left->lo < right->lo ? left->lo : right->lo,
                                  left->count + right->count, 0, left->sum + right->sum};
    return 0;
}

static int reduce_block(struct check_state *state, const struct check_place *place,
                        const struct ibshift_step *step, uint32_t i)
{
    struct check_cell *from = check_cell(state, place->rank, step->src, step->from + i);
    struct check_cell *with = check_cell(state, place->rank, step->with, step->beside + i);
    bool is_after = step->kind == IBSHIFT_STEP_REDUCE_AFTER;
    struct check_cell result;
    int rc = reduce(state, place, is_after ? with : from, is_after ? from : with, &result);

    from->lost |= is_after;
    return rc < 0 ? rc : check_cells_store(state, place, step, step->first + i, &result);
}

int check_cells_local(struct check_state *state, const struct check_place *place,
                      const struct ibshift_step *step)
{
    int rc = 0;

    for (uint32_t i = 0; i < step->count && rc == 0; i++) {
        struct check_cell *from;
        uint32_t to, source;

        (void)ibshift_step_run(step, i, &to, &source);
        from = check_cell(state, place->rank, step->src, source);
        if (step->kind != IBSHIFT_STEP_COPY) {
            rc = reduce_block(state, place, step, i);
        } else if (from != check_cell(state, place->rank, step->buf, to)) {
            rc = check_cells_store(state, place, step, to, from);
        }
    }
    return rc;
}

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

/* The step does that to a block which something was done to in round `mark` - 1, before which it may start. */
static int unordered(const struct walk_order *walk, const char *does, enum ibshift_buffer buf,
                     uint32_t block, const char *done, uint32_t mark, const char *waits,
                     uint32_t rounds)
{
    return check_fail(walk->state, &walk->place, "%s %s block %u, %s in round %u, with %s %u", does,
                      check_buffer_name[buf], block, done, mark - 1, waits, rounds);
}

static int read_block(struct walk_order *walk, enum ibshift_buffer buf, uint32_t block)
{
    uint32_t need = walk->step->need;
    struct trace *trace = trace_of(walk, buf, block);
    bool local = ibshift_step_is_local(walk->step);

    if (trace->written > need && !(local && trace->written_locally)) {
        return unordered(walk, "reads", buf, block, "written", trace->written, "need", need);
    }
    *(local ? &trace->read : &trace->sent) = walk->place.round + 1;
    return 0;
}

static int write_block(struct walk_order *walk, enum ibshift_buffer buf, uint32_t block)
{
    uint32_t need = walk->step->need, drain = walk->step->drain;
    struct trace *trace = trace_of(walk, buf, block);
    bool local = ibshift_step_is_local(walk->step);

    if (trace->written > need && !(local && trace->written_locally)) {
        return unordered(walk, "overwrites", buf, block, "written", trace->written, "need", need);
    }
    if (trace->read > need && !local) {
        return unordered(walk, "overwrites", buf, block, "read", trace->read, "need", need);
    }
    if (trace->sent > drain) {
        return unordered(walk, "overwrites", buf, block, "sent", trace->sent, "drain", drain);
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
    bool local = ibshift_step_is_local(step), reduces = step->kind >= IBSHIFT_STEP_REDUCE;
    uint32_t strided = reduces ? IBSHIFT_CONTIGUOUS : step->strided;
    const char *wrong = NULL;
    int rc;

    if (step->kind > IBSHIFT_STEP_REDUCE_AFTER || step->buf >= IBSHIFT_BUFFERS ||
        (local && step->src >= IBSHIFT_BUFFERS) || strided > IBSHIFT_STRIDED_TARGET ||
        (reduces && step->with >= IBSHIFT_BUFFERS)) {
        wrong = "is no step at all";
    } else if (step->need > walk->place.round || step->drain > walk->place.round) {
        wrong = "waits for its own round";
    } else if (step->buf == IBSHIFT_SEND && step->kind != IBSHIFT_STEP_SEND && step->count > 0) {
        wrong = "writes to SEND";
    } else if (!local &&
               (step->peer >= walk->state->plan->ranks || step->peer == walk->place.rank)) {
        wrong = "has a peer that is not another rank";
    } else if (!local && step->is_cast && (walk->state->alg->flags & IBSHIFT_ALG_MULTICAST) == 0) {
        wrong = "is a datagram to a group, in a row without multicast";
    } else if (strided != IBSHIFT_CONTIGUOUS &&
               (step->kind != IBSHIFT_STEP_COPY || step->run == 0)) {
        wrong = "is strided but no copy, or has no runs";
    } else if (step->kind == IBSHIFT_STEP_REDUCE_AFTER &&
               (step->src != IBSHIFT_TMP ||
                (step->buf == step->src && step->first == step->from))) {
        wrong = "uses up what is not TMP, or its target";
    } else if (local && step->count == 0) {
        wrong = "does nothing";
    }
    rc = wrong != NULL
             ? check_fail(walk->state, &walk->place, "%s", wrong)
             : check_bounds(walk, step->buf, step->first, strided == IBSHIFT_STRIDED_TARGET);
    if (rc == 0 && local) {
        rc = check_bounds(walk, step->src, step->from, strided == IBSHIFT_STRIDED_SOURCE);
    }
    return rc == 0 && reduces ? check_bounds(walk, step->with, step->beside, false) : rc;
}

static int check_local(struct walk_order *walk)
{
    const struct ibshift_step *step = walk->step;
    bool is_copy = step->kind == IBSHIFT_STEP_COPY;
    int rc = 0;

    for (uint32_t i = 0; i < step->count && rc == 0; i++) {
        uint32_t to, from;

        (void)ibshift_step_run(step, i, &to, &from);
        if (is_copy && trace_of(walk, step->buf, to) == trace_of(walk, step->src, from)) {
            continue; /* onto itself: it is skipped */
        }
        rc = read_block(walk, step->src, from);
        if (rc == 0 && !is_copy) {
            rc = read_block(walk, step->with, step->beside + i);
        }
        if (rc == 0 && step->kind == IBSHIFT_STEP_REDUCE_AFTER) {
            rc = write_block(walk, step->src, from);
        }
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

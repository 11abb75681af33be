#include "proof/check_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
    bool root = rank == state->plan->root;

    switch (state->alg->collective) {
    case IBSHIFT_ALLGATHER:
        layout->offset[IBSHIFT_SEND] = layout->offset[IBSHIFT_RECV] + rank;
        break;
    case IBSHIFT_GATHER:
        if (root) {
            layout->offset[IBSHIFT_SEND] = layout->offset[IBSHIFT_RECV] + rank;
        }
        break;
    case IBSHIFT_SCATTER:
        if (root) {
            layout->offset[IBSHIFT_RECV] = layout->offset[IBSHIFT_SEND] + rank;
        }
        break;
    case IBSHIFT_REDUCE:
        if (root) {
            layout->offset[IBSHIFT_SEND] = layout->offset[IBSHIFT_RECV];
        }
        break;
    case IBSHIFT_REDUCE_SCATTER:
        layout->offset[IBSHIFT_RECV] = layout->offset[IBSHIFT_SEND];
        break;
    case IBSHIFT_ALLTOALL:
    case IBSHIFT_ALLREDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        layout->offset[IBSHIFT_SEND] = layout->offset[IBSHIFT_RECV];
        break;
    default:
        break;
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

/* What block `block` of RECV must hold at last; count 0: nothing is asked. */
static struct check_cell expected(const struct check_state *state, uint32_t rank, uint32_t block)
{
    uint32_t ranks = state->plan->ranks, root = state->plan->root;

    switch (state->alg->collective) {
    case IBSHIFT_BCAST:
        return (struct check_cell){.block = block, .lo = root, .count = 1};
    case IBSHIFT_SCATTER:
        return (struct check_cell){.block = rank, .lo = root, .count = 1};
    case IBSHIFT_GATHER:
    case IBSHIFT_ALLGATHER:
        return (struct check_cell){.block = 0, .lo = block, .count = 1};
    case IBSHIFT_ALLTOALL:
        return (struct check_cell){.block = rank, .lo = block, .count = 1};
    case IBSHIFT_REDUCE_SCATTER:
        return (struct check_cell){.block = rank, .lo = 0, .count = ranks};
    case IBSHIFT_SCAN:
        return (struct check_cell){.block = block, .lo = 0, .count = rank + 1};
    case IBSHIFT_EXSCAN:
        return (struct check_cell){.block = block, .lo = 0, .count = rank};
    default:
        return (struct check_cell){.block = block, .lo = 0, .count = ranks};
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
            struct check_cell want = expected(state, rank, block);
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

bool check_cells_equal(const struct check_cell *a, const struct check_cell *b)
{
    return a->block == b->block && a->lo == b->lo && a->count == b->count && a->lost == b->lost &&
           a->sum == b->sum;
}

/* Whose size a block of a buffer has: a rank, or a piece of the vector. */
static uint32_t size_of_block(const struct check_state *state, uint32_t rank,
                              enum ibshift_buffer buf, uint32_t block)
{
    if (buf == IBSHIFT_TMP) {
        return ibshift_alg_tmp_block(state->alg, state->plan, rank, block);
    }
    switch (state->alg->collective) {
    case IBSHIFT_ALLGATHER:
    case IBSHIFT_GATHER:
        return buf == IBSHIFT_SEND ? rank : block;
    case IBSHIFT_SCATTER:
    case IBSHIFT_REDUCE_SCATTER:
        return buf == IBSHIFT_RECV ? rank : block;
    default:
        return block;
    }
}

static uint32_t size_of_cell(const struct check_state *state, const struct check_cell *cell)
{
    enum ibshift_collective collective = state->alg->collective;

    return collective == IBSHIFT_ALLGATHER || collective == IBSHIFT_GATHER ||
                   collective == IBSHIFT_ALLTOALL
               ? cell->lo
               : cell->block;
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
    if (state->check->sizes &&
        size_of_block(state, place->rank, step->buf, block) != size_of_cell(state, from)) {
        return check_fail(state, place, "%s block %u has the size of block %u but gets block %u",
                          buffer, block, size_of_block(state, place->rank, step->buf, block),
                          size_of_cell(state, from));
    }
    *to = *from;
    return 0;
}

/* left op right -> right's place. */
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

int check_cells_local(struct check_state *state, const struct check_place *place,
                      const struct ibshift_step *step)
{
    for (uint32_t i = 0; i < step->count; i++) {
        uint32_t block = step->first + i, source = step->from + i;
        struct check_cell *from, *to;
        int rc = 0;

        if (step->strided == IBSHIFT_STRIDED_TARGET) {
            block = ibshift_step_strided_block(step, step->first, i);
        } else if (step->strided == IBSHIFT_STRIDED_SOURCE) {
            source = ibshift_step_strided_block(step, step->from, i);
        }
        from = check_cell(state, place->rank, step->src, source);
        to = check_cell(state, place->rank, step->buf, block);
        if (step->kind == IBSHIFT_STEP_COPY) {
            rc = from == to ? 0 : check_cells_store(state, place, step, block, from);
        } else if (step->kind == IBSHIFT_STEP_REDUCE) {
            rc = reduce(state, place, from, to, to);
        } else {
            rc = reduce(state, place, to, from, to);
            from->lost = 1;
        }
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

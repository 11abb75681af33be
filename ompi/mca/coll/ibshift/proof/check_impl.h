/* Shared by the files of the checker only. */
#ifndef IBSHIFT_PROOF_CHECK_IMPL_H
#define IBSHIFT_PROOF_CHECK_IMPL_H

#include <stddef.h>

#include "plan/walk.h"

struct ibshift_check;
struct ibshift_check_result;

/* What a block holds: block `block` of the ranks from lo on, count of them in order; count 0:
 * nothing. */
struct check_cell {
    uint32_t block;
    uint32_t lo;
    uint32_t count;
    uint32_t lost; /* a reduction has used it up */
    uint64_t sum;  /* of check_rank_mark(): which ranks, when the order does not matter */
};

struct check_layout {
    size_t base; /* of the rank's first cell */
    uint32_t blocks[IBSHIFT_BUFFERS];
    uint32_t offset[IBSHIFT_BUFFERS]; /* from base; buffers that overlap share cells */
    uint32_t cells;
};

/* Whose block a cell is for. */
struct check_pair {
    uint32_t from, to;
};

struct check_state {
    const struct ibshift_alg *alg;
    const struct ibshift_plan *plan;
    const struct ibshift_check *check;
    struct ibshift_check_result *result;
    struct check_layout *layout;
    struct check_cell *cells;
    struct check_pair *pairs; /* of cells that are in TMP; NULL: the row names none */
    uint32_t cells_max;       /* of one rank */
};

/* Where in the plans a step is, for messages. */
struct check_place {
    uint32_t rank;
    uint32_t round;
    uint32_t index;
};

/* Writes the line and returns -EBADMSG. */
int check_fail(struct check_state *state, const struct check_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline struct check_cell *check_cell(const struct check_state *state, uint32_t rank,
                                            enum ibshift_buffer buf, uint32_t block)
{
    const struct check_layout *layout = &state->layout[rank];

    return &state->cells[layout->base + layout->offset[buf] + block];
}

extern const char *const check_buffer_name[IBSHIFT_BUFFERS];

/* What is there before and must be there after. */
int check_cells_layout(struct check_state *state);
void check_cells_fill(struct check_state *state);
int check_cells_expect(struct check_state *state);

/* What a block of RECV must hold at last; count 0: nothing is asked. */
struct check_cell check_expected(const struct check_state *state, uint32_t rank, uint32_t block);
/* Whose size a block of a buffer, or a cell, has: a rank's, or that of a piece of the vector. */
uint32_t check_size_of_block(const struct check_state *state, uint32_t rank,
                             enum ibshift_buffer buf, uint32_t block);
uint32_t check_size_of_cell(const struct check_state *state, const struct check_cell *cell);

/* After that of cells. */
int check_pairs_layout(struct check_state *state);

static inline bool check_cells_equal(const struct check_cell *a, const struct check_cell *b)
{
    return a->block == b->block && a->lo == b->lo && a->count == b->count && a->lost == b->lost &&
           a->sum == b->sum;
}

/* Stores a cell that came by wire or copy: once, and of the right size. */
int check_cells_store(struct check_state *state, const struct check_place *place,
                      const struct ibshift_step *step, uint32_t block,
                      const struct check_cell *from);
int check_cells_local(struct check_state *state, const struct check_place *place,
                      const struct ibshift_step *step);

/* Every rank's plan by itself. */
int check_order_all(struct check_state *state);

#endif

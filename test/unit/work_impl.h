#ifndef TEST_UNIT_WORK_IMPL_H
#define TEST_UNIT_WORK_IMPL_H

/* What work.c and work_right.c share: sizes, and what is in the blocks. */

#include <string.h>

#include "graphs.h"
#include "world.h"

enum { ELEMENT = 8, UNTOUCHED = 0xee };

/* A reduction that is associative but not commutative: x -> a x + b, composed. */
struct affine {
    uint32_t a, b;
};
static_assert(sizeof(struct affine) == ELEMENT, "one element");

static inline struct affine compose(struct affine left, struct affine right)
{
    return (struct affine){left.a * right.a, left.a * right.b + left.b};
}

static inline struct affine add(struct affine left, struct affine right)
{
    return (struct affine){left.a + right.a, left.b + right.b};
}

static inline size_t vector_bytes(const struct work *work)
{
    return work->options.size * ELEMENT;
}

/* Of the block that goes from rank i to rank j. */
static inline size_t size_of(const struct work *work, uint32_t i, uint32_t j)
{
    return work->sizes[i * work->width + j];
}

static inline size_t *row_of(const struct work *work, uint32_t i)
{
    return &work->offsets[(size_t)i * (work->width + 1)];
}

static inline size_t *column_of(const struct work *work, uint32_t j)
{
    return &work->offsets[(size_t)(work->ranks + j) * (work->width + 1)];
}

static inline bool is_of_neighbors(const struct work *work)
{
    return ibshift_collective_is_of_neighbors(work->options.alg->collective);
}

static inline bool gathers_neighbors(const struct work *work)
{
    return work->options.alg->collective == IBSHIFT_NEIGHBOR_ALLGATHER;
}

static inline uint32_t blocks_of(const struct work *work, uint32_t rank, enum ibshift_buffer buf)
{
    return ibshift_alg_blocks(work->options.alg, &work->options.plan, rank, buf);
}

/* Word k of what rank i has for rank j in this run. */
static inline uint64_t pattern(uint32_t seq, uint32_t i, uint32_t j, size_t k)
{
    uint64_t state = (uint64_t)seq << 48 ^ (uint64_t)i << 36 ^ (uint64_t)j << 24 ^ k;

    return world_random(&state);
}

#endif

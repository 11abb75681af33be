#ifndef TEST_UNIT_WORLD_H
#define TEST_UNIT_WORLD_H

/* All ranks of a job in one process: engines over a loop, and collectives whose results are known.
 */

#include "exec/engine.h"
#include "exec/pace/pace.h"
#include "net_loop.h"

uint64_t world_random(uint64_t *state); /* splitmix64 */
uint32_t world_random_below(uint64_t *state, uint32_t bound);

/* From IBSHIFT_TEST_SEED, or this one; says which on stdout. */
uint64_t world_seed(uint64_t otherwise);

struct world {
    uint32_t ranks;
    struct ibshift_loop *loop;
    struct ibshift_engine **engines;
};

struct world *world_create(const struct ibshift_loop_options *loop,
                           const struct ibshift_engine_options *engine);
void world_free(struct world *world); /* fails the test when the loop is not empty */

/* Progress of every rank in a random order, once. */
void world_turn(struct world *world, uint64_t *random);

struct work_options {
    const struct ibshift_alg *alg;
    struct ibshift_plan plan;
    uint32_t comm;
    uint32_t window;
    size_t size;      /* bytes of a block, or elements of 8 bytes of a vector, at most */
    bool is_variant;  /* blocks of different sizes, some of them zero */
    bool is_in_place; /* where the row allows it */
    bool is_shuffled; /* ranks are other peers */
    const struct ibshift_pace *paces; /* one a rank, or NULL */
};

/* One collective on all ranks of a world. */
struct work {
    struct work_options options;
    struct world *world;
    uint32_t ranks;
    uint32_t *peers;
    uint32_t width; /* blocks that a rank may have: one more than ranks */
    size_t *sizes;  /* bytes of the block from i to j, of neighbours of i's j-th: [i * width + j] */
    size_t *offsets; /* of rank i's row: [i * (width + 1) + j], then of its column */
    struct ibshift_op *ops;
    struct rank_memory {
        char *memory[IBSHIFT_BUFFERS]; /* NULL when the buffer is inside another one */
        size_t length[IBSHIFT_BUFFERS];
        size_t *tmp_offsets;
        struct ibshift_net_mem *mem[IBSHIFT_BUFFERS];
    } * rank;
};

struct work *work_create(struct world *world, const struct work_options *options, uint64_t *random);
void work_free(struct work *work);

/* Fills the buffers of one rank; and starts its op. seq is the same on all ranks. */
void work_fill(struct work *work, uint32_t rank, uint32_t seq);
void work_start(struct work *work, uint32_t rank, uint32_t seq);
bool work_is_done(struct work *work);
bool work_is_right(struct work *work, uint32_t rank); /* after a run that ended well */

#endif

#ifndef TEST_UNIT_WORLD_H
#define TEST_UNIT_WORLD_H

/* All ranks of a job in one process: engines over the node's net, and collectives whose results are known. */

#include "exec/engine.h"
#include "net/node/node.h"

uint64_t world_random(uint64_t *state); /* splitmix64 */
uint32_t world_random_below(uint64_t *state, uint32_t bound);

/* From IBSHIFT_TEST_SEED, or this one; says which on stdout. */
uint64_t world_seed(uint64_t otherwise);

enum { WORLD_MOST = 40 }; /* ranks */

struct world {
    uint32_t ranks;
    bool has_room;
    char folder[32];
    struct ibshift_net *nets[WORLD_MOST];
    struct ibshift_node_card cards[WORLD_MOST];
    struct ibshift_engine *engines[WORLD_MOST];
};

/* Rings of 8 KiB, so that messages wait for room, or of 64 KiB; a message of up to a quarter is short. */
struct world *world_create(uint32_t ranks, bool has_room,
                           const struct ibshift_engine_options *engine);
/* Fails the test when messages are left; after a collective that failed there may be some. */
void world_free(struct world *world, bool has_failed);

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

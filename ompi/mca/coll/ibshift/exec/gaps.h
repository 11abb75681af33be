#ifndef IBSHIFT_EXEC_GAPS_H
#define IBSHIFT_EXEC_GAPS_H

/*
 * Data with gaps, whose bytes only the caller can put together: it packs a block when its message starts, and unpacks one when its
 * message has come, while others fly. So a buffer needs as many places as messages are under way, and not one for each block.
 *
 * For plans without reductions that send each block of SEND once, by itself, and bring each of RECV once, by itself, which no
 * step reads. Where a place has room for all blocks (`place` is 0) RECV may be read, and written in ranges and again: then what is
 * saved is not memory but time.
 */

#include "exec/op.h"

struct ibshift_gaps_side {
    bool is_late; /* else the op's blocks have its bytes */
    char *at;     /* its places, one for each flight; of SEND another one, for local copies */
    size_t place; /* bytes of each; 0: a block is where the op's blocks say */
    uint32_t places;
};

struct ibshift_gaps {
    /* Under the engine's lock: a block's bytes to packed memory, or back. */
    void (*move)(void *context, enum ibshift_buffer buf, uint32_t block, char *packed, bool pack);
    void *context;
    struct ibshift_gaps_side sides[IBSHIFT_BUFFERS]; /* TMP has no gaps */
    /* The executor's: the block for which the net has had no room, and its flight, in whose place it is. */
    uint32_t packed, packed_flight;
};

/* Whether each block of the plan goes once, by itself. That no rank knows the others' sizes leaves it no other way. */
bool ibshift_gaps_go_once(const struct ibshift_alg *alg);

/* Before a run. */
void ibshift_gaps_begin(struct ibshift_gaps *gaps);

/* Where the step's message is to be, which begins with that flight; otherwise: if the buffer has no gaps. */
char *ibshift_gaps_place(struct ibshift_gaps *gaps, const struct ibshift_step *step,
                         uint32_t flight, char *otherwise);

/* Its message has come. */
void ibshift_gaps_received(const struct ibshift_op *op, const struct ibshift_step *step,
                           uint32_t flight);

/* A piece of a local copy, from the step's i-th block on, so many. */
void ibshift_gaps_copy(const struct ibshift_op *op, const struct ibshift_step *step, uint32_t i,
                       uint32_t count, const struct ibshift_piece *piece);

#endif

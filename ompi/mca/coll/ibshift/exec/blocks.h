#ifndef IBSHIFT_EXEC_BLOCKS_H
#define IBSHIFT_EXEC_BLOCKS_H

/* Where the blocks of a symbolic buffer are. All arrays belong to the caller. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "plan/alg.h"

enum ibshift_layout {
    IBSHIFT_UNIFORM,     /* block i is at i * unit and has unit bytes */
    IBSHIFT_PIECES,      /* a vector of `elements` of unit bytes, cut by ibshift_piece() */
    IBSHIFT_OFFSETS,     /* block i is offsets[i] up to offsets[i + 1], in units: no gaps */
    IBSHIFT_INT_COUNTS,  /* counts[i] units at displs[i] units, as in MPI's v-variants */
    IBSHIFT_SIZE_COUNTS, /* the same in the wide types of MPI 4 */
};

struct ibshift_blocks {
    char *base;
    size_t unit; /* bytes */
    enum ibshift_layout layout;
    uint32_t pieces; /* IBSHIFT_PIECES */
    union {
        uint64_t elements;
        const size_t *offsets;
        struct {
            const int *counts;
            const int *displs;
        };
        struct {
            const size_t *size_counts;
            const ptrdiff_t *size_displs;
        };
    };
};

/*
 * The bytes of blocks first .. first + count - 1 in one piece. -EINVAL when counts and
 * displacements leave gaps between them: then only one block at a time has an address.
 */
int ibshift_blocks_range(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                         char **address, size_t *length);

/* Bytes that a copy or reduction takes in one piece on all sides. */
struct ibshift_piece {
    char *to, *from;
    char *with; /* of a reduction */
    size_t length;
};

/* The next of a local step, from its block *i on, which moves on; -EMSGSIZE when the sides differ in size,
 * -EINVAL when a reduction has gaps. */
int ibshift_blocks_piece(const struct ibshift_blocks blocks[IBSHIFT_BUFFERS],
                         const struct ibshift_step *step, uint32_t *i, struct ibshift_piece *piece);

/*
 * TMP. The sizes of its blocks are those of the logical blocks (ibshift_alg_tmp_block), which
 * `sizes` describes: its base is not used. When they are all alike, no offsets are needed.
 * Returns how many offsets the caller must bring: 0, or one more than TMP has blocks.
 */
size_t ibshift_tmp_offsets(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                           uint32_t rank, const struct ibshift_blocks *sizes);

/* Lays TMP out and returns its bytes; the caller sets tmp->base. offsets: as many as said above. */
size_t ibshift_tmp_layout(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                          uint32_t rank, const struct ibshift_blocks *sizes, size_t *offsets,
                          struct ibshift_blocks *tmp);

/* Memory that grows, for one call after the other. */
struct ibshift_memory {
    void *at;
    size_t size;
};

static inline size_t ibshift_memory_align(size_t size)
{
    return (size + 63) / 64 * 64;
}

/* What was in it is lost when it grows; NULL: there is none. */
static inline void *ibshift_memory_reserve(struct ibshift_memory *memory, size_t size)
{
    if (size > memory->size) {
        free(memory->at);
        memory->at = aligned_alloc(64, ibshift_memory_align(size));
        memory->size = memory->at == NULL ? 0 : size;
    }
    return memory->at;
}

static inline void ibshift_memory_drop(struct ibshift_memory *memory)
{
    free(memory->at);
    *memory = (struct ibshift_memory){NULL, 0};
}

#endif

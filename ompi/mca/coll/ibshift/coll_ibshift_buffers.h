/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_BUFFERS_H
#define IBSHIFT_COLL_BUFFERS_H

#include "ompi_config.h"

#include "ompi/datatype/ompi_datatype.h"

#include "coll_ibshift_compat.h"
#include "library.h"

/*
 * One side of a collective: the blocks in the user's memory, described by MPI's arguments, and how
 * the plan sees them. What lies in one piece is used where it is; everything else is staged: packed
 * into scratch before each start, unpacked from there after the end; or, if it is late, block by block
 * by whom the call's messages are known to (coll_ibshift_gaps.c).
 */
enum ibshift_shape {
    IBSHIFT_SIDE_ABSENT, /* this rank has no such side */
    IBSHIFT_SIDE_BLOCKS, /* blocks of count elements, one after the other */
    IBSHIFT_SIDE_VECTOR, /* count elements that the plan cuts as it likes */
    IBSHIFT_SIDE_RUNS,   /* block i: counts[i] elements, one block after the other */
    IBSHIFT_SIDE_COUNTS, /* block i: counts[i] elements at displs[i] */
    IBSHIFT_SIDE_TYPES   /* alltoallw: the same with types[i], displs in bytes */
};

struct ibshift_side {
    enum ibshift_shape shape;
    char *user;
    struct ompi_datatype_t *type;
    size_t count;
    uint32_t blocks; /* not of a vector */
    bool is_operand; /* of a reduction: an element keeps its extent and is never split */
    ibshift_array_t counts, displs;
    bool has_places; /* displs are places (compat.h) */
    struct ompi_datatype_t *const *types;
    const bool
        *there;    /* of a grid: blocks of which nobody is have nothing; NULL: all have somebody */
    bool loads;    /* the user's data goes in before each start */
    bool stores;   /* what is there at the end goes to the user */
    bool is_apart; /* staged in any case */
    bool is_host;  /* no memory of a device, as the program says */

    bool is_staged;
    bool is_late;
    bool is_device;  /* the user's memory is a device's */
    char *scratch;   /* set by the owner before move() */
    size_t bytes;    /* of the blocks without gaps */
    size_t *offsets; /* set by the owner as well; of the blocks, in units or in scratch */
};

/* Blocks with sizes lie one behind the other, so that several can go in one message. */
bool ibshift_side_is_dense(const struct ibshift_side *side);

/* It would not be staged, as far as the arguments alone say; and of types for each block, none
 * is the program's. */
bool ibshift_side_is_whole(const struct ibshift_side *side);

/* Decides whether to stage. Sets bytes. */
void ibshift_side_prepare(struct ibshift_side *side);

/*
 * For a collective that goes on when its call has returned: the caller may free types then, and
 * programs free or change the arrays too. keep() copies the arrays to memory of keep_bytes(), a
 * multiple of 8, retains the types, and returns the memory behind; let_go() releases the types.
 */
size_t ibshift_side_keep_bytes(const struct ibshift_side *side);
char *ibshift_side_keep(struct ibshift_side *side, char *memory);
void ibshift_side_let_go(struct ibshift_side *side);

/* How many offsets the owner must bring; 0 for most. */
size_t ibshift_side_offsets(const struct ibshift_side *side);

/* The side as the plan sees it. pieces: of a vector. */
void ibshift_side_blocks(const struct ibshift_side *side, uint32_t pieces,
                         struct ibshift_blocks *blocks);

/* Bytes of each block, and where it begins behind the base of ibshift_side_blocks(); once that was called. */
void ibshift_side_places(const struct ibshift_side *side, size_t *lengths, ptrdiff_t *places);

/* The user's data to scratch, or back, for a side that is staged. */
void ibshift_side_move(const struct ibshift_side *side, bool pack);

/* Of a side with counts: a block's bytes; and those alone to memory of the library, or back. */
size_t ibshift_side_block_bytes(const struct ibshift_side *side, uint32_t block);
void ibshift_side_move_block(const struct ibshift_side *side, uint32_t block, char *packed,
                             bool pack);

/* Of one whose blocks are all in one piece, in memory of the host: what counts and displacements count. */
struct ibshift_side_units {
    char *base;
    size_t size;
    ptrdiff_t extent;
};
/* False: it is not so simple. */
bool ibshift_side_is_simple(const struct ibshift_side *side, struct ibshift_side_units *units);

/* Bytes from the user's pointer to the first byte that the type touches. */
static inline ptrdiff_t ibshift_type_lower_bound(const struct ompi_datatype_t *type)
{
    ptrdiff_t lower, extent;

    ompi_datatype_get_true_extent(type, &lower, &extent);
    return lower;
}

static inline ptrdiff_t ibshift_type_extent(const struct ompi_datatype_t *type)
{
    ptrdiff_t extent;

    ompi_datatype_type_extent(type, &extent);
    return extent;
}

static inline size_t ibshift_type_size(const struct ompi_datatype_t *type)
{
    size_t size;

    ompi_datatype_type_size(type, &size);
    return size;
}

#endif

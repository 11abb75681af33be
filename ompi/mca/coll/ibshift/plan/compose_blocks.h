/* For compose.c only: where the blocks of a composition of blocks lie. */
#ifndef IBSHIFT_PLAN_COMPOSE_BLOCKS_H
#define IBSHIFT_PLAN_COMPOSE_BLOCKS_H

#include "plan/composition.h"

/* A rank's view of its plan: what does not depend on the round. */
struct compose_view {
    const struct ibshift_composition *composition;
    const struct ibshift_plan *plan;
    uint32_t rank, node;
    uint32_t team; /* of blocks: the rank's, */
    bool leads;    /* and whether it leads it */
    uint32_t segments, leaders;
    uint32_t pieces; /* of a part */
};

/* A phase of one leader's part, as the rank takes part in it. */
struct compose_inner {
    const struct ibshift_phase *phase;
    struct ibshift_plan plan;
    uint32_t rank;
    uint32_t leader;
    uint32_t rounds; /* 0: it does not */
    uint32_t scale;  /* blocks of ours that one of its blocks is */
};

/* Some blocks of one of our buffers. */
struct compose_place {
    enum ibshift_buffer buf;
    uint32_t first;
    uint32_t count;
};

/* Blocks of TMP that are no inner plan's. */
uint32_t compose_blocks_held(const struct compose_view *view);
/* The rank whose block's size such a block has. */
uint32_t compose_blocks_held_rank(const struct compose_view *view, uint32_t slot);

/* Our blocks that so many first ones of an inner plan's TMP are. */
uint32_t compose_blocks_tmp(const struct compose_view *view, const struct compose_inner *inner,
                            uint32_t slots);
/* The rank whose block's size one of these has. */
uint32_t compose_blocks_tmp_rank(const struct compose_view *view, const struct compose_inner *inner,
                                 uint32_t slot);

/* Where blocks of an inner plan's SEND or RECV lie. */
struct compose_place compose_blocks_place(const struct compose_view *view,
                                          const struct compose_inner *inner,
                                          enum ibshift_buffer buf, uint32_t first, uint32_t count);

/* The phase without an algorithm: between the order of ranks and that of teams. */
uint32_t compose_blocks_sort_rounds(const struct compose_view *view);
uint32_t compose_blocks_sort(const struct compose_view *view, uint32_t round, uint32_t before,
                             struct ibshift_step *out);

#endif

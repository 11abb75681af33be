/* For compose.c only: who takes part in which phase, and where the blocks of inner plans lie. */
#ifndef IBSHIFT_PLAN_COMPOSE_PARTS_H
#define IBSHIFT_PLAN_COMPOSE_PARTS_H

#include "plan/composition.h"

/* A rank's view of its plan: what does not depend on the round. */
struct compose_view {
    const struct ibshift_composition *composition;
    const struct ibshift_plan *plan;
    uint32_t rank, node, place;
    uint32_t team; /* of blocks: the rank's, */
    bool leads;    /* and whether it leads it */
    uint32_t segments, leaders;
    uint32_t pieces; /* of a part */
};

#define COMPOSE_UNKNOWN UINT32_MAX

/* A phase of one leader's part, as the rank takes part in it. */
struct compose_inner {
    const struct ibshift_phase *phase;
    struct ibshift_plan plan;
    uint32_t rank;
    uint32_t leader;
    bool takes_part;
    uint32_t scale; /* blocks of ours that one of its blocks is */
    /* Of one segment, in the plan: */
    uint32_t segment;
    uint32_t before; /* rounds of the waves before its wave */
    uint32_t start;  /* its first round */
    uint32_t tags;   /* its first tag */
    uint32_t tmp;    /* its first block of TMP, once it was asked for */
};

/* Some blocks of one of our buffers. */
struct compose_place {
    enum ibshift_buffer buf;
    uint32_t first;
    uint32_t count;
};

static inline bool compose_is_among_all(const struct ibshift_composition *composition)
{
    return composition->phase[0].among == AMONG_ALL;
}

static inline uint32_t compose_first_block(const struct compose_view *view, uint32_t segment,
                                           uint32_t leader)
{
    return (segment * view->leaders + leader) * view->pieces;
}

struct compose_view compose_view(const struct ibshift_composition *composition,
                                 const struct ibshift_plan *plan, uint32_t rank);
void compose_inner(const struct compose_view *view, uint32_t phase, uint32_t leader,
                   struct compose_inner *inner);

/* Blocks of TMP that hold what passes from phase to phase: of blocks those in the order of teams, of a scan
 * what goes before a rank's own sum, and that sum; else what is on its way to the root. */
uint32_t compose_held(const struct compose_view *view);
/* Those that the inner plan wants. */
uint32_t compose_tmp(const struct compose_view *view, const struct compose_inner *inner);

/* A rank of the inner plan in ours, unless it is among all. */
uint32_t compose_rank(const struct compose_view *view, const struct compose_inner *inner,
                      uint32_t rank);

/* Where the inner plan's TMP begins. */
uint32_t compose_first_tmp(const struct compose_view *view, struct compose_inner *inner);

/* Of a composition of blocks: where blocks of the inner plan's buffers lie in ours. */
struct compose_place compose_place(const struct compose_view *view, struct compose_inner *inner,
                                   enum ibshift_buffer buf, uint32_t first, uint32_t count);

/* Copies between the order of ranks and that of teams: one for each team of each node where its ranks are
 * evenly spaced, else for each rank. */
uint32_t compose_sort_copies(const struct compose_view *view);
/* Where a team on a node begins in the order of teams. */
uint32_t compose_node_start(const struct compose_view *view, uint32_t node, uint32_t leader);

#endif

/*
 * Plans of plans: a row whose steps are those of other rows, each among some of the ranks, on some
 * of the data. What comes out is one plan like any other: its users see no difference.
 *
 * A composition is a list of phases. In a phase the ranks of each node, or one leader of each node,
 * run a row among themselves; emit() of that row sees 0..P-1 as always. The vector is cut into
 * parts, one for each leader of a node and segment, and each part goes through all phases.
 *
 *   waves, 3 phases, 2 segments, 1 leader          part 0: phase 0  phase 1  phase 2
 *                                                  part 1:          phase 0  phase 1  phase 2
 *   wave                                                   0        1        2        3
 *
 * Steps of a wave need the receives, and the ones that write drain the sends, of all waves before
 * it on the same rank. Within a wave later phases come first: others wait for them. Part of a
 * phase's tag is the number of its wave, phase and leader.
 */
#ifndef IBSHIFT_PLAN_COMPOSE_H
#define IBSHIFT_PLAN_COMPOSE_H

#include "plan/alg.h"
#include "plan/nodes.h"

enum { IBSHIFT_PHASES_MAX = 4 };

/* Among whom. */
enum ibshift_among {
    IBSHIFT_AMONG_NODE,   /* the ranks of each node; the root is the part's leader */
    IBSHIFT_AMONG_LEADERS /* the part's leader of each node; the root is that of the root's node */
};

/* Where the inner plan's SEND or RECV lies: the part's blocks of a buffer. */
enum ibshift_where {
    IBSHIFT_NOWHERE,   /* no data at all: its messages are empty, its local steps left out */
    IBSHIFT_AT_SEND,   /* SEND */
    IBSHIFT_AT_RECV,   /* RECV */
    IBSHIFT_AT_RESULT, /* RECV on the root, TMP on other leaders */
};

struct ibshift_phase {
    const struct ibshift_alg *alg; /* of AMONG_NODE: one that cuts no vector into pieces */
    enum ibshift_among among;
    enum ibshift_where send, recv;
};

struct ibshift_composition {
    bool is_rooted; /* the root leads its node */
    bool is_cut;    /* the vector goes in parts; else plan->segments and leaders are not read */
    uint32_t count;
    struct ibshift_phase phase[IBSHIFT_PHASES_MAX];
};

/* The functions of a row, for one composition. */
uint32_t ibshift_compose_rounds(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan, uint32_t rank);
uint32_t ibshift_compose_emit(const struct ibshift_composition *composition,
                              const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out);
uint32_t ibshift_compose_pieces(const struct ibshift_composition *composition,
                                const struct ibshift_plan *plan);
uint32_t ibshift_compose_tmp(const struct ibshift_composition *composition,
                             const struct ibshift_plan *plan, uint32_t rank);
uint32_t ibshift_compose_tmp_block(const struct ibshift_composition *composition,
                                   const struct ibshift_plan *plan, uint32_t rank, uint32_t slot);

/* More than any tag of a composed plan, whatever its phases. */
uint64_t ibshift_compose_tags(const struct ibshift_plan *plan);

/* Defines rounds, emit, pieces, tmp and tmp_block of the composition of that name. */
#define IBSHIFT_COMPOSED(composition)                                                              \
    static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)                         \
    {                                                                                              \
        return ibshift_compose_rounds(&(composition), plan, rank);                                 \
    }                                                                                              \
    static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,           \
                         struct ibshift_step *out)                                                 \
    {                                                                                              \
        return ibshift_compose_emit(&(composition), plan, rank, round, out);                       \
    }                                                                                              \
    static uint32_t pieces(const struct ibshift_plan *plan)                                        \
    {                                                                                              \
        return ibshift_compose_pieces(&(composition), plan);                                       \
    }                                                                                              \
    static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)                            \
    {                                                                                              \
        return ibshift_compose_tmp(&(composition), plan, rank);                                    \
    }                                                                                              \
    static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)       \
    {                                                                                              \
        return ibshift_compose_tmp_block(&(composition), plan, rank, slot);                        \
    }

#endif

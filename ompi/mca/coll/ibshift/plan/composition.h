/*
 * Plans of plans: a row whose steps are those of other rows, each among some of the ranks, on some
 * of the data. What comes out is one plan like any other: its users see no difference.
 *
 * A composition is a list of phases. In a phase the ranks of each node, or one leader of each node,
 * run a row among themselves; emit() of that row sees 0..P-1 as always. A vector is cut into parts,
 * one for each leader of a node and segment, and each part goes through all phases.
 *
 *   waves, 3 phases, 2 segments, 1 leader          part 0: phase 0  phase 1  phase 2
 *                                                  part 1:          phase 0  phase 1  phase 2
 *   wave                                                   0        1        2        3
 *
 * Steps of a wave need the receives, and the ones that write drain the sends, of all waves before
 * it on the same rank. Within a wave later phases come first: others wait for them. Part of a
 * phase's tag is the number of its wave, phase and leader.
 *
 * Of scans the last rank leads its node, for it has the sum of all; a last phase without an algorithm
 * puts the sum of the nodes before it before what a rank has.
 *
 * Where a block is what one rank gives or gets, a part is the blocks of a leader's team on all nodes
 * (plan/teams.h), and a block between leaders those of a team on one node. Where the order of teams
 * is not that of ranks, a phase without an algorithm copies the one into the other.
 */
#ifndef IBSHIFT_PLAN_COMPOSITION_H
#define IBSHIFT_PLAN_COMPOSITION_H

#include "plan/alg.h"
#include "plan/nodes.h"

enum { IBSHIFT_PHASES_MAX = 4 };

/* Among whom. */
enum ibshift_among {
    IBSHIFT_AMONG_NODE,    /* the ranks of each node; the root is the part's leader */
    IBSHIFT_AMONG_TEAM,    /* the part's team of each node, of blocks only; likewise */
    IBSHIFT_AMONG_LEADERS, /* the part's leader of each node; the root is that of the root's node */
};

/* Where the inner plan's SEND or RECV lies: the part's blocks of a buffer. */
enum ibshift_where {
    IBSHIFT_NOWHERE,   /* no data at all: its messages are empty, its local steps left out */
    IBSHIFT_AT_SEND,   /* SEND; of blocks: the rank's own */
    IBSHIFT_AT_RECV,   /* RECV; likewise */
    IBSHIFT_AT_RESULT, /* RECV on the root, TMP on other leaders */
    /* Of scans, in TMP: */
    IBSHIFT_AT_BEFORE, /* the sum of the nodes before the rank's; the first node has none */
    IBSHIFT_AT_OWN,    /* the sum of the node's ranks up to this one */
    /* Of blocks, in the order of teams: */
    IBSHIFT_AT_ALL,  /* those of all ranks, in the buffer of the collective that has them, or TMP */
    IBSHIFT_AT_PART, /* the part's, in the leader's TMP */
    IBSHIFT_AT_TEAM, /* the team's on the node: the root has all there, another leader TMP */
};

/*
 * alg of AMONG_NODE is one that cuts no vector into pieces; of blocks, none has strided copies, and
 * one whose SEND lies where its RECV does is right in place. NULL: all blocks change their order,
 * or the results of a scan are put together.
 */
struct ibshift_phase {
    const struct ibshift_alg *alg;
    enum ibshift_among among;
    enum ibshift_where send, recv;
};

struct ibshift_composition {
    bool is_rooted; /* the root leads its node */
    bool is_cut;    /* the vector goes in parts; else plan->segments and leaders are not read */
    bool is_prefix, is_exclusive; /* scans; exscan */
    bool is_blocks;               /* there is no vector, but the blocks of ranks: */
    enum ibshift_buffer all;      /* the collective has all of them in that buffer */
    uint32_t count;
    struct ibshift_phase phase[IBSHIFT_PHASES_MAX];
};

#endif

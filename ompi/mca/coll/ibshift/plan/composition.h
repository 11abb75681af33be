/*
 * Plans of plans: a row whose steps are those of other rows, each among some of the ranks, on some
 * of the data. What comes out is one plan like any other: its users see no difference.
 *
 * A composition is a list of phases. In a phase the ranks of each node, or one leader of each node, or all
 * ranks, run a row among themselves; emit() of that row sees 0..P-1 as always. A vector is cut into parts,
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
 *
 * Among all ranks there are two phases and one part. A vector is cut into a piece for each rank; so a
 * block of the inner rows is a piece of ours, and an inner vector all of them:
 *
 *   bcast           scatter, allgather            RECV | piece of rank 0 | of 1 | of 2 | ...
 *   reduce          reduce_scatter, gather
 *   allreduce       reduce_scatter, allgather
 *   reduce_scatter  reduce to rank 0, scatter
 */
#ifndef IBSHIFT_PLAN_COMPOSITION_H
#define IBSHIFT_PLAN_COMPOSITION_H

#include "plan/alg.h"
#include "plan/nodes.h"

enum { IBSHIFT_PHASES_MAX = 4 };

enum among {
    AMONG_NODE,    /* the ranks of each node; the root is the part's leader */
    AMONG_TEAM,    /* the part's team of each node, of blocks only; likewise */
    AMONG_LEADERS, /* the part's leader of each node; the root is that of the root's node */
    AMONG_ALL,     /* all phases are, or none */
};

/* Where the inner plan's SEND or RECV lies: the part's blocks of a buffer. */
enum where {
    AT_NOTHING, /* no data at all: its messages are empty, its local steps left out */
    AT_SEND,    /* SEND; of blocks: the rank's own */
    AT_RECV,    /* RECV; likewise */
    AT_RESULT,  /* RECV on the root, TMP on other leaders */
    /* Of scans, in TMP: */
    AT_BEFORE, /* the sum of the nodes before the rank's; the first node has none */
    AT_OWN,    /* the sum of the node's ranks up to this one */
    /* Of blocks, in the order of teams: */
    AT_ALL,  /* those of all ranks, in the buffer of the collective that has them, or TMP */
    AT_PART, /* the part's, in the leader's TMP */
    AT_TEAM, /* the team's on the node: the root has all there, another leader TMP */
    /* Among all ranks: */
    AT_PIECE, /* the rank's own block of RECV */
    AT_KEPT,  /* that on the root, on others one block of TMP */
    AT_ROOT,  /* a block of TMP for each rank, on the root */
};

/*
 * alg of AMONG_NODE is one that cuts no vector into pieces; of blocks, none has strided copies, and
 * one whose SEND lies where its RECV does is right in place. NULL: all blocks change their order,
 * or the results of a scan are put together.
 */
struct ibshift_phase {
    const struct ibshift_alg *alg;
    enum among among;
    enum where send, recv;
    uint32_t radix; /* 0: the plan's */
};

struct ibshift_composition {
    bool is_rooted; /* the root leads its node */
    bool is_cut;    /* the vector goes in parts; else plan->segments and leaders are not read */
    bool is_prefix, is_exclusive; /* scans; exscan */
    bool is_blocks;               /* there is no vector, but the blocks of ranks: */
    enum ibshift_buffer all;      /* the collective has all of them in that buffer */
    /* The root has all before the second of two phases among all ranks begins, in RECV, which it may not
     * write. With is_direct, that row receives into RECV only, and nobody sends to the root. */
    bool root_has_all, is_direct;
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

#endif

/*
 * Two binary trees at once, whose inner ranks are the leaves of each other: even pieces go down the one and odd pieces
 * down the other, so that each rank sends about as much as it gets, and both ways of its cable are used.
 *
 * Reference: Sanders, P., Speck, J., Traeff, J. L.: Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan. Parallel Computing 35, 2009.
 *
 * In a tree, node 0 is the root, and of the others the bit that is set lowest says the height: odd ones are leaves. The
 * second tree has its nodes in reverse, or moved on by one, whichever makes odd ones even:
 *
 *   first tree, ranks behind the root     4              second tree     1
 *                                       2   6                          3   5
 *                                      1 3 5                          2 4   6
 */
#include "plan/alg_emit.h"

enum { NOBODY = -1 };

/* A rank's place in a tree. */
struct place {
    int64_t parent, children[2]; /* as ranks behind the root */
};

static int64_t turned(uint32_t node, uint32_t ranks, bool is_back)
{
    uint32_t others = ranks - 1;

    return node == 0         ? 0
           : others % 2 == 0 ? others + 1 - node
           : is_back         ? (node == 1 ? others : node - 1)
                             : node % others + 1;
}

/* The second child of a node whose bit is twice `step`: of a tree that is cut off, the nearest one that is there. */
static int64_t second_child(uint32_t node, uint32_t step, uint32_t ranks)
{
    while (step > 0 && node + step >= ranks) {
        step /= 2;
    }
    return step > 0 ? (int64_t)(node + step) : NOBODY;
}

static struct place place_of(uint32_t behind, uint32_t ranks, uint32_t tree)
{
    uint32_t node = tree == 0 ? behind : (uint32_t)turned(behind, ranks, false), bit = node & -node;
    uint32_t above = (node ^ bit) | bit << 1;
    struct place place = {above < ranks ? above : node ^ bit, {NOBODY, NOBODY}};

    if (node == 0) {
        place.parent = NOBODY;
        place.children[0] = ranks > 1 ? (int64_t)emit_power_below(ranks - 1) : NOBODY;
    } else if (bit > 1) {
        place.children[0] = node - bit / 2;
        place.children[1] = second_child(node, bit / 2, ranks);
    }
    for (int i = 0; tree == 1 && i < 2; i++) {
        place.children[i] =
            place.children[i] < 0 ? NOBODY : turned((uint32_t)place.children[i], ranks, true);
    }
    place.parent =
        tree == 1 && place.parent > 0 ? turned((uint32_t)place.parent, ranks, true) : place.parent;
    return place;
}

/* What a rank passes on goes by `own`. What it gets as a leaf is so many pieces behind, for those wait for nothing. */
struct role {
    uint32_t behind, own, lag, pieces[2]; /* pieces: of own, of the other tree */
    struct place place[2];
};

static struct role role_of(const struct ibshift_plan *plan, uint32_t rank)
{
    struct role role = {.behind = emit_sub(rank, plan->root, plan->ranks)};

    for (uint32_t tree = 0; tree < 2; tree++) {
        role.place[tree] = place_of(role.behind, plan->ranks, tree);
    }
    role.own = role.place[1].children[0] >= 0;
    role.pieces[0] = (plan->segments + 1 - role.own) / 2;
    role.pieces[1] = plan->segments - role.pieces[0];
    role.lag = plan->ranks > 2 ? emit_digits(plan->ranks, 2) + 1 : 0;
    return role;
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    struct role role = role_of(plan, rank);
    uint32_t passes = role.pieces[0] + 1, ends = role.pieces[1] + role.lag;

    return plan->ranks == 1 ? 0 : role.behind == 0 ? plan->segments : passes > ends ? passes : ends;
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct role role = role_of(plan, rank);
    uint32_t sent = role.behind == 0 ? round : 2 * (round - 1) + role.own;
    struct ibshift_step *step = out;

    for (uint32_t other = 0; role.behind > 0 && other < 2; other++) {
        uint32_t number = round - other * role.lag, tree = role.own ^ other;
        uint32_t piece = 2 * number + tree;

        if (number < role.pieces[other]) { /* before the first one it is huge */
            step = emit_recv(step,
                             emit_add((uint32_t)role.place[tree].parent, plan->root, plan->ranks),
                             emit_blocks(IBSHIFT_RECV, piece, 1), piece, 0, 0);
        }
    }
    for (int i = 0; i < 2 && (role.behind == 0 || round - 1 < role.pieces[0]); i++) {
        int64_t child = role.place[role.behind == 0 ? round % 2 : role.own].children[i];

        if (child >= 0) {
            step =
                emit_send(step, emit_add((uint32_t)child, plan->root, plan->ranks),
                          emit_blocks(IBSHIFT_RECV, sent, 1), sent, role.behind == 0 ? 0 : round);
        }
    }
    return (uint32_t)(step - out);
}

const struct ibshift_alg ibshift_alg_bcast_two_trees = {
    .collective = IBSHIFT_BCAST,
    .name = "two_trees",
    .doc = "pieces in turn down two binary trees, whose inner ranks are the other's leaves",
    .cost = "S + 2 log2 P messages of n/S bytes, about n bytes from each rank",
    .flags = IBSHIFT_ALG_SEGMENTS | IBSHIFT_ALG_DEEP,
    .rounds = rounds,
    .emit = emit,
    .pieces = emit_piece_a_segment,
};

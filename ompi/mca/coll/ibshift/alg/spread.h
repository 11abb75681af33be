/*
 * Scatter and gather over a tree that cuts a range of nodes again and again. A node holds a range,
 * itself first; in each round it hands subranges to children and keeps the rest, until it holds
 * itself alone.
 *
 * Nodes are ranks, except that the root and rank 0 have changed places: node 0 is the root. A node
 * keeps its range in TMP (the root in SEND or RECV, where the block of rank 0 is not in its node's
 * place: such a range goes in up to three parts). Gather is scatter backwards.
 */
#ifndef IBSHIFT_ALG_SPREAD_H
#define IBSHIFT_ALG_SPREAD_H

#include "plan/alg_emit.h"

/* How a range of n > 1 nodes is cut: `children` subranges, the first `larger` of size + 1 nodes,
 * the others of size. */
struct spread_cut {
    uint32_t children;
    uint32_t size;
    uint32_t larger;
    bool at_end; /* the subranges are the end of the range; else they follow the node itself */
};

typedef struct spread_cut (*spread_cut_fn)(const struct ibshift_plan *plan, uint32_t nodes);

/* A node and what it holds at the beginning of a round: itself and (start, start + nodes). */
struct spread_seat {
    uint32_t parent;
    uint32_t start;
    uint32_t nodes;
    uint32_t round; /* of the whole tree */
};

static inline uint32_t spread_exchange(uint32_t v, uint32_t root)
{
    return v == 0 ? root : v == root ? 0 : v;
}

static inline uint32_t spread_first_child(struct spread_seat seat, struct spread_cut cut)
{
    return cut.at_end ? seat.start + seat.nodes - cut.children * cut.size - cut.larger
                      : seat.start + 1;
}

static inline struct spread_seat spread_next_round(struct spread_seat seat, struct spread_cut cut)
{
    uint32_t given = cut.children * cut.size + cut.larger;

    seat.start += cut.at_end ? 0 : given;
    seat.nodes -= given;
    seat.round++;
    return seat;
}

/* How far into its subrange the node is that lies `offset` behind the first child; *size: of that
 * subrange. */
static inline uint32_t spread_within(struct spread_cut cut, uint32_t offset, uint32_t *size)
{
    uint32_t head = cut.larger * (cut.size + 1);

    if (cut.children == 1) {
        *size = cut.size + cut.larger;
        return offset;
    }
    *size = cut.size + (offset < head);
    return (offset < head ? offset : offset - head) % *size;
}

/* The seat of node v when it has just got its range: from the root down, one cut at a time.
 * `place` is v's among what the node on the way holds: 0 the node itself. */
static inline struct spread_seat spread_find(const struct ibshift_plan *plan, uint32_t v,
                                             spread_cut_fn cut_of)
{
    struct spread_seat seat = {0, v, plan->ranks, 0};
    uint32_t node = 0, place = v;

    for (; place != 0; seat.round++) {
        struct spread_cut cut = cut_of(plan, seat.nodes);
        uint32_t given = cut.children * cut.size + cut.larger;
        uint32_t offset = place - (cut.at_end ? seat.nodes - given : 1);

        if (offset >= given) { /* v is not among the children's */
            seat.nodes -= given;
            place -= cut.at_end ? 0 : given;
        } else {
            seat.parent = node;
            place = spread_within(cut, offset, &seat.nodes);
            node = v - place;
        }
    }
    return seat;
}

/* In how many rounds a node with that many nodes has children. */
static inline uint32_t spread_rounds(const struct ibshift_plan *plan, uint32_t nodes,
                                     spread_cut_fn cut_of)
{
    uint32_t count = 0;

    for (; nodes > 1; count++) {
        struct spread_cut cut = cut_of(plan, nodes);

        nodes -= cut.children * cut.size + cut.larger;
    }
    return count;
}

/* What node v and one of its children exchange; the side that emits has node x at block x - base of
 * buf. */
struct spread_link {
    uint32_t peer;
    uint32_t tag;
    uint32_t need;
    bool sends;
    enum ibshift_buffer buf;
    uint32_t base;
    uint32_t hole; /* the node whose block is elsewhere: it goes as a part of its own */
    uint32_t hole_block;
};

static inline struct ibshift_step *spread_part(struct ibshift_step *step,
                                               const struct spread_link *link, uint32_t first,
                                               uint32_t count, uint8_t part)
{
    struct emit_range range = emit_blocks(link->buf, first, count);

    if (count == 0) {
        return step;
    }
    step = link->sends ? emit_send(step, link->peer, range, link->tag, link->need)
                       : emit_recv(step, link->peer, range, link->tag, 0, 0);
    return emit_part(step, part);
}

/* The nodes [first, end) over one link. */
static inline struct ibshift_step *spread_range(struct ibshift_step *step,
                                                const struct spread_link *link, uint32_t first,
                                                uint32_t end)
{
    if (link->hole < first || link->hole >= end) {
        return spread_part(step, link, first - link->base, end - first, 0);
    }
    step = spread_part(step, link, first - link->base, link->hole - first, 0);
    step = spread_part(step, link, link->hole_block, 1, 1);
    return spread_part(step, link, link->hole + 1 - link->base, end - link->hole - 1, 2);
}

static inline uint32_t spread_hole(const struct ibshift_plan *plan, uint32_t parent)
{
    return parent == 0 && plan->root != 0 ? plan->root : UINT32_MAX;
}

/* Between v and all its children of one round; the root's range is in buf. */
static inline struct ibshift_step *spread_children(const struct ibshift_plan *plan,
                                                   struct ibshift_step *step, uint32_t v,
                                                   struct spread_seat seat, struct spread_cut cut,
                                                   struct spread_link link)
{
    uint32_t child = spread_first_child(seat, cut);

    link.buf = v == 0 ? link.buf : IBSHIFT_TMP;
    link.base = v;
    link.hole = spread_hole(plan, v);
    link.hole_block = 0;
    for (uint32_t j = 0; j < cut.children; j++) {
        uint32_t end = child + cut.size + (j < cut.larger);

        link.peer = spread_exchange(child, plan->root);
        step = spread_range(step, &link, child, end);
        child = end;
    }
    return step;
}

/* Between v and its parent; a leaf has its block in buf. */
static inline struct ibshift_step *spread_up(const struct ibshift_plan *plan,
                                             struct ibshift_step *step, uint32_t v,
                                             struct spread_seat seat, struct spread_link link)
{
    link.peer = spread_exchange(seat.parent, plan->root);
    link.buf = seat.nodes > 1 ? IBSHIFT_TMP : link.buf;
    link.base = v;
    link.hole = spread_hole(plan, seat.parent);
    link.hole_block = link.hole - v;
    return spread_range(step, &link, v, v + seat.nodes);
}

static inline struct spread_seat spread_at(const struct ibshift_plan *plan, struct spread_seat seat,
                                           uint32_t round, spread_cut_fn cut_of)
{
    for (uint32_t r = 0; r < round; r++) {
        seat = spread_next_round(seat, cut_of(plan, seat.nodes));
    }
    return seat;
}

/* Rounds of one rank: its rounds with children, one with its parent; a root alone still copies. */
static inline uint32_t spread_rank_rounds(const struct ibshift_plan *plan, uint32_t rank,
                                          spread_cut_fn cut_of)
{
    uint32_t v = spread_exchange(rank, plan->root);
    uint32_t rounds = spread_rounds(plan, spread_find(plan, v, cut_of).nodes, cut_of);

    return rounds + (v != 0 || rounds == 0);
}

static inline uint32_t spread_tmp(const struct ibshift_plan *plan, uint32_t rank,
                                  spread_cut_fn cut_of)
{
    uint32_t v = spread_exchange(rank, plan->root), nodes = spread_find(plan, v, cut_of).nodes;

    return v != 0 && nodes > 1 ? nodes : 0;
}

static inline uint32_t spread_tmp_block(const struct ibshift_plan *plan, uint32_t rank,
                                        uint32_t slot)
{
    return spread_exchange(spread_exchange(rank, plan->root) + slot, plan->root);
}

/* A node hands on in rounds 1, 2, ... what it got in round 0; the root begins in round 0. */
static inline uint32_t spread_scatter(const struct ibshift_plan *plan, uint32_t rank,
                                      uint32_t round, struct ibshift_step *out,
                                      spread_cut_fn cut_of)
{
    uint32_t v = spread_exchange(rank, plan->root);
    struct spread_seat seat = spread_find(plan, v, cut_of);
    struct spread_link link = {.sends = true, .need = v != 0, .buf = IBSHIFT_SEND};
    struct emit_range own = emit_blocks(IBSHIFT_RECV, 0, 1);
    struct ibshift_step *step = out;

    if (v != 0 && round == 0) {
        link = (struct spread_link){.tag = seat.round - 1, .buf = IBSHIFT_RECV};
        return (uint32_t)(spread_up(plan, step, v, seat, link) - out);
    }
    seat = spread_at(plan, seat, round - (v != 0), cut_of);
    if (seat.nodes > 1) {
        struct spread_cut cut = cut_of(plan, seat.nodes);

        link.tag = seat.round;
        step = spread_children(plan, step, v, seat, cut, link);
        seat = spread_next_round(seat, cut);
    }
    if (seat.nodes == 1) {
        step = v == 0 ? emit_copy(step, own, IBSHIFT_SEND, rank, 0, 0)
                      : emit_copy(step, own, IBSHIFT_TMP, 0, 1, 0);
    }
    return (uint32_t)(step - out);
}

/* Scatter backwards: the children of the last round come first, the parent gets all in the end. */
static inline uint32_t spread_gather(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                                     struct ibshift_step *out, spread_cut_fn cut_of)
{
    uint32_t v = spread_exchange(rank, plan->root),
             total = spread_rounds(plan, plan->ranks, cut_of);
    struct spread_seat seat = spread_find(plan, v, cut_of);
    uint32_t rounds = spread_rounds(plan, seat.nodes, cut_of);
    struct spread_link link = {.buf = IBSHIFT_RECV};
    struct ibshift_step *step = out;

    if (v != 0 && round == rounds) {
        link = (struct spread_link){.sends = true, .need = rounds, .buf = IBSHIFT_SEND};
        link.tag = total > seat.round ? total - seat.round : 0;
        return (uint32_t)(spread_up(plan, step, v, seat, link) - out);
    }
    if (round == 0) {
        step = v == 0 ? emit_copy(step, emit_blocks(IBSHIFT_RECV, rank, 1), IBSHIFT_SEND, 0, 0, 0)
                      : emit_copy(step, emit_blocks(IBSHIFT_TMP, 0, 1), IBSHIFT_SEND, 0, 0, 0);
    }
    if (seat.nodes > 1) {
        seat = spread_at(plan, seat, rounds - 1 - round, cut_of);
        link.tag = total > seat.round + 1 ? total - seat.round - 1 : 0;
        step = spread_children(plan, step, v, seat, cut_of(plan, seat.nodes), link);
    }
    return (uint32_t)(step - out);
}

#endif

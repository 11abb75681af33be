/*
 * A plan of two plans: all ranks run one row, then another on what it left. Each rank goes on as
 * soon as its own part of the first is done. A vector is cut into a piece for each rank; so a block
 * of the inner rows is a piece of ours, and an inner vector all of them.
 *
 *   bcast           scatter, allgather            RECV | piece of rank 0 | of 1 | of 2 | ...
 *   reduce          reduce_scatter, gather
 *   allreduce       reduce_scatter, allgather
 *   reduce_scatter  reduce to rank 0, scatter
 *
 * (Compositions, plan/composition.h, run rows among some of the ranks and never cut a vector into
 * the blocks of another row.)
 */
#ifndef IBSHIFT_PLAN_RELAY_H
#define IBSHIFT_PLAN_RELAY_H

#include "plan/alg.h"

/* Where an inner buffer lies in ours. */
enum ibshift_relay_place {
    IBSHIFT_RELAY_SEND,   /* SEND, block for block */
    IBSHIFT_RELAY_RECV,   /* likewise */
    IBSHIFT_RELAY_OWN,    /* the rank's own block of RECV */
    IBSHIFT_RELAY_RESULT, /* on the root its own block of RECV, on others one block of TMP */
    IBSHIFT_RELAY_ALL,    /* a block of TMP for each rank, on the root */
};

struct ibshift_relay {
    const struct ibshift_alg *alg[2];
    enum ibshift_relay_place send[2], recv[2];
    uint32_t radix[2]; /* 0: the plan's */
    /* The root has all before the second row begins, in RECV, which it may not write. With
     * is_direct, that row receives into RECV only, and nobody sends to the root. */
    bool root_has_all, is_direct;
};

uint32_t ibshift_relay_rounds(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                              uint32_t rank);
uint32_t ibshift_relay_emit(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                            uint32_t rank, uint32_t round, struct ibshift_step *out);
uint32_t ibshift_relay_tmp(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                           uint32_t rank);
uint32_t ibshift_relay_tmp_block(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                                 uint32_t rank, uint32_t slot);
/* Of a vector. */
uint32_t ibshift_relay_pieces(const struct ibshift_plan *plan);

/* Defines rounds, emit, tmp and tmp_block of the relay of that name. */
#define IBSHIFT_RELAYED(relay)                                                                     \
    static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)                         \
    {                                                                                              \
        return ibshift_relay_rounds(&(relay), plan, rank);                                         \
    }                                                                                              \
    static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,           \
                         struct ibshift_step *out)                                                 \
    {                                                                                              \
        return ibshift_relay_emit(&(relay), plan, rank, round, out);                               \
    }                                                                                              \
    static uint32_t tmp(const struct ibshift_plan *plan, uint32_t rank)                            \
    {                                                                                              \
        return ibshift_relay_tmp(&(relay), plan, rank);                                            \
    }                                                                                              \
    static uint32_t tmp_block(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)       \
    {                                                                                              \
        return ibshift_relay_tmp_block(&(relay), plan, rank, slot);                                \
    }

#endif

/*
 * All neighbours, as many at once as the window allows, each message on its way from its place in SEND to
 * its place in RECV; nothing waits for anything else. Round = the rank's edge (plan/neighbors.h). Without a graph, ranks
 * are a ring: the lower neighbour first, as on a periodic grid of one dimension.
 */
#include "plan/alg_emit.h"
#include "plan/neighbors.h"

/* Upwards by a distance of 1; the message that is the rank's i-th, of either direction. */
static struct ibshift_edge ring_edge(const struct ibshift_plan *plan, uint32_t rank, uint32_t i,
                                     bool comes_in)
{
    uint32_t block = comes_in ? 1 - i : i, one = plan->ranks > 1;
    bool is_lower = block == 0;

    return (struct ibshift_edge){.rank = is_lower ? emit_sub(rank, one, plan->ranks)
                                                  : emit_add(rank, one, plan->ranks),
                                 .block = block,
                                 .tag = i};
}

static uint32_t rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    const struct ibshift_neighborhood *own;

    if (plan->neighbors == NULL) {
        return 2;
    }
    own = ibshift_neighborhood_of(plan->neighbors, rank);
    return own->ins > own->outs ? own->ins : own->outs;
}

static uint32_t emit_edges(const struct ibshift_edge *in, const struct ibshift_edge *out,
                           uint32_t rank, uint32_t sent, struct ibshift_step *steps)
{
    struct ibshift_step *step = steps;

    if (in != NULL && in->rank == rank) {
        emit_copy(steps, emit_blocks(IBSHIFT_RECV, in->block, 1), IBSHIFT_SEND, sent, 0, 0);
        return 1;
    }
    if (in != NULL) {
        step = emit_recv(step, in->rank, emit_blocks(IBSHIFT_RECV, in->block, 1), in->tag, 0, 0);
    }
    if (out != NULL) {
        step = emit_send(step, out->rank, emit_blocks(IBSHIFT_SEND, sent, 1), out->tag, 0);
    }
    return (uint32_t)(step - steps);
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round, bool gathers,
                     struct ibshift_step *steps)
{
    struct ibshift_edge ring_in, ring_out;
    const struct ibshift_edge *in = &ring_in, *out = &ring_out;

    if (plan->neighbors == NULL) {
        ring_in = ring_edge(plan, rank, round, true);
        ring_out = ring_edge(plan, rank, round, false);
    } else {
        const struct ibshift_neighborhood *own = ibshift_neighborhood_of(plan->neighbors, rank);

        in = round < own->ins ? &own->edges[round] : NULL;
        out = round < own->outs ? &own->edges[own->ins + round] : NULL;
    }
    return emit_edges(in, out, rank, gathers || out == NULL ? 0 : out->block, steps);
}

static uint32_t emit_allgather(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                               struct ibshift_step *out)
{
    return emit(plan, rank, round, true, out);
}

static uint32_t emit_alltoall(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                              struct ibshift_step *out)
{
    return emit(plan, rank, round, false, out);
}

const struct ibshift_alg ibshift_alg_neighbor_allgather_linear = {
    .collective = IBSHIFT_NEIGHBOR_ALLGATHER,
    .name = "linear",
    .doc = "all neighbours, as many at once as the window allows",
    .cost = "one message of m bytes for each neighbour, no round waits for another",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_FREE,
    .rounds = rounds,
    .emit = emit_allgather,
};

const struct ibshift_alg ibshift_alg_neighbor_alltoall_linear = {
    .collective = IBSHIFT_NEIGHBOR_ALLTOALL,
    .name = "linear",
    .doc = "all neighbours, as many at once as the window allows",
    .cost = "one message of m bytes for each neighbour, no round waits for another",
    .flags = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_FREE,
    .rounds = rounds,
    .emit = emit_alltoall,
};

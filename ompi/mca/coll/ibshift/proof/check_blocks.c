/* What MPI says of each block: whose it is, and whose size it has. */
#include "plan/neighbors.h"
#include "proof/check_impl.h"

/* Where the sender of an edge has its other end. */
static uint32_t sent_as(const struct ibshift_neighborhood *sender, uint32_t to, uint32_t tag)
{
    for (uint32_t i = sender->ins; i < sender->ins + sender->outs; i++) {
        if (sender->edges[i].rank == to && sender->edges[i].tag == tag) {
            return sender->edges[i].block;
        }
    }
    return IBSHIFT_NO_RANK;
}

static struct check_cell from_neighbor(const struct check_state *state, uint32_t rank,
                                       uint32_t block)
{
    const struct ibshift_neighbors *neighbors = state->plan->neighbors;
    const struct ibshift_neighborhood *own;
    bool gathers = state->alg->collective == IBSHIFT_NEIGHBOR_ALLGATHER;
    uint32_t ranks = state->plan->ranks;

    if (neighbors == NULL) { /* a ring: what comes from below was sent upwards */
        return (struct check_cell){.block = gathers ? 0 : 1 - block,
                                   .lo = (rank + (block == 0 ? ranks - 1 : 1)) % ranks,
                                   .count = 1};
    }
    own = ibshift_neighborhood_of(neighbors, rank);
    for (uint32_t i = 0; i < own->ins; i++) {
        const struct ibshift_edge *edge = &own->edges[i];

        if (edge->block == block) {
            return (struct check_cell){
                .block = gathers ? 0
                                 : sent_as(ibshift_neighborhood_of(neighbors, edge->rank), rank,
                                           edge->tag),
                .lo = edge->rank,
                .count = 1};
        }
    }
    return (struct check_cell){.count = 0};
}

struct check_cell check_expected(const struct check_state *state, uint32_t rank, uint32_t block)
{
    uint32_t ranks = state->plan->ranks, root = state->plan->root;

    switch (state->alg->collective) {
    case IBSHIFT_BCAST:
        return (struct check_cell){.block = block, .lo = root, .count = 1};
    case IBSHIFT_SCATTER:
        return (struct check_cell){.block = rank, .lo = root, .count = 1};
    case IBSHIFT_GATHER:
    case IBSHIFT_ALLGATHER:
        return (struct check_cell){.block = 0, .lo = block, .count = 1};
    case IBSHIFT_ALLTOALL:
        return (struct check_cell){.block = rank, .lo = block, .count = 1};
    case IBSHIFT_NEIGHBOR_ALLGATHER:
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        return from_neighbor(state, rank, block);
    case IBSHIFT_REDUCE_SCATTER:
        return (struct check_cell){.block = rank, .lo = 0, .count = ranks};
    case IBSHIFT_SCAN:
        return (struct check_cell){.block = block, .lo = 0, .count = rank + 1};
    case IBSHIFT_EXSCAN:
        return (struct check_cell){.block = block, .lo = 0, .count = rank};
    default:
        return (struct check_cell){.block = block, .lo = 0, .count = ranks};
    }
}

uint32_t check_size_of_block(const struct check_state *state, uint32_t rank,
                             enum ibshift_buffer buf, uint32_t block)
{
    if (buf == IBSHIFT_TMP) {
        return ibshift_alg_tmp_block(state->alg, state->plan, rank, block);
    }
    switch (state->alg->collective) {
    case IBSHIFT_ALLGATHER:
    case IBSHIFT_GATHER:
        return buf == IBSHIFT_SEND ? rank : block;
    case IBSHIFT_NEIGHBOR_ALLGATHER:
        return buf == IBSHIFT_SEND ? rank : from_neighbor(state, rank, block).lo;
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        return buf == IBSHIFT_SEND ? block : from_neighbor(state, rank, block).block;
    case IBSHIFT_SCATTER:
    case IBSHIFT_REDUCE_SCATTER:
        return buf == IBSHIFT_RECV ? rank : block;
    default:
        return block;
    }
}

uint32_t check_size_of_cell(const struct check_state *state, const struct check_cell *cell)
{
    enum ibshift_collective collective = state->alg->collective;

    return collective == IBSHIFT_ALLGATHER || collective == IBSHIFT_GATHER ||
                   collective == IBSHIFT_NEIGHBOR_ALLGATHER || collective == IBSHIFT_ALLTOALL
               ? cell->lo
               : cell->block;
}

/*
 * Whom a rank speaks to in a neighborhood collective. MPI lists a rank's sources, whose blocks lie
 * in RECV in that order, and its destinations, whose blocks lie in SEND. An edge is one message:
 *
 *     two ranks may share several, which meet in the order of their lists; on a grid the message
 *     that leaves in one direction comes in from the opposite one, also where both neighbours
 *     are the same rank
 *     a rank may be its own neighbour: that is a copy
 *     at the border of a grid nobody is there: the block stays as it is
 *
 * All ranks take their edges by the distance along the ranks, or along an order of them, and of one pair
 * by their number. So the first edge of all that is not done is the first on both of its ranks, and no
 * window can keep two ranks waiting for each other.
 */
#ifndef IBSHIFT_PLAN_NEIGHBORS_H
#define IBSHIFT_PLAN_NEIGHBORS_H

#include "plan/order.h"
#include "plan/step.h"

struct ibshift_edge {
    uint32_t rank;     /* at the other end */
    uint32_t block;    /* of RECV, or of SEND */
    uint32_t tag;      /* among the edges of this pair and direction */
    uint32_t distance; /* from its sender to its receiver */
};

/* As MPI lists them, IBSHIFT_NO_RANK where nobody is. On a grid a rank has two neighbours in each
 * dimension, the lower one first. */
struct ibshift_neighbor_lists {
    const uint32_t *sources, *destinations;
    uint32_t source_count, destination_count;
    bool is_grid;
};

/* Of one rank. */
struct ibshift_neighborhood {
    uint32_t sources, destinations;     /* blocks of RECV and SEND */
    uint32_t ins, outs;                 /* edges */
    uint32_t selves;                    /* of both: the first ones */
    struct ibshift_edge *edges;         /* those that come in, then those that go out */
    bool *has_source, *has_destination; /* of each block: somebody is there; NULL: of all */
};

/* Row r is rank first + r, as in a table of stages. */
struct ibshift_neighbors {
    uint32_t first;
    uint32_t rows;
    struct ibshift_neighborhood *row;
};

/* order: NULL is rank order; the same on all ranks. 0, -ENOMEM, or -EINVAL: a rank is out of range, or
 * sends itself more or fewer messages than it gets. */
int ibshift_neighborhood_make(const struct ibshift_neighbor_lists *lists, uint32_t rank,
                              uint32_t ranks, const struct ibshift_order *order,
                              struct ibshift_neighborhood *out);
void ibshift_neighborhood_free(struct ibshift_neighborhood *neighborhood);

/* Both neighbours in each dimension of a rank's, of a grid whose last dimension changes fastest. */
void ibshift_neighbors_on_grid(const int *dims, const int *periods, const int *coords, int count,
                               uint32_t rank, uint32_t *neighbors);

/* Of a graph as MPI_Graph_create takes it: each of the rank's neighbours has the rank as often. The rank's own edges
 * lie in order, so that each neighbour's list is read once. */
bool ibshift_neighbors_are_mutual(const int *index, const int *edges, uint32_t rank,
                                  const struct ibshift_neighborhood *own);

static inline const struct ibshift_neighborhood *
ibshift_neighborhood_of(const struct ibshift_neighbors *neighbors, uint32_t rank)
{
    return &neighbors->row[rank - neighbors->first];
}

#endif

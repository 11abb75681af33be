#ifndef TEST_UNIT_GRAPHS_H
#define TEST_UNIT_GRAPHS_H

/* Random graphs of neighbours: double edges, edges to oneself, ranks without any, grids with borders. */

#include "plan/neighbors.h"

/* Of all ranks, with at most one neighbour on each side more than there are ranks. */
struct ibshift_neighbors graph_draw(uint32_t ranks, uint64_t *random);
void graph_free(struct ibshift_neighbors *graph);

/* What comes in a rank's place of RECV: the sender, and which of its blocks of SEND. False: nobody is there. */
bool graph_source(const struct ibshift_plan *plan, uint32_t rank, uint32_t place, uint32_t *from,
                  uint32_t *block);

#endif

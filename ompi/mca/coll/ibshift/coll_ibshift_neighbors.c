/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/* The neighbours of a communicator's ranks, from its topology. */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include "ompi/mca/topo/topo.h"

#include <errno.h>
#include <stdlib.h>

static int make(mca_coll_ibshift_module_t *module, const uint32_t *sources, int source_count,
                const uint32_t *destinations, int destination_count, bool is_grid)
{
    const struct ibshift_neighbor_lists lists = {.sources = sources,
                                                 .destinations = destinations,
                                                 .source_count = (uint32_t)source_count,
                                                 .destination_count = (uint32_t)destination_count,
                                                 .is_grid = is_grid};

    return ibshift_group_set_neighbors(&module->group, &lists);
}

static int make_grid(mca_coll_ibshift_module_t *module, const mca_topo_base_comm_cart_t *cart)
{
    int degree = 2 * cart->ndims, rc = -ENOMEM;
    uint32_t *neighbors = malloc(((size_t)degree + 1) * sizeof(*neighbors));

    if (NULL != neighbors) {
        ibshift_neighbors_on_grid(cart->dims, cart->periods, cart->coords, cart->ndims,
                                  module->group.rank, neighbors);
        rc = make(module, neighbors, degree, neighbors, degree, true);
    }
    free(neighbors);
    return rc;
}

/* Each rank knows the whole graph: nobody has to wait for a message that does not come. */
static int make_graph(mca_coll_ibshift_module_t *module, const mca_topo_base_comm_graph_t *graph)
{
    uint32_t self = module->group.rank;
    int first = 0 == self ? 0 : graph->index[self - 1], degree = graph->index[self] - first;
    const uint32_t *list = (const uint32_t *)graph->edges + first;
    struct ibshift_neighborhood *own = &module->group.neighborhood;
    int rc = make(module, list, degree, list, degree, false);

    if (0 == rc && !ibshift_neighbors_are_mutual(graph->index, graph->edges, self, own)) {
        ibshift_neighborhood_free(own);
        return -EINVAL;
    }
    return rc;
}

static int find(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    if (OMPI_COMM_IS_CART(comm)) {
        return make_grid(module, comm->c_topo->mtc.cart);
    }
    if (OMPI_COMM_IS_GRAPH(comm)) {
        return make_graph(module, comm->c_topo->mtc.graph);
    }
    return make(module, (const uint32_t *)comm->c_topo->mtc.dist_graph->in,
                comm->c_topo->mtc.dist_graph->indegree,
                (const uint32_t *)comm->c_topo->mtc.dist_graph->out,
                comm->c_topo->mtc.dist_graph->outdegree, false);
}

int ibshift_neighbors_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                           const struct ibshift_called *called)
{
    int rc = atomic_load_explicit(&module->failed, memory_order_relaxed);

    if (!ibshift_collective_is_of_neighbors(called->collective)) {
        return OMPI_SUCCESS;
    }
    if (OMPI_SUCCESS != rc || NULL != module->group.neighborhood.edges) {
        return rc;
    }
    if (!OMPI_COMM_IS_TOPO(comm) || NULL == comm->c_topo) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    rc = find(module, comm);
    if (-EINVAL == rc) {
        ibshift_help("neighbors-unlike", comm->c_name, module->group.rank,
                     ompi_process_info.nodename);
        return MPI_ERR_TOPOLOGY;
    }
    return ibshift_code(rc);
}

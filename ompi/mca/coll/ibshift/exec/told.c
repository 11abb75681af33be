#include "exec/told.h"

#include "plan/nodes.h"

/* Nodes are alike in an all-to-all. */
static size_t words(const struct ibshift_nodes *nodes, bool is_alltoall)
{
    return (size_t)nodes->most * (is_alltoall ? nodes->nodes : 1);
}

size_t ibshift_told_bytes(const struct ibshift_plan *plan, bool is_alltoall)
{
    return (plan->ranks + 1) * sizeof(size_t) +
           2 * words(plan->nodes, is_alltoall) * sizeof(uint64_t) +
           plan->nodes->most * sizeof(uint32_t);
}

struct ibshift_told ibshift_told_at(void *memory, const struct ibshift_plan *plan, bool is_alltoall)
{
    size_t count = words(plan->nodes, is_alltoall), *offsets = memory;
    uint64_t *sizes = (uint64_t *)(offsets + plan->ranks + 1);

    return (struct ibshift_told){offsets, sizes, sizes + count, (uint32_t *)(sizes + 2 * count)};
}

void ibshift_told_ask(const struct ibshift_told *told, bool is_alltoall,
                      struct ibshift_op_params *params)
{
    const struct ibshift_nodes *nodes = params->plan.nodes;
    uint32_t node = nodes->node_of[params->rank];
    uint32_t ranks = nodes->first[node + 1] - nodes->first[node];
    const uint32_t *names = nodes->rank_at + nodes->first[node];
    size_t unit = sizeof(uint64_t) * (is_alltoall ? nodes->nodes : 1);

    for (uint32_t place = 0; place < ranks; place++) {
        told->peers[place] = params->peers[names[place]];
    }
    params->alg = ibshift_alg_find(is_alltoall ? IBSHIFT_ALLTOALL : IBSHIFT_GATHER, "linear");
    params->plan = (struct ibshift_plan){.ranks = ranks};
    params->rank = nodes->place_of[params->rank];
    params->peers = told->peers;
    params->names = names;
    params->pace = NULL;
    params->piece = 0;
    params->blocks[IBSHIFT_SEND] = (struct ibshift_blocks){.base = (char *)told->own, .unit = unit};
    params->blocks[IBSHIFT_RECV] =
        (struct ibshift_blocks){.base = (char *)told->sizes, .unit = unit};
}

void ibshift_told_heard(const struct ibshift_told *told, const struct ibshift_op_params *main)
{
    const struct ibshift_nodes *nodes = main->plan.nodes;
    uint32_t node = nodes->node_of[main->rank];
    bool is_leader = nodes->place_of[main->rank] == 0;

    told->offsets[0] = 0;
    for (uint32_t rank = 0; rank < main->plan.ranks; rank++) {
        bool is_here = is_leader && nodes->node_of[rank] == node;

        told->offsets[rank + 1] =
            told->offsets[rank] + (is_here ? told->sizes[nodes->place_of[rank]] : 0);
    }
}

/* The table of all algorithms, and the questions about a row that need no algorithm of their own.
 */
#include "plan/alg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plan/composition.h"
#include "plan/neighbors.h"

#define ALGORITHMS(ROW)                                                                            \
    ROW(barrier_dissemination)                                                                     \
    ROW(barrier_knomial)                                                                           \
    ROW(barrier_by_node)                                                                           \
    ROW(bcast_knomial)                                                                             \
    ROW(bcast_linear)                                                                              \
    ROW(bcast_chain)                                                                               \
    ROW(bcast_scatter_allgather)                                                                   \
    ROW(bcast_by_node)                                                                             \
    ROW(bcast_scatter_exchange)                                                                    \
    ROW(bcast_spread_bruck)                                                                        \
    ROW(bcast_spread_doubling)                                                                     \
    ROW(bcast_spread_ring)                                                                         \
    ROW(bcast_two_trees)                                                                           \
    ROW(bcast_multicast)                                                                           \
    ROW(scatter_linear)                                                                            \
    ROW(scatter_nway)                                                                              \
    ROW(scatter_split)                                                                             \
    ROW(scatter_by_node)                                                                           \
    ROW(scatter_by_node_linear)                                                                    \
    ROW(gather_linear)                                                                             \
    ROW(gather_nway)                                                                               \
    ROW(gather_split)                                                                              \
    ROW(gather_by_node)                                                                            \
    ROW(gather_by_node_linear)                                                                     \
    ROW(allgather_ring)                                                                            \
    ROW(allgather_modified_ring)                                                                   \
    ROW(allgather_neighbor_exchange)                                                               \
    ROW(allgather_recursive_doubling)                                                              \
    ROW(allgather_bruck)                                                                           \
    ROW(allgather_dissemination)                                                                   \
    ROW(allgather_gather_bcast)                                                                    \
    ROW(allgather_sparbit)                                                                         \
    ROW(allgather_bine)                                                                            \
    ROW(allgather_by_node)                                                                         \
    ROW(allgather_multicast)                                                                       \
    ROW(alltoall_linear)                                                                           \
    ROW(alltoall_pairwise)                                                                         \
    ROW(alltoall_bruck)                                                                            \
    ROW(alltoall_shift)                                                                            \
    ROW(alltoall_stages)                                                                           \
    ROW(alltoall_by_node)                                                                          \
    ROW(neighbor_allgather_linear)                                                                 \
    ROW(neighbor_alltoall_linear)                                                                  \
    ROW(reduce_linear)                                                                             \
    ROW(reduce_knomial)                                                                            \
    ROW(reduce_chain)                                                                              \
    ROW(reduce_rabenseifner)                                                                       \
    ROW(reduce_by_node)                                                                            \
    ROW(reduce_exchange)                                                                           \
    ROW(reduce_halving_gather)                                                                     \
    ROW(reduce_exchange_gather)                                                                    \
    ROW(allreduce_recursive_doubling)                                                              \
    ROW(allreduce_linear)                                                                          \
    ROW(allreduce_knomial)                                                                         \
    ROW(allreduce_ring)                                                                            \
    ROW(allreduce_rabenseifner)                                                                    \
    ROW(allreduce_by_node)                                                                         \
    ROW(allreduce_exchange)                                                                        \
    ROW(allreduce_halving_bruck)                                                                   \
    ROW(allreduce_exchange_bruck)                                                                  \
    ROW(allreduce_multicast)                                                                       \
    ROW(reduce_scatter_linear)                                                                     \
    ROW(reduce_scatter_recursive_halving)                                                          \
    ROW(reduce_scatter_ring)                                                                       \
    ROW(reduce_scatter_by_node)                                                                    \
    ROW(reduce_scatter_tree)                                                                       \
    ROW(reduce_scatter_bine)                                                                       \
    ROW(scan_linear)                                                                               \
    ROW(scan_recursive_doubling)                                                                   \
    ROW(scan_by_node)                                                                              \
    ROW(exscan_linear)                                                                             \
    ROW(exscan_recursive_doubling)                                                                 \
    ROW(exscan_by_node)

#define DECLARE(name) extern const struct ibshift_alg ibshift_alg_##name;
#define ENTRY(name)   &ibshift_alg_##name,

ALGORITHMS(DECLARE)

const struct ibshift_alg *const ibshift_alg_table[] = {ALGORITHMS(ENTRY)};
const size_t ibshift_alg_count = sizeof(ibshift_alg_table) / sizeof(ibshift_alg_table[0]);

static const char *const names[IBSHIFT_COLLECTIVES] = {
    [IBSHIFT_BARRIER] = "barrier",
    [IBSHIFT_BCAST] = "bcast",
    [IBSHIFT_SCATTER] = "scatter",
    [IBSHIFT_GATHER] = "gather",
    [IBSHIFT_ALLGATHER] = "allgather",
    [IBSHIFT_ALLTOALL] = "alltoall",
    [IBSHIFT_REDUCE] = "reduce",
    [IBSHIFT_ALLREDUCE] = "allreduce",
    [IBSHIFT_SCAN] = "scan",
    [IBSHIFT_REDUCE_SCATTER] = "reduce_scatter",
    [IBSHIFT_EXSCAN] = "exscan",
    [IBSHIFT_NEIGHBOR_ALLGATHER] = "neighbor_allgather",
    [IBSHIFT_NEIGHBOR_ALLTOALL] = "neighbor_alltoall",
};

const char *ibshift_collective_name(enum ibshift_collective collective)
{
    return (unsigned)collective < IBSHIFT_COLLECTIVES ? names[collective] : "?";
}

int ibshift_collective_find(const char *name)
{
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -ENOENT;
}

const struct ibshift_alg *ibshift_alg_find(enum ibshift_collective collective, const char *name)
{
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == collective &&
            strcmp(ibshift_alg_table[i]->name, name) == 0) {
            return ibshift_alg_table[i];
        }
    }
    return NULL;
}

int ibshift_alg_place(const struct ibshift_alg *alg)
{
    int place = 0;

    for (size_t i = 0; alg != NULL && i < ibshift_alg_count; i++) {
        place += ibshift_alg_table[i]->collective == alg->collective;
        if (ibshift_alg_table[i] == alg) {
            return place;
        }
    }
    return 0;
}

/* Its destinations, or its sources: on a ring there are two. */
static uint32_t neighbors_of(const struct ibshift_plan *plan, uint32_t rank, bool sends)
{
    const struct ibshift_neighborhood *own;

    if (plan->neighbors == NULL) {
        return 2;
    }
    own = ibshift_neighborhood_of(plan->neighbors, rank);
    return sends ? own->destinations : own->sources;
}

uint32_t ibshift_alg_blocks(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            uint32_t rank, enum ibshift_buffer buf)
{
    bool root = rank == plan->root, sends = buf == IBSHIFT_SEND;

    if (buf == IBSHIFT_TMP) {
        return alg->tmp != NULL ? alg->tmp(plan, rank) : 0;
    }
    switch (alg->collective) {
    case IBSHIFT_BCAST:
        return sends ? 0 : ibshift_alg_pieces(alg, plan);
    case IBSHIFT_SCATTER:
        return !sends ? 1 : root ? plan->ranks : 0;
    case IBSHIFT_GATHER:
        return sends ? 1 : root ? plan->ranks : 0;
    case IBSHIFT_ALLGATHER:
        return sends ? 1 : plan->ranks;
    case IBSHIFT_ALLTOALL:
        return plan->ranks;
    case IBSHIFT_NEIGHBOR_ALLGATHER:
        return sends ? 1 : neighbors_of(plan, rank, false);
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        return neighbors_of(plan, rank, sends);
    case IBSHIFT_REDUCE_SCATTER:
        return sends ? plan->ranks : 1;
    case IBSHIFT_REDUCE:
        return sends || root ? ibshift_alg_pieces(alg, plan) : 0;
    case IBSHIFT_ALLREDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        return ibshift_alg_pieces(alg, plan);
    default:
        return 0;
    }
}

static bool is_rooted(enum ibshift_collective collective)
{
    return collective == IBSHIFT_BCAST || collective == IBSHIFT_SCATTER ||
           collective == IBSHIFT_GATHER || collective == IBSHIFT_REDUCE;
}

static int out_of_range(const struct ibshift_alg *alg, const struct ibshift_plan *plan, char *why,
                        size_t size)
{
    if (plan->ranks < 1 || plan->ranks > IBSHIFT_RANKS_MAX) {
        snprintf(why, size, "%u ranks: must be 1 to %d", plan->ranks, IBSHIFT_RANKS_MAX);
        return -EINVAL;
    }
    if (is_rooted(alg->collective) && plan->root >= plan->ranks) {
        snprintf(why, size, "root %u of %u ranks: must be 0 to %u", plan->root, plan->ranks,
                 plan->ranks - 1);
        return -EINVAL;
    }
    if (alg->radix_max > 0 && (plan->radix < 1 || plan->radix > alg->radix_max)) {
        snprintf(why, size, "radix %u for %s %s: must be 1 to %u", plan->radix,
                 names[alg->collective], alg->name, alg->radix_max);
        return -EINVAL;
    }
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0 &&
        (plan->segments < 1 || plan->segments > IBSHIFT_SEGMENTS_MAX)) {
        snprintf(why, size, "%u segments: must be 1 to %d", plan->segments, IBSHIFT_SEGMENTS_MAX);
        return -EINVAL;
    }
    return 0;
}

static int check_leaders(const struct ibshift_alg *alg, const struct ibshift_plan *plan, char *why,
                         size_t size)
{
    if ((alg->flags & IBSHIFT_ALG_LEADERS) != 0 && plan->leaders > IBSHIFT_LEADERS_MAX) {
        snprintf(why, size, "%u leaders of a node: must be 1 to %d", plan->leaders,
                 IBSHIFT_LEADERS_MAX);
        return -EINVAL;
    }
    if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && ibshift_compose_tags(plan) > IBSHIFT_TAGS_MAX) {
        snprintf(why, size, "%u segments of %u parts are too many for %u ranks", plan->segments,
                 plan->leaders, plan->ranks);
        return -EINVAL;
    }
    return 0;
}

static int check_split(const struct ibshift_plan *plan, char *why, size_t size)
{
    for (uint32_t m = 2; m <= plan->ranks; m++) {
        if (plan->split[m] < 1 || plan->split[m] >= m) {
            snprintf(why, size, "split of %u blocks: %u go first, must be 1 to %u", m,
                     plan->split[m], m - 1);
            return -EINVAL;
        }
    }
    return 0;
}

int ibshift_alg_check(const struct ibshift_alg *alg, const struct ibshift_plan *plan, char *why,
                      size_t size)
{
    const char *limit = NULL;
    int rc = out_of_range(alg, plan, why, size);

    if (rc == 0 && (alg->flags & IBSHIFT_ALG_SPLIT) != 0 && plan->split != NULL) {
        rc = check_split(plan, why, size);
    }
    rc = rc == 0 ? check_leaders(alg, plan, why, size) : rc;
    if (rc < 0) {
        return rc;
    }
    if ((alg->flags & IBSHIFT_ALG_POWER_OF_TWO) != 0 && (plan->ranks & (plan->ranks - 1)) != 0) {
        limit = "a power-of-two number of ranks";
    } else if ((alg->flags & IBSHIFT_ALG_EVEN) != 0 && plan->ranks % 2 != 0 && plan->ranks > 1) {
        limit = "an even number of ranks";
    } else if ((alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) != 0 && !plan->commutative) {
        limit = "a commutative operator";
    } else if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && alg->collective >= IBSHIFT_SCAN &&
               plan->nodes != NULL && !plan->nodes->is_ordered) {
        limit = "ranks in the order of their nodes";
    } else if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && alg->collective >= IBSHIFT_REDUCE &&
               !plan->commutative && plan->nodes != NULL && !plan->nodes->is_ordered) {
        limit = "a commutative operator or ranks in the order of their nodes";
    } else if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && alg->collective < IBSHIFT_REDUCE &&
               alg->instead != NULL && plan->nodes != NULL && !plan->nodes->is_spaced) {
        limit = "the ranks of each node evenly spaced";
    }
    if (limit == NULL) {
        return 0;
    }
    snprintf(why, size, "%s %s needs %s, here are %u ranks%s%s%s", names[alg->collective],
             alg->name, limit, plan->ranks, alg->instead != NULL ? "; " : "",
             alg->instead != NULL ? alg->instead : "", alg->instead != NULL ? " runs instead" : "");
    return -ENOTSUP;
}

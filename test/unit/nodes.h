#ifndef TEST_UNIT_NODES_H
#define TEST_UNIT_NODES_H

/* Node maps as jobs have them, and worse. */

#include "plan/nodes.h"

enum {
    NODES_FILLED, /* three ranks each, in rank order */
    NODES_UNEVEN, /* 1, 3 and 8 ranks, over and over */
    NODES_DEALT,  /* in turn, over three nodes */
    NODES_ONE,    /* all ranks on one */
    NODES_RANDOM,
    NODES_KINDS
};

enum { NODES_RANKS_MAX = 512 };

/* random: any state of a generator that is not 0. Fails the process without memory. */
static inline struct ibshift_nodes nodes_of_kind(int kind, uint32_t ranks, uint64_t *random)
{
    static const uint32_t uneven[] = {0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2};
    uint32_t host_of[NODES_RANKS_MAX], hosts;
    struct ibshift_nodes nodes;

    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    hosts = 1 + (uint32_t)(*random >> 33) % ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
        host_of[rank] = kind == NODES_FILLED   ? rank / 3
                        : kind == NODES_UNEVEN ? (rank / 12 * 3 + uneven[rank % 12])
                        : kind == NODES_DEALT  ? rank % 3 % ranks
                        : kind == NODES_ONE    ? 0
                                               : (uint32_t)(*random >> 33) % hosts;
    }
    return ibshift_nodes_make(host_of, ranks, &nodes) == 0 ? nodes
                                                           : (struct ibshift_nodes){.nodes = 0};
}

#endif

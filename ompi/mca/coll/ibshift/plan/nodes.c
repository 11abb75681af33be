#include "plan/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 4 }; /* node_of, place_of, rank_at, and first, which has one more */

/* Numbers the nodes, and the places of each, as ranks come to them. size: all zero, of the nodes;
 * number: of the hosts. */
static void number_nodes(const uint32_t *host_of, uint32_t ranks, uint32_t *number, uint32_t *size,
                         uint32_t *node_of, uint32_t *place_of, struct ibshift_nodes *nodes)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t *node = &number[host_of[rank]];

        if (*node == UINT32_MAX) {
            *node = nodes->nodes++;
        }
        node_of[rank] = *node;
        place_of[rank] = size[*node]++;
        nodes->most = size[*node] > nodes->most ? size[*node] : nodes->most;
        nodes->is_ordered = nodes->is_ordered && (rank == 0 || *node >= node_of[rank - 1]);
    }
}

/* What follows from rank_at. */
static void measure(struct ibshift_nodes *nodes)
{
    nodes->least = UINT32_MAX;
    nodes->is_spaced = true;
    for (uint32_t node = 0; node < nodes->nodes; node++) {
        const uint32_t *rank = nodes->rank_at + nodes->first[node];
        uint32_t size = nodes->first[node + 1] - nodes->first[node];

        nodes->least = size < nodes->least ? size : nodes->least;
        for (uint32_t place = 2; place < size; place++) {
            nodes->is_spaced &= rank[place] - rank[place - 1] == rank[1] - rank[0];
        }
    }
}

int ibshift_nodes_make(const uint32_t *host_of, uint32_t ranks, struct ibshift_nodes *nodes)
{
    size_t words = (size_t)ranks;
    uint32_t *memory, *number, *first, *rank_at;

    for (uint32_t rank = 0; rank < ranks; rank++) {
        if (host_of[rank] >= ranks) {
            return -EINVAL;
        }
    }
    memory = calloc(ARRAYS * words + 1, sizeof(*memory));
    number = malloc((words + 1) * sizeof(*number));
    if (memory == NULL || number == NULL) {
        free(memory);
        free(number);
        return -ENOMEM;
    }
    rank_at = memory + 2 * words;
    first = rank_at + words;
    memset(number, 0xff, (words + 1) * sizeof(*number));
    *nodes = (struct ibshift_nodes){.is_ordered = true,
                                    .node_of = memory,
                                    .place_of = memory + words,
                                    .rank_at = rank_at,
                                    .first = first};
    number_nodes(host_of, ranks, number, first + 1, memory, memory + words, nodes);
    for (uint32_t node = 0; node < nodes->nodes; node++) {
        first[node + 1] += first[node];
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        rank_at[first[nodes->node_of[rank]] + nodes->place_of[rank]] = rank;
    }
    measure(nodes);
    free(number);
    return 0;
}

void ibshift_nodes_free(struct ibshift_nodes *nodes)
{
    free((void *)(uintptr_t)nodes->node_of);
    *nodes = (struct ibshift_nodes){.nodes = 0};
}

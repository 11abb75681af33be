#include "choose/crowd.h"

#include <errno.h>
#include <stdlib.h>

struct entry {
    uint64_t identity;
    uint32_t rank;
};

static int compare(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->identity != y->identity) {
        return x->identity < y->identity ? -1 : 1;
    }
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Each rank takes the number of the first rank with its identity, which has been numbered before. */
static uint32_t number(struct entry *entries, uint32_t ranks, uint32_t *number_of)
{
    uint32_t count = 0;

    qsort(entries, ranks, sizeof(*entries), compare);
    for (uint32_t i = 0, first = 0; i < ranks; i++) {
        first = entries[i].identity == entries[first].identity ? first : i;
        number_of[entries[i].rank] = entries[first].rank;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t first = number_of[rank];

        number_of[rank] = first == rank ? count++ : number_of[first];
    }
    return count;
}

int ibshift_crowd_make(const struct ibshift_place *places, uint32_t ranks,
                       struct ibshift_crowd *crowd)
{
    struct entry *entries = malloc(ranks * sizeof(*entries));
    uint32_t *host_of = calloc(3 * (size_t)ranks, sizeof(*host_of));
    uint32_t *port_of, *processors;

    if (entries == NULL || host_of == NULL) {
        free(entries);
        free(host_of);
        return -ENOMEM;
    }
    port_of = host_of + ranks;
    processors = port_of + ranks;
    *crowd =
        (struct ibshift_crowd){.host_of = host_of, .port_of = port_of, .processors = processors};
    for (uint32_t rank = 0; rank < ranks; rank++) {
        entries[rank] = (struct entry){places[rank].host, rank};
    }
    crowd->hosts = number(entries, ranks, host_of);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t *most = &processors[host_of[rank]];

        *most = places[rank].processors > *most ? places[rank].processors : *most;
        entries[rank] = (struct entry){places[rank].port, rank};
    }
    crowd->ports = number(entries, ranks, port_of);
    free(entries);
    return 0;
}

/* The three arrays are one piece of memory. */
void ibshift_crowd_free(struct ibshift_crowd *crowd)
{
    free((void *)(uintptr_t)crowd->host_of);
    *crowd = (struct ibshift_crowd){.hosts = 0};
}

uint32_t ibshift_crowd_most(const uint32_t *number_of, uint32_t ranks, uint32_t count,
                            uint32_t *which)
{
    uint32_t *sums = calloc(count, sizeof(*sums)), most = 0;

    *which = 0;
    for (uint32_t rank = 0; sums != NULL && rank < ranks; rank++) {
        if (++sums[number_of[rank]] > most) {
            most = sums[number_of[rank]];
            *which = number_of[rank];
        }
    }
    free(sums);
    return most;
}

/* Seeded numbers (splitmix64): the same on every machine. */
#ifndef IBSHIFT_FABRIC_GRAPH_RANDOM_H
#define IBSHIFT_FABRIC_GRAPH_RANDOM_H

#include <stdint.h>

static inline uint64_t ibshift_random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* 0 .. 1, never 1. */
static inline double ibshift_random_share(uint64_t *state)
{
    return (double)(ibshift_random_next(state) >> 11) * 0x1p-53;
}

/* 0 .. bound - 1 (the bias of at most bound / 2^32 does not matter here). */
static inline uint32_t ibshift_random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((ibshift_random_next(state) >> 32) * bound >> 32);
}

static inline void ibshift_random_shuffle(uint64_t *state, uint32_t *array, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = ibshift_random_below(state, i), kept = array[i - 1];

        array[i - 1] = array[j];
        array[j] = kept;
    }
}

#endif

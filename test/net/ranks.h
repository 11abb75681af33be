#ifndef TEST_NET_RANKS_H
#define TEST_NET_RANKS_H

/* Several processes, each with a net over verbs, without MPI: cards go through shared memory. */

#include <stdint.h>

#include "net/verbs/verbs.h"

enum { RANKS_MAX = 128 };

struct ranks_shared {
    uint32_t arrived[64]; /* barriers by number: how many ranks are there */
    uint32_t verdict[RANKS_MAX];
    uint8_t card[RANKS_MAX][256];
    uint32_t card_size[RANKS_MAX];
    uint64_t number[RANKS_MAX][8]; /* what a test wants to tell */
};

struct ranks {
    int count, self;
    struct ranks_shared *shared;
    struct ibshift_verbs *verbs;
    struct ibshift_net *net;
    const char *ports;
    int max_ports;
    struct ibshift_net_verbs_options options;
};

/* Forks count processes that run body; 0 when all of them returned 0. Those in may_die (a bit
   each) may be killed. Without a device: 77. */
int ranks_run(struct ranks *ranks, int (*body)(struct ranks *), uint64_t may_die);

/* Waits for all ranks; polls the net meanwhile (events must not come). */
void ranks_barrier(struct ranks *ranks, int number);

/* Fails the test in this rank, with its number in front. */
__attribute__((noreturn, format(printf, 2, 3))) void ranks_fail(struct ranks *ranks,
                                                                const char *format, ...);

/* A number within the bounds, of size bytes; size 0: a text. Ends with letter 0. */
struct ranks_option {
    int letter;
    void *where;
    size_t size;
    unsigned long least, most;
};

/* Ends the program where one is wrong. */
void ranks_options(int argc, char **argv, const struct ranks_option *options);

struct ibshift_net_verbs_stats ranks_stats(const struct ranks *ranks);

uint64_t ranks_random(uint64_t *state);

/* The bytes of a message, and a check of what came: its place or -1. */
void ranks_fill(uint8_t *buffer, size_t length, uint64_t seed);
long ranks_differs(const uint8_t *buffer, size_t length, uint64_t seed);

#endif

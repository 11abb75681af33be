/*
 * The wire's model alone, in its own time: the shift all-to-all of bench/softhca/wire_model.py, so
 * that the two can be compared to the nanosecond's rounding on any machine. Reads numbers:
 *   ranks block limit gap hca_ns hop_ns, the count of links and their rates, then for every ordered
 *   pair of ranks the count of its links and their numbers; prints nanoseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_net.h"

enum { RANKS = 64, LINKS = 4096 };

static struct wire_clock ticks;
static struct wire_link links[LINKS];
static struct wire_lane lanes[2 * RANKS * RANKS];
static struct wire_gate gates[RANKS];
static struct wire_message messages[RANKS * RANKS];
static uint32_t heap[RANKS * RANKS];
static struct wire_net net = {.clock = &ticks,
                              .links = links,
                              .lanes = lanes,
                              .gates = gates,
                              .messages = messages,
                              .heap = heap,
                              .room = RANKS * RANKS};

static struct route {
    uint32_t hops, links[WIRE_HOPS];
} routes[RANKS][RANKS];

/* Of each rank: its stage, its message, and when what it waits for is there (0: not known). */
static struct rank {
    uint32_t stage, message;
    uint64_t done, there[RANKS];
} rank[RANKS];

static double number(double most)
{
    double value;

    if (scanf("%lf", &value) != 1 || value < 0 || value > most) {
        fprintf(stderr, "wire_shift: a number from 0 to %g was expected\n", most);
        exit(2);
    }
    return value;
}

static void read_routes(uint32_t ranks, uint32_t count)
{
    for (uint32_t a = 0; a < ranks; a++) {
        for (uint32_t b = 0; b < ranks; b++) {
            struct route *r = &routes[a][b];

            r->hops = a == b ? 0 : (uint32_t)number(WIRE_HOPS);
            for (uint32_t h = 0; h < r->hops; h++) {
                r->links[h] = (uint32_t)number(count - 1);
            }
        }
    }
}

static uint64_t post(uint32_t ranks, struct wire_request *w, uint32_t me, uint64_t hca,
                     uint64_t hop)
{
    uint32_t to = (me + rank[me].stage) % ranks;

    w->owner = me * RANKS + to;
    w->gate = me;
    w->hops = routes[me][to].hops;
    memcpy(w->link, routes[me][to].links, w->hops * sizeof(w->link[0]));
    w->latency = 2 * hca + (w->hops - 1) * hop;
    rank[me].done = 0;
    rank[me].message = wire_net_send(&net, w, ticks.now);
    return w->latency;
}

/* Looks at what is on the way; the earliest time at which something happens. */
static uint64_t look(uint32_t ranks, const uint64_t *latency)
{
    uint64_t next = WIRE_NEVER;

    for (uint32_t i = 0; i < ranks; i++) {
        uint32_t to = (i + rank[i].stage) % ranks;
        uint64_t when;

        if (rank[i].stage >= ranks) {
            continue;
        }
        if (!rank[i].done) {
            if (wire_net_look(&net, rank[i].message, i * RANKS + to, ticks.now, &when)) {
                rank[i].done = when + latency[i];
                rank[to].there[i] = when;
            }
            next = when < next && !rank[i].done ? when : next;
        }
    }
    for (uint32_t i = 0; i < ranks; i++) {
        uint64_t there = rank[i].there[(i + ranks - rank[i].stage % ranks) % ranks];

        if (rank[i].stage < ranks && rank[i].done && there) {
            uint64_t both = rank[i].done > there ? rank[i].done : there;

            next = both < next ? both : next;
        }
    }
    return next;
}

static uint64_t run(uint32_t ranks, struct wire_request *w, uint64_t hca, uint64_t hop)
{
    uint64_t latency[RANKS], next = 0;
    uint32_t left = ranks;

    for (uint32_t i = 0; i < ranks; i++) {
        rank[i].stage = 1;
        latency[i] = post(ranks, w, i, hca, hop);
    }
    while (left > 0) {
        next = look(ranks, latency);
        wire_net_advance(&net, next);
        for (uint32_t i = 0; i < ranks; i++) {
            uint64_t there = rank[i].there[(i + ranks - rank[i].stage % ranks) % ranks];

            if (rank[i].stage < ranks && rank[i].done && rank[i].done <= next && there &&
                there <= next) {
                left -= ++rank[i].stage == ranks;
                latency[i] = rank[i].stage < ranks ? post(ranks, w, i, hca, hop) : 0;
            }
        }
    }
    return next;
}

int main(void)
{
    uint32_t ranks = (uint32_t)number(RANKS);
    struct wire_request w = {.bytes = (uint64_t)number(1e9), .limit = number(1e3)};
    uint64_t hca, hop;
    uint32_t count;

    ticks.gap = (uint64_t)number(1e6);
    hca = (uint64_t)number(1e6);
    hop = (uint64_t)number(1e6);
    count = (uint32_t)number(LINKS);
    for (uint32_t i = 0; i < count; i++) {
        links[i].rate = number(1e3);
    }
    read_routes(ranks, count);
    printf("%llu\n", (unsigned long long)run(ranks, &w, hca, hop));
    return 0;
}

/*
 * Messages that nobody waits for: hosts send at a given load, to destinations by a pattern, and
 * figures are taken of what arrives, for curves of latency over throughput.
 */
#ifndef IBSHIFT_SIM_TRAFFIC_H
#define IBSHIFT_SIM_TRAFFIC_H

#include "sim/fabric.h"

enum sim_pattern {
    SIM_RANDOM,    /* any other host of the group, evenly */
    SIM_SHIFT,     /* the host s places on in the group, s from a random sequence that all share */
    SIM_REVERSAL,  /* the host whose number has the bits in reverse order */
    SIM_TRANSPOSE, /* the host whose number has its lower and upper half of bits exchanged */
    SIM_PATTERNS
};

struct sim_traffic_options {
    enum sim_pattern pattern;
    double load;    /* share of each host's cable */
    uint64_t bytes; /* of a message */
    uint64_t warm;  /* ps: what arrives earlier does not count */
    uint64_t end;   /* ps: nor what arrives later, and nothing is born */
    uint64_t seed;
    /* One message of a host after the other, packets evenly spaced at the load, all hosts from
     * time 0 on; else messages are born at random (exponential intervals). */
    bool is_steady;
    bool takes_all_lanes; /* a host's messages take them in turn; else they are on the first */
};

struct sim_traffic;

/*
 * member[count]: the hosts; group[count]: hosts with the same number (0 .. groups - 1) talk among
 * themselves, in the order given. A host whose messages pile up (they leave one after the other)
 * waits: at most SIM_TRAFFIC_BACKLOG are under way from it.
 */
enum { SIM_TRAFFIC_BACKLOG = 64, SIM_KIND_TRAFFIC = SIM_KINDS_NET };

struct sim_traffic *sim_traffic_create(const struct ibshift_fabric *graph,
                                       const struct sim_traffic_options *options,
                                       const uint32_t *member, const uint32_t *group,
                                       uint32_t count, struct sim_fabric *fabric,
                                       struct sim_queue *queue);
void sim_traffic_free(struct sim_traffic *traffic);

void sim_traffic_begin(struct sim_traffic *traffic);
/* What sim_queue_pop() gave with the kind SIM_KIND_TRAFFIC. */
void sim_traffic_event(struct sim_traffic *traffic, const struct sim_event *event);
/* A flow has arrived, or has left its host (only is_steady wants to know). */
void sim_traffic_arrived(struct sim_traffic *traffic, uint32_t user);
void sim_traffic_left(struct sim_traffic *traffic, uint32_t user);

/* Throughput is counted from now, which is warm, on. */
void sim_traffic_count(struct sim_traffic *traffic);

/* Latencies of the messages whose last byte arrived from warm to end; bytes of the packets that
 * began to arrive since sim_traffic_count(). */
struct sim_traffic_figures {
    uint64_t messages;
    /* ps, of a message from its birth; of its last packet from its host on, where it is steady */
    double latency_mean, latency_max;
    double bytes_per_host; /* average and least */
    double bytes_least;
};

struct sim_traffic_figures sim_traffic_figures(const struct sim_traffic *traffic);

#endif

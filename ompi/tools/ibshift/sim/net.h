/*
 * net.h over virtual time: an endpoint for every rank of a job, on the hosts of a fabric at work
 * (sim_fabric.h). All in one thread; what an engine does takes no time but what the options say.
 *
 * A host's processor: every post and every completion costs `overhead`; the ranks of a host have a
 * processor each. A message leaves its host after a random delay (jitter). Now and then a host
 * stands still (pauses): none of its ranks does anything, while its messages in the fabric go on.
 *
 * With pieces a message goes into the fabric piece by piece: its next one is posted when the
 * processor has seen the completion of the last one, 0.5 to 1.5 us after its arrival, at random.
 *
 * Between ranks of a host a message is a copy: a rank makes one at a time, and all of a host share its
 * memory in the order in which they come to it.
 *
 * Long messages wait for the receiver's grant, which takes `control` on its way, beside the fabric,
 * or goes through it as a packet on service level 1. A send has ended when the receiver's
 * acknowledgement is back: as long as an empty fabric takes for the way.
 */
#ifndef IBSHIFT_SIM_NET_H
#define IBSHIFT_SIM_NET_H

#include "exec/pace/clock.h"
#include "net/net.h"
#include "sim/fabric.h"

struct sim_net_options {
    size_t max_eager;      /* bytes that wait for no grant */
    uint64_t overhead;     /* ps */
    uint64_t control;      /* ps; with grants through the fabric on top of their way */
    uint32_t grant_bytes;  /* of a grant in the fabric; 0: beside it */
    uint64_t jitter;       /* ps: each message waits 0 .. 2 * jitter, evenly spread */
    double pause_share;    /* of messages at which their host pauses */
    uint64_t pause;        /* ps */
    uint64_t skew;         /* ps: ranks begin within this time */
    uint64_t clock_offset; /* ns: hosts' clocks differ by up to so much */
    double clock_drift;    /* and run faster or slower by up to this share */
    uint32_t copy_rate;    /* Mb/s at which a rank copies to another of its host */
    uint32_t memory_rate;  /* Mb/s of all copies of a host at once; 0: each at its own rate */
    uint64_t copy_flight;  /* ps from the end of a copy to its sight */
    bool moves_data;       /* copy the messages' bytes when they arrive */
    uint64_t seed;
};

/* In a flow's user: a grant, not the message itself. */
#define SIM_USER_GRANT 0x80000000u

struct sim_net;

/* host_of[rank]: index of the graph's host; read now only. The queue and fabric outlive it; the
 * fabric's user is sim_net_user(net), known before. */
struct sim_net *sim_net_create(const struct ibshift_fabric *graph,
                               const struct sim_net_options *options, const uint32_t *host_of,
                               uint32_t ranks, struct sim_queue *queue);
void sim_net_free(struct sim_net *net);

struct sim_fabric_user sim_net_user(struct sim_net *net);
void sim_net_attach(struct sim_net *net, struct sim_fabric *fabric);

/* The endpoint of a rank; the net owns it. */
struct ibshift_net *sim_net_end(struct sim_net *net, uint32_t rank);

/*
 * The rank's turn: called when something happened to it, when it begins (once, within the skew),
 * and when it asked to be woken. The callee polls its endpoint until nothing happens any more.
 */
typedef void (*sim_net_turn)(void *context, uint32_t rank);

/* Everyone's first turn is on its way. */
void sim_net_begin(struct sim_net *net, sim_net_turn turn, void *context);

/* Wakes the rank when its own clock says so; in its turn only. */
void sim_net_wake_at(struct sim_net *net, uint32_t rank, uint64_t clock);

/* What sim_queue_pop() gave with a kind of at least SIM_KINDS_FABRIC, below SIM_KINDS_NET. */
void sim_net_event(struct sim_net *net, int kind, const struct sim_event *event);

/* From the rank's own clock to rank 0's, without error. */
struct ibshift_clock sim_net_clock(const struct sim_net *net, uint32_t rank);

/* Virtual time where the rank is, in ps. */
uint64_t sim_net_time(const struct sim_net *net, uint32_t rank);

struct sim_net_stats {
    uint64_t messages; /* that arrived */
    uint64_t bytes;
    uint64_t pauses;
    uint32_t most; /* messages known at any time */
};

struct sim_net_stats sim_net_stats(const struct sim_net *net);

/* Messages posted on either side that have not ended: 0 after a clean run. */
uint32_t sim_net_left(const struct sim_net *net);

#endif

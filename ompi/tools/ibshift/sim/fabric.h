/*
 * A fabric at work, packet by packet: messages are cut into packets, each follows the forwarding
 * tables through switches with one buffer a port and VL, credits, and an arbiter (see
 * enum sim_arbiter) that takes from any input which has less than `reads` packets leaving it.
 * Cut-through: a packet may leave while it still comes in.
 *
 * Timing of one packet that starts on a cable at t: its head asks for the next output at
 * t + flight + routing; the cable is free at t + length / rate; so is, where it comes from, its
 * place in the buffer, which the sender before knows a flight later. A host that receives takes
 * everything at the rate of its cable.
 */
#ifndef IBSHIFT_SIM_FABRIC_H
#define IBSHIFT_SIM_FABRIC_H

#include "fabric/graph/fabric.h"
#include "fabric/sl2vl.h"
#include "sim/queue.h"

enum {
    SIM_LANES_MAX = 8,
    SIM_MTU_MAX = 16384,
    SIM_BUFFER_MAX = 1 << 24,
    SIM_KINDS_FABRIC = 8, /* kinds of events below this one are the fabric's, */
    SIM_KINDS_NET = 17,   /* below this one the net's, and then comes the traffic's */
};

/* How a switch chooses the packets that leave. */
enum sim_arbiter {
    /* A queue for each output at each input, so that no head of line blocks another output's
     * packets; each output takes from the inputs in turn, as soon as it can. */
    SIM_ROUND_ROBIN,
    /* The same queues, but once in the time of a full packet outputs grant and inputs accept, each
     * in turn, until nothing more can be matched. */
    SIM_MATCH,
    /* One queue for each input and VL: who waits behind its head waits for the head's output. */
    SIM_FIFO,
};

struct sim_fabric_options {
    uint32_t mtu;    /* bytes of a full packet on the wire, headers and all */
    uint32_t buffer; /* bytes of an input port, shared equally by its lanes */
    uint32_t lanes;  /* VLs, 1 .. SIM_LANES_MAX; a service level uses VL sl % lanes */
    uint32_t reads;  /* packets that leave the buffer of one port at once */
    uint32_t burst;  /* packets of one message that a host sends before the next one's; 0: 1 */
    enum sim_arbiter arbiter;
    /* A packet may leave through any port that is on a shortest way to its host's switch, and takes
     * the one behind which fewest wait; else as the forwarding tables say. */
    bool is_adaptive;
    bool keeps_ways;  /* adaptive: all packets of a message take the way that its first one took */
    uint64_t flight;  /* ps on a cable */
    uint64_t routing; /* ps in a switch */
    uint32_t rate;    /* data rate of all cables in Mb/s; 0: that of each cable's own speed */
    /* The VL that a switch sends packets to a LID on, [switch * lft_stride + lid], instead of the
     * service level's; NULL: none. The caller's. */
    const uint8_t *lane_table;
    const struct fabric_sl2vl *sl2vl; /* the switches' own tables instead; NULL: none */
};

/* One message. Handed to sim_fabric_send(), which copies it. */
struct sim_flow {
    uint32_t user;  /* comes back in the calls below */
    uint32_t from;  /* host */
    uint64_t bytes; /* at least 1 */
    uint64_t early; /* tell also when so many have arrived; 0: do not */
    uint64_t gap;   /* ps from the start of one packet to that of the next, at least; 0: none */
    uint16_t lid;
    uint8_t sl;
    bool is_serial; /* takes no turns: what its host sends later waits until it has left */
    bool is_other;  /* not the job's: counted apart */
};

enum sim_arrival { SIM_EARLY, SIM_COMPLETE };

/* Called back from sim_fabric_event(); may send. */
struct sim_fabric_user {
    void *context;
    void (*arrived)(void *context, uint32_t user, enum sim_arrival arrival);
    /* NULL, or: the last packet begins to leave its host. May not send before the next event. */
    void (*left)(void *context, uint32_t user);
};

/* ps that a message of so many bytes takes on the cable out of the port, nothing else there. */
uint64_t sim_message_time(const struct ibshift_fabric *graph, const struct sim_fabric_options *o,
                          uint32_t port, uint64_t bytes);

/* Of what a host sends to a LID, where the graph knows it. */
static inline uint8_t sim_service_level(const struct ibshift_fabric *graph, uint32_t host,
                                        unsigned lid, unsigned otherwise)
{
    return (uint8_t)(graph->sl != NULL ? ibshift_fabric_sl(graph, host, lid) : otherwise);
}

struct sim_fabric;

/* The graph, its tables and the queue outlive it. 0, or -EINVAL or -E2BIG with the reason. */
int sim_fabric_create(const struct ibshift_fabric *graph, const struct sim_fabric_options *options,
                      const struct sim_fabric_user *user, struct sim_queue *queue,
                      struct sim_fabric **fabric, struct ibshift_error *err);
void sim_fabric_free(struct sim_fabric *fabric);

/* The route must exist (ibshift_route_walk). The sender's messages share its cable in turn, `burst`
 * packets each. */
void sim_fabric_send(struct sim_fabric *fabric, const struct sim_flow *flow);

/* What sim_queue_pop() gave, if kind < SIM_KINDS_FABRIC. */
void sim_fabric_event(struct sim_fabric *fabric, int kind, const struct sim_event *event);

/* ---- figures ---- */

struct sim_fabric_stats {
    uint64_t hops;      /* packets put on a cable */
    uint64_t packets;   /* that arrived */
    uint32_t in_flight; /* packets now */
    uint32_t most;      /* at any time */
    uint32_t waiting;   /* messages not wholly sent now */
};

struct sim_fabric_stats sim_fabric_stats(const struct sim_fabric *fabric);

const struct sim_fabric_options *sim_fabric_options(const struct sim_fabric *fabric);
/* ps that the job's, or all other, messages have kept the cable out of the port busy. */
uint64_t sim_fabric_busy(const struct sim_fabric *fabric, uint32_t port, bool other);
/* Keeps the use of each cable over time, in `bins` equal parts of the time so far. */
void sim_fabric_keep_time(struct sim_fabric *fabric, uint32_t bins);
/* ps that the cable was busy in a part; *width: ps of one part. 0 behind the end. */
uint64_t sim_fabric_busy_in(const struct sim_fabric *fabric, uint32_t port, uint32_t bin,
                            uint64_t *width);

/*
 * Whether packets wait for one another in a circle and none of them can ever move. Writes the
 * circle's links (ports that packets wait to leave through) and returns their number, at most room;
 * 0: no deadlock.
 */
int sim_fabric_deadlock(const struct sim_fabric *fabric, uint32_t *links, int room);

#endif

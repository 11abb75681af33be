/*
 * A fabric at work, packet by packet: messages are cut into packets, each follows the forwarding
 * tables through switches with one buffer a port and VL, credits, and a queue for each output at each
 * input, so that no head of line blocks another output's packets. An output takes from the inputs in
 * turn, as soon as it can, from any which has less than `reads` packets leaving it.
 * Cut-through: a packet may leave while it still comes in.
 *
 * Timing of one packet that starts on a cable at t: its head asks for the next output at
 * t + flight + routing; the cable is free at t + length / rate; so is, where it comes from, its
 * place in the buffer, which the sender before knows a flight later. A host that receives takes
 * everything at the rate of its cable.
 */
#ifndef IBSHIFT_SIM_FABRIC_H
#define IBSHIFT_SIM_FABRIC_H

#include <assert.h>

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

/* What an adaptive switch chooses an output by. */
enum sim_chooser {
    SIM_BY_QUEUES,  /* fewest packets that wait for it in the switch */
    SIM_BY_CREDITS, /* most room in the buffer behind its cable */
    SIM_BY_CHANCE,
};

struct sim_fabric_options {
    uint32_t mtu;    /* bytes of a full packet on the wire, headers and all */
    uint32_t buffer; /* bytes of an input port, shared equally by its lanes */
    uint32_t lanes;  /* VLs, 1 .. SIM_LANES_MAX; a service level uses VL sl % lanes */
    uint32_t reads;  /* packets that leave the buffer of one port at once */
    uint32_t burst;  /* packets of one message that a host sends before the next one's; 0: 1 */
    /* A packet may leave through any port that is on a shortest way to its host's switch, and takes
     * the one that the chooser says; else as the forwarding tables say. What follows is of that. */
    bool is_adaptive;
    enum sim_chooser chooser;
    bool keeps_ways;      /* all packets of a message take the way that its first one took */
    bool is_above_leaves; /* what comes from a host goes as the tables say */
    uint64_t lag;         /* ps: a switch hears of its outputs so often */
    uint64_t gap;    /* ps: a pair's packet takes the way of the one before, if that was less ago */
    uint64_t seed;   /* of chance */
    uint64_t flight; /* ps on a cable */
    uint64_t routing; /* ps in a switch */
    uint32_t rate;    /* data rate of all cables in Mb/s; 0: that of each cable's own speed */
    /* The VL that a switch sends packets to a LID on, [switch * lft_stride + lid], instead of the
     * service level's; NULL: none. The caller's. */
    const uint8_t *lane_table;
    const struct fabric_sl2vl *sl2vl; /* the switches' own tables instead; NULL: none */
    uint32_t
        bins; /* equal parts of the time so far in which each cable's use is kept; 0: it is not */
};

/* One message. Handed to sim_fabric_send(), which copies it. */
struct sim_flow {
    uint32_t user;  /* comes back in the calls below */
    uint32_t from;  /* host */
    uint64_t bytes; /* at least 1 */
    uint64_t gap;   /* ps from the start of one packet to that of the next, at least; 0: none */
    uint16_t lid;
    uint8_t sl;
    bool is_serial; /* takes no turns: what its host sends later waits until it has left */
    bool is_other;  /* not the job's: counted apart */
};

/* Called back from sim_fabric_event(); may send. */
struct sim_fabric_user {
    void *context;
    void (*arrived)(void *context, uint32_t user);
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

/*
 * Whether packets wait for one another in a circle and none of them can ever move. Writes the
 * circle's links (ports that packets wait to leave through) and returns their number, at most room;
 * 0: no deadlock.
 */
int sim_fabric_deadlock(const struct sim_fabric *fabric, uint32_t *links, int room);

/* ---- the fabric itself: for its own files, and for reading figures ---- */

#define SIM_NO_SWITCH UINT32_MAX
#define SIM_NONE      UINT32_MAX

enum { SIM_RATES_MAX = 8, SIM_NO_WAY = 0xff };

enum sim_fabric_kind {
    SIM_HEAD,     /* packet a is at the switch, port b */
    SIM_READY,    /* the same, after waiting for a slower cable */
    SIM_SENT,     /* the cable out of port a is free; the packet came in by port b or SIM_NONE */
    SIM_CREDIT,   /* the sender at port a learns of room behind it: b = bytes | lane << 16 */
    SIM_DELIVERY, /* packet a is wholly at its host, behind port b */
    SIM_DUE,      /* a message of the host at port a may send again */
};

enum sim_packet_flag { SIM_PACKET_OTHER = 1 };

struct sim_packet {
    uint32_t next; /* in its queue, or among the unused */
    uint32_t flow;
    uint16_t lid;
    uint16_t bytes;
    uint8_t lane_in; /* whose place it takes in the buffer where it is */
    uint8_t lane;    /* that it leaves on */
    uint8_t flags : 4, sl : 4;
    uint8_t out; /* the output that it waits for, in its switch */
};
static_assert(sizeof(struct sim_packet) == 16, "a quarter of a cache line");

struct sim_queue_ends {
    uint32_t first, last;
};

/* A port: the cable out of it, and the buffer behind the cable into it. */
struct sim_port {
    uint32_t peer;        /* SIM_NONE: no cable */
    uint32_t sw;          /* its switch, or SIM_NO_SWITCH */
    uint32_t first;       /* first port of its node */
    uint8_t number;       /* port - first */
    uint8_t ports;        /* of its node */
    uint8_t rate;         /* class */
    uint8_t is_busy;      /* a packet is leaving */
    uint8_t to_switch;    /* what the cable leads to */
    uint8_t reads;        /* packets that leave the buffer now */
    uint8_t turn;         /* the input that is next for this output */
    uint8_t lane_turn;    /* the VL that is next */
    uint8_t read_turn;    /* the output that is next for this input */
    uint32_t waiting;     /* packets for this output */
    uint32_t heard;       /* adaptive: what speaks against this output, as the switch last heard, */
    uint64_t heard_until; /* and when it hears again */
    uint64_t queues;      /* the first of its input's, in sim_fabric.queues */
    uint64_t busy[2];     /* ps: the job's packets, others */
};

struct sim_rate {
    uint64_t megabits;
    uint64_t full;              /* ps of a full packet */
    int sent, credit, delivery; /* event buckets of full packets */
};

struct sim_active {          /* a message that has packets to send */
    uint32_t next, previous; /* of the same host, in a ring; next: among the unused too */
    uint32_t user;
    uint64_t left;     /* bytes */
    uint64_t coming;   /* bytes that have not arrived: packets may overtake each other */
    uint64_t gap, due; /* ps */
    uint32_t from;     /* host */
    uint16_t lid;
    uint8_t sl;
    bool is_other, is_serial;
};

struct sim_recent {
    uint64_t until; /* a packet that comes before then takes the same way */
    uint8_t out;
};

struct sim_fabric_stats {
    uint64_t hops;      /* packets put on a cable */
    uint64_t packets;   /* that arrived */
    uint32_t in_flight; /* packets now */
    uint32_t most;      /* at any time */
    uint32_t waiting;   /* messages not wholly sent now */
};

struct sim_fabric {
    const struct ibshift_fabric *graph;
    struct sim_fabric_options options;
    struct sim_fabric_user user;
    struct sim_queue *queue;
    struct sim_port *ports;
    int words;       /* of 64 bits in a mask of a switch's ports */
    int head_bucket; /* event bucket of SIM_HEAD */
    struct sim_rate rate[SIM_RATES_MAX];
    unsigned rates;
    int32_t *credit;  /* [port * lanes + lane] bytes free behind the cable */
    uint64_t *wanted; /* [(output * lanes + lane) * words] inputs that have packets for it */
    uint64_t *wants;  /* [input * words] outputs that its packets wait for */
    uint64_t *nearer; /* [(switch * switches + that of a host) * words] outputs; NULL: static */
    uint16_t *steps;  /* [switch * switches + that of a host]; NULL: ways are not kept */
    uint8_t *way;     /* [flow * way_length + steps to go] outputs, or SIM_NO_WAY */
    uint32_t way_length;
    struct sim_recent *recent; /* by pair of hosts and switch; NULL: no way is kept for a time */
    uint64_t random;
    uint64_t *full;                /* [switch * words] inputs that may not start another packet */
    struct sim_queue_ends *queues; /* see sim_queue_of() */
    struct sim_packet *packets;
    uint32_t packet_room, packet_used, unused_packet;
    struct sim_active *flows;
    uint32_t flow_room, flow_used, unused_flow;
    uint32_t *ring;  /* [host port]: the message that sends next, or SIM_NONE */
    uint32_t *row;   /* [host port]: packets that it has sent in its turn */
    uint64_t *woken; /* [host port]: when SIM_DUE is on its way, or SIM_NEVER */
    struct sim_fabric_stats stats;
    uint64_t *bins;     /* [port * options.bins + bin]: ps that the cable was busy, or NULL */
    uint64_t bin_width; /* ps */
};

/* Packets from an input for an output on a VL. */
static inline struct sim_queue_ends *
sim_queue_of(const struct sim_fabric *f, const struct sim_port *in, unsigned lane, unsigned out)
{
    return &f->queues[in->queues + (size_t)lane * in->ports + out];
}

/* Puts a packet on the cable out of a port. */
void sim_cable_start(struct sim_fabric *f, uint32_t port, uint32_t packet, unsigned lane);
/* A host's events: its cable is free, it has credit again, it is due, or a packet has come. */
void sim_host_event(struct sim_fabric *f, int kind, const struct sim_event *event);

/* Fills f->nearer, and f->steps where ways are kept. 0 or -E2BIG. */
int sim_adaptive_open(struct sim_fabric *f);
/* The number of the output that the packet at a switch's port takes; fixed: the table's. */
unsigned sim_adaptive_out(struct sim_fabric *f, const struct sim_port *in,
                          const struct sim_packet *p, unsigned fixed);

static inline void sim_bit_set(uint64_t *mask, unsigned bit)
{
    mask[bit / 64] |= 1ull << bit % 64;
}

static inline bool sim_bit_is_set(const uint64_t *mask, unsigned bit)
{
    return (mask[bit / 64] >> bit % 64 & 1) != 0;
}

static inline uint64_t sim_bytes_time(const struct sim_rate *rate, uint64_t bytes)
{
    return bytes * 8000000 / rate->megabits;
}

static inline uint64_t sim_time_of(const struct sim_fabric *f, const struct sim_rate *rate,
                                   uint32_t bytes)
{
    return bytes == f->options.mtu ? rate->full : sim_bytes_time(rate, bytes);
}

/* An event after the time of a packet, plus `more`; bucket: for full packets. */
static inline void sim_after_packet(struct sim_fabric *f, const struct sim_rate *rate,
                                    uint32_t bytes, int bucket, uint64_t more, int kind, uint32_t a,
                                    uint32_t b)
{
    if (bytes == f->options.mtu) {
        sim_queue_after(f->queue, bucket, a, b);
    } else {
        sim_queue_at(f->queue, f->queue->now + sim_bytes_time(rate, bytes) + more, kind, a, b);
    }
}

#endif

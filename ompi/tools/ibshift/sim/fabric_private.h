/* What the files of the packet model share. */
#ifndef IBSHIFT_SIM_FABRIC_PRIVATE_H
#define IBSHIFT_SIM_FABRIC_PRIVATE_H

#include <assert.h>

#include "sim/fabric.h"

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
    SIM_SLOT,     /* the switch of port a matches its inputs and outputs */
};

enum sim_packet_flag { SIM_PACKET_EARLY = 1, SIM_PACKET_OTHER = 2 };

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
    uint32_t peer;     /* SIM_NONE: no cable */
    uint32_t sw;       /* its switch, or SIM_NO_SWITCH */
    uint32_t first;    /* first port of its node */
    uint8_t number;    /* port - first */
    uint8_t ports;     /* of its node */
    uint8_t rate;      /* class */
    uint8_t is_busy;   /* a packet is leaving */
    uint8_t to_switch; /* what the cable leads to */
    uint8_t reads;     /* packets that leave the buffer now */
    uint8_t turn;      /* the input that is next for this output */
    uint8_t lane_turn; /* the VL that is next */
    uint8_t read_turn; /* the output that is next for this input */
    uint32_t waiting;  /* packets for this output */
    uint64_t queues;   /* the first of its input's, in sim_fabric.queues */
    uint64_t busy[2];  /* ps: the job's packets, others */
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
    uint64_t early;    /* bytes to go until the early mark; 0: none */
    uint64_t gap, due; /* ps */
    uint16_t lid;
    uint8_t sl;
    bool is_other, is_serial;
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
    uint64_t *full;                /* [switch * words] inputs that may not start another packet */
    struct sim_queue_ends *queues; /* see sim_queue_of() */
    struct sim_packet *packets;
    uint32_t packet_room, packet_used, unused_packet;
    struct sim_active *flows;
    uint32_t flow_room, flow_used, unused_flow;
    uint32_t *ring; /* [host port]: the message that sends next, or SIM_NONE */
    uint32_t *row;  /* [host port]: packets that it has sent in its turn */
    uint64_t *slot; /* [switch]: when SIM_SLOT is on its way, or SIM_NEVER */
    uint64_t slot_length;
    uint64_t *woken; /* [host port]: when SIM_DUE is on its way, or SIM_NEVER */
    struct sim_fabric_stats stats;
    uint64_t *bins; /* [port * bin_count + bin], or NULL */
    uint32_t bin_count;
    uint64_t bin_width;
};

/* Packets from an input for an output on a VL; in a FIFO those for all outputs. */
static inline struct sim_queue_ends *
sim_queue_of(const struct sim_fabric *f, const struct sim_port *in, unsigned lane, unsigned out)
{
    return &f->queues[in->queues + (size_t)lane * in->ports +
                      (f->options.arbiter == SIM_FIFO ? 0 : out)];
}

/* Puts a packet on the cable out of a port. */
void sim_cable_start(struct sim_fabric *f, uint32_t port, uint32_t packet, unsigned lane);
/* A host's events: its cable is free, it has credit again, it is due, or a packet has come. */
void sim_host_event(struct sim_fabric *f, int kind, const struct sim_event *event);

/* Fills f->nearer, and f->steps where ways are kept. 0 or -E2BIG. */
int sim_adaptive_open(struct sim_fabric *f);

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

/*
 * The wire as a fluid: messages flow over links, and flows that share a link share its rate evenly,
 * as packets of several messages that take turns do. A message flows at the least share that its
 * links give it; whenever a flow starts or ends, the shares of those that meet it change.
 *
 * Queue pairs are owners. An owner's messages leave in order, one after another, and their
 * latencies overlap. What a READ brings back follows the same rule in a lane of its own: its
 * request leaves in order with the writes, its bytes then flow over the way back.
 * Each port has a gate: a message may not leave within the gap after the one before.
 *
 * How many bytes of one message an adapter sends before it turns to another queue pair's message is
 * not known in general. Without a burst it is next to none: all of a gate's messages flow at once.
 * With one, a gate's messages take turns of a burst each. A burst begins when the one before it has
 * had its time on the gate's own cable, and when it and those of its gate that are under way fit
 * into the buffers of the switches, or none is under way: several are where links behind it are
 * slower.
 *
 * Time is an argument: nothing here reads a clock, events are handled in the order of their times
 * however late wire_net_advance() is called. The arrays are the caller's (in shared memory, or of a
 * test), and so is the lock around every call.
 */
#ifndef SOFTHCA_WIRE_NET_H
#define SOFTHCA_WIRE_NET_H

#include <stdbool.h>
#include <stdint.h>

enum { WIRE_HOPS = 40, WIRE_MESSAGES = 1 << 16 };

/* A packet and the buffer of a switch's port, both as `ibshift sim` has them for its usual switch:
   the two programs mean the same by a burst. */
enum { WIRE_PACKET = 2048, WIRE_BUFFER = 51200 };

#define WIRE_NONE  UINT32_MAX
#define WIRE_NEVER UINT64_MAX

struct wire_link {
    double rate;    /* bytes per nanosecond */
    uint64_t bytes; /* of all messages that took it */
    uint32_t flows, most;
    uint32_t first; /* of the flows on it: message * WIRE_HOPS + hop + 1, 0: none */
};

enum wire_stage {
    WIRE_FREE,
    WIRE_QUEUED,  /* behind another of its lane */
    WIRE_COMING,  /* a READ's request is on its way until `when` */
    WIRE_GATED,   /* leaves at `when` */
    WIRE_TURNING, /* waits for its next turn at the gate; the first one until `when`, perhaps */
    WIRE_FLOWING, /* its burst has left at `when`, as things stand */
    WIRE_LANDED,  /* arrives, or has arrived, at `when` */
};

struct wire_request {
    uint32_t owner, gate;
    uint64_t bytes, latency;
    double limit; /* bytes per nanosecond, whatever the links would give */
    bool reads;   /* the bytes come back, through back_gate */
    uint32_t back_gate;
    uint32_t hops, link[WIRE_HOPS]; /* that the bytes take */
};

struct wire_message {
    struct wire_request r; /* gate: where it is now; bytes: that no burst has taken yet; reads: the
                              request has not left yet */
    uint32_t stage, lane;
    uint32_t next; /* of the lane, or of the free messages */
    uint32_t turn; /* the next one of those that wait at the gate + 1; 0: none */
    uint32_t heap; /* its place there */
    bool forgotten;
    uint64_t when, ready;
    uint64_t since; /* `left` held then */
    double left, rate;
    uint32_t after[WIRE_HOPS]; /* the flow behind it on each link, as in wire_link */
};

struct wire_lane {
    uint32_t head, tail; /* message + 1; 0: none */
};

struct wire_gate {
    uint64_t open;       /* when it may let the next message leave */
    uint64_t busy;       /* until then its cable carries the burst that began last */
    uint32_t head, tail; /* of those that wait for their turn: message + 1; 0: none */
    uint32_t bursts;     /* under way */
    uint32_t last;       /* who had the last turn: owner + 1 */
    uint64_t run;        /* bytes of its turns in a row in which others waited */
};

struct wire_clock {
    uint64_t now;                /* of the last event or call */
    uint64_t gap;                /* nanoseconds from one message of a gate to the next */
    uint64_t burst;              /* bytes of a message in a turn; 0: messages take none */
    uint64_t buffer;             /* bytes of a gate that the switches hold, when they do */
    uint64_t longest;            /* run of any gate, ever */
    uint32_t events, used, free; /* free: message + 1 */
    uint32_t busy;               /* a call is changing the net */
};

struct wire_net {
    struct wire_clock *clock;
    struct wire_link *links;
    struct wire_lane *lanes; /* two for each owner */
    struct wire_gate *gates;
    struct wire_message *messages;
    uint32_t *heap;
    uint32_t room; /* messages */
    /* A message of the owner will be worth a look at `when`; may be NULL. */
    void (*moved)(uint32_t owner, uint64_t when);
};

/* The message's number; WIRE_NONE: no room until others have landed. */
uint32_t wire_net_send(struct wire_net *net, const struct wire_request *request, uint64_t now);

void wire_net_advance(struct wire_net *net, uint64_t now);

/* True: it lands at *when, which may be to come, and its number is free again (also when it was
   already, because the process that looked before died at that). False: look again at *when
   (WIRE_NEVER: `moved` will tell). */
bool wire_net_look(struct wire_net *net, uint32_t message, uint32_t owner, uint64_t now,
                   uint64_t *when);

/* Nobody will look: what flows flows on, what is queued is dropped. */
void wire_net_forget(struct wire_net *net, uint32_t message, uint32_t owner);

#endif

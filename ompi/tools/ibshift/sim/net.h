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

#include <assert.h>

#include "net/net.h"
#include "sim/fabric.h"

struct sim_net_options {
    size_t max_eager;        /* bytes that wait for no grant */
    uint64_t overhead;       /* ps */
    uint64_t control;        /* ps; with grants through the fabric on top of their way */
    uint32_t grant_bytes;    /* of a grant in the fabric; 0: beside it */
    uint64_t jitter;         /* ps: each message waits 0 .. 2 * jitter, evenly spread */
    double pause_share;      /* of messages at which their host pauses */
    uint64_t pause;          /* ps */
    uint64_t skew;           /* ps: ranks begin within this time */
    uint32_t copy_rate;      /* Mb/s at which a rank copies to another of its host */
    uint32_t memory_rate;    /* Mb/s of all copies of a host at once; 0: each at its own rate */
    uint64_t copy_flight;    /* ps from the end of a copy to its sight */
    const uint32_t *node_of; /* [host]: the first host of its node; NULL: each is a node */
    bool moves_data;         /* copy the messages' bytes when they arrive */
    uint64_t seed;
};

/* In a flow's user: a grant, not the message itself. */
#define SIM_USER_GRANT 0x80000000u

struct sim_net;

/* host_of[rank]: index of the graph's host; read now only. The queue and fabric outlive it. */
struct sim_net *sim_net_create(const struct ibshift_fabric *graph,
                               const struct sim_net_options *options, const uint32_t *host_of,
                               uint32_t ranks, struct sim_queue *queue);
void sim_net_free(struct sim_net *net);

/* Ranks that are numbered from 0 for each other. */
struct sim_net_job {
    uint32_t first, ranks;
    uint64_t start;             /* ps: they begin then, or later by their skew */
    size_t max_eager;           /* bytes that wait for no grant */
    const uint8_t *lid_offsets; /* as in sim_job_params */
    uint32_t lid_offset;
};

/* Before it begins; without it all are one job. */
void sim_net_set_job(struct sim_net *net, const struct sim_net_job *job);

/* For the fabric that it is told of before it begins: something has come of a message or grant. */
void sim_net_arrived(struct sim_net *net, uint32_t user);

/*
 * The rank's turn: called when something happened to it, when it begins (once, within the skew),
 * and when it asked to be woken. The callee polls its endpoint until nothing happens any more.
 */
typedef void (*sim_net_turn)(void *context, uint32_t rank);

/* Everyone's first turn is on its way. */
void sim_net_begin(struct sim_net *net, struct sim_fabric *fabric, sim_net_turn turn,
                   void *context);

/* What sim_queue_pop() gave with a kind of at least SIM_KINDS_FABRIC, below SIM_KINDS_NET. */
void sim_net_event(struct sim_net *net, int kind, const struct sim_event *event);

/* ---- the net itself: for its own files, and for reading figures ---- */

#define SIM_NO_MESSAGE UINT32_MAX

enum sim_net_kind {
    SIM_TURN = SIM_KINDS_FABRIC, /* of rank a, if it still wants it */
    SIM_GRANT,                   /* of message a has come to its sender */
    SIM_START,                   /* message a goes into the fabric */
    SIM_GRANT_START,             /* so does its grant */
    SIM_LOCAL,                   /* message a has been copied within its host */
    SIM_ACKNOWLEDGED,            /* the sender of message a knows that it arrived */
    SIM_PIECE,                   /* a piece of message a has arrived, and its sender knows */
};

enum { SIM_SENDER, SIM_RECEIVER };

enum sim_message_flag {
    SIM_POSTED = 1 << 0, /* << SIM_SENDER or SIM_RECEIVER */
    SIM_ENDED = 1 << 2,  /* likewise: has been told */
    SIM_GRANTED = 1 << 4,
    SIM_STARTED = 1 << 5,
    SIM_ARRIVED = 1 << 6,
};

static_assert((int)SIM_PIECE < (int)SIM_KINDS_NET, "the next kind is another part's");

/* Both sides of one message; known from the first post on, until both sides have ended. */
struct sim_message {
    uint32_t next; /* in its bucket, or among the unused */
    uint32_t from, to;
    struct ibshift_net_key key;
    uint32_t flags;   /* 0: unused, if nothing is pending */
    uint32_t pending; /* grants and leaves on their way */
    size_t length[2]; /* as posted by sender and receiver */
    size_t piece;     /* see net.h */
    uint32_t beside;  /* likewise */
    uint32_t pieces;  /* at once */
    size_t entered;   /* bytes that have gone into the fabric */
    void *buffer[2];
    uint64_t cookie[2];
    char *held; /* a copy of what came before its receive, if anybody looks at it */
};

enum { SIM_ALWAYS_MOVED = 256 }; /* bytes of a message: what the executor tells itself */

struct sim_notice {
    uint64_t cookie;
    uint32_t peer;
    uint32_t granted; /* a message whose grant has come, or SIM_NO_MESSAGE: an end */
};

struct sim_end {
    struct ibshift_net net;
    struct sim_net *world;
    uint32_t self, host;
    uint32_t node;          /* by its first host: what is a host's but its cable is the node's */
    struct sim_net_job job; /* its peers are numbered from the first */
    uint64_t at;            /* ps: its processor is busy until then */
    uint64_t copied;        /* ps: its last copy to a rank of its host has been made */
    uint64_t wake;          /* when its next turn is, or SIM_NEVER */
    struct sim_notice *notices; /* a ring */
    uint32_t oldest, count, room;
    uint32_t in_pieces; /* its messages in pieces that are under way */
};

struct sim_net_stats {
    uint64_t messages; /* that arrived */
    uint64_t bytes;
    uint64_t pauses;
    uint32_t most; /* messages known at any time */
};

struct sim_net {
    const struct ibshift_fabric *graph;
    struct sim_net_options options;
    struct sim_queue *queue;
    struct sim_fabric *fabric;
    struct sim_end *ends;
    uint32_t ranks;
    uint64_t *paused; /* [node]: until when */
    uint64_t *memory; /* [node]: until when its copies need it */
    struct sim_message *messages;
    uint32_t room, used, unused;
    uint32_t known;  /* messages posted on either side that have not ended */
    uint32_t *heads; /* buckets, as many as there is room for messages */
    uint64_t random;
    sim_net_turn turn;
    void *turn_context;
    struct sim_net_stats stats;
};

/* The endpoint of a rank; the net owns it. */
static inline struct ibshift_net *sim_net_end(struct sim_net *n, uint32_t rank)
{
    return &n->ends[rank].net;
}

/* SIM_NO_MESSAGE: none. */
uint32_t sim_message_find(const struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key);
/* The one that is known, or a new one. */
uint32_t sim_message_make(struct sim_net *n, uint32_t from, uint32_t to,
                          const struct ibshift_net_key *key);

static inline bool sim_is_short(const struct sim_net *n, uint32_t rank, size_t length)
{
    return length <= n->ends[rank].net.max_eager;
}

/* Posted there and not ended. */
static inline bool sim_is_open(const struct sim_message *m, int side)
{
    return (m->flags & SIM_POSTED << side) && !(m->flags & SIM_ENDED << side);
}

/* Whether the sender's message may go into the fabric. Both ends decide by the length whether a grant is
 * needed. */
static inline bool sim_message_may_start(const struct sim_net *n, const struct sim_message *m)
{
    return sim_is_open(m, SIM_SENDER) && !(m->flags & SIM_STARTED) &&
           (sim_is_short(n, m->from, m->length[SIM_SENDER]) || (m->flags & SIM_GRANTED));
}

/* In the sender's turn: it leaves after its jitter, or when the pause that it meets is over. */
void sim_message_start(struct sim_net *n, uint32_t message);
/* In the receiver's turn. */
void sim_message_grant(struct sim_net *n, uint32_t message);
/* Moves the bytes. */
void sim_message_deliver(struct sim_net *n, struct sim_message *m);
/* Forgets the message if nothing about it is to come. */
void sim_message_forget(struct sim_net *n, uint32_t message);

/* The rank's next turn is at that time, or when its processor and host are free again. */
void sim_end_wake(struct sim_net *n, uint32_t rank, uint64_t time);

/* Tells one side the end of the message, once. */
void sim_message_end(struct sim_net *n, uint32_t message, int side);

#endif

#ifndef IBSHIFT_NET_NET_H
#define IBSHIFT_NET_NET_H

/*
 * What the executor needs from a network: point-to-point messages matched by key.
 * Implemented over verbs (verbs/), through the memory of a host (node/), as both (by_peer.h), and in
 * virtual time (the tool's sim/).
 *
 * A net is one endpoint. A process may have any number of them; nothing is global.
 *
 * Peers are small integers that mean the same endpoint on every net of the job (the caller maps
 * communicator ranks to them). Connecting is the net's affair: it happens with the first message.
 *
 * Threads. A net has no lock: its owner makes one call at a time, from any thread (the engine of
 * exec/engine.h calls under its own lock). Two nets never share a lock that the caller can see.
 * Only describe() and now() may be called while another call runs.
 *
 * No call blocks, calls back or sleeps. Time is what now() says: it may stand still between two
 * polls, and it need not be the wall clock.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Which message this is. Sender and receiver name the same key; the pair (peer, key) is unique
 * among all messages that are posted or on their way, so order plays no part in matching.
 * Goes over the wire as it is here, in little endian.
 */
struct ibshift_net_key {
    uint32_t comm; /* the communicator's id, the same on all its ranks; above it a badge */
    uint32_t seq;  /* which collective on this communicator; wraps */
    uint32_t tag;  /* which message of this collective */
};
static_assert(sizeof(struct ibshift_net_key) == 12, "the key is part of the wire format");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "nothing on the wire is swapped");

/*
 * The badge says what the sender calls, so that messages of two collectives that do not match never
 * meet. Where a call of this header takes a communicator, its badge does not count; ask() and abort()
 * show it to the peer.
 */
enum { IBSHIFT_NET_COMM_BITS = 18, IBSHIFT_NET_BADGE_BITS = 32 - IBSHIFT_NET_COMM_BITS };

static inline uint32_t ibshift_net_comm(uint32_t word)
{
    return word & ((1u << IBSHIFT_NET_COMM_BITS) - 1);
}

static inline bool ibshift_net_is_of(const struct ibshift_net_key *key, uint32_t comm, uint32_t seq)
{
    return ibshift_net_comm(key->comm ^ comm) == 0 && key->seq == seq;
}

struct ibshift_net_mem; /* a registration; the net's own */
struct ibshift_cast;    /* a multicast group; the net's own */

enum { IBSHIFT_NET_OPENED = 1 << 30 }; /* above it a number has no bits */

/* Read by send() and recv() during the call only; the buffer is lent until the message ends. */
struct ibshift_net_message {
    uint32_t peer;
    struct ibshift_net_key key;
    void *buffer;                /* not written by send() */
    size_t length;               /* may be 0; the same on both sides */
    struct ibshift_net_mem *mem; /* registration that covers the buffer; NULL: the net sees to it */
    uint64_t cookie;             /* comes back in the events */
    bool is_busy;     /* the caller has other work meanwhile, or a sender other messages; a hint */
    bool is_attended; /* both sides wait for the end and do nothing else; a hint */

    /* The same number on both sides: a message with this communicator, number and tag comes to the
       same place each time, has the same length, and its sender sends it only when the receiver does not
       need any more what came there before. So the first grant may stand until the communicator is
       forgotten: a hint; 0 where it is not so, or recv() does not want it. Where the number is
       IBSHIFT_NET_OPENED, the receiver has said that what came before may be overwritten, in this
       collective, before the message is sent, and its length may change. */
    uint32_t standing;
    bool
        is_anew; /* of an opened number: the grant that stood does not hold, recv() sends another; both know */

    /* A message to all members of a group: send() to the one that comes next after the sender goes to all at once, and those
       to other members of its key, which must be sent as well, are part of it. NULL: to one, as on the other side. */
    struct ibshift_cast *cast;

    /* send() of a long message: the adapter has one piece of so many bytes at a time, and gets the
     * next when that has left; 0: it has the whole message. beside: messages that should be under way so at a time. Hints. */
    size_t piece;
    uint32_t beside;
};

/* The end of one message: the buffer is the caller's again. */
struct ibshift_net_event {
    uint64_t cookie;
    uint32_t peer;
    int32_t status; /* 0 or a negative errno, see below */
};

/*
 * Status of a message that failed:
 *   -EMSGSIZE    the other side's length differs
 *   -ECANCELED   cancel() ended it
 *   -ECONNABORTED  the peer gave the collective up, by abort()
 *   -EBADMSG     the peer calls another collective under this number (ledger.h)
 *   -ECONNRESET  the connection to this peer broke, for this or another message
 *   -EHOSTUNREACH, -ETIMEDOUT  the peer cannot be reached, or stopped answering
 *   -ENOMEM      memory could not be registered, and copying was not possible either
 *   -EIO         everything else; describe() has the words
 * After a failed message its peer stays failed: later messages with it fail with the same status,
 * messages with other peers do not.
 */

#define IBSHIFT_ANY_MEMBER UINT32_MAX /* no peer has that number */

enum { IBSHIFT_NET_PENDING = 0, IBSHIFT_NET_DONE = 1 }; /* results of send() and recv() */

/* Why a collective failed: a status as above, and with whom. */
struct ibshift_net_cause {
    uint32_t peer;
    int32_t status;
};

struct ibshift_net;

/*
 * A peer as those see it who try messages and keep nothing of them (exec/tape.h): found once, it lives
 * as long as its net, and is a net's own struct from here on. Messages have up to max_tried bytes;
 * comm_seq is the first two words of the key as they lie in it. True: it is over, the buffer is the
 * caller's, no event. False: nothing happened, whatever the reason, but that a try to receive may
 * have written to the buffer: it can be tried again, after try_recv() without a poll, and send() or
 * recv() tells of errors. try_recv() may look for the message more than once, for less time than a yield
 * takes.
 */
struct ibshift_net_channel {
    bool (*try_send)(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                     const void *buffer, size_t length);
    bool (*try_recv)(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                     void *buffer, size_t length);
};

/*
 * How many pieces of a message the adapter gets at once, after so many, when the sender has posted so many messages in pieces.
 * While there are far fewer than the pieces were meant for, the wire would rest until each is known to have left; so they double,
 * step by step, for those that are still to come would wait behind a long one.
 */
enum { IBSHIFT_NET_PIECES_MOST = 4096 };
static inline uint32_t ibshift_net_pieces(uint32_t before, uint32_t messages, uint32_t beside)
{
    uint32_t most = 2 * messages >= beside ? 1
                    : messages > 1         ? beside / messages
                                           : IBSHIFT_NET_PIECES_MOST;

    return 2 * before < most ? 2 * before : most;
}

static inline uint64_t ibshift_net_comm_seq(uint32_t comm, uint32_t seq)
{
    return comm | (uint64_t)seq << 32;
}

/* The same as for send() and recv(). */
static inline struct ibshift_net_message
ibshift_net_tried(uint32_t peer, uint64_t comm_seq, uint32_t tag, const void *buffer, size_t length)
{
    return (struct ibshift_net_message){
        .peer = peer,
        .key = {.comm = (uint32_t)comm_seq, .seq = (uint32_t)(comm_seq >> 32), .tag = tag},
        .buffer = (void *)(uintptr_t)buffer,
        .length = length};
}

/* What a net asks its owner about communicators; a function that is NULL: nobody knows. */
struct ibshift_ledger; /* ledger.h */
struct ibshift_given_up;

struct ibshift_net_comms {
    void *context;
    /* Whether one of this number is on this side, and has this peer, or IBSHIFT_ANY_MEMBER. */
    bool (*is_here)(void *context, uint32_t comm, uint32_t member);
    struct ibshift_ledger *(*ledger)(void *context, uint32_t comm); /* may return NULL as well */
    /* Whether this side began the collective of that number, and has ended it, so that no peer will get anything more of it. */
    bool (*has_ended)(void *context, uint32_t comm, uint32_t seq);
};

struct ibshift_net_ops {
    /* Of a net that has several: the one that reaches the peer, which serves all calls that name one.
       NULL: it is one. */
    struct ibshift_net *(*part)(struct ibshift_net *net, uint32_t peer);

    /*
     * The message is ready to go: up to max_eager bytes it leaves at once, as far as the receiver
     * has room; above, it waits for the receiver's grant.
     * PENDING: one event will follow. DONE: it is over, the buffer is the caller's, no event.
     * -EAGAIN: a queue is full; nothing happened; try again after a poll. Other errors: refused
     * with a status as above, no event.
     */
    int (*send)(struct ibshift_net *net, const struct ibshift_net_message *message);

    /*
     * The message may come: this is the grant that a long message waits for, sent in the order of
     * the calls. Results as for send(); DONE: a message that was held has been copied.
     * A message whose receive is not posted yet (its sender is ahead by a round or by a whole
     * collective) is held or left with its sender, within memory that neither the number of
     * peers nor of communicators moves. It never keeps a message from arriving whose receive is
     * posted, whoever sent it.
     */
    int (*recv)(struct ibshift_net *net, const struct ibshift_net_message *message);

    /* NULL: the peer has none. May be NULL where max_tried is 0. */
    struct ibshift_net_channel *(*channel)(struct ibshift_net *net, uint32_t peer);

    /*
     * Moves everything a little and delivers up to max events; returns their number. Bounded work.
     * Never fails: a device that died shows as one failed event for each message in flight.
     */
    int (*poll)(struct ibshift_net *net, struct ibshift_net_event *events, int max);

    /*
     * Ends all messages of (comm, seq): each of them still gets its event, -ECANCELED or its real
     * outcome, and only with that event is its buffer free of the device. Connections that can
     * only be silenced by breaking them are broken. What arrives later under these keys is dropped.
     */
    void (*cancel)(struct ibshift_net *net, uint32_t comm, uint32_t seq);

    /*
     * Tells the peer that this side has given (comm, seq) up: the peer's messages with this side
     * under that key, posted and to come, fail with -ECONNABORTED. So one rank's error ends the
     * collective on all ranks that wait for it, also for a grant. What cannot be remembered within
     * bounded memory fails the peer as a whole; what cannot be delivered is dropped. why: as the
     * communicator was given up; status 0: it was not. May be NULL.
     */
    void (*abort)(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                  const struct ibshift_net_cause *why);

    /*
     * This side takes part in nothing more on the communicator, for the reason given: what comes
     * for it is dropped, and a peer that ask()s about one of its collectives is answered as by
     * abort(). So the caller ends all that it runs there. A net may also do it by itself, before it
     * answers. Holds until enter() of the same number. has_given_up(): whether it did, and why; the
     * peer is the one whose failure was noticed here. Both may be NULL, together.
     */
    void (*give_up)(struct ibshift_net *net, uint32_t comm, const struct ibshift_net_cause *why);
    bool (*has_given_up)(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why);

    /* A communicator begins on this side: what was given up under its number was another's. May be
       NULL. */
    void (*enter)(struct ibshift_net *net, uint32_t comm);

    /*
     * Asks the peer whether it still takes part in (comm, seq). Costs a message; may be dropped, so
     * who waits asks again. False: nothing can be asked of it now. May be NULL.
     */
    bool (*ask)(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq);

    /*
     * The communicator is gone on this side, and its number may be used again: what is remembered
     * of its collectives that failed, and what came early for them, is no more. May be NULL.
     */
    void (*forget)(struct ibshift_net *net, uint32_t comm);

    /* The grants of an opened number stand no longer, on this side. A peer that may yet write by one, for its message
       of (comm, *seq) has not come, loses its connection; seq NULL: none may. NULL: no grant ever stands. */
    void (*revoke)(struct ibshift_net *net, uint32_t comm, uint32_t standing, const uint32_t *seq);

    /*
     * Asks whether the peer is alive: when it is not, its posted messages get their failed events
     * after a while. A peer that lives but is late, even one that never entered the library, is
     * not failed by it. Costs a message; may be dropped while an earlier one is under way. NULL
     * in a net that looks after the peers it waits for by itself.
     */
    void (*probe)(struct ibshift_net *net, uint32_t peer);

    /*
     * Registers memory ahead of many messages. Only a hint: on failure the caller passes NULL
     * instead, and the net copies. Both are NULL in a net that knows no registration.
     */
    int (*mem_register)(struct ibshift_net *net, void *base, size_t length,
                        struct ibshift_net_mem **mem);
    void (*mem_release)(struct ibshift_net *net, struct ibshift_net_mem *mem);

    /* One line about the peer for an error message: host, address, queue pair, what failed last. */
    void (*describe)(struct ibshift_net *net, uint32_t peer, char *text, size_t size);

    uint64_t (*now)(struct ibshift_net *net); /* nanoseconds, never falling. NULL: the machine's */

    void (*destroy)(struct ibshift_net *net); /* nothing may be in flight */
};

/* The head of every implementation's own struct. */
struct ibshift_net {
    const struct ibshift_net_ops *ops;
    size_t max_eager;                  /* the same on all peers */
    size_t max_tried;                  /* bytes of a message over any channel */
    struct ibshift_given_up *given_up; /* given_up.h; NULL: nothing that fails is remembered */
    /* Of a net with channels: while it is 0, has_given_up() has nothing to tell. */
    const uint32_t *given_up_count;
    const uint64_t *ungranted; /* bytes of sends that wait for their grants; NULL: a net without */
};

static inline struct ibshift_net *ibshift_net_part(struct ibshift_net *net, uint32_t peer)
{
    return net->ops->part != NULL ? net->ops->part(net, peer) : net;
}

static inline int ibshift_net_send(struct ibshift_net *net,
                                   const struct ibshift_net_message *message)
{
    net = ibshift_net_part(net, message->peer);
    return net->ops->send(net, message);
}

static inline int ibshift_net_recv(struct ibshift_net *net,
                                   const struct ibshift_net_message *message)
{
    net = ibshift_net_part(net, message->peer);
    return net->ops->recv(net, message);
}

static inline struct ibshift_net_channel *ibshift_net_channel(struct ibshift_net *net,
                                                              uint32_t peer)
{
    net = ibshift_net_part(net, peer);
    return net->ops->channel != NULL ? net->ops->channel(net, peer) : NULL;
}

static inline int ibshift_net_poll(struct ibshift_net *net, struct ibshift_net_event *events,
                                   int max)
{
    return net->ops->poll(net, events, max);
}

static inline void ibshift_net_cancel(struct ibshift_net *net, uint32_t comm, uint32_t seq)
{
    net->ops->cancel(net, comm, seq);
}

/* given_up.c */
void ibshift_net_abort(struct ibshift_net *net, uint32_t peer, uint32_t comm, uint32_t seq);
/* The status with which the failure of a communicator began; `status`: that is not known. */
int ibshift_net_root(const struct ibshift_net *net, uint32_t comm, int status);
/* Anything, ever: peers that have not heard of it may still write where grants stood. */
bool ibshift_net_has_failed(const struct ibshift_net *net);

static inline void ibshift_net_give_up(struct ibshift_net *net, uint32_t comm,
                                       const struct ibshift_net_cause *why)
{
    net = ibshift_net_part(net, why->peer);
    if (net->ops->give_up != NULL) {
        net->ops->give_up(net, comm, why);
    }
}

static inline bool ibshift_net_has_given_up(struct ibshift_net *net, uint32_t comm,
                                            struct ibshift_net_cause *why)
{
    return net->ops->has_given_up != NULL && net->ops->has_given_up(net, comm, why);
}

static inline void ibshift_net_enter(struct ibshift_net *net, uint32_t comm)
{
    if (net->ops->enter != NULL) {
        net->ops->enter(net, comm);
    }
}

static inline bool ibshift_net_ask(struct ibshift_net *net, uint32_t peer, uint32_t comm,
                                   uint32_t seq)
{
    net = ibshift_net_part(net, peer);
    return net->ops->ask != NULL && net->ops->ask(net, peer, comm, seq);
}

static inline void ibshift_net_forget(struct ibshift_net *net, uint32_t comm)
{
    if (net->ops->forget != NULL) {
        net->ops->forget(net, comm);
    }
}

static inline void ibshift_net_revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing,
                                      const uint32_t *seq)
{
    if (net->ops->revoke != NULL) {
        net->ops->revoke(net, comm, standing, seq);
    }
}

static inline void ibshift_net_probe(struct ibshift_net *net, uint32_t peer)
{
    net = ibshift_net_part(net, peer);
    if (net->ops->probe != NULL) {
        net->ops->probe(net, peer);
    }
}

/* The registration, or NULL where there is none: both are good for a message. */
static inline struct ibshift_net_mem *ibshift_net_mem_register(struct ibshift_net *net, void *base,
                                                               size_t length)
{
    struct ibshift_net_mem *mem = NULL;

    if (net->ops->mem_register == NULL || net->ops->mem_register(net, base, length, &mem) != 0) {
        return NULL;
    }
    return mem;
}

static inline void ibshift_net_mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem)
{
    if (mem != NULL) {
        net->ops->mem_release(net, mem);
    }
}

static inline void ibshift_net_describe(struct ibshift_net *net, uint32_t peer, char *text,
                                        size_t size)
{
    net = ibshift_net_part(net, peer);
    net->ops->describe(net, peer, text, size);
}

static inline uint64_t ibshift_net_now(struct ibshift_net *net)
{
    struct timespec t;

    if (net->ops->now != NULL) {
        return net->ops->now(net);
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void ibshift_net_destroy(struct ibshift_net *net)
{
    net->ops->destroy(net);
}

enum { IBSHIFT_CACHE_LINE = 64 };

/*
 * Memory that another processor has written, this one has read, and the other one will write again; nobody writes
 * it now. A store to each line, which changes nothing: the writer of a line that another one has only read waits for it,
 * one line after another, and much less for one that the reader has written (bench/lines).
 */
static inline void ibshift_net_take_over(void *read, size_t n)
{
    volatile char *at = read;

    for (size_t i = 0; i < n; i += IBSHIFT_CACHE_LINE) {
        char same = at[i];

        at[i] = same;
    }
}

#endif

#ifndef IBSHIFT_NET_GIVEN_UP_H
#define IBSHIFT_NET_GIVEN_UP_H

/*
 * What has failed, as a net must remember it (net.h):
 * - collectives that were given up here: what still comes for them is dropped;
 * - collectives that a peer has given up: what is posted for them with that peer fails at once;
 * - communicators that were given up here, and why: so a peer that waits for us there is answered;
 * - questions after communicators that are not here.
 *
 * Bounded but for the communicators, of which each is remembered until its number comes back, or
 * memory ends. Of collectives the oldest are forgotten: who waits for a peer asks it again and again.
 */

#include <stdbool.h>

#include "net/ledger.h"

enum { IBSHIFT_GIVEN_UP_HERE = 64, IBSHIFT_GIVEN_UP_BY_PEERS = 256, IBSHIFT_ASKED_AFTER = 16 };
enum { IBSHIFT_GIVEN_UP_COMMS = 32 }; /* without an allocation, which may be what has failed */

struct ibshift_given_up_comm {
    uint32_t comm;
    bool is_gone;                        /* was freed since */
    struct ibshift_net_cause with, root; /* whom we noticed it with, and what began it */
};

struct ibshift_given_up_one {
    uint32_t peer; /* or IBSHIFT_ANY_MEMBER: this side */
    uint32_t comm, seq;
};

/* Two nets that are one (by_peer.h) have one. */
struct ibshift_given_up {
    struct ibshift_net_comms comms; /* written by the net that has it */
    struct ibshift_given_up_one here[IBSHIFT_GIVEN_UP_HERE];
    uint32_t here_count; /* ever; a ring */
    struct ibshift_given_up_one by_peers[IBSHIFT_GIVEN_UP_BY_PEERS];
    uint32_t peer_count;                  /* ever; a ring */
    struct ibshift_given_up_comm *failed; /* few, or more than that */
    struct ibshift_given_up_comm few[IBSHIFT_GIVEN_UP_COMMS];
    uint32_t comm_count, comm_room;
    struct {
        uint32_t comm;
        uint64_t first, last; /* when it was asked after; last 0: free */
    } asked[IBSHIFT_ASKED_AFTER];
    uint32_t asks;
    bool has_remains; /* of a collective, ever */
    bool has_failed;
    /* Of a net that may wait for a peer which it has never heard of: it does not answer, says another. */
    void (*heard_dead)(struct ibshift_net *net, uint32_t peer, uint32_t reporter);
    struct ibshift_net *owner;
};

/* The net has this one from now on. */
void ibshift_given_up_open(struct ibshift_net *net, struct ibshift_given_up *given_up);
void ibshift_given_up_free(struct ibshift_given_up *given_up);

/* Whether this side takes part in the collective no more. */
bool ibshift_given_up_here(const struct ibshift_given_up *given_up,
                           const struct ibshift_net_key *key);
bool ibshift_given_up_by_some(const struct ibshift_given_up *given_up, uint32_t peer,
                              const struct ibshift_net_key *key);

static inline bool ibshift_given_up_by(const struct ibshift_given_up *given_up, uint32_t peer,
                                       const struct ibshift_net_key *key)
{
    return given_up->peer_count > 0 && ibshift_given_up_by_some(given_up, peer, key);
}

/* cancel(): nobody asks again whether a peer has given it up. */
void ibshift_given_up_add_here(struct ibshift_given_up *given_up, uint32_t comm, uint32_t seq);

/* A peer has told so, and why. */
void ibshift_given_up_add_by(struct ibshift_given_up *given_up, uint32_t peer,
                             const struct ibshift_net_key *key);
void ibshift_given_up_heard(const struct ibshift_given_up *given_up, uint32_t peer,
                            const struct ibshift_net_cause *why);

/* Whether this peer's death is why a communicator was given up here. */
bool ibshift_given_up_is_dead(const struct ibshift_given_up *given_up, uint32_t peer);

/* give_up(); the first reason stays. */
void ibshift_given_up_add_comm(struct ibshift_given_up *given_up, uint32_t comm,
                               const struct ibshift_net_cause *with,
                               const struct ibshift_net_cause *root);

/* NULL: it was not. */
struct ibshift_given_up_comm *ibshift_given_up_comm(const struct ibshift_given_up *given_up,
                                                    uint32_t comm);

/* has_given_up() and enter() of a net that has one. */
bool ibshift_given_up_why(struct ibshift_net *net, uint32_t comm, struct ibshift_net_cause *why);
void ibshift_given_up_enter(struct ibshift_net *net, uint32_t comm);

/* forget(); false when no collective ever failed, and so nothing was left behind. */
bool ibshift_given_up_forget(struct ibshift_given_up *given_up, uint32_t comm);

/*
 * A peer's key says what it calls. Where this side calls something else under that number, the
 * communicator is given up, once, and the peer told so: true.
 */
bool ibshift_given_up_unlike(struct ibshift_net *net, uint32_t peer,
                             const struct ibshift_net_key *theirs);

/* For a message or a grant that nothing here fits: whether nothing ever will. */
bool ibshift_given_up_is_over(struct ibshift_net *net, uint32_t peer,
                              const struct ibshift_net_key *theirs);

/*
 * A peer asks after a collective, which it waits on. It is told why it waits in vain, unless this side
 * is only late. The communicator was given up here; or it is not here, though asked after for a while,
 * and an error has kept it from being made; or it has a member that does not answer, as another
 * communicator has shown: then it is given up now.
 */
void ibshift_given_up_asked(struct ibshift_net *net, uint32_t peer,
                            const struct ibshift_net_key *theirs);

/* Whether who asks is to hear that the collective has ended here: then it waits for a block that is empty on this side. */
bool ibshift_given_up_has_ended(const struct ibshift_net *net,
                                const struct ibshift_net_key *theirs);

#endif

#ifndef TEST_UNIT_NET_LOOP_H
#define TEST_UNIT_NET_LOOP_H

/*
 * net.h inside one process: the executor's test bench. Any number of endpoints share one loop,
 * driven by one thread in turn or by a thread each. Order, delays and faults come from a seed;
 * time is counted, not measured: every poll of any endpoint moves the clock by one tick.
 */

#include "net/net.h"

#include <stdbool.h>

struct ibshift_loop;

struct ibshift_loop_options {
    uint32_t peers;
    size_t max_eager;
    uint32_t room;    /* early messages that an endpoint holds; more stay with their senders */
    uint32_t depth;   /* messages on the wire per endpoint; then send() says -EAGAIN */
    uint64_t tick;    /* ns per poll */
    uint64_t delay;   /* each message takes 0..delay ns, so that they overtake each other */
    uint64_t timeout; /* ns until a send to a dead peer fails */
    uint64_t seed;    /* of delays, of which short sends end at once, and of the order of events */
    uint64_t ahead;   /* clocks are 0..ahead ns ahead of the loop's */
    double drift;     /* and run faster by 0..drift of it */
    bool refuse_memory; /* every registration fails */
};

struct ibshift_loop *ibshift_loop_create(const struct ibshift_loop_options *options);

/* The endpoint of a peer. The loop owns it: destroying it does nothing. */
struct ibshift_net *ibshift_loop_net(struct ibshift_loop *loop, uint32_t peer);

/* The peer dies when it starts its next message but `sends`: 0 is at the next one. */
void ibshift_loop_kill_after(struct ibshift_loop *loop, uint32_t peer, uint32_t sends);

/* The peer's clock jumps so many ns ahead. */
void ibshift_loop_jump(struct ibshift_loop *loop, uint32_t peer, uint64_t ahead);

/* Messages that are still on their way, held, or posted and not ended: 0 after a clean run. */
size_t ibshift_loop_left(struct ibshift_loop *loop);

void ibshift_loop_free(struct ibshift_loop *loop);

#endif

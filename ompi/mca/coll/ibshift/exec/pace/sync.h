#ifndef IBSHIFT_EXEC_PACE_SYNC_H
#define IBSHIFT_EXEC_PACE_SYNC_H

/*
 * Compares the clocks of a running op's ranks, down a binomial tree from rank 0: a rank asks its
 * parent for the common time over and over, keeps the round trips that took least, and then answers
 * its children, the nearest first.
 */

#include "exec/pace/clock.h"

struct ibshift_net;
struct ibshift_op;

struct ibshift_stamp {
    int64_t came, left; /* common time at the parent */
    uint64_t error;     /* of that */
};

struct ibshift_sync {
    bool is_done;
    bool has_jumped;  /* the clock, since it was compared before */
    bool must_send;   /* the question, or the answer */
    uint32_t child;   /* the distance of the child that is served; 0: the own clock comes first */
    uint32_t trip;    /* of that child, or the own */
    uint32_t pending; /* messages that the net has */
    uint64_t asked;   /* own time */
    struct ibshift_stamp out, in;
    struct ibshift_trip trips[IBSHIFT_CLOCK_TRIPS];
};

enum { IBSHIFT_SYNC_TAG = 3u << 30 };

void ibshift_sync_reset(struct ibshift_sync *sync);
/* Until is_done; 0 or a negative errno of the net, with the awaited rank. */
int ibshift_sync_turn(struct ibshift_sync *sync, struct ibshift_op *op, struct ibshift_net *net,
                      struct ibshift_clock *clock);
void ibshift_sync_event(struct ibshift_sync *sync, struct ibshift_net *net,
                        const struct ibshift_clock *clock, uint32_t index);
/* The own rank: none. */
uint32_t ibshift_sync_awaited(const struct ibshift_sync *sync, const struct ibshift_op *op);

#endif

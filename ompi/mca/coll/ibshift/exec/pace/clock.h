#ifndef IBSHIFT_EXEC_PACE_CLOCK_H
#define IBSHIFT_EXEC_PACE_CLOCK_H

/*
 * What a rank's own clock says in the common time of a communicator: that of its rank 0.
 * common = own + offset + drift x (own - since).
 */

#include "net/net.h"
#include "plan/alg.h"

struct ibshift_clock {
    int64_t offset; /* ns */
    double drift;   /* ns per ns */
    uint64_t since; /* own time */
    uint64_t error; /* ns; half of the longest round trips that were kept, up to rank 0 */
    bool is_known;
};

enum { IBSHIFT_CLOCK_TRIPS = 20, IBSHIFT_CLOCK_DROPPED = 30 /* per cent */ };

/* A round trip: there and back in so many ns, without the time spent there; what the other clock
 * was ahead if both ways took the same. */
struct ibshift_trip {
    uint64_t time;
    int64_t offset;
};

/* From the trips that took least: their mean offset, and the longest time among them. Sorts. */
void ibshift_clock_fit(struct ibshift_trip *trips, uint32_t count, struct ibshift_trip *fit);

static inline int64_t ibshift_clock_common(const struct ibshift_clock *clock, uint64_t own)
{
    if (clock == 0) {
        return (int64_t)own;
    }
    int64_t passed = (int64_t)(own - clock->since); /* below 0 when a turn began before it */

    return (int64_t)own + clock->offset + (int64_t)(clock->drift * (double)passed);
}

/* The own time when the common clock shows this, never before 0. */
static inline uint64_t ibshift_clock_own(const struct ibshift_clock *clock, int64_t common)
{
    int64_t own = common;

    if (clock != 0) {
        double ahead = (double)(common - clock->offset - (int64_t)clock->since);

        own = (int64_t)clock->since + (int64_t)(ahead / (1 + clock->drift));
    }
    return own > 0 ? (uint64_t)own : 0;
}

/*
 * The comparison is a plan, down a binomial tree from rank 0: a rank asks its parent for the common
 * time over and over, and then answers its children, the nearest first. Each message is written by
 * a reduction from RECV to TMP, which the executor runs when what it needs has come: so the clock
 * is read behind an arrival and before a departure. A message that the net keeps back meanwhile
 * makes its round trip long, and long ones are dropped.
 */
extern const struct ibshift_alg ibshift_comparison_alg;

struct ibshift_stamp {
    int64_t came, left; /* common time at the parent */
    uint64_t error;     /* of that */
};

/* One rank's part in a comparison. */
struct ibshift_comparison {
    struct ibshift_net *net;
    struct ibshift_clock *clock;
    bool is_root;
    bool has_jumped; /* the clock, since it was compared before */
    uint32_t stamps; /* of questions and of the last answer */
    uint64_t asked;  /* own time */
    struct ibshift_stamp in, out;
    struct ibshift_trip trips[IBSHIFT_CLOCK_TRIPS];
};

void ibshift_comparison_begin(struct ibshift_comparison *comparison, struct ibshift_net *net,
                              struct ibshift_clock *clock, bool is_root);

/* The plan's reduction; context is the comparison, whose in and out are RECV and TMP. */
void ibshift_comparison_stamp(void *context, const void *in, void *with, void *out,
                              size_t elements);

#endif

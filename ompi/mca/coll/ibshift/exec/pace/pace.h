#ifndef IBSHIFT_EXEC_PACE_PACE_H
#define IBSHIFT_EXEC_PACE_PACE_H

/*
 * Pacing holds steps back that the plan would allow (plan/ready.h), so that ranks which walk a
 * good order stay in step. A pace is a wish, the same on all ranks; the plug that serves it is a
 * table of functions over the op's state. An op without a pace never comes here, and one with a
 * window has none: the walk keeps it.
 *
 * - window: so many messages at once each way, and nothing else;
 * - grants: a barrier first, then a receiver lets so many messages come at once, in its own order;
 * - clk: stages have slots on one clock; a message that misses its slot is set aside, and made up
 *   at the end;
 * - rate: many messages at once, each of them slow.
 *
 * A send that is left aside has been started for the walk, but the net does not have it yet: later
 * steps go on. That is right only in plans where no step waits for another (all-to-all by a shift
 * or by stages: need and drain are 0); leave() is refused for steps with either.
 */

#include "exec/pace/clock.h"
#include "exec/pace/gate.h"
#include "exec/pace/sync.h"
#include "net/net.h"
#include "plan/walk.h"

struct ibshift_engine;
struct ibshift_op;
struct ibshift_pace_plug;

enum ibshift_pace_kind {
    IBSHIFT_PACE_NONE,
    IBSHIFT_PACE_WINDOW,
    IBSHIFT_PACE_GRANTS,
    IBSHIFT_PACE_CLK,
    IBSHIFT_PACE_RATE,
    IBSHIFT_PACES
};

enum {
    IBSHIFT_PACE_GRANTS_MAX = 16,
    IBSHIFT_ASIDE_MAX = 64,
    IBSHIFT_PACE_FLIGHTS = IBSHIFT_ASIDE_MAX + 2 * IBSHIFT_PACE_GRANTS_MAX,
};

/* What all ops of one kind and size on a communicator have learned; under the engine's lock. */
struct ibshift_pace_memory {
    uint64_t unit; /* ns that a message takes when nothing is in its way; 0: not known */
    uint64_t lag;  /* ns that messages start behind their slots, on average */
    uint32_t runs;
    uint32_t jumps;          /* the clock had to be given up */
    uint64_t messages, left; /* sends that had slots; that missed them */
    uint32_t *left_to;       /* by rank; NULL: not counted */
};

/* The same on all ranks, but for clock and memory; left alone while an op runs with it. */
struct ibshift_pace {
    enum ibshift_pace_kind kind;
    uint32_t grants;  /* messages that come at once; 1..IBSHIFT_PACE_GRANTS_MAX */
    uint32_t window;  /* and that leave at once; WINDOW: both, 1..IBSHIFT_WINDOW_MAX */
    bool is_gated;    /* all begin together: a barrier first */
    uint32_t stretch; /* CLK: a slot in per cent of a message's time */
    uint32_t lead;    /* CLK: the part of a message, in per cent, that overlaps the next one */
    uint32_t limit;   /* CLK: how late a message may start, in per cent of its time */
    uint32_t make_up; /* CLK: messages at once at the end */
    uint32_t part;    /* RATE: a message goes at 1/part of the link's rate */
    uint64_t kib;     /* RATE: ns that 1024 bytes take at the link's whole rate */
    uint64_t unit;    /* ns that a message takes alone; 0: measured */
    uint64_t delay;   /* ns that a short message takes, roughly */
    uint64_t sync;    /* CLK: ns after which the clock is compared anew; 0: it is right */
    struct ibshift_clock *clock;        /* NULL: the net's own, taken as the same everywhere */
    struct ibshift_pace_memory *memory; /* NULL: nothing is remembered */
};

struct ibshift_aside {
    struct ibshift_step step;
    uint32_t index; /* of its flight */
};

struct ibshift_pace_flight {
    uint64_t since;
    bool is_loose; /* counts no more: early, left, or given up waiting for */
    bool is_made_up;
};

/* The op's, from its first start with a pace to its end. Times are own ones, but for start and base. */
struct ibshift_pace_state {
    const struct ibshift_pace_plug *plug;
    uint64_t now;                         /* when the op was last turned */
    uint64_t wake;                        /* when it wants to be; UINT64_MAX: only after news */
    uint32_t flying[IBSHIFT_CLASS_LOCAL]; /* that count against window and grants */
    uint32_t aside_count, made_up;        /* left aside; of those back in flight */
    bool has_begun;                       /* the first gate has opened, and told: */
    int64_t start;                        /* the last rank's entry, common time */
    uint64_t unit;                        /* ns that a message takes */
    uint32_t first_stage;
    bool is_plain; /* CLK: the clock is not to be trusted */
    int64_t base;  /* CLK: slot 0, common time */
    uint64_t slot; /* CLK: ns between slots */
    struct ibshift_gate gate;
    struct ibshift_sync sync;
    struct ibshift_pace_flight flight[IBSHIFT_CLASS_LOCAL][IBSHIFT_PACE_FLIGHTS];
    struct ibshift_aside aside[IBSHIFT_ASIDE_MAX];
};

/* Whether an op carries it; else the op's params have its window, if it is one, and no pace. */
static inline bool ibshift_pace_is_plug(const struct ibshift_pace *pace)
{
    return pace->kind > IBSHIFT_PACE_WINDOW;
}

/* Fills everything but clock and memory with what the kind takes by default. */
void ibshift_pace_default(struct ibshift_pace *pace, enum ibshift_pace_kind kind);

/*
 * "none", "window:W", "grants:W", "clk", "rate:W" or "rate:W/PART"; every number may
 * be left out. 0, or -EINVAL and one line in why.
 */
int ibshift_pace_parse(const char *text, struct ibshift_pace *pace, char *why, size_t size);
void ibshift_pace_format(const struct ibshift_pace *pace, char *text, size_t size);

#endif

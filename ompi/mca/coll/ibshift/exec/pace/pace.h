#ifndef IBSHIFT_EXEC_PACE_PACE_H
#define IBSHIFT_EXEC_PACE_PACE_H

/*
 * Pacing holds steps back that the plan would allow (plan/ready.h), so that ranks which walk a
 * good order stay in step. A pace is a wish, the same on all ranks. An op without a pace never comes
 * here, and one with a window has none: the walk keeps it.
 *
 * - window: so many messages at once each way, and nothing else; whole, or in pieces of which the
 *   adapter has one of each message at a time, so that it cannot send more of one in a row;
 * - clk: stages have slots on one clock; a message that misses its slot is deferred to the end.
 *
 * A deferred send has been started for the walk, but the net does not have it yet: later
 * steps go on. That is right only in plans where no step waits for another (all-to-all by a shift
 * or by stages: need and drain are 0); defer() is refused for steps with either.
 */

#include "exec/op.h"
#include "exec/pace/clock.h"

enum ibshift_pace_kind { IBSHIFT_PACE_NONE, IBSHIFT_PACE_WINDOW, IBSHIFT_PACE_CLK, IBSHIFT_PACES };

enum {
    IBSHIFT_PIECE_MIN = 256,
    IBSHIFT_PIECE_MAX = 1 << 20,
    IBSHIFT_DEFERRED_MAX = 64,
    IBSHIFT_GATE_WORDS = 4,
    IBSHIFT_PACE_FLIGHTS = IBSHIFT_DEFERRED_MAX + 32,
};

/* What all ops of one kind and size on a communicator have learned; under the engine's lock. */
struct ibshift_pace_memory {
    uint64_t unit; /* ns that a message takes when nothing is in its way; 0: not known */
    uint32_t runs;
    uint32_t jumps;          /* the clock had to be given up */
    uint64_t messages, left; /* sends that had slots; that missed them */
    uint32_t *left_to;       /* by rank; NULL: not counted */
};

/* The same on all ranks, but for clock and memory; left alone while an op runs with it. */
struct ibshift_pace {
    enum ibshift_pace_kind kind;
    uint32_t window;   /* messages at once each way; 1..IBSHIFT_WINDOW_MAX */
    uint32_t piece;    /* WINDOW: bytes of a message that the adapter has at a time; 0: all */
    bool is_gated;     /* all begin together: a barrier first */
    uint32_t stretch;  /* CLK: a slot in per cent of a message's time */
    uint32_t lead;     /* CLK: the part of a message, in per cent, that overlaps the next one */
    uint32_t limit;    /* CLK: how late a message may start, in per cent of its time */
    uint32_t catch_up; /* CLK: messages at once at the end */
    uint64_t unit;     /* ns that a message takes alone; 0: measured */
    uint64_t delay;    /* ns that a short message takes, roughly */
    uint64_t sync;     /* CLK: ns after which the clock is compared anew; 0: it is right */
    struct ibshift_clock *clock;        /* NULL: the net's own, taken as the same everywhere */
    struct ibshift_pace_memory *memory; /* NULL: nothing is remembered */
};

struct ibshift_deferred {
    struct ibshift_step step;
    uint32_t index; /* of its flight */
};

struct ibshift_pace_flight {
    uint64_t since;
    bool is_uncounted; /* no longer among the messages that the window counts: it was early, its
                          * sender deferred it, or this rank has waited for it long enough */
    bool is_catching_up;
};

/* The op's, from its first start with a pace to its end. Times are own ones, but for start and base. */
struct ibshift_pace_state {
    uint64_t now;                         /* when the op was last turned */
    uint64_t wake;                        /* when it wants to be; UINT64_MAX: only after news */
    uint32_t flying[IBSHIFT_CLASS_LOCAL]; /* that count against the window */
    uint32_t deferred_count, catching_up; /* sends that wait for the end; of those now in flight */
    bool has_begun;                       /* all have come, and have told each other: */
    int64_t start;                        /* the last rank's entry, common time */
    uint64_t unit;                        /* ns that a message takes */
    uint32_t first_stage;
    bool is_clockless;       /* CLK: the clock is not to be trusted, so windows alone hold */
    int64_t base;            /* CLK: slot 0, common time */
    uint64_t slot;           /* CLK: ns between slots */
    struct ibshift_op child; /* what is run before the op's own steps */
    uint32_t children;       /* of this run so far */
    bool is_comparing, has_compared; /* the child compares clocks, else it is a gate */
    uint64_t told[IBSHIFT_GATE_WORDS], agreed[IBSHIFT_GATE_WORDS], theirs[IBSHIFT_GATE_WORDS];
    struct ibshift_comparison comparison;
    struct ibshift_pace_flight flight[IBSHIFT_CLASS_LOCAL][IBSHIFT_PACE_FLIGHTS];
    struct ibshift_deferred deferred[IBSHIFT_DEFERRED_MAX];
};

/* Whether an op carries it; else the op's params have its window, if it is one, and no pace. */
static inline bool ibshift_pace_is_held(const struct ibshift_pace *pace)
{
    return pace->kind == IBSHIFT_PACE_CLK;
}

/*
 * Whether a rank has one message under way at a time. Single stages are all that counts then: a shift
 * takes its distances in sequence, so that a rank that is a stage late shares few links with the
 * others; in steps it shares many (ibshift_plan's in_sequence, which is the same on all ranks).
 */
static inline bool ibshift_pace_is_single(const struct ibshift_pace *pace)
{
    return pace->kind != IBSHIFT_PACE_NONE && pace->window == 1;
}

/* Fills everything but clock and memory with what the kind takes by default. */
void ibshift_pace_default(struct ibshift_pace *pace, enum ibshift_pace_kind kind);

/*
 * "none", "window:W", "window:W/PIECE" or "clk"; "window" alone is window:32. 0, or -EINVAL and one line in why.
 */
int ibshift_pace_parse(const char *text, struct ibshift_pace *pace, char *why, size_t size);
void ibshift_pace_format(const struct ibshift_pace *pace, char *text, size_t size);

/* Of a host in flight, where an order is kept. As many short messages, and more, are not paced. */
enum { IBSHIFT_PACE_BYTES = 65536 };

/* What the choice looks at; the same on all ranks. Times in ns. */
struct ibshift_pace_facts {
    uint64_t bytes;      /* of a message; 0: they differ */
    uint64_t eager;      /* shorter ones need no grant */
    double kib;          /* that 1024 bytes take on a host's link */
    double latency;      /* of a short message */
    uint32_t ranks;      /* that take part */
    uint32_t on_host;    /* of these, on the fullest host */
    uint32_t all_hosts;  /* of the fabric; 0: no routes are known */
    uint32_t ring;       /* the longest of a torus; 0: it is none */
    uint32_t share;      /* of the hosts' rate that the routes leave, in thousandths; 0: all */
    uint64_t burst;      /* bytes of one message that an adapter sends in a turn; 0: not known */
    uint32_t window;     /* of the executor, if nothing is chosen */
    bool has_free_steps; /* no step of the plan waits for another */
    bool is_attended;    /* each rank has a processor that looks at completions until the end */
    double post;         /* of a processor for a piece: posted, and its end seen */
    bool is_adaptive;    /* switches choose the routes, so that no table says them */
    bool has_circle;     /* links of the routes wait for one another in a circle */
};

/* reason: the rule in a sentence, for explain. */
void ibshift_pace_choose(const struct ibshift_pace_facts *facts, struct ibshift_pace *pace,
                         const char **reason);

/* The rest is called by the op, when it has a pace. */

void ibshift_pace_begin(struct ibshift_op *op, struct ibshift_net *net);

/*
 * The op that all ranks run before the op's own messages, with its params filled when it is idle;
 * NULL: there is none, or no longer. It is a gate: a reduction of a few numbers of which all ranks
 * get the largest; or the comparison of clocks.
 */
struct ibshift_op *ibshift_pace_child(struct ibshift_op *op, struct ibshift_net *net);
void ibshift_pace_child_ended(struct ibshift_op *op);

/* Reads the clock: once in each turn of the op. */
static inline void ibshift_pace_enter(struct ibshift_op *op, struct ibshift_net *net)
{
    op->pace->now = ibshift_net_now(net);
    op->pace->wake = UINT64_MAX;
}

/* The step that the walk would start, or a later one when sends are deferred, or NULL. */
const struct ibshift_step *ibshift_pace_next(struct ibshift_op *op, struct ibshift_net *net,
                                             enum ibshift_class which,
                                             const struct ibshift_step *step);

void ibshift_pace_annotate(const struct ibshift_op *op, const struct ibshift_step *step,
                           struct ibshift_net_message *message);
static inline void ibshift_pace_started(struct ibshift_op *op, enum ibshift_class which,
                                        uint32_t index)
{
    op->pace->flight[which][index] = (struct ibshift_pace_flight){.since = op->pace->now};
    op->pace->flying[which]++;
}

void ibshift_pace_ended(struct ibshift_op *op, struct ibshift_net *net, enum ibshift_class which,
                        uint32_t index);

/* The net says EARLY or LEFT: the window no longer counts the message. */
void ibshift_pace_uncount(struct ibshift_op *op, enum ibshift_class which, uint32_t index);

/* The place in op->pace->deferred of a send that may go now, or -1. */
int ibshift_pace_next_deferred(struct ibshift_op *op, struct ibshift_net *net);

#endif

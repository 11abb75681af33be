#ifndef IBSHIFT_CHOOSE_PACE_H
#define IBSHIFT_CHOOSE_PACE_H

/*
 * How many messages of an all-to-all a rank has under way at once, each way, and in which pieces: of
 * those the adapter has one of each message at a time, so that it cannot send more of one in a row. A
 * pace is a wish, the same on all ranks; the walk keeps its window. It decides how an all-to-all is
 * priced, and by that which algorithm runs: nothing counts that one rank knows and another does not.
 */

#include "choose/best.h"

enum ibshift_pace_kind { IBSHIFT_PACE_NONE, IBSHIFT_PACE_WINDOW, IBSHIFT_PACES };

enum {
    IBSHIFT_PIECE_MIN = 256,
    IBSHIFT_PIECE_MAX = 1 << 20,
};

struct ibshift_pace {
    enum ibshift_pace_kind kind;
    uint32_t window; /* messages at once each way; 1..IBSHIFT_WINDOW_MAX */
    uint32_t piece;  /* WINDOW: bytes of a message that the adapter has at a time; 0: all */
};

/*
 * Whether a rank has one message under way at a time. Single stages are all that counts then: a shift
 * takes its distances in sequence, so that a rank that is a stage late shares few links with the
 * others; in steps it shares many (ibshift_plan's in_sequence, which is the same on all ranks).
 */
static inline bool ibshift_pace_is_single(const struct ibshift_pace *pace)
{
    return pace->kind == IBSHIFT_PACE_WINDOW && pace->window == 1;
}

/* What the kind takes by default. */
void ibshift_pace_default(struct ibshift_pace *pace, enum ibshift_pace_kind kind);

/*
 * "none", "window:W" or "window:W/PIECE"; "window" alone is window:32. 0, or -EINVAL and one line in why.
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

/* What a rank's fabric file says. Ranks may have different files. */
struct ibshift_pacing_fabric {
    uint32_t
        hosts; /* 0: the ranks do not go in an order of the same file, so the rest does not count */
    uint32_t ring; /* the longest of a torus; 0: it is none */
    uint64_t kib;  /* ns that 1024 bytes take; 0: it does not say */
};

/* The facts that come from the fabric and from the costs that the price is made of. */
void ibshift_pacing_add(struct ibshift_pace_facts *facts, const struct ibshift_model *model,
                        const struct ibshift_pacing_fabric *fabric);

/* How long messages go under the pace. */
struct ibshift_sending ibshift_pacing_sending(const struct ibshift_pace *pace);

/* Requests that rank 0 posts in an all-to-all whose steps wait for none; piece > 0. Of many ranks the price has a sample alone. */
unsigned long long ibshift_pacing_posts(const struct ibshift_question *question, uint32_t piece);

#endif

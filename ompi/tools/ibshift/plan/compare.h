/* `ibshift plan compare`: what was priced, for its tables and its picture. */
#ifndef IBSHIFT_PLAN_COMPARE_H
#define IBSHIFT_PLAN_COMPARE_H

#include "plan/cmd.h"

enum { PLAN_ENTRIES_MAX = 128 };

struct plan_entry {
    const struct ibshift_alg *alg;
    uint32_t radix;
    bool is_optimal; /* split as LogGP has it */
    char label[48];
    double *times;               /* NAN where it cannot run */
    struct ibshift_choice *best; /* whose times they are */
};

struct plan_comparison {
    struct plan_args *args;
    struct plan_entry entries[PLAN_ENTRIES_MAX];
    int entry_count;
    double *points; /* sizes or numbers of ranks, and behind them the entries' times */
    int point_count;
    bool is_over_ranks;
    struct ibshift_choice *choices; /* of all entries */
};

/* Rows whose steps wait for one another send whole messages. */
static inline uint32_t plan_piece_of(const struct plan_comparison *c,
                                     const struct plan_entry *entry)
{
    return (entry->alg->flags & IBSHIFT_ALG_FREE) != 0 ? c->args->piece : 0;
}

/* The simplest of the entries that are as good as the fastest there, as the component has it; -1: none can run. */
int plan_winner_at(const struct plan_comparison *c, int point);
/* The point from which on b is always faster than a, or -1. */
int plan_crossing(const struct plan_comparison *c, int a, int b);
/*
 * A time that no plan gets below under the model, where each rank has a host of its own and none goes by multicast; 0: none is
 * known. What a rank has must reach the others, and its port must pass what the collective cannot do without.
 */
double plan_least(const struct plan_comparison *c, int point);
/* A size, or a number of ranks; text has room for 24. */
void plan_point_text(const struct plan_comparison *c, int point, char *text);
void plan_compare_title(const struct plan_comparison *c, char *text, size_t size);

/* Prices all, with c->args; 0 or -errno. points and choices are to be freed in either case. */
int plan_compare_all(struct plan_comparison *c);

#endif

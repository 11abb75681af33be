/* What `ibshift plan compare` has found, for its text and its picture. */
#ifndef IBSHIFT_PLAN_COMPARE_H
#define IBSHIFT_PLAN_COMPARE_H

#include "plan/cmd.h"

enum { ENTRIES_MAX = 128 };

struct entry {
    const struct ibshift_alg *alg;
    uint32_t radix;
    bool is_optimal; /* split as LogGP has it */
    char label[48];
    double *times;      /* NAN where it cannot run */
    double *formula;    /* as published; NAN where there is none */
    uint32_t *segments; /* in which it takes that time */
};

struct comparison {
    struct plan_args *args;
    struct entry entries[ENTRIES_MAX];
    int entry_count;
    double *points; /* sizes or numbers of ranks */
    int point_count;
    bool is_over_ranks;
    double *memory;
    uint32_t *segments_memory;
};

/* The first of the fastest at a point, or -1 when none can run. */
int plan_compare_winner(const struct comparison *c, int point);

/* The point from which on b is always faster than a, or -1; by the formulas or the simulation. */
int plan_compare_crossing(const struct comparison *c, int a, int b, bool is_by_formula);

void plan_compare_point(const struct comparison *c, int point, char *text);
void plan_compare_title(const struct comparison *c, char *text, size_t size);

void plan_compare_chart(const struct comparison *c, FILE *out);

#endif

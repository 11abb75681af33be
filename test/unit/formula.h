/* Closed formulas for the time of a collective: the oracle of the simulation (choose/price.h).
 *
 * loggp and logfp are as published: C. Viertel, Improving the Performance of Selected MPI
 * Collective Communication Operations on InfiniBand Networks, 2007, chapter 5. They assume L > g >
 * o_s and that all ranks enter together. Three things in them are approximate, and `exact` says it
 * without:
 *   - each block of s bytes costs (s - 1) G, where the model charges (n s - 1) G for a message of n
 * blocks (the formula of Bruck leaves the growing n out altogether);
 *   - the linear LogGP time has one gap more than there are gaps between P - 1 messages;
 *   - the n-way tree's LogfP time leaves out the gap at the root, which is longer as soon as
 *     k g > k o_s(k) + L + o_r and there are three rounds. */
#ifndef IBSHIFT_TEST_FORMULA_H
#define IBSHIFT_TEST_FORMULA_H

#include "choose/param.h"

/* What the formulas depend on: P ranks, radix k, blocks of s bytes. */
struct ibshift_formula_case {
    int ranks;
    int radix;
    double bytes;
};

typedef double ibshift_formula_time(const struct ibshift_model *,
                                    const struct ibshift_formula_case *);

struct ibshift_formula {
    const char *collective;
    const char *algorithm;
    ibshift_formula_time *loggp; /* as published */
    ibshift_formula_time *logfp;
    /* What the model's definitions give, for both models; negative where it is not known. */
    ibshift_formula_time *exact;
};

/* The formula of an algorithm, or NULL when none is published. */
const struct ibshift_formula *ibshift_formula_find(const char *collective, const char *algorithm);

/* All of them; ends with a row whose collective is NULL. */
extern const struct ibshift_formula ibshift_formulas[];

#endif

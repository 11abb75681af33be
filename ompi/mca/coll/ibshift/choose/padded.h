/*
 * An all-to-all with counts, of which all ranks have come to know how many blocks of a rank are longer than some sizes. Blocks of
 * up to `most` bytes go as a plain all-to-all of blocks of that size, padded, each with a word behind it that says how much of it
 * counts; longer ones go from rank to rank. Both ranks of a block know its size, so they agree on the way of each without a message,
 * whatever their counts have become since: only `most` must be the same on all ranks.
 */
#ifndef IBSHIFT_CHOOSE_PADDED_H
#define IBSHIFT_CHOOSE_PADDED_H

#include "choose/choose.h"

enum { IBSHIFT_PADDED_SIZES = 8, IBSHIFT_PADDED_WORD = 4 /* bytes behind a block */ };

/* The maximum over all ranks of each number is what they agree on. */
struct ibshift_padded_counts {
    uint64_t longer[IBSHIFT_PADDED_SIZES]; /* blocks of more than 0, 8, 32, 128, ... bytes */
    uint64_t longest;                      /* bytes */
};

/* A block that a rank sends, or one that it gets. */
void ibshift_padded_add(struct ibshift_padded_counts *counts, uint64_t bytes);

/* Whether the plain all-to-all of shortest blocks has a plan that counts forbid: if not, nobody need
 * count. The question is that of a plain all-to-all. */
bool ibshift_padded_may_pay(const struct ibshift_question *question);

/* Bytes up to which blocks go padded, by the prices; 0: none does. */
uint64_t ibshift_padded_most(const struct ibshift_question *question,
                             const struct ibshift_padded_counts *counts);

#endif

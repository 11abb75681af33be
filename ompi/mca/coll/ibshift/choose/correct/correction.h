/*
 * A communicator's choices under trial (trial.h), by collective and class of sizes: what was chosen meets its
 * rivals, one after the other. Pure: the same calls on all ranks come to the same plans.
 */
#ifndef IBSHIFT_CHOOSE_CORRECT_CORRECTION_H
#define IBSHIFT_CHOOSE_CORRECT_CORRECTION_H

#include "choose/choose.h"
#include "choose/correct/trial.h"
#include "choose/words.h"

enum {
    IBSHIFT_RIVALS = 8,
    IBSHIFT_RIVAL_TIMES = 4 /* a rival may be priced at so many times the plan that was chosen */
};

struct ibshift_correction {
    struct ibshift_correction *next;
    enum ibshift_collective collective;
    int class;
    bool commutes;
    struct ibshift_kept_choice own; /* the model's, until a rival was better */
    struct ibshift_choice rival[IBSHIFT_RIVALS];
    int rivals, now; /* now == rivals: done */
    bool is_rivals;  /* the call that is under way */
    struct ibshift_trial trial;
};

/* Of a list; NULL: there is none. add() puts one there; NULL: no memory. */
struct ibshift_correction *ibshift_correction_find(struct ibshift_correction *list,
                                                   enum ibshift_collective collective,
                                                   uint64_t bytes, bool commutes);
struct ibshift_correction *ibshift_correction_add(struct ibshift_correction **list,
                                                  enum ibshift_collective collective,
                                                  uint64_t bytes, bool commutes);

/* What was chosen, or a parameter asks for, is the plan to beat. */
void ibshift_correction_open(struct ibshift_correction *c, const struct ibshift_kept_choice *kept,
                             const struct ibshift_question *question);

/* Up to `most` of which both plans have run often enough, with their times; returns how many. */
int ibshift_correction_full(struct ibshift_correction *list, int most,
                            struct ibshift_correction *full[], uint64_t ns[][2]);

/* From the sums of all ranks' times: the better one meets the next rival. line: says so. */
void ibshift_correction_judge(struct ibshift_correction *c, const uint64_t sums[2], uint32_t ranks,
                              struct ibshift_line *line);

void ibshift_corrections_forget(struct ibshift_correction **list);

#endif

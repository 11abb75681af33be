#include "choose/correct/correction.h"

#include <stdio.h>
#include <stdlib.h>

#include "choose/size.h"

struct ibshift_correction *ibshift_correction_find(struct ibshift_correction *list,
                                                   enum ibshift_collective collective,
                                                   uint64_t bytes, bool commutes)
{
    struct ibshift_correction *c = list;

    while (c != NULL && (c->collective != collective || c->class != ibshift_size_class(bytes) ||
                         c->commutes != commutes)) {
        c = c->next;
    }
    return c;
}

struct ibshift_correction *ibshift_correction_add(struct ibshift_correction **list,
                                                  enum ibshift_collective collective,
                                                  uint64_t bytes, bool commutes)
{
    struct ibshift_correction *c = calloc(1, sizeof(*c));

    if (c != NULL) {
        c->collective = collective;
        c->class = ibshift_size_class(bytes);
        c->commutes = commutes;
        c->next = *list;
        *list = c;
    }
    return c;
}

void ibshift_correction_open(struct ibshift_correction *c, const struct ibshift_kept_choice *kept,
                             const struct ibshift_question *question)
{
    c->own = *kept;
    c->now = c->rivals = 0;
    c->is_rivals = false;
    c->trial = (struct ibshift_trial){.calls = 0};
    if (!kept->is_wished && c->own.choice.price.last >= 0) {
        c->rivals = ibshift_choose_rivals(question, &c->own.choice, IBSHIFT_RIVAL_TIMES, c->rival,
                                          IBSHIFT_RIVALS);
    }
}

int ibshift_correction_full(struct ibshift_correction *list, int most,
                            struct ibshift_correction *full[], uint64_t ns[][2])
{
    int count = 0;

    for (struct ibshift_correction *c = list; c != NULL && count < most; c = c->next) {
        if (c->now < c->rivals && ibshift_trial_is_full(&c->trial)) {
            ns[count][0] = ibshift_trial_quartile(&c->trial, IBSHIFT_TRIAL_OWN);
            ns[count][1] = ibshift_trial_quartile(&c->trial, IBSHIFT_TRIAL_RIVAL);
            full[count++] = c;
        }
    }
    return count;
}

static void add_plan(const struct ibshift_choice *choice, char *text, size_t size)
{
    if (choice->alg->radix_max > 0) {
        snprintf(text, size, "%s, radix %u", choice->alg->name, choice->radix);
    } else {
        snprintf(text, size, "%s", choice->alg->name);
    }
}

static void add_words(const struct ibshift_correction *c, const double us[2], bool is_better,
                      struct ibshift_line *line)
{
    const struct ibshift_choice *rival = &c->rival[c->now];
    uint64_t bytes = c->collective == IBSHIFT_BARRIER ? 0 : ibshift_class_size(c->class);
    char own[64], other[64];

    add_plan(&c->own.choice, own, sizeof(own));
    add_plan(rival, other, sizeof(other));
    ibshift_line_add(line,
                     "%s up to %llu B measured: %s %.2f us (modelled %.2f), %s %.2f us (modelled "
                     "%.2f) on average "
                     "over the ranks: %s from now on",
                     ibshift_collective_name(c->collective), (unsigned long long)bytes, own,
                     us[IBSHIFT_TRIAL_OWN], c->own.choice.price.last, other,
                     us[IBSHIFT_TRIAL_RIVAL], rival->price.last, is_better ? other : own);
}

void ibshift_correction_judge(struct ibshift_correction *c, const uint64_t sums[2], uint32_t ranks,
                              struct ibshift_line *line)
{
    bool is_better = ibshift_trial_is_better(sums[IBSHIFT_TRIAL_RIVAL], sums[IBSHIFT_TRIAL_OWN]);
    double us[2];

    for (int turn = 0; turn < 2; turn++) {
        us[turn] = (double)sums[turn] / 1e3 / ranks;
    }
    add_words(c, us, is_better, line);
    if (is_better) {
        c->own.choice = c->rival[c->now];
    }
    c->own.measured = us[is_better ? IBSHIFT_TRIAL_RIVAL : IBSHIFT_TRIAL_OWN];
    c->now++;
    c->trial = (struct ibshift_trial){.calls = 0};
}

void ibshift_corrections_forget(struct ibshift_correction **list)
{
    while (*list != NULL) {
        struct ibshift_correction *c = *list;

        *list = c->next;
        free(c);
    }
}

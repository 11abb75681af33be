/* A choice in words, in a line that is cut where it is full. */
#ifndef IBSHIFT_CHOOSE_WORDS_H
#define IBSHIFT_CHOOSE_WORDS_H

#include <stddef.h>

#include "choose/best.h"

struct ibshift_line {
    char text[512];
    size_t length;
};

__attribute__((format(printf, 2, 3))) void ibshift_line_add(struct ibshift_line *line,
                                                            const char *format, ...);

/* What is told of a choice. */
struct ibshift_decision {
    const struct ibshift_question *question;
    const struct ibshift_answer *answer;
    const char *call;       /* MPI's name */
    bool is_any_size;       /* no rank knows all sizes */
    const char *order;      /* "in routing order"; NULL: nothing is known of it */
    bool is_pace_asked_for; /* of this all-to-all */
    bool is_named;          /* a parameter names the algorithm, not a rule */
    const char *beneath;    /* why the component beneath runs; NULL: no algorithm fits */
};

void ibshift_words_decision(struct ibshift_line *line, const struct ibshift_decision *decision);

/* Why the algorithm that was asked for cannot do it, and which can. */
void ibshift_words_unfit(const struct ibshift_question *question, const struct ibshift_alg *wished,
                         struct ibshift_line *why, struct ibshift_line *able);

#endif

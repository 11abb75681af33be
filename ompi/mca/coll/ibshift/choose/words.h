/* A choice in words, in a line that is cut where it is full. */
#ifndef IBSHIFT_CHOOSE_WORDS_H
#define IBSHIFT_CHOOSE_WORDS_H

#include <stddef.h>

#include "choose/choose.h"

struct ibshift_line {
    char text[512];
    size_t length;
};

__attribute__((format(printf, 2, 3))) void ibshift_line_add(struct ibshift_line *line,
                                                            const char *format, ...);

void ibshift_line_add_plan(struct ibshift_line *line, const struct ibshift_choice *choice,
                           const struct ibshift_nodes *nodes);

#endif

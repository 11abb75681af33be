#include "choose/words.h"

#include <stdarg.h>
#include <stdio.h>

#include "plan/nodes.h"

void ibshift_line_add(struct ibshift_line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->length;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    line->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

void ibshift_line_add_plan(struct ibshift_line *line, const struct ibshift_choice *choice,
                           const struct ibshift_nodes *nodes)
{
    ibshift_line_add(line, "%s", choice->alg->name);
    if (choice->alg->radix_max > 0) {
        ibshift_line_add(line, ", radix %u", choice->radix);
    }
    if ((choice->alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        ibshift_line_add(line, ", %u segment%s", choice->segments,
                         choice->segments == 1 ? "" : "s");
    }
    if ((choice->alg->flags & IBSHIFT_ALG_NODES) != 0) {
        ibshift_line_add(line, ", %u node%s", nodes->nodes, nodes->nodes == 1 ? "" : "s");
        if (choice->leaders > 1) {
            ibshift_line_add(line, ", up to %u leaders", choice->leaders);
        }
    }
}

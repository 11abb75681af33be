#include "fabric/graph/error.h"

#include <stdarg.h>
#include <stdio.h>

int ibshift_fail(struct ibshift_error *err, int code, const char *format, ...)
{
    if (err != NULL) {
        va_list args;

        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
    }
    return code;
}

void ibshift_note(struct ibshift_notes *notes, const char *format, ...)
{
    size_t room = sizeof(notes->text) / sizeof(notes->text[0]);

    if (notes->count < room) {
        va_list args;

        va_start(args, format);
        vsnprintf(notes->text[notes->count], sizeof(notes->text[0]), format, args);
        va_end(args);
    }
    notes->count++;
}

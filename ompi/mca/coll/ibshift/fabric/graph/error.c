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

void ibshift_warn(struct ibshift_warnings *warnings, const char *format, ...)
{
    if (warnings->count < IBSHIFT_WARNINGS) {
        va_list args;

        va_start(args, format);
        vsnprintf(warnings->text[warnings->count], sizeof(warnings->text[0]), format, args);
        va_end(args);
    }
    warnings->count++;
}

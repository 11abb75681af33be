/* What was found, one line each, whatever bytes a device's texts have. */
#include <stdarg.h>
#include <stdio.h>

#include "doctor/doctor.h"

void doctor_say(struct doctor *d, enum doctor_verdict verdict, const char *name, const char *format,
                ...)
{
    va_list args;

    if (d->count == DOCTOR_LINES) {
        return;
    }
    struct doctor_line *line = &d->lines[d->count++];
    snprintf(line->name, sizeof(line->name), "%s", name);
    va_start(args, format);
    vsnprintf(line->text, sizeof(line->text), format, args);
    va_end(args);
    for (char *c = line->text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    }
    line->verdict = verdict;
}

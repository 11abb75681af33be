#include "fabric/imprint.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static void write_time(uint64_t time, char *text, size_t size)
{
    struct tm tm;
    time_t seconds = (time_t)time;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(text, size, "%F %R UTC", &tm) == 0) {
        snprintf(text, size, "%" PRIu64, time);
    }
}

static void add(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

void fabric_imprint_text(const struct ibshift_imprint *imprint, char *text, size_t size)
{
    char at[32];

    write_time(imprint->time, at, sizeof(at));
    snprintf(text, size, "%s", at);
    if (imprint->expires != 0) {
        write_time(imprint->expires, at, sizeof(at));
        add(text, size, ", good until %s", at);
    }
    if (imprint->subnet_prefix != 0) {
        add(text, size, "; subnet %016" PRIx64, imprint->subnet_prefix);
    }
    if (imprint->sm_guid != 0) {
        add(text, size, ", subnet manager %016" PRIx64 " at LID %u", imprint->sm_guid,
            imprint->sm_lid);
    }
}

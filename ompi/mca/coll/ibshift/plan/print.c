#include "plan/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define RANGE_TEXT 64

const char *ibshift_buffer_name(enum ibshift_buffer buffer)
{
    static const char *const names[] = {
        [IBSHIFT_SEND] = "SEND", [IBSHIFT_RECV] = "RECV", [IBSHIFT_TMP] = "TMP"};

    return buffer < IBSHIFT_BUFFERS ? names[buffer] : "?";
}

const char *ibshift_kind_name(enum ibshift_kind kind)
{
    switch (kind) {
    case IBSHIFT_STEP_RECV:
        return "recv";
    case IBSHIFT_STEP_SEND:
        return "send";
    case IBSHIFT_STEP_COPY:
        return "copy";
    case IBSHIFT_STEP_REDUCE:
    case IBSHIFT_STEP_REDUCE_AFTER:
        return "reduce";
    }
    return "?";
}

static void format_range(char *text, uint8_t buffer, uint32_t first, uint32_t count)
{
    const char *name = ibshift_buffer_name(buffer);

    if (count == 0) {
        snprintf(text, RANGE_TEXT, "nothing");
    } else if (count == 1) {
        snprintf(text, RANGE_TEXT, "%s[%" PRIu32 "]", name, first);
    } else {
        snprintf(text, RANGE_TEXT, "%s[%" PRIu32 "..%" PRIu32 "]", name, first, first + count - 1);
    }
}

static void format_runs(char *text, uint8_t buffer, uint32_t first, const struct ibshift_step *step)
{
    snprintf(text, RANGE_TEXT, "%s[%" PRIu32 ", runs of %" PRIu32 " by %" PRId32 "]",
             ibshift_buffer_name(buffer), first, step->run, step->stride);
}

static int append(char *text, size_t size, int used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int append(char *text, size_t size, int used, const char *format, ...)
{
    size_t at = (size_t)used < size ? (size_t)used : size;
    va_list args;

    va_start(args, format);
    used += vsnprintf(text + at, size - at, format, args);
    va_end(args);
    return used;
}

static int format_message(const struct ibshift_step *step, char *text, size_t size, int used)
{
    char range[RANGE_TEXT];

    format_range(range, step->buf, step->first, step->count);
    used =
        append(text, size, used, "%s %s %s %" PRIu32 " tag %" PRIu32, ibshift_kind_name(step->kind),
               range, step->kind == IBSHIFT_STEP_SEND ? "->" : "<-", step->peer, step->tag);
    if (step->part != 0) {
        used = append(text, size, used, ".%u", step->part);
    }
    return used;
}

static int format_local(const struct ibshift_step *step, char *text, size_t size, int used)
{
    char target[RANGE_TEXT], source[RANGE_TEXT];

    format_range(target, step->buf, step->first, step->count);
    format_range(source, step->src, step->from, step->count);
    if (step->kind == IBSHIFT_STEP_COPY && step->strided == IBSHIFT_STRIDED_SOURCE) {
        format_runs(source, step->src, step->from, step);
    }
    if (step->kind == IBSHIFT_STEP_COPY && step->strided == IBSHIFT_STRIDED_TARGET) {
        format_runs(target, step->buf, step->first, step);
    }
    if (step->kind == IBSHIFT_STEP_COPY) {
        return append(text, size, used, "copy %s = %s", target, source);
    }
    if (step->kind == IBSHIFT_STEP_REDUCE) {
        return append(text, size, used, "reduce %s = %s op %s", target, source, target);
    }
    return append(text, size, used, "reduce %s = %s op %s", target, target, source);
}

int ibshift_step_format(const struct ibshift_step *step, uint32_t rank, uint32_t round, char *text,
                        size_t size)
{
    int used = append(text, size, 0, "rank %" PRIu32 " round %" PRIu32 ": ", rank, round);

    used = ibshift_step_is_local(step) ? format_local(step, text, size, used)
                                       : format_message(step, text, size, used);
    if (step->need != 0) {
        used = append(text, size, used, " need %" PRIu32, step->need);
    }
    if (step->drain != 0) {
        used = append(text, size, used, " drain %" PRIu32, step->drain);
    }
    return used;
}

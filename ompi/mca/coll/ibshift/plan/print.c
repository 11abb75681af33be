#include "plan/print.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "plan/nodes.h"
#include "plan/order.h"

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
    char target[RANGE_TEXT], source[RANGE_TEXT], with[RANGE_TEXT];

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
    format_range(with, step->with, step->beside, step->count);
    if (step->kind == IBSHIFT_STEP_REDUCE) {
        return append(text, size, used, "reduce %s = %s op %s", target, source, with);
    }
    return append(text, size, used, "reduce %s = %s op %s", target, with, source);
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

static bool reduces(enum ibshift_collective collective)
{
    return collective >= IBSHIFT_REDUCE;
}

static bool has_root(enum ibshift_collective collective)
{
    return collective == IBSHIFT_BCAST || collective == IBSHIFT_SCATTER ||
           collective == IBSHIFT_GATHER || collective == IBSHIFT_REDUCE;
}

static void put_rank(FILE *out, uint32_t rank, const char *before)
{
    if (rank == IBSHIFT_NO_RANK) {
        fprintf(out, "%s-", before);
    } else {
        fprintf(out, "%s%u", before, rank);
    }
}

static void put_order(FILE *out, const struct ibshift_plan *plan)
{
    const struct ibshift_order *order = plan->order;

    fputs(" --order ", out);
    for (uint32_t slot = 0; slot < order->places * order->slots; slot++) {
        put_rank(out, order->rank_at[slot], slot == 0 ? "" : ",");
    }
    fprintf(out, " --slots %u --step %u", order->slots, plan->in_sequence ? 1 : order->step);
}

static void put_nodes(FILE *out, const struct ibshift_nodes *nodes, uint32_t ranks)
{
    fputs(" --nodes ", out);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        put_rank(out, nodes->node_of[rank], rank == 0 ? "" : ",");
    }
}

/* A rank has its own row of the table: the rows of all ranks make the file. */
static void put_stages(FILE *out, const struct ibshift_stages *stages, uint32_t rank)
{
    const uint32_t *row = stages->to + (size_t)(rank - stages->first) * stages->stages;

    fputs(" --stages FILE # its row:", out);
    for (uint32_t stage = 0; stage < stages->stages; stage++) {
        put_rank(out, row[stage], " ");
    }
}

void ibshift_plan_put_command(FILE *out, const struct ibshift_alg *alg,
                              const struct ibshift_plan *plan, uint32_t rank)
{
    fprintf(out, "ibshift plan print %s %s --ranks %u --rank %u",
            ibshift_collective_name(alg->collective), alg->name, plan->ranks, rank);
    if (has_root(alg->collective)) {
        fprintf(out, " --root %u", plan->root);
    }
    if (alg->radix_max > 0) {
        fprintf(out, " --radix %u", plan->radix);
    }
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        fprintf(out, " --segments %u", plan->segments);
    }
    if (reduces(alg->collective) && !plan->commutative) {
        fputs(" --non-commutative", out);
    }
    if ((alg->flags & IBSHIFT_ALG_ORDER) != 0 && plan->order != NULL) {
        put_order(out, plan);
    }
    if ((alg->flags & IBSHIFT_ALG_NODES) != 0) {
        put_nodes(out, plan->nodes, plan->ranks);
    }
    if ((alg->flags & IBSHIFT_ALG_LEADERS) != 0 && plan->leaders > 1) {
        fprintf(out, " --leaders %u", plan->leaders);
    }
    if ((alg->flags & IBSHIFT_ALG_STAGES) != 0 && plan->stages != NULL) {
        put_stages(out, plan->stages, rank);
    }
}

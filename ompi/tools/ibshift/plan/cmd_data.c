/* `ibshift plan draw`: what each rank's buffers hold before and after each round. */
#include "plan/cmd.h"

#include <errno.h>
#include <string.h>

#include "plan/data.h"
#include "plan/print.h"

enum { CELL_TEXT = 16, STAGES_MAX = 256, RANKS_MOST = 64 };

static bool is_reduction(const struct plan_args *args)
{
    return args->alg->collective >= IBSHIFT_REDUCE;
}

/* Bits side by side; there is one at least. */
static bool is_one_run(uint64_t bits)
{
    uint64_t low = bits >> __builtin_ctzll(bits);

    return (low & (low + 1)) == 0;
}

/* The ranks whose contribution it has: 0-3, 1+5, around the end 4-1, or how many. */
static void contributions(uint64_t from, uint32_t ranks, char *text)
{
    uint64_t missing = ~from & UINT64_MAX >> (64 - ranks);
    int first = __builtin_ctzll(from), count = __builtin_popcountll(from);
    int last = 63 - __builtin_clzll(from);

    if (count == 1) {
        snprintf(text, CELL_TEXT, "%d", first);
    } else if (count == last - first + 1) {
        snprintf(text, CELL_TEXT, "%d-%d", first, last);
    } else if (count == 2) {
        snprintf(text, CELL_TEXT, "%d+%d", first, last);
    } else if (is_one_run(missing)) {
        snprintf(text, CELL_TEXT, "%d-%d", 64 - __builtin_clzll(missing),
                 __builtin_ctzll(missing) - 1);
    } else {
        snprintf(text, CELL_TEXT, "(%d)", count);
    }
}

static void cell_text(const struct plan_args *args, const struct plan_cell *cell, char *text)
{
    if (cell->from == 0) {
        text[0] = '\0';
    } else if (is_reduction(args)) {
        contributions(cell->from, args->plan.ranks, text);
    } else if (args->alg->collective == IBSHIFT_ALLTOALL) {
        snprintf(text, CELL_TEXT, "%d>%u", __builtin_ctzll(cell->from), cell->block);
    } else {
        snprintf(text, CELL_TEXT, "%u", cell->block);
    }
}

static uint32_t rows_of(const struct plan_data *data, int buffer)
{
    uint32_t most = 0;

    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        uint32_t count = data->buffers[rank][buffer].count;

        most = count > most ? count : most;
    }
    return most;
}

/* SEND never changes: it is shown once, and always only where it is what is handed out. */
static bool is_shown(const struct plan_data *data, int buffer)
{
    return rows_of(data, buffer) > 0 &&
           (buffer != IBSHIFT_SEND || data->stage == 0 || data->alg->collective == IBSHIFT_SCATTER);
}

/* What is always shown comes first, so that the panels are in line. */
static int nth_buffer(const struct plan_data *data, int n)
{
    return data->alg->collective == IBSHIFT_SCATTER ? n : (n + 1) % IBSHIFT_BUFFERS;
}

static void stage_title(const struct plan_data *data, char *text, size_t size)
{
    if (data->stage == 0) {
        snprintf(text, size, "before");
    } else if (data->messages > 0) {
        snprintf(text, size, "after round %u", data->next_tag);
    } else {
        snprintf(text, size, "after copies");
    }
}

static void text_row(const struct plan_args *args, const struct plan_data *data, FILE *out,
                     int buffer, uint32_t row)
{
    int skipped = 0;

    fprintf(out, "%4s %3u ", ibshift_buffer_name((enum ibshift_buffer)buffer), row);
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        const struct plan_buffer *b = &data->buffers[rank][buffer];
        char text[CELL_TEXT + 2];

        if (row < b->count) {
            cell_text(args, &b->cells[row], text);
            if (text[0] == '\0') {
                strcpy(text, ".");
            } else if (data->stage > 0 && b->cells[row].stage == data->stage) {
                strcat(text, "*");
            }
        }
        if (row < b->count) {
            fprintf(out, " %*s", 5 + 6 * skipped, text);
            skipped = 0;
        } else {
            skipped++;
        }
    }
    fputc('\n', out);
}

static void text_stage(const struct plan_args *args, const struct plan_data *data, FILE *out)
{
    char title[40];

    stage_title(data, title, sizeof(title));
    fprintf(out, "\n%s", title);
    if (data->messages > 0) {
        fprintf(out, ": %u message%s", data->messages, data->messages == 1 ? "" : "s");
    }
    fputs("\n    rank ", out);
    for (uint32_t rank = 0; rank < data->plan->ranks; rank++) {
        fprintf(out, " %5u", rank);
    }
    fputc('\n', out);
    for (int n = 0; n < IBSHIFT_BUFFERS; n++) {
        int buffer = nth_buffer(data, n);

        for (uint32_t row = 0; is_shown(data, buffer) && row < rows_of(data, buffer); row++) {
            text_row(args, data, out, buffer, row);
        }
    }
}

static int write_stages(const struct plan_args *args, FILE *out)
{
    struct plan_data data;
    int rc = plan_data_begin(&data, args->alg, &args->plan), stages = 0;

    while (rc >= 0 && stages++ < STAGES_MAX) {
        text_stage(args, &data, out);
        rc = plan_data_step(&data);
        if (rc <= 0) {
            break;
        }
    }
    plan_data_end(&data);
    return rc < 0 ? rc : 0;
}

static const char *cell_meaning(const struct plan_args *args)
{
    return is_reduction(args)
               ? "a cell: the ranks whose contribution it holds, (n) for n scattered ones"
           : args->alg->collective == IBSHIFT_ALLTOALL ? "a cell: source > destination"
                                                       : "a cell: the number of the block";
}

int plan_draw(struct plan_args *args)
{
    char title[160];
    FILE *out;
    int rc;

    if (args->plan.ranks > RANKS_MOST) {
        cli_error(args->command, "%u ranks are too many to draw: at most %d", args->plan.ranks,
                  RANKS_MOST);
        return CLI_UNFIT;
    }
    out = plan_open(args);
    if (out == NULL) {
        return CLI_USAGE;
    }
    plan_title(args, title, sizeof(title));
    fprintf(out, "%s\n%s; * came in this round\n", title, cell_meaning(args));
    rc = write_stages(args, out);
    if (rc != 0) {
        cli_error(args->command, "%s",
                  rc == -ENOMEM ? "out of memory" : "the plan does not end: ibshift plan check");
    }
    return plan_close(args, rc == 0 ? CLI_OK : CLI_FAILED);
}

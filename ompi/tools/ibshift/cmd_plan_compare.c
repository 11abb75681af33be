/* `ibshift plan compare`: all algorithms of a collective, over sizes or over ranks, and who wins
 * where. */
#include "cmd_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "model/price.h"
#include "model/size.h"

enum { ENTRIES_MAX = 128, RADIX_TRIED = 4, CURVES_MAX = 7 };

struct entry {
    const struct ibshift_alg *alg;
    uint32_t radix;
    char label[48];
    double *times; /* NAN where it cannot run */
};

struct comparison {
    struct plan_args *args;
    struct entry entries[ENTRIES_MAX];
    int entry_count;
    double *points; /* sizes or numbers of ranks */
    int point_count;
    bool is_over_ranks;
    double *memory;
};

static void add_entry(struct comparison *c, const struct ibshift_alg *alg, uint32_t radix)
{
    struct entry *entry = &c->entries[c->entry_count];

    if (c->entry_count == ENTRIES_MAX) {
        return;
    }
    entry->alg = alg;
    entry->radix = radix;
    snprintf(entry->label, sizeof(entry->label), alg->radix_max > 0 ? "%s k=%u" : "%s", alg->name,
             radix);
    c->entry_count++;
}

static void add_entries(struct comparison *c)
{
    const struct plan_args *args = c->args;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        if ((int)alg->collective != args->collective) {
            continue;
        }
        if (alg->radix_max == 0 || args->has_radix) {
            add_entry(c, alg, args->plan.radix);
            continue;
        }
        for (uint32_t radix = 1; radix <= alg->radix_max && radix <= RADIX_TRIED; radix++) {
            add_entry(c, alg, radix);
        }
    }
}

static int price_point(struct comparison *c, const struct entry *entry, int point,
                       const struct ibshift_model *model, double *time)
{
    struct ibshift_plan plan = c->args->plan;
    struct ibshift_price_request request = {.alg = entry->alg,
                                            .plan = &plan,
                                            .model = model,
                                            .bytes = c->args->sizes[0],
                                            .element = c->args->element,
                                            .window = c->args->window,
                                            .limit = 1 << 24};
    struct ibshift_price price;
    char why[256];
    int rc;

    *time = NAN;
    plan.radix = entry->radix;
    if (c->is_over_ranks) {
        plan.ranks = (uint32_t)c->points[point];
        plan.root = plan.root < plan.ranks ? plan.root : 0;
    } else {
        request.bytes = (uint64_t)c->points[point];
    }
    if (ibshift_alg_check(entry->alg, &plan, why, sizeof(why)) != 0) {
        return 0;
    }
    rc = ibshift_price(&request, &price);
    if (rc == 0) {
        *time = price.last;
    }
    return rc == -E2BIG ? 0 : rc;
}

static int fill(struct comparison *c)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    struct ibshift_model model = plan_model_of(c->args, which);

    for (int e = 0; e < c->entry_count; e++) {
        c->entries[e].times = c->memory + (size_t)e * (size_t)c->point_count;
        for (int i = 0; i < c->point_count; i++) {
            int rc = price_point(c, &c->entries[e], i, &model, &c->entries[e].times[i]);

            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* The first of the fastest, or -1 when none can run. */
static int winner(const struct comparison *c, int point)
{
    int best = -1;

    for (int e = 0; e < c->entry_count; e++) {
        double time = c->entries[e].times[point];

        if (!isnan(time) && (best < 0 || time < c->entries[best].times[point] - 1e-9)) {
            best = e;
        }
    }
    return best;
}

static void point_text(const struct comparison *c, int point, char *text)
{
    if (c->is_over_ranks) {
        snprintf(text, 24, "%.0f", c->points[point]);
    } else {
        plan_size_text((uint64_t)c->points[point], text);
    }
}

static void title_text(const struct comparison *c, char *text, size_t size)
{
    const struct plan_args *args = c->args;
    bool has_vector = ibshift_collective_has_vector((enum ibshift_collective)args->collective);
    char bytes[24];

    plan_size_text(args->sizes[0], bytes);
    if (c->is_over_ranks) {
        snprintf(text, size, "%s, %s %s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 has_vector ? "vector of" : "blocks of", bytes);
    } else {
        snprintf(text, size, "%s on %u ranks, over the size of %s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 args->plan.ranks, has_vector ? "the vector" : "a block");
    }
}

static void write_winners(const struct comparison *c, FILE *out)
{
    for (int i = 0; i < c->point_count;) {
        int best = winner(c, i), last = i;
        char from[24], to[24];

        while (last + 1 < c->point_count && winner(c, last + 1) == best) {
            last++;
        }
        point_text(c, i, from);
        point_text(c, last, to);
        fprintf(out, last > i ? "%s wins from %s to %s\n" : "%s wins at %s\n",
                best >= 0 ? c->entries[best].label : "nobody", from, to);
        i = last + 1;
    }
}

static void write_text(const struct comparison *c, FILE *out)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    char title[128], text[24];

    title_text(c, title, sizeof(title));
    fprintf(out, "%s\nmodelled, %s with %s: us until the last rank is done\n\n%-26s", title,
            plan_model_name(which), c->args->model_source, c->is_over_ranks ? "ranks" : "");
    for (int i = 0; i < c->point_count; i++) {
        point_text(c, i, text);
        fprintf(out, " %11s", text);
    }
    for (int e = 0; e < c->entry_count; e++) {
        fprintf(out, "\n%-26s", c->entries[e].label);
        for (int i = 0; i < c->point_count; i++) {
            if (isnan(c->entries[e].times[i])) {
                fprintf(out, " %11s", "-");
            } else {
                fprintf(out, " %10.2f%c", c->entries[e].times[i], winner(c, i) == e ? '*' : ' ');
            }
        }
    }
    fputs("\n\n", out);
    write_winners(c, out);
}

static void write_json(const struct comparison *c, FILE *out)
{
    for (int e = 0; e < c->entry_count; e++) {
        for (int i = 0; i < c->point_count; i++) {
            if (isnan(c->entries[e].times[i])) {
                continue;
            }
            fprintf(out,
                    "{\"algorithm\": \"%s\", \"radix\": %u, \"%s\": %.0f, \"us\": %.6f, "
                    "\"wins\": %s}\n",
                    c->entries[e].alg->name, c->entries[e].radix,
                    c->is_over_ranks ? "ranks" : "bytes", c->points[i], c->entries[e].times[i],
                    winner(c, i) == e ? "true" : "false");
        }
    }
}

static int total_of(const struct comparison *c, int e)
{
    int wins = 0;

    for (int i = 0; i < c->point_count; i++) {
        wins += winner(c, i) == e;
    }
    return wins;
}

/* The curves that a picture has room for: winners first, then in the table's order. */
static int choose_curves(const struct comparison *c, int *chosen)
{
    int count = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (int e = 0; e < c->entry_count && count < CURVES_MAX; e++) {
            if ((total_of(c, e) > 0) == (pass == 0)) {
                chosen[count++] = e;
            }
        }
    }
    return count;
}

static int mark_changes(const struct comparison *c, struct chart_point *points, int most)
{
    int count = 0;

    for (int i = 1; i < c->point_count && count < most; i++) {
        int best = winner(c, i);
        char at[24];

        if (best < 0 || best == winner(c, i - 1)) {
            continue;
        }
        point_text(c, i, at);
        points[count] = (struct chart_point){c->points[i], c->entries[best].times[i], ""};
        snprintf(points[count].label, sizeof(points[count].label), "%s from %s%s",
                 c->entries[best].label, c->is_over_ranks ? "P = " : "", at);
        count++;
    }
    return count;
}

static void write_chart(const struct comparison *c, FILE *out)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    struct chart_series series[CURVES_MAX];
    struct chart_point points[8];
    int chosen[CURVES_MAX], count = choose_curves(c, chosen);
    char title[128], subtitle[160];

    title_text(c, title, sizeof(title));
    snprintf(subtitle, sizeof(subtitle), "modelled: %s with %s", plan_model_name(which),
             c->args->model_source);
    for (int i = 0; i < count; i++) {
        series[i] = (struct chart_series){
            .label = c->entries[chosen[i]].label,
            .color = (enum svg_color)(SVG_BLUE + i),
            .dash = (enum svg_dash)(i % 3),
            .count = c->point_count,
            .x = c->points,
            .y = c->entries[chosen[i]].times,
        };
    }
    chart_write(out, &(struct chart){.title = title,
                                     .subtitle = subtitle,
                                     .x_title = c->is_over_ranks ? "ranks" : "bytes",
                                     .y_title = "us until the last rank is done",
                                     .is_log = !c->is_over_ranks,
                                     .series = series,
                                     .series_count = count,
                                     .points = points,
                                     .point_count = mark_changes(c, points, 8)});
}

static int begin(struct comparison *c)
{
    struct plan_args *args = c->args;

    c->is_over_ranks = args->ranks_last > args->plan.ranks;
    c->point_count =
        c->is_over_ranks ? (int)(args->ranks_last - args->plan.ranks) + 1 : args->size_count;
    add_entries(c);
    c->points = malloc((size_t)c->point_count * sizeof(double));
    c->memory = malloc((size_t)c->point_count * (size_t)c->entry_count * sizeof(double));
    if (c->points == NULL || c->memory == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < c->point_count; i++) {
        c->points[i] = c->is_over_ranks ? args->plan.ranks + (double)i : (double)args->sizes[i];
    }
    return 0;
}

static int write_out(const struct comparison *c)
{
    const char *output = c->args->output;
    size_t length = output != NULL ? strlen(output) : 0;
    bool is_svg = c->args->format == PLAN_SVG ||
                  (c->args->format < 0 && length > 4 && strcmp(output + length - 4, ".svg") == 0);
    FILE *out = plan_open(c->args);

    if (out == NULL) {
        return CLI_FAILED;
    }
    if (c->args->format == PLAN_JSON) {
        write_json(c, out);
    } else if (is_svg) {
        write_chart(c, out);
    } else {
        write_text(c, out);
    }
    return plan_close(c->args, out);
}

int plan_compare(struct plan_args *args)
{
    struct comparison *c = calloc(1, sizeof(*c));
    int rc;

    if (c == NULL) {
        return CLI_FAILED;
    }
    c->args = args;
    if (args->ranks_last == args->plan.ranks && args->size_count == 1) {
        args->size_count = 0;
        for (uint64_t bytes = 8; bytes <= 1 << 20; bytes *= 8) {
            args->sizes[args->size_count++] = bytes;
        }
    }
    rc = begin(c);
    if (rc == 0) {
        rc = fill(c);
    }
    if (rc == 0) {
        rc = write_out(c);
    } else {
        cli_error(args->command, "%s", rc == -ENOMEM ? "out of memory" : "a plan does not end");
        rc = CLI_FAILED;
    }
    free(c->points);
    free(c->memory);
    free(c);
    return rc;
}

/* `ibshift plan compare`: all algorithms of a collective, over sizes or over ranks, and who wins
 * where. */
#include "plan/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/choose.h"
#include "choose/size.h"
#include "draw/chart.h"
#include "proof/formula.h"
#include "proof/split.h"

enum { ENTRIES_MAX = 128 };

struct entry {
    const struct ibshift_alg *alg;
    uint32_t radix;
    bool is_optimal; /* split as LogGP has it */
    char label[48];
    double *times;                /* NAN where it cannot run */
    double *formula;              /* as published; NAN where there is none */
    struct ibshift_price *prices; /* whose times they are */
    uint32_t *segments;           /* in which it takes that time */
};

struct comparison {
    struct plan_args *args;
    struct entry entries[ENTRIES_MAX];
    int entry_count;
    double *points; /* sizes or numbers of ranks */
    int point_count;
    bool is_over_ranks;
    double *memory;
    struct ibshift_price *prices_memory;
    uint32_t *segments_memory;
};

static void add_entry(struct comparison *c, const struct ibshift_alg *alg, uint32_t radix,
                      bool is_optimal)
{
    struct entry *entry = &c->entries[c->entry_count];

    if (c->entry_count == ENTRIES_MAX) {
        return;
    }
    entry->alg = alg;
    entry->radix = radix;
    entry->is_optimal = is_optimal;
    if (alg->radix_max > 0) {
        snprintf(entry->label, sizeof(entry->label), "%s k=%u", alg->name, radix);
    } else {
        snprintf(entry->label, sizeof(entry->label), "%s%s", alg->name,
                 is_optimal ? " optimal" : "");
    }
    c->entry_count++;
}

/* What the component would try, and besides what the user asks for. */
static int candidates(const struct plan_args *args, const struct ibshift_alg *alg, uint32_t ranks,
                      uint64_t bytes, struct ibshift_choice *found)
{
    struct ibshift_wish wish = {.radix = args->has_radix ? args->plan.radix : 0};
    int count = ibshift_candidates(alg, ranks, bytes, &wish, found);

    for (int i = 0; args->has_segments && i < count; i++) {
        found[i].segments = args->plan.segments;
    }
    return count;
}

/* A column for each row and radix; segments are searched at each point. */
static void add_entries(struct comparison *c)
{
    const struct plan_args *args = c->args;
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        int count = candidates(args, alg, args->ranks_last, 0, found);

        if ((int)alg->collective != args->collective ||
            ((alg->flags & IBSHIFT_ALG_NODES) != 0 && args->per_host < 2)) {
            continue;
        }
        for (int n = 0; n < count; n++) {
            if (found[n].leaders == 1) {
                add_entry(c, alg, found[n].radix, false);
            }
        }
        if ((alg->flags & IBSHIFT_ALG_SPLIT) != 0) {
            add_entry(c, alg, args->plan.radix, true);
        }
    }
}

/* The split that LogGP calls optimal, for one point; the caller frees it. */
static int find_split(const struct ibshift_model *model, uint64_t bytes, uint32_t ranks,
                      uint32_t **split)
{
    struct ibshift_model loggp = ibshift_model_loggp(model);

    *split = calloc((size_t)ranks + 1, sizeof(**split));
    return *split == NULL || ibshift_model_split(&loggp, bytes, ranks, *split) != 0 ? -ENOMEM : 0;
}

/* The best of the entry's segments. */
static int price_entry(const struct comparison *c, const struct entry *entry, int point,
                       struct ibshift_price_request *request, struct ibshift_plan *plan)
{
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
    int count = candidates(c->args, entry->alg, plan->ranks, request->bytes, found);
    char why[256];

    for (int i = 0; i < count; i++) {
        struct ibshift_price price;
        int rc;

        plan->radix = found[i].radix;
        plan->segments = found[i].segments;
        plan->leaders = c->args->has_leaders ? c->args->plan.leaders : found[i].leaders;
        if ((entry->alg->radix_max > 0 && plan->radix != entry->radix) ||
            ibshift_alg_check(entry->alg, plan, why, sizeof(why)) != 0) {
            continue;
        }
        rc = plan_price_shared(c->args, request, &price);
        if (rc == -E2BIG) {
            continue;
        }
        if (rc != 0) {
            return rc;
        }
        if (isnan(entry->times[point]) || price.last < entry->times[point]) {
            entry->times[point] = price.last;
            entry->prices[point] = price;
            entry->segments[point] = plan->segments;
        }
    }
    return 0;
}

/* Rows whose steps wait for one another send whole messages. */
static uint32_t piece_of(const struct comparison *c, const struct entry *entry)
{
    return (entry->alg->flags & IBSHIFT_ALG_FREE) != 0 ? c->args->piece : 0;
}

static int price_point(const struct comparison *c, const struct entry *entry, int point,
                       const struct ibshift_model *model)
{
    struct ibshift_plan plan = c->args->plan;
    struct ibshift_price_request request = {.alg = entry->alg,
                                            .plan = &plan,
                                            .model = model,
                                            .bytes = c->args->sizes[0],
                                            .element = c->args->element,
                                            .window = c->args->window,
                                            .piece = piece_of(c, entry),
                                            .limit = 1 << 24};
    struct ibshift_nodes nodes = {.nodes = 0};
    uint32_t *split = NULL;
    int rc = 0;

    entry->times[point] = NAN;
    entry->segments[point] = 1;
    if (c->is_over_ranks) {
        plan.ranks = (uint32_t)c->points[point];
        plan.root = plan.root < plan.ranks ? plan.root : 0;
        if (c->args->per_host > 0) {
            rc = plan_nodes_make(c->args, plan.ranks, &nodes) == CLI_OK ? 0 : -ENOMEM;
            plan.nodes = &nodes;
        }
    } else {
        request.bytes = (uint64_t)c->points[point];
    }
    if (rc == 0 && entry->is_optimal) {
        rc = find_split(model, request.bytes, plan.ranks, &split);
        plan.split = split;
    }
    if (rc == 0) {
        rc = price_entry(c, entry, point, &request, &plan);
    }
    ibshift_nodes_free(&nodes);
    free(split);
    return rc;
}

static double formula_point(const struct comparison *c, const struct entry *entry, int point,
                            const struct ibshift_model *model)
{
    const struct ibshift_formula *formula =
        ibshift_formula_find(ibshift_collective_name(entry->alg->collective), entry->alg->name);
    struct ibshift_formula_case fc = {(int)c->args->plan.ranks, (int)entry->radix,
                                      (double)c->args->sizes[0]};

    if (formula == NULL || entry->is_optimal || c->args->which < PLAN_LOGGP ||
        isnan(entry->times[point])) {
        return NAN;
    }
    if (c->is_over_ranks) {
        fc.ranks = (int)c->points[point];
    } else {
        fc.bytes = c->points[point];
    }
    return c->args->which == PLAN_LOGGP ? formula->loggp(model, &fc) : formula->logfp(model, &fc);
}

static int fill(struct comparison *c)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    struct ibshift_model model = plan_model_of(c->args, which);

    for (int e = 0; e < c->entry_count; e++) {
        c->entries[e].times = c->memory + (size_t)(2 * e) * (size_t)c->point_count;
        c->entries[e].formula = c->entries[e].times + c->point_count;
        c->entries[e].prices = c->prices_memory + (size_t)e * (size_t)c->point_count;
        c->entries[e].segments = c->segments_memory + (size_t)e * (size_t)c->point_count;
        for (int i = 0; i < c->point_count; i++) {
            int rc = price_point(c, &c->entries[e], i, &model);

            if (rc != 0) {
                return rc;
            }
            c->entries[e].formula[i] = formula_point(c, &c->entries[e], i, &model);
        }
    }
    return 0;
}

/* The first of the fastest at a point, or -1 when none can run. */
static int fastest_at(const struct comparison *c, int point)
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

/* The simplest of those that are as good as the fastest, as the component has it. */
static int winner_at(const struct comparison *c, int point)
{
    int fastest = fastest_at(c, point), best = fastest;

    for (int e = 0; fastest >= 0 && e < c->entry_count; e++) {
        if (c->entries[e].times[point] <= c->entries[fastest].times[point] * IBSHIFT_PRICE_EQUAL &&
            ibshift_price_is_simpler(&c->entries[e].prices[point],
                                     &c->entries[best].prices[point])) {
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

static void write_title(const struct comparison *c, char *text, size_t size)
{
    const struct plan_args *args = c->args;
    bool has_vector = ibshift_collective_has_vector((enum ibshift_collective)args->collective);
    char bytes[24], pieces[48] = "";

    if (args->piece > 0) {
        snprintf(pieces, sizeof(pieces), ", free steps in pieces of %u B", args->piece);
    }
    plan_size_text(args->sizes[0], bytes);
    if (c->is_over_ranks) {
        snprintf(text, size, "%s, %s %s%s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 has_vector ? "vector of" : "blocks of", bytes, pieces);
    } else {
        snprintf(text, size, "%s on %u ranks, by size of %s%s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 args->plan.ranks, has_vector ? "the vector" : "a block", pieces);
    }
}

/* In how many segments the entry is fastest, where it has any. */
static void write_segments(const struct entry *entry, int first, int last, FILE *out)
{
    uint32_t from = entry->segments[first], to = entry->segments[last];

    if (from != to) {
        fprintf(out, ", in %u to %u segments", from, to);
    } else if (to > 1) {
        fprintf(out, ", in %u segments", to);
    }
    fputc('\n', out);
}

static void write_winners(const struct comparison *c, FILE *out)
{
    for (int i = 0; i < c->point_count;) {
        int best = winner_at(c, i), last = i;
        char from[24], to[24];

        while (last + 1 < c->point_count && winner_at(c, last + 1) == best) {
            last++;
        }
        point_text(c, i, from);
        point_text(c, last, to);
        fprintf(out, last > i ? "%s wins from %s to %s" : "%s wins at %s",
                best >= 0 ? c->entries[best].label : "nobody", from, to);
        write_segments(&c->entries[best >= 0 ? best : 0], i, last, out);
        i = last + 1;
    }
}

static double time_of(const struct comparison *c, int e, int point, bool is_by_formula)
{
    return is_by_formula ? c->entries[e].formula[point] : c->entries[e].times[point];
}

/* The point from which on b is always faster than a, or -1; by the formulas or the simulation. */
static int crossing(const struct comparison *c, int a, int b, bool is_by_formula)
{
    int from = -1;

    for (int i = 0; i < c->point_count; i++) {
        double ta = time_of(c, a, i, is_by_formula), tb = time_of(c, b, i, is_by_formula);

        if (isnan(ta) || isnan(tb)) {
            continue;
        }
        if (!(tb < ta - 1e-9)) {
            from = -1;
        } else if (from < 0) {
            from = i;
        }
    }
    return from;
}

/* Against the first row of the collective, which is the plain one. */
static void write_crossings(const struct comparison *c, FILE *out, bool is_by_formula)
{
    for (int e = 1; e < c->entry_count; e++) {
        int point = crossing(c, 0, e, is_by_formula);
        char text[24];

        if (point > 0) {
            point_text(c, point, text);
            fprintf(out, "%s is faster than %s from %s on%s\n", c->entries[e].label,
                    c->entries[0].label, text, is_by_formula ? " (published formulas)" : "");
        }
    }
}

static void write_time(const struct comparison *c, FILE *out, int e, int point, int width)
{
    double time = c->entries[e].times[point];
    char text[32] = "-";

    if (!isnan(time)) {
        snprintf(text, sizeof(text), "%s%.2f", winner_at(c, point) == e ? "*" : "", time);
    }
    fprintf(out, " %*s", width, text);
}

static int width_of(const struct entry *entry)
{
    return (int)fmax(11, (double)strlen(entry->label));
}

/* Sizes or numbers of ranks in rows, algorithms in columns: those from first to before end. */
static void write_columns(const struct comparison *c, FILE *out, int first, int end)
{
    char text[24];

    fprintf(out, "%9s", c->is_over_ranks ? "ranks" : "");
    for (int e = first; e < end; e++) {
        fprintf(out, " %*s", width_of(&c->entries[e]), c->entries[e].label);
    }
    for (int i = 0; i < c->point_count; i++) {
        point_text(c, i, text);
        fprintf(out, "\n%9s", text);
        for (int e = first; e < end; e++) {
            write_time(c, out, e, i, width_of(&c->entries[e]));
        }
    }
    fputc('\n', out);
}

/* As many columns side by side as the terminal is wide, the rest below. */
static void write_times(const struct comparison *c, FILE *out)
{
    for (int first = 0, end; first < c->entry_count; first = end) {
        int at = 9 + 1 + width_of(&c->entries[first]);

        for (end = first + 1; end < c->entry_count; end++) {
            at += 1 + width_of(&c->entries[end]);
            if (at > cli_width()) {
                break;
            }
        }
        fputs(first > 0 ? "\n" : "", out);
        write_columns(c, out, first, end);
    }
}

static void write_text(const struct comparison *c, FILE *out)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    char title[128];

    write_title(c, title, sizeof(title));
    fprintf(out, "%s: us until all are done\nmodelled (%s); parameters: %s\n\n", title,
            plan_model_name(which), c->args->model_source);
    write_times(c, out);
    fputc('\n', out);
    write_winners(c, out);
    write_crossings(c, out, false);
    if (c->args->has_table) {
        write_crossings(c, out, true);
    }
}

static void write_json(const struct comparison *c, FILE *out)
{
    struct json j;

    plan_json_begin(&j, out, "times");
    for (int e = 0; e < c->entry_count; e++) {
        for (int i = 0; i < c->point_count; i++) {
            if (isnan(c->entries[e].times[i])) {
                continue;
            }
            json_open(&j, NULL, '{');
            json_text(&j, "algorithm", c->entries[e].alg->name);
            json_value(&j, "radix", "%u", c->entries[e].radix);
            json_value(&j, "segments", "%u", c->entries[e].segments[i]);
            if (piece_of(c, &c->entries[e]) > 0) {
                json_value(&j, "piece", "%u", piece_of(c, &c->entries[e]));
            }
            json_value(&j, c->is_over_ranks ? "ranks" : "bytes", "%.0f", c->points[i]);
            json_value(&j, "us", "%.6f", c->entries[e].times[i]);
            json_bool(&j, "wins", winner_at(c, i) == e);
            json_close(&j, '}');
        }
    }
    plan_json_end(&j);
}

/* The picture: a curve for each algorithm, the points where they cross named; as many as a reader
 * can tell apart. */
enum { CURVES_MAX = 7, POINTS_MAX = 12 };

/* How much slower than the winners on the whole; 0 for the one that always wins. */
static double slowness(const struct comparison *c, int e)
{
    double sum = 0;

    for (int i = 0; i < c->point_count; i++) {
        int best = winner_at(c, i);

        if (best >= 0 && !isnan(c->entries[e].times[i])) {
            sum += log((c->entries[e].times[i] + 1e-9) / (c->entries[best].times[i] + 1e-9));
        }
    }
    return sum;
}

/* The curves that a picture has room for: the plain one, which the others are measured by, and the
 * fastest. */
static int choose_curves(const struct comparison *c, int *chosen)
{
    bool is_taken[ENTRIES_MAX] = {true};
    int count = 0;

    for (chosen[count++] = 0; count < CURVES_MAX && count < c->entry_count; count++) {
        int best = -1;

        for (int e = 0; e < c->entry_count; e++) {
            if (!is_taken[e] && (best < 0 || slowness(c, e) < slowness(c, best))) {
                best = e;
            }
        }
        if (best < 0) {
            break;
        }
        is_taken[best] = true;
        chosen[count] = best;
    }
    return count;
}

static void add_point(const struct comparison *c, struct chart_point *points, int *count, int e,
                      int at, const char *verb)
{
    char text[24];

    if (*count == POINTS_MAX) {
        return;
    }
    point_text(c, at, text);
    points[*count] = (struct chart_point){c->points[at], c->entries[e].times[at], ""};
    snprintf(points[*count].label, sizeof(points[*count].label), "%s %s from %s%s",
             c->entries[e].label, verb, c->is_over_ranks ? "P = " : "", text);
    ++*count;
}

/* Where the winner changes, and where a curve falls below the plain one for good. */
static int mark_points(const struct comparison *c, const struct chart_series *series,
                       const int *chosen, int curves, struct chart_point *points)
{
    int count = 0;

    for (int i = 1; i < c->point_count; i++) {
        int best = winner_at(c, i);

        if (best >= 0 && best != winner_at(c, i - 1)) {
            add_point(c, points, &count, best, i, "wins");
        }
        for (int n = 1; n < curves; n++) {
            if (chosen[n] != best && crossing(c, 0, chosen[n], false) == i) {
                char verb[60];

                snprintf(verb, sizeof(verb), "beats %.40s", series[0].label);
                add_point(c, points, &count, chosen[n], i, verb);
            }
        }
    }
    return count;
}

static void fill_series(const struct comparison *c, const int *chosen, int count,
                        struct chart_series *series)
{
    for (int i = 0; i < count; i++) {
        int entry = chosen[i]; /* whoever else is drawn: two pictures can be compared */

        series[i] = (struct chart_series){
            .label = c->entries[entry].label,
            .color = (enum svg_color)(SVG_BLUE + entry % CURVES_MAX),
            .dash = (enum svg_dash)(entry % SVG_DASH_COUNT),
            .count = c->point_count,
            .x = c->points,
            .y = c->entries[entry].times,
        };
        series[count + i] = series[i];
        series[count + i].label = NULL;
        series[count + i].y = c->entries[entry].formula;
        series[count + i].has_dots = true;
    }
}

static void write_chart(const struct comparison *c, FILE *out)
{
    enum plan_model which = c->args->which < 0 ? PLAN_COMBINED : (enum plan_model)c->args->which;
    struct chart_series series[2 * CURVES_MAX];
    struct chart_point points[POINTS_MAX];
    int chosen[CURVES_MAX], count = choose_curves(c, chosen);
    char title[128], subtitle[256], shown[40] = "";

    fill_series(c, chosen, count, series);
    write_title(c, title, sizeof(title));
    if (count < c->entry_count) {
        snprintf(shown, sizeof(shown), "; the best %d of %d", count, c->entry_count);
    }
    snprintf(subtitle, sizeof(subtitle), "modelled (%s); parameters: %s%s%s",
             plan_model_name(which), c->args->model_source, shown,
             c->args->has_table ? "; lines: simulation, dots: published formula" : "");
    chart_write(out, &(struct chart){
                         .title = title,
                         .subtitle = subtitle,
                         .x_title = c->is_over_ranks ? "ranks" : "bytes",
                         .y_title = "us until the last rank is done",
                         .is_log = !c->is_over_ranks,
                         .series = series,
                         .series_count = c->args->has_table ? 2 * count : count,
                         .points = points,
                         .point_count = mark_points(c, series, chosen, count, points),
                     });
}

static int begin(struct comparison *c)
{
    struct plan_args *args = c->args;

    c->is_over_ranks = args->ranks_last > args->plan.ranks;
    c->point_count =
        c->is_over_ranks ? (int)(args->ranks_last - args->plan.ranks) + 1 : args->size_count;
    add_entries(c);
    c->points = malloc((size_t)c->point_count * sizeof(double));
    c->memory = malloc(2 * (size_t)c->point_count * (size_t)c->entry_count * sizeof(double));
    c->prices_memory =
        malloc((size_t)c->point_count * (size_t)c->entry_count * sizeof(*c->prices_memory));
    c->segments_memory =
        malloc((size_t)c->point_count * (size_t)c->entry_count * sizeof(*c->segments_memory));
    if (c->points == NULL || c->memory == NULL || c->prices_memory == NULL ||
        c->segments_memory == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < c->point_count; i++) {
        c->points[i] = c->is_over_ranks ? args->plan.ranks + (double)i : (double)args->sizes[i];
    }
    return 0;
}

static int write_out(const struct comparison *c)
{
    FILE *out = plan_open(c->args);

    if (out == NULL) {
        return CLI_USAGE;
    }
    if (c->args->format == PLAN_JSON) {
        write_json(c, out);
    } else if (c->args->format == PLAN_SVG) {
        write_chart(c, out);
    } else {
        write_text(c, out);
    }
    return plan_close(c->args, CLI_OK);
}

int plan_compare(struct plan_args *args)
{
    struct comparison *c;
    int rc;

    if (args->piece > 0 && args->collective != IBSHIFT_ALLTOALL) {
        return cli_error(args->command, "--piece: only alltoall has pieces");
    }
    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return CLI_FAILED;
    }
    c->args = args;
    if (args->ranks_last == args->plan.ranks && !args->has_sizes) {
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
    free(c->prices_memory);
    free(c->segments_memory);
    free(c);
    return rc;
}

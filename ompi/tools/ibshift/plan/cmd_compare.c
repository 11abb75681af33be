/* `ibshift plan compare`: all algorithms of a collective, over sizes or over ranks, and who wins
 * where. */
#include "plan/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/size.h"
#include "proof/formula.h"

static void add_entry(struct plan_comparison *c, const struct ibshift_alg *alg, uint32_t radix,
                      bool is_optimal)
{
    struct plan_entry *entry = &c->entries[c->entry_count];

    if (c->entry_count == PLAN_ENTRIES_MAX) {
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
static void add_entries(struct plan_comparison *c)
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

/* Rows whose steps wait for one another send whole messages. */
static uint32_t piece_of(const struct plan_comparison *c, const struct plan_entry *entry)
{
    return (entry->alg->flags & IBSHIFT_ALG_FREE) != 0 ? c->args->piece : 0;
}

/* The best of the entry's segments. */
static int price_entry(const struct plan_comparison *c, const struct plan_entry *entry, int point,
                       const struct ibshift_price_request *request, struct ibshift_plan *plan)
{
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
    int count = candidates(c->args, entry->alg, plan->ranks, request->bytes, found);
    char why[256];

    for (int i = 0; i < count; i++) {
        int rc;

        found[i].leaders = c->args->has_leaders ? c->args->plan.leaders : found[i].leaders;
        ibshift_choice_take(&found[i], plan);
        if ((entry->alg->radix_max > 0 && plan->radix != entry->radix) ||
            ibshift_alg_check(entry->alg, plan, why, sizeof(why)) != 0) {
            continue;
        }
        rc = ibshift_price(request, &found[i].price);
        if (rc != 0 && rc != -E2BIG) {
            return rc;
        }
        if (rc == 0 && !(found[i].price.last >= entry->times[point])) {
            entry->times[point] = found[i].price.last;
            entry->best[point] = found[i];
        }
    }
    return 0;
}

static int price_point(const struct plan_comparison *c, const struct plan_entry *entry, int point,
                       const struct ibshift_model *model)
{
    bool has_hosts = c->args->per_host > 0;
    uint64_t bytes = c->is_over_ranks ? c->args->sizes[0] : (uint64_t)c->points[point];
    struct ibshift_plan plan = c->args->plan;
    struct ibshift_price_request request;
    struct plan_hosts hosts;
    uint32_t *split = NULL;
    int rc;

    entry->times[point] = NAN;
    entry->best[point].segments = 1;
    plan.ranks = c->is_over_ranks ? (uint32_t)c->points[point] : plan.ranks;
    plan.root = plan.root < plan.ranks ? plan.root : 0;
    if (plan_hosts_make(c->args, plan.ranks, &hosts) != CLI_OK) {
        return -ENOMEM;
    }
    plan.nodes = has_hosts ? &hosts.nodes : NULL;
    request = plan_request(c->args, has_hosts ? &hosts : NULL);
    request.alg = entry->alg;
    request.plan = &plan;
    request.model = model;
    request.bytes = bytes;
    request.piece = piece_of(c, entry);
    request.limit = 1 << 24;
    if (entry->is_optimal) {
        plan.split = split = plan_split(model, bytes, plan.ranks);
    }
    rc = entry->is_optimal && split == NULL ? -ENOMEM
                                            : price_entry(c, entry, point, &request, &plan);
    plan_hosts_free(&hosts);
    free(split);
    return rc;
}

static double formula_point(const struct plan_comparison *c, const struct plan_entry *entry,
                            int point, const struct ibshift_model *model)
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

static int fill(struct plan_comparison *c)
{
    enum plan_model which = plan_which(c->args);
    struct ibshift_model model = plan_model_of(c->args, which);

    for (int e = 0; e < c->entry_count; e++) {
        c->entries[e].times = c->points + (size_t)(1 + 2 * e) * (size_t)c->point_count;
        c->entries[e].formula = c->entries[e].times + c->point_count;
        c->entries[e].best = c->choices + (size_t)e * (size_t)c->point_count;
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
static int fastest_at(const struct plan_comparison *c, int point)
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

int plan_winner_at(const struct plan_comparison *c, int point)
{
    int fastest = fastest_at(c, point), best = fastest;

    for (int e = 0; fastest >= 0 && e < c->entry_count; e++) {
        if (c->entries[e].times[point] <= c->entries[fastest].times[point] * IBSHIFT_PRICE_EQUAL &&
            ibshift_price_is_simpler(&c->entries[e].best[point].price,
                                     &c->entries[best].best[point].price)) {
            best = e;
        }
    }
    return best;
}

void plan_point_text(const struct plan_comparison *c, int point, char *text)
{
    if (c->is_over_ranks) {
        snprintf(text, 24, "%.0f", c->points[point]);
    } else {
        plan_size_text((uint64_t)c->points[point], text);
    }
}

void plan_compare_title(const struct plan_comparison *c, char *text, size_t size)
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
static void write_segments(const struct plan_entry *entry, int first, int last, FILE *out)
{
    uint32_t from = entry->best[first].segments, to = entry->best[last].segments;

    if (from != to) {
        fprintf(out, ", in %u to %u segments", from, to);
    } else if (to > 1) {
        fprintf(out, ", in %u segments", to);
    }
    fputc('\n', out);
}

static void write_winners(const struct plan_comparison *c, FILE *out)
{
    for (int i = 0; i < c->point_count;) {
        int best = plan_winner_at(c, i), last = i;
        char from[24], to[24];

        while (last + 1 < c->point_count && plan_winner_at(c, last + 1) == best) {
            last++;
        }
        plan_point_text(c, i, from);
        plan_point_text(c, last, to);
        fprintf(out, last > i ? "%s wins from %s to %s" : "%s wins at %s",
                best >= 0 ? c->entries[best].label : "nobody", from, to);
        write_segments(&c->entries[best >= 0 ? best : 0], i, last, out);
        i = last + 1;
    }
}

static double time_of(const struct plan_comparison *c, int e, int point, bool is_by_formula)
{
    return is_by_formula ? c->entries[e].formula[point] : c->entries[e].times[point];
}

int plan_crossing(const struct plan_comparison *c, int a, int b, bool is_by_formula)
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
static void write_crossings(const struct plan_comparison *c, FILE *out, bool is_by_formula)
{
    for (int e = 1; e < c->entry_count; e++) {
        int point = plan_crossing(c, 0, e, is_by_formula);
        char text[24];

        if (point > 0) {
            plan_point_text(c, point, text);
            fprintf(out, "%s is faster than %s from %s on%s\n", c->entries[e].label,
                    c->entries[0].label, text, is_by_formula ? " (published formulas)" : "");
        }
    }
}

static void write_time(const struct plan_comparison *c, FILE *out, int e, int point, int width)
{
    double time = c->entries[e].times[point];
    char text[32] = "-";

    if (!isnan(time)) {
        snprintf(text, sizeof(text), "%s%.2f", plan_winner_at(c, point) == e ? "*" : "", time);
    }
    fprintf(out, " %*s", width, text);
}

static int width_of(const struct plan_entry *entry)
{
    return (int)fmax(11, (double)strlen(entry->label));
}

/* Sizes or numbers of ranks in rows, algorithms in columns: those from first to before end. */
static void write_columns(const struct plan_comparison *c, FILE *out, int first, int end)
{
    char text[24];

    fprintf(out, "%9s", c->is_over_ranks ? "ranks" : "");
    for (int e = first; e < end; e++) {
        fprintf(out, " %*s", width_of(&c->entries[e]), c->entries[e].label);
    }
    for (int i = 0; i < c->point_count; i++) {
        plan_point_text(c, i, text);
        fprintf(out, "\n%9s", text);
        for (int e = first; e < end; e++) {
            write_time(c, out, e, i, width_of(&c->entries[e]));
        }
    }
    fputc('\n', out);
}

/* As many columns side by side as the terminal is wide, the rest below. */
static void write_times(const struct plan_comparison *c, FILE *out)
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

static void write_text(const struct plan_comparison *c, FILE *out)
{
    enum plan_model which = plan_which(c->args);
    char title[128];

    plan_compare_title(c, title, sizeof(title));
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

static void write_json(const struct plan_comparison *c, FILE *out)
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
            json_value(&j, "segments", "%u", c->entries[e].best[i].segments);
            if (piece_of(c, &c->entries[e]) > 0) {
                json_value(&j, "piece", "%u", piece_of(c, &c->entries[e]));
            }
            json_value(&j, c->is_over_ranks ? "ranks" : "bytes", "%.0f", c->points[i]);
            json_value(&j, "us", "%.6f", c->entries[e].times[i]);
            json_bool(&j, "wins", plan_winner_at(c, i) == e);
            json_close(&j, '}');
        }
    }
    plan_json_end(&j);
}

static int begin(struct plan_comparison *c)
{
    struct plan_args *args = c->args;
    size_t points;

    c->is_over_ranks = args->ranks_last > args->plan.ranks;
    c->point_count =
        c->is_over_ranks ? (int)(args->ranks_last - args->plan.ranks) + 1 : args->size_count;
    add_entries(c);
    points = (size_t)c->point_count;
    c->points = malloc(points * (1 + 2 * (size_t)c->entry_count) * sizeof(*c->points));
    c->choices = malloc(points * (size_t)c->entry_count * sizeof(*c->choices));
    if (c->points == NULL || c->choices == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < c->point_count; i++) {
        c->points[i] = c->is_over_ranks ? args->plan.ranks + (double)i : (double)args->sizes[i];
    }
    return fill(c);
}

static int write_out(const struct plan_comparison *c)
{
    FILE *out = plan_open(c->args);

    if (out == NULL) {
        return CLI_USAGE;
    }
    if (c->args->format == PLAN_JSON) {
        write_json(c, out);
    } else if (c->args->format == PLAN_SVG) {
        plan_compare_chart(c, out);
    } else {
        write_text(c, out);
    }
    return plan_close(c->args, CLI_OK);
}

int plan_compare(struct plan_args *args)
{
    struct plan_comparison *c;
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
        rc = write_out(c);
    } else {
        cli_error(args->command, "%s", rc == -ENOMEM ? "out of memory" : "a plan does not end");
        rc = CLI_FAILED;
    }
    free(c->points);
    free(c->choices);
    free(c);
    return rc;
}

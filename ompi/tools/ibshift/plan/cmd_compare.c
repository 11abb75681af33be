/* `ibshift plan compare`: all algorithms of a collective, over sizes or over ranks, and who wins
 * where. */
#include "plan/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/size.h"

/* How far the entry is from what no plan can beat, at most. */
static void write_share(const struct plan_comparison *c, const struct plan_entry *entry, int first,
                        int last, FILE *out)
{
    double share = 0;

    for (int i = first; i <= last; i++) {
        double least = plan_least(c, i);

        if (least == 0 || isnan(entry->times[i])) {
            return;
        }
        share = fmax(share, entry->times[i] / least);
    }
    fprintf(out, ", proved within %.2f of the least", share);
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
        write_share(c, &c->entries[best >= 0 ? best : 0], i, last, out);
        fputc('\n', out);
        i = last + 1;
    }
}

/* Against the first row of the collective, which is the plain one. */
static void write_crossings(const struct plan_comparison *c, FILE *out)
{
    for (int e = 1; e < c->entry_count; e++) {
        int point = plan_crossing(c, 0, e);
        char text[24];

        if (point > 0) {
            plan_point_text(c, point, text);
            fprintf(out, "%s is faster than %s from %s on\n", c->entries[e].label,
                    c->entries[0].label, text);
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

/* On which cables a switch copies a datagram, no table here says. */
static bool has_traffic(const struct plan_comparison *c, const struct plan_entry *entry)
{
    return c->args->fabric != NULL && (entry->alg->flags & IBSHIFT_ALG_MULTICAST) == 0;
}

/* Of the entry's plan at that point. */
static struct fabric_traffic traffic_of(const struct plan_comparison *c,
                                        const struct plan_entry *entry, int point)
{
    struct ibshift_plan plan = c->args->plan;

    ibshift_choice_take(&entry->best[point], &plan);
    return plan_fabric_traffic(c->args, entry->alg, &plan);
}

/* What passes the cables between switches, at the last size: more segments are as much. */
static void write_traffic(const struct plan_comparison *c, FILE *out)
{
    int last = c->point_count - 1;
    bool is_first = true;

    for (int e = 0; e < c->entry_count; e++) {
        struct fabric_traffic traffic;

        if (!has_traffic(c, &c->entries[e]) || isnan(c->entries[e].times[last])) {
            continue;
        }
        traffic = traffic_of(c, &c->entries[e], last);
        if (is_first) {
            fprintf(out, "\n%-24s", traffic.unit);
            for (unsigned tier = 1; tier < traffic.tiers; tier++) {
                fprintf(out, "      tier %u", tier);
            }
            fputs("  of cables\n", out);
        }
        is_first = false;
        fprintf(out, "%-24s", c->entries[e].label);
        for (unsigned tier = 1; tier < traffic.tiers; tier++) {
            fprintf(out, " %11.6g", traffic.by_tier[tier]);
        }
        fputc('\n', out);
    }
}

static void write_text(const struct plan_comparison *c, FILE *out)
{
    enum plan_model which = plan_which(c->args);
    char title[128];

    plan_compare_title(c, title, sizeof(title));
    fprintf(out, "%s: us until all are done\nmodelled (%s); parameters: %s\n", title,
            plan_model_name(which), c->args->model_source);
    plan_fabric_title(c->args, out);
    fputc('\n', out);
    write_times(c, out);
    fputc('\n', out);
    write_winners(c, out);
    write_crossings(c, out);
    write_traffic(c, out);
}

static void write_tiers_json(const struct plan_comparison *c, const struct plan_entry *entry,
                             int point, struct json *j)
{
    struct fabric_traffic traffic;
    char text[16];

    if (!has_traffic(c, entry)) {
        return;
    }
    traffic = traffic_of(c, entry, point);
    json_open(j, "tiers", '{');
    for (unsigned tier = 1; tier < traffic.tiers; tier++) {
        snprintf(text, sizeof(text), "%u", tier);
        json_value(j, text, "%.9g", traffic.by_tier[tier]);
    }
    json_close(j, '}');
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
            if ((c->entries[e].alg->flags & IBSHIFT_ALG_SPLIT) != 0) {
                json_text(&j, "split", c->entries[e].is_optimal ? "optimal" : "half");
            }
            if (plan_piece_of(c, &c->entries[e]) > 0) {
                json_value(&j, "piece", "%u", plan_piece_of(c, &c->entries[e]));
            }
            json_value(&j, c->is_over_ranks ? "ranks" : "bytes", "%.0f", c->points[i]);
            json_value(&j, "us", "%.6f", c->entries[e].times[i]);
            json_bool(&j, "wins", plan_winner_at(c, i) == e);
            json_value(&j, "least", "%.6f", plan_least(c, i));
            write_tiers_json(c, &c->entries[e], i, &j);
            json_close(&j, '}');
        }
    }
    plan_json_end(&j);
}

static int write_out(const struct plan_comparison *c)
{
    FILE *out = plan_open(c->args);

    if (out == NULL) {
        return CLI_USAGE;
    }
    (c->args->is_json ? write_json : write_text)(c, out);
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
    rc = plan_compare_all(c);
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

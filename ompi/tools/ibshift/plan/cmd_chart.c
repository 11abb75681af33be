#include "plan/compare.h"

#include <math.h>

#include "draw/svg.h"

/* The picture: a curve for each algorithm, the points where they cross named; as many as a reader
 * can tell apart. */
enum { CURVES_MAX = 7, POINTS_MAX = 12 };

/* How much slower than the winners on the whole; 0 for the one that always wins. */
static double slowness(const struct plan_comparison *c, int e)
{
    double sum = 0;

    for (int i = 0; i < c->point_count; i++) {
        int best = plan_winner_at(c, i);

        if (best >= 0 && !isnan(c->entries[e].times[i])) {
            sum += log((c->entries[e].times[i] + 1e-9) / (c->entries[best].times[i] + 1e-9));
        }
    }
    return sum;
}

/* The curves that a picture has room for: the plain one, which the others are measured by, and the
 * fastest. */
static int choose_curves(const struct plan_comparison *c, int *chosen)
{
    bool is_taken[PLAN_ENTRIES_MAX] = {true};
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

static void add_point(const struct plan_comparison *c, struct chart_point *points, int *count,
                      int e, int at, const char *verb)
{
    char text[24];

    if (*count == POINTS_MAX) {
        return;
    }
    plan_point_text(c, at, text);
    points[*count] = (struct chart_point){c->points[at], c->entries[e].times[at], ""};
    snprintf(points[*count].label, sizeof(points[*count].label), "%s %s from %s%s",
             c->entries[e].label, verb, c->is_over_ranks ? "P = " : "", text);
    ++*count;
}

/* Where the winner changes, and where a curve falls below the plain one for good. */
static int mark_points(const struct plan_comparison *c, const struct chart_series *series,
                       const int *chosen, int curves, struct chart_point *points)
{
    int count = 0;

    for (int i = 1; i < c->point_count; i++) {
        int best = plan_winner_at(c, i);

        if (best >= 0 && best != plan_winner_at(c, i - 1)) {
            add_point(c, points, &count, best, i, "wins");
        }
        for (int n = 1; n < curves; n++) {
            if (chosen[n] != best && plan_crossing(c, 0, chosen[n], false) == i) {
                char verb[60];

                snprintf(verb, sizeof(verb), "beats %.40s", series[0].label);
                add_point(c, points, &count, chosen[n], i, verb);
            }
        }
    }
    return count;
}

static void fill_series(const struct plan_comparison *c, const int *chosen, int count,
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

void plan_compare_chart(const struct plan_comparison *c, FILE *out)
{
    enum plan_model which = plan_which(c->args);
    struct chart_series series[2 * CURVES_MAX];
    struct chart_point points[POINTS_MAX];
    int chosen[CURVES_MAX], count = choose_curves(c, chosen);
    char title[128], subtitle[256], shown[40] = "";

    fill_series(c, chosen, count, series);
    plan_compare_title(c, title, sizeof(title));
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

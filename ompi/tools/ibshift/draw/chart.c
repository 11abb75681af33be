#include "draw/chart.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define WIDTH      920.0
#define HEIGHT     560.0
#define LEFT       78.0
#define RIGHT      214.0
#define TOP        78.0
#define BOTTOM     62.0
#define SERIES_MAX 16
#define LABEL_ROWS 6
#define LABEL_STEP 17.0

struct range {
    double low, high;
};

struct frame {
    FILE *out;
    const struct chart *chart;
    struct range x, y;
    double band; /* above the curves, for the names of points */
};

static double scaled(const struct frame *f, struct range range, double value)
{
    return f->chart->is_log ? (log2(value) - log2(range.low)) / (log2(range.high) - log2(range.low))
                            : (value - range.low) / (range.high - range.low);
}

static struct svg_point at(const struct frame *f, double x, double y)
{
    return (struct svg_point){LEFT + scaled(f, f->x, x) * (WIDTH - LEFT - RIGHT),
                              HEIGHT - BOTTOM -
                                  scaled(f, f->y, y) * (HEIGHT - TOP - BOTTOM - f->band)};
}

static void widen(struct range *range, double value)
{
    if (!isnan(value)) {
        range->low = fmin(range->low, value);
        range->high = fmax(range->high, value);
    }
}

/* 1, 2 or 5 times a power of ten, so that about six of them fill the range. */
static double nice_step(double span)
{
    double rough = span / 6, power = pow(10, floor(log10(rough)));
    double digit = rough / power;

    return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

static void find_ranges(struct frame *f)
{
    f->x = f->y = (struct range){INFINITY, -INFINITY};
    for (int s = 0; s < f->chart->series_count; s++) {
        const struct chart_series *series = &f->chart->series[s];

        for (int i = 0; i < series->count; i++) {
            if (!isnan(series->y[i])) {
                widen(&f->x, series->x[i]);
                widen(&f->y, series->y[i]);
            }
        }
    }
    if (!(f->x.low < f->x.high)) {
        f->x = (struct range){f->chart->is_log ? 1 : 0, 2};
    }
    if (!(f->y.low < INFINITY)) {
        f->y = (struct range){1, 2};
    }
    if (f->chart->is_log) {
        f->x.low = fmax(f->x.low, 1);
        f->y.low = exp2(floor(log2(fmax(f->y.low, 1e-3))));
        f->y.high = exp2(ceil(log2(fmax(f->y.high, f->y.low * 2))));
    } else {
        double step = nice_step(fmax(f->y.high, 1e-9));

        f->x.low = 0;
        f->y.low = 0;
        f->y.high = ceil(f->y.high / step + 1e-9) * step;
    }
}

static void short_number(double value, char *text)
{
    if (value >= 1 << 20 && fmod(value, 1 << 20) == 0) {
        snprintf(text, 24, "%.0fM", value / (1 << 20));
    } else if (value >= 1024 && fmod(value, 1024) == 0) {
        snprintf(text, 24, "%.0fK", value / 1024);
    } else {
        snprintf(text, 24, "%.6g", value);
    }
}

static void tick_x(const struct frame *f, double value, const char *text)
{
    struct svg_point low = at(f, value, f->y.low), high = at(f, value, f->y.high);

    svg_line(f->out, low, high, SVG_PALE, 1, SVG_SOLID);
    svg_text(f->out, (struct svg_point){low.x, low.y + 19}, 13, SVG_MIDDLE, "%s", text);
}

static void tick_y(const struct frame *f, double value, const char *text)
{
    struct svg_point low = at(f, f->x.low, value), high = at(f, f->x.high, value);

    svg_line(f->out, low, high, SVG_PALE, 1, SVG_SOLID);
    svg_text(f->out, (struct svg_point){low.x - 8, low.y + 4.5}, 13, SVG_END, "%s", text);
}

static void log_ticks(const struct frame *f, struct range range,
                      void (*tick)(const struct frame *, double, const char *))
{
    double octaves = log2(range.high / range.low), step = exp2(fmax(1, ceil(octaves / 9)));
    char text[24];

    for (double value = range.low; value <= range.high * 1.0001; value *= step) {
        short_number(value, text);
        tick(f, value, text);
    }
}

static void even_ticks(const struct frame *f, struct range range,
                       void (*tick)(const struct frame *, double, const char *))
{
    double step = nice_step(range.high - range.low);
    char text[24];

    for (int i = 0; i * step <= range.high * 1.0001; i++) {
        snprintf(text, sizeof(text), "%.6g", i * step);
        tick(f, i * step, text);
    }
}

static void draw_axes(const struct frame *f)
{
    void (*ticks)(const struct frame *, struct range,
                  void (*)(const struct frame *, double, const char *)) =
        f->chart->is_log ? log_ticks : even_ticks;
    struct svg_point origin = at(f, f->x.low, f->y.low);

    ticks(f, f->x, tick_x);
    ticks(f, f->y, tick_y);
    svg_line(f->out, origin, at(f, f->x.high, f->y.low), SVG_BLACK, 1.2, SVG_SOLID);
    svg_line(f->out, origin, at(f, f->x.low, f->y.high), SVG_BLACK, 1.2, SVG_SOLID);
    svg_text(f->out, (struct svg_point){(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16}, 14, SVG_MIDDLE,
             "%s", f->chart->x_title);
    svg_text_upright(f->out, (struct svg_point){20, (TOP + HEIGHT - BOTTOM) / 2}, 14,
                     f->chart->y_title);
    svg_bold(f->out, (struct svg_point){LEFT, 30}, 18, SVG_START, "%s", f->chart->title);
    svg_text(f->out, (struct svg_point){LEFT, 52}, 13, SVG_START, "%s", f->chart->subtitle);
}

/* Runs of points without a gap. */
static void draw_line(const struct frame *f, const struct chart_series *series)
{
    enum { CHUNK = 512 };
    struct svg_point points[CHUNK];
    int count = 0;

    for (int i = 0; i <= series->count; i++) {
        bool is_gap = i == series->count || isnan(series->y[i]);

        if (!is_gap) {
            points[count++] = at(f, series->x[i], series->y[i]);
        }
        if (count == CHUNK || (is_gap && count > 0)) {
            svg_polyline(f->out, points, count, series->color, series->dash);
            points[0] = points[count - 1];
            count = is_gap ? 0 : 1;
        }
    }
}

static void draw_shade(const struct frame *f, const struct chart_series *series)
{
    struct svg_point points[1024];
    int count = series->count <= 512 ? series->count : 512;

    if (series->y_low == NULL) {
        return;
    }
    for (int i = 0; i < count; i++) {
        points[i] = at(f, series->x[i], series->y[i]);
        points[2 * count - 1 - i] = at(f, series->x[i], series->y_low[i]);
    }
    svg_area(f->out, points, 2 * count, series->color);
}

static void draw_series(const struct frame *f, const struct chart_series *series)
{
    if (!series->has_dots) {
        draw_line(f, series);
        return;
    }
    for (int i = 0; i < series->count; i++) {
        if (!isnan(series->y[i])) {
            svg_circle(f->out, at(f, series->x[i], series->y[i]), 2.6, series->color);
        }
    }
}

static double end_of(const struct frame *f, const struct chart_series *series)
{
    for (int i = series->count - 1; i >= 0; i--) {
        if (!isnan(series->y[i])) {
            return at(f, series->x[i], series->y[i]).y;
        }
    }
    return HEIGHT - BOTTOM;
}

/* Names at the right, each near the end of its curve, pushed apart. */
static void draw_legend(const struct frame *f)
{
    int order[SERIES_MAX], count = 0;
    double y = TOP - 10;

    for (int s = 0; s < f->chart->series_count && count < SERIES_MAX; s++) {
        int i = count;

        count += f->chart->series[s].label != NULL;
        if (f->chart->series[s].label == NULL) {
            continue;
        }

        while (i > 0 &&
               end_of(f, &f->chart->series[order[i - 1]]) > end_of(f, &f->chart->series[s])) {
            order[i] = order[i - 1];
            i--;
        }
        order[i] = s;
    }
    for (int i = 0; i < count; i++) {
        const struct chart_series *series = &f->chart->series[order[i]];
        double room = HEIGHT - BOTTOM - 19 * (count - 1 - i);

        y = fmin(fmax(y + 19, end_of(f, series)), fmax(room, y + 19));
        svg_line(f->out, (struct svg_point){WIDTH - RIGHT + 10, y},
                 (struct svg_point){WIDTH - RIGHT + 38, y}, series->color, 2.4, series->dash);
        svg_text(f->out, (struct svg_point){WIDTH - RIGHT + 44, y + 4.5}, 13, SVG_START, "%s",
                 series->label);
    }
}

struct label {
    double left, y; /* y is 0 where all rows are full */
};

/* Below the labels that reach over this point: its line goes down from its own label, past none of
 * them. The topmost row when that is not to be had. */
static int first_row(const double *end, double x)
{
    for (int row = LABEL_ROWS - 1; row >= 0; row--) {
        if (end[row] > x) {
            return row + 1 < LABEL_ROWS ? row + 1 : 0;
        }
    }
    return 0;
}

static void place_labels(const struct frame *f, struct label *labels)
{
    double end[LABEL_ROWS] = {0}; /* where the last label of a row ends */

    for (int i = 0; i < f->chart->point_count; i++) {
        const struct chart_point *point = &f->chart->points[i];
        double width = svg_text_width(point->label, 12);
        double left = fmin(at(f, point->x, point->y).x, WIDTH - RIGHT - width - 4);
        int row = first_row(end, at(f, point->x, point->y).x);

        while (row < LABEL_ROWS && end[row] > left) {
            row++;
        }
        labels[i] = (struct label){left, row < LABEL_ROWS ? TOP + 12 + row * LABEL_STEP : 0};
        if (row < LABEL_ROWS) {
            end[row] = left + width + 14;
        }
    }
}

/* Rings on the curves, their names in rows above the curves; the names are over all lines. */
static void draw_points(const struct frame *f)
{
    struct label labels[CHART_POINTS_MAX];

    place_labels(f, labels);
    for (int i = 0; i < f->chart->point_count; i++) {
        struct svg_point p = at(f, f->chart->points[i].x, f->chart->points[i].y);

        if (labels[i].y > 0) {
            svg_line(f->out, (struct svg_point){p.x, p.y - 6},
                     (struct svg_point){p.x, labels[i].y + 4}, SVG_GREY, 1, SVG_DOTTED);
        }
        svg_circle(f->out, p, 5.5, SVG_BLACK);
        svg_circle(f->out, p, 3.5, SVG_WHITE);
    }
    for (int i = 0; i < f->chart->point_count; i++) {
        const char *text = f->chart->points[i].label;

        if (labels[i].y > 0) {
            svg_rect(f->out, labels[i].left - 2, labels[i].y - 12, svg_text_width(text, 12), 16,
                     SVG_WHITE);
            svg_text(f->out, (struct svg_point){labels[i].left, labels[i].y}, 12, SVG_START, "%s",
                     text);
        }
    }
}

void chart_write(FILE *out, const struct chart *chart)
{
    struct frame f = {.out = out, .chart = chart};

    f.band = chart->point_count > 0 ? LABEL_ROWS * LABEL_STEP + 6 : 0;

    find_ranges(&f);
    svg_begin(out, WIDTH, HEIGHT, chart->title);
    draw_axes(&f);
    for (int s = 0; s < chart->series_count; s++) {
        draw_shade(&f, &chart->series[s]);
    }
    for (int s = 0; s < chart->series_count; s++) {
        draw_series(&f, &chart->series[s]);
    }
    draw_points(&f);
    draw_legend(&f);
    svg_end(out);
}

/* Pictures: elements of SVG, and charts of curves made of them. */
#include "draw/svg.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static const char *const colors[SVG_COLOR_COUNT] = {
    [SVG_BLUE] = "#0072b2",   [SVG_VERMILION] = "#d55e00", [SVG_GREEN] = "#009e73",
    [SVG_ORANGE] = "#e69f00", [SVG_PURPLE] = "#cc79a7",    [SVG_SKY] = "#56b4e9",
    [SVG_LIGHT] = "#b8ddf4",  [SVG_YELLOW] = "#f0e442",    [SVG_BLACK] = "#222222",
    [SVG_GREY] = "#8a8a8a",   [SVG_PALE] = "#e4e4e4",      [SVG_WHITE] = "#ffffff",
};

static const char *const anchors[] = {"start", "middle", "end"};

static const char *const dashes[SVG_DASH_COUNT] = {
    "", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"8 3 2 3\""};

static void escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&' || *text == '<' || *text == '>') {
            fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;", out);
        } else {
            fputc(*text, out);
        }
    }
}

void svg_begin(FILE *out, double width, double height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" "
            "role=\"img\">\n<title>",
            width, height, width, height);
    escape(out, title);
    fputs("</title>\n", out);
    svg_rect(out, 0, 0, width, height, SVG_WHITE);
}

void svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void svg_rect(FILE *out, double x, double y, double width, double height, enum svg_color fill)
{
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y,
            width, height, colors[fill]);
}

void svg_frame(FILE *out, double x, double y, double width, double height, enum svg_color stroke)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" "
            "stroke=\"%s\"/>\n",
            x, y, width, height, colors[stroke]);
}

static void cells_of(FILE *out, struct svg_point at, struct svg_point cell,
                     const enum svg_color *cells, int count, enum svg_color color)
{
    bool is_open = false;

    for (int first = 0, next; first < count; first = next) {
        for (next = first; next < count && cells[next] == cells[first];) {
            next++;
        }
        if (cells[first] != color) {
            continue;
        }
        if (!is_open) {
            fprintf(out, "<path stroke=\"%s\" stroke-width=\"%.1f\" d=\"", colors[color], cell.y);
            is_open = true;
        }
        fprintf(out, "M%.1f %.1fh%.1f", at.x + first * cell.x, at.y + cell.y / 2,
                (next - first) * cell.x);
    }
    if (is_open) {
        fputs("\"/>\n", out);
    }
}

void svg_cells(FILE *out, struct svg_point at, struct svg_point cell, const enum svg_color *cells,
               int count, const char *name)
{
    fputs("<g><title>", out);
    escape(out, name);
    fputs("</title>\n", out);
    for (enum svg_color color = 0; color < SVG_WHITE; color++) {
        cells_of(out, at, cell, cells, count, color);
    }
    fputs("</g>\n", out);
}

static void svg_circle(FILE *out, struct svg_point at, double radius, enum svg_color fill)
{
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\"/>\n", at.x, at.y, radius,
            colors[fill]);
}

void svg_line(FILE *out, struct svg_point from, struct svg_point to, enum svg_color stroke,
              double width, enum svg_dash dash)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"%.1f\"%s/>\n",
            from.x, from.y, to.x, to.y, colors[stroke], width, dashes[dash]);
}

static void polyline(FILE *out, const struct svg_point *points, int count, enum svg_color stroke,
                     enum svg_dash dash)
{
    fputs("<polyline points=\"", out);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", points[i].x, points[i].y);
    }
    fprintf(out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\"%s/>\n",
            colors[stroke], dashes[dash]);
}

static void text_in(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
                    const char *weight, enum svg_color fill, const char *format, va_list args)
{
    char text[256];

    vsnprintf(text, sizeof(text), format, args);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" text-anchor=\"%s\"%s fill=\"%s\">",
            at.x, at.y, size, anchors[anchor], weight, colors[fill]);
    escape(out, text);
    fputs("</text>\n", out);
}

void svg_text(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_in(out, at, size, anchor, "", SVG_BLACK, format, args);
    va_end(args);
}

void svg_bold(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_in(out, at, size, anchor, " font-weight=\"bold\"", SVG_BLACK, format, args);
    va_end(args);
}

/* Bottom to top, for the title of a vertical axis. */
static void text_upright(FILE *out, struct svg_point at, double size, const char *text)
{
    fprintf(out,
            "<text transform=\"translate(%.1f %.1f) rotate(-90)\" font-size=\"%.0f\" "
            "text-anchor=\"middle\" fill=\"%s\">",
            at.x, at.y, size, colors[SVG_BLACK]);
    escape(out, text);
    fputs("</text>\n", out);
}

/* Roughly how wide the text will be: to keep labels apart. */
static double svg_text_width(const char *text, double size)
{
    return 0.62 * size * (double)strlen(text);
}

/* ---- charts ---- */

#define WIDTH      920.0
#define HEIGHT     560.0
#define LEFT       78.0
#define RIGHT      214.0
#define TOP        78.0
#define BOTTOM     62.0
#define SERIES_MAX 16
#define LABEL_ROWS 6
#define CHUNK      512
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
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
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

        f->x.low = f->y.low = 0;
        f->y.high = ceil(f->y.high / step + 1e-9) * step;
    }
}

static void short_number(double value, char text[24])
{
    bool is_m = value >= 1 << 20 && fmod(value, 1 << 20) == 0;

    if (!is_m && (value < 1024 || fmod(value, 1024) != 0)) {
        snprintf(text, 24, "%.6g", value);
    } else {
        snprintf(text, 24, "%.0f%c", value / (is_m ? 1 << 20 : 1024), is_m ? 'M' : 'K');
    }
}

/* Across the chart, with its number below or to the left. */
static void tick(const struct frame *f, bool is_x, double value, const char *text)
{
    struct svg_point low = is_x ? at(f, value, f->y.low) : at(f, f->x.low, value);
    struct svg_point high = is_x ? at(f, value, f->y.high) : at(f, f->x.high, value);

    svg_line(f->out, low, high, SVG_PALE, 1, SVG_SOLID);
    low.x -= is_x ? 0 : 8;
    low.y += is_x ? 19 : 4.5;
    svg_text(f->out, low, 13, is_x ? SVG_MIDDLE : SVG_END, "%s", text);
}

static void draw_ticks(const struct frame *f, bool is_x)
{
    struct range range = is_x ? f->x : f->y;
    bool is_log = f->chart->is_log;
    double octaves = log2(range.high / range.low);
    double step = is_log ? exp2(fmax(1, ceil(octaves / 9))) : nice_step(range.high - range.low);
    double value = is_log ? range.low : 0;
    char text[24];

    for (int i = 1; value <= range.high * 1.0001; value = is_log ? value * step : i++ * step) {
        if (is_log) {
            short_number(value, text);
        } else {
            snprintf(text, sizeof(text), "%.6g", value);
        }
        tick(f, is_x, value, text);
    }
}

static void draw_axes(const struct frame *f)
{
    struct svg_point origin = at(f, f->x.low, f->y.low);

    draw_ticks(f, true);
    draw_ticks(f, false);
    svg_line(f->out, origin, at(f, f->x.high, f->y.low), SVG_BLACK, 1.2, SVG_SOLID);
    svg_line(f->out, origin, at(f, f->x.low, f->y.high), SVG_BLACK, 1.2, SVG_SOLID);
    svg_text(f->out, (struct svg_point){(LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16}, 14, SVG_MIDDLE,
             "%s", f->chart->x_title);
    text_upright(f->out, (struct svg_point){20, (TOP + HEIGHT - BOTTOM) / 2}, 14,
                 f->chart->y_title);
    svg_bold(f->out, (struct svg_point){LEFT, 30}, 18, SVG_START, "%s", f->chart->title);
    svg_text(f->out, (struct svg_point){LEFT, 52}, 13, SVG_START, "%s", f->chart->subtitle);
}

/* Runs of points without a gap. */
static void draw_series(const struct frame *f, const struct chart_series *series)
{
    struct svg_point points[CHUNK];
    int count = 0;

    for (int i = 0; i <= series->count; i++) {
        bool is_gap = i == series->count || isnan(series->y[i]);

        if (!is_gap) {
            points[count++] = at(f, series->x[i], series->y[i]);
        }
        if (count == CHUNK || (is_gap && count > 0)) {
            polyline(f->out, points, count, series->color, series->dash);
            points[0] = points[count - 1];
            count = is_gap ? 0 : 1;
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

        if (f->chart->series[s].label == NULL) {
            continue;
        }
        count++;
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
        double width = svg_text_width(point->label, 12), x = at(f, point->x, point->y).x;
        double left = fmin(x, WIDTH - RIGHT - width - 4);
        int row = first_row(end, x);

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
    struct frame f = {.out = out,
                      .chart = chart,
                      .band = chart->point_count > 0 ? LABEL_ROWS * LABEL_STEP + 6 : 0};

    find_ranges(&f);
    svg_begin(out, WIDTH, HEIGHT, chart->title);
    draw_axes(&f);
    for (int s = 0; s < chart->series_count; s++) {
        draw_series(&f, &chart->series[s]);
    }
    draw_points(&f);
    draw_legend(&f);
    svg_end(out);
}

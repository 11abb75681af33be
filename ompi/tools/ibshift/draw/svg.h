/* Writes an SVG picture, element by element, or a whole chart. Coordinates are pixels, y grows
 * downwards. */
#ifndef IBSHIFT_DRAW_SVG_H
#define IBSHIFT_DRAW_SVG_H

#include <stdio.h>

/* Told apart with every common kind of colour blindness (Okabe and Ito). */
enum svg_color {
    SVG_BLUE,
    SVG_VERMILION,
    SVG_GREEN,
    SVG_ORANGE,
    SVG_PURPLE,
    SVG_SKY,
    SVG_LIGHT,
    SVG_BLACK,
    SVG_YELLOW,
    SVG_GREY,
    SVG_PALE,
    SVG_WHITE,
    SVG_COLOR_COUNT
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

enum svg_dash { SVG_SOLID, SVG_DASHED, SVG_DOTTED, SVG_DASH_DOTTED, SVG_DASH_COUNT };

struct svg_point {
    double x, y;
};

/* A white sheet with a title for screen readers; every picture ends with svg_end. */
void svg_begin(FILE *out, double width, double height, const char *title);
void svg_end(FILE *out);

void svg_rect(FILE *out, double x, double y, double width, double height, enum svg_color fill);
void svg_frame(FILE *out, double x, double y, double width, double height, enum svg_color stroke);
/* A row of cells, each as large as `cell` says; equal neighbours are one shape, white ones none.
 * Browsers show the name under the pointer. */
void svg_cells(FILE *out, struct svg_point at, struct svg_point cell, const enum svg_color *cells,
               int count, const char *name);
void svg_line(FILE *out, struct svg_point from, struct svg_point to, enum svg_color stroke,
              double width, enum svg_dash dash);
void svg_text(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...) __attribute__((format(printf, 5, 6)));
void svg_bold(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

/* ---- charts: curves over one axis, with title, grid, axes from 0, legend and named points ---- */

enum { CHART_POINTS_MAX = 32 };

struct chart_series {
    const char *label; /* NULL: not in the legend */
    enum svg_color color;
    enum svg_dash dash;
    int count;
    const double *x;
    const double *y;
};

struct chart_point {
    double x, y;
    char label[96];
};

struct chart {
    const char *title;
    const char *subtitle;
    const char *x_title;
    const char *y_title;
    int is_log; /* both axes */
    const struct chart_series *series;
    int series_count;
    const struct chart_point *points;
    int point_count; /* at most CHART_POINTS_MAX */
};

void chart_write(FILE *out, const struct chart *chart);

#endif

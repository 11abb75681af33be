/* Draws curves over one axis: title, grid, axes from 0, direct legend, named points. */
#ifndef IBSHIFT_DRAW_CHART_H
#define IBSHIFT_DRAW_CHART_H

#include <stdio.h>

#include "draw/svg.h"

enum { CHART_POINTS_MAX = 32 };

struct chart_series {
    const char *label; /* NULL: not in the legend */
    enum svg_color color;
    enum svg_dash dash;
    int count;
    const double *x;
    const double *y;
    int has_dots; /* dots instead of a line */
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

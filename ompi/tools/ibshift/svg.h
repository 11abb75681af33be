/* Writes an SVG picture, element by element. Coordinates are pixels, y grows
 * downwards. */
#ifndef IBSHIFT_SVG_H
#define IBSHIFT_SVG_H

#include <stdbool.h>
#include <stdio.h>

enum svg_color {
    SVG_BLUE,
    SVG_SKY,
    SVG_LIGHT,
    SVG_BLACK,
    SVG_GREY,
    SVG_PALE,
    SVG_WHITE,
    SVG_COLOR_COUNT
};

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

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
              double width, bool is_dashed);
void svg_text(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...) __attribute__((format(printf, 5, 6)));
void svg_bold(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif

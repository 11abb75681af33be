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
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        default:
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

void svg_circle(FILE *out, struct svg_point at, double radius, enum svg_color fill)
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

void svg_arrow(FILE *out, struct svg_point from, struct svg_point to, enum svg_color stroke,
               double gap)
{
    double dx = to.x - from.x, dy = to.y - from.y;
    double length = hypot(dx, dy);
    double ux, uy;

    if (length < 2 * gap + 1) {
        return;
    }
    ux = dx / length;
    uy = dy / length;
    from = (struct svg_point){from.x + ux * gap, from.y + uy * gap};
    to = (struct svg_point){to.x - ux * gap, to.y - uy * gap};
    svg_line(out, from, (struct svg_point){to.x - ux * 5, to.y - uy * 5}, stroke, 1.4, SVG_SOLID);
    fprintf(out, "<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\" fill=\"%s\"/>\n", to.x, to.y,
            to.x - ux * 8 - uy * 3.5, to.y - uy * 8 + ux * 3.5, to.x - ux * 8 + uy * 3.5,
            to.y - uy * 8 - ux * 3.5, colors[stroke]);
}

static void write_points(FILE *out, const struct svg_point *points, int count)
{
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%.1f,%.1f", i > 0 ? " " : "", points[i].x, points[i].y);
    }
}

void svg_polyline(FILE *out, const struct svg_point *points, int count, enum svg_color stroke,
                  enum svg_dash dash)
{
    fputs("<polyline points=\"", out);
    write_points(out, points, count);
    fprintf(out,
            "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linejoin=\"round\"%s/>\n",
            colors[stroke], dashes[dash]);
}

void svg_area(FILE *out, const struct svg_point *points, int count, enum svg_color fill)
{
    fputs("<polygon points=\"", out);
    write_points(out, points, count);
    fprintf(out, "\" fill=\"%s\" fill-opacity=\"0.15\"/>\n", colors[fill]);
}

static void text_in(FILE *out, struct svg_point at, double size, const char *style,
                    const char *format, va_list args)
{
    char text[256];

    vsnprintf(text, sizeof(text), format, args);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" %s>", at.x, at.y, size, style);
    escape(out, text);
    fputs("</text>\n", out);
}

void svg_text(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...)
{
    char style[64];
    va_list args;

    snprintf(style, sizeof(style), "text-anchor=\"%s\" fill=\"%s\"", anchors[anchor],
             colors[SVG_BLACK]);
    va_start(args, format);
    text_in(out, at, size, style, format, args);
    va_end(args);
}

void svg_bold(FILE *out, struct svg_point at, double size, enum svg_anchor anchor,
              const char *format, ...)
{
    char style[80];
    va_list args;

    snprintf(style, sizeof(style), "text-anchor=\"%s\" font-weight=\"bold\" fill=\"%s\"",
             anchors[anchor], colors[SVG_BLACK]);
    va_start(args, format);
    text_in(out, at, size, style, format, args);
    va_end(args);
}

void svg_label_on(FILE *out, struct svg_point at, double size, enum svg_color fill,
                  const char *format, ...)
{
    int is_dark = fill == SVG_BLUE || fill == SVG_VERMILION || fill == SVG_GREEN ||
                  fill == SVG_BLACK || fill == SVG_GREY;
    char style[64];
    va_list args;

    snprintf(style, sizeof(style), "text-anchor=\"middle\" fill=\"%s\"",
             colors[is_dark ? SVG_WHITE : SVG_BLACK]);
    va_start(args, format);
    text_in(out, at, size, style, format, args);
    va_end(args);
}

void svg_text_upright(FILE *out, struct svg_point at, double size, const char *text)
{
    fprintf(out,
            "<text transform=\"translate(%.1f %.1f) rotate(-90)\" font-size=\"%.0f\" "
            "text-anchor=\"middle\" fill=\"%s\">",
            at.x, at.y, size, colors[SVG_BLACK]);
    escape(out, text);
    fputs("</text>\n", out);
}

double svg_text_width(const char *text, double size)
{
    return 0.62 * size * (double)strlen(text);
}

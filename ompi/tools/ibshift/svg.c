/* Pictures: elements of SVG. */
#include "svg.h"

#include <stdarg.h>

static const char *const colors[SVG_COLOR_COUNT] = {
    [SVG_BLUE] = "#0072b2",  [SVG_SKY] = "#56b4e9",  [SVG_LIGHT] = "#b8ddf4",
    [SVG_BLACK] = "#222222", [SVG_GREY] = "#8a8a8a", [SVG_PALE] = "#e4e4e4",
    [SVG_WHITE] = "#ffffff",
};

static const char *const anchors[] = {"start", "middle", "end"};

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

void svg_line(FILE *out, struct svg_point from, struct svg_point to, enum svg_color stroke,
              double width, bool is_dashed)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"%.1f\"%s/>\n",
            from.x, from.y, to.x, to.y, colors[stroke], width,
            is_dashed ? " stroke-dasharray=\"7 4\"" : "");
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

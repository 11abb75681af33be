/* The use of links over time, as a picture: a row a link, a column a part of the time. */
#include "sim/cmd.h"

#include <errno.h>
#include <stdlib.h>

#include "draw/svg.h"

enum { ROWS_MAX = 48, COLUMNS_MAX = 256, ROW = 13, LEFT = 250, WIDTH = 640, TOP = 58 };

struct use {
    uint32_t link;
    uint64_t busy;
};

static int by_use(const void *one, const void *other)
{
    const struct use *a = one, *b = other;

    return a->busy != b->busy ? (a->busy < b->busy ? 1 : -1)
                              : (a->link > b->link) - (a->link < b->link);
}

/* The job's links, busiest first; returns their number. */
static uint32_t list_links(const struct sim_command *c, struct use *uses)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->job.fabric->port_count; i++) {
        uint64_t busy = sim_fabric_busy(c->run.fabric, i, false);

        if (busy > 0) {
            uses[count++] = (struct use){.link = i, .busy = busy};
        }
    }
    qsort(uses, count, sizeof(*uses), by_use);
    return count;
}

/* Evenly from the busiest to the idlest, so that few rows show all kinds. */
static uint32_t row_of(uint32_t row, uint32_t rows, uint32_t count)
{
    return rows > 1 ? (uint32_t)((uint64_t)row * (count - 1) / (rows - 1)) : 0;
}

static enum svg_color color_of(double share)
{
    return share >= 0.9   ? SVG_VERMILION
           : share >= 0.6 ? SVG_ORANGE
           : share >= 0.3 ? SVG_SKY
           : share > 0.02 ? SVG_PALE
                          : SVG_WHITE;
}

static void draw_row(FILE *out, const struct sim_command *c, const struct use *use, double y)
{
    uint64_t width, end = c->run.time;
    char name[200];

    sim_fabric_busy_in(c->run.fabric, use->link, 0, &width);
    ibshift_link_name(c->job.fabric, use->link, name, sizeof(name));
    svg_text(out, (struct svg_point){LEFT - 6, y + ROW - 3}, 9, SVG_END, "%.48s", name);
    for (uint32_t bin = 0; bin < COLUMNS_MAX && bin * width < end; bin++) {
        double busy = (double)sim_fabric_busy_in(c->run.fabric, use->link, bin, &width);
        double x = LEFT + (double)(bin * width) / (double)end * WIDTH;
        double last = (double)((bin + 1) * width) / (double)end;
        double right = LEFT + (last < 1 ? last : 1) * WIDTH;

        svg_rect(out, x, y, right - x, ROW - 2, color_of(busy / (double)width));
    }
    svg_frame(out, LEFT, y, WIDTH, ROW - 2, SVG_GREY);
}

static void draw_legend(FILE *out, double y)
{
    static const double share[] = {0, 0.1, 0.4, 0.7, 1};
    static const char *const text[] = {"idle", "below 30 %", "below 60 %", "below 90 %", "full"};

    for (int i = 0; i < 5; i++) {
        double x = LEFT + i * 120;

        svg_rect(out, x, y, 14, 10, color_of(share[i]));
        svg_frame(out, x, y, 14, 10, SVG_GREY);
        svg_text(out, (struct svg_point){x + 19, y + 9}, 10, SVG_START, "%s", text[i]);
    }
}

static void draw(FILE *out, const struct sim_command *c, const struct use *uses, uint32_t count)
{
    uint32_t rows = count < ROWS_MAX ? count : ROWS_MAX;
    double bottom = TOP + rows * (double)ROW;

    svg_begin(out, LEFT + WIDTH + 20, bottom + 50, "Use of links over time (modelled)");
    svg_bold(out, (struct svg_point){LEFT, 20}, 14, SVG_START, "Use of links over time (modelled)");
    svg_text(out, (struct svg_point){LEFT, 38}, 11, SVG_START,
             "%u ranks, %s, pace %s: %.3f of the bound; %u of %u links, busiest first",
             c->job.placement->ranks, c->title, c->pace_text,
             (double)c->run.time / (double)c->ideal, rows, count);
    for (uint32_t row = 0; row < rows; row++) {
        draw_row(out, c, &uses[row_of(row, rows, count)], TOP + row * (double)ROW);
    }
    svg_text(out, (struct svg_point){LEFT, bottom + 14}, 10, SVG_START, "0");
    svg_text(out, (struct svg_point){LEFT + WIDTH, bottom + 14}, 10, SVG_END, "%.1f us",
             (double)c->run.time / 1e6);
    draw_legend(out, bottom + 26);
    svg_end(out);
}

int sim_draw_use(const struct sim_command *c, const char *path)
{
    struct use *uses = malloc(((size_t)c->job.fabric->port_count + 1) * sizeof(*uses));
    FILE *out = fopen(path, "w");
    int failed = 0;

    if (uses != NULL && out != NULL) {
        draw(out, c, uses, list_links(c, uses));
    }
    failed = uses == NULL || out == NULL || ferror(out);
    if (out != NULL) {
        failed |= fclose(out) != 0;
    }
    free(uses);
    return failed ? cli_error(c->args.command, "%s: cannot be written", path) : CLI_OK;
}

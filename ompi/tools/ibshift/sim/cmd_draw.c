/* The use of links over time, as a picture: a row per link, grouped by where the links lead. */
#include "sim/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"
#include "fabric/shape/shape.h"

enum {
    ROWS_MAX = 66, /* more cannot be told apart on a page */
    BINS_MAX = 256,
    LEFT = 150,
    WIDTH = 720,
    TOP = 84,
    BODY = 280,
    GAP = 10,
    LEVELS_ALIKE = 100, /* between switches of one level: behind all ways up */
    LEVELS_DOWN = 200,
};

struct row {
    uint32_t link, group; /* groups in the order of a message's way: up, across, down */
    unsigned from, to;    /* levels; 0: a host */
    uint64_t busy;
};

struct picture {
    FILE *out;
    const struct sim_command *c;
    struct ibshift_shape shape;
    struct row *rows;
    uint32_t count, drawn, groups;
    uint64_t end; /* ps: of the axis */
    double pitch, y;
};

static int in_order(const void *one, const void *other)
{
    const struct row *a = one, *b = other;

    return a->group != b->group ? (a->group > b->group) - (a->group < b->group)
                                : (a->link > b->link) - (a->link < b->link);
}

static void list_rows(struct picture *p)
{
    const struct ibshift_fabric *f = p->c->job.fabric;

    for (uint32_t i = 0; i < f->port_count; i++) {
        uint64_t busy = p->c->run.fabric->ports[i].busy[false];
        struct row row = {.link = i, .busy = busy};

        if (busy == 0) {
            continue;
        }
        row.from = p->shape.node_level[f->ports[i].node];
        row.to = p->shape.node_level[f->ports[f->ports[i].peer].node];
        row.group = row.from < row.to    ? row.from
                    : row.from == row.to ? LEVELS_ALIKE
                                         : LEVELS_DOWN - row.from;
        p->rows[p->count++] = row;
    }
    qsort(p->rows, p->count, sizeof(*p->rows), in_order);
    for (uint32_t i = 0; i < p->count; i++) {
        p->groups += i == 0 || p->rows[i].group != p->rows[i - 1].group;
    }
}

/* The fuller the darker: a full link is what an all-to-all wants, so no colour of alarm. */
static enum svg_color color_of(double share)
{
    return share >= 0.9   ? SVG_BLUE
           : share >= 0.6 ? SVG_SKY
           : share >= 0.3 ? SVG_LIGHT
           : share > 0.02 ? SVG_PALE
                          : SVG_WHITE;
}

static double x_of(const struct picture *p, double time)
{
    return LEFT + time / (double)p->end * WIDTH;
}

static void draw_row(const struct picture *p, const struct row *row)
{
    const struct sim_fabric *f = p->c->run.fabric;
    enum svg_color cells[BINS_MAX];
    uint32_t count = 0, bins = f->options.bins;
    char name[200];

    for (; count < BINS_MAX && count * f->bin_width < p->c->run.job[0].time; count++) {
        double busy = count < bins ? (double)f->bins[(size_t)row->link * bins + count] : 0;
        double rest = (double)(p->c->run.job[0].time - count * f->bin_width);

        cells[count] = color_of(busy / fmin((double)f->bin_width, rest));
    }
    ibshift_link_name(p->c->job.fabric, row->link, name, sizeof(name));
    svg_cells(p->out, (struct svg_point){LEFT, p->y},
              (struct svg_point){(x_of(p, (double)p->c->run.job[0].time) - LEFT) / count,
                                 p->pitch - (p->pitch > 4 ? 1 : 0)},
              cells, (int)count, name);
}

static void group_name(const struct row *row, char *text, size_t size)
{
    if (row->from == 0) {
        snprintf(text, size, "from hosts");
    } else if (row->to == 0) {
        snprintf(text, size, "to hosts");
    } else if (row->from == row->to) {
        snprintf(text, size, "between switches");
    } else {
        snprintf(text, size, "level %u to %u", row->from, row->to);
    }
}

/* All links of one group count for its use; so many rows of them are drawn, evenly chosen. */
static void draw_group(struct picture *p, const struct row *rows, uint32_t count)
{
    uint32_t most = ROWS_MAX / p->groups, drawn = count < most ? count : most;
    double height = drawn * p->pitch, busy = 0, top = p->y;
    char name[32];

    for (uint32_t i = 0; i < count; i++) {
        busy += (double)rows[i].busy;
    }
    for (uint32_t i = 0; i < drawn; i++) {
        draw_row(p, &rows[(uint64_t)i * count / drawn]);
        p->y += p->pitch;
    }
    group_name(rows, name, sizeof(name));
    svg_text(p->out, (struct svg_point){LEFT - 10, top + height / 2 - 3}, 12, SVG_END, "%s", name);
    svg_text(p->out, (struct svg_point){LEFT - 10, top + height / 2 + 12}, 11, SVG_END,
             "%.0f %% used", 100 * busy / count / (double)p->c->run.job[0].time);
    svg_frame(p->out, LEFT, top, WIDTH, height, SVG_GREY);
    p->y += GAP;
}

static void draw_groups(struct picture *p)
{
    for (uint32_t first = 0, next; first < p->count; first = next) {
        for (next = first; next < p->count && p->rows[next].group == p->rows[first].group;) {
            next++;
        }
        draw_group(p, &p->rows[first], next - first);
    }
}

static void mark(const struct picture *p, uint64_t time, const char *what, bool is_dashed,
                 enum svg_anchor anchor)
{
    double x = x_of(p, (double)time);

    svg_line(p->out, (struct svg_point){x, TOP - 8}, (struct svg_point){x, p->y - GAP}, SVG_BLACK,
             1, is_dashed);
    svg_text(p->out, (struct svg_point){x + (anchor == SVG_END ? -4 : 4), TOP - 12}, 11, anchor,
             "%s %.0f us", what, (double)time / 1e6);
}

static void draw_axis(const struct picture *p)
{
    uint64_t ideal = p->c->ideal, time = p->c->run.job[0].time;
    double end = (double)p->end / 1e6, power = pow(10, floor(log10(end)));
    double step = end / power < 2 ? power / 5 : end / power < 5 ? power / 2 : power;

    for (int i = 0; i * step <= end * 1.0001; i++) {
        svg_text(p->out, (struct svg_point){x_of(p, i * step * 1e6), p->y + 6}, 11, SVG_MIDDLE,
                 "%g", i * step);
    }
    svg_text(p->out, (struct svg_point){LEFT + WIDTH + 26, p->y + 6}, 11, SVG_START, "us");
    /* The earlier one's name is left of its line; the later one's right of it where there is room.
     */
    mark(p, ideal, "bound", true, SVG_END);
    mark(p, time, "end", false, x_of(p, (double)time) < LEFT + 0.85 * WIDTH ? SVG_START : SVG_END);
}

static void draw_legend(const struct picture *p)
{
    static const double share[] = {0, 0.1, 0.4, 0.7, 1};
    static const char *const text[] = {"idle", "2 to 30 %", "30 to 60 %", "60 to 90 %",
                                       "90 % and more"};

    for (int i = 0; i < 5; i++) {
        double x = LEFT + i * 140;

        svg_rect(p->out, x, p->y + 22, 14, 10, color_of(share[i]));
        svg_frame(p->out, x, p->y + 22, 14, 10, SVG_GREY);
        svg_text(p->out, (struct svg_point){x + 20, p->y + 31}, 11, SVG_START, "%s", text[i]);
    }
}

static void draw(struct picture *p)
{
    const struct sim_command *c = p->c;
    uint32_t most = ROWS_MAX / p->groups, rows = 0;

    for (uint32_t i = 0, in_group = 0; i < p->count; i++) {
        in_group = i == 0 || p->rows[i].group != p->rows[i - 1].group ? 1 : in_group + 1;
        rows += in_group <= most;
    }
    p->pitch = fmin(13, (double)BODY / rows);
    p->y = TOP;
    svg_begin(p->out, LEFT + WIDTH + 60, TOP + rows * p->pitch + p->groups * GAP + 42,
              "Use of links over time (modelled)");
    svg_bold(p->out, (struct svg_point){20, 26}, 17, SVG_START, "%s: %.3f of the bound", c->title,
             (double)c->run.job[0].time / (double)c->ideal);
    svg_text(p->out, (struct svg_point){20, 46}, 12, SVG_START,
             "Use of links over time (modelled); %u ranks, messages of %.0f bytes, pace %s; a row "
             "is a link, %u of %u are drawn",
             c->job.placement->ranks, c->size, c->pace_text, rows, p->count);
    draw_groups(p);
    draw_axis(p);
    draw_legend(p);
    svg_end(p->out);
}

static int open_picture(struct picture *p, const struct sim_command *c)
{
    struct ibshift_error err;
    double until = c->until * 1e6;

    *p = (struct picture){.c = c, .end = c->run.job[0].time};
    p->end = until > (double)p->end ? (uint64_t)until : p->end;
    if (ibshift_shape_find(c->job.fabric, &p->shape, &err) != 0) {
        return fabric_args_fail(&c->args, &err);
    }
    p->rows = sim_zeroed(c->job.fabric->port_count, sizeof(*p->rows));
    return CLI_OK;
}

int sim_draw_use(const struct sim_command *c, const char *path)
{
    struct picture picture;
    struct output out;
    int status = open_picture(&picture, c);

    if (status != CLI_OK) {
        return status;
    }
    status = cli_output_open(c->args.command, path, &out);
    if (status == CLI_OK) {
        picture.out = out.file;
        list_rows(&picture);
        if (picture.count > 0) {
            draw(&picture);
        }
        status = cli_output_close(c->args.command, path, &out, status);
    }
    free(picture.rows);
    ibshift_shape_free(&picture.shape);
    return status;
}

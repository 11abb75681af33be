/* The use of links over time, as a picture in SVG: a row per link, grouped by where the links lead. */
#include "sim/cmd.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "fabric/shape/shape.h"

enum {
    ROWS_MAX = 66, /* more cannot be told apart on a page */
    BINS = 256,
    LEFT = 150,
    WIDTH = 720,
    TOP = 84,
    BODY = 280,
    GAP = 10,
    RIGHT = 90,
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
    uint32_t count, groups;
    double time, end; /* ps: of the run, of the axis */
    double pitch, y;
};

/* The fuller the darker: a full link is what an all-to-all wants, so no colour of alarm. */
static const struct {
    double least; /* share of the time */
    const char *color, *words;
} uses[] = {
    {0, "#ffffff", "idle"},
    {0.02, "#e4e4e4", "2 to 30 %"},
    {0.3, "#b8ddf4", "30 to 60 %"},
    {0.6, "#56b4e9", "60 to 90 %"},
    {0.9, "#0072b2", "90 % and more"},
};
enum { USES = sizeof(uses) / sizeof(uses[0]) };

static void escape(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&' || *text == '<' || *text == '>') {
            fprintf(out, "&#%d;", *text);
        } else {
            fputc(*text, out);
        }
    }
}

/* look: attributes of the element. */
__attribute__((format(printf, 5, 6))) static void
write_at(const struct picture *p, double x, double y, const char *look, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" %s fill=\"#222222\">", x, y, look);
    escape(p->out, text);
    fputs("</text>\n", p->out);
}

static void frame(const struct picture *p, double x, double y, double width, double height,
                  const char *fill)
{
    fprintf(p->out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
            "stroke=\"#8a8a8a\"/>\n",
            x, y, width, height, fill);
}

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
        struct row row = {.link = i, .busy = p->c->run.fabric->ports[i].busy[false]};

        if (row.busy == 0) {
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

static double x_of(const struct picture *p, double time)
{
    return LEFT + time / p->end * WIDTH;
}

/* A path for each use, whose neighbours of one use are one line; browsers show the link's name under the pointer. */
static void draw_row(const struct picture *p, const struct row *row)
{
    const struct sim_fabric *f = p->c->run.fabric;
    double height = p->pitch - (p->pitch > 4 ? 1 : 0), width;
    int use[BINS], count = 0;
    char name[200];

    for (; count < BINS && (double)(count * f->bin_width) < p->time; count++) {
        double rest = fmin((double)f->bin_width, p->time - (double)(count * f->bin_width));
        double share = (double)f->bins[(size_t)row->link * BINS + (size_t)count] / rest;

        for (use[count] = USES - 1; share < uses[use[count]].least;) {
            use[count]--;
        }
    }
    width = (x_of(p, p->time) - LEFT) / count;
    ibshift_link_name(p->c->job.fabric, row->link, name, sizeof(name));
    fputs("<g><title>", p->out);
    escape(p->out, name);
    fputs("</title>\n", p->out);
    for (int u = 1; u < USES; u++) {
        fprintf(p->out, "<path stroke=\"%s\" stroke-width=\"%.1f\" d=\"", uses[u].color, height);
        for (int first = 0, next; first < count; first = next) {
            for (next = first + 1; next < count && use[next] == use[first];) {
                next++;
            }
            if (use[first] == u) {
                fprintf(p->out, "M%.1f %.1fh%.1f", LEFT + first * width, p->y + height / 2,
                        (next - first) * width);
            }
        }
        fputs("\"/>\n", p->out);
    }
    fputs("</g>\n", p->out);
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
    snprintf(name, sizeof(name), "level %u to %u", rows->from, rows->to);
    write_at(p, LEFT - 10, top + height / 2 - 3, "font-size=\"12\" text-anchor=\"end\"", "%s",
             rows->from == 0          ? "from hosts"
             : rows->to == 0          ? "to hosts"
             : rows->from == rows->to ? "between switches"
                                      : name);
    write_at(p, LEFT - 10, top + height / 2 + 12, "font-size=\"11\" text-anchor=\"end\"",
             "%.0f %% used", 100 * busy / count / p->time);
    frame(p, LEFT, top, WIDTH, height, "none");
    p->y += GAP;
}

static void mark(const struct picture *p, double time, const char *what, const char *dashes,
                 bool is_left)
{
    double x = x_of(p, time);

    fprintf(p->out, "<path stroke=\"#222222\" d=\"M%.1f %dV%.1f\"%s/>\n", x, TOP - 8, p->y - GAP,
            dashes);
    write_at(p, x + (is_left ? -4 : 4), TOP - 12,
             is_left ? "font-size=\"11\" text-anchor=\"end\"" : "font-size=\"11\"", "%s %.*f us",
             what, time < 1e7 ? 3 : 0, time / 1e6);
}

/* Its time, both marks, and what the colours mean. */
static void draw_axis(const struct picture *p)
{
    double end = p->end / 1e6, power = pow(10, floor(log10(end)));
    double step = end / power < 2 ? power / 5 : end / power < 5 ? power / 2 : power;

    for (int i = 0; i * step <= end * 1.0001; i++) {
        write_at(p, x_of(p, i * step * 1e6), p->y + 6, "font-size=\"11\" text-anchor=\"middle\"",
                 "%g", i * step);
    }
    write_at(p, LEFT + WIDTH + 26, p->y + 6, "font-size=\"11\"", "us");
    /* No run ends before the bound. */
    mark(p, (double)p->c->ideal, "bound", " stroke-dasharray=\"7 4\"", true);
    mark(p, p->time, "end", "", false);
    for (int u = 0; u < USES; u++) {
        frame(p, LEFT + u * 140, p->y + 22, 14, 10, uses[u].color);
        write_at(p, LEFT + u * 140 + 20, p->y + 31, "font-size=\"11\"", "%s", uses[u].words);
    }
}

static void draw(struct picture *p)
{
    const struct sim_command *c = p->c;
    uint32_t most = ROWS_MAX / p->groups, rows = 0;
    char ratio[64] = "", size[64] = "";
    double height;

    for (uint32_t i = 0, in_group = 0; i < p->count; i++) {
        in_group = i == 0 || p->rows[i].group != p->rows[i - 1].group ? 1 : in_group + 1;
        rows += in_group <= most;
    }
    p->pitch = fmin(13, (double)BODY / rows);
    p->y = TOP;
    height = TOP + rows * p->pitch + p->groups * GAP + 42;
    fprintf(p->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" "
            "role=\"img\">\n<title>Use of links over time (modelled)</title>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
            LEFT + WIDTH + RIGHT, height, LEFT + WIDTH + RIGHT, height);
    if (c->plan == NULL || c->alg->collective != IBSHIFT_BARRIER) { /* which has no bytes */
        snprintf(ratio, sizeof(ratio), ": %.3f of the bound", p->time / (double)c->ideal);
        snprintf(size, sizeof(size), "messages of %.0f bytes, ", c->size);
    }
    write_at(p, 20, 26, "font-size=\"17\" font-weight=\"bold\"", "%s%s", c->title, ratio);
    write_at(p, 20, 46, "font-size=\"12\"",
             "Use of links over time (modelled); %u ranks, %space %s; a row is a link, %u of %u "
             "are drawn",
             c->job.placement->ranks, size, c->pace_text, rows, p->count);
    for (uint32_t first = 0, next; first < p->count; first = next) {
        for (next = first; next < p->count && p->rows[next].group == p->rows[first].group;) {
            next++;
        }
        draw_group(p, &p->rows[first], next - first);
    }
    draw_axis(p);
    fputs("</svg>\n", p->out);
}

int sim_draw_use(const struct sim_command *c, const char *path)
{
    struct picture p = {.c = c, .time = (double)c->run.job[0].time};
    struct ibshift_error err;
    struct output out;
    int status;

    p.end = fmax(p.time, c->until * 1e6);
    if (ibshift_shape_find(c->job.fabric, &p.shape, &err) != 0) {
        return fabric_args_fail(&c->args, &err);
    }
    p.rows = sim_zeroed(c->job.fabric->port_count, sizeof(*p.rows));
    status = cli_output_open(c->args.command, path, &out);
    if (status == CLI_OK) {
        p.out = out.file;
        list_rows(&p);
        if (p.count > 0) {
            draw(&p);
        }
        status = cli_output_close(c->args.command, path, &out, status);
    }
    free(p.rows);
    ibshift_shape_free(&p.shape);
    return status;
}

/* `ibshift fabric draw`: the fabric as an SVG picture, cables coloured by what an all-to-all puts
 * on them. */
#include "fabric/cmd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/svg.h"
#include "fabric/paths/route.h"
#include "fabric/shape/shape.h"
#include "pool.h"

struct picture {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    const double *load;   /* by directed link (fabric/paths/route.h), or NULL: no tables */
    struct svg_point *at; /* by switch */
    double width, height; /* of the field of switches and hosts, below the title */
    double box;           /* half the width of a switch */
    double line;          /* width of a cable */
    double level_step;    /* between the levels of a tree */
};

#define TOP    96.0 /* below title and subtitle */
#define MARGIN 48.0
#define PI     3.14159265358979

struct seat {
    uint64_t key;
    uint32_t sw;
};

static int by_key(const void *x, const void *y)
{
    const struct seat *a = x, *b = y;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->sw < b->sw ? -1 : a->sw > b->sw;
}

/* The highest digit first: subtrees stand together, at every level. */
static uint64_t seat_key(const struct ibshift_shape *t, uint32_t sw)
{
    const uint16_t *digits = t->digits + (size_t)sw * (IBSHIFT_LEVELS_MAX + 1);
    uint64_t key = 0;

    for (unsigned i = t->levels; i >= 2; i--) {
        key = key << 9 | (digits[i] & 511u);
    }
    return key;
}

static void place_level(struct picture *p, unsigned level, struct seat *seats)
{
    const struct ibshift_shape *t = p->shape;
    uint32_t count = 0;

    for (uint32_t s = 0; s < p->f->switch_count; s++) {
        if (t->node_level[p->f->switches[s]] == level) {
            seats[count++] = (struct seat){seat_key(t, s), s};
        }
    }
    qsort(seats, count, sizeof(*seats), by_key);
    for (uint32_t i = 0; i < count; i++) {
        p->at[seats[i].sw].x = MARGIN + (p->width - 2 * MARGIN) * (i + 0.5) / count;
        p->at[seats[i].sw].y = TOP + 30 + (t->levels - level) * p->level_step;
    }
}

static uint32_t widest_level(const struct ibshift_shape *t)
{
    uint32_t widest = 1;

    for (unsigned l = 1; l <= t->levels; l++) {
        widest = t->level[l].switches > widest ? t->level[l].switches : widest;
    }
    return widest;
}

static double within(double low, double value, double high)
{
    return value < low ? low : value > high ? high : value;
}

static void place_tree(struct picture *p)
{
    struct pool pool = {NULL};
    struct seat *seats = pool_new(&pool, p->f->switch_count, sizeof(*seats));
    uint32_t widest = widest_level(p->shape);

    p->width = within(860, 48.0 * widest, 2400);
    p->level_step = within(150, p->width * 0.12, 290);
    p->height = TOP + 30 + (p->shape->levels - 1) * p->level_step + 70;
    p->box = within(1.2, (p->width - 2 * MARGIN) / widest * 0.34, 22);
    p->line = within(0.3, 60.0 / widest, 2.2);
    for (unsigned l = 1; l <= p->shape->levels; l++) {
        place_level(p, l, seats);
    }
    pool_free(&pool);
}

/* Two axes on the sheet, further ones obliquely behind. */
static void place_torus(struct picture *p)
{
    const struct ibshift_shape *t = p->shape;
    double depth_x = 0, depth_y = 0, step;
    unsigned depth = 1;

    for (unsigned k = 2; k < t->dims; k++) {
        depth *= t->dim[k];
    }
    step = depth > 1 ? 34.0 + 26.0 * depth : 84.0;
    step = within(40, step, 200);
    depth_x = step / depth * 0.72;
    depth_y = step / depth * 0.62;
    p->width = within(700, 2 * 80 + t->dim[0] * step, 4000); /* the legend needs 690 */
    p->height = TOP + 60 + (t->dims > 1 ? t->dim[1] : 1) * step;
    p->box = depth > 1 ? 7 : 15;
    p->line = 2.4;
    for (uint32_t s = 0; s < p->f->switch_count; s++) {
        const uint16_t *c = t->digits + (size_t)s * (IBSHIFT_LEVELS_MAX + 1);
        double behind = 0, scale = 1;

        for (unsigned k = 2; k < t->dims; k++) {
            behind += c[k] * scale;
            scale *= t->dim[k];
        }
        p->at[s].x = (p->width - (t->dim[0] - 1) * step) / 2 - (depth > 1 ? step * 0.3 : 0) +
                     c[0] * step + behind * depth_x;
        p->at[s].y = TOP + 50 + (depth > 1 ? step * 0.6 : 0) + (t->dims > 1 ? c[1] : 0) * step -
                     behind * depth_y;
    }
}

static void place_circle(struct picture *p)
{
    double radius = within(160, p->f->switch_count * 5.0, 900);

    p->width = within(700, 2 * radius + 200, 2400);
    p->height = TOP + 2 * radius + 140;
    p->box = within(2, 500.0 / (p->f->switch_count + 1), 12);
    p->line = within(0.3, 60.0 / (p->f->switch_count + 1), 2);
    for (uint32_t s = 0; s < p->f->switch_count; s++) {
        double angle = 2 * PI * s / p->f->switch_count - PI / 2;

        p->at[s].x = p->width / 2 + radius * cos(angle);
        p->at[s].y = TOP + 60 + radius + radius * sin(angle);
    }
}

/* Places the switches; at[] has switch_count elements. */
static void place(struct picture *p)
{
    if (p->shape->kind == IBSHIFT_SHAPE_TORUS) {
        place_torus(p);
    } else if (p->shape->levels > 0 && p->shape->digits != NULL) {
        place_tree(p);
    } else {
        place_circle(p);
    }
}

#define LEGEND_HEIGHT 64.0

/* Time of a cable (the busier direction) over that of a host's own cable in an all-to-all. */
static const struct band {
    double up_to;
    enum svg_color color;
    double wider;
    const char *text;
} bands[] = {
    {0.0, SVG_PALE, 0.7, "unused"},     {0.55, SVG_SKY, 0.8, "up to 0.5"},
    {1.05, SVG_BLUE, 1.0, "up to 1"},   {1.55, SVG_YELLOW, 1.4, "up to 1.5"},
    {2.05, SVG_ORANGE, 1.7, "up to 2"}, {INFINITY, SVG_VERMILION, 2.2, "above"},
};

#define BAND_COUNT (sizeof(bands) / sizeof(bands[0]))

static unsigned band_of(const struct picture *p, uint32_t link)
{
    uint32_t back = p->f->ports[link].peer;
    double load;
    unsigned band = 0;

    if (p->load == NULL) {
        return 2;
    }
    load = fmax(p->load[link], p->load[back]);
    while (load > bands[band].up_to) {
        band++;
    }
    return band;
}

/* A cable round the edge of a torus: a stub at each end. */
static bool is_wrap(const struct picture *p, uint32_t a, uint32_t b)
{
    const struct ibshift_shape *t = p->shape;
    const uint16_t *x = t->digits + (size_t)a * (IBSHIFT_LEVELS_MAX + 1);
    const uint16_t *y = t->digits + (size_t)b * (IBSHIFT_LEVELS_MAX + 1);

    for (unsigned k = 0; t->kind == IBSHIFT_SHAPE_TORUS && k < t->dims; k++) {
        if (x[k] > y[k] + 1 || y[k] > x[k] + 1) {
            return true;
        }
    }
    return false;
}

static void draw_stub(FILE *out, const struct picture *p, uint32_t from, uint32_t to,
                      const struct band *band)
{
    struct svg_point a = p->at[from], b = p->at[to];
    double length = hypot(b.x - a.x, b.y - a.y), reach = p->box + 20;

    b.x = a.x - (b.x - a.x) / length * reach;
    b.y = a.y - (b.y - a.y) / length * reach;
    svg_line(out, a, b, band->color, p->line * band->wider, SVG_SOLID);
}

static void draw_cable(FILE *out, const struct picture *p, uint32_t link, const struct band *band)
{
    const struct ibshift_fabric *f = p->f;
    uint32_t a = f->nodes[f->ports[link].node].switch_index;
    uint32_t b = f->nodes[ibshift_port_neighbour(f, link)].switch_index;

    if (is_wrap(p, a, b)) {
        draw_stub(out, p, a, b, band);
        draw_stub(out, p, b, a, band);
    } else {
        svg_line(out, p->at[a], p->at[b], band->color, p->line * band->wider, SVG_SOLID);
    }
}

/* The busiest last, so that they are seen. */
static void draw_cables(FILE *out, const struct picture *p)
{
    const struct ibshift_fabric *f = p->f;

    for (unsigned band = 0; band < BAND_COUNT; band++) {
        for (uint32_t link = 0; link < f->port_count; link++) {
            uint32_t peer = f->ports[link].peer;

            if (peer != IBSHIFT_NO_PORT && link < peer &&
                ibshift_node_is_switch(f, f->ports[link].node) &&
                ibshift_node_is_switch(f, f->ports[peer].node) && band_of(p, link) == band) {
                draw_cable(out, p, link, &bands[band]);
            }
        }
    }
}

/* Hosts as dots below their switch (around it in a torus), coloured as their cable. */
static void draw_hosts(FILE *out, const struct picture *p, uint32_t sw)
{
    const struct ibshift_fabric *f = p->f;
    bool below = p->shape->kind != IBSHIFT_SHAPE_TORUS;
    double dot = below ? fmin(2.8, p->box * 0.3) : fmin(2.4, p->box * 0.3);
    unsigned column = 0, columns = below && p->box < 8 ? 3 : 8, row = 0, hosts = 0;

    for (unsigned i = 1; i <= f->nodes[f->switches[sw]].port_count; i++) {
        uint32_t other = ibshift_port_neighbour(f, ibshift_node_port(f, f->switches[sw], i));

        hosts += other != IBSHIFT_NO_NODE && f->nodes[other].kind == IBSHIFT_NODE_HCA;
    }
    columns = hosts < columns ? hosts : columns;
    for (unsigned i = 1; i <= f->nodes[f->switches[sw]].port_count; i++) {
        uint32_t port = ibshift_node_port(f, f->switches[sw], i);
        uint32_t other = ibshift_port_neighbour(f, port);
        struct svg_point at = p->at[sw];

        if (other == IBSHIFT_NO_NODE || f->nodes[other].kind != IBSHIFT_NODE_HCA || row > 7) {
            continue;
        }
        at.x += (column - (columns - 1) / 2.0) * dot * (below ? 2.5 : 2.6);
        at.y += p->box * 0.6 + dot * 2.2 + row * dot * 2.6;
        svg_circle(out, at, dot, bands[band_of(p, port)].color);
        column++;
        if (column == columns) {
            column = 0;
            row++;
        }
    }
}

static void draw_switches(FILE *out, const struct picture *p)
{
    const struct ibshift_fabric *f = p->f;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        struct svg_point at = p->at[s];
        const char *name = ibshift_node_name(f, f->switches[s]);

        draw_hosts(out, p, s);
        svg_rect(out, at.x - p->box, at.y - p->box * 0.6, 2 * p->box, 1.2 * p->box, SVG_BLACK);
        if (p->box > 14 && svg_text_width(name, 7) < 2 * p->box) {
            at.y += 2.5;
            svg_label_on(out, at, 7, SVG_BLACK, "%s", name);
        }
    }
}

static void draw_legend(FILE *out, const struct picture *p)
{
    struct svg_point at = {48, p->height + 18};

    svg_text(out, at, 12, SVG_START,
             p->load != NULL
                 ? "time of an all-to-all on a cable, over that on the hosts' own cables:"
                 : "no forwarding tables: cables are not coloured by load");
    at.y += 24;
    for (unsigned i = 0; p->load != NULL && i < BAND_COUNT; i++) {
        struct svg_point to = {at.x + 30, at.y - 4};

        svg_line(out, (struct svg_point){at.x, at.y - 4}, to, bands[i].color, 4, SVG_SOLID);
        to.x += 6;
        to.y = at.y;
        svg_text(out, to, 12, SVG_START, "%s", bands[i].text);
        at.x += 112;
    }
}

static void draw_levels(FILE *out, const struct picture *p)
{
    const struct ibshift_shape *t = p->shape;

    for (unsigned l = 1; t->digits != NULL && t->kind != IBSHIFT_SHAPE_TORUS && l <= t->levels;
         l++) {
        struct svg_point at = {10, p->height - 70 - (l - 1) * p->level_step - p->box * 0.6 - 8};

        svg_text(out, at, 11, SVG_START, "level %u: %u", l, t->level[l].switches);
    }
}

/* The whole picture with title and legend. */
static void write_picture(FILE *out, const struct picture *p, const char *title,
                          const char *subtitle)
{
    svg_begin(out, p->width, p->height + LEGEND_HEIGHT, title);
    svg_bold(out, (struct svg_point){48, 36}, 20, SVG_START, "%s", title);
    svg_text(out, (struct svg_point){48, 60}, 13, SVG_START, "%s", subtitle);
    draw_cables(out, p);
    draw_switches(out, p);
    draw_levels(out, p);
    draw_legend(out, p);
    svg_end(out);
}

static void describe(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                     const struct ibshift_load *load, char *text, size_t size)
{
    int length =
        snprintf(text, size, "%u host%s, %u switch%s", f->host_count, f->host_count == 1 ? "" : "s",
                 f->switch_count, f->switch_count == 1 ? "" : "es");

    if (load->on != NULL && f->host_count > 1) {
        length += load->least > 1
                      ? snprintf(text + length, size - (size_t)length,
                                 "; the routing limits an all-to-all to 1/%.3g of the hosts' rate",
                                 load->least)
                      : snprintf(text + length, size - (size_t)length,
                                 "; an all-to-all can use the hosts' full rate");
    }
    if (shape->findings.count != 0 && shape->kind != IBSHIFT_SHAPE_OTHER) {
        snprintf(text + length, size - (size_t)length, "; broken in %u place%s",
                 shape->findings.count, shape->findings.count == 1 ? "" : "s");
    }
}

static int draw(const struct cli_args *args, struct ibshift_fabric *f)
{
    const char *path = *(const char **)args->context;
    struct output out = {.file = stdout};
    struct ibshift_shape shape;
    struct ibshift_error err;
    struct pool pool = {NULL};
    struct picture picture = {.f = f, .shape = &shape};
    struct ibshift_load load = {.on = NULL};
    char title[160], subtitle[256];

    fabric_must(args, ibshift_shape_find(f, &shape, &err), &err);
    fabric_must(args, f->lft != NULL ? ibshift_load_find(f, &load, &err) : 0, &err);
    picture.load = load.on;
    picture.at = pool_new(&pool, f->switch_count, sizeof(*picture.at));
    ibshift_shape_name(&shape, title, sizeof(title));
    describe(f, &shape, &load, subtitle, sizeof(subtitle));
    place(&picture);
    cli_must(path != NULL ? cli_output_open(args->command, path, &out) : CLI_OK);
    write_picture(out.file, &picture, title, subtitle);
    ibshift_shape_free(&shape);
    ibshift_load_free(&load);
    pool_free(&pool);
    return path != NULL ? cli_output_close(args->command, path, &out, CLI_OK) : CLI_OK;
}

int cmd_fabric_draw(int argc, char **argv)
{
    const char *output = NULL;
    const struct cli_option options[] = {
        {"--output", 'o', CLI_OUTPUT, "FILE", "where to write the SVG (default: standard output)",
         .where = &output, .words = cli_svg_only},
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric draw", options, &output);

    return fabric_command(&args, argc, argv, draw);
}

#include "fabric/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static unsigned band_of(const struct fabric_picture *p, uint32_t link)
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
static bool is_wrap(const struct fabric_picture *p, uint32_t a, uint32_t b)
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

static void draw_stub(FILE *out, const struct fabric_picture *p, uint32_t from, uint32_t to,
                      const struct band *band)
{
    struct svg_point a = p->at[from], b = p->at[to];
    double length = hypot(b.x - a.x, b.y - a.y), reach = p->box + 20;

    b.x = a.x - (b.x - a.x) / length * reach;
    b.y = a.y - (b.y - a.y) / length * reach;
    svg_line(out, a, b, band->color, p->line * band->wider, SVG_SOLID);
}

static void draw_cable(FILE *out, const struct fabric_picture *p, uint32_t link,
                       const struct band *band)
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
static void draw_cables(FILE *out, const struct fabric_picture *p)
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
static void draw_hosts(FILE *out, const struct fabric_picture *p, uint32_t sw)
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

static void draw_switches(FILE *out, const struct fabric_picture *p)
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

static void draw_legend(FILE *out, const struct fabric_picture *p)
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

static void draw_levels(FILE *out, const struct fabric_picture *p)
{
    const struct ibshift_shape *t = p->shape;

    for (unsigned l = 1; t->digits != NULL && t->kind != IBSHIFT_SHAPE_TORUS && l <= t->levels;
         l++) {
        struct svg_point at = {10, p->height - 70 - (l - 1) * p->level_step - p->box * 0.6 - 8};

        svg_text(out, at, 11, SVG_START, "level %u: %u", l, t->level[l].switches);
    }
}

void fabric_draw_write(FILE *out, const struct fabric_picture *p, const char *title,
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

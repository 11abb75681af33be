#include "fabric/draw.h"

#include <math.h>
#include <stdlib.h>

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

static void place_level(struct fabric_picture *p, unsigned level, struct seat *seats)
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

static void place_tree(struct fabric_picture *p)
{
    struct seat *seats = calloc((size_t)p->f->switch_count + 1, sizeof(*seats));
    uint32_t widest = widest_level(p->shape);

    p->width = within(860, 48.0 * widest, 2400);
    p->level_step = within(150, p->width * 0.12, 290);
    p->height = TOP + 30 + (p->shape->levels - 1) * p->level_step + 70;
    p->box = within(1.2, (p->width - 2 * MARGIN) / widest * 0.34, 22);
    p->line = within(0.3, 60.0 / widest, 2.2);
    for (unsigned l = 1; seats != NULL && l <= p->shape->levels; l++) {
        place_level(p, l, seats);
    }
    free(seats);
}

/* Two axes on the sheet, further ones obliquely behind. */
static void place_torus(struct fabric_picture *p)
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

static void place_circle(struct fabric_picture *p)
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

void fabric_draw_place(struct fabric_picture *p)
{
    if (p->shape->kind == IBSHIFT_SHAPE_TORUS) {
        place_torus(p);
    } else if (p->shape->levels > 0 && p->shape->digits != NULL) {
        place_tree(p);
    } else {
        place_circle(p);
    }
}

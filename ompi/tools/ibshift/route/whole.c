/* Rows of a whole tree: a look-up an entry, level by level, so that a row takes microseconds. */
#include "route/closed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What all switches of a level look up, by LID. A LID that is no host's has the up port `none`. */
struct column {
    uint32_t *part;      /* component below the level, UINT32_MAX: of no host */
    uint16_t *up, *down; /* into the switch's tables; down of level 1: the port itself */
};

struct whole {
    const struct route_closed *c;
    struct column column[IBSHIFT_LEVELS_MAX + 1];
};

static int fill_column(const struct route_closed *c, unsigned l, struct column *column)
{
    const struct route_tree *t = c->t;
    uint32_t lids = c->r->fabric->lft_stride;

    column->part = malloc((size_t)lids * sizeof(*column->part));
    column->up = malloc((size_t)lids * sizeof(*column->up));
    column->down = malloc((size_t)lids * sizeof(*column->down));
    if (column->part == NULL || column->up == NULL || column->down == NULL) {
        return -ENOMEM;
    }
    for (uint32_t lid = 0; lid < lids; lid++) {
        const struct route_aim *aim = &c->aims[lid];
        bool is_host = lid != 0 && aim->leaf != IBSHIFT_NO_SWITCH;

        column->part[lid] = is_host ? t->shape.down[l][aim->leaf] : UINT32_MAX;
        column->up[lid] = (uint16_t)(is_host && l < t->h ? aim->up[l] : t->up_stride);
        column->down[lid] = is_host ? aim->down[l] : 0;
    }
    return 0;
}

static void fill_row(const struct whole *w, uint32_t s, uint8_t *up, uint8_t *down)
{
    const struct route_tree *t = w->c->t;
    struct ibshift_fabric *f = w->c->r->fabric;
    unsigned l = t->level[s];
    const struct column *column = &w->column[l];
    uint32_t part = t->shape.down[l][s], lids = f->lft_stride;
    uint8_t *row = f->lft + (size_t)s * lids;

    memcpy(up, t->up + (size_t)s * t->up_stride, t->up_stride);
    up[t->up_stride] = 0;
    if (l > 1) {
        memcpy(down, t->down + (size_t)s * t->down_stride, t->down_stride);
    } else {
        for (unsigned i = 0; i <= IBSHIFT_PORT_MAX; i++) {
            down[i] = (uint8_t)i;
        }
    }
    for (uint32_t lid = 0; lid < lids; lid++) {
        row[lid] = column->part[lid] == part ? down[column->down[lid]] : up[column->up[lid]];
    }
}

static int fill_rows(void *context, uint32_t first, uint32_t end)
{
    const struct whole *w = context;
    const struct route_tree *t = w->c->t;
    size_t ups = t->up_stride + 1, downs = t->down_stride + IBSHIFT_PORT_MAX + 1;
    uint8_t *up = malloc(ups + downs);

    for (uint32_t s = first; up != NULL && s < end; s++) {
        if (t->level[s] != 0) {
            fill_row(w, s, up, up + ups);
        }
    }
    free(up);
    return up != NULL ? 0 : -ENOMEM;
}

int route_whole(const struct route_closed *c, struct ibshift_error *err)
{
    struct whole w = {.c = c};
    int rc = 0;

    for (unsigned l = 1; rc == 0 && l <= c->t->h; l++) {
        rc = fill_column(c, l, &w.column[l]);
    }
    if (rc == 0) {
        rc = route_parallel(c->r->threads, c->r->fabric->switch_count, fill_rows, &w);
    }
    for (unsigned l = 1; l <= c->t->h; l++) {
        free(w.column[l].part);
        free(w.column[l].up);
        free(w.column[l].down);
    }
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory for %u LIDs", c->r->fabric->lft_stride);
}

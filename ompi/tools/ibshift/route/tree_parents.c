#include "route/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A component of "levels from l", one of those that a component of "levels from l - 1" has. */
struct plane {
    uint32_t outer, inner, digit;
    bool is_small; /* not half of its largest sister */
};

static int by_size(const void *a, const void *b)
{
    const struct plane *x = a, *y = b;

    if (x->outer != y->outer) {
        return x->outer < y->outer ? -1 : 1;
    }
    if (x->is_small != y->is_small) {
        return x->is_small ? 1 : -1;
    }
    return x->digit < y->digit ? -1 : x->digit > y->digit;
}

/* sizes: [inner], largest: [outer], both of them by switch. */
static void measure(const struct route_tree *t, unsigned l, uint32_t *sizes, uint32_t *largest)
{
    const uint32_t *inner = t->shape.up[l], *outer = t->shape.up[l - 1];
    uint32_t switches = t->f->switch_count;

    memset(sizes, 0, switches * sizeof(*sizes));
    memset(largest, 0, switches * sizeof(*largest));
    for (uint32_t s = 0; s < switches; s++) {
        sizes[inner[s]] += t->level[s] >= l;
    }
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l && sizes[inner[s]] > largest[outer[s]]) {
            largest[outer[s]] = sizes[inner[s]];
        }
    }
}

static void number_level(struct route_tree *t, unsigned l, struct plane *planes, uint32_t *sizes,
                         uint32_t *largest)
{
    const uint32_t *inner = t->shape.up[l], *outer = t->shape.up[l - 1];
    uint32_t *number = largest, switches = t->f->switch_count, count = 0, next = 0;

    measure(t, l, sizes, largest);
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l && sizes[inner[s]] != 0) {
            planes[count++] = (struct plane){outer[s], inner[s], route_tree_digit(t, s, l),
                                             2 * sizes[inner[s]] < largest[outer[s]]};
            sizes[inner[s]] = 0;
        }
    }
    qsort(planes, count, sizeof(*planes), by_size);
    for (uint32_t i = 0; i < count; i++) {
        next = i > 0 && planes[i].outer == planes[i - 1].outer ? next + 1 : 0;
        number[planes[i].inner] = next;
    }
    for (uint32_t s = 0; s < switches; s++) {
        if (t->level[s] >= l) {
            t->shape.digits[(size_t)s * (IBSHIFT_LEVELS_MAX + 1) + l] = (uint16_t)number[inner[s]];
        }
    }
}

int route_tree_number_parents(struct route_tree *t, struct ibshift_error *err)
{
    size_t switches = (size_t)t->f->switch_count + 1;
    struct plane *planes = malloc(switches * sizeof(*planes));
    uint32_t *sizes = malloc(2 * switches * sizeof(*sizes));
    int rc = planes == NULL || sizes == NULL
                 ? ibshift_fail(err, -ENOMEM, "no memory for %u switches", t->f->switch_count)
                 : 0;

    for (unsigned l = 2; rc == 0 && l <= t->h; l++) {
        number_level(t, l, planes, sizes, sizes + switches);
    }
    free(planes);
    free(sizes);
    return rc;
}

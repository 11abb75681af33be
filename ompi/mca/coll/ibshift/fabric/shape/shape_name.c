#include "fabric/shape/shape.h"

#include <stdarg.h>
#include <stdio.h>

static void append(char *text, size_t size, size_t *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void append(char *text, size_t size, size_t *at, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text + *at, size - *at, format, args);
    va_end(args);
    *at += length > 0 ? (size_t)length : 0;
    *at = *at < size ? *at : size - 1;
}

static bool is_kary(const struct ibshift_shape *t)
{
    for (unsigned l = 1; l <= t->levels; l++) {
        if (t->m[l] != t->m[1] || t->p[l] != 1 || t->w[l] != (l == 1 ? 1 : t->m[1])) {
            return false;
        }
    }
    return t->levels > 1;
}

static void name_tree(const struct ibshift_shape *t, char *text, size_t size)
{
    const unsigned *lists[] = {t->m, t->w, t->p};
    size_t at = 0;

    if (t->levels == 1) {
        append(text, size, &at, t->leaves == 1 ? "one switch" : "%u switches apart", t->leaves);
        return;
    }
    if (is_kary(t)) {
        append(text, size, &at, "%u-ary-%u-tree", t->m[1], t->levels);
        return;
    }
    append(text, size, &at, "%s(%u", t->kind == IBSHIFT_SHAPE_QFT ? "QFT" : "PGFT", t->levels);
    for (int i = 0; i < 3; i++) {
        for (unsigned l = 1; l <= t->levels; l++) {
            append(text, size, &at, "%s%u", l == 1 ? "; " : ",", lists[i][l]);
        }
    }
    append(text, size, &at, ")");
}

void ibshift_shape_name(const struct ibshift_shape *t, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    if (t->kind == IBSHIFT_SHAPE_TORUS) {
        for (unsigned k = 0; k < t->dims; k++) {
            append(text, size, &at, "%s%u", k == 0 ? "" : "x", t->dim[k]);
        }
        append(text, size, &at, " torus, %u host%s a switch", t->hosts_per_leaf,
               t->hosts_per_leaf == 1 ? "" : "s");
    } else if (t->kind == IBSHIFT_SHAPE_OTHER) {
        append(text, size, &at, "irregular");
    } else {
        name_tree(t, text, size);
    }
}

void ibshift_shape_tuple(const struct ibshift_shape *t, const struct ibshift_fabric *f,
                         uint32_t node, char *text, size_t size)
{
    const uint16_t *digits =
        t->digits + (size_t)f->nodes[node].switch_index * (IBSHIFT_LEVELS_MAX + 1);
    size_t at = 0;

    text[0] = '\0';
    if (t->kind == IBSHIFT_SHAPE_TORUS) {
        for (unsigned k = 0; k < t->dims; k++) {
            append(text, size, &at, "%s%u", k == 0 ? "" : ".", digits[k]);
        }
        return;
    }
    append(text, size, &at, "%u", t->node_level[node]);
    for (unsigned i = t->levels; i >= 2; i--) {
        append(text, size, &at, ".%u", digits[i]);
    }
}

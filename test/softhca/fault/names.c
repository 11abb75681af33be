#include "fault/names.h"

#include <stdint.h>
#include <string.h>

enum { LONGEST = 32 };

static const char *name_at(const struct names *names, size_t i)
{
    return *(const char *const *)(const void *)((const char *)names->rows + i * names->stride);
}

/* Edits between two short words. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1], n = strnlen(b, LONGEST);

    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0]++;

        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);

            corner = row[j];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j] = best < row[j - 1] + 1 ? best : row[j - 1] + 1;
        }
    }
    return row[n];
}

bool names_find(const struct names *names, const char *name, size_t *row, const char **nearest)
{
    size_t least = SIZE_MAX;

    for (size_t i = 0; i < names->count && least; i++) {
        size_t d = distance(name, name_at(names, i));

        if (d < least) {
            least = d;
            *row = i;
            *nearest = name_at(names, i);
        }
    }
    return least == 0;
}

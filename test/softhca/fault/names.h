/* Tables of rows with names that people write. */
#ifndef SOFTHCA_NAMES_H
#define SOFTHCA_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/* Names are the first member of each table's rows. */
struct names {
    const void *rows;
    size_t count, stride;
};
#define NAMES(a) ((struct names){(a), COUNT_OF(a), sizeof((a)[0])})

/* The row of that name, or false with that of the nearest name; a table is not empty. */
bool names_find(const struct names *names, const char *name, size_t *row, const char **nearest);

#endif

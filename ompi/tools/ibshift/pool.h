/*
 * Memory of one piece of work: taken array by array, given back all at once. A program that gets none
 * ends with a message: there is nothing that it could do without.
 */
#ifndef IBSHIFT_POOL_H
#define IBSHIFT_POOL_H

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct pool_array {
    struct pool_array *before;
    alignas(max_align_t) unsigned char data[];
};

struct pool {
    struct pool_array *last;
};

/* Zeroed, of count elements. */
static inline void *pool_new(struct pool *pool, size_t count, size_t size)
{
    size_t bytes;
    struct pool_array *array = NULL;

    if (!__builtin_mul_overflow(count, size, &bytes) &&
        !__builtin_add_overflow(bytes, sizeof(*array), &bytes)) {
        array = calloc(1, bytes);
    }
    if (array == NULL) {
        fprintf(stderr, "ibshift: no memory for %zu elements of %zu bytes\n", count, size);
        exit(2);
    }
    array->before = pool->last;
    pool->last = array;
    return array->data;
}

static inline void pool_free(struct pool *pool)
{
    while (pool->last != NULL) {
        struct pool_array *array = pool->last;

        pool->last = array->before;
        free(array);
    }
}

#endif

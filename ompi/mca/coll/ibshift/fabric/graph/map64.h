/* What grows: an array, and a hash from 64-bit keys (GUIDs) to indices. */
#ifndef IBSHIFT_FABRIC_GRAPH_MAP64_H
#define IBSHIFT_FABRIC_GRAPH_MAP64_H

#include <stddef.h>
#include <stdint.h>

/* Room for `more` elements of `size` bytes behind the `count` that an array has (&array; NULL: none yet):
 * where they begin, or NULL: no memory, the array stays as it is. It doubles, and is to grow by this alone. */
void *ibshift_room(void *array, uint32_t count, uint32_t more, size_t size);

/* Key 0 is not a key. */
#define IBSHIFT_MAP_MISS UINT32_MAX

struct ibshift_map64 {
    uint64_t *keys;
    uint32_t *values;
    uint32_t size; /* power of two, or 0 */
    uint32_t used;
};

uint32_t ibshift_map64_get(const struct ibshift_map64 *map, uint64_t key);
/* 0, -EEXIST (the key is there: value untouched), -EINVAL (key 0), -ENOMEM. */
int ibshift_map64_add(struct ibshift_map64 *map, uint64_t key, uint32_t value);
void ibshift_map64_free(struct ibshift_map64 *map);

#endif

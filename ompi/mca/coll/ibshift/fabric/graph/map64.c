#include "fabric/graph/map64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t capacity(uint64_t count)
{
    return count <= 64 ? 64 : UINT64_C(2) << (63 - __builtin_clzll(count - 1));
}

void *ibshift_room(void *array, uint32_t count, uint32_t more, size_t size)
{
    uint64_t needed = (uint64_t)count + more;
    void **at = array, *moved = *at;

    if (moved == NULL || needed > capacity(count)) {
        moved = needed <= UINT32_MAX ? realloc(*at, capacity(needed) * size) : NULL;
    }
    if (moved == NULL) {
        return NULL;
    }
    *at = moved;
    return (char *)moved + count * size;
}

static uint32_t slot_of(const struct ibshift_map64 *map, uint64_t key)
{
    uint64_t hash = (key ^ (key >> 29)) * 0x9e3779b97f4a7c15ull;
    uint32_t slot = (uint32_t)(hash >> 32) & (map->size - 1);

    while (map->keys[slot] != 0 && map->keys[slot] != key) {
        slot = (slot + 1) & (map->size - 1);
    }
    return slot;
}

uint32_t ibshift_map64_get(const struct ibshift_map64 *map, uint64_t key)
{
    uint32_t slot;

    if (map->size == 0 || key == 0) {
        return IBSHIFT_MAP_MISS;
    }
    slot = slot_of(map, key);
    return map->keys[slot] == key ? map->values[slot] : IBSHIFT_MAP_MISS;
}

static int grow(struct ibshift_map64 *map)
{
    struct ibshift_map64 bigger = {.size = map->size == 0 ? 64 : 2 * map->size, .used = map->used};

    bigger.keys = calloc(bigger.size, sizeof(*bigger.keys));
    bigger.values = malloc(bigger.size * sizeof(*bigger.values));
    if (bigger.keys == NULL || bigger.values == NULL) {
        ibshift_map64_free(&bigger);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < map->size; i++) {
        if (map->keys[i] != 0) {
            uint32_t slot = slot_of(&bigger, map->keys[i]);

            bigger.keys[slot] = map->keys[i];
            bigger.values[slot] = map->values[i];
        }
    }
    ibshift_map64_free(map);
    *map = bigger;
    return 0;
}

int ibshift_map64_add(struct ibshift_map64 *map, uint64_t key, uint32_t value)
{
    uint32_t slot;

    if (key == 0) {
        return -EINVAL;
    }
    if (2 * map->used >= map->size && grow(map) != 0) {
        return -ENOMEM;
    }
    slot = slot_of(map, key);
    if (map->keys[slot] == key) {
        return -EEXIST;
    }
    map->keys[slot] = key;
    map->values[slot] = value;
    map->used++;
    return 0;
}

void ibshift_map64_free(struct ibshift_map64 *map)
{
    free(map->keys);
    free(map->values);
    memset(map, 0, sizeof(*map));
}

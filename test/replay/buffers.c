/* Memory of the calls: allocated, or in a place that is unmapped and mapped again. */
#include "call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "scheduler.h"

enum { ARENAS = 2, ARENA = 1 << 18 };

static char *arena[ARENAS];
static bool is_arena_used[ARENAS];

void call_take_memory(struct side *side, uint64_t where)
{
    size_t bytes = side->bytes + 2 * GUARD;
    int i = (int)(where % (2 * ARENAS));

    if (i < ARENAS && bytes <= ARENA && !is_arena_used[i]) {
        if (arena[i] == NULL) {
            arena[i] =
                mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
        is_arena_used[i] = true;
        side->user = arena[i] + GUARD;
    } else {
        side->user = (char *)malloc(bytes) + GUARD;
    }
    memset(side->user - GUARD, PATTERN, bytes);
}

void call_give_memory(struct side *side)
{
    for (int i = 0; i < ARENAS; i++) {
        if (arena[i] != NULL && side->user == arena[i] + GUARD) {
            is_arena_used[i] = false;
            return;
        }
    }
    ompi_memory_goes(side->user - GUARD, side->bytes + 2 * GUARD);
    free(side->user - GUARD);
}

void call_unmap(void)
{
    for (int i = 0; i < ARENAS; i++) {
        if (arena[i] != NULL && !is_arena_used[i]) {
            ompi_memory_goes(arena[i], ARENA);
            munmap(arena[i], ARENA);
            arena[i] =
                mmap(arena[i], ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
}

void call_end(void)
{
    for (int i = 0; i < ARENAS; i++) {
        if (arena[i] != NULL) {
            ompi_memory_goes(arena[i], ARENA);
            munmap(arena[i], ARENA);
        }
    }
}

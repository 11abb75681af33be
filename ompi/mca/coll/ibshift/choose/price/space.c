#include "choose/price/space.h"

#include <stdlib.h>

struct ibshift_price_space *ibshift_price_space_new(void)
{
    return calloc(1, sizeof(struct ibshift_price_space));
}

void ibshift_price_space_free(struct ibshift_price_space *space)
{
    if (space != NULL) {
        free(space->heap.events);
        free(space->messages.all);
        free(space->ranks);
        ibshift_emitted_free(&space->emitted);
        free(space);
    }
}

void *ibshift_price_space_ranks(struct ibshift_price_space *space, size_t size)
{
    if (size > space->ranks_size) {
        void *memory = realloc(space->ranks, size);

        if (memory == NULL) {
            return NULL;
        }
        space->ranks = memory;
        space->ranks_size = size;
    }
    return space->ranks;
}

#include "choose/price/space.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "choose/price.h"

/* The pages' steps, most of it, belong to no walk yet. */
struct ibshift_price_space *ibshift_price_space_new(void)
{
    struct ibshift_price_space *space = malloc(sizeof(*space));

    if (space == NULL) {
        return NULL;
    }
    memset(space, 0, offsetof(struct ibshift_price_space, pages));
    space->pages.walks = 0;
    for (int i = 0; i < IBSHIFT_PAGES; i++) {
        space->pages.page[i].walk = 0;
        space->pages.page[i].round = 0;
    }
    return space;
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

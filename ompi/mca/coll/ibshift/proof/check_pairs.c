/* What a row of an all-to-all says of whose blocks are in TMP (alg.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proof/check_impl.h"
#include "proof/check.h"

static void store_pair(void *who, uint32_t from, uint32_t to)
{
    struct check_pair **next = who;

    *(*next)++ = (struct check_pair){from, to};
}

int check_pairs_layout(struct check_state *state)
{
    const struct check_layout *last = &state->layout[state->plan->ranks - 1];

    if (state->alg->tmp_pairs == NULL) {
        return 0;
    }
    state->pairs = calloc(last->base + last->cells + 1, sizeof(*state->pairs));
    for (uint32_t rank = 0; rank < state->plan->ranks && state->pairs != NULL; rank++) {
        const struct check_layout *layout = &state->layout[rank];
        struct check_pair *first = state->pairs + layout->base + layout->offset[IBSHIFT_TMP];
        struct check_pair *next = first;

        state->alg->tmp_pairs(state->plan, rank, store_pair, &next);
        if (next - first != layout->blocks[IBSHIFT_TMP]) {
            snprintf(state->result->why, sizeof(state->result->why),
                     "rank %u: says of %td blocks of TMP whose they are, but has %u", rank,
                     next - first, layout->blocks[IBSHIFT_TMP]);
            return -EBADMSG;
        }
    }
    return state->pairs == NULL ? -ENOMEM : 0;
}

#include "proof/check_impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Barriers move no data: what counts is who has heard of whom. A send is sure to tell only what
 * came in before its need, so each rank keeps what it heard by round.
 */
struct check_known {
    uint32_t ranks;
    uint32_t rounds;
    size_t words;
    uint64_t *heard; /* [rank][round + 1][words]; round 0 of each rank: itself */
};

static uint64_t *heard(const struct check_known *known, uint32_t rank, uint32_t row)
{
    return known->heard + ((size_t)rank * (known->rounds + 1) + row) * known->words;
}

struct check_known *check_known_new(const struct check_state *state)
{
    struct check_known *known = calloc(1, sizeof(*known));

    if (known == NULL) {
        return NULL;
    }
    known->ranks = state->plan->ranks;
    known->words = (known->ranks + 63) / 64;
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        uint32_t rounds = state->alg->rounds(state->plan, rank);

        known->rounds = rounds > known->rounds ? rounds : known->rounds;
    }
    known->heard =
        calloc((size_t)known->ranks * (known->rounds + 1) * known->words, sizeof(*known->heard));
    if (known->heard == NULL) {
        free(known);
        return NULL;
    }
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        heard(known, rank, 0)[rank / 64] |= UINT64_C(1) << rank % 64;
    }
    return known;
}

void check_known_free(struct check_known *known)
{
    if (known != NULL) {
        free(known->heard);
        free(known);
    }
}

void check_known_message(struct check_known *known, uint32_t sender, uint32_t need,
                         uint32_t receiver, uint32_t round)
{
    uint64_t *target = heard(known, receiver, round + 1);

    for (uint32_t row = 0; row <= need; row++) {
        const uint64_t *source = heard(known, sender, row);

        for (size_t word = 0; word < known->words; word++) {
            target[word] |= source[word];
        }
    }
}

int check_known_expect(struct check_state *state, const struct check_known *known)
{
    for (uint32_t rank = 0; rank < known->ranks; rank++) {
        for (uint32_t other = 0; other < known->ranks; other++) {
            uint64_t bit = 0;

            for (uint32_t row = 0; row <= known->rounds; row++) {
                bit |= heard(known, rank, row)[other / 64] >> other % 64 & 1;
            }
            if (bit == 0) {
                snprintf(state->result->why, sizeof(state->result->why),
                         "rank %u: may leave before rank %u has come", rank, other);
                return -EBADMSG;
            }
        }
    }
    return 0;
}

#include "plan/emitted.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 256 };

/* *memory has room for `count` of that size afterwards. */
static bool make_room(void **memory, size_t *room, size_t count, size_t size)
{
    size_t more = *room > 0 ? *room : ROOM_LEAST;
    void *now;

    if (count <= *room) {
        return true;
    }
    while (more < count) {
        more *= 2;
    }
    now = realloc(*memory, more * size);
    if (now == NULL) {
        return false;
    }
    *memory = now;
    *room = more;
    return true;
}

/* emit() has a plan that cannot change; what it keeps is no part of what the plan says. */
static struct ibshift_emitted *emitted_of(const struct ibshift_plan *plan)
{
    return (struct ibshift_emitted *)(uintptr_t)plan;
}

static uint32_t count_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    const struct ibshift_emitted *emitted = emitted_of(plan);

    return emitted->first[rank + 1] - emitted->first[rank];
}

static uint32_t emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                     struct ibshift_step *out)
{
    struct ibshift_emitted *emitted = emitted_of(plan);
    struct ibshift_emitted_round *kept = &emitted->rounds[emitted->first[rank] + round];
    void *steps = emitted->steps;
    uint32_t count;

    if (kept->count != UINT32_MAX) {
        for (uint32_t i = 0; i < kept->count; i++) {
            out[i] = emitted->steps[kept->at + i];
        }
        return kept->count;
    }
    count = emitted->of->emit(emitted->of_plan, rank, round, out);
    if (make_room(&steps, &emitted->steps_room, emitted->steps_count + count, sizeof(*out))) {
        emitted->steps = steps;
        for (uint32_t i = 0; i < count; i++) { /* a first round may have none, and no room */
            emitted->steps[emitted->steps_count + i] = out[i];
        }
        *kept = (struct ibshift_emitted_round){(uint32_t)emitted->steps_count, count};
        emitted->steps_count += count;
    }
    return count;
}

bool ibshift_emitted_begin(struct ibshift_emitted *emitted, const struct ibshift_alg *alg,
                           const struct ibshift_plan *plan, uint32_t most)
{
    void *first = emitted->first, *rounds = emitted->rounds;
    uint32_t sum = 0;

    if (!make_room(&first, &emitted->first_room, (size_t)plan->ranks + 1,
                   sizeof(*emitted->first))) {
        return false;
    }
    emitted->first = first;
    emitted->first[0] = 0;
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        uint32_t count = alg->rounds(plan, rank);

        if (count > most - sum) {
            return false;
        }
        sum += count;
        emitted->first[rank + 1] = sum;
    }
    if (!make_room(&rounds, &emitted->rounds_room, sum, sizeof(*emitted->rounds))) {
        return false;
    }
    emitted->rounds = rounds;
    memset(emitted->rounds, 0xff, sum * sizeof(*emitted->rounds));
    emitted->plan = *plan;
    emitted->alg = *alg;
    emitted->alg.rounds = count_rounds;
    emitted->alg.emit = emit;
    emitted->of = alg;
    emitted->of_plan = plan;
    emitted->steps_count = 0;
    return true;
}

void ibshift_emitted_free(struct ibshift_emitted *emitted)
{
    free(emitted->first);
    free(emitted->rounds);
    free(emitted->steps);
}

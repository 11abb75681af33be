/*
 * The walk: a pair that fits nowhere takes a stage where a few others are in its way; they go where
 * they fit, or wait their turn. A random walk in the end, from a seed.
 */
#include "fabric/graph/random.h"
#include "fabric/table/packing.h"

/*
 * Measured as in schedule.c. LOOK: with 4, tables cost up to 5 % more, with 64 at most 0.4 % less in
 * two to three times the time. OWNERS_MAX: with 2 up to 11 % more, with 4 up to 0.7 % less in up to
 * three times the time. RELIEF: without it, the damaged tree costs 1 % more; how often hardly
 * matters.
 */
#define LOOK       16 /* stages that are looked at for one step */
#define RELIEF     8  /* one step in so many goes where the fullest resource is free */
#define OWNERS_MAX 3  /* pairs that make way for one */

struct owners {
    struct ibshift_pair pair[OWNERS_MAX];
    uint32_t count;
};

static bool is_owner(const struct owners *owners, uint16_t who)
{
    for (uint32_t k = 0; k < owners->count; k++) {
        if (owners->pair[k].from == who) {
            return true;
        }
    }
    return false;
}

/* Adds one of those that hold the resource in this stage, unless one of them makes way already;
 * false: too many, or it has no slot in such a stage. */
static bool add_owner(const struct ibshift_packing *packing, uint32_t resource, uint32_t stage,
                      uint64_t *seed, struct owners *owners)
{
    uint32_t first = ibshift_packing_slot(packing, resource, stage);
    uint32_t slots = packing->slot[resource + 1] - first;
    const uint16_t *who = packing->owner + (size_t)stage * packing->slots + first;
    uint16_t chosen;

    for (uint32_t i = 0; i < slots; i++) {
        if (is_owner(owners, who[i])) {
            return true;
        }
    }
    if (slots == 0 || owners->count == OWNERS_MAX) {
        return false;
    }
    chosen = who[slots == 1 ? 0 : ibshift_random_below(seed, slots)];
    owners->pair[owners->count++] =
        (struct ibshift_pair){chosen, ibshift_packing_to(packing, chosen, stage), stage};
    return true;
}

static bool find_owners(const struct ibshift_packing *packing,
                        const struct ibshift_packing_want *want, uint32_t stage, uint64_t *seed,
                        struct owners *owners)
{
    bool found = true;

    owners->count = 0;
    for (uint32_t i = 0; found && i < want->count; i++) {
        if (want->last[i][stage / 64] >> stage % 64 & 1) {
            found = add_owner(packing, want->resources[i], stage, seed, owners);
        }
    }
    return found;
}

/* Stages of word w in which so many resources are taken, one to OWNERS_MAX. */
static uint64_t so_many_taken(const struct ibshift_packing_want *want, uint32_t w, uint32_t many)
{
    uint64_t at_least[OWNERS_MAX + 1] = {0};

    for (uint32_t i = 0; i < want->count; i++) {
        for (uint32_t k = OWNERS_MAX; k > 0; k--) {
            at_least[k] |= at_least[k - 1] & want->last[i][w];
        }
        at_least[0] |= want->last[i][w];
    }
    return at_least[many - 1] & ~at_least[many];
}

/* The bitmap with the fewest free stages. */
static const uint64_t *fullest(const struct ibshift_packing *packing,
                               const struct ibshift_packing_want *want)
{
    const uint64_t *found = want->last[0];
    uint32_t most = 0;

    for (uint32_t i = 0; i < want->count; i++) {
        uint32_t taken = 0;

        for (uint32_t w = 0; w < packing->words; w++) {
            taken += (uint32_t)__builtin_popcountll(want->last[i][w]);
        }
        if (taken > most) {
            most = taken;
            found = want->last[i];
        }
    }
    return found;
}

/* Owners that fit into no stage as it is. */
static uint32_t homeless_of(const struct ibshift_packing *packing, const struct owners *owners)
{
    uint32_t count = 0, lid_offset;

    for (uint32_t i = 0; i < owners->count; i++) {
        count += ibshift_packing_first(packing, owners->pair[i], &lid_offset) == UINT32_MAX;
    }
    return count;
}

/*
 * The stage to take: the one whose owners fit elsewhere but for the fewest, by chance among equals.
 * Looks at stages in which the fewest resources are taken first, from a random word on. Pairs on
 * the fullest resource fit nowhere themselves: now and then it wants a stage where that one is
 * free. UINT32_MAX: there is none.
 */
static uint32_t choose_stage(const struct ibshift_packing *packing,
                             const struct ibshift_packing_want *want, uint32_t not_in,
                             uint64_t *seed, struct owners *chosen)
{
    uint32_t start = ibshift_random_below(seed, packing->words), best = UINT32_MAX, looked = 0;
    uint32_t least = OWNERS_MAX + 1, homeless;
    const uint64_t *full = ibshift_random_below(seed, RELIEF) == 0 ? fullest(packing, want) : NULL;

    for (uint32_t k = 0; k < OWNERS_MAX * packing->words && looked < LOOK; k++) {
        uint32_t w = (start + k) % packing->words;

        uint64_t few =
            so_many_taken(want, w, 1 + k / packing->words) & (full ? ~full[w] : ~UINT64_C(0));

        for (uint64_t c = few; c != 0 && looked < LOOK; c &= c - 1) {
            uint32_t stage = w * 64 + (uint32_t)__builtin_ctzll(c);
            struct owners owners;

            if (stage >= packing->stages || stage == not_in ||
                !find_owners(packing, want, stage, seed, &owners)) {
                continue;
            }
            looked++;
            homeless = homeless_of(packing, &owners);
            if (homeless < least ||
                (homeless == least && ibshift_random_below(seed, looked) == 0)) {
                least = homeless;
                *chosen = owners;
                best = stage;
            }
            if (homeless == 0) {
                return stage;
            }
        }
    }
    return best;
}

/* Puts the pair in; those that it pushed out and that fit nowhere come back in out[]. */
static bool force(struct ibshift_packing *packing, struct ibshift_pair pair, uint64_t *seed,
                  struct owners *out)
{
    uint32_t lid_offset = ibshift_random_below(seed, ibshift_packing_lids(packing, pair)), stage;
    struct owners owners = {.count = 0};
    struct ibshift_packing_want want;

    out->count = 0;
    if (ibshift_packing_place_first(packing, pair)) {
        return true;
    }
    if (!ibshift_packing_want(packing, pair, lid_offset, &want)) {
        return false;
    }
    stage = choose_stage(packing, &want, pair.not_in, seed, &owners);
    if (stage == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < owners.count; i++) {
        ibshift_packing_remove(packing, owners.pair[i], stage);
    }
    ibshift_packing_place(packing, pair, stage, lid_offset);
    for (uint32_t i = 0; i < owners.count; i++) {
        if (!ibshift_packing_place_first(packing, owners.pair[i])) {
            out->pair[out->count++] = owners.pair[i];
        }
    }
    return true;
}

uint32_t ibshift_packing_walk(struct ibshift_packing *packing, struct ibshift_pair *left,
                              uint32_t count, uint32_t room, uint64_t patience, uint64_t *seed)
{
    uint32_t least = count;

    for (uint64_t since = 0; count > 0 && count + OWNERS_MAX <= room && since < patience; since++) {
        uint32_t i = ibshift_random_below(seed, count);
        struct owners out;

        if (!force(packing, left[i], seed, &out)) {
            continue;
        }
        left[i] = left[--count];
        for (uint32_t k = 0; k < out.count; k++) {
            left[count++] = out.pair[k];
        }
        if (count < least) {
            least = count;
            since = 0;
        }
    }
    return count;
}

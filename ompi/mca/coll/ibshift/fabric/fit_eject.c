/*
 * The ejection walk: a pair that fits nowhere takes a stage where one other pair alone is in its
 * way, or, where there is no such stage, two or three; they go where they fit, or wait their turn.
 * A random walk in the end, from a seed.
 */
#include "fabric/fit.h"
#include "fabric/random.h"

#define LOOK       8    /* stages that are looked at before one of them is taken at random */
#define RELIEF     8    /* one step in so many goes where the fullest of the pair's links is free */
#define PATIENCE   8000 /* steps that bring nothing before it gives up */
#define OWNERS_MAX 3    /* pairs that make way for one */

typedef struct owners {
    fit_pair_t pair[OWNERS_MAX];
    uint32_t count;
} owners_t;

/* The pairs in the way in this stage; false: too many. */
static bool find_owners(const fit_t *fit, const uint64_t **rows, uint32_t count, uint32_t stage,
                        owners_t *owners)
{
    owners->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i][stage / 64] >> stage % 64 & 1) {
            uint32_t row = (uint32_t)((size_t)(rows[i] - fit->busy) / fit->words);
            uint16_t who = fit_owner(fit, row, stage);
            uint32_t k = 0;

            while (k < owners->count && owners->pair[k].from != who) {
                k++;
            }
            if (who == FIT_NOBODY || k == OWNERS_MAX) {
                return false;
            }
            owners->pair[k] = (fit_pair_t){who, fit_to(fit, who, stage), stage};
            owners->count += k == owners->count;
        }
    }
    return true;
}

/* Stages of word w in which one to three rows are taken. */
static uint64_t few_taken(const uint64_t **rows, uint32_t count, uint32_t w)
{
    uint64_t one = 0, two = 0, three = 0, four = 0;

    for (uint32_t i = 0; i < count; i++) {
        four |= three & rows[i][w];
        three |= two & rows[i][w];
        two |= one & rows[i][w];
        one |= rows[i][w];
    }
    return one & ~four;
}

/* The row with the fewest free stages: evicting another pair from it would gain nothing. */
static const uint64_t *fullest(const fit_t *fit, const uint64_t **rows, uint32_t count)
{
    const uint64_t *found = rows[0];
    uint32_t most = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t taken = 0;

        for (uint32_t w = 0; w < fit->words; w++) {
            taken += (uint32_t)__builtin_popcountll(rows[i][w]);
        }
        if (taken > most) {
            most = taken;
            found = rows[i];
        }
    }
    return found;
}

/*
 * The stage to take: one whose single owner fits elsewhere, else one with the fewest owners, by
 * chance among equals. Looks from a random word on. UINT32_MAX: there is none.
 */
static uint32_t choose_stage(const fit_t *fit, const uint64_t **rows, uint32_t count,
                             uint32_t not_in, uint64_t *seed, owners_t *chosen)
{
    uint32_t start = ibshift_random_below(seed, fit->words), best = UINT32_MAX, singles = 0;
    uint32_t equals = 0;
    const uint64_t *full =
        ibshift_random_below(seed, RELIEF) == 0 ? fullest(fit, rows, count) : NULL;

    chosen->count = OWNERS_MAX + 1;
    for (uint32_t k = 0; k < fit->words && singles < LOOK; k++) {
        uint32_t w = (start + k) % fit->words;

        uint64_t candidates = few_taken(rows, count, w) & (full != NULL ? ~full[w] : ~UINT64_C(0));

        for (uint64_t c = candidates; c != 0 && singles < LOOK; c &= c - 1) {
            uint32_t stage = w * 64 + (uint32_t)__builtin_ctzll(c), lane;
            owners_t owners;

            if (stage >= fit->stages || stage == not_in ||
                !find_owners(fit, rows, count, stage, &owners) || owners.count > chosen->count) {
                continue;
            }
            if (owners.count == 1 && fit_find(fit, owners.pair[0], 0, &lane) != UINT32_MAX) {
                *chosen = owners;
                return stage;
            }
            singles += owners.count == 1;
            equals = owners.count < chosen->count ? 1 : equals + 1;
            if (ibshift_random_below(seed, equals) == 0) {
                *chosen = owners;
                best = stage;
            }
        }
    }
    return best;
}

static bool place_if_fits(fit_t *fit, fit_pair_t pair)
{
    uint32_t lane, stage = fit_find(fit, pair, 0, &lane);

    if (stage != UINT32_MAX) {
        fit_place(fit, pair, stage, lane);
    }
    return stage != UINT32_MAX;
}

/* Puts the pair in; those that it pushed out and that fit nowhere come back in out[]. */
static bool settle(fit_t *fit, fit_pair_t pair, uint64_t *seed, owners_t *out)
{
    const uint64_t *rows[FIT_ROWS];
    uint32_t lane, count, stage;
    owners_t owners;

    out->count = 0;
    if (place_if_fits(fit, pair)) {
        return true;
    }
    lane = ibshift_random_below(seed, fit_lanes(fit, pair));
    count = fit_rows(fit, pair, lane, rows);
    stage = choose_stage(fit, rows, count, pair.not_in, seed, &owners);
    if (stage == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < owners.count; i++) {
        fit_remove(fit, owners.pair[i], stage);
    }
    fit_place(fit, pair, stage, lane);
    for (uint32_t i = 0; i < owners.count; i++) {
        if (!place_if_fits(fit, owners.pair[i])) {
            out->pair[out->count++] = owners.pair[i];
        }
    }
    return true;
}

uint32_t fit_eject(fit_t *fit, fit_pair_t *left, uint32_t count, uint32_t room, uint64_t steps,
                   uint64_t seed)
{
    uint32_t least = count;
    uint64_t since = 0; /* steps without a new least */

    for (; count > 0 && count + OWNERS_MAX <= room && steps > 0; steps--) {
        uint32_t i = ibshift_random_below(&seed, count);
        owners_t out;

        if (!settle(fit, left[i], &seed, &out)) {
            continue;
        }
        left[i] = left[--count];
        for (uint32_t k = 0; k < out.count; k++) {
            left[count++] = out.pair[k];
        }
        since = count < least ? 0 : since + 1;
        least = count < least ? count : least;
        if (since > PATIENCE) {
            break;
        }
    }
    return count;
}

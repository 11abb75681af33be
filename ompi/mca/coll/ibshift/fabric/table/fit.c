#include "fabric/table/fit.h"
#include "fabric/paths/contend.h"
#include "fabric/graph/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fit_want {
    uint32_t resources[FIT_RESOURCES], count;
    const uint64_t *last[FIT_RESOURCES]; /* bitmap of each resource's last slot */
};

/* Resources are numbered: shared links, cables out, cables in, ranks out, ranks in. */
static uint32_t first_cable(const struct fit *fit)
{
    return fit->paths->links;
}

static uint32_t first_rank(const struct fit *fit)
{
    return first_cable(fit) + (fit->cables ? 2 * fit->paths->hosts : 0);
}

static uint32_t resource_count(const struct fit *fit)
{
    return first_rank(fit) + 2 * fit->ranks;
}

static uint32_t rank_out(const struct fit *fit, uint32_t rank)
{
    return first_rank(fit) + rank;
}

static uint32_t rank_in(const struct fit *fit, uint32_t rank)
{
    return first_rank(fit) + fit->ranks + rank;
}

uint32_t fit_capacity(double stage_cost, double cost)
{
    double flows = stage_cost / cost + 1e-3; /* more than the rounding of a float's quotient */

    return flows > FIT_SLOTS ? FIT_SLOTS : (uint32_t)flows;
}

/* A rank sends once in a stage, and not at all where its cable is too slow. */
static uint32_t capacity(const struct fit *fit, uint32_t resource, bool dear)
{
    double cost = fit->cost[dear];
    uint32_t flows;

    if (resource < first_rank(fit)) {
        return fit_capacity(cost, ibshift_contention_cost(fit->paths, resource));
    }
    resource = (resource - first_rank(fit)) % fit->ranks;
    flows = fit_capacity(cost, fit->paths->host_cost[fit->member_of[resource]]);
    return flows < 1 ? flows : 1;
}

static int number_slots(struct fit *fit)
{
    uint32_t count = resource_count(fit);

    fit->slot = malloc((count + 1) * sizeof(*fit->slot));
    fit->missing = malloc(count + 1);
    if (fit->slot == NULL || fit->missing == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t most = capacity(fit, i, true);

        fit->slot[i] = fit->slots;
        fit->missing[i] = (uint8_t)(most - capacity(fit, i, false));
        fit->slots += most;
    }
    fit->slot[count] = fit->slots;
    return 0;
}

int fit_open(struct fit *fit, const struct ibshift_paths *p, uint32_t ranks,
             const uint32_t *member_of, bool cables, const float cost[2])
{
    int status;

    *fit = (struct fit){.paths = p,
                        .ranks = ranks,
                        .member_of = member_of,
                        .cables = cables,
                        .cost = {cost[0], cost[1]}};
    fit->low_out = calloc(ranks + 1, sizeof(*fit->low_out));
    fit->low_in = calloc(ranks + 1, sizeof(*fit->low_in));
    status = fit->low_out == NULL || fit->low_in == NULL ? -ENOMEM : number_slots(fit);
    if (status != 0) {
        fit_close(fit);
    }
    return status;
}

void fit_close(struct fit *fit)
{
    free(fit->slot);
    free(fit->missing);
    free(fit->dear);
    free(fit->taken);
    free(fit->owner);
    free(fit->to);
    free(fit->lid_offset);
    free(fit->low_out);
    free(fit->low_in);
    *fit = (struct fit){0};
}

/* *array grows to `size` bytes, the new ones all ones; old: how many it had. */
static bool grow(void *array, size_t old, size_t size)
{
    void **at = array, *grown = realloc(*at, size + 1);

    if (grown == NULL) {
        return false;
    }
    memset((char *)grown + old, 0xff, size - old);
    *at = grown;
    return true;
}

/* Wider bitmaps: the last row moves first, for it moves farthest. */
static bool widen(struct fit *fit, uint32_t words)
{
    size_t row = fit->words * sizeof(*fit->taken);

    if (!grow(&fit->taken, fit->slots * row, (size_t)fit->slots * words * sizeof(*fit->taken))) {
        return false;
    }
    for (uint32_t slot = fit->slots; slot-- > 0;) {
        uint64_t *to = fit->taken + (size_t)slot * words;

        memmove(to, fit->taken + (size_t)slot * fit->words, row);
        memset(to + fit->words, 0xff, (words - fit->words) * sizeof(*to));
    }
    fit->words = words;
    return true;
}

static void open_stage(struct fit *fit, uint32_t stage, bool dear)
{
    uint32_t count = resource_count(fit);

    fit->dear[stage] = dear;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t s = fit->slot[i] + (dear ? 0 : fit->missing[i]); s < fit->slot[i + 1]; s++) {
            fit->taken[(size_t)s * fit->words + stage / 64] &= ~(UINT64_C(1) << stage % 64);
        }
    }
}

int fit_add_stages(struct fit *fit, uint32_t count, bool dear)
{
    uint32_t first = fit->stages, stages = first + count, words = (stages + 63) / 64;
    size_t had = (size_t)fit->ranks * first, cells = (size_t)fit->ranks * stages;
    size_t owned = (size_t)fit->slots * sizeof(*fit->owner);

    if (!grow(&fit->to, had * sizeof(*fit->to), cells * sizeof(*fit->to)) ||
        !grow(&fit->dear, first * sizeof(*fit->dear), stages * sizeof(*fit->dear)) ||
        (ibshift_paths_have_lmc(fit->paths) && !grow(&fit->lid_offset, had, cells)) ||
        (fit->owner != NULL && !grow(&fit->owner, first * owned, stages * owned)) ||
        (words > fit->words && !widen(fit, words))) {
        return -ENOMEM;
    }
    for (uint32_t stage = first; stage < stages; stage++) {
        open_stage(fit, stage, dear);
    }
    for (uint32_t r = 0; r < fit->ranks; r++) {
        fit->low_out[r] = fit->low_out[r] < first / 64 ? fit->low_out[r] : first / 64;
        fit->low_in[r] = fit->low_in[r] < first / 64 ? fit->low_in[r] : first / 64;
    }
    fit->stages = stages;
    return 0;
}

static uint32_t fit_lids(const struct fit *fit, struct fit_pair pair)
{
    return fit->lid_offset == NULL ? 1 : ibshift_paths_lids(fit->paths, fit->member_of[pair.to]);
}

static uint32_t resources_of(const struct fit *fit, struct fit_pair pair, uint32_t lid_offset,
                             uint32_t *resources)
{
    uint32_t from = fit->member_of[pair.from], to = fit->member_of[pair.to], count = 0;
    const uint32_t *links = ibshift_paths_links(fit->paths, from, to, lid_offset);

    resources[count++] = rank_out(fit, pair.from);
    resources[count++] = rank_in(fit, pair.to);
    if (fit->cables) {
        resources[count++] = first_cable(fit) + from;
        resources[count++] = first_cable(fit) + fit->paths->hosts + to;
    }
    for (uint32_t i = 0; i < fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        resources[count++] = links[i];
    }
    return count;
}

bool fit_is_dear(const struct fit *fit, struct fit_pair pair)
{
    uint32_t resources[FIT_RESOURCES], lids = fit_lids(fit, pair);

    for (uint32_t lid_offset = 0; lid_offset < lids; lid_offset++) {
        uint32_t count = resources_of(fit, pair, lid_offset, resources), i = 0;

        while (i < count && capacity(fit, resources[i], false) > 0) {
            i++;
        }
        if (i == count) {
            return false;
        }
    }
    return true;
}

/* What the pair takes over this LID; false: a link that no stage has room for. */
static bool fit_want(const struct fit *fit, struct fit_pair pair, uint32_t lid_offset,
                     struct fit_want *want)
{
    want->count = resources_of(fit, pair, lid_offset, want->resources);
    for (uint32_t i = 0; i < want->count; i++) {
        uint32_t end = fit->slot[want->resources[i] + 1];

        if (end == fit->slot[want->resources[i]]) {
            return false;
        }
        want->last[i] = fit->taken + (size_t)(end - 1) * fit->words;
    }
    return true;
}

/* First stage with room over this LID; UINT32_MAX: none. */
static uint32_t find_on_lid(const struct fit *fit, struct fit_pair pair, uint32_t lid_offset)
{
    uint32_t out = fit->low_out[pair.from], in = fit->low_in[pair.to];
    struct fit_want want;

    if (!fit_want(fit, pair, lid_offset, &want)) {
        return UINT32_MAX;
    }
    for (uint32_t w = out > in ? out : in; w < fit->words; w++) {
        uint64_t taken = want.last[0][w] | want.last[1][w];

        for (uint32_t i = 2; i < want.count; i++) {
            taken |= want.last[i][w];
        }
        if (taken != ~UINT64_C(0)) {
            return w * 64 + (uint32_t)__builtin_ctzll(~taken);
        }
    }
    return UINT32_MAX;
}

static uint32_t find_first(const struct fit *fit, struct fit_pair pair, uint32_t *lid_offset)
{
    uint32_t best = UINT32_MAX, lids = fit_lids(fit, pair);

    *lid_offset = 0;
    for (uint32_t l = 0; l < lids; l++) {
        uint32_t stage = find_on_lid(fit, pair, l);

        if (stage < best) {
            best = stage;
            *lid_offset = l;
        }
    }
    return best;
}

static bool fit_has_place(const struct fit *fit, struct fit_pair pair)
{
    uint32_t lid_offset;

    return find_first(fit, pair, &lid_offset) != UINT32_MAX;
}

static uint32_t first_slot(const struct fit *fit, uint32_t resource, uint32_t stage)
{
    return fit->slot[resource] + (fit->dear[stage] ? 0 : fit->missing[resource]);
}

/* The first free slot of the resource; it has one. */
static void take(struct fit *fit, uint32_t resource, uint32_t stage)
{
    uint64_t *word =
        fit->taken + (size_t)first_slot(fit, resource, stage) * fit->words + stage / 64;
    uint64_t bit = UINT64_C(1) << stage % 64;

    while ((*word & bit) != 0) {
        word += fit->words;
    }
    *word |= bit;
}

/* The slot that take() took. */
static void own(struct fit *fit, uint32_t resource, uint32_t stage, uint16_t rank)
{
    uint16_t *owner = fit->owner + (size_t)stage * fit->slots + first_slot(fit, resource, stage);

    while (*owner != FIT_NOBODY) {
        owner++;
    }
    *owner = rank;
}

/* The last slot taken moves into the gap, so that taken ones stay together. */
static void give_back(struct fit *fit, uint32_t resource, uint32_t stage, uint16_t rank)
{
    uint16_t *owners = fit->owner + (size_t)stage * fit->slots;
    uint32_t mine = first_slot(fit, resource, stage), last = fit->slot[resource + 1] - 1;

    while (owners[mine] != rank) {
        mine++;
    }
    while (owners[last] == FIT_NOBODY) {
        last--;
    }
    owners[mine] = owners[last];
    owners[last] = FIT_NOBODY;
    fit->taken[(size_t)last * fit->words + stage / 64] &= ~(UINT64_C(1) << stage % 64);
}

static void raise_low(const struct fit *fit, uint32_t *low, uint32_t resource)
{
    const uint64_t *row = fit->taken + (size_t)fit->slot[resource] * fit->words;

    while (*low < fit->words && row[*low] == ~UINT64_C(0)) {
        (*low)++;
    }
}

static void fit_place(struct fit *fit, struct fit_pair pair, uint32_t stage, uint32_t lid_offset)
{
    uint32_t resources[FIT_RESOURCES], count = resources_of(fit, pair, lid_offset, resources);
    size_t at = (size_t)stage * fit->ranks + pair.from;

    fit->to[at] = pair.to;
    if (fit->lid_offset != NULL) {
        fit->lid_offset[at] = (uint8_t)lid_offset;
    }
    for (uint32_t i = 0; i < count; i++) {
        take(fit, resources[i], stage);
        if (fit->owner != NULL) {
            own(fit, resources[i], stage, pair.from);
        }
    }
    raise_low(fit, &fit->low_out[pair.from], rank_out(fit, pair.from));
    raise_low(fit, &fit->low_in[pair.to], rank_in(fit, pair.to));
}

bool fit_place_first(struct fit *fit, struct fit_pair pair)
{
    uint32_t lid_offset, stage = find_first(fit, pair, &lid_offset);

    if (stage != UINT32_MAX) {
        fit_place(fit, pair, stage, lid_offset);
    }
    return stage != UINT32_MAX;
}

static void lower_low(uint32_t *low, uint32_t word)
{
    *low = word < *low ? word : *low;
}

static void fit_remove(struct fit *fit, struct fit_pair pair, uint32_t stage)
{
    size_t at = (size_t)stage * fit->ranks + pair.from;
    uint32_t resources[FIT_RESOURCES];
    uint32_t count =
        resources_of(fit, pair, fit->lid_offset != NULL ? fit->lid_offset[at] : 0, resources);

    fit->to[at] = FIT_NOBODY;
    for (uint32_t i = 0; i < count; i++) {
        give_back(fit, resources[i], stage, pair.from);
    }
    lower_low(&fit->low_out[pair.from], stage / 64);
    lower_low(&fit->low_in[pair.to], stage / 64);
}

/* Stage by stage, where the owners of a stage lie together: while pairs are placed here and there,
 * each of them would cost a cache miss. */
int fit_own(struct fit *fit)
{
    size_t size = (size_t)fit->slots * fit->stages * sizeof(*fit->owner);

    if (fit->owner != NULL) {
        return 0;
    }
    if (!grow(&fit->owner, 0, size)) {
        return -ENOMEM;
    }
    for (uint32_t stage = 0; stage < fit->stages; stage++) {
        for (uint32_t r = 0; r < fit->ranks; r++) {
            size_t at = (size_t)stage * fit->ranks + r;
            uint32_t resources[FIT_RESOURCES], count = 0;

            if (fit->to[at] != FIT_NOBODY) {
                count = resources_of(fit, FIT_PAIR(r, fit->to[at]),
                                     fit->lid_offset != NULL ? fit->lid_offset[at] : 0, resources);
            }
            for (uint32_t i = 0; i < count; i++) {
                own(fit, resources[i], stage, (uint16_t)r);
            }
        }
    }
    return 0;
}

void fit_disown(struct fit *fit)
{
    free(fit->owner);
    fit->owner = NULL;
}

/*
 * The walk: a pair that fits nowhere takes a stage where a few others are in its way; they go where
 * they fit, or wait their turn. A random walk in the end, from a seed.
 */

#define LOOK       16 /* stages that are looked at for one step */
#define RELIEF     8  /* one step in so many goes where the fullest resource is free */
#define OWNERS_MAX 3  /* pairs that make way for one */

struct owners {
    struct fit_pair pair[OWNERS_MAX];
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
static bool add_owner(const struct fit *fit, uint32_t resource, uint32_t stage, uint64_t *seed,
                      struct owners *owners)
{
    uint32_t first = fit->slot[resource] + (fit->dear[stage] ? 0 : fit->missing[resource]);
    uint32_t slots = fit->slot[resource + 1] - first;
    const uint16_t *who = fit->owner + (size_t)stage * fit->slots + first;
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
    owners->pair[owners->count++] = (struct fit_pair){chosen, fit_to(fit, chosen, stage), stage};
    return true;
}

static bool find_owners(const struct fit *fit, const struct fit_want *want, uint32_t stage,
                        uint64_t *seed, struct owners *owners)
{
    bool found = true;

    owners->count = 0;
    for (uint32_t i = 0; found && i < want->count; i++) {
        if (want->last[i][stage / 64] >> stage % 64 & 1) {
            found = add_owner(fit, want->resources[i], stage, seed, owners);
        }
    }
    return found;
}

/* Stages of word w in which so many resources are taken, one to OWNERS_MAX. */
static uint64_t so_many_taken(const struct fit_want *want, uint32_t w, uint32_t many)
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
static const uint64_t *fullest(const struct fit *fit, const struct fit_want *want)
{
    const uint64_t *found = want->last[0];
    uint32_t most = 0;

    for (uint32_t i = 0; i < want->count; i++) {
        uint32_t taken = 0;

        for (uint32_t w = 0; w < fit->words; w++) {
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
static uint32_t homeless_of(const struct fit *fit, const struct owners *owners)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < owners->count; i++) {
        count += !fit_has_place(fit, owners->pair[i]);
    }
    return count;
}

/*
 * The stage to take: the one whose owners fit elsewhere but for the fewest, by chance among equals.
 * Looks at stages in which the fewest resources are taken first, from a random word on. Pairs on
 * the fullest resource fit nowhere themselves: now and then it wants a stage where that one is
 * free. UINT32_MAX: there is none.
 */
static uint32_t choose_stage(const struct fit *fit, const struct fit_want *want, uint32_t not_in,
                             uint64_t *seed, struct owners *chosen)
{
    uint32_t start = ibshift_random_below(seed, fit->words), best = UINT32_MAX, looked = 0;
    uint32_t least = OWNERS_MAX + 1, homeless;
    const uint64_t *full = ibshift_random_below(seed, RELIEF) == 0 ? fullest(fit, want) : NULL;

    for (uint32_t k = 0; k < OWNERS_MAX * fit->words && looked < LOOK; k++) {
        uint32_t w = (start + k) % fit->words;

        uint64_t few =
            so_many_taken(want, w, 1 + k / fit->words) & (full ? ~full[w] : ~UINT64_C(0));

        for (uint64_t c = few; c != 0 && looked < LOOK; c &= c - 1) {
            uint32_t stage = w * 64 + (uint32_t)__builtin_ctzll(c);
            struct owners owners;

            if (stage >= fit->stages || stage == not_in ||
                !find_owners(fit, want, stage, seed, &owners)) {
                continue;
            }
            looked++;
            homeless = homeless_of(fit, &owners);
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
static bool settle(struct fit *fit, struct fit_pair pair, uint64_t *seed, struct owners *out)
{
    uint32_t lid_offset = ibshift_random_below(seed, fit_lids(fit, pair)), stage;
    struct owners owners = {.count = 0};
    struct fit_want want;

    out->count = 0;
    if (fit_place_first(fit, pair)) {
        return true;
    }
    if (!fit_want(fit, pair, lid_offset, &want)) {
        return false;
    }
    stage = choose_stage(fit, &want, pair.not_in, seed, &owners);
    if (stage == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < owners.count; i++) {
        fit_remove(fit, owners.pair[i], stage);
    }
    fit_place(fit, pair, stage, lid_offset);
    for (uint32_t i = 0; i < owners.count; i++) {
        if (!fit_place_first(fit, owners.pair[i])) {
            out->pair[out->count++] = owners.pair[i];
        }
    }
    return true;
}

uint32_t fit_walk(struct fit *fit, struct fit_pair *left, uint32_t count, uint32_t room,
                  uint64_t patience, uint64_t *seed)
{
    uint32_t least = count;

    for (uint64_t since = 0; count > 0 && count + OWNERS_MAX <= room && since < patience; since++) {
        uint32_t i = ibshift_random_below(seed, count);
        struct owners out;

        if (!settle(fit, left[i], seed, &out)) {
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

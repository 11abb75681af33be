#include "fabric/table/packing.h"
#include "fabric/paths/contend.h"
#include "fabric/graph/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct want {
    uint32_t resources[IBSHIFT_PACKING_RESOURCES], count;
    const uint64_t *last[IBSHIFT_PACKING_RESOURCES]; /* bitmap of each resource's last slot */
};

/* Resources are numbered: shared links, cables out, cables in, ranks out, ranks in. */
static uint32_t first_cable(const struct ibshift_packing *packing)
{
    return packing->paths->links;
}

static uint32_t first_rank(const struct ibshift_packing *packing)
{
    return first_cable(packing) + (packing->cables ? 2 * packing->paths->hosts : 0);
}

static uint32_t resource_count(const struct ibshift_packing *packing)
{
    return first_rank(packing) + 2 * packing->ranks;
}

static uint32_t rank_out(const struct ibshift_packing *packing, uint32_t rank)
{
    return first_rank(packing) + rank;
}

static uint32_t rank_in(const struct ibshift_packing *packing, uint32_t rank)
{
    return first_rank(packing) + packing->ranks + rank;
}

/* A rank sends once in a stage, and not at all where its cable is too slow. */
static uint32_t capacity(const struct ibshift_packing *packing, uint32_t resource, bool dear)
{
    double cost = packing->cost[dear];
    uint32_t flows;

    if (resource < first_rank(packing)) {
        return ibshift_packing_capacity(cost, ibshift_contention_cost(packing->paths, resource));
    }
    resource = (resource - first_rank(packing)) % packing->ranks;
    flows = ibshift_packing_capacity(cost, packing->paths->host_cost[packing->member_of[resource]]);
    return flows < 1 ? flows : 1;
}

static int number_slots(struct ibshift_packing *packing)
{
    uint32_t count = resource_count(packing);

    packing->slot = malloc((count + 1) * sizeof(*packing->slot));
    packing->missing = malloc(count + 1);
    if (packing->slot == NULL || packing->missing == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t most = capacity(packing, i, true);

        packing->slot[i] = packing->slots;
        packing->missing[i] = (uint8_t)(most - capacity(packing, i, false));
        packing->is_single &= most == 1;
        packing->slots += most;
    }
    packing->slot[count] = packing->slots;
    return 0;
}

int ibshift_packing_open(struct ibshift_packing *packing, const struct ibshift_paths *p,
                         uint32_t ranks, const uint32_t *member_of, bool cables,
                         const float cost[2])
{
    int status;

    *packing = (struct ibshift_packing){.paths = p,
                                        .ranks = ranks,
                                        .member_of = member_of,
                                        .cables = cables,
                                        .is_single = true,
                                        .cost = {cost[0], cost[1]}};
    packing->low_out = calloc(ranks + 1, sizeof(*packing->low_out));
    packing->low_in = calloc(ranks + 1, sizeof(*packing->low_in));
    status = packing->low_out == NULL || packing->low_in == NULL ? -ENOMEM : number_slots(packing);
    if (status != 0) {
        ibshift_packing_close(packing);
    }
    return status;
}

void ibshift_packing_close(struct ibshift_packing *packing)
{
    free(packing->slot);
    free(packing->missing);
    free(packing->dear);
    free(packing->taken);
    free(packing->owner);
    free(packing->to);
    free(packing->lid_offset);
    free(packing->low_out);
    free(packing->low_in);
    *packing = (struct ibshift_packing){0};
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
static bool widen(struct ibshift_packing *packing, uint32_t words)
{
    size_t row = packing->words * sizeof(*packing->taken);

    if (!grow(&packing->taken, packing->slots * row,
              (size_t)packing->slots * words * sizeof(*packing->taken))) {
        return false;
    }
    for (uint32_t slot = packing->slots; slot-- > 0;) {
        uint64_t *to = packing->taken + (size_t)slot * words;

        memmove(to, packing->taken + (size_t)slot * packing->words, row);
        memset(to + packing->words, 0xff, (words - packing->words) * sizeof(*to));
    }
    packing->words = words;
    return true;
}

/* Stages [first, end) are free in a bitmap. */
static void clear_stages(uint64_t *bits, uint32_t first, uint32_t end)
{
    for (uint32_t stage = first; stage < end;) {
        uint32_t low = stage % 64, count = 64 - low < end - stage ? 64 - low : end - stage;

        bits[stage / 64] &= ~((count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0)) << low);
        stage += count;
    }
}

static void clear_slots(struct ibshift_packing *packing, uint32_t first, uint32_t end, bool dear)
{
    uint32_t count = resource_count(packing);

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t s = packing->slot[i] + (dear ? 0 : packing->missing[i]);
             s < packing->slot[i + 1]; s++) {
            clear_stages(packing->taken + (size_t)s * packing->words, first, end);
        }
    }
}

int ibshift_packing_add_stages(struct ibshift_packing *packing, uint32_t count, bool dear)
{
    uint32_t first = packing->stages, stages = first + count, words = (stages + 63) / 64;
    size_t had = (size_t)packing->ranks * first, cells = (size_t)packing->ranks * stages;
    size_t owned = (size_t)packing->slots * sizeof(*packing->owner);

    if (!grow(&packing->to, had * sizeof(*packing->to), cells * sizeof(*packing->to)) ||
        !grow(&packing->dear, first * sizeof(*packing->dear), stages * sizeof(*packing->dear)) ||
        (ibshift_paths_have_lmc(packing->paths) && !grow(&packing->lid_offset, had, cells)) ||
        (packing->owner != NULL && !grow(&packing->owner, first * owned, stages * owned)) ||
        (words > packing->words && !widen(packing, words))) {
        return -ENOMEM;
    }
    for (uint32_t stage = first; stage < stages; stage++) {
        packing->dear[stage] = dear;
    }
    clear_slots(packing, first, stages, dear);
    for (uint32_t r = 0; r < packing->ranks; r++) {
        packing->low_out[r] = packing->low_out[r] < first / 64 ? packing->low_out[r] : first / 64;
        packing->low_in[r] = packing->low_in[r] < first / 64 ? packing->low_in[r] : first / 64;
    }
    packing->stages = stages;
    return 0;
}

static uint32_t lids_of(const struct ibshift_packing *packing, struct ibshift_pair pair)
{
    return packing->lid_offset == NULL
               ? 1
               : ibshift_paths_lids(packing->paths, packing->member_of[pair.to]);
}

static uint32_t resources_of(const struct ibshift_packing *packing, struct ibshift_pair pair,
                             uint32_t lid_offset, uint32_t *resources)
{
    uint32_t from = packing->member_of[pair.from], to = packing->member_of[pair.to], count = 0;
    const uint32_t *links = ibshift_paths_links(packing->paths, from, to, lid_offset);

    resources[count++] = rank_out(packing, pair.from);
    resources[count++] = rank_in(packing, pair.to);
    if (packing->cables) {
        resources[count++] = first_cable(packing) + from;
        resources[count++] = first_cable(packing) + packing->paths->hosts + to;
    }
    for (uint32_t i = 0; i < packing->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        resources[count++] = links[i];
    }
    return count;
}

bool ibshift_packing_is_dear(const struct ibshift_packing *packing, struct ibshift_pair pair)
{
    uint32_t resources[IBSHIFT_PACKING_RESOURCES], lids = lids_of(packing, pair);

    for (uint32_t lid_offset = 0; lid_offset < lids; lid_offset++) {
        uint32_t count = resources_of(packing, pair, lid_offset, resources), i = 0;

        while (i < count && capacity(packing, resources[i], false) > 0) {
            i++;
        }
        if (i == count) {
            return false;
        }
    }
    return true;
}

/* What the pair takes over this LID; false: a link that no stage has room for. */
static bool find_want(const struct ibshift_packing *packing, struct ibshift_pair pair,
                      uint32_t lid_offset, struct want *want)
{
    want->count = resources_of(packing, pair, lid_offset, want->resources);
    for (uint32_t i = 0; i < want->count; i++) {
        uint32_t end = packing->slot[want->resources[i] + 1];

        if (end == packing->slot[want->resources[i]]) {
            return false;
        }
        want->last[i] = packing->taken + (size_t)(end - 1) * packing->words;
    }
    return true;
}

/* First stage with room over this LID; UINT32_MAX: none. */
static uint32_t find_on_lid(const struct ibshift_packing *packing, struct ibshift_pair pair,
                            uint32_t lid_offset)
{
    uint32_t out = packing->low_out[pair.from], in = packing->low_in[pair.to];
    struct want want;

    if (!find_want(packing, pair, lid_offset, &want)) {
        return UINT32_MAX;
    }
    for (uint32_t w = out > in ? out : in; w < packing->words; w++) {
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

static uint32_t find_first(const struct ibshift_packing *packing, struct ibshift_pair pair,
                           uint32_t *lid_offset)
{
    uint32_t best = UINT32_MAX, lids = lids_of(packing, pair);

    *lid_offset = 0;
    for (uint32_t l = 0; l < lids; l++) {
        uint32_t stage = find_on_lid(packing, pair, l);

        if (stage < best) {
            best = stage;
            *lid_offset = l;
        }
    }
    return best;
}

static bool has_room(const struct ibshift_packing *packing, struct ibshift_pair pair)
{
    uint32_t lid_offset;

    return find_first(packing, pair, &lid_offset) != UINT32_MAX;
}

static uint32_t first_slot(const struct ibshift_packing *packing, uint32_t resource, uint32_t stage)
{
    return packing->slot[resource] + (packing->dear[stage] ? 0 : packing->missing[resource]);
}

/* The first free slot of the resource; it has one. */
static void take(struct ibshift_packing *packing, uint32_t resource, uint32_t stage)
{
    uint64_t *word =
        packing->taken + (size_t)first_slot(packing, resource, stage) * packing->words + stage / 64;
    uint64_t bit = UINT64_C(1) << stage % 64;

    while ((*word & bit) != 0) {
        word += packing->words;
    }
    *word |= bit;
}

/* The slot that take() took. */
static void own(struct ibshift_packing *packing, uint32_t resource, uint32_t stage, uint16_t rank)
{
    uint16_t *owner =
        packing->owner + (size_t)stage * packing->slots + first_slot(packing, resource, stage);

    while (*owner != IBSHIFT_NOBODY) {
        owner++;
    }
    *owner = rank;
}

/* The last slot taken moves into the gap, so that taken ones stay together. */
static void give_back(struct ibshift_packing *packing, uint32_t resource, uint32_t stage,
                      uint16_t rank)
{
    uint16_t *owners = packing->owner + (size_t)stage * packing->slots;
    uint32_t mine = first_slot(packing, resource, stage), last = packing->slot[resource + 1] - 1;

    while (owners[mine] != rank) {
        mine++;
    }
    while (owners[last] == IBSHIFT_NOBODY) {
        last--;
    }
    owners[mine] = owners[last];
    owners[last] = IBSHIFT_NOBODY;
    packing->taken[(size_t)last * packing->words + stage / 64] &= ~(UINT64_C(1) << stage % 64);
}

static void raise_low(const struct ibshift_packing *packing, uint32_t *low, uint32_t resource)
{
    const uint64_t *row = packing->taken + (size_t)packing->slot[resource] * packing->words;

    while (*low < packing->words && row[*low] == ~UINT64_C(0)) {
        (*low)++;
    }
}

static void place(struct ibshift_packing *packing, struct ibshift_pair pair, uint32_t stage,
                  uint32_t lid_offset)
{
    uint32_t resources[IBSHIFT_PACKING_RESOURCES],
        count = resources_of(packing, pair, lid_offset, resources);
    size_t at = (size_t)stage * packing->ranks + pair.from;

    packing->to[at] = pair.to;
    if (packing->lid_offset != NULL) {
        packing->lid_offset[at] = (uint8_t)lid_offset;
    }
    for (uint32_t i = 0; i < count; i++) {
        take(packing, resources[i], stage);
        if (packing->owner != NULL) {
            own(packing, resources[i], stage, pair.from);
        }
    }
    raise_low(packing, &packing->low_out[pair.from], rank_out(packing, pair.from));
    raise_low(packing, &packing->low_in[pair.to], rank_in(packing, pair.to));
}

bool ibshift_packing_place_first(struct ibshift_packing *packing, struct ibshift_pair pair)
{
    uint32_t lid_offset, stage = find_first(packing, pair, &lid_offset);

    if (stage != UINT32_MAX) {
        place(packing, pair, stage, lid_offset);
    }
    return stage != UINT32_MAX;
}

/* One LID a host, no cables, and a resource is its only slot: in a third of the time. */
static bool place_single(struct ibshift_packing *packing, struct ibshift_pair pair, uint32_t stage)
{
    const struct ibshift_paths *p = packing->paths;
    const uint32_t *links =
        ibshift_paths_links(p, packing->member_of[pair.from], packing->member_of[pair.to], 0);
    size_t words = packing->words;
    uint32_t count = 0, width = p->width;
    uint64_t *taken = packing->taken + stage / 64, bit = UINT64_C(1) << stage % 64, all;
    uint64_t *out = taken + rank_out(packing, pair.from) * words;
    uint64_t *in = taken + rank_in(packing, pair.to) * words;

    for (all = *out | *in; count < width && links[count] != IBSHIFT_NO_LINK; count++) {
        all |= taken[links[count] * words];
    }
    if ((all & bit) != 0) {
        return false;
    }
    *out |= bit;
    *in |= bit;
    for (uint32_t i = 0; i < count; i++) {
        taken[links[i] * words] |= bit;
    }
    packing->to[(size_t)stage * packing->ranks + pair.from] = pair.to;
    return true;
}

bool ibshift_packing_place_at(struct ibshift_packing *packing, struct ibshift_pair pair,
                              uint32_t lid_offset, uint32_t stage)
{
    struct want want;
    uint64_t taken = 0;

    if (packing->is_single && packing->lid_offset == NULL && !packing->cables) {
        return place_single(packing, pair, stage);
    }
    if (lid_offset >= lids_of(packing, pair) || !find_want(packing, pair, lid_offset, &want)) {
        return false;
    }
    for (uint32_t i = 0; i < want.count; i++) {
        taken |= want.last[i][stage / 64];
    }
    if ((taken >> stage % 64 & 1) == 0) {
        place(packing, pair, stage, lid_offset);
    }
    return (taken >> stage % 64 & 1) == 0;
}

static void lower_low(uint32_t *low, uint32_t word)
{
    *low = word < *low ? word : *low;
}

static void remove_pair(struct ibshift_packing *packing, struct ibshift_pair pair, uint32_t stage)
{
    size_t at = (size_t)stage * packing->ranks + pair.from;
    uint32_t resources[IBSHIFT_PACKING_RESOURCES];
    uint32_t count = resources_of(
        packing, pair, packing->lid_offset != NULL ? packing->lid_offset[at] : 0, resources);

    packing->to[at] = IBSHIFT_NOBODY;
    for (uint32_t i = 0; i < count; i++) {
        give_back(packing, resources[i], stage, pair.from);
    }
    lower_low(&packing->low_out[pair.from], stage / 64);
    lower_low(&packing->low_in[pair.to], stage / 64);
}

/* Stage by stage, where the owners of a stage lie together: while pairs are placed here and there,
 * each of them would cost a cache miss. */
int ibshift_packing_own(struct ibshift_packing *packing)
{
    size_t size = (size_t)packing->slots * packing->stages * sizeof(*packing->owner);

    if (packing->owner != NULL) {
        return 0;
    }
    if (!grow(&packing->owner, 0, size)) {
        return -ENOMEM;
    }
    for (uint32_t stage = 0; stage < packing->stages; stage++) {
        for (uint32_t r = 0; r < packing->ranks; r++) {
            size_t at = (size_t)stage * packing->ranks + r;
            uint32_t resources[IBSHIFT_PACKING_RESOURCES], count = 0;

            if (packing->to[at] != IBSHIFT_NOBODY) {
                count = resources_of(packing, IBSHIFT_PAIR(r, packing->to[at]),
                                     packing->lid_offset != NULL ? packing->lid_offset[at] : 0,
                                     resources);
            }
            for (uint32_t i = 0; i < count; i++) {
                own(packing, resources[i], stage, (uint16_t)r);
            }
        }
    }
    return 0;
}

/*
 * The walk: a pair that fits nowhere takes a stage where a few others are in its way; they go where
 * they fit, or wait their turn. A random walk in the end, from a seed.
 */

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
    uint32_t first =
        packing->slot[resource] + (packing->dear[stage] ? 0 : packing->missing[resource]);
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

static bool find_owners(const struct ibshift_packing *packing, const struct want *want,
                        uint32_t stage, uint64_t *seed, struct owners *owners)
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
static uint64_t so_many_taken(const struct want *want, uint32_t w, uint32_t many)
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
static const uint64_t *fullest(const struct ibshift_packing *packing, const struct want *want)
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
    uint32_t count = 0;

    for (uint32_t i = 0; i < owners->count; i++) {
        count += !has_room(packing, owners->pair[i]);
    }
    return count;
}

/*
 * The stage to take: the one whose owners fit elsewhere but for the fewest, by chance among equals.
 * Looks at stages in which the fewest resources are taken first, from a random word on. Pairs on
 * the fullest resource fit nowhere themselves: now and then it wants a stage where that one is
 * free. UINT32_MAX: there is none.
 */
static uint32_t choose_stage(const struct ibshift_packing *packing, const struct want *want,
                             uint32_t not_in, uint64_t *seed, struct owners *chosen)
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
    uint32_t lid_offset = ibshift_random_below(seed, lids_of(packing, pair)), stage;
    struct owners owners = {.count = 0};
    struct want want;

    out->count = 0;
    if (ibshift_packing_place_first(packing, pair)) {
        return true;
    }
    if (!find_want(packing, pair, lid_offset, &want)) {
        return false;
    }
    stage = choose_stage(packing, &want, pair.not_in, seed, &owners);
    if (stage == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < owners.count; i++) {
        remove_pair(packing, owners.pair[i], stage);
    }
    place(packing, pair, stage, lid_offset);
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

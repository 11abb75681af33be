#include "fabric/table/packing.h"
#include "fabric/paths/contend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

uint32_t ibshift_packing_lids(const struct ibshift_packing *packing, struct ibshift_pair pair)
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
    uint32_t resources[IBSHIFT_PACKING_RESOURCES], lids = ibshift_packing_lids(packing, pair);

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

bool ibshift_packing_want(const struct ibshift_packing *packing, struct ibshift_pair pair,
                          uint32_t lid_offset, struct ibshift_packing_want *want)
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
    struct ibshift_packing_want want;

    if (!ibshift_packing_want(packing, pair, lid_offset, &want)) {
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

uint32_t ibshift_packing_first(const struct ibshift_packing *packing, struct ibshift_pair pair,
                               uint32_t *lid_offset)
{
    uint32_t best = UINT32_MAX, lids = ibshift_packing_lids(packing, pair);

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

uint32_t ibshift_packing_slot(const struct ibshift_packing *packing, uint32_t resource,
                              uint32_t stage)
{
    return packing->slot[resource] + (packing->dear[stage] ? 0 : packing->missing[resource]);
}

/* The first free slot of the resource; it has one. */
static void take(struct ibshift_packing *packing, uint32_t resource, uint32_t stage)
{
    uint64_t *word = packing->taken +
                     (size_t)ibshift_packing_slot(packing, resource, stage) * packing->words +
                     stage / 64;
    uint64_t bit = UINT64_C(1) << stage % 64;

    while ((*word & bit) != 0) {
        word += packing->words;
    }
    *word |= bit;
}

/* The slot that take() took. */
static void own(struct ibshift_packing *packing, uint32_t resource, uint32_t stage, uint16_t rank)
{
    uint16_t *owner = packing->owner + (size_t)stage * packing->slots +
                      ibshift_packing_slot(packing, resource, stage);

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
    uint32_t mine = ibshift_packing_slot(packing, resource, stage),
             last = packing->slot[resource + 1] - 1;

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

void ibshift_packing_place(struct ibshift_packing *packing, struct ibshift_pair pair,
                           uint32_t stage, uint32_t lid_offset)
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
    uint32_t lid_offset, stage = ibshift_packing_first(packing, pair, &lid_offset);

    if (stage != UINT32_MAX) {
        ibshift_packing_place(packing, pair, stage, lid_offset);
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
    struct ibshift_packing_want want;
    uint64_t taken = 0;

    if (packing->is_single && packing->lid_offset == NULL && !packing->cables) {
        return place_single(packing, pair, stage);
    }
    if (lid_offset >= ibshift_packing_lids(packing, pair) ||
        !ibshift_packing_want(packing, pair, lid_offset, &want)) {
        return false;
    }
    for (uint32_t i = 0; i < want.count; i++) {
        taken |= want.last[i][stage / 64];
    }
    if ((taken >> stage % 64 & 1) == 0) {
        ibshift_packing_place(packing, pair, stage, lid_offset);
    }
    return (taken >> stage % 64 & 1) == 0;
}

static void lower_low(uint32_t *low, uint32_t word)
{
    *low = word < *low ? word : *low;
}

void ibshift_packing_remove(struct ibshift_packing *packing, struct ibshift_pair pair,
                            uint32_t stage)
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

#include "fabric/table/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/paths/contend.h"

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
    free(fit->lane);
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
        (ibshift_paths_have_lanes(fit->paths) && !grow(&fit->lane, had, cells)) ||
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

uint32_t fit_lanes(const struct fit *fit, struct fit_pair pair)
{
    return fit->lane == NULL ? 1 : ibshift_paths_lanes(fit->paths, fit->member_of[pair.to]);
}

static uint32_t resources_of(const struct fit *fit, struct fit_pair pair, uint32_t lane,
                             uint32_t *resources)
{
    uint32_t from = fit->member_of[pair.from], to = fit->member_of[pair.to], count = 0;
    const uint32_t *links = ibshift_paths_links(fit->paths, from, to, lane);

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
    uint32_t resources[FIT_RESOURCES], lanes = fit_lanes(fit, pair);

    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint32_t count = resources_of(fit, pair, lane, resources), i = 0;

        while (i < count && capacity(fit, resources[i], false) > 0) {
            i++;
        }
        if (i == count) {
            return false;
        }
    }
    return true;
}

bool fit_want(const struct fit *fit, struct fit_pair pair, uint32_t lane, struct fit_want *want)
{
    want->count = resources_of(fit, pair, lane, want->resources);
    for (uint32_t i = 0; i < want->count; i++) {
        uint32_t end = fit->slot[want->resources[i] + 1];

        if (end == fit->slot[want->resources[i]]) {
            return false;
        }
        want->last[i] = fit->taken + (size_t)(end - 1) * fit->words;
    }
    return true;
}

/* First stage with room over this lane; UINT32_MAX: none. */
static uint32_t find_on_lane(const struct fit *fit, struct fit_pair pair, uint32_t lane)
{
    uint32_t out = fit->low_out[pair.from], in = fit->low_in[pair.to];
    struct fit_want want;

    if (!fit_want(fit, pair, lane, &want)) {
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

static uint32_t find_first(const struct fit *fit, struct fit_pair pair, uint32_t *lane)
{
    uint32_t best = UINT32_MAX, lanes = fit_lanes(fit, pair);

    *lane = 0;
    for (uint32_t l = 0; l < lanes; l++) {
        uint32_t stage = find_on_lane(fit, pair, l);

        if (stage < best) {
            best = stage;
            *lane = l;
        }
    }
    return best;
}

bool fit_has_place(const struct fit *fit, struct fit_pair pair)
{
    uint32_t lane;

    return find_first(fit, pair, &lane) != UINT32_MAX;
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

void fit_place(struct fit *fit, struct fit_pair pair, uint32_t stage, uint32_t lane)
{
    uint32_t resources[FIT_RESOURCES], count = resources_of(fit, pair, lane, resources);
    size_t at = (size_t)stage * fit->ranks + pair.from;

    fit->to[at] = pair.to;
    if (fit->lane != NULL) {
        fit->lane[at] = (uint8_t)lane;
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
    uint32_t lane, stage = find_first(fit, pair, &lane);

    if (stage != UINT32_MAX) {
        fit_place(fit, pair, stage, lane);
    }
    return stage != UINT32_MAX;
}

static void lower_low(uint32_t *low, uint32_t word)
{
    *low = word < *low ? word : *low;
}

void fit_remove(struct fit *fit, struct fit_pair pair, uint32_t stage)
{
    size_t at = (size_t)stage * fit->ranks + pair.from;
    uint32_t resources[FIT_RESOURCES];
    uint32_t count = resources_of(fit, pair, fit->lane != NULL ? fit->lane[at] : 0, resources);

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
                                     fit->lane != NULL ? fit->lane[at] : 0, resources);
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

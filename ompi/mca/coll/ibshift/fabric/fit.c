#include "fabric/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t capacity(const ibshift_paths_t *p, uint32_t link)
{
    float flows = 1 / p->cost[link] + 1e-3f;

    return flows < 1 ? 1 : flows > 64 ? 64 : (uint32_t)flows;
}

int fit_open(fit_t *fit, const ibshift_paths_t *p, uint32_t ranks, const uint32_t *member_of,
             uint32_t stages)
{
    size_t cells = (size_t)ranks * stages;

    *fit = (fit_t){.paths = p, .ranks = ranks, .member_of = member_of, .stages = stages};
    fit->words = (stages + 63) / 64;
    fit->row = malloc((p->links + 1) * sizeof(*fit->row));
    if (fit->row == NULL) {
        return -ENOMEM;
    }
    fit->row[0] = 0;
    for (uint32_t l = 0; l < p->links; l++) {
        fit->row[l + 1] = fit->row[l] + capacity(p, l);
    }
    fit->rows = fit->row[p->links] + 2 * p->hosts;
    fit->busy = malloc((size_t)fit->rows * fit->words * sizeof(*fit->busy));
    fit->owner = malloc((size_t)fit->rows * stages * sizeof(*fit->owner));
    fit->to = malloc(cells * sizeof(*fit->to));
    fit->lane = ibshift_paths_have_lanes(p) ? malloc(cells) : NULL;
    fit->low_out = malloc((p->hosts + 1) * sizeof(*fit->low_out));
    fit->low_in = malloc((p->hosts + 1) * sizeof(*fit->low_in));
    if (!fit->busy || !fit->owner || !fit->to || (ibshift_paths_have_lanes(p) && !fit->lane) ||
        !fit->low_out || !fit->low_in) {
        fit_close(fit);
        return -ENOMEM;
    }
    fit_clear(fit);
    return 0;
}

void fit_close(fit_t *fit)
{
    free(fit->row);
    free(fit->busy);
    free(fit->owner);
    free(fit->to);
    free(fit->lane);
    free(fit->low_out);
    free(fit->low_in);
    *fit = (fit_t){0};
}

void fit_clear(fit_t *fit)
{
    size_t rows = fit->rows;

    memset(fit->busy, 0, rows * fit->words * sizeof(*fit->busy));
    memset(fit->owner, 0xff, rows * fit->stages * sizeof(*fit->owner));
    memset(fit->to, 0xff, (size_t)fit->ranks * fit->stages * sizeof(*fit->to));
    memset(fit->low_out, 0, fit->paths->hosts * sizeof(*fit->low_out));
    memset(fit->low_in, 0, fit->paths->hosts * sizeof(*fit->low_in));
    if (fit->stages % 64 != 0) { /* stages that do not exist are taken everywhere */
        for (size_t r = 0; r < rows; r++) {
            fit->busy[(r + 1) * fit->words - 1] = ~UINT64_C(0) << fit->stages % 64;
        }
    }
}

static uint32_t row_out(const fit_t *fit, uint32_t rank)
{
    return fit->row[fit->paths->links] + fit->member_of[rank];
}

static uint32_t row_in(const fit_t *fit, uint32_t rank)
{
    return fit->row[fit->paths->links] + fit->paths->hosts + fit->member_of[rank];
}

static const uint32_t *links_of(const fit_t *fit, fit_pair_t pair, uint32_t lane)
{
    return ibshift_paths_links(fit->paths, fit->member_of[pair.from], fit->member_of[pair.to],
                               lane);
}

uint32_t fit_lanes(const fit_t *fit, fit_pair_t pair)
{
    return fit->lane == NULL ? 1 : ibshift_paths_lanes(fit->paths, fit->member_of[pair.to]);
}

uint32_t fit_rows(const fit_t *fit, fit_pair_t pair, uint32_t lane, const uint64_t **rows)
{
    const uint32_t *links = links_of(fit, pair, lane);
    uint32_t count = 0, width = fit->paths->width;

    rows[count++] = fit->busy + (size_t)row_out(fit, pair.from) * fit->words;
    rows[count++] = fit->busy + (size_t)row_in(fit, pair.to) * fit->words;
    for (uint32_t i = 0; i < width && links[i] != IBSHIFT_NO_LINK; i++) {
        rows[count++] = fit->busy + (size_t)(fit->row[links[i] + 1] - 1) * fit->words;
    }
    return count;
}

static uint32_t find_on_lane(const fit_t *fit, fit_pair_t pair, uint32_t lane, uint32_t start)
{
    const uint64_t *rows[FIT_ROWS];
    uint32_t count = fit_rows(fit, pair, lane, rows);
    uint64_t below = (UINT64_C(1) << start % 64) - 1;

    for (uint32_t w = start / 64; w < fit->words; w++) {
        uint64_t taken = rows[0][w] | rows[1][w] | below;

        for (uint32_t i = 2; i < count; i++) {
            taken |= rows[i][w];
        }
        if (taken != ~UINT64_C(0)) {
            return w * 64 + (uint32_t)__builtin_ctzll(~taken);
        }
        below = 0;
    }
    return UINT32_MAX;
}

uint32_t fit_find(const fit_t *fit, fit_pair_t pair, uint32_t start, uint32_t *lane)
{
    uint32_t out = fit->low_out[fit->member_of[pair.from]] * 64;
    uint32_t in = fit->low_in[fit->member_of[pair.to]] * 64;
    uint32_t best = UINT32_MAX, lanes = fit_lanes(fit, pair);

    start = out > start ? out : start;
    start = in > start ? in : start;
    *lane = 0;
    for (uint32_t l = 0; l < lanes; l++) {
        uint32_t stage = find_on_lane(fit, pair, l, start);

        if (stage < best) {
            best = stage;
            *lane = l;
        }
    }
    return best;
}

static bool is_busy(const fit_t *fit, uint32_t row, uint32_t stage)
{
    return fit->busy[(size_t)row * fit->words + stage / 64] >> stage % 64 & 1;
}

static void set_busy(fit_t *fit, uint32_t row, uint32_t stage)
{
    fit->busy[(size_t)row * fit->words + stage / 64] |= UINT64_C(1) << stage % 64;
}

static void give_back(fit_t *fit, uint32_t row, uint32_t stage)
{
    fit->busy[(size_t)row * fit->words + stage / 64] &= ~(UINT64_C(1) << stage % 64);
    fit->owner[(size_t)stage * fit->rows + row] = FIT_NOBODY;
}

/* The first of the link's bitmaps that is free in this stage; it has one. */
static void set_link_busy(fit_t *fit, uint32_t link, uint32_t stage)
{
    uint32_t row = fit->row[link];

    while (is_busy(fit, row, stage)) {
        row++;
    }
    set_busy(fit, row, stage);
}

/* The bitmap that set_link_busy() took for this rank. */
static void own_link(fit_t *fit, uint32_t link, uint32_t stage, uint16_t rank)
{
    uint16_t *owner = fit->owner + (size_t)stage * fit->rows + fit->row[link];

    while (*owner != FIT_NOBODY) {
        owner++;
    }
    *owner = rank;
}

static void own(fit_t *fit, fit_pair_t pair, uint32_t stage, uint32_t lane)
{
    const uint32_t *links = links_of(fit, pair, lane);
    uint16_t *owner = fit->owner + (size_t)stage * fit->rows;

    owner[row_out(fit, pair.from)] = pair.from;
    owner[row_in(fit, pair.to)] = pair.from;
    for (uint32_t i = 0; i < fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        own_link(fit, links[i], stage, pair.from);
    }
}

/* The last one filled moves into the gap, so that filled ones stay together. */
static void give_back_link(fit_t *fit, uint32_t link, uint32_t stage, uint16_t rank)
{
    uint32_t mine = fit->row[link], last = fit->row[link + 1] - 1;

    while (fit_owner(fit, mine, stage) != rank) {
        mine++;
    }
    while (fit_owner(fit, last, stage) == FIT_NOBODY) {
        last--;
    }
    fit->owner[(size_t)stage * fit->rows + mine] = fit_owner(fit, last, stage);
    give_back(fit, last, stage);
}

static void raise_low(const fit_t *fit, uint32_t *low, uint32_t row)
{
    while (*low < fit->words && fit->busy[(size_t)row * fit->words + *low] == ~UINT64_C(0)) {
        (*low)++;
    }
}

/* All but the owners. */
static void mark(fit_t *fit, fit_pair_t pair, uint32_t stage, uint32_t lane)
{
    const uint32_t *links = links_of(fit, pair, lane);
    size_t at = (size_t)stage * fit->ranks + pair.from;

    fit->to[at] = pair.to;
    if (fit->lane != NULL) {
        fit->lane[at] = (uint8_t)lane;
    }
    set_busy(fit, row_out(fit, pair.from), stage);
    set_busy(fit, row_in(fit, pair.to), stage);
    for (uint32_t i = 0; i < fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        set_link_busy(fit, links[i], stage);
    }
    raise_low(fit, &fit->low_out[fit->member_of[pair.from]], row_out(fit, pair.from));
    raise_low(fit, &fit->low_in[fit->member_of[pair.to]], row_in(fit, pair.to));
}

void fit_place(fit_t *fit, fit_pair_t pair, uint32_t stage, uint32_t lane)
{
    mark(fit, pair, stage, lane);
    own(fit, pair, stage, lane);
}

static void lower_low(uint32_t *low, uint32_t word)
{
    *low = word < *low ? word : *low;
}

void fit_remove(fit_t *fit, fit_pair_t pair, uint32_t stage)
{
    size_t at = (size_t)stage * fit->ranks + pair.from;
    const uint32_t *links = links_of(fit, pair, fit->lane != NULL ? fit->lane[at] : 0);

    fit->to[at] = FIT_NOBODY;
    give_back(fit, row_out(fit, pair.from), stage);
    give_back(fit, row_in(fit, pair.to), stage);
    for (uint32_t i = 0; i < fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        give_back_link(fit, links[i], stage, pair.from);
    }
    lower_low(&fit->low_out[fit->member_of[pair.from]], stage / 64);
    lower_low(&fit->low_in[fit->member_of[pair.to]], stage / 64);
}

/* Stage by stage, where the owners of a stage lie together: while pairs are placed here and there,
 * each of them would cost a cache miss. */
static void own_all(fit_t *fit)
{
    for (uint32_t stage = 0; stage < fit->stages; stage++) {
        for (uint32_t r = 0; r < fit->ranks; r++) {
            size_t at = (size_t)stage * fit->ranks + r;

            if (fit->to[at] != FIT_NOBODY) {
                own(fit, FIT_PAIR(r, fit->to[at]), stage, fit->lane != NULL ? fit->lane[at] : 0);
            }
        }
    }
}

uint32_t fit_first(fit_t *fit, fit_order next, const void *context, uint32_t count,
                   fit_pair_t *left, uint32_t room)
{
    uint32_t unplaced = 0;

    for (uint32_t i = 0; i < count; i++) {
        fit_pair_t pair;
        uint32_t stage, lane;

        if (!next(context, fit, i, &pair)) {
            continue;
        }
        stage = fit_find(fit, pair, 0, &lane);
        if (stage != UINT32_MAX) {
            mark(fit, pair, stage, lane);
        } else if (unplaced < room) {
            left[unplaced++] = pair;
        } else {
            return UINT32_MAX;
        }
    }
    own_all(fit);
    return unplaced;
}

#include <stdlib.h>
#include <string.h>

#include "fabric/fit.h"
#include "fabric/random.h"

/* Pairs still to place, and what each link has left to carry; buckets sort pairs by that. */
typedef struct pass {
    fit_t *fit;
    fit_pair_t *pairs, *sorted;
    uint32_t *load;  /* a bitmap row's link or cable: flows left */
    uint32_t *key;   /* pair -> its most loaded link's flows */
    uint32_t *start; /* bucket -> position */
    uint32_t count, most;
} pass_t;

static uint32_t cable_out(const fit_t *fit, fit_pair_t pair)
{
    return fit->paths->links + fit->member_of[pair.from];
}

static uint32_t cable_in(const fit_t *fit, fit_pair_t pair)
{
    return fit->paths->links + fit->paths->hosts + fit->member_of[pair.to];
}

static const uint32_t *links_of(const fit_t *fit, fit_pair_t pair)
{
    return ibshift_paths_links(fit->paths, fit->member_of[pair.from], fit->member_of[pair.to], 0);
}

static void change_load(pass_t *p, fit_pair_t pair, int by)
{
    const uint32_t *links = links_of(p->fit, pair);

    for (uint32_t i = 0; i < p->fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        p->load[links[i]] += (uint32_t)by;
    }
    p->load[cable_out(p->fit, pair)] += (uint32_t)by;
    p->load[cable_in(p->fit, pair)] += (uint32_t)by;
}

static uint32_t heaviest(const pass_t *p, fit_pair_t pair)
{
    const uint32_t *links = links_of(p->fit, pair);
    uint32_t out = p->load[cable_out(p->fit, pair)], in = p->load[cable_in(p->fit, pair)];
    uint32_t most = out > in ? out : in;

    for (uint32_t i = 0; i < p->fit->paths->width && links[i] != IBSHIFT_NO_LINK; i++) {
        most = p->load[links[i]] > most ? p->load[links[i]] : most;
    }
    return most;
}

static uint32_t hops(const fit_t *fit, fit_pair_t pair)
{
    const uint32_t *links = links_of(fit, pair);
    uint32_t count = 0;

    while (count < fit->paths->width && links[count] != IBSHIFT_NO_LINK) {
        count++;
    }
    return count;
}

/* A counting sort, heaviest first; pairs of the same weight keep their order. */
static void sort_pairs(pass_t *p)
{
    uint32_t span = p->fit->paths->width + 1, buckets = (p->most + 1) * span;

    memset(p->start, 0, (buckets + 1) * sizeof(*p->start));
    for (uint32_t i = 0; i < p->count; i++) {
        p->key[i] =
            (p->most - heaviest(p, p->pairs[i])) * span + span - 1 - hops(p->fit, p->pairs[i]);
        p->start[p->key[i] + 1]++;
    }
    for (uint32_t b = 0; b < buckets; b++) {
        p->start[b + 1] += p->start[b];
    }
    for (uint32_t i = 0; i < p->count; i++) {
        p->sorted[p->start[p->key[i]]++] = p->pairs[i];
    }
}

static bool fits(const fit_t *fit, fit_pair_t pair, uint32_t stage)
{
    const uint64_t *rows[FIT_ROWS];
    uint32_t count = fit_rows(fit, pair, 0, rows);

    for (uint32_t i = 0; i < count; i++) {
        if (rows[i][stage / 64] >> stage % 64 & 1) {
            return false;
        }
    }
    return true;
}

/* Fills one stage; what does not fit stays in pairs[]. */
static void fill_stage(pass_t *p, uint32_t stage)
{
    uint32_t kept = 0;

    sort_pairs(p);
    for (uint32_t i = 0; i < p->count; i++) {
        if (fits(p->fit, p->sorted[i], stage)) {
            fit_place(p->fit, p->sorted[i], stage, 0);
        } else {
            p->pairs[kept++] = p->sorted[i];
        }
    }
    p->count = kept;
}

static void drop_loads(pass_t *p, uint32_t stage)
{
    for (uint32_t r = 0; r < p->fit->ranks; r++) {
        uint16_t to = fit_to(p->fit, r, stage);

        if (to != FIT_NOBODY) {
            change_load(p, FIT_PAIR(r, to), -1);
        }
    }
}

static void list_pairs(pass_t *p, uint64_t seed)
{
    const fit_t *fit = p->fit;
    uint32_t rows = fit->paths->links + 2 * fit->paths->hosts;

    for (uint32_t from = 0; from < fit->ranks; from++) {
        for (uint32_t to = 0; to < fit->ranks; to++) {
            if (fit->member_of[from] != fit->member_of[to]) {
                p->pairs[p->count++] = FIT_PAIR(from, to);
                change_load(p, p->pairs[p->count - 1], 1);
            }
        }
    }
    for (uint32_t i = p->count; i > 1; i--) {
        uint32_t j = ibshift_random_below(&seed, i);
        fit_pair_t kept = p->pairs[i - 1];

        p->pairs[i - 1] = p->pairs[j];
        p->pairs[j] = kept;
    }
    for (uint32_t r = 0; r < rows; r++) {
        p->most = p->load[r] > p->most ? p->load[r] : p->most;
    }
}

uint32_t fit_stagewise(fit_t *fit, uint64_t seed)
{
    size_t pairs = (size_t)fit->ranks * fit->ranks;
    size_t rows = fit->paths->links + 2 * (size_t)fit->paths->hosts;
    pass_t p = {.fit = fit,
                .pairs = malloc(pairs * sizeof(*p.pairs)),
                .sorted = malloc(pairs * sizeof(*p.sorted)),
                .load = calloc(rows, sizeof(*p.load)),
                .key = malloc(pairs * sizeof(*p.key))};
    uint32_t stage = 0;

    if (p.pairs && p.sorted && p.load && p.key) {
        list_pairs(&p, seed);
        p.start = malloc(((p.most + 1) * (size_t)(fit->paths->width + 1) + 1) * sizeof(*p.start));
        for (; p.start != NULL && p.count > 0 && stage < fit->stages; stage++) {
            fill_stage(&p, stage);
            drop_loads(&p, stage);
        }
    }
    if (p.start == NULL || p.count > 0) {
        stage = UINT32_MAX;
    }
    free(p.start);
    free(p.key);
    free(p.load);
    free(p.sorted);
    free(p.pairs);
    return stage;
}

#include "fabric/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/fit.h"
#include "fabric/random.h"

#define STAGEWISE_WORK                                                                             \
    UINT64_C(400000000) /* pairs times stages that the stage-wise pass may look at */
#define HOPE         4  /* pairs a rank that first fit may leave for the walk to be worth trying */
#define COMPRESSED   1.01   /* of the bound: what the walk alone need not shorten */
#define NEAR         5      /* slacks that are worth trying where the bound is sharp */
#define SMALL_TABLE  100000 /* ranks times stages */
#define RANDOM_RANKS 4000   /* a random order of all pairs is kept for at most so many */

typedef struct search {
    const ibshift_paths_t *paths;
    const uint32_t *member_of, *sequence;
    uint32_t ranks, pairs;
    double bound;
    uint64_t seed;
    uint32_t *shuffled; /* pair numbers, or NULL */
    fit_pair_t *left;
    uint32_t room;
    fit_t best; /* .stages = 0: none yet */
    uint32_t best_stages;
    const char *method;
} search_t;

/* Pair i of the shift over the sequence. */
static bool shift_pair(const void *context, const fit_t *fit, uint32_t i, fit_pair_t *pair)
{
    const search_t *s = context;
    uint32_t place = i % s->ranks, distance = i / s->ranks;
    uint32_t from = s->sequence[place], to = s->sequence[(place + distance) % s->ranks];

    *pair = FIT_PAIR(from, to);
    return fit->member_of[from] != fit->member_of[to];
}

static bool random_pair(const void *context, const fit_t *fit, uint32_t i, fit_pair_t *pair)
{
    const search_t *s = context;

    return shift_pair(context, fit, s->shuffled[i], pair);
}

static void keep(search_t *s, fit_t *fit, uint32_t stages, const char *method)
{
    fit_close(&s->best);
    s->best = *fit;
    s->best_stages = stages;
    s->method = method;
    *fit = (fit_t){0};
}

/* A table of exactly so many stages: first fit, then the walk. 0, -EAGAIN (not found), -ENOMEM. */
static int try_stages(search_t *s, uint32_t stages, fit_order order, const char *method)
{
    fit_t fit;
    uint32_t left;
    int status = fit_open(&fit, s->paths, s->ranks, s->member_of, stages);

    if (status != 0) {
        return status;
    }
    left = fit_first(&fit, order, s, s->pairs, s->left, s->room);
    if (left <= HOPE * s->ranks) {
        left = fit_eject(&fit, s->left, left, s->room, 20000 + UINT64_C(40) * left, s->seed);
    }
    if (left == 0) {
        keep(s, &fit, stages, method);
    }
    fit_close(&fit);
    return left == 0 ? 0 : -EAGAIN;
}

static int shuffle_pairs(search_t *s)
{
    uint64_t seed = s->seed;

    if (s->shuffled == NULL) {
        s->shuffled = malloc((s->pairs + 1) * sizeof(*s->shuffled));
        if (s->shuffled == NULL) {
            return -ENOMEM;
        }
        for (uint32_t i = 0; i < s->pairs; i++) {
            s->shuffled[i] = i;
        }
        ibshift_random_shuffle(&seed, s->shuffled, s->pairs);
    }
    return 0;
}

static uint32_t stages_at(const search_t *s, double slack)
{
    uint32_t stages = (uint32_t)ceil(s->bound * slack - 1e-6);

    return stages > s->bound ? stages : (uint32_t)s->bound + 1;
}

/* Where destinations have several LIDs, the bound may be far below what can be reached. */
static int search_near_bound(search_t *s)
{
    static const double slack[] = {1.004, 1.01, 1.02, 1.03, 1.05, 1.1, 1.2, 1.4,
                                   1.7,   2,    2.5,  3,    4,    6,   8};
    size_t tries = ibshift_paths_have_lanes(s->paths) ? sizeof(slack) / sizeof(slack[0]) : NEAR;
    uint32_t tried = 0;
    int status = -EAGAIN;

    for (size_t i = 0; i < tries && status == -EAGAIN; i++) {
        uint32_t stages = stages_at(s, slack[i]);

        if (stages != tried) {
            status = try_stages(s, stages, shift_pair, "first fit from the shift");
        }
        if (status == -EAGAIN && i > 0 && s->ranks <= RANDOM_RANKS) {
            status = shuffle_pairs(s);
            status = status != 0
                         ? status
                         : try_stages(s, stages, random_pair, "first fit from a random order");
        }
        tried = stages;
    }
    return status;
}

/* Empties the stages from `stages` on and takes them away; their pairs come back in left[]. */
static uint32_t shrink(fit_t *fit, uint32_t stages, uint32_t used, fit_pair_t *left, uint32_t room)
{
    uint32_t count = 0;

    for (uint32_t stage = stages; stage < used; stage++) {
        for (uint32_t r = 0; r < fit->ranks; r++) {
            fit_pair_t pair = FIT_PAIR(r, fit_to(fit, r, stage));

            if (pair.to != FIT_NOBODY) {
                if (count == room) {
                    return UINT32_MAX;
                }
                fit_remove(fit, pair, stage);
                left[count++] = pair;
            }
        }
    }
    for (uint32_t row = 0; row < fit->rows; row++) {
        for (uint32_t stage = stages; stage < fit->stages; stage++) {
            fit->busy[(size_t)row * fit->words + stage / 64] |= UINT64_C(1) << stage % 64;
        }
    }
    return count;
}

static int copy_fit(const search_t *s, const fit_t *from, fit_t *to)
{
    size_t rows = from->rows;
    size_t cells = (size_t)from->ranks * from->stages;
    int status = fit_open(to, s->paths, s->ranks, s->member_of, from->stages);

    if (status == 0) {
        memcpy(to->busy, from->busy, rows * from->words * sizeof(*to->busy));
        memcpy(to->owner, from->owner, rows * from->stages * sizeof(*to->owner));
        memcpy(to->to, from->to, cells * sizeof(*to->to));
        if (to->lane != NULL) {
            memcpy(to->lane, from->lane, cells);
        }
    }
    return status;
}

/* One walk that leaves the best table so many stages. 0, -EAGAIN (not found), -ENOMEM. */
static int try_to_shorten(search_t *s, uint32_t stages, uint64_t seed, const char *method)
{
    fit_t fit;
    uint32_t left;
    int status = copy_fit(s, &s->best, &fit);

    if (status != 0) {
        return status;
    }
    left = shrink(&fit, stages, s->best_stages, s->left, s->room);
    if (left != UINT32_MAX) {
        left = fit_eject(&fit, s->left, left, s->room, 20000 + UINT64_C(60) * left, seed);
    }
    if (left == 0) {
        keep(s, &fit, stages, method);
    }
    fit_close(&fit);
    return left == 0 ? 0 : -EAGAIN;
}

/* Takes stages away from the best table, as many at a time as the walk can place elsewhere; walks
 * through a small table cost little, so the last stages get several. */
static int compress(search_t *s, const char *method)
{
    uint32_t floor = (uint32_t)ceil(s->bound - 1e-6), step = (s->best_stages - floor + 1) / 2;
    uint32_t extra = SMALL_TABLE / (s->ranks * s->best_stages);
    int status = 0;

    while (step > 0 && s->best_stages > floor && (status == 0 || status == -EAGAIN)) {
        uint32_t goal = s->best_stages - step > floor ? s->best_stages - step : floor;

        status = try_to_shorten(s, goal, s->seed + extra, method);
        if (status != -EAGAIN) {
            continue;
        }
        if (step > 1 || extra == 0) {
            step /= 2;
        } else {
            extra--;
        }
    }
    return status == -EAGAIN ? 0 : status;
}

static int search_stagewise(search_t *s)
{
    uint32_t stages = stages_at(s, 1.6), used;
    fit_t fit;
    int status;

    if ((uint64_t)s->pairs * stages > STAGEWISE_WORK) {
        return -EAGAIN;
    }
    status = fit_open(&fit, s->paths, s->ranks, s->member_of, stages);
    if (status != 0) {
        return status;
    }
    used = fit_stagewise(&fit, s->seed);
    if (used == UINT32_MAX) {
        fit_close(&fit);
        return -EAGAIN;
    }
    keep(s, &fit, used, "stage by stage");
    return compress(s, "stage by stage, then the walk");
}

/* Ranks of one member exchange in stages of their own, behind the others. */
static void add_local_stages(const search_t *s, uint32_t first, uint32_t stages,
                             ibshift_schedule_t *t)
{
    for (uint32_t i = 0, next; i < s->ranks; i = next) {
        uint32_t member = s->member_of[s->sequence[i]];

        for (next = i; next < s->ranks && s->member_of[s->sequence[next]] == member; next++) {
        }
        for (uint32_t turn = 1; turn < next - i; turn++) {
            for (uint32_t k = 0; k < next - i; k++) {
                uint32_t from = s->sequence[i + k], to = s->sequence[i + (k + turn) % (next - i)];

                t->to[(size_t)from * stages + first + turn - 1] = to;
                t->from[(size_t)to * stages + first + turn - 1] = from;
            }
        }
    }
}

static uint32_t most_on_member(const search_t *s)
{
    uint32_t most = 0;

    for (uint32_t i = 0, run = 0; i < s->ranks; i++) {
        bool same = i > 0 && s->member_of[s->sequence[i]] == s->member_of[s->sequence[i - 1]];

        run = same ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

static void write_cells(const search_t *s, uint32_t rank, uint32_t first, uint32_t end,
                        ibshift_schedule_t *t)
{
    uint32_t stages = t->table.stages;

    for (uint32_t stage = first; stage < end; stage++) {
        uint16_t to = fit_to(&s->best, rank, stage);

        if (to == FIT_NOBODY) {
            continue;
        }
        t->to[(size_t)rank * stages + stage] = to;
        t->from[(size_t)to * stages + stage] = rank;
        if (t->lanes != NULL) {
            t->lanes[(size_t)rank * stages + stage] = s->best.lane[(size_t)stage * s->ranks + rank];
        }
    }
}

static int write_table(const search_t *s, ibshift_schedule_t *t)
{
    uint32_t network = s->best_stages, stages = network + most_on_member(s) - 1;
    size_t cells = (size_t)s->ranks * stages;

    *t = (ibshift_schedule_t){.to = malloc(cells * sizeof(*t->to) + 1),
                              .from = malloc(cells * sizeof(*t->from) + 1),
                              .lanes = s->best.lane != NULL ? calloc(cells + 1, 1) : NULL,
                              .method = s->method};
    if (t->to == NULL || t->from == NULL || (s->best.lane != NULL && t->lanes == NULL)) {
        ibshift_schedule_free(t);
        return -ENOMEM;
    }
    t->table = (struct ibshift_stages){
        .stages = stages, .first = 0, .rows = s->ranks, .to = t->to, .from = t->from};
    memset(t->to, 0xff, cells * sizeof(*t->to));
    memset(t->from, 0xff, cells * sizeof(*t->from));
    for (uint32_t first = 0; first < network; first += 16) { /* a cache line of every row */
        uint32_t end = first + 16 < network ? first + 16 : network;

        for (uint32_t r = 0; r < s->ranks; r++) {
            write_cells(s, r, first, end, t);
        }
    }
    add_local_stages(s, network, stages, t);
    return 0;
}

int ibshift_schedule_make(const ibshift_paths_t *paths, uint32_t ranks, const uint32_t *member_of,
                          const uint32_t *sequence, double bound, uint64_t seed,
                          ibshift_schedule_t *schedule)
{
    search_t s = {.paths = paths,
                  .member_of = member_of,
                  .sequence = sequence,
                  .ranks = ranks,
                  .pairs = ranks * ranks,
                  .bound = bound,
                  .seed = seed};
    int status;

    if (ranks > IBSHIFT_SCHEDULE_RANKS || bound > 1 << 20) {
        return -E2BIG;
    }
    s.room = s.pairs / 4 + 64;
    s.left = malloc(s.room * sizeof(*s.left));
    status = s.left == NULL ? -ENOMEM : search_near_bound(&s);
    if (status == -EAGAIN) {
        status = search_stagewise(&s);
    } else if (status == 0 && s.best_stages > stages_at(&s, COMPRESSED) &&
               (uint64_t)s.ranks * s.best_stages <= SMALL_TABLE) {
        status = compress(&s, s.method);
    }
    if (status == 0) {
        status = write_table(&s, schedule);
    }
    fit_close(&s.best);
    free(s.left);
    free(s.shuffled);
    return status == -EAGAIN ? -EDOM : status;
}

void ibshift_schedule_free(ibshift_schedule_t *schedule)
{
    free(schedule->to);
    free(schedule->from);
    free(schedule->lanes);
    *schedule = (ibshift_schedule_t){0};
}

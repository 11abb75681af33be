#include "fabric/table/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/table/packing.h"
#include "fabric/table/prospect.h"

/*
 * Figures below: cost over the bound of tables for nine jobs of 50 to 432 ranks on damaged and whole
 * trees and on tori, as `ibshift fabric schedule` prints it.
 */
#define SEED 1

/*
 * Steps of the walk that may bring nothing before there is a stage more, times ranks, because a
 * step takes longer the more ranks there are; besides one step for each pair that is left. Without
 * these, tables cost up to 1 % more and are found in half of the time; with ten times as many they
 * cost up to 0.6 % less, and take four to eight times as long.
 */
#define WORK 1000000

struct search {
    struct ibshift_schedule_job job;
    struct ibshift_prospects prospects;
    uint32_t most_on_member;
    bool to_itself; /* every rank sends to itself too; each is on a member of its own */
    uint64_t pairs; /* that do not share a host */
    double held;    /* by the table of blocks that is being repaired */
    uint64_t seed;
    bool seeded;               /* the walk has asked the seed: another one may find another table */
    struct ibshift_pair *left; /* pairs that are not placed: of a quarter of all, or the walk gets
                                * no start: with a 64th tables cost up to 28 % more */
    uint32_t left_count, room;
    struct ibshift_packing packing;
};

/* Pair i of the shift over the sequence; false: no pair, they share a host. */
static bool shift_pair(const struct search *s, uint64_t i, struct ibshift_pair *pair)
{
    uint32_t place = (uint32_t)(i % s->job.ranks), to = place + (uint32_t)(i / s->job.ranks);

    *pair = IBSHIFT_PAIR(s->job.sequence[place],
                         s->job.sequence[to < s->job.ranks ? to : to - s->job.ranks]);
    return s->to_itself || s->job.member_of[pair->from] != s->job.member_of[pair->to];
}

/* What the stages take while they are filled. */
static double packing_size(const struct search *s, double stages)
{
    return stages * s->packing.slots / 8 +
           stages * s->job.ranks * (sizeof(*s->packing.to) + ibshift_paths_have_lmc(s->job.paths));
}

static double table_size(uint32_t ranks, double stages, bool both_ways, bool lids)
{
    return stages * ranks * (sizeof(uint32_t) * (both_ways ? 2 : 1) + lids);
}

/* With so many stages, while it searches or while it writes the table, whichever takes more. */
static double size_of(const struct search *s, double stages, bool owners)
{
    double table = table_size(s->job.ranks, stages, true, ibshift_paths_have_lmc(s->job.paths));
    double search = s->held + (double)s->room * sizeof(*s->left) +
                    (owners ? stages * s->packing.slots * sizeof(*s->packing.owner) : 0);

    return packing_size(s, stages) + fmax(table, search);
}

static int open_stages(struct search *s, uint32_t count, bool dear)
{
    double stages = (double)s->packing.stages + count;

    return size_of(s, stages, s->packing.owner != NULL) > (double)s->job.memory
               ? -E2BIG
               : ibshift_packing_add_stages(&s->packing, count, dear);
}

static void place_left(struct search *s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < s->left_count; i++) {
        if (!ibshift_packing_place_first(&s->packing, s->left[i])) {
            s->left[kept++] = s->left[i];
        }
    }
    s->left_count = kept;
}

/* More stages, dear ones if any pair that is left needs that. */
static int add_stages(struct search *s, uint32_t count)
{
    bool dear = false;
    int status;

    for (uint32_t i = 0; i < s->left_count && !dear; i++) {
        dear = ibshift_packing_is_dear(&s->packing, s->left[i]);
    }
    status = open_stages(s, count, dear);
    if (status == 0) {
        place_left(s);
    }
    return status;
}

/* Places what fits in the order of the shift, pairs that need dear stages before the others. */
static int first_fit(struct search *s)
{
    uint64_t pairs = (uint64_t)s->job.ranks * s->job.ranks;
    bool some_dear = s->packing.cost[1] > s->packing.cost[0];
    int status = 0;

    for (int pass = some_dear ? 0 : 1; pass < 2; pass++) {
        for (uint64_t i = 0; status == 0 && i < pairs; i++) {
            struct ibshift_pair pair;

            if (!shift_pair(s, i, &pair) ||
                (some_dear && ibshift_packing_is_dear(&s->packing, pair) != (pass == 0)) ||
                ibshift_packing_place_first(&s->packing, pair)) {
                continue;
            }
            s->left[s->left_count++] = pair;
            if (s->left_count == s->room / 2) { /* seldom; many at once, as it looks at all left */
                status = add_stages(s, 1 + s->packing.stages / 16);
            }
        }
    }
    return status;
}

/* Without memory for the owners nothing is moved. */
static int walk(struct search *s)
{
    int status = 0;

    if (size_of(s, s->packing.stages + 1, true) <= (double)s->job.memory) {
        status = ibshift_packing_own(&s->packing);
    } else {
        ibshift_packing_disown(&s->packing);
    }
    if (s->packing.owner != NULL) {
        s->seeded = true;
        s->left_count = ibshift_packing_walk(&s->packing, s->left, s->left_count, s->room,
                                             s->left_count + WORK / s->job.ranks, &s->seed);
    }
    return status;
}

/* Without pairs yet, at the prospect's costs. */
static int open_search(struct search *s, const struct ibshift_prospect *p, uint32_t dear,
                       uint32_t cheap)
{
    int status = ibshift_packing_open(&s->packing, s->job.paths, s->job.ranks, s->job.member_of,
                                      s->most_on_member > 1, p->cost);

    status = status == 0 ? open_stages(s, dear, true) : status;
    status = status == 0 ? open_stages(s, cheap, false) : status;
    if (status == 0) {
        s->left = malloc(s->room * sizeof(*s->left));
        status = s->left == NULL ? -ENOMEM : 0;
    }
    return status;
}

/* First fit, then the walk; a stage more whenever the walk has looked in vain at as many pairs as
 * are left, or, where these are few, for its share of the work. */
static int search(struct search *s)
{
    struct ibshift_prospect p = ibshift_prospect_find(&s->prospects);
    int status = open_search(s, &p, p.stages[1], p.stages[0]);

    status = status == 0 ? first_fit(s) : status;
    while (status == 0 && s->left_count > 0) {
        status = walk(s);
        if (status == 0 && s->left_count > 0) {
            status = add_stages(s, 1);
        }
    }
    return status;
}

static bool is_between(const struct search *s, uint32_t from, uint32_t to)
{
    return to != IBSHIFT_NO_RANK && s->job.member_of[from] != s->job.member_of[to];
}

/* Stages up to the last in which ranks of unlike members send. */
static uint32_t count_used_stages(const struct search *s, const struct ibshift_stages *table)
{
    uint32_t count = 0;

    for (uint32_t row = 0; row < table->rows; row++) {
        for (uint32_t stage = table->stages; stage > count; stage--) {
            if (is_between(s, row, table->to[(size_t)row * table->stages + stage - 1])) {
                count = stage;
            }
        }
    }
    return count;
}

/* Row after row, as ranks beside one another share links. */
static int keep_pairs(struct search *s, const struct ibshift_schedule *lifted, uint32_t stages)
{
    uint64_t pairs = 0;

    for (uint32_t row = 0; row < lifted->table.rows; row++) {
        for (uint32_t stage = 0; stage < stages; stage++) {
            size_t at = (size_t)row * lifted->table.stages + stage;
            struct ibshift_pair pair = IBSHIFT_PAIR(row, lifted->to[at]);
            uint32_t lid = lifted->lid_offsets != NULL ? lifted->lid_offsets[at] : 0;

            if (!is_between(s, row, lifted->to[at])) {
                continue;
            }
            pairs++;
            if (!ibshift_packing_place_at(&s->packing, pair, lid, stage)) {
                if (s->left_count == s->room / 2) {
                    return -EDOM;
                }
                s->left[s->left_count++] = pair;
            }
        }
    }
    return pairs == s->pairs ? 0 : -EDOM;
}

static bool is_last_empty(const struct ibshift_packing *packing)
{
    for (uint32_t r = 0; r < packing->ranks; r++) {
        if (ibshift_packing_to(packing, r, packing->stages - 1) != IBSHIFT_NOBODY) {
            return false;
        }
    }
    return true;
}

/* Stages that there may be if a lifted table's so many stay; 0: it has too many. A table with dear
 * stages does not say which they are. */
static uint32_t most_stages(struct search *s, uint32_t lifted, struct ibshift_prospect *p)
{
    double most;

    s->prospects.least = lifted;
    *p = ibshift_prospect_find(&s->prospects);
    most = IBSHIFT_REPAIR_ENOUGH * s->prospects.bound / p->cost[0] + 1e-6;
    return p->stages[1] > 0 || p->stages[0] > most ? 0 : (uint32_t)most;
}

/* The stages that there may be are there at once: what has no place in them is a search's. */
static int repair(struct search *s, const struct ibshift_schedule *lifted)
{
    struct ibshift_prospect p;
    uint32_t most = most_stages(s, count_used_stages(s, &lifted->table), &p);
    int status;

    if (most == 0) {
        return -EDOM;
    }
    status = open_search(s, &p, 0, most);
    status = status == 0 ? keep_pairs(s, lifted, s->prospects.least) : status;
    if (status == 0) {
        place_left(s);
    }
    if (status == 0 && s->left_count > 0) {
        status = walk(s);
    }
    while (status == 0 && s->packing.stages > 0 && is_last_empty(&s->packing)) {
        s->packing.stages--;
    }
    return status == 0 && s->left_count > 0 ? -EDOM : status;
}

/* Ranks of one member exchange in stages of their own, behind the others. */
static void add_local_stages(const struct search *s, uint32_t first, uint32_t stages,
                             struct ibshift_schedule *t)
{
    for (uint32_t i = 0, next; i < s->job.ranks; i = next) {
        uint32_t member = s->job.member_of[s->job.sequence[i]];

        for (next = i; next < s->job.ranks && s->job.member_of[s->job.sequence[next]] == member;
             next++) {
        }
        for (uint32_t turn = 1; turn < next - i; turn++) {
            for (uint32_t k = 0; k < next - i; k++) {
                uint32_t from = s->job.sequence[i + k],
                         to = s->job.sequence[i + (k + turn) % (next - i)];

                t->to[(size_t)from * stages + first + turn - 1] = to;
                t->from[(size_t)to * stages + first + turn - 1] = from;
            }
        }
    }
}

static void count_members(struct search *s)
{
    uint32_t least = s->job.ranks;

    for (uint32_t i = 0, next; i < s->job.ranks; i = next) {
        uint32_t member = s->job.member_of[s->job.sequence[i]];

        for (next = i; next < s->job.ranks && s->job.member_of[s->job.sequence[next]] == member;
             next++) {
        }
        s->most_on_member = next - i > s->most_on_member ? next - i : s->most_on_member;
        least = next - i < least ? next - i : least;
        s->pairs += (uint64_t)(next - i) * (s->job.ranks - (next - i));
    }
    s->prospects.sends = s->job.ranks - least + s->to_itself;
}

static void write_cells(const struct search *s, uint32_t rank, uint32_t first, uint32_t end,
                        struct ibshift_schedule *t)
{
    uint32_t stages = t->table.stages;

    for (uint32_t stage = first; stage < end; stage++) {
        uint16_t to = ibshift_packing_to(&s->packing, rank, stage);

        if (to == IBSHIFT_NOBODY) {
            continue;
        }
        t->to[(size_t)rank * stages + stage] = to;
        t->from[(size_t)to * stages + stage] = rank;
        if (t->lid_offsets != NULL) {
            t->lid_offsets[(size_t)rank * stages + stage] =
                s->packing.lid_offset[(size_t)stage * s->job.ranks + rank];
        }
    }
}

/* Empty. */
static int open_table(struct ibshift_schedule *t, uint32_t ranks, uint32_t stages, bool both_ways,
                      bool lids)
{
    size_t cells = (size_t)ranks * stages;

    *t = (struct ibshift_schedule){.to = malloc(cells * sizeof(*t->to) + 1),
                                   .from = both_ways ? malloc(cells * sizeof(*t->from) + 1) : NULL,
                                   .lid_offsets = lids ? calloc(cells + 1, 1) : NULL};
    if (t->to == NULL || (both_ways && t->from == NULL) || (lids && t->lid_offsets == NULL)) {
        ibshift_schedule_free(t);
        return -ENOMEM;
    }
    t->table =
        (struct ibshift_stages){.stages = stages, .rows = ranks, .to = t->to, .from = t->from};
    memset(t->to, 0xff, cells * sizeof(*t->to));
    if (both_ways) {
        memset(t->from, 0xff, cells * sizeof(*t->from));
    }
    return 0;
}

static int write_table(const struct search *s, struct ibshift_schedule *t)
{
    uint32_t network = s->packing.stages, stages = network + s->most_on_member - 1;
    int status = open_table(t, s->job.ranks, stages, true, s->packing.lid_offset != NULL);

    if (status != 0) {
        return status;
    }
    for (uint32_t first = 0; first < network; first += 16) { /* a cache line of every row */
        uint32_t end = first + 16 < network ? first + 16 : network;

        for (uint32_t r = 0; r < s->job.ranks; r++) {
            write_cells(s, r, first, end, t);
        }
    }
    add_local_stages(s, network, stages, t);
    return 0;
}

static int measure(struct search *s)
{
    if (s->job.ranks > IBSHIFT_SCHEDULE_RANKS) {
        return -E2BIG;
    }
    s->room = s->job.ranks * s->job.ranks / 4 + 64;
    count_members(s);
    return ibshift_prospects_open(s->job.paths, s->job.ranks, s->job.member_of, &s->prospects);
}

/* lifted NULL: a search. What only that needs is given back. */
static int place_pairs(struct search *s, const struct ibshift_schedule *lifted)
{
    int status = lifted != NULL ? repair(s, lifted) : search(s);

    ibshift_packing_disown(&s->packing);
    free(s->left);
    s->left = NULL;
    s->left_count = 0;
    return status;
}

/* Blocks send to one another, and each to itself, as their first ranks do: in as many stages for
 * one as a block has ranks, a shift within it. */
static void lift_block(const struct search *blocks, const uint32_t *sequence, uint32_t length,
                       uint32_t block, uint32_t stage, struct ibshift_schedule *t)
{
    uint32_t to = ibshift_packing_to(&blocks->packing, block, stage), stages = t->table.stages;

    for (uint32_t k = 0; to != IBSHIFT_NOBODY && k < length; k++) {
        size_t at = (size_t)sequence[block * length + k] * stages + (size_t)stage * length;

        for (uint32_t turn = 0; turn < length; turn++) {
            uint32_t peer = sequence[to * length + (k + turn) % length];

            t->to[at + turn] = peer != sequence[block * length + k] ? peer : IBSHIFT_NO_RANK;
            if (t->lid_offsets != NULL) {
                t->lid_offsets[at + turn] =
                    blocks->packing.lid_offset[(size_t)stage * blocks->job.ranks + block];
            }
        }
    }
}

static int lift(const struct search *blocks, const uint32_t *sequence, uint32_t length,
                struct ibshift_schedule *t)
{
    int status = open_table(t, blocks->job.ranks * length, blocks->packing.stages * length, false,
                            blocks->packing.lid_offset != NULL);

    for (uint32_t block = 0; status == 0 && block < blocks->job.ranks; block++) {
        for (uint32_t stage = 0; stage < blocks->packing.stages; stage++) {
            lift_block(blocks, sequence, length, block, stage, t);
        }
    }
    return status;
}

static int lift_and_repair(struct search *s, struct search *blocks, uint32_t length,
                           struct ibshift_schedule *schedule)
{
    struct ibshift_schedule lifted = {.to = NULL};
    double size = table_size(s->job.ranks, (double)blocks->packing.stages * length, false,
                             blocks->packing.lid_offset != NULL);
    int status = packing_size(blocks, blocks->packing.stages) + size > (double)s->job.memory
                     ? -E2BIG
                     : lift(blocks, s->job.sequence, length, &lifted);

    ibshift_packing_close(&blocks->packing);
    if (status == 0) {
        s->held = size;
        status = place_pairs(s, &lifted);
    }
    ibshift_schedule_free(&lifted); /* a written table takes its place */
    status = status == 0 ? write_table(s, schedule) : status;
    ibshift_packing_close(&s->packing);
    return status;
}

/* Few blocks are soon searched again, and a stage of theirs is many; a repair takes longer. */
enum { FEW_BLOCKS = 64, BLOCKS_TRIED = 16, REPAIRS_TRIED = 2 };

/* Tables of the blocks' first ranks, until one has few enough stages and can be repaired, or
 * another seed cannot help. same: each rank is itself. */
static int try_blocks(struct search *s, uint32_t length, const uint32_t *first,
                      const uint32_t *same, struct ibshift_schedule *schedule)
{
    const struct search measured = *s;
    uint32_t count = s->job.ranks / length, repairs = 0;
    uint32_t tries = count <= FEW_BLOCKS ? BLOCKS_TRIED : 1;
    int status = -EDOM;
    bool again = true;

    for (uint32_t t = 0; t < tries && again && repairs < REPAIRS_TRIED; t++) {
        struct search blocks = {.job = s->job, .to_itself = true, .seed = SEED + t};
        struct ibshift_prospect p;

        blocks.job.ranks = count;
        blocks.job.member_of = first;
        blocks.job.sequence = same;
        *s = measured;
        s->seed = SEED + t;
        status = measure(&blocks);
        status = status == 0 ? place_pairs(&blocks, NULL) : status;
        if (status == 0 && most_stages(s, blocks.packing.stages * length, &p) > 0) {
            status = lift_and_repair(s, &blocks, length, schedule);
            repairs++;
        } else if (status == 0) {
            status = -EDOM;
        }
        ibshift_packing_close(&blocks.packing);
        again = status == -EDOM && (blocks.seeded || s->seeded);
    }
    return status;
}

static int make_of_blocks(struct search *s, struct ibshift_schedule *schedule)
{
    uint32_t ranks = s->job.ranks, length = s->job.block;
    const uint32_t *sequence = s->job.sequence;
    uint32_t *same = malloc((size_t)ranks * sizeof(*same) + 1);
    uint32_t *first = malloc((size_t)ranks * sizeof(*first) + 1);
    int status = same == NULL || first == NULL ? -ENOMEM : 0;

    for (uint32_t r = 0; status == 0 && r < ranks; r++) {
        same[r] = r;
        first[r / length] = s->job.member_of[sequence[r / length * length]];
    }
    status = status == 0 ? try_blocks(s, length, first, same, schedule) : status;
    free(same);
    free(first);
    return status;
}

int ibshift_schedule_make(const struct ibshift_schedule_job *job, struct ibshift_schedule *schedule)
{
    struct search s = {.job = *job, .seed = SEED};
    int status = measure(&s);

    if (status == 0 && job->block > 0) {
        return make_of_blocks(&s, schedule);
    }
    status = status == 0 ? place_pairs(&s, NULL) : status;
    status = status == 0 ? write_table(&s, schedule) : status;
    ibshift_packing_close(&s.packing);
    return status;
}

void ibshift_schedule_free(struct ibshift_schedule *schedule)
{
    free(schedule->to);
    free(schedule->from);
    free(schedule->lid_offsets);
    *schedule = (struct ibshift_schedule){0};
}

#include "fabric/table/schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/table/packing.h"

/*
 * Figures below: cost over the bound of tables for nine jobs of 50 to 432 ranks on damaged and whole
 * trees and on tori, as `ibshift fabric schedule` prints it.
 */
#define KINDS    16       /* different costs of links that are told apart: speeds times widths */
#define AS_CHEAP 1.000001 /* the same price, but for the rounding of floats */

/*
 * Steps of the walk that may bring nothing before there is a stage more, times ranks, because a
 * step takes longer the more ranks there are; besides one step for each pair that is left. Without
 * these, tables cost up to 1 % more and are found in half of the time; with ten times as many they
 * cost up to 0.6 % less, and take four to eight times as long.
 */
#define WORK 1000000

/* Links of one cost: what the fullest of them carries. */
struct kind {
    double cost, flows;
};

/* Stages that an all-to-all needs at the least if they are paid at these costs. */
struct prospect {
    float cost[2];
    uint32_t stages[2]; /* cheap ones, dear ones */
    double price;
};

struct search {
    const struct ibshift_paths *paths;
    const uint32_t *member_of, *sequence;
    uint32_t ranks, most_on_member;
    uint32_t sends; /* of the rank that sends to most others */
    uint32_t least; /* stages that there are to be */
    bool to_itself; /* every rank sends to itself too; each is on a member of its own */
    uint64_t pairs; /* that do not share a host */
    double bound;
    size_t memory;
    double held; /* by the table of blocks that is being repaired */
    uint64_t seed;
    bool seeded; /* the walk has asked the seed: another one may find another table */
    struct kind kinds[KINDS];
    uint32_t kind_count;
    struct ibshift_pair *left; /* pairs that are not placed: of a quarter of all, or the walk gets
                                * no start: with a 64th tables cost up to 28 % more */
    uint32_t left_count, room;
    struct ibshift_packing packing;
};

static struct search search_of(const struct ibshift_paths *paths, uint32_t ranks,
                               const uint32_t *member_of, const uint32_t *sequence, size_t memory,
                               uint64_t seed)
{
    return (struct search){.paths = paths,
                           .member_of = member_of,
                           .sequence = sequence,
                           .ranks = ranks,
                           .memory = memory,
                           .seed = seed};
}

/* A cost that is not told apart any more counts as the dearest one. */
static void add_kind(struct search *s, double cost, double flows)
{
    uint32_t k = 0;

    while (k < s->kind_count && k < KINDS - 1 && fabs(s->kinds[k].cost - cost) > 1e-3 * cost) {
        k++;
    }
    if (k == s->kind_count) {
        s->kinds[s->kind_count++] = (struct kind){cost, flows};
    }
    s->kinds[k].cost = cost > s->kinds[k].cost ? cost : s->kinds[k].cost;
    s->kinds[k].flows = flows > s->kinds[k].flows ? flows : s->kinds[k].flows;
}

static int find_kinds(struct search *s)
{
    uint32_t links = s->paths->links + s->paths->hosts;
    double *loads;
    int status = ibshift_alltoall_loads(s->paths, s->ranks, s->member_of, &loads);

    for (uint32_t i = 0; status == 0 && i < links; i++) {
        double cost = ibshift_contention_cost(s->paths, i);

        add_kind(s, cost, loads[i]);
        s->bound = fmax(s->bound, cost * loads[i]);
    }
    if (status == 0) {
        free(loads);
    }
    return status;
}

/* Rounds up the stages that so many flows need. */
static double stages_for(double flows, uint32_t capacity)
{
    return flows > 0 ? ceil(flows / capacity - 1e-6) : 0;
}

/* Stages at this cost, and dear ones for flows that do not fit into these. */
static struct prospect prospect_at(const struct search *s, double cheap)
{
    double dear = cheap, many[2] = {0, 0};

    for (uint32_t k = 0; k < s->kind_count; k++) {
        dear = fmax(dear, s->kinds[k].cost);
    }
    for (uint32_t k = 0; k < s->kind_count; k++) {
        if (ibshift_packing_capacity(cheap, s->kinds[k].cost) == 0) {
            many[1] = fmax(many[1], stages_for(s->kinds[k].flows,
                                               ibshift_packing_capacity(dear, s->kinds[k].cost)));
        }
    }
    for (uint32_t k = 0; k < s->kind_count; k++) {
        uint32_t capacity = ibshift_packing_capacity(cheap, s->kinds[k].cost);
        double in_dear = many[1] * ibshift_packing_capacity(dear, s->kinds[k].cost);

        many[0] =
            fmax(many[0], capacity > 0 ? stages_for(s->kinds[k].flows - in_dear, capacity) : 0);
    }
    many[0] = fmax(many[0], (s->sends > s->least ? s->sends : s->least) - many[1]);
    return (struct prospect){{(float)cheap, (float)dear},
                             {(uint32_t)many[0], (uint32_t)many[1]},
                             many[0] * cheap + many[1] * dear};
}

/* Is a better than b? Among those that cost the same: the fewest stages in which a rank's own are
 * at most half of them, for then the search is easy; else the most. Always the fewest cost up to
 * 7 % more, always the most up to 3 %. */
static bool is_better(const struct search *s, const struct prospect *a, const struct prospect *b,
                      double least)
{
    uint32_t many = a->stages[0] + a->stages[1], others = b->stages[0] + b->stages[1];
    bool roomy = many >= 2 * s->sends, other_roomy = others >= 2 * s->sends;

    if (a->price > AS_CHEAP * least || b->price > AS_CHEAP * least) {
        return a->price < b->price;
    }
    return roomy && other_roomy ? many < others : many > others;
}

/* All costs in which some link's flows fit without a rest; twice, for the least price comes first.
 */
static struct prospect find_prospect(const struct search *s)
{
    struct prospect best = {.price = INFINITY};
    double least = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t k = 0; k < s->kind_count; k++) {
            for (uint32_t flows = 1; flows <= IBSHIFT_PACKING_SLOTS; flows++) {
                struct prospect p = prospect_at(s, flows * s->kinds[k].cost);

                if (is_better(s, &p, &best, least)) {
                    best = p;
                }
                if (p.stages[1] == 0 && p.cost[0] * s->sends > AS_CHEAP * best.price) {
                    break;
                }
            }
        }
        least = best.price;
    }
    return best;
}

/* Pair i of the shift over the sequence; false: no pair, they share a host. */
static bool shift_pair(const struct search *s, uint64_t i, struct ibshift_pair *pair)
{
    uint32_t place = (uint32_t)(i % s->ranks), to = place + (uint32_t)(i / s->ranks);

    *pair = IBSHIFT_PAIR(s->sequence[place], s->sequence[to < s->ranks ? to : to - s->ranks]);
    return s->to_itself || s->member_of[pair->from] != s->member_of[pair->to];
}

/* What the stages take while they are filled. */
static double packing_size(const struct search *s, double stages)
{
    return stages * s->packing.slots / 8 +
           stages * s->ranks * (sizeof(*s->packing.to) + ibshift_paths_have_lmc(s->paths));
}

static double table_size(uint32_t ranks, double stages, bool both_ways, bool lids)
{
    return stages * ranks * (sizeof(uint32_t) * (both_ways ? 2 : 1) + lids);
}

/* With so many stages, while it searches or while it writes the table, whichever takes more. */
static double size_of(const struct search *s, double stages, bool owners)
{
    double table = table_size(s->ranks, stages, true, ibshift_paths_have_lmc(s->paths));
    double search = s->held + (double)s->room * sizeof(*s->left) +
                    (owners ? stages * s->packing.slots * sizeof(*s->packing.owner) : 0);

    return packing_size(s, stages) + fmax(table, search);
}

static int open_stages(struct search *s, uint32_t count, bool dear)
{
    double stages = (double)s->packing.stages + count;

    return size_of(s, stages, s->packing.owner != NULL) > (double)s->memory
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
    uint64_t pairs = (uint64_t)s->ranks * s->ranks;
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

    if (size_of(s, s->packing.stages + 1, true) <= (double)s->memory) {
        status = ibshift_packing_own(&s->packing);
    } else {
        ibshift_packing_disown(&s->packing);
    }
    if (s->packing.owner != NULL) {
        s->seeded = true;
        s->left_count = ibshift_packing_walk(&s->packing, s->left, s->left_count, s->room,
                                             s->left_count + WORK / s->ranks, &s->seed);
    }
    return status;
}

/* First fit, then the walk; a stage more whenever the walk has looked in vain at as many pairs as
 * are left, or, where these are few, for its share of the work. */
static int search(struct search *s)
{
    struct prospect p = find_prospect(s);
    int status = ibshift_packing_open(&s->packing, s->paths, s->ranks, s->member_of,
                                      s->most_on_member > 1, p.cost);

    status = status == 0 ? open_stages(s, p.stages[1], true) : status;
    status = status == 0 ? open_stages(s, p.stages[0], false) : status;
    if (status == 0) {
        s->left = malloc(s->room * sizeof(*s->left));
        status = s->left == NULL ? -ENOMEM : first_fit(s);
    }
    while (status == 0 && s->left_count > 0) {
        status = walk(s);
        if (status == 0 && s->left_count > 0) {
            status = add_stages(s, 1);
        }
    }
    return status;
}

/* A table that was made for other routes or for more ranks. */
struct old_table {
    const struct ibshift_stages *table;
    const uint8_t *lid_offsets;
    const uint32_t *now; /* its rank -> rank, or IBSHIFT_NO_RANK */
};

/* Whom the old rank sent to in this stage; false: nobody that is there now, or on the same host. */
static bool old_pair(const struct search *s, const struct old_table *old, uint32_t row,
                     uint32_t stage, struct ibshift_pair *pair)
{
    uint32_t to = old->table->to[(size_t)row * old->table->stages + stage];

    if (old->now[row] == IBSHIFT_NO_RANK || to == IBSHIFT_NO_RANK ||
        old->now[to] == IBSHIFT_NO_RANK) {
        return false;
    }
    *pair = IBSHIFT_PAIR(old->now[row], old->now[to]);
    return s->member_of[pair->from] != s->member_of[pair->to];
}

static uint32_t old_lid(const struct old_table *old, uint32_t row, uint32_t stage)
{
    return old->lid_offsets != NULL ? old->lid_offsets[(size_t)row * old->table->stages + stage]
                                    : 0;
}

/* Without those at the end in which ranks exchange within their hosts. */
static uint32_t count_old_stages(const struct search *s, const struct old_table *old)
{
    struct ibshift_pair pair;
    uint32_t count = 0;

    for (uint32_t row = 0; row < old->table->rows; row++) {
        for (uint32_t stage = old->table->stages; stage > count; stage--) {
            if (old_pair(s, old, row, stage - 1, &pair)) {
                count = stage;
            }
        }
    }
    return count;
}

/* Row after row, as ranks beside one another share links. */
static int keep_old(struct search *s, const struct old_table *old, uint32_t stages)
{
    struct ibshift_pair pair;
    uint64_t pairs = 0;

    for (uint32_t row = 0; row < old->table->rows; row++) {
        for (uint32_t stage = 0; stage < stages; stage++) {
            if (!old_pair(s, old, row, stage, &pair)) {
                continue;
            }
            pairs++;
            if (!ibshift_packing_place_at(&s->packing, pair, old_lid(old, row, stage), stage)) {
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

/* Stages that there may be if an old table's so many stay; 0: it has too many. A table with dear
 * stages does not say which they are. */
static uint32_t most_stages(struct search *s, uint32_t old, struct prospect *p)
{
    double most;

    s->least = old;
    *p = find_prospect(s);
    most = IBSHIFT_REPAIR_ENOUGH * s->bound / p->cost[0] + 1e-6;
    return p->stages[1] > 0 || p->stages[0] > most ? 0 : (uint32_t)most;
}

/* The stages that there may be are there at once: what has no place in them is a search's. */
static int repair(struct search *s, const struct old_table *old)
{
    struct prospect p;
    uint32_t most = most_stages(s, count_old_stages(s, old), &p);
    int status;

    if (most == 0) {
        return -EDOM;
    }
    status = ibshift_packing_open(&s->packing, s->paths, s->ranks, s->member_of,
                                  s->most_on_member > 1, p.cost);
    status = status == 0 ? open_stages(s, most, false) : status;
    if (status == 0) {
        s->left = malloc(s->room * sizeof(*s->left));
        status = s->left == NULL ? -ENOMEM : keep_old(s, old, s->least);
    }
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

static void count_members(struct search *s)
{
    uint32_t least = s->ranks;

    for (uint32_t i = 0, next; i < s->ranks; i = next) {
        uint32_t member = s->member_of[s->sequence[i]];

        for (next = i; next < s->ranks && s->member_of[s->sequence[next]] == member; next++) {
        }
        s->most_on_member = next - i > s->most_on_member ? next - i : s->most_on_member;
        least = next - i < least ? next - i : least;
        s->pairs += (uint64_t)(next - i) * (s->ranks - (next - i));
    }
    s->sends = s->ranks - least + s->to_itself;
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
                s->packing.lid_offset[(size_t)stage * s->ranks + rank];
        }
    }
}

static int write_table(const struct search *s, struct ibshift_schedule *t)
{
    uint32_t network = s->packing.stages, stages = network + s->most_on_member - 1;
    size_t cells = (size_t)s->ranks * stages;

    *t = (struct ibshift_schedule){.to = malloc(cells * sizeof(*t->to) + 1),
                                   .from = malloc(cells * sizeof(*t->from) + 1),
                                   .lid_offsets =
                                       s->packing.lid_offset != NULL ? calloc(cells + 1, 1) : NULL};
    if (t->to == NULL || t->from == NULL ||
        (s->packing.lid_offset != NULL && t->lid_offsets == NULL)) {
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

static int measure(struct search *s)
{
    if (s->ranks > IBSHIFT_SCHEDULE_RANKS) {
        return -E2BIG;
    }
    s->room = s->ranks * s->ranks / 4 + 64;
    count_members(s);
    return find_kinds(s);
}

/* old NULL: a search. What only that needs is given back. */
static int place_pairs(struct search *s, const struct old_table *old)
{
    int status = old != NULL ? repair(s, old) : search(s);

    ibshift_packing_disown(&s->packing);
    free(s->left);
    s->left = NULL;
    s->left_count = 0;
    return status;
}

static int make_table(struct search *s, const struct old_table *old,
                      struct ibshift_schedule *schedule)
{
    int status = measure(s);

    status = status == 0 ? place_pairs(s, old) : status;
    status = status == 0 ? write_table(s, schedule) : status;
    ibshift_packing_close(&s->packing);
    return status;
}

int ibshift_schedule_make(const struct ibshift_paths *paths, uint32_t ranks,
                          const uint32_t *member_of, const uint32_t *sequence, size_t memory,
                          uint64_t seed, struct ibshift_schedule *schedule)
{
    struct search s = search_of(paths, ranks, member_of, sequence, memory, seed);

    return make_table(&s, NULL, schedule);
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
                    blocks->packing.lid_offset[(size_t)stage * blocks->ranks + block];
            }
        }
    }
}

static int lift(const struct search *blocks, const uint32_t *sequence, uint32_t length,
                struct ibshift_schedule *t)
{
    uint32_t ranks = blocks->ranks * length;
    uint32_t stages = blocks->packing.stages * length;
    size_t cells = (size_t)ranks * stages;
    bool lids = blocks->packing.lid_offset != NULL;

    *t = (struct ibshift_schedule){.to = malloc(cells * sizeof(*t->to) + 1),
                                   .lid_offsets = lids ? calloc(cells + 1, 1) : NULL};
    if (t->to == NULL || (lids && t->lid_offsets == NULL)) {
        return -ENOMEM;
    }
    memset(t->to, 0xff, cells * sizeof(*t->to));
    t->table = (struct ibshift_stages){.stages = stages, .rows = ranks, .to = t->to};
    for (uint32_t block = 0; block < blocks->ranks; block++) {
        for (uint32_t stage = 0; stage < blocks->packing.stages; stage++) {
            lift_block(blocks, sequence, length, block, stage, t);
        }
    }
    return 0;
}

static int lift_and_repair(struct search *s, struct search *blocks, uint32_t length,
                           const uint32_t *same, struct ibshift_schedule *schedule)
{
    struct ibshift_schedule lifted = {.to = NULL};
    double size = table_size(s->ranks, (double)blocks->packing.stages * length, false,
                             blocks->packing.lid_offset != NULL);
    int status = packing_size(blocks, blocks->packing.stages) + size > (double)s->memory
                     ? -E2BIG
                     : lift(blocks, s->sequence, length, &lifted);

    ibshift_packing_close(&blocks->packing);
    if (status == 0) {
        s->held = size;
        status = place_pairs(s, &(struct old_table){&lifted.table, lifted.lid_offsets, same});
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
    uint32_t count = s->ranks / length, repairs = 0;
    uint32_t tries = count <= FEW_BLOCKS ? BLOCKS_TRIED : 1;
    int status = -EDOM;
    bool again = true;

    for (uint32_t t = 0; t < tries && again && repairs < REPAIRS_TRIED; t++) {
        struct search blocks =
            search_of(s->paths, count, first, same, s->memory, measured.seed + t);
        struct prospect p;

        blocks.to_itself = true;
        *s = measured;
        s->seed += t;
        status = measure(&blocks);
        status = status == 0 ? place_pairs(&blocks, NULL) : status;
        if (status == 0 && most_stages(s, blocks.packing.stages * length, &p) > 0) {
            status = lift_and_repair(s, &blocks, length, same, schedule);
            repairs++;
        } else if (status == 0) {
            status = -EDOM;
        }
        ibshift_packing_close(&blocks.packing);
        again = status == -EDOM && (blocks.seeded || s->seeded);
    }
    return status;
}

int ibshift_schedule_make_of_blocks(const struct ibshift_paths *paths, uint32_t ranks,
                                    const uint32_t *member_of, const uint32_t *sequence,
                                    uint32_t length, size_t memory, uint64_t seed,
                                    struct ibshift_schedule *schedule)
{
    struct search s = search_of(paths, ranks, member_of, sequence, memory, seed);
    uint32_t *same = malloc((size_t)ranks * sizeof(*same) + 1);
    uint32_t *first = malloc((size_t)ranks * sizeof(*first) + 1);
    int status = same == NULL || first == NULL ? -ENOMEM : measure(&s);

    for (uint32_t r = 0; status == 0 && r < ranks; r++) {
        same[r] = r;
        first[r / length] = member_of[sequence[r / length * length]];
    }
    status = status == 0 ? try_blocks(&s, length, first, same, schedule) : status;
    free(same);
    free(first);
    return status;
}

int ibshift_schedule_repair(const struct ibshift_paths *paths, uint32_t ranks,
                            const uint32_t *member_of, const uint32_t *sequence, size_t memory,
                            uint64_t seed, const struct ibshift_schedule *was, const uint32_t *now,
                            struct ibshift_schedule *schedule)
{
    struct old_table old = {&was->table, was->lid_offsets, now};
    double held =
        table_size(was->table.rows, was->table.stages, was->from != NULL, was->lid_offsets != NULL);
    struct search s = search_of(paths, ranks, member_of, sequence, memory, seed);

    if (held > (double)memory) {
        return -E2BIG;
    }
    s.memory -= (size_t)held; /* the caller keeps it */
    return make_table(&s, &old, schedule);
}

void ibshift_schedule_free(struct ibshift_schedule *schedule)
{
    free(schedule->to);
    free(schedule->from);
    free(schedule->lid_offsets);
    *schedule = (struct ibshift_schedule){0};
}

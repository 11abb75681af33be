/*
 * V-variants by node and from rank to rank: random matrices of sizes with zeros, empty ranks and one giant block, on nodes of all
 * kinds, short and long blocks by a random boundary; again with other data; and sizes that do not match, which are named.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/mixed.h"
#include "nodes.h"
#include "world.h"
#include "unit.h"

enum { ROUNDS = 1500, RANKS_MOST = 26, MANY_TURNS = 400000, QUIET_TURNS = 3000, COMM = 5, GAP = 3 };

static uint64_t seed;

static const char *const rows[][2] = {
    [IBSHIFT_GATHER] = {"by_node_linear", "linear"},
    [IBSHIFT_SCATTER] = {"by_node_linear", "linear"},
    [IBSHIFT_ALLTOALL] = {"by_node", "linear"},
};

struct one { /* rank */
    struct ibshift_mixed mixed;
    struct ibshift_op op;
    void *memory[IBSHIFT_MIXED_MEMORIES];
    size_t *lengths[2];
    ptrdiff_t *places[2];
    char *buffer[2];
    size_t bytes[2];
    int rc; /* of its last step; 1: it runs */
    bool has_begun;
};

struct all {
    enum ibshift_collective collective;
    uint32_t ranks, root;
    size_t *sizes; /* from, to */
    struct ibshift_nodes nodes;
    uint32_t *peers;
    struct world *world;
    struct one *one;
};

static void *reserve(void *owner, enum ibshift_mixed_memory which, size_t bytes)
{
    struct one *one = owner;

    free(one->memory[which]);
    return one->memory[which] = malloc(bytes);
}

static bool is_pair(const struct all *all, uint32_t from, uint32_t to)
{
    return all->collective == IBSHIFT_ALLTOALL ||
           (all->collective == IBSHIFT_GATHER ? to : from) == all->root;
}

enum matrix { EQUAL, ZEROS, GIANT, EMPTY, SPARSE, ANY, MATRICES };

static void draw_sizes(struct all *all, uint64_t *random)
{
    enum matrix kind = world_random_below(random, MATRICES);
    uint32_t equal = world_random_below(random, 40), odd = world_random_below(random, all->ranks);

    for (uint32_t i = 0; i < all->ranks * all->ranks; i++) {
        uint32_t from = i / all->ranks, to = i % all->ranks;

        all->sizes[i] = kind == EQUAL                                 ? equal
                        : kind == ZEROS                               ? 0
                        : kind == EMPTY && (from == odd || to == odd) ? 0
                        : kind == SPARSE && world_random_below(random, 8)
                            ? 0
                            : world_random_below(random, 40);
        if (kind == GIANT && i == odd * all->ranks + world_random_below(random, all->ranks)) {
            all->sizes[i] = 20000;
        }
    }
}

/* The other rank's block of a side. */
static size_t size_of(const struct all *all, int side, uint32_t rank, uint32_t block)
{
    bool is_whole = all->collective == IBSHIFT_ALLTOALL || rank == all->root;
    uint32_t other = is_whole && (all->collective == IBSHIFT_ALLTOALL ||
                                  (side == IBSHIFT_SEND) == (all->collective == IBSHIFT_SCATTER))
                         ? block
                         : all->root;

    return side == IBSHIFT_SEND ? all->sizes[rank * all->ranks + other]
                                : all->sizes[other * all->ranks + rank];
}

static uint32_t blocks_of(const struct all *all, int side, uint32_t rank)
{
    bool has_all = all->collective == IBSHIFT_ALLTOALL ||
                   (side == IBSHIFT_SEND) == (all->collective == IBSHIFT_SCATTER);

    return !has_all ? 1 : all->collective == IBSHIFT_ALLTOALL || rank == all->root ? all->ranks : 0;
}

static char byte_of(uint32_t from, uint32_t to, size_t i, uint32_t run)
{
    return (char)(from * 31 + to * 17 + i * 7 + run * 5);
}

/* Whose blocks: gather's root has one of each rank, and so on. */
static void pair_of(const struct all *all, int side, uint32_t rank, uint32_t block, uint32_t *from,
                    uint32_t *to)
{
    uint32_t other = blocks_of(all, side, rank) > 1 || all->ranks == 1 ? block : all->root;

    *from = side == IBSHIFT_SEND ? rank : other;
    *to = side == IBSHIFT_SEND ? other : rank;
}

static void make_side(struct all *all, uint32_t rank, int side, bool has_gaps, uint64_t *random)
{
    struct one *one = &all->one[rank];
    uint32_t blocks = blocks_of(all, side, rank), turn = world_random_below(random, all->ranks);

    one->lengths[side] = calloc(blocks + 1, sizeof(size_t));
    one->places[side] = calloc(blocks + 1, sizeof(ptrdiff_t));
    one->bytes[side] = 0;
    for (uint32_t i = 0; i < blocks; i++) { /* not in the order of ranks, where there are gaps */
        uint32_t block = has_gaps ? (i + turn) % blocks : i;

        one->lengths[side][block] = size_of(all, side, rank, block);
        one->places[side][block] = (ptrdiff_t)one->bytes[side];
        one->bytes[side] += one->lengths[side][block] + (has_gaps ? GAP : 0);
    }
    one->buffer[side] = malloc(one->bytes[side] + 1);
    one->mixed.sides[side] = (struct ibshift_mixed_side){one->buffer[side], blocks,
                                                         one->lengths[side], one->places[side]};
}

static void fill(const struct all *all, uint32_t rank, uint32_t run)
{
    struct one *one = &all->one[rank];
    uint32_t from, to;

    memset(one->buffer[IBSHIFT_RECV], 0x55, one->bytes[IBSHIFT_RECV]);
    for (uint32_t block = 0; block < one->mixed.sides[IBSHIFT_SEND].blocks; block++) {
        pair_of(all, IBSHIFT_SEND, rank, block, &from, &to);
        for (size_t i = 0; i < one->lengths[IBSHIFT_SEND][block]; i++) {
            one->buffer[IBSHIFT_SEND][one->places[IBSHIFT_SEND][block] + (ptrdiff_t)i] =
                byte_of(from, to, i, run);
        }
    }
}

/* Each block, and nothing beside them. */
static void verify(const struct all *all, uint32_t rank, uint32_t run)
{
    const struct one *one = &all->one[rank];
    char *expected = malloc(one->bytes[IBSHIFT_RECV] + 1);
    uint32_t from, to;

    memset(expected, 0x55, one->bytes[IBSHIFT_RECV]);
    for (uint32_t block = 0; block < one->mixed.sides[IBSHIFT_RECV].blocks; block++) {
        pair_of(all, IBSHIFT_RECV, rank, block, &from, &to);
        for (size_t i = 0; i < one->lengths[IBSHIFT_RECV][block]; i++) {
            expected[one->places[IBSHIFT_RECV][block] + (ptrdiff_t)i] = byte_of(from, to, i, run);
        }
    }
    assert_memory_equal(expected, one->buffer[IBSHIFT_RECV], one->bytes[IBSHIFT_RECV]);
    free(expected);
}

static void make_one(struct all *all, uint32_t rank, const struct ibshift_mixed *common,
                     uint64_t *random)
{
    struct one *one = &all->one[rank];

    one->mixed = *common;
    one->mixed.by_node.rank = one->mixed.flat.rank = rank;
    one->mixed.reserve = reserve;
    one->mixed.owner = one;
    make_side(all, rank, IBSHIFT_SEND, world_random_below(random, 2), random);
    make_side(all, rank, IBSHIFT_RECV, world_random_below(random, 2), random);
    ibshift_op_init(&one->op);
    assert_int_equal(ibshift_engine_attach(all->world->engines[all->peers[rank]], &one->op), 0);
}

static void free_one(struct all *all, uint32_t rank)
{
    struct one *one = &all->one[rank];

    ibshift_engine_detach(all->world->engines[all->peers[rank]], &one->op);
    for (int i = 0; i < IBSHIFT_MIXED_MEMORIES; i++) {
        free(one->memory[i]);
    }
    for (int i = 0; i < 2; i++) {
        free(one->lengths[i]);
        free(one->places[i]);
        free(one->buffer[i]);
    }
}

/* The rank goes on; true: it has nothing more to do. */
static bool step(struct all *all, uint32_t rank, uint32_t seq)
{
    struct one *one = &all->one[rank];

    if (one->rc < 1 && one->has_begun) {
        return true;
    }
    if (one->has_begun && !ibshift_op_is_done(&one->op)) {
        return false;
    }
    if (!one->has_begun) {
        assert_true(ibshift_mixed_begin(&one->mixed));
        one->has_begun = true;
    } else if (one->op.status != 0) {
        one->rc = one->op.status;
        return true;
    }
    one->rc = ibshift_mixed_next(&one->mixed, &one->op.params);
    if (one->rc == 1) {
        ibshift_engine_start(all->world->engines[all->peers[rank]], &one->op,
                             seq + (uint32_t)one->mixed.stage);
    }
    return one->rc != 1;
}

/* How many have ended after so many turns at most. */
static uint32_t run(struct all *all, uint32_t seq, int turns, uint64_t *random)
{
    uint32_t ended = 0;

    for (int turn = 0; turn < turns && ended < all->ranks; turn++) {
        ended = 0;
        for (uint32_t rank = 0; rank < all->ranks; rank++) {
            if (all->one[rank].has_begun || world_random_below(random, 3) == 0) {
                ended += step(all, rank, seq);
            }
        }
        world_turn(all->world, random);
    }
    return ended;
}

static void begin_all(struct all *all)
{
    for (uint32_t rank = 0; rank < all->ranks; rank++) {
        all->one[rank].has_begun = false;
        all->one[rank].rc = 1;
    }
}

static void make_all(struct all *all, uint64_t *random)
{
    static const enum ibshift_collective collectives[] = {IBSHIFT_GATHER, IBSHIFT_SCATTER,
                                                          IBSHIFT_ALLTOALL, IBSHIFT_ALLTOALL};
    struct ibshift_engine_options engine = {0};

    all->collective = collectives[world_random_below(random, 4)];
    all->ranks = 1 + world_random_below(random, RANKS_MOST);
    all->root = world_random_below(random, all->ranks);
    all->sizes = calloc((size_t)all->ranks * all->ranks, sizeof(size_t));
    all->peers = calloc(all->ranks, sizeof(uint32_t));
    all->one = calloc(all->ranks, sizeof(struct one));
    for (uint32_t rank = 0, turn = world_random_below(random, all->ranks); rank < all->ranks;
         rank++) {
        all->peers[rank] = (rank + turn) % all->ranks;
    }
    all->nodes = nodes_of_kind((int)world_random_below(random, NODES_KINDS), all->ranks, random);
    assert_true(all->nodes.nodes > 0);
    all->world = world_create(all->ranks, world_random_below(random, 2), &engine);
    draw_sizes(all, random);
}

/* What failed leaves messages that nobody takes. */
static void free_all(struct all *all, bool has_failed)
{
    for (uint32_t rank = 0; rank < all->ranks && all->one[rank].buffer[0] != NULL; rank++) {
        free_one(all, rank);
    }
    world_free(all->world, has_failed);
    ibshift_nodes_free(&all->nodes);
    free(all->sizes);
    free(all->peers);
    free(all->one);
}

/* False: those nodes have no such plan. */
static bool make_ranks(struct all *all, uint64_t *random)
{
    static const size_t most[] = {0, 1, 17, 39, 100000};
    struct ibshift_mixed common = {.most = most[world_random_below(random, 5)]};
    struct ibshift_op_params *main = &common.by_node;
    char why[128];

    *main = (struct ibshift_op_params){
        .alg = ibshift_alg_find(all->collective, rows[all->collective][0]),
        .plan = {.ranks = all->ranks,
                 .root = all->root,
                 .segments = 1,
                 .leaders = 1 + world_random_below(random, 5),
                 .nodes = &all->nodes},
        .window = 1 + world_random_below(random, 40),
        .peers = all->peers,
        .comm = COMM};
    if (ibshift_alg_check(main->alg, &main->plan, why, sizeof(why)) != 0) {
        return false;
    }
    common.flat = *main;
    common.flat.alg = ibshift_alg_find(all->collective, rows[all->collective][1]);
    for (uint32_t rank = 0; rank < all->ranks; rank++) {
        make_one(all, rank, &common, random);
    }
    return true;
}

/* A root packs blocks with gaps only if its plan does not copy them anyway. */
static uint32_t packed(const struct all *all, uint32_t rank)
{
    const bool *is_packed = all->one[rank].mixed.is_packed;

    if (all->collective != IBSHIFT_ALLTOALL && !all->nodes.is_ordered) {
        assert_false(is_packed[IBSHIFT_SEND] || is_packed[IBSHIFT_RECV]);
    }
    return all->collective != IBSHIFT_ALLTOALL &&
           (is_packed[IBSHIFT_SEND] || is_packed[IBSHIFT_RECV]);
}

static uint32_t roots_packed;

static void moves_what_it_should(struct all *all, uint64_t *random)
{
    for (uint32_t again = 0; again < 3; again++) {
        for (uint32_t rank = 0; rank < all->ranks; rank++) {
            fill(all, rank, again);
        }
        begin_all(all);
        assert_int_equal(run(all, 1 + again * IBSHIFT_MIXED_STAGES, MANY_TURNS, random),
                         all->ranks);
        for (uint32_t rank = 0; rank < all->ranks; rank++) {
            struct ibshift_engine *engine = all->world->engines[all->peers[rank]];

            assert_int_equal(all->one[rank].rc, 0);
            verify(all, rank, again);
            ibshift_engine_count(engine, 0); /* one, of however many ops */
            assert_int_equal(ibshift_engine_stats(engine).ops, again + 1);
            roots_packed += packed(all, rank);
        }
    }
}

static void random_matrices(void **state)
{
    uint64_t random = seed;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct all all;
        uint64_t here = random;

        make_all(&all, &random);
        if (!make_ranks(&all, &random)) {
            free_all(&all, false);
            continue;
        }
        if (getenv("IBSHIFT_TEST_VERBOSE") != NULL) {
            print_message("round %d, seed %llu: %s, %u ranks, %u nodes, root %u, leaders %u, most "
                          "%zu\n",
                          round, (unsigned long long)here, ibshift_collective_name(all.collective),
                          all.ranks, all.nodes.nodes, all.root,
                          all.one[0].mixed.by_node.plan.leaders, all.one[0].mixed.most);
        }
        moves_what_it_should(&all, &random);
        free_all(&all, false);
    }
    assert_true(roots_packed > 0);
}

/* One rank alone awaits, or sends, another number of bytes: a leader names both, and nothing is moved wrongly. */
static void unlike_sizes_are_named(void **state)
{
    uint64_t random = seed + 1;
    int named = 0;

    (void)state;
    for (int round = 0; round < ROUNDS / 5; round++) {
        struct all all;
        uint32_t from, to, found = 0;
        struct one *one;

        make_all(&all, &random);
        if (!make_ranks(&all, &random)) {
            free_all(&all, false);
            continue;
        }
        from =
            all.collective == IBSHIFT_SCATTER ? all.root : world_random_below(&random, all.ranks);
        to = all.collective == IBSHIFT_GATHER ? all.root : world_random_below(&random, all.ranks);
        assert_true(is_pair(&all, from, to));
        one = &all.one[to];
        one->lengths[IBSHIFT_RECV][all.collective == IBSHIFT_SCATTER ? 0 : from] += 1;
        begin_all(&all);
        (void)run(&all, 1, QUIET_TURNS, &random);
        for (uint32_t rank = 0; rank < all.ranks; rank++) {
            const struct ibshift_mixed *mixed = &all.one[rank].mixed;

            if (all.one[rank].rc == -EMSGSIZE && all.one[rank].op.status == 0) { /* not told */
                assert_int_equal(mixed->unlike.from, from);
                assert_int_equal(mixed->unlike.to, to);
                assert_int_equal(mixed->unlike.sent, all.sizes[from * all.ranks + to]);
                assert_int_equal(mixed->unlike.awaited, all.sizes[from * all.ranks + to] + 1);
                found++;
            }
        }
        assert_int_equal(found, 1);
        named++;
        for (uint32_t rank = 0; rank < all.ranks; rank++) {
            ibshift_engine_give_up(all.world->engines[all.peers[rank]], COMM, all.peers[rank],
                                   -EMSGSIZE);
        }
        (void)run(&all, 1, QUIET_TURNS, &random);
        free_all(&all, true);
    }
    assert_true(named > ROUNDS / 20);
}

/* Ranks of one node tell each other sizes: the one that their communicator fails by may be on another. */
static void who_is_to_blame_need_not_take_part(void **state)
{
    uint64_t random = seed + 2;
    int elsewhere = 0;

    (void)state;
    for (int round = 0; round < ROUNDS / 5; round++) {
        struct all all;
        uint32_t victim;

        make_all(&all, &random);
        if (!make_ranks(&all, &random)) {
            free_all(&all, false);
            continue;
        }
        victim = world_random_below(&random, all.ranks);
        elsewhere += all.nodes.node_of[victim] != all.nodes.node_of[0];
        begin_all(&all);
        ibshift_engine_give_up(all.world->engines[all.peers[0]], COMM, all.peers[victim],
                               -ETIMEDOUT);
        for (int turn = 0; turn < QUIET_TURNS && !step(&all, 0, 1); turn++) {
            world_turn(all.world, &random);
        }
        assert_int_equal(all.one[0].mixed.stage, IBSHIFT_MIXED_TELL);
        assert_int_equal(all.one[0].rc, -ETIMEDOUT);
        assert_int_equal(all.one[0].op.failed_peer, all.peers[victim]);
        free_all(&all, true);
    }
    assert_true(elsewhere > ROUNDS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_matrices),
        cmocka_unit_test(unlike_sizes_are_named),
        cmocka_unit_test(who_is_to_blame_need_not_take_part),
    };

    seed = world_seed(20261126);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Data with gaps: the caller's memory has each byte elsewhere than the plan's blocks, which nobody writes to. Results are right for
 * each plan that takes it, each block of what is got is unpacked once, and none is put into more places than there are.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/gaps.h"
#include "world.h"
#include "unit.h"

enum { MOST_RANKS = 9, RUNS = 3, PLANS = 12, TURNS = 400000, SHORT = 2048, POISON = 0xaa };

/* Of a rank. */
struct user {
    const struct work *work;
    struct ibshift_op *op;
    char *memory[2];
    uint32_t *moved; /* blocks of RECV, so many times */
    char *places[2];
    struct ibshift_gaps gaps;
};

/* Backwards, and other bits. */
static void turn_round(char *to, const char *from, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        to[i] = (char)(from[length - 1 - i] ^ 0x5a);
    }
}

static bool is_inside(const struct user *user, enum ibshift_buffer buf, const char *packed,
                      size_t length)
{
    const struct ibshift_gaps_side *side = &user->gaps.sides[buf];

    return packed >= side->at && packed + length <= side->at + side->place * side->places;
}

static void move(void *context, enum ibshift_buffer buf, uint32_t block, char *packed, bool pack)
{
    struct user *user = context;
    const struct ibshift_blocks *blocks = &user->op->params.blocks[buf];
    char *address, *own;
    size_t length;

    assert_int_equal(buf == IBSHIFT_SEND, pack);
    assert_true(block < ibshift_alg_blocks(user->op->params.alg, &user->op->params.plan,
                                           user->op->params.rank, buf));
    assert_int_equal(ibshift_blocks_range(blocks, block, 1, &address, &length), 0);
    own = user->memory[buf] + (address - blocks->base);
    if (pack) {
        turn_round(packed, own, length);
        return;
    }
    if (user->gaps.sides[buf].place > 0 && user->gaps.sides[IBSHIFT_SEND].place > 0) {
        assert_true(is_inside(user, IBSHIFT_RECV, packed, length) ||
                    is_inside(user, IBSHIFT_SEND, packed, length));
    }
    turn_round(own, packed, length);
    user->moved[block]++;
}

static uint32_t blocks_in(const struct user *user, enum ibshift_buffer buf)
{
    return user->work->rank[user->op->params.rank].length[buf] == 0
               ? 0
               : ibshift_alg_blocks(user->op->params.alg, &user->op->params.plan,
                                    user->op->params.rank, buf);
}

static void take_side(struct user *user, enum ibshift_buffer buf, size_t place)
{
    struct ibshift_op_params *params = &user->op->params;
    struct ibshift_gaps_side *side = &user->gaps.sides[buf];
    uint32_t blocks = blocks_in(user, buf);

    user->memory[buf] = malloc(user->work->rank[params->rank].length[buf] + 1);
    assert_non_null(user->memory[buf]);
    side->is_late = blocks > 0;
    side->place = side->is_late ? place : 0;
    side->places = (params->window < blocks ? params->window : blocks) + (buf == IBSHIFT_SEND);
    side->at = user->places[buf] = malloc(side->place * side->places + 1);
    assert_non_null(side->at);
    params->mem[buf] = NULL; /* of what nobody writes to */
}

static void user_make(struct user *user, struct work *work, uint32_t rank, bool is_kept)
{
    struct ibshift_op *op = &work->ops[rank];
    bool is_read = op->params.alg->collective == IBSHIFT_ALLGATHER;
    size_t place = is_kept || is_read ? 0 : work->options.size + 1;

    *user = (struct user){.work = work, .op = op, .gaps = {.move = move, .context = user}};
    user->moved = calloc(2 * MOST_RANKS + 2, sizeof(uint32_t));
    assert_non_null(user->moved);
    op->params.is_attended = rank % 2 == 0;
    op->params.gaps = &user->gaps;
    take_side(user, IBSHIFT_RECV, place);
    if (!is_read && op->params.alg->collective != IBSHIFT_NEIGHBOR_ALLGATHER) {
        take_side(user, IBSHIFT_SEND, place);
    }
}

static void user_free(struct user *user)
{
    for (int buf = 0; buf < 2; buf++) {
        free(user->memory[buf]);
        free(user->places[buf]);
    }
    free(user->moved);
}

/* All blocks between the caller's memory and the plan's. */
static void move_all(struct user *user, enum ibshift_buffer buf, bool is_out)
{
    const struct ibshift_blocks *blocks = &user->op->params.blocks[buf];
    char *address, *own;
    size_t length;

    for (uint32_t i = 0; user->gaps.sides[buf].is_late && i < blocks_in(user, buf); i++) {
        assert_int_equal(ibshift_blocks_range(blocks, i, 1, &address, &length), 0);
        own = user->memory[buf] + (address - blocks->base);
        turn_round(is_out ? own : address, is_out ? address : own, length);
    }
}

static void begin(struct user *user, uint32_t run)
{
    struct work *work = (struct work *)user->work;
    uint32_t rank = user->op->params.rank;
    struct rank_memory *memory = &work->rank[rank];

    work_fill(work, rank, run);
    move_all(user, IBSHIFT_SEND, true);
    if (user->gaps.sides[IBSHIFT_SEND].is_late) {
        memset(memory->memory[IBSHIFT_SEND], POISON, memory->length[IBSHIFT_SEND]);
    }
    memset(user->memory[IBSHIFT_RECV], POISON, memory->length[IBSHIFT_RECV] + 1);
    memset(user->moved, 0, (2 * MOST_RANKS + 2) * sizeof(uint32_t));
    ibshift_engine_start(work->world->engines[work->peers[rank]], user->op, run);
}

static void end(struct user *user)
{
    struct work *work = (struct work *)user->work;
    uint32_t rank = user->op->params.rank;
    struct rank_memory *memory = &work->rank[rank];

    assert_int_equal(user->op->status, 0);
    for (int buf = 0; buf < 2; buf++) {
        for (size_t i = 1; user->gaps.sides[buf].place > 0 && i < memory->length[buf]; i++) {
            assert_int_equal(memory->memory[buf][i], memory->memory[buf][0]);
        }
    }
    for (uint32_t i = 0; i < blocks_in(user, IBSHIFT_RECV); i++) {
        assert_true(user->moved[i] <= 1 || user->gaps.sides[IBSHIFT_RECV].place == 0);
    }
    move_all(user, IBSHIFT_RECV, false);
    assert_true(work_is_right(work, rank));
}

static void run_one(struct world *world, const struct ibshift_alg *alg, uint64_t *random)
{
    static const uint32_t windows[] = {1, 2, 7};
    struct work_options options = {.alg = alg,
                                   .plan = {.ranks = world->ranks,
                                            .radix = alg->radix_max > 0 ? 1 : 0,
                                            .segments = 1,
                                            .root = world_random_below(random, world->ranks),
                                            .commutative = true},
                                   .comm = 1,
                                   .window = windows[world_random_below(random, 3)],
                                   .size = 1 + world_random_below(random, 4 * SHORT),
                                   .is_variant = (alg->flags & IBSHIFT_ALG_SIZES) != 0 &&
                                                 world_random_below(random, 2) == 0,
                                   .is_shuffled = true};
    bool is_kept = world_random_below(random, 4) == 0;
    struct user users[MOST_RANKS];
    struct work *work;
    char why[256];

    if (ibshift_alg_check(alg, &options.plan, why, sizeof(why)) != 0) {
        return;
    }
    work = work_create(world, &options, random);
    for (uint32_t i = 0; i < world->ranks; i++) {
        user_make(&users[i], work, i, is_kept);
    }
    for (uint32_t run = 0; run < RUNS; run++) {
        for (uint32_t i = 0; i < world->ranks; i++) {
            begin(&users[i], run);
        }
        for (uint32_t turn = 0; !work_is_done(work); turn++) {
            assert_true(turn < TURNS);
            world_turn(world, random);
        }
        for (uint32_t i = 0; i < world->ranks; i++) {
            end(&users[i]);
        }
    }
    for (uint32_t i = 0; i < world->ranks; i++) {
        user_free(&users[i]);
    }
    work_free(work);
}

static void test_all_plans(void **state)
{
    uint64_t random = world_seed(7);
    uint32_t taken = 0;

    for (size_t row = 0; row < ibshift_alg_count; row++) {
        const struct ibshift_alg *alg = ibshift_alg_table[row];
        uint32_t outside = IBSHIFT_ALG_ORDER | IBSHIFT_ALG_STAGES | IBSHIFT_ALG_NODES;

        if (!(ibshift_gaps_go_once(alg) || alg->collective == IBSHIFT_ALLGATHER) ||
            (alg->flags & outside) != 0 || ibshift_collective_is_of_neighbors(alg->collective)) {
            continue;
        }
        taken++;
        for (int i = 0; i < PLANS; i++) {
            uint32_t ranks = 1 + world_random_below(&random, MOST_RANKS);
            struct world *world = world_create(ranks, world_random_below(&random, 2),
                                               &(struct ibshift_engine_options){0});

            run_one(world, alg, &random);
            world_free(world, false);
        }
    }
    assert_true(taken >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_plans)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

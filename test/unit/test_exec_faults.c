/*
 * Whatever goes wrong, every rank's collective ends: with the right result, or with an error that names a
 * rank. Here a rank gives up, or never comes; test/replay kills ranks.
 */
#include <errno.h>

#include "unit.h"
#include "world.h"

enum { MANY_TURNS = 1000000, MOST = 12, COMM = 3, DEADLINE = 20 * 1000 * 1000 /* ns */ };

static uint64_t seed;

static bool random_options(struct work_options *options, const struct ibshift_alg *alg,
                           uint32_t ranks, uint64_t *random)
{
    char why[200];

    *options = (struct work_options){
        .alg = alg,
        .plan = {.ranks = ranks,
                 .root = world_random_below(random, ranks),
                 .radix = alg->radix_max > 0 ? 1 + world_random_below(random, alg->radix_max) : 1,
                 .segments = 4,
                 .commutative = true},
        .comm = COMM,
        .window = 1 + world_random_below(random, 8),
        .size = 8 * world_random_below(random, 2) * world_random_below(random, 400),
    };
    return ibshift_alg_check(alg, &options->plan, why, sizeof(why)) == 0;
}

static void wait_all(struct work *work, uint64_t *random)
{
    for (int turn = 0; turn < MANY_TURNS && !work_is_done(work); turn++) {
        world_turn(work->world, random);
    }
    assert_true(work_is_done(work));
}

/* An op that failed says with whom; one that did not has the right bytes. */
static void check_ends(struct work *work)
{
    for (uint32_t rank = 0; rank < work->ranks; rank++) {
        const struct ibshift_op *op = &work->ops[rank];

        assert_true(op->status <= 0 && (op->status < 0 || work_is_right(work, rank)));
        assert_true(op->status == 0 || op->failed_peer < work->ranks);
    }
}

/* Some turns after all have begun. */
static void give_one_up(const struct work_options *options, uint64_t *random)
{
    const struct ibshift_engine_options engine = {0};
    uint32_t ranks = options->plan.ranks, victim = world_random_below(random, ranks);
    struct world *world = world_create(ranks, world_random_below(random, 2), &engine);
    struct work *work = work_create(world, options, random);

    for (uint32_t rank = 0; rank < ranks; rank++) {
        work_start(work, rank, 1);
    }
    for (uint32_t turns = world_random_below(random, 8); turns > 0; turns--) {
        world_turn(world, random);
    }
    ibshift_engine_give_up(world->engines[victim], COMM, victim, -ENOMEM);
    wait_all(work, random);
    check_ends(work);
    work_free(work);
    world_free(world, true);
}

static void all_hear_of_who_gives_up(void **state)
{
    uint64_t random = seed;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        for (int round = 0; round < 12; round++) {
            struct work_options options;
            uint32_t ranks = 2 + world_random_below(&random, MOST - 1);

            if (random_options(&options, ibshift_alg_table[i], ranks, &random)) {
                give_one_up(&options, &random);
            }
        }
    }
}

/* The root awaits rank 1 alone, and names it; who comes then is told at once. */
static void a_deadline_names_who_does_not_come(void **state)
{
    const struct ibshift_engine_options engine = {.deadline = DEADLINE};
    uint64_t random = seed + 2;
    struct world *world = world_create(4, true, &engine);
    struct work_options options;
    struct work *work;

    assert_true(random_options(&options, ibshift_alg_find(IBSHIFT_GATHER, "linear"), 4, &random));
    options.plan.root = 2;
    options.window = 8;
    options.size = 100;
    work = work_create(world, &options, &random);
    for (uint32_t rank = 0; rank < 4; rank++) {
        if (rank != 1) {
            work_start(work, rank, 1);
        }
    }
    for (int turn = 0; turn < MANY_TURNS && !ibshift_op_is_done(&work->ops[2]); turn++) {
        world_turn(world, &random);
    }
    assert_int_equal(work->ops[2].status, -ETIME);
    assert_int_equal(work->ops[2].failed_peer, 1);
    work_start(work, 1, 1);
    wait_all(work, &random);
    assert_int_equal(work->ops[1].status, -ECONNABORTED);
    work_free(work);
    world_free(world, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_hear_of_who_gives_up),
        cmocka_unit_test(a_deadline_names_who_does_not_come),
    };

    seed = world_seed(21);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

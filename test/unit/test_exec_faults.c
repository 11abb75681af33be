/*
 * Whatever goes wrong, every rank's collective ends: with the right result, or with an error that
 * names a rank; in time; and with nothing left in the net.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"
#include "unit.h"

enum { TIMEOUT = 1000, PATIENCE = 20000, DEADLINE = 100000, MANY_TURNS = 1000000 };

static uint64_t seed;

static struct world *new_world(uint32_t ranks, uint64_t patience, uint64_t deadline,
                               uint64_t *random)
{
    struct ibshift_loop_options loop = {
        .peers = ranks,
        .max_eager = world_random_below(random, 2) ? 64 : 0,
        .room = world_random_below(random, 2) ? 8 : 0,
        .depth = 1 + world_random_below(random, 8),
        .tick = 1,
        .delay = world_random_below(random, 2) ? 100 : 0,
        .timeout = TIMEOUT,
        .seed = world_random(random),
    };
    struct ibshift_engine_options engine = {.patience = patience, .deadline = deadline};

    return world_create(&loop, &engine);
}

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
        .window = 1 + world_random_below(random, 8),
        .size = 8 * world_random_below(random, 40),
    };
    return ibshift_alg_check(alg, &options->plan, why, sizeof(why)) == 0;
}

static uint64_t now(const struct world *world)
{
    return ibshift_net_now(ibshift_loop_net(world->loop, 0));
}

/* Turns until all ops have ended; returns the time that it took. */
static uint64_t wait_all(struct work *work, uint64_t *random)
{
    uint64_t start = now(work->world);

    for (int turn = 0; turn < MANY_TURNS && !work_is_done(work); turn++) {
        world_turn(work->world, random);
    }
    assert_true(work_is_done(work));
    return now(work->world) - start;
}

static void drain(struct world *world, uint64_t *random)
{
    for (int turn = 0; turn < MANY_TURNS && ibshift_loop_left(world->loop) > 0; turn++) {
        world_turn(world, random);
    }
}

/* An op that failed says with whom; one that did not has the right bytes. */
static uint32_t failures(struct work *work)
{
    uint32_t failed = 0;

    for (uint32_t rank = 0; rank < work->ranks; rank++) {
        const struct ibshift_op *op = &work->ops[rank];

        if (op->status == 0) {
            assert_true(work_is_right(work, rank));
        } else {
            assert_true(op->status < 0);
            assert_true(op->failed_peer < work->ranks);
            failed++;
        }
    }
    return failed;
}

static void kill_one(const struct work_options *options, uint32_t sends, uint64_t *random)
{
    uint32_t ranks = options->plan.ranks, victim = world_random_below(random, ranks);
    struct world *world = new_world(ranks, PATIENCE, DEADLINE, random);
    struct work *work = work_create(world, options, random);
    uint64_t took;

    ibshift_loop_kill_after(world->loop, work->peers[victim], sends);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        work_start(work, rank, 1);
    }
    took = wait_all(work, random);
    if (took > 2 * DEADLINE) {
        fail_msg("%s %s, %u ranks: took %llu", ibshift_collective_name(options->alg->collective),
                 options->alg->name, ranks, (unsigned long long)took);
    }
    failures(work);
    work_free(work);
    drain(world, random);
    world_free(world);
}

static void peer_dies_in_every_algorithm(void **state)
{
    uint64_t random = seed;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        for (int round = 0; round < 24; round++) {
            struct work_options options;
            uint32_t ranks = 2 + world_random_below(&random, 11);

            if (random_options(&options, ibshift_alg_table[i], ranks, &random)) {
                kill_one(&options, world_random_below(&random, 4), &random);
            }
        }
    }
}

/* Also at a gate, while clocks are compared, and with sends put off. */
static void peer_dies_under_every_pace(void **state)
{
    enum { MOST = 12, TIMES = 120 };
    struct ibshift_pace paces[MOST];
    struct ibshift_clock clocks[MOST];
    uint64_t random = seed + 2;

    for (int i = 0; i < TIMES; i++) {
        struct work_options options;
        uint32_t ranks = 2 + world_random_below(&random, MOST - 1);
        const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "shift");

        assert_true(random_options(&options, alg, ranks, &random));
        ibshift_pace_default(&paces[0], IBSHIFT_PACE_CLK);
        paces[0].unit = 500;
        paces[0].sync = world_random_below(&random, 2);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            clocks[rank] = (struct ibshift_clock){0};
            paces[rank] = paces[0];
            paces[rank].clock = &clocks[rank];
        }
        options.paces = paces;
        kill_one(&options, world_random_below(&random, 60), &random);
    }
}

/* In a barrier everyone depends on everyone: nobody may come out as if nothing had happened. */
static void nobody_passes_a_barrier_without_the_dead(void **state)
{
    uint64_t random = seed + 1;
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_BARRIER, "dissemination");

    for (uint32_t ranks = 2; ranks <= 17; ranks++) {
        struct world *world = new_world(ranks, PATIENCE, DEADLINE, &random);
        struct work_options options;
        struct work *work;

        assert_true(random_options(&options, alg, ranks, &random));
        work = work_create(world, &options, &random);
        ibshift_loop_kill_after(world->loop, 0, 0);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            work_start(work, rank, 1);
        }
        wait_all(work, &random);
        assert_int_equal(failures(work), ranks);
        work_free(work);
        drain(world, &random);
        world_free(world);
    }
}

/*
 * Several collectives of one communicator are under way when a rank dies, and each rank hears of it
 * in another one first. There is no deadline: nobody may need it.
 */
static void kill_one_of_many(uint64_t *random)
{
    enum { MOST = 4, TRIES = 50 };
    uint32_t ranks = 3 + world_random_below(random, 6), victim = world_random_below(random, ranks);
    struct world *world = new_world(ranks, PATIENCE, 0, random);
    struct work *works[MOST];
    uint32_t count = 0;

    for (int i = 0; i < TRIES && count < MOST; i++) {
        struct work_options options;
        const struct ibshift_alg *alg =
            ibshift_alg_table[world_random_below(random, (uint32_t)ibshift_alg_count)];

        if (random_options(&options, alg, ranks, random)) {
            works[count++] = work_create(world, &options, random);
        }
    }
    ibshift_loop_kill_after(world->loop, victim, world_random_below(random, 12));
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            work_start(works[i], rank, i);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        wait_all(works[i], random);
        failures(works[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        work_free(works[i]);
    }
    drain(world, random);
    world_free(world);
}

static void peer_dies_in_several_collectives_of_one_communicator(void **state)
{
    uint64_t random = seed + 5;

    for (int round = 0; round < 300; round++) {
        kill_one_of_many(&random);
    }
}

/* As nets do that are asked after a communicator one of whose members they know to be dead. */
static void what_runs_fails_when_the_net_gives_the_communicator_up(void **state)
{
    const struct ibshift_net_cause why = {.peer = 2, .status = -ETIMEDOUT};
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_BARRIER, "dissemination");
    uint64_t random = seed + 6;
    struct world *world = new_world(5, PATIENCE, 0, &random);
    struct work_options options;
    struct work *works[3]; /* of two communicators */

    assert_true(random_options(&options, alg, 5, &random));
    for (uint32_t i = 0; i < 3; i++) {
        options.comm = i / 2;
        works[i] = work_create(world, &options, &random);
        work_start(works[i], 0, i);
    }
    ibshift_net_give_up(ibshift_loop_net(world->loop, 0), 0, &why);
    for (int turn = 0; turn < MANY_TURNS && !(work_is_done(works[0]) && work_is_done(works[1]));
         turn++) {
        world_turn(world, &random);
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(work_is_done(works[i]));
        assert_int_equal(works[i]->ops[0].status, -ETIMEDOUT);
        assert_int_equal(works[i]->ops[0].failed_peer, 2);
    }
    assert_false(work_is_done(works[2]));
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t rank = 1; rank < 5; rank++) {
            work_start(works[i], rank, i);
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        wait_all(works[i], &random);
        assert_int_equal(failures(works[i]), i < 2 ? 5 : 0);
        work_free(works[i]);
    }
    drain(world, &random);
    world_free(world);
}

static void late_rank_is_not_a_dead_one(void **state)
{
    uint64_t random = seed + 2;
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_BARRIER, "dissemination");
    struct world *world = new_world(5, PATIENCE, 0, &random);
    struct work_options options;
    struct work *work;

    assert_true(random_options(&options, alg, 5, &random));
    work = work_create(world, &options, &random);
    for (uint32_t rank = 1; rank < 5; rank++) {
        work_start(work, rank, 1);
    }
    while (now(world) < 20 * (uint64_t)PATIENCE) {
        world_turn(world, &random);
    }
    work_start(work, 0, 1);
    wait_all(work, &random);
    assert_int_equal(failures(work), 0);
    work_free(work);
    world_free(world);
}

static void deadline_ends_the_wait_for_a_rank_that_never_comes(void **state)
{
    uint64_t random = seed + 3;
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLGATHER, "ring");
    struct world *world = new_world(5, PATIENCE, DEADLINE, &random);
    struct work_options options;
    struct work *work;
    uint64_t took;

    assert_true(random_options(&options, alg, 5, &random));
    options.size = 100;
    work = work_create(world, &options, &random);
    for (uint32_t rank = 1; rank < 5; rank++) {
        work_start(work, rank, 1);
    }
    took = wait_all(work, &random);
    assert_in_range(took, DEADLINE / 2, 2 * DEADLINE);
    assert_int_equal(work->ops[1].status, -ETIME);
    assert_int_equal(work->ops[1].failed_peer, 0); /* its left neighbour */
    work_start(work, 0, 1);                        /* comes, and is told at once */
    assert_true(wait_all(work, &random) < DEADLINE);
    assert_int_equal(work->ops[0].status, -ECONNABORTED);
    work_free(work);
    drain(world, &random);
    world_free(world);
}

static void sizes_that_differ_end_in_an_error_and_harm_nobody_else(void **state)
{
    uint64_t random = seed + 4;
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_BCAST, "knomial");

    for (int round = 0; round < 50; round++) {
        struct world *world = new_world(6, PATIENCE, DEADLINE, &random);
        struct work_options options;
        struct work *work, *other;
        uint32_t wrong = 0;

        assert_true(random_options(&options, alg, 6, &random));
        options.size = 80;
        options.comm = 1;
        work = work_create(world, &options, &random);
        options.comm = 2;
        other = work_create(world, &options, &random);
        while (wrong == options.plan.root) {
            wrong++;
        }
        work->ops[wrong].params.blocks[IBSHIFT_RECV].elements--;
        for (uint32_t rank = 0; rank < 6; rank++) {
            work_start(work, rank, 1);
            work_start(other, rank, 1);
        }
        wait_all(work, &random);
        assert_int_equal(work->ops[wrong].status, -EMSGSIZE);
        wait_all(other, &random);
        assert_int_equal(failures(other), 0);
        work_start(other, 0, 2);
        for (uint32_t rank = 1; rank < 6; rank++) {
            work_start(other, rank, 2);
        }
        wait_all(other, &random);
        assert_int_equal(failures(other), 0);
        work_free(work);
        work_free(other);
        drain(world, &random);
        world_free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_dies_in_every_algorithm),
        cmocka_unit_test(peer_dies_under_every_pace),
        cmocka_unit_test(nobody_passes_a_barrier_without_the_dead),
        cmocka_unit_test(peer_dies_in_several_collectives_of_one_communicator),
        cmocka_unit_test(what_runs_fails_when_the_net_gives_the_communicator_up),
        cmocka_unit_test(late_rank_is_not_a_dead_one),
        cmocka_unit_test(deadline_ends_the_wait_for_a_rank_that_never_comes),
        cmocka_unit_test(sizes_that_differ_end_in_an_error_and_harm_nobody_else),
    };

    seed = world_seed(21);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Whatever the pace, the clocks and the delays: the collective ends, and right. And each pace holds
 * back what it says it does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"
#include "unit.h"

enum { MANY_TURNS = 400000, RANKS_MAX = 40 };

static uint64_t seed;

/* One all-to-all under one pace, with what each rank thinks of time and remembers. */
struct scene {
    struct world *world;
    struct work *work;
    struct ibshift_pace paces[RANKS_MAX];
    struct ibshift_clock clocks[RANKS_MAX];
    struct ibshift_pace_memory memories[RANKS_MAX];
};

static const char *const algs[] = {"shift", "stages", "linear", "pairwise"};

static void open_scene(struct scene *scene, const struct ibshift_loop_options *loop,
                       const struct ibshift_pace *pace, const char *alg, size_t size,
                       uint64_t *random)
{
    struct ibshift_engine_options engine = {0};
    struct work_options options = {.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, alg),
                                   .plan = {.ranks = loop->peers, .radix = 1, .segments = 1},
                                   .window = 4,
                                   .size = size,
                                   .paces = scene->paces};

    assert_non_null(options.alg);
    memset(scene->clocks, 0, sizeof(scene->clocks));
    memset(scene->memories, 0, sizeof(scene->memories));
    for (uint32_t i = 0; i < loop->peers; i++) {
        scene->paces[i] = *pace;
        scene->paces[i].clock = &scene->clocks[i];
        scene->paces[i].memory = &scene->memories[i];
    }
    options.is_variant = *random % 2;
    scene->world = world_create(loop, &engine);
    scene->work = work_create(scene->world, &options, random);
}

static void close_scene(struct scene *scene)
{
    work_free(scene->work);
    world_free(scene->world);
}

/* late turns later than the others, rank 0 enters. */
static void run(struct scene *scene, uint32_t seq, int late, uint64_t *random)
{
    uint32_t ranks = scene->world->ranks;
    int turn = 0;

    for (uint32_t i = 1; i < ranks; i++) {
        work_start(scene->work, i, seq);
    }
    for (; turn < late; turn++) {
        world_turn(scene->world, random);
    }
    work_start(scene->work, 0, seq);
    for (; turn < MANY_TURNS && !work_is_done(scene->work); turn++) {
        world_turn(scene->world, random);
    }
    assert_true(work_is_done(scene->work));
    for (uint32_t i = 0; i < ranks; i++) {
        assert_true(work_is_right(scene->work, i));
    }
}

static struct ibshift_pace random_pace(uint64_t *random)
{
    struct ibshift_pace pace;

    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.window = world_random_below(random, 3) == 0 ? 1 + world_random_below(random, 16) : 1;
    pace.unit = world_random_below(random, 3) == 0 ? 0 : 1 + world_random_below(random, 2000);
    pace.delay = world_random_below(random, 100);
    pace.is_gated = world_random_below(random, 4) != 0;
    return pace;
}

/* Clocks that are right, wrong, drifting, or in another century. */
static void set_clocks(struct scene *scene, uint64_t *random)
{
    for (uint32_t i = 0; i < scene->world->ranks; i++) {
        switch (world_random_below(random, 8)) {
        case 0:
            scene->clocks[i].offset = world_random_below(random, 4000);
            break;
        case 1:
            scene->clocks[i].drift = 1e-3;
            break;
        case 2:
            scene->clocks[i].offset =
                world_random_below(random, 2) ? INT64_MAX / 8 : -INT64_MAX / 8;
            break;
        default:
            break;
        }
    }
}

static void any_pace_is_right(void **state)
{
    uint64_t random = seed;

    for (int i = 0; i < 600; i++) {
        struct scene scene;
        struct ibshift_pace pace = random_pace(&random);
        struct ibshift_loop_options loop = {.peers = 1 + world_random_below(&random, 20),
                                            .max_eager = world_random_below(&random, 2) * 24,
                                            .room = world_random_below(&random, 2) * 64,
                                            .depth = 1 + world_random_below(&random, 8),
                                            .tick = 1,
                                            .delay = world_random_below(&random, 3) * 200,
                                            .timeout = 1000,
                                            .seed = world_random(&random)};

        open_scene(&scene, &loop, &pace, algs[world_random_below(&random, 4)],
                   world_random_below(&random, 70), &random);
        set_clocks(&scene, &random);
        run(&scene, UINT32_MAX, (int)world_random_below(&random, 200), &random);
        run(&scene, 0, (int)world_random_below(&random, 200), &random);
        close_scene(&scene);
    }
}

static struct ibshift_loop_options quiet_loop(uint32_t ranks)
{
    return (struct ibshift_loop_options){.peers = ranks, .depth = 64, .tick = 1, .room = 64};
}

/* A rank that comes late after the gate misses slots; nobody waits for it, nothing is lost. */
static void clk_leaves_and_makes_up(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    struct ibshift_loop_options loop = quiet_loop(16);
    uint64_t random = seed + 1, left = 0, messages = 0;

    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.unit = 2000;
    pace.is_gated = false;
    open_scene(&scene, &loop, &pace, "shift", 65, &random);
    scene.work->options.is_variant = false;
    for (uint32_t i = 0; i < 16; i++) {
        scene.paces[i].is_gated = false;
    }
    run(&scene, 1, 500, &random); /* 8000 ticks: more than three slots */
    for (uint32_t i = 0; i < 16; i++) {
        left += scene.memories[i].left;
        messages += scene.memories[i].messages;
        assert_int_equal(scene.memories[i].jumps, 0);
    }
    assert_true(left > 0);
    print_message("%llu in their slots, %llu left aside\n", (unsigned long long)messages,
                  (unsigned long long)left);
    close_scene(&scene);
}

static void a_clock_that_is_far_off_is_given_up(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    struct ibshift_loop_options loop = quiet_loop(8);
    uint64_t random = seed + 2;

    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.unit = 100;
    open_scene(&scene, &loop, &pace, "shift", 65, &random);
    scene.clocks[3].offset = -(int64_t)1000000000;
    run(&scene, 1, 0, &random);
    assert_int_equal(scene.memories[3].jumps, 1);
    close_scene(&scene);
}

/* Ranks without a clock wait for sends that those with one have put off to the end: not for ever. */
static void some_have_no_clock(void **state)
{
    uint64_t random = seed + 9;

    for (int i = 0; i < 300; i++) {
        struct scene scene;
        struct ibshift_pace pace;
        struct ibshift_loop_options loop = quiet_loop(4 + world_random_below(&random, 12));

        loop.delay = world_random_below(&random, 3) * 200;
        loop.depth = 1 + world_random_below(&random, 8);
        loop.seed = world_random(&random);
        ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
        pace.delay = world_random_below(&random, 100);
        pace.is_gated = false;
        open_scene(&scene, &loop, &pace, "shift", 8, &random);
        set_clocks(&scene, &random);
        run(&scene, 1, 0, &random); /* measures how long a message takes */
        run(&scene, 2, (int)world_random_below(&random, 200), &random);
        close_scene(&scene);
    }
}

/* The wish to be woken is what moves virtual time on. */
static void waiting_for_a_slot_asks_to_be_woken(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    struct ibshift_loop_options loop = quiet_loop(2);
    uint64_t random = seed + 5, wake;

    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.unit = 1000000;
    pace.is_gated = false;
    pace.delay = 1000;
    open_scene(&scene, &loop, &pace, "shift", 65, &random);
    assert_true(ibshift_engine_wake_at(scene.world->engines[0]) == UINT64_MAX);
    work_start(scene.work, 0, 1);
    wake = ibshift_engine_wake_at(scene.world->engines[0]);
    assert_int_equal(wake, 2000); /* two rounds of the gate that is not there */
    work_start(scene.work, 1, 1);
    while (!work_is_done(scene.work)) {
        world_turn(scene.world, &random);
    }
    close_scene(&scene);
}

/* A turn of the executor may have begun before the comparison that it ends with. */
static void a_clock_is_read_before_its_comparison(void **state)
{
    struct ibshift_clock clock = {.offset = 5, .drift = 1e-4, .since = 1000000, .is_known = true};

    assert_int_equal(ibshift_clock_common(&clock, 900000), 900000 + 5 - 10);
    assert_int_equal(ibshift_clock_common(&clock, 1100000), 1100000 + 5 + 10);
}

/* Whatever the clocks show, what they make of it is right within the error that they tell. */
static int64_t worst_error(struct scene *scene, uint64_t *told)
{
    int64_t worst = 0, common = 0;

    for (uint32_t i = 0; i < scene->world->ranks; i++) {
        struct ibshift_net *net = ibshift_loop_net(scene->world->loop, i);
        int64_t error = ibshift_clock_common(&scene->clocks[i], ibshift_net_now(net));

        common = i == 0 ? error : common;
        error = error > common ? error - common : common - error;
        assert_true(scene->clocks[i].is_known);
        assert_true((uint64_t)error <= scene->clocks[i].error + 1 || scene->clocks[i].drift != 0);
        worst = error > worst ? error : worst;
        *told = scene->clocks[i].error > *told ? scene->clocks[i].error : *told;
    }
    return worst;
}

static void clocks_are_compared(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    uint64_t random = seed + 6;

    for (uint32_t ranks = 1; ranks <= 33; ranks += 4) {
        struct ibshift_loop_options loop = quiet_loop(ranks);
        uint64_t told = 0;
        int64_t worst;

        loop.delay = 200;
        loop.seed = world_random(&random);
        loop.ahead = 1000ull * 1000 * 1000 * 1000;
        loop.max_eager = ranks % 8 == 1 ? 0 : 64;
        ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
        pace.unit = 5000;
        pace.sync = 1;
        open_scene(&scene, &loop, &pace, "shift", 65, &random);
        run(&scene, 1, 0, &random);
        worst = worst_error(&scene, &told);
        print_message("%u ranks: off by %lld at most, %llu told\n", ranks, (long long)worst,
                      (unsigned long long)told);
        for (uint32_t i = 0; i < ranks; i++) {
            assert_int_equal(scene.memories[i].jumps, 0);
        }
        close_scene(&scene);
    }
}

/* Drift shows in the second comparison, half a second later; a jump in between is told. */
static void drift_is_found_and_a_jump_is_told(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    struct ibshift_loop_options loop = quiet_loop(4);
    uint64_t random = seed + 7, told = 0;

    loop.tick = 20000;
    loop.drift = 1e-4;
    loop.seed = seed + 1;
    loop.max_eager = 64;
    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.unit = 1000000;
    pace.sync = 1;
    open_scene(&scene, &loop, &pace, "shift", 65, &random);
    run(&scene, 1, 0, &random);
    run(&scene, 2, 10000, &random); /* 0.8 s of the loop's time */
    assert_true(worst_error(&scene, &told) < 400000);
    for (uint32_t i = 1; i < 4; i++) {
        assert_true(scene.clocks[i].drift > -2e-4 && scene.clocks[i].drift < 2e-4);
        assert_int_equal(scene.memories[i].jumps, 0);
    }
    ibshift_loop_jump(scene.world->loop, 2, 50ull * 1000 * 1000 * 1000);
    run(&scene, 3, 10000, &random);
    assert_true(scene.memories[2].jumps > 0);
    assert_int_equal(scene.memories[1].jumps, 0);
    close_scene(&scene);
}

static void the_longest_trips_are_dropped(void **state)
{
    struct ibshift_trip trips[10], fit;

    for (int i = 0; i < 10; i++) { /* the seven short ones say 100, on average; the others lie */
        trips[i] = (struct ibshift_trip){.time = (uint64_t)(i < 3 ? 1000 + i : 10 + i),
                                         .offset = i < 3 ? 5000 : 97 + (i - 3)};
    }
    ibshift_clock_fit(trips, 10, &fit);
    assert_int_equal(fit.offset, 100);
    assert_int_equal(fit.time, 19);
}

/* In the middle of a run: that rank goes on without it, and all ends right. */
static void a_clock_that_jumps_in_a_run_harms_nobody(void **state)
{
    struct scene scene;
    struct ibshift_pace pace;
    struct ibshift_loop_options loop = quiet_loop(8);
    uint64_t random = seed + 8;

    ibshift_pace_default(&pace, IBSHIFT_PACE_CLK);
    pace.unit = 1000;
    open_scene(&scene, &loop, &pace, "shift", 65, &random);
    for (uint32_t i = 0; i < 8; i++) {
        work_start(scene.work, i, 9);
    }
    for (int turn = 0; turn < MANY_TURNS && !work_is_done(scene.work); turn++) {
        if (turn == 300) {
            ibshift_loop_jump(scene.world->loop, 5, 1ull << 40);
        }
        world_turn(scene.world, &random);
    }
    assert_true(work_is_done(scene.work));
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(work_is_right(scene.work, i));
    }
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_is_read_before_its_comparison),
        cmocka_unit_test(any_pace_is_right),
        cmocka_unit_test(clk_leaves_and_makes_up),
        cmocka_unit_test(a_clock_that_is_far_off_is_given_up),
        cmocka_unit_test(some_have_no_clock),
        cmocka_unit_test(waiting_for_a_slot_asks_to_be_woken),
        cmocka_unit_test(the_longest_trips_are_dropped),
        cmocka_unit_test(clocks_are_compared),
        cmocka_unit_test(drift_is_found_and_a_jump_is_told),
        cmocka_unit_test(a_clock_that_jumps_in_a_run_harms_nobody),
    };

    seed = world_seed(7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

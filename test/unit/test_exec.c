/*
 * Every algorithm moves the right bytes: all small P, all roots, any window, disorder, late ranks,
 * several collectives at once, restarted ones.
 */
#include <stdio.h>
#include <stdlib.h>

#include "graphs.h"
#include "nodes.h"
#include "world.h"
#include "unit.h"

enum { MANY_TURNS = 200000, AT_ONCE = 3 };

static uint64_t seed;

/* Of the ranks of the plans at hand. */
static struct ibshift_nodes nodes;
static struct ibshift_neighbors graph;

static struct ibshift_loop_options random_loop(uint32_t ranks, uint64_t *random)
{
    static const size_t eager[] = {0, 16, 4096};
    static const uint32_t rooms[] = {0, 1, 64}, depths[] = {1, 2, 64};
    static const uint64_t delays[] = {0, 40, 1000};

    return (struct ibshift_loop_options){
        .peers = ranks,
        .max_eager = eager[world_random_below(random, 3)],
        .room = rooms[world_random_below(random, 3)],
        .depth = depths[world_random_below(random, 3)],
        .tick = 1,
        .delay = delays[world_random_below(random, 3)],
        .timeout = 1000,
        .seed = world_random_below(random, 4) == 0 ? 0 : world_random(random),
        .refuse_memory = world_random_below(random, 4) == 0,
    };
}

static struct work_options random_work(const struct ibshift_alg *alg, uint32_t ranks, uint32_t root,
                                       uint64_t *random)
{
    static const uint32_t windows[] = {1, 2, 3, 8, 256};
    bool has_variant = alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL);
    struct work_options options = {
        .alg = alg,
        .plan = {.ranks = ranks,
                 .root = root,
                 .radix = alg->radix_max > 0 ? 1 + world_random_below(random, alg->radix_max) : 1,
                 .segments = 1 + world_random_below(random, 7),
                 .leaders = world_random_below(random, 4),
                 .nodes = &nodes,
                 .commutative =
                     (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) || world_random_below(random, 2)},
        .window = windows[world_random_below(random, 5)],
        .size = world_random_below(random, 8) == 0 ? 0 : world_random_below(random, 70),
        .is_variant = has_variant && world_random_below(random, 2),
        .is_in_place = (alg->flags & IBSHIFT_ALG_IN_PLACE) && world_random_below(random, 2),
        .is_shuffled = world_random_below(random, 2),
    };

    if (alg->collective == IBSHIFT_REDUCE_SCATTER) {
        options.size = options.size / 8 * 8;
    }
    if (world_random_below(random, 4) > 0) {
        options.plan.neighbors = &graph; /* else a ring */
    }
    return options;
}

static void free_places(void)
{
    ibshift_nodes_free(&nodes);
    graph_free(&graph);
}

static void make_places(uint32_t ranks, uint64_t *random)
{
    graph = graph_draw(ranks, random);
    nodes = nodes_of_kind((int)world_random_below(random, NODES_KINDS), ranks, random);
    assert_true(nodes.nodes > 0);
}

static void explain(const struct work_options *o, const char *what)
{
    print_message(
        "%s %s, %u ranks on %u nodes, root %u, radix %u, segments %u, leaders %u, window %u, size "
        "%zu%s%s%s: %s\n",
        ibshift_collective_name(o->alg->collective), o->alg->name, o->plan.ranks, nodes.nodes,
        o->plan.root, o->plan.radix, o->plan.segments, o->plan.leaders, o->window, o->size,
        o->is_variant ? ", variant" : "", o->is_in_place ? ", in place" : "",
        o->plan.commutative ? "" : ", not commutative", what);
}

static void verify(struct work *work)
{
    for (uint32_t rank = 0; rank < work->ranks; rank++) {
        if (!work_is_right(work, rank)) {
            explain(&work->options, "wrong result");
            fail_msg("rank %u, status %d", rank, work->ops[rank].status);
        }
    }
}

/* Ranks enter one after the other, in another order for every collective. */
static void run(struct world *world, struct work **works, int count, uint32_t seq, uint64_t *random)
{
    uint32_t left = world->ranks * (uint32_t)count, entered[AT_ONCE] = {0}, first[AT_ONCE];
    bool is_hasty = world_random_below(random, 2);
    bool is_done = false;

    for (int i = 0; i < count; i++) {
        first[i] = world_random_below(random, world->ranks);
    }
    for (int turn = 0; turn < MANY_TURNS && !is_done; turn++) {
        for (int i = 0; left > 0 && i < count; i++) {
            uint32_t rank = (first[i] + entered[i]) % world->ranks;

            if (entered[i] < world->ranks && (is_hasty || world_random_below(random, 4) == 0)) {
                work_start(works[i], rank, seq);
                entered[i]++;
                left--;
            }
        }
        world_turn(world, random);
        is_done = left == 0;
        for (int i = 0; i < count && is_done; i++) {
            is_done = work_is_done(works[i]);
        }
    }
    for (int i = 0; i < count; i++) {
        if (!work_is_done(works[i])) {
            explain(&works[i]->options, "does not end");
            fail();
        }
        verify(works[i]);
    }
}

static void check(const struct work_options *options, int count, uint64_t *random)
{
    struct ibshift_loop_options loop = random_loop(options[0].plan.ranks, random);
    struct ibshift_engine_options engine = {0};
    struct world *world = world_create(&loop, &engine);
    struct work *works[AT_ONCE];

    for (int i = 0; i < count; i++) {
        works[i] = work_create(world, &options[i], random);
    }
    run(world, works, count, UINT32_MAX, random);
    run(world, works, count, 0, random); /* started again, the sequence has wrapped */
    for (int i = 0; i < count; i++) {
        work_free(works[i]);
    }
    world_free(world);
}

static bool is_possible(const struct work_options *options)
{
    char why[200];

    return ibshift_alg_check(options->alg, &options->plan, why, sizeof(why)) == 0;
}

static bool has_root(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective == IBSHIFT_SCATTER ||
           alg->collective == IBSHIFT_GATHER || alg->collective == IBSHIFT_REDUCE;
}

static void every_algorithm_is_right(void **state)
{
    uint64_t random = seed;
    int cases = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        for (uint32_t ranks = 1; ranks <= 17; ranks++) {
            for (uint32_t root = 0; root < (has_root(alg) ? ranks : 1); root++) {
                struct work_options options = random_work(alg, ranks, root, &random);

                make_places(ranks, &random);
                if (is_possible(&options)) {
                    check(&options, 1, &random);
                    cases++;
                }
                free_places();
            }
        }
    }
    print_message("%d cases\n", cases);
    assert_true(cases > 0);
}

static void larger_ones_are_right(void **state)
{
    static const uint32_t many[] = {31, 32, 48, 100};
    uint64_t random = seed + 1;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        for (size_t j = 0; j < sizeof(many) / sizeof(many[0]); j++) {
            struct work_options options = random_work(
                ibshift_alg_table[i], many[j], world_random_below(&random, many[j]), &random);

            make_places(many[j], &random);
            if (is_possible(&options)) {
                check(&options, 1, &random);
            }
            free_places();
        }
    }
}

static void collectives_run_side_by_side(void **state)
{
    uint64_t random = seed + 2;

    for (int round = 0; round < 200; round++) {
        uint32_t ranks = 2 + world_random_below(&random, 12);
        struct work_options options[AT_ONCE];

        make_places(ranks, &random);
        for (int i = 0; i < AT_ONCE; i++) {
            do {
                const struct ibshift_alg *alg =
                    ibshift_alg_table[world_random_below(&random, (uint32_t)ibshift_alg_count)];

                options[i] = random_work(alg, ranks, world_random_below(&random, ranks), &random);
                options[i].comm = (uint32_t)i;
            } while (!is_possible(&options[i]));
        }
        check(options, AT_ONCE, &random);
        free_places();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_is_right),
        cmocka_unit_test(larger_ones_are_right),
        cmocka_unit_test(collectives_run_side_by_side),
    };

    seed = world_seed(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

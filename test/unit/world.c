#include <stdio.h>
#include <stdlib.h>

#include "world.h"
#include "unit.h"

uint64_t world_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint32_t world_random_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(world_random(state) % bound);
}

uint64_t world_seed(uint64_t otherwise)
{
    const char *text = getenv("IBSHIFT_TEST_SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : otherwise;

    printf("IBSHIFT_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

struct world *world_create(const struct ibshift_loop_options *loop,
                           const struct ibshift_engine_options *engine)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    world->ranks = loop->peers;
    world->loop = ibshift_loop_create(loop);
    world->engines = calloc(world->ranks, sizeof(struct ibshift_engine *));
    assert_non_null(world->loop);
    assert_non_null(world->engines);
    for (uint32_t i = 0; i < world->ranks; i++) {
        world->engines[i] = ibshift_engine_create(ibshift_loop_net(world->loop, i), engine);
        assert_non_null(world->engines[i]);
    }
    return world;
}

void world_free(struct world *world)
{
    assert_int_equal(ibshift_loop_left(world->loop), 0);
    for (uint32_t i = 0; i < world->ranks; i++) {
        ibshift_engine_free(world->engines[i]);
    }
    ibshift_loop_free(world->loop);
    free(world->engines);
    free(world);
}

void world_turn(struct world *world, uint64_t *random)
{
    uint32_t start = world_random_below(random, world->ranks);

    for (uint32_t i = 0; i < world->ranks; i++) {
        (void)ibshift_engine_progress(world->engines[(start + i) % world->ranks]);
    }
}

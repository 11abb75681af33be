#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/node/private.h"
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

static int card_of(void *context, uint32_t peer, struct ibshift_node_card *card)
{
    const struct world *world = context;

    if (peer >= world->ranks) {
        return -ENOENT;
    }
    *card = world->cards[peer];
    return 0;
}

static struct world *kept[WORLD_MOST + 1][2]; /* those of clean runs: nets take long to make */

static void take_down(struct world *world)
{
    for (uint32_t i = 0; i < world->ranks; i++) {
        ibshift_net_destroy(world->nets[i]);
    }
    (void)rmdir(world->folder);
    free(world);
}

static void take_kept_down(void)
{
    for (uint32_t i = 0; i < 2 * (WORLD_MOST + 1); i++) {
        if (kept[i / 2][i % 2] != NULL) {
            take_down(kept[i / 2][i % 2]);
        }
    }
}

static struct world *make(uint32_t ranks, bool has_room)
{
    struct world *world = calloc(1, sizeof(*world));

    assert_non_null(world);
    world->ranks = ranks;
    world->has_room = has_room;
    snprintf(world->folder, sizeof(world->folder), "/dev/shm/test-world-XXXXXX");
    assert_non_null(mkdtemp(world->folder));
    for (uint32_t i = 0; i < ranks; i++) {
        const struct ibshift_node_options options = {.folder = world->folder,
                                                     .processes = ranks,
                                                     .place = i,
                                                     .self = i,
                                                     .memory =
                                                         (size_t)ranks * (has_room ? 80000 : 20000),
                                                     .may_copy = has_room,
                                                     .looks = 1,
                                                     .card = card_of,
                                                     .context = world};
        char why[200];

        if (ibshift_net_node_create(&options, &world->nets[i], why, sizeof(why)) != 0) {
            fail_msg("%s", why);
        }
        world->cards[i] = *ibshift_net_node_card(world->nets[i]);
    }
    return world;
}

struct world *world_create(uint32_t ranks, bool has_room,
                           const struct ibshift_engine_options *engine)
{
    static bool is_registered;
    struct world *world;

    assert_in_range(ranks, 1, WORLD_MOST);
    is_registered = is_registered || atexit(take_kept_down) == 0;
    world = kept[ranks][has_room] != NULL ? kept[ranks][has_room] : make(ranks, has_room);
    kept[ranks][has_room] = NULL;
    for (uint32_t i = 0; i < ranks; i++) {
        world->engines[i] = ibshift_engine_create(world->nets[i], engine);
        assert_non_null(world->engines[i]);
    }
    return world;
}

static void check_empty(struct ibshift_net *net)
{
    const struct ibshift_net_node *nn = ibshift_node(net);

    assert_null(nn->ended.first);
    for (uint32_t i = 0; i < nn->met_count; i++) {
        const struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        assert_null(peer->waiting.first);
        assert_null(peer->resting.first);
        assert_int_equal(peer->in_quota, peer->in_returned);
    }
}

void world_free(struct world *world, bool has_failed)
{
    for (uint32_t i = 0; i < world->ranks; i++) {
        if (!has_failed) {
            check_empty(world->nets[i]);
        }
        ibshift_engine_free(world->engines[i]);
    }
    if (has_failed || kept[world->ranks][world->has_room] != NULL) {
        take_down(world);
    } else {
        kept[world->ranks][world->has_room] = world;
    }
}

void world_turn(struct world *world, uint64_t *random)
{
    uint32_t start = world_random_below(random, world->ranks);

    for (uint32_t i = 0; i < world->ranks; i++) {
        (void)ibshift_engine_progress(world->engines[(start + i) % world->ranks]);
    }
}

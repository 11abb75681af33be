/* Messages to a multicast group, where rank 1 has hardly room for those of rank 0: casts NAME 2 1900000. */
#include <string.h>

#include "messages.h"
#include "net/cast/impl.h"

enum { EARLY = 64, MOST = 64, MANY = 4 };

/* Both join; and of rank 0 a message is held, which is all that may be. */
static struct ibshift_cast *begin(struct test *t)
{
    static const uint32_t peers[] = {0, 1};
    struct ibshift_cast_members members = {
        .peers = peers, .count = 2, .rank = (uint32_t)t->r->self, .most = MOST};
    struct ibshift_cast_place *told = (void *)t->r->shared->number[2], place;
    struct ibshift_join join;
    struct ibshift_cast *cast;
    char why[256] = "";

    if (t->r->self == 1) {
        ranks_barrier(t->r, 0);
        place = *told;
    } else {
        memset(&place, 0, sizeof(place));
    }
    if (ibshift_join_open(t->r->verbs, &join, why, sizeof(why)) != 0 ||
        ibshift_join_group(&join, &place, why, sizeof(why)) != 0 ||
        ibshift_cast_open(t->r->net, &members, &place, &join, &cast, why, sizeof(why)) != 0) {
        ranks_fail(t->r, "no group: %s", why);
    }
    if (t->r->self == 0) {
        *told = place;
        ranks_barrier(t->r, 0);
        test_begin(t, 1, 1, EARLY, why, 1);
        test_finish(t);
    }
    while (t->r->self == 1 && ranks_stats(t->r).held == 0) {
        test_poll_once(t);
    }
    ranks_barrier(t->r, 1);
    return cast;
}

static void post(struct test *t, struct ibshift_cast *cast, uint32_t tag, void *data)
{
    test_post(t, !t->r->self,
              &(struct ibshift_net_message){.peer = (uint32_t)!t->r->self,
                                            .key = {.comm = 7, .seq = 1, .tag = tag},
                                            .buffer = data,
                                            .length = 8,
                                            .cookie = t->r->self ? tag : tag + SENDS,
                                            .cast = cast});
}

static int end(struct test *t, bool is_bad)
{
    char early;

    if (t->r->self == 1) {
        test_begin(t, 0, 0, EARLY, &early, 1);
    }
    test_finish(t);
    ranks_barrier(t->r, 3);
    return is_bad;
}

/* A receive of the group is not asked for by name, which nobody would answer. */
static int unnamed(struct ranks *r)
{
    struct test t = {.r = r};
    struct ibshift_cast *cast = begin(&t);
    uint64_t data = 5;

    if (r->self == 1) {
        post(&t, cast, 0, &data);
    }
    ranks_barrier(r, 2);
    if (r->self == 0) {
        post(&t, cast, 0, &data);
    }
    test_finish(&t);
    return end(&t, ranks_stats(r).pulled != 0);
}

/* Without its queue pair a sender repairs at once: each as soon as there is a slot, though nobody asks again. */
static int repaired(struct ranks *r)
{
    struct test t = {.r = r};
    struct ibshift_cast *cast = begin(&t);
    uint64_t data = 5;

    for (uint32_t i = 0; i < MANY && r->self == 0; i++) {
        cast->is_broken = true;
        post(&t, cast, i, &data);
    }
    while (r->self == 1 && cast->held_count < MANY) {
        test_poll_once(&t);
    }
    ranks_barrier(r, 2);
    for (uint32_t i = 0; i < MANY && r->self == 1; i++) {
        post(&t, cast, i, &data);
    }
    return end(&t, r->self == 0 && ranks_stats(r).repairs != MANY);
}

static const struct test_case cases[] = {{"unnamed", unnamed, 2, 0, 0, 0},
                                         {"repaired", repaired, 2, 0, 0, 0}};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

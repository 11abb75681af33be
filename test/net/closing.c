/*
 * Connections that are taken down while something happens to them, one case a run: closing NAME.
 * The ranks ask each other without polling, so that what they send meanwhile is on its way.
 */
#include <unistd.h>

#include "messages.h"
#include "net/verbs/inside.h"

enum { RANKS = 3, LENGTH = 70000, GRANTS = 100, WALKS = 10, TAG = 100 };
enum { CONNECTED = 1, ASKED }; /* how far a rank is */

static struct ibshift_net_verbs *nv_of(const struct ranks *r)
{
    return (struct ibshift_net_verbs *)r->net;
}

/* Tells the other ranks how far this one is, and waits for one of them, without polling. */
static void reach(struct ranks *r, uint64_t step)
{
    __atomic_store_n(&r->shared->number[r->self][0], step, __ATOMIC_RELEASE);
}

static void wait_for(struct ranks *r, int rank, uint64_t step)
{
    while (__atomic_load_n(&r->shared->number[rank][0], __ATOMIC_ACQUIRE) < step) {
        usleep(50);
    }
}

/* Every rank is connected with every other. The first two meet first: they are asked first. */
static void connect_all(struct test *t)
{
    static char out, in;
    uint32_t self = (uint32_t)t->r->self;

    for (uint32_t peer = 0; peer < (uint32_t)t->r->count; peer++) {
        if (peer != self) {
            test_begin(t, 0, peer, peer * RANKS + self, &in, 1);
            test_begin(t, 1, peer, self * RANKS + peer, &out, 1);
        }
    }
    test_finish(t);
    ranks_barrier(t->r, 0);
    reach(t->r, CONNECTED); /* who is still in the barrier polls */
    for (int peer = 0; peer < t->r->count; peer++) {
        wait_for(t->r, peer, CONNECTED);
    }
}

/* Wants one connection of two, and asks that peer. */
static struct ibshift_connection *ask(struct ranks *r, uint32_t peer)
{
    struct ibshift_net_verbs *nv = nv_of(r);
    struct ibshift_connection *c = ibshift_nv_peer(nv, peer);

    nv->options.connections = 1;
    for (int i = 0; i < WALKS && c->state == IBSHIFT_CONNECTION_READY; i++) {
        ibshift_nv_close_unused(nv);
    }
    if (c->state != IBSHIFT_CONNECTION_CLOSING) {
        ranks_fail(r, "rank %u was not asked: state %d", peer, c->state);
    }
    return c;
}

/* Rank 1 has sent a message, for which nobody waits yet, before it sees that it was asked. */
static int early(struct ranks *r)
{
    struct test t = {.r = r};
    uint8_t data[8];

    connect_all(&t);
    if (r->self == 0) {
        const struct ibshift_connection *c = ask(r, 1);
        reach(r, ASKED);
        wait_for(r, 1, ASKED);
        while (c->state == IBSHIFT_CONNECTION_CLOSING) {
            test_poll_once(&t);
        }
        test_begin(&t, 0, 1, TAG, data, sizeof(data));
        test_finish(&t);
        test_expect(&t, TAG, 0, 1);
        if (nv_of(r)->stats.held == 0 || ranks_differs(data, sizeof(data), TAG) >= 0) {
            ranks_fail(r, "the message was not held, or differs");
        }
    } else if (r->self == 1) {
        wait_for(r, 0, ASKED);
        ranks_fill(data, sizeof(data), TAG);
        test_begin(&t, 1, 0, TAG, data, sizeof(data));
        if (t.left > 0) {
            ranks_fail(r, "the message waits");
        }
        reach(r, ASKED);
    }
    ranks_barrier(r, 1);
    return 0;
}

/* Rank 1 has used up its slots when it sees that it was asked, and needs one to answer. */
static int spent(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[GRANTS][LENGTH];

    connect_all(&t);
    if (r->self == 0) {
        (void)ask(r, 1);
        reach(r, ASKED);
        wait_for(r, 1, ASKED);
    } else if (r->self == 1) {
        const struct ibshift_connection *c = ibshift_nv_peer(nv_of(r), 0);
        wait_for(r, 0, ASKED);
        for (uint32_t i = 0; i < GRANTS; i++) {
            test_begin(&t, 0, 0, TAG + i, data[i], LENGTH);
        }
        if (c->out.slots_used != c->out.slots) {
            ranks_fail(r, "there are slots left");
        }
        reach(r, ASKED);
    }
    for (uint32_t i = 0; r->self == 0 && i < GRANTS; i++) {
        ranks_fill(data[i], LENGTH, i);
        test_begin(&t, 1, 1, TAG + i, data[i], LENGTH);
    }
    test_finish(&t);
    for (uint32_t i = 0; r->self == 1 && i < GRANTS; i++) {
        test_expect(&t, TAG + i, 0, 0);
        if (ranks_differs(data[i], LENGTH, i) >= 0) {
            ranks_fail(r, "message %u differs", i);
        }
    }
    ranks_barrier(r, 1);
    return 0;
}

static void ask_each_other(struct test *t)
{
    connect_all(t);
    if (t->r->self < 2) {
        (void)ask(t->r, (uint32_t)!t->r->self);
        reach(t->r, ASKED);
        wait_for(t->r, !t->r->self, ASKED);
    }
}

/* Two ranks ask each other, and the one that answers has something to say by now. */
static int crossed(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[LENGTH];

    ask_each_other(&t);
    if (r->self < 2) {
        ranks_fill(data, r->self == 0 ? LENGTH : 0, TAG);
        test_begin(&t, r->self == 0, (uint32_t)!r->self, TAG, data, LENGTH);
        test_finish(&t);
        if (ranks_differs(data, LENGTH, TAG) >= 0) {
            ranks_fail(r, "the message differs");
        }
    }
    ranks_barrier(r, 1);
    return 0;
}

/* Two ranks ask each other, and nothing is in the way. */
static int agreed(struct ranks *r)
{
    struct test t = {.r = r};
    char byte = 0;

    ask_each_other(&t);
    while (r->self < 2 && nv_of(r)->stats.closed == 0) {
        test_poll_once(&t);
    }
    if (r->self < 2) {
        test_begin(&t, r->self == 0, (uint32_t)!r->self, TAG, &byte, 1);
        test_finish(&t);
    }
    ranks_barrier(r, 1);
    return 0;
}

static const struct test_case cases[] = {
    {"early", early, RANKS, 0, 0, 0},
    {"spent", spent, RANKS, 0, 0, 0},
    {"crossed", crossed, RANKS, 0, 0, 0},
    {"agreed", agreed, RANKS, 0, 0, 0},
};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

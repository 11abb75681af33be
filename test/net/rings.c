/* Rings: who gets one, and what they spare. */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "messages.h"
#include "net/verbs/inside.h"

static void ping_pong(struct test *t, uint32_t peer)
{
    char out = 1, in = 0;

    test_begin(t, 0, peer, 0, &in, 1);
    if (t->r->self == 0) {
        test_finish(t);
    }
    test_begin(t, 1, peer, 0, &out, 1);
    test_finish(t);
}

enum { BURST = 64 };

/* Bursts to rank 0, until the sender has written into a ring: how many there are depends on when who runs. */
static void burst_until_ring(struct test *t, uint32_t sender)
{
    static uint8_t data[BURST];
    uint64_t *told = &t->r->shared->number[sender][0], burst = 0, next = 0;
    struct ibshift_net_verbs_stats s = {.ring = 0};
    bool is_sender = t->r->self == (int)sender;

    for (; next != UINT64_MAX; burst = next) {
        for (uint32_t i = 0; i < BURST; i++) {
            uint32_t tag = (uint32_t)(burst * BURST + i) % TAGS;
            test_begin(t, is_sender, is_sender ? 0 : sender, tag, &data[i], 1);
        }
        test_finish(t);
        if (is_sender) {
            s = ranks_stats(t->r);
            next = s.ring > 0 ? UINT64_MAX : burst + 1;
            __atomic_store_n(told, next, __ATOMIC_RELEASE);
        }
        while ((next = __atomic_load_n(told, __ATOMIC_ACQUIRE)) == burst) {
            test_poll_once(t);
            usleep(20);
        }
    }
}

/* There is one ring: it goes to the peer that is hot first, then to the one that is hotter. */
static int heat(struct ranks *r)
{
    struct test t = {.r = r};

    for (uint32_t sender = 1; sender <= 2; sender++) {
        if (r->self == 0 || r->self == (int)sender) {
            burst_until_ring(&t, sender);
        }
        ranks_barrier(r, (int)sender);
    }
    return 0;
}

/* A ring that is free is for those, too, who send now and then. */
static int seldom(struct ranks *r)
{
    struct test t = {.r = r};

    for (int i = 0; i < 2 * IBSHIFT_RING_HOT; i++) {
        ping_pong(&t, (uint32_t)!r->self);
        usleep(5000);
    }
    ranks_barrier(r, 0);
    return ranks_stats(r).ring == 0;
}

enum { AHEAD = 1, LONGEST = 16384 };

/* Rank 0 is at most so many messages ahead of rank 1, as no message back tells it. */
static void stream(struct test *t, size_t length, uint32_t rounds, int barrier)
{
    static uint8_t data[LONGEST];
    uint64_t *there = &t->r->shared->number[1][0];
    uint64_t before = __atomic_load_n(there, __ATOMIC_ACQUIRE);

    ranks_barrier(t->r, barrier);
    for (uint32_t i = 0; i < rounds; i++) {
        while (t->r->self == 0 && i >= __atomic_load_n(there, __ATOMIC_ACQUIRE) - before + AHEAD) {
            test_poll_once(t);
            sched_yield();
        }
        test_begin(t, t->r->self == 0, (uint32_t)!t->r->self, i % TAGS, data, length);
        test_finish(t);
        if (t->r->self == 1) {
            __atomic_add_fetch(there, 1, __ATOMIC_RELEASE);
        }
    }
}

/* Of so many messages, those that go through the ring at least: when it is full and the receiver gets
   no processor, all slots are taken before the next word comes. */
static uint64_t least_through_ring(size_t length, uint64_t messages)
{
    uint64_t records = IBSHIFT_RING_LINES / ibshift_ring_lines((uint32_t)length);

    return messages * 9 / 10 * records / (records + IBSHIFT_CREDIT_MOST);
}

/* Messages one way, through the ring, whose limit is told once for three quarters of its lines: of short
   ones 13 times, and now and then by a timer. */
static int one_way(struct ranks *r)
{
    enum { ROUNDS = 9600 };
    struct test t = {.r = r};
    static const size_t lengths[] = {8, LONGEST / 2, LONGEST};
    static const uint64_t most[] = {ROUNDS / 256, ROUNDS / 5, ROUNDS / 3 + ROUNDS / 100};
    int bad = 0;

    for (int i = 0; i < 200; i++) {
        ping_pong(&t, (uint32_t)!r->self); /* until both have a ring */
    }
    for (int i = 0; i < 3; i++) {
        struct ibshift_net_verbs_stats before, after;

        ranks_barrier(r, 3 * i);
        before = ranks_stats(r);
        stream(&t, lengths[i], ROUNDS, 3 * i + 1);
        ranks_barrier(r, 3 * i + 2);
        after = ranks_stats(r);
        printf("rank %d: sent %lu of %d of %zu bytes through the ring, wrote %lu words\n", r->self,
               (unsigned long)(after.ring - before.ring), ROUNDS, lengths[i],
               (unsigned long)(after.words - before.words));
        bad |= r->self == 0 ? after.ring - before.ring < least_through_ring(lengths[i], ROUNDS)
                            : after.words - before.words > most[i];
    }
    return bad;
}

/* What is asked for by name, as no more of rank 1 may come early in a slot, comes through the ring before
   the requests can leave: rank 1, which gives one slot at a time, does not poll. So they stay. */
static int unasked(struct ranks *r)
{
    enum { MANY = 16, END = TAGS - 2 - MANY };
    struct test t = {.r = r};
    uint64_t *turn = &r->shared->number[0][1], before, sent;
    uint32_t peer = (uint32_t)!r->self;
    char data[MANY], early = 0;

    if (r->self == 1) {
        test_begin(&t, 1, 0, TAGS - 1, &early, 1);
    }
    while (r->self == 0 && ranks_stats(r).held == 0) {
        test_poll_once(&t);
    }
    burst_until_ring(&t, 1);
    ranks_barrier(r, 0);
    before = ranks_stats(r).control;
    while (r->self == 1 && __atomic_load_n(turn, __ATOMIC_ACQUIRE) == 0) {
        usleep(20);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        test_begin(&t, r->self, peer, TAGS - 2 - i, &data[i], 1);
    }
    if (r->self == 0) {
        __atomic_store_n(turn, 1, __ATOMIC_RELEASE);
        test_finish(&t);
        __atomic_store_n(turn, 2, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) < 2) {
        usleep(20);
    }
    test_begin(&t, !r->self, peer, END, data, 1); /* behind all requests */
    test_finish(&t);
    ranks_barrier(r, 1);
    if (r->self == 0) {
        test_begin(&t, 0, 1, TAGS - 1, &early, 1);
    }
    sent = ranks_stats(r).control - before;
    printf("rank %d: %lu requests\n", r->self, (unsigned long)sent);
    return r->self == 0 && sent > 2;
}

static const struct test_case cases[] = {{"heat", heat, 3, 0, 1, 0},
                                         {"seldom", seldom, 2, 0, 0, 0},
                                         {"one_way", one_way, 2, 0, 0, 0},
                                         {"unasked", unasked, 2, 0, 0, 0}};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

/* Grants of the verbs net that stand: long messages that come again to the same place. One case a run. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"
#include "net/verbs/device.h"

enum { LENGTH = 40000, HALVES = 2, RUNS = 40 };

static uint8_t to[RANKS_MAX][HALVES][LENGTH], from[LENGTH];

/* Of the run'th exchange; cookies as test_begin() has them. */
static void begin(struct test *t, bool is_send, uint32_t peer, uint32_t comm, uint32_t run,
                  size_t length)
{
    test_post(t, is_send,
              &(struct ibshift_net_message){.peer = peer,
                                            .key = {.comm = comm, .seq = run, .tag = 3},
                                            .buffer = is_send ? from : to[peer][run % HALVES],
                                            .length = length,
                                            .standing = 1 + run % HALVES,
                                            .cookie = is_send ? run + SENDS : run});
}

static uint64_t seed_of(uint32_t comm, uint32_t run, int rank)
{
    return comm * 1000003u + run * 64u + (uint32_t)rank;
}

/* From here on no buffer can be registered, or each. */
static void refuse(struct test *t, bool is_refused)
{
    t->r->verbs->regions_most = is_refused ? t->r->verbs->regions + 1 : 0;
}

/* Both give and take; who is late finds it there. */
static void exchange_some(struct test *t, uint32_t peer, uint32_t comm, uint32_t run,
                          uint64_t *random, bool is_copied)
{
    uint32_t late = (uint32_t)ranks_random(random) % 3;

    refuse(t, is_copied);
    ranks_fill(from, LENGTH, seed_of(comm, run, t->r->self));
    begin(t, true, peer, comm, run, LENGTH);
    for (uint32_t i = 0; i < late * 500; i++) {
        test_poll_once(t);
    }
    refuse(t, false);
    begin(t, false, peer, comm, run, LENGTH);
    refuse(t, is_copied);
    test_finish(t);
    refuse(t, false);
    test_expect(t, run, 0, peer);
    test_expect(t, run + SENDS, 0, peer);
    if (ranks_differs(to[peer][run % HALVES], LENGTH, seed_of(comm, run, (int)peer)) >= 0) {
        ranks_fail(t->r, "run %u on communicator %u differs", run, comm);
    }
}

static void exchange(struct test *t, uint32_t peer, uint32_t comm, uint32_t run, uint64_t *random)
{
    exchange_some(t, peer, comm, run, random, false);
}

/* One grant a half and communicator; what is forgotten is granted anew. */
static int again(struct ranks *r)
{
    struct test t = {.r = r};
    struct ibshift_net_verbs_stats s;
    uint64_t random = (uint64_t)r->self + 1, grants = 0;

    for (uint32_t comm = 7; comm < 10; comm++) {
        for (uint32_t run = 0; run < RUNS; run++) {
            exchange(&t, !r->self, comm == 9 ? 7 : comm, run, &random);
        }
        ranks_barrier(r, (int)comm);
        ibshift_net_forget(r->net, comm);
        grants += HALVES;
    }
    s = ranks_stats(r);
    printf("%lu long messages, %lu with a grant that stood, %lu control messages\n", s.rendezvous,
           s.standing, s.control);
    return s.rendezvous != 3 * (uint64_t)RUNS || s.standing != s.rendezvous - grants ||
           s.control > grants + 1; /* and a ring */
}

/* The peer has another length the second time. */
static int shorter(struct ranks *r)
{
    struct test t = {.r = r};
    uint64_t random = 1;

    for (uint32_t run = 0; run < HALVES; run++) {
        exchange(&t, !r->self, 7, run, &random);
    }
    begin(&t, r->self == 0, !r->self, 7, HALVES, r->self == 0 ? LENGTH : LENGTH / 2);
    test_finish(&t);
    test_expect(&t, HALVES + (r->self == 0 ? SENDS : 0),
                t.status[HALVES + (r->self == 0 ? SENDS : 0)], !r->self);
    if (r->self == 1 && t.status[HALVES] != -EMSGSIZE) {
        ranks_fail(r, "half a message into a grant that stands: status %d", t.status[HALVES]);
    }
    return 0;
}

/* Rank 1 is killed while grants stand on both sides; rank 2 lives. */
static int death(struct ranks *r)
{
    struct test t = {.r = r};
    uint64_t random = 1;
    uint32_t run = 0;

    for (; run < 4 && r->self != 2; run++) {
        exchange(&t, !r->self, 7, run, &random);
    }
    if (r->self == 1) {
        raise(SIGKILL);
    }
    if (r->self == 0) {
        begin(&t, false, 1, 7, run, LENGTH);
        test_finish(&t);
        if (t.status[run] != -ETIMEDOUT && t.status[run] != -ECONNRESET) {
            ranks_fail(r, "from a dead rank: status %d", t.status[run]);
        }
        test_expect(&t, run, t.status[run], 1);
    }
    for (run = 0; run < 4; run++) {
        exchange(&t, r->self == 0 ? 2 : 0, 8, run, &random);
    }
    ibshift_net_forget(r->net, 7);
    return 0;
}

/* Rank 0 fails on `given_up` and forgets 7; what rank 1 writes there later is dropped, and the
   connection lives. */
static int late_of(struct ranks *r, uint32_t given_up)
{
    const struct ibshift_net_cause why = {.peer = 0, .status = -ENOMEM};
    struct test t = {.r = r};
    uint64_t random = 1;

    for (uint32_t run = 0; run < 4; run++) {
        exchange(&t, !r->self, 7, run, &random);
    }
    if (r->self == 0) {
        ibshift_net_cancel(r->net, given_up, 4);
        ibshift_net_give_up(r->net, given_up, &why);
        ibshift_net_forget(r->net, 7);
    }
    ranks_barrier(r, 0);
    if (r->self == 1) {
        begin(&t, true, 0, 7, 4, LENGTH);
        test_finish(&t);
        test_expect(&t, 4 + SENDS, 0, 0);
    }
    ranks_barrier(r, 1);
    for (uint32_t run = 0; run < 4; run++) {
        exchange(&t, !r->self, 8, run, &random);
    }
    return 0;
}

static int late(struct ranks *r)
{
    return late_of(r, 7);
}

/* Peers that have not heard yet of another communicator's failure go on with this one. */
static int elsewhere(struct ranks *r)
{
    return late_of(r, 9);
}

/* Some senders cannot register their buffer: these messages are copied, to where a grant stands, and
   nobody is asked for another one. */
static int copied(struct ranks *r)
{
    struct test t = {.r = r};
    struct ibshift_net_verbs_stats s;
    uint64_t random = (uint64_t)r->self + 5, probes = 0;

    for (uint32_t run = 0; run < RUNS; run++) {
        if (run == HALVES) { /* a first grant may be late, and is asked for then */
            s = ranks_stats(r);
            probes = s.probes;
        }
        exchange_some(&t, !r->self, 7, run, &random, ranks_random(&random) % 4 == 0);
    }
    ranks_barrier(r, 0);
    s = ranks_stats(r);
    printf("%lu long messages, %lu copied, %lu with a grant that stood, %lu probes\n", s.rendezvous,
           s.copied, s.standing, s.probes);
    return s.rendezvous != RUNS || s.copied == 0 || s.standing != RUNS - HALVES ||
           s.probes != probes;
}

/* Both sides know of each run whether the grant to a rank holds, and how long its message is. */
static bool is_anew(int to_rank, uint32_t run)
{
    return (run * 2654435761u >> (4 + to_rank)) % 4 == 0;
}

static size_t opened_length(int to_rank, uint32_t run)
{
    return LENGTH - 64 * ((run / 6 + (uint32_t)to_rank) % 3);
}

static void begin_opened(struct test *t, bool is_send, uint32_t peer, uint32_t run, uint32_t place)
{
    int to_rank = is_send ? (int)peer : t->r->self;

    test_post(t, is_send,
              &(struct ibshift_net_message){.peer = peer,
                                            .key = {.comm = 7, .seq = run, .tag = 3},
                                            .buffer = is_send ? from : to[peer][place],
                                            .length = opened_length(to_rank, run),
                                            .standing = IBSHIFT_NET_OPENED | 9,
                                            .is_anew = is_anew(to_rank, run),
                                            .cookie = is_send ? run + SENDS : run});
}

/* Whether that run needs a grant to the rank. */
static bool is_granted_in(int to_rank, uint32_t run)
{
    return run == 0 || is_anew(to_rank, run) ||
           opened_length(to_rank, run) != opened_length(to_rank, run - 1);
}

/* A grant for each change, and for none else: of the place, and of the length. */
static int opened(struct ranks *r)
{
    struct test t = {.r = r};
    uint64_t random = (uint64_t)r->self + 9, mine = 0, grants = 0;
    struct ibshift_net_verbs_stats s;
    uint32_t peer = !r->self, place = 0;

    for (uint32_t run = 0; run < RUNS; run++) {
        place = is_anew(r->self, run) ? !place : place;
        mine += is_granted_in(r->self, run);
        grants += is_granted_in((int)peer, run);
        ranks_barrier(r, (int)run);
        ranks_fill(from, LENGTH, seed_of(7, run, r->self));
        begin_opened(&t, true, peer, run, 0);
        for (uint64_t i = 0; i < ranks_random(&random) % 3 * 500; i++) {
            test_poll_once(&t);
        }
        begin_opened(&t, false, peer, run, place);
        test_finish(&t);
        test_expect(&t, run, 0, peer);
        test_expect(&t, run + SENDS, 0, peer);
        if (ranks_differs(to[peer][place], opened_length(r->self, run),
                          seed_of(7, run, (int)peer)) >= 0) {
            ranks_fail(r, "run %u differs", run);
        }
    }
    s = ranks_stats(r);
    printf("%lu long messages, %lu with a grant that stood, %lu control messages\n", s.rendezvous,
           s.standing, s.control);
    ibshift_net_revoke(r->net, 7, IBSHIFT_NET_OPENED | 9, NULL);
    for (uint32_t run = 0; run < 4; run++) { /* the connection lives */
        exchange(&t, peer, 8, run, &random);
    }
    return s.rendezvous != RUNS || s.standing != RUNS - grants || s.control > mine + 1;
}

/* Rank 0 gives a run up in which rank 1 may write, and has not: it never does. */
static int revoked(struct ranks *r)
{
    struct test t = {.r = r};
    uint32_t peer = !r->self, run = 0;

    for (; run < 2; run++) { /* two in which the grant stands, or not at all */
        ranks_barrier(r, (int)run);
        ranks_fill(from, LENGTH, seed_of(7, run, r->self));
        begin_opened(&t, true, peer, run, 0);
        begin_opened(&t, false, peer, run, 0);
        test_finish(&t);
    }
    ranks_barrier(r, (int)run);
    if (r->self == 0) {
        ibshift_net_cancel(r->net, 7, run);
        ibshift_net_revoke(r->net, 7, IBSHIFT_NET_OPENED | 9, &run);
        memset(to[peer][0], 0, LENGTH);
    }
    ranks_barrier(r, (int)run + 1);
    if (r->self == 1) {
        ranks_fill(from, LENGTH, seed_of(7, run, r->self));
        begin_opened(&t, true, peer, run, 0);
        test_finish(&t);
        if (t.status[run + SENDS] == 0) {
            ranks_fail(r, "it wrote where its grant was revoked");
        }
        test_expect(&t, run + SENDS, t.status[run + SENDS], peer);
    }
    ranks_barrier(r, (int)run + 2);
    for (size_t i = 0; i < LENGTH && r->self == 0; i++) {
        if (to[peer][0][i] != 0) {
            ranks_fail(r, "byte %zu has been written", i);
        }
    }
    return 0;
}

static const struct test_case cases[] = {
    {"opened", opened, 2, 0, 0, 0},       {"revoked", revoked, 2, 0, 0, 0},
    {"again", again, 2, 0, 0, 0},         {"shorter", shorter, 2, 0, 0, 0},
    {"death", death, 3, 2, 0, 0},         {"late", late, 2, 0, 0, 0},
    {"elsewhere", elsewhere, 2, 0, 0, 0}, {"copied", copied, 2, 0, 0, 0}};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

/*
 * Hard cases of the verbs net, one a run: cases NAME [RANKS].
 * Every case ends by events alone; an alarm ends one that hangs.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "net/verbs/connection.h"
#include "net/verbs/credit.h"

/* Everyone sends hundreds of short messages to rank 0, which takes them late and backwards. */
static int flood(struct ranks *r)
{
    enum { EACH = 300 };
    struct test t = {.r = r};
    static uint8_t data[TAGS][256];
    uint32_t total = EACH * (uint32_t)(r->count - 1);

    if (total >= TAGS) {
        ranks_fail(r, "too many ranks for this case");
    }
    for (uint32_t i = 0; i < EACH && r->self > 0; i++) {
        uint32_t tag = i * (uint32_t)(r->count - 1) + (uint32_t)r->self - 1;
        ranks_fill(data[tag], tag % 257, tag);
        test_begin(&t, 1, 0, tag, data[tag], tag % 257);
    }
    if (r->self == 0) {
        do {
            test_poll_for(&t, 200); /* more than one come, unless the others have had no turn */
        } while (ranks_stats(r).held == 0);
        for (uint32_t tag = total; tag-- > 0;) {
            test_begin(&t, 0, 1 + tag % (uint32_t)(r->count - 1), tag, data[tag], tag % 257);
        }
    }
    test_finish(&t);
    for (uint32_t tag = 0; tag < total && r->self == 0; tag++) {
        long at = ranks_differs(data[tag], tag % 257, tag);
        test_expect(&t, tag, 0, 1);
        if (at >= 0) {
            ranks_fail(r, "message %u differs at byte %ld", tag, at);
        }
    }
    ranks_barrier(r, 0);
    if (r->self == 0) {
        struct ibshift_net_verbs_stats s = ranks_stats(r);
        printf("%u messages, %lu of them held, %lu pulled\n", total, s.held, s.pulled);
        return s.held == 0 || s.held == total;
    }
    return 0;
}

/* As many writes as pieces, whatever the length of the last one; and messages to one peer take
   turns: a shorter one passes a longer one that began before it. */
static int pieces(struct ranks *r)
{
    enum { PIECE = 16384, LONGEST = 256 * 1024, TAG = 20 };
    static const size_t lengths[] = {PIECE + 1,     2 * PIECE - 1,  2 * PIECE,
                                     2 * PIECE + 1, 16 * PIECE - 1, LONGEST};
    static uint8_t data[2][LONGEST], last;
    struct test t = {.r = r, .piece = PIECE};
    uint64_t before;
    uint32_t i;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        before = ranks_stats(r).pieces;
        r->self == 0 ? ranks_fill(data[0], LONGEST, i) : memset(data[0], 0, LONGEST);
        test_begin(&t, r->self == 0, !r->self, i, data[0], lengths[i]);
        test_finish(&t);
        test_expect(&t, r->self == 0 ? i + SENDS : i, 0, !r->self);
        if (r->self == 0 && ranks_stats(r).pieces - before != (lengths[i] + PIECE - 1) / PIECE) {
            ranks_fail(r, "%lu writes of %zu bytes", ranks_stats(r).pieces - before, lengths[i]);
        }
        if (r->self == 1 && ranks_differs(data[0], lengths[i], i) >= 0) {
            ranks_fail(r, "the data differs");
        }
    }
    if (r->self == 0) { /* both grants are here, behind which the short message was sent */
        test_begin(&t, 0, 1, TAG + 2, data[0], 1);
        test_finish(&t);
        test_poll_for(&t, 10);
    }
    test_begin(&t, r->self == 0, !r->self, TAG, data[0], LONGEST);
    test_begin(&t, r->self == 0, !r->self, TAG + 1, data[1], LONGEST / 4);
    if (r->self == 1) {
        test_begin(&t, 1, 0, TAG + 2, &last, 1);
    }
    while (r->self == 0 && t.status[TAG + 1 + SENDS] == PENDING) {
        test_poll_once(&t);
    }
    if (r->self == 0 && t.status[TAG + SENDS] != PENDING) {
        ranks_fail(r, "the longer message has ended first");
    }
    test_finish(&t);
    ranks_barrier(r, 0);
    return 0;
}

/* A kill is only asked for: on a busy machine the rank would still take the rest of a message. */
static void kill_for_good(pid_t rank)
{
    char path[32], line[256] = "", *state = line;

    kill(rank, SIGKILL);
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)rank);
    while (state != NULL && strncmp(state, ") Z", 3) != 0) {
        FILE *file = fopen(path, "r");

        state = file != NULL && fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
        if (file != NULL) {
            fclose(file);
        }
        usleep(1000);
    }
}

/* A message in pieces that ends in its middle: by its sender, by its receiver, by a dead one. */
static int cut_short(struct ranks *r)
{
    enum { LENGTH = 1 << 20, PIECE = 4096, SOME = 5 };
    static uint8_t data[LENGTH];
    struct test t = {.r = r, .piece = PIECE};
    uint32_t tag = 64 * (uint32_t)r->self;

    if (r->self > 0) {
        uint64_t *turn = &r->shared->number[0][0];
        r->shared->number[r->self][0] = (uint64_t)getpid();
        test_begin(&t, 0, 0, tag, data, LENGTH);
        while (t.left > 0 && (r->self != 2 || __atomic_load_n(turn, __ATOMIC_ACQUIRE) < 2)) {
            test_poll_once(&t);
        }
        if (r->self == 2) {
            ibshift_net_cancel(r->net, 7, 2);
            ibshift_net_abort(r->net, 0, 7, 2);
            test_finish(&t);
        }
        test_expect(&t, tag, r->self == 2 ? -ECANCELED : -ECONNRESET, 0);
        __atomic_store_n(&r->shared->number[r->self][1], 1, __ATOMIC_RELEASE);
        return 0;
    }
    for (uint32_t peer = 1; peer < 4; peer++) {
        uint64_t before = ranks_stats(r).pieces;
        test_begin(&t, 1, peer, 64 * peer, data, LENGTH);
        while (ranks_stats(r).pieces < before + SOME) {
            test_poll_once(&t);
        }
        __atomic_store_n(&r->shared->number[0][0], peer, __ATOMIC_RELEASE);
        if (peer == 1) {
            ibshift_net_cancel(r->net, 7, 1);
        } else if (peer == 2) {
            while (__atomic_load_n(&r->shared->number[2][1], __ATOMIC_ACQUIRE) == 0) {
                usleep(1000);
            }
        } else {
            kill_for_good((pid_t)r->shared->number[3][0]);
        }
        test_finish(&t);
        if (t.status[64 * peer + SENDS] == 0) {
            ranks_fail(r, "the message to rank %u has ended well", peer);
        }
        test_expect(&t, 64 * peer + SENDS, t.status[64 * peer + SENDS], peer);
    }
    return t.status[64 + SENDS] != -ECANCELED;
}

/* A rank that comes a second late. */
static int late(struct ranks *r)
{
    struct test t = {.r = r};
    uint32_t next = (uint32_t)((r->self + 1) % r->count);
    uint32_t previous = (uint32_t)((r->self + r->count - 1) % r->count);
    char out = 1, in = 0;

    if (r->self == 1) {
        usleep(1000 * 1000);
    }
    test_begin(&t, 1, next, next, &out, 1);
    test_begin(&t, 0, previous, (uint32_t)r->self, &in, 1);
    test_finish(&t);
    test_expect(&t, (uint32_t)r->self, 0, previous);
    ranks_barrier(r, 0);
    return in != 1;
}

/* Rank 1 never sends what rank 0 waits for; rank 0 gives up. */
static int cancel(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[4][70000];

    if (r->self == 0) {
        test_begin(&t, 0, 1, 64, data[0], 8);
        test_begin(&t, 0, 1, 65, data[1], 70000);
        test_begin(&t, 1, 1, 66, data[2], 70000);
        test_begin(&t, 0, 2, 128, data[3], 8);
        test_poll_for(&t, 300);
        ibshift_net_cancel(r->net, 7, 1);
        test_finish(&t);
        test_expect(&t, 64, -ECANCELED, 1);
        test_expect(&t, 65, -ECANCELED, 1);
        test_expect(&t, 66 + SENDS, -ECANCELED, 1);
        test_expect(&t, 128, 0, 2);
        test_begin(&t, 1, 1, 129, data[0], 8);
        test_expect(&t, 129 + SENDS, -ECONNRESET, 1);
    } else if (r->self == 1) {
        test_begin(&t, 0, 0, 200, data[0], 8);
        test_finish(&t);
        test_expect(&t, 200, -ECONNRESET, 0);
    } else {
        test_poll_for(&t, 800);
        test_begin(&t, 1, 0, 128, data[0], 8);
        test_finish(&t);
        test_expect(&t, 128 + SENDS, 0, 0);
    }
    return 0;
}

/* Rank 1 gives a collective up; another one with it goes on. */
static int aborted(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[3][70000];

    if (r->self == 0) {
        test_begin(&t, 0, 1, 64, data[0], 8);
        test_begin(&t, 1, 1, 65, data[1], 70000);
        test_begin(&t, 0, 1, 128, data[2], 8);
        test_finish(&t);
        test_expect(&t, 64, -ECONNABORTED, 1);
        test_expect(&t, 65 + SENDS, -ECONNABORTED, 1);
        test_expect(&t, 128, 0, 1);
        test_begin(&t, 0, 1, 66, data[0], 70000);
        test_expect(&t, 66, -ECONNABORTED, 1);
    } else if (r->self == 1) {
        test_poll_for(&t, 200);
        ibshift_net_cancel(r->net, 7, 1);
        ibshift_net_abort(r->net, 0, 7, 1);
        test_poll_for(&t, 200);
        test_begin(&t, 1, 0, 128, data[0], 8);
        test_finish(&t);
        test_expect(&t, 128 + SENDS, 0, 0);
    }
    return 0;
}

/* Rank 1 gives many collectives up before rank 0 comes to any; then the communicator's number is
   used again, with messages that come early. */
static int forgotten(struct ranks *r)
{
    enum { GIVEN_UP = 200 };
    struct test t = {.r = r};
    static uint8_t data[8];

    for (uint32_t seq = 1; seq <= GIVEN_UP && r->self == 1; seq++) {
        ibshift_net_abort(r->net, 0, 7, seq);
    }
    test_poll_for(&t, 300);
    for (uint32_t seq = 1; seq <= GIVEN_UP && r->self == 0; seq++) {
        struct ibshift_net_message m = {
            .peer = 1, .key = {.comm = 7, .seq = seq}, .buffer = data, .length = sizeof(data)};
        int rc = ibshift_net_recv(r->net, &m);
        if (rc != -ECONNABORTED) {
            ranks_fail(r, "collective %u, given up, is waited for: %d", seq, rc);
        }
        ibshift_net_cancel(r->net, 7, seq);
    }
    ibshift_net_forget(r->net, 7);
    ranks_barrier(r, 1);
    if (r->self == 1) {
        test_begin(&t, 1, 0, 128, data, sizeof(data));
    } else {
        test_poll_for(&t, 100);
        test_begin(&t, 0, 1, 128, data, sizeof(data));
    }
    test_finish(&t);
    test_expect(&t, r->self == 1 ? 128 + SENDS : 128, 0, (uint32_t)r->self ^ 1);
    return 0;
}

/* The two sides name different lengths, each in turn short and long. */
static int mismatch(struct ranks *r)
{
    static const size_t lengths[4][2] = {{8, 16}, {70000, 8}, {8, 70000}, {70000, 80000}};
    static uint8_t data[80000];
    struct test t = {.r = r};
    int pair = r->self / 2;

    if (pair < 4) {
        int is_send = r->self % 2 == 0;
        uint32_t peer = (uint32_t)(r->self ^ 1);
        uint32_t cookie = is_send ? 5 + SENDS : 5;
        test_begin(&t, is_send, peer, 5, data, lengths[pair][!is_send]);
        test_finish(&t);
        if (is_send && t.status[cookie] == 0) { /* it had left before: the next one fails */
            cookie = 6;
            test_begin(&t, 0, peer, 6, data, 8);
            test_finish(&t);
        }
        test_expect(&t, cookie, -EMSGSIZE, peer);
    }
    return 0;
}

/* Rank 1's card of rank 0 is that of an earlier process at the same address. */
static int stale(struct ranks *r)
{
    struct test t = {.r = r};
    char byte = 0, text[512];

    if (r->self == 1) {
        r->shared->card[0][8] ^= 1; /* the incarnation */
        test_begin(&t, 1, 0, 1, &byte, 1);
    }
    test_poll_for(&t, 300);
    struct ibshift_net_verbs_stats s = ranks_stats(r);
    ibshift_net_describe(r->net, (uint32_t)!r->self, text, sizeof(text));
    printf("rank %d: %s\n", r->self, text);
    if (r->self == 0) {
        return s.connections != 0;
    }
    ibshift_net_cancel(r->net, 7, 0);
    test_finish(&t);
    return t.status[1 + SENDS] != -ECANCELED || strstr(text, "no answer") == NULL;
}

/* A barrier by dissemination: connections are O(log P), memory is what it is for two ranks. */
static int many(struct ranks *r)
{
    struct test t = {.r = r};
    char out = 1, in[32];
    struct ibshift_net_verbs_stats s;
    uint32_t rounds = 0;

    for (uint32_t step = 1; step < (uint32_t)r->count; step *= 2, rounds++) {
        uint32_t to = ((uint32_t)r->self + step) % (uint32_t)r->count;
        uint32_t from = ((uint32_t)r->self + (uint32_t)r->count - step) % (uint32_t)r->count;
        test_begin(&t, 0, from, rounds, &in[rounds], 1);
        test_begin(&t, 1, to, rounds, &out, 1);
        test_finish(&t);
    }
    s = ranks_stats(r);
    r->shared->number[r->self][0] = s.connections;
    ranks_barrier(r, 0);
    if (r->self == 0) {
        uint64_t most = 0;
        for (int i = 0; i < r->count; i++) {
            most = r->shared->number[i][0] > most ? r->shared->number[i][0] : most;
        }
        printf("%d ranks: at most %lu connections a rank, %lu bytes registered\n", r->count,
               (unsigned long)most, s.registered);
        return most > 2 * rounds || s.registered != r->options.memory;
    }
    return 0;
}

/* Run with so little memory to lock that long messages cannot be registered: they are copied. */
static int locked(struct ranks *r)
{
    enum { LENGTH = 1000001, EACH = 3 };
    struct test t = {.r = r};
    static uint8_t out[LENGTH], in[EACH][LENGTH];
    struct ibshift_net_verbs_stats s;

    ranks_fill(out, LENGTH, (uint64_t)r->self);
    for (uint32_t i = 0; i < EACH; i++) {
        test_begin(&t, 0, (uint32_t)!r->self, i, in[i], LENGTH);
        test_begin(&t, 1, (uint32_t)!r->self, i, out, LENGTH);
    }
    test_finish(&t);
    for (uint32_t i = 0; i < EACH; i++) {
        test_expect(&t, i, 0, (uint32_t)!r->self);
        if (ranks_differs(in[i], LENGTH, (uint64_t)!r->self) >= 0) {
            ranks_fail(r, "message %u differs", i);
        }
    }
    ranks_barrier(r, 0);
    s = ranks_stats(r);
    return s.copied == 0;
}

/* A cache whose region could not be given back may ask once more. */
static int returned(struct ranks *r)
{
    static uint8_t data[4096];
    struct ibshift_region region;
    size_t before = r->verbs->regions;
    int rc = ibshift_region_register(r->verbs, data, sizeof(data), &region);

    for (int i = 0; i < 2 && rc == 0; i++) {
        rc = ibshift_region_deregister(&region);
    }
    ranks_barrier(r, 0);
    return rc != 0 || r->verbs->regions != before;
}

static const struct test_case cases[] = {
    {"flood", flood, 4, 0, 0, 0},         {"late", late, 3, 0, 0, 0},
    {"cancel", cancel, 3, 0, 0, 0},       {"mismatch", mismatch, 8, 0, 0, 0},
    {"aborted", aborted, 2, 0, 0, 0},     {"stale", stale, 2, 0, 0, 0},
    {"many", many, 16, 0, 0, 0},          {"locked", locked, 2, 0, 0, 0},
    {"forgotten", forgotten, 2, 0, 0, 0}, {"pieces", pieces, 2, 0, 0, 0},
    {"cut_short", cut_short, 4, 8, 0, 0}, {"returned", returned, 2, 0, 0, 0},
};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

/* The simulated net by itself: net.h's promises, in time. */
#include <stdlib.h>
#include <string.h>

#include "fabric/read/synth.h"
#include "sim/net.h"
#include "unit.h"

enum { RANKS = 4, BYTES = 4000, EVENTS_MAX = 16 };
#define PACKET 250000u

struct bench {
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_net *net;
    struct sim_fabric *fabric;
    void (*script)(struct bench *b, uint32_t rank);
    bool has_begun[RANKS];
    struct ibshift_net_event event[RANKS][EVENTS_MAX];
    uint64_t when[RANKS][EVENTS_MAX];
    int events[RANKS];
    char out[RANKS][BYTES], in[RANKS][BYTES];
    size_t piece; /* of sends */
};

static const struct ibshift_net_key key = {1, 2, 3};

static void turn(void *context, uint32_t rank)
{
    struct bench *b = context;
    int *count = &b->events[rank], got;

    if (!b->has_begun[rank]) {
        b->has_begun[rank] = true;
        b->script(b, rank);
    }
    while ((got = ibshift_net_poll(sim_net_end(b->net, rank), &b->event[rank][*count], 1)) > 0) {
        b->when[rank][*count] = b->queue.now;
        *count += got;
    }
}

static void arrived(void *context, uint32_t user, enum sim_arrival arrival)
{
    sim_net_arrived(((struct bench *)context)->net, user, arrival);
}

static void run(struct bench *b, const struct sim_net_options *options,
                void (*script)(struct bench *b, uint32_t rank))
{
    static const uint32_t host_of[RANKS] = {0, 1, 2, 3};
    const struct sim_fabric_options fabric = {.mtu = 1000,
                                              .buffer = 50000,
                                              .lanes = 2,
                                              .reads = 3,
                                              .flight = 10000,
                                              .routing = 90000,
                                              .rate = 32000};
    struct sim_fabric_user user = {.context = b, .arrived = arrived};
    struct sim_event event;
    struct ibshift_error err;
    int kind;

    memset(b, 0, sizeof(*b));
    b->script = script;
    sim_queue_init(&b->queue);
    assert_int_equal(ibshift_synth_fabric("kary:4,1", &b->graph, &err), 0);
    b->net = sim_net_create(b->graph, options, host_of, RANKS, &b->queue);
    assert_int_equal(sim_fabric_create(b->graph, &fabric, &user, &b->queue, &b->fabric, &err), 0);
    sim_net_begin(b->net, b->fabric, turn, b);
    while (sim_queue_pop(&b->queue, &event, &kind)) {
        if (kind < SIM_KINDS_FABRIC) {
            sim_fabric_event(b->fabric, kind, &event);
        } else {
            sim_net_event(b->net, kind, &event);
        }
    }
}

static void tear_down(struct bench *b)
{
    sim_fabric_free(b->fabric);
    sim_net_free(b->net);
    sim_queue_free(&b->queue);
    ibshift_fabric_free(b->graph);
}

static struct ibshift_net_message message(struct bench *b, uint32_t rank, uint32_t peer, bool send)
{
    return (struct ibshift_net_message){.peer = peer,
                                        .key = key,
                                        .buffer = send ? b->out[rank] : b->in[rank],
                                        .length = BYTES,
                                        .piece = b->piece,
                                        .cookie = send ? 10 : 20};
}

static int post(struct bench *b, uint32_t rank, uint32_t peer, bool send)
{
    struct ibshift_net_message m = message(b, rank, peer, send);

    return send ? ibshift_net_send(sim_net_end(b->net, rank), &m)
                : ibshift_net_recv(sim_net_end(b->net, rank), &m);
}

static void one_to_two(struct bench *b, uint32_t rank)
{
    if (rank == 1) {
        memset(b->out[1], 'x', BYTES);
        assert_int_equal(post(b, 1, 2, true), IBSHIFT_NET_PENDING);
    } else if (rank == 2) {
        assert_int_equal(post(b, 2, 1, false), IBSHIFT_NET_PENDING);
    }
}

static void one_to_two_in_pieces(struct bench *b, uint32_t rank)
{
    b->piece = 1500;
    one_to_two(b, rank);
}

/* Grant, message, acknowledgement: each in its time. */
static void rendezvous(void **state)
{
    const struct sim_net_options options = {.control = 500000, .moves_data = true};
    uint64_t there = 500000 + 100000 + 4 * PACKET + 10000;
    struct bench b;

    run(&b, &options, one_to_two);
    assert_int_equal(b.events[2], 1);
    assert_int_equal(b.event[2][0].cookie, 20);
    assert_int_equal(b.event[2][0].peer, 1);
    assert_int_equal(b.when[2][0], there);
    assert_int_equal(b.in[2][BYTES - 1], 'x');
    assert_int_equal(b.events[1], 1);
    assert_int_equal(b.event[1][0].cookie, 10);
    assert_int_equal(b.when[1][0], there + 2 * 100000);
    assert_int_equal(b.net->known, 0);
    tear_down(&b);
}

/* Three pieces of at most 1,500 bytes, the next 0.5 to 1.5 us after the one before has arrived; one
 * message, one arrival, and the early mark (behind 3,000 bytes: the second piece's end). */
static void pieces(void **state)
{
    const struct sim_net_options options = {.moves_data = true};
    uint64_t there = 3 * (100000 + 10000) + 4 * PACKET;
    struct bench b;

    run(&b, &options, one_to_two_in_pieces);
    assert_int_equal(b.events[2], 1);
    assert_in_range(b.when[2][0], there + 2 * 500000, there + 2 * 1500000);
    assert_int_equal(b.in[2][BYTES - 1], 'x');
    assert_int_equal(b.when[1][0], b.when[2][0] + 2 * 100000);
    assert_int_equal(b.net->stats.messages, 1);
    assert_int_equal(b.net->stats.bytes, BYTES);
    assert_int_equal(b.net->known, 0);
    tear_down(&b);
}

/* A grant as a packet of 500 bytes: its own way through the fabric on top. */
static void grants_in_the_fabric(void **state)
{
    const struct sim_net_options options = {.control = 0, .grant_bytes = 500};
    struct bench b;

    run(&b, &options, one_to_two);
    assert_int_equal(b.when[2][0], (100000 + PACKET / 2 + 10000) + 100000 + 4 * PACKET + 10000);
    tear_down(&b);
}

static void early(struct bench *b, uint32_t rank)
{
    struct ibshift_net_message m;

    if (rank == 1 || rank == 2) {
        m = message(b, rank, 3 - rank, rank == 1);
        m.early = 1000; /* the last packet */
        m.hint = 77;
        assert_int_equal(rank == 1 ? ibshift_net_send(sim_net_end(b->net, 1), &m)
                                   : ibshift_net_recv(sim_net_end(b->net, 2), &m),
                         IBSHIFT_NET_PENDING);
    }
}

static void early_in_pieces(struct bench *b, uint32_t rank)
{
    b->piece = 1500;
    early(b, rank);
}

/* The last packet of 1,000 bytes is a piece of its own here. */
static void early_piece(void **state)
{
    const struct sim_net_options options = {.control = 0};
    struct bench b;

    run(&b, &options, early_in_pieces);
    assert_int_equal(b.events[2], 2);
    assert_int_equal(b.event[2][0].status, IBSHIFT_NET_EARLY);
    assert_in_range(b.when[2][1] - b.when[2][0], 500000 + 110000 + PACKET,
                    1500000 + 110000 + PACKET);
    tear_down(&b);
}

static void early_news(void **state)
{
    const struct sim_net_options options = {.control = 0};
    struct bench b;

    run(&b, &options, early);
    assert_int_equal(b.events[2], 2);
    assert_int_equal(b.event[2][0].status, IBSHIFT_NET_EARLY);
    assert_int_equal(b.when[2][1] - b.when[2][0], PACKET);
    assert_int_equal(b.events[1], 2);
    assert_int_equal(b.event[1][0].status, IBSHIFT_NET_EARLY);
    assert_int_equal(b.event[1][1].status, 0);
    tear_down(&b);
}

static void granted_later(struct bench *b, uint32_t rank)
{
    uint64_t hint;

    if (rank == 2) {
        struct ibshift_net_message m = message(b, 2, 1, false);

        m.hint = 77;
        assert_int_equal(ibshift_net_recv(sim_net_end(b->net, 2), &m), IBSHIFT_NET_PENDING);
    } else if (rank == 1) {
        assert_false(ibshift_net_granted(sim_net_end(b->net, 1), 2, &key, &hint));
        sim_net_wake_at(b->net, 1, ibshift_net_now(sim_net_end(b->net, 1)) + 1000);
        b->script = one_to_two;
        b->has_begun[1] = false; /* the grant's coming wakes it, and it sends */
    }
}

/* The grant wakes a sender that only asked for it. */
static void grant_wakes(void **state)
{
    const struct sim_net_options options = {.control = 500000};
    struct bench b;

    run(&b, &options, granted_later);
    assert_int_equal(b.events[2], 1);
    assert_int_equal(b.when[2][0], 500000 + 100000 + 4 * PACKET + 10000);
    tear_down(&b);
}

static void leaver(struct bench *b, uint32_t rank)
{
    if (rank == 1) {
        ibshift_net_leave(sim_net_end(b->net, 1), 2, &key);
    } else if (rank == 2) {
        assert_int_equal(post(b, 2, 1, false), IBSHIFT_NET_PENDING);
    }
}

static void left_news(void **state)
{
    const struct sim_net_options options = {.control = 500000};
    struct bench b;

    run(&b, &options, leaver);
    assert_int_equal(b.events[2], 1);
    assert_int_equal(b.event[2][0].status, IBSHIFT_NET_LEFT);
    assert_int_equal(b.when[2][0], 500000);
    assert_int_equal(b.events[1], 0);
    tear_down(&b);
}

static void nothing(struct bench *b, uint32_t rank)
{
    (void)b;
    (void)rank;
}

/* Clocks differ by host; what sim_net_clock() says brings them together. */
static void clocks(void **state)
{
    const struct sim_net_options options = {
        .clock_offset = 1000000, .clock_drift = 1e-4, .skew = 1000000000, .seed = 5};
    struct bench b;
    bool differ = false;

    run(&b, &options, nothing);
    for (uint32_t r = 0; r < RANKS; r++) {
        struct ibshift_clock first = sim_net_clock(b.net, 0), own = sim_net_clock(b.net, r);
        uint64_t now = ibshift_net_now(sim_net_end(b.net, r));
        double truth = (double)b.net->ends[r].at / 1000;
        int64_t common = ibshift_clock_common(&own, now);
        uint64_t zero = ibshift_net_now(sim_net_end(b.net, 0));
        double since = truth - (double)b.net->ends[0].at / 1000;

        assert_int_equal(ibshift_clock_common(&first, zero), zero);
        assert_true((double)(common - (int64_t)zero) - since < 300);
        assert_true((double)(common - (int64_t)zero) - since > -300);
        differ = differ || own.offset != 0;
    }
    assert_true(differ);
    tear_down(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),     cmocka_unit_test(early_piece),
        cmocka_unit_test(rendezvous), cmocka_unit_test(grants_in_the_fabric),
        cmocka_unit_test(early_news), cmocka_unit_test(grant_wakes),
        cmocka_unit_test(left_news),  cmocka_unit_test(clocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

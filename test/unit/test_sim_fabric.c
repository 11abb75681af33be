/* The packet model against times computed by hand, to the picosecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "fabric/read/synth.h"
#include "sim/fabric.h"

enum { FLIGHT = 7000, ROUTING = 90000, MTU = 1000, MESSAGES = 64 };
#define PACKET 250000u /* ps of 1,000 bytes at 32 Gb/s */

struct bench {
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_fabric *fabric;
    uint64_t arrived[MESSAGES], early[MESSAGES];
    uint32_t count;
};

static void arrived(void *context, uint32_t user, enum sim_arrival arrival)
{
    struct bench *b = context;

    (arrival == SIM_EARLY ? b->early : b->arrived)[user] = b->queue.now;
    b->count += arrival == SIM_COMPLETE;
}

static struct sim_fabric_options usual(void)
{
    return (struct sim_fabric_options){.mtu = MTU,
                                       .buffer = 50000,
                                       .lanes = 1,
                                       .reads = 3,
                                       .flight = FLIGHT,
                                       .routing = ROUTING,
                                       .rate = 32000};
}

static void set_up(struct bench *b, const char *fabric, const struct sim_fabric_options *options)
{
    struct sim_fabric_user user = {.context = b, .arrived = arrived};
    struct ibshift_error err;

    memset(b, 0, sizeof(*b));
    sim_queue_init(&b->queue);
    assert_int_equal(ibshift_synth_fabric(fabric, &b->graph, &err), 0);
    assert_int_equal(sim_fabric_create(b->graph, options, &user, &b->queue, &b->fabric, &err), 0);
}

static void tear_down(struct bench *b)
{
    sim_fabric_free(b->fabric);
    sim_queue_free(&b->queue);
    ibshift_fabric_free(b->graph);
}

static struct sim_flow message(const struct bench *b, uint32_t user, uint32_t from, uint32_t to,
                               uint64_t bytes)
{
    return (struct sim_flow){.user = user,
                             .from = from,
                             .bytes = bytes,
                             .lid = (uint16_t)ibshift_host_lid(b->graph, to)};
}

static void send(struct bench *b, uint32_t user, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct sim_flow flow = message(b, user, from, to, bytes);

    sim_fabric_send(b->fabric, &flow);
}

static void run(struct bench *b)
{
    struct sim_event event;
    int kind;

    while (sim_queue_pop(&b->queue, &event, &kind)) {
        sim_fabric_event(b->fabric, kind, &event);
    }
}

/* Cut-through: the head's way, the packets' lengths once, the last cable. */
static void one_message(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct sim_flow flow;

    (void)state;
    set_up(&b, "kary:4,1", &options);
    flow = message(&b, 1, 0, 3, 2 * MTU + 500);
    flow.early = MTU + 1; /* comes with the second packet */
    sim_fabric_send(b.fabric, &flow);
    run(&b);
    assert_int_equal(b.arrived[1], FLIGHT + ROUTING + 2 * PACKET + PACKET / 2 + FLIGHT);
    assert_int_equal(b.early[1], FLIGHT + ROUTING + 2 * PACKET + FLIGHT);
    assert_int_equal(sim_fabric_stats(b.fabric).hops, 6);
    assert_int_equal(sim_fabric_stats(b.fabric).in_flight, 0);
    assert_int_equal(sim_fabric_busy(b.fabric, b.graph->hosts[0], false), PACKET * 5 / 2);
    tear_down(&b);
}

/* Each switch more costs a cable's flight and its routing, whatever the message's length. */
static void five_switches(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    (void)state;
    set_up(&b, "kary:2,3", &options);
    send(&b, 0, 0, 7, 10 * MTU);
    run(&b);
    assert_int_equal(b.arrived[0], 5 * (FLIGHT + ROUTING) + 10 * PACKET + FLIGHT);
    tear_down(&b);
}

/* Two senders share the receiver's cable packet by packet: both end together, after all of it. */
static void two_to_one(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t last = FLIGHT + ROUTING + 20 * PACKET + FLIGHT;

    (void)state;
    set_up(&b, "kary:4,1", &options);
    send(&b, 0, 0, 2, 10 * MTU);
    send(&b, 1, 1, 2, 10 * MTU);
    run(&b);
    assert_int_equal(b.arrived[0], last - PACKET);
    assert_int_equal(b.arrived[1], last);
    tear_down(&b);
}

/* Two messages of one host take turns on its cable. */
static void one_to_two(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t last = FLIGHT + ROUTING + 20 * PACKET + FLIGHT;

    (void)state;
    set_up(&b, "kary:4,1", &options);
    send(&b, 0, 0, 1, 10 * MTU);
    send(&b, 1, 0, 2, 10 * MTU);
    run(&b);
    /* two packets of message 0 went, or were next, before message 1 came */
    assert_int_equal(b.arrived[0], last - 2 * PACKET);
    assert_int_equal(b.arrived[1], last);
    tear_down(&b);
}

/* When the last of three messages of a leaf has arrived, whose tables lead them through one spine:
 * that of the first hosts of other leaves. */
static uint64_t through_spines(bool is_adaptive, bool keeps_ways)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t last = 0;

    options.is_adaptive = is_adaptive;
    options.keeps_ways = keeps_ways;
    set_up(&b, "kary:4,2", &options);
    for (uint32_t i = 0; i < 3; i++) {
        send(&b, i, i, 4 * (i + 1), 10 * MTU);
    }
    run(&b);
    assert_int_equal(b.count, 3);
    assert_int_equal(sim_fabric_stats(b.fabric).in_flight, 0);
    for (uint32_t i = 0; i < 3; i++) {
        last = b.arrived[i] > last ? b.arrived[i] : last;
    }
    tear_down(&b);
    return last;
}

/* Packets of a message overtake each other, and it has arrived when all of them have. */
static void adaptive_switches(void **state)
{
    uint64_t alone = 3 * (FLIGHT + ROUTING) + 10 * PACKET + FLIGHT;

    (void)state;
    assert_true(through_spines(false, false) >= alone + 20 * PACKET);
    assert_true(through_spines(true, false) <= alone + 2 * PACKET);
    assert_true(through_spines(true, true) <= alone + 2 * PACKET);
}

/* Ports of host 0's leaf that its message to another leaf has left through. */
static unsigned ways_of_a_message(bool keeps_ways)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    unsigned ways = 0;

    options.is_adaptive = true;
    options.keeps_ways = keeps_ways;
    set_up(&b, "kary:4,2", &options);
    send(&b, 0, 0, 4, 10 * MTU);
    run(&b);
    assert_int_equal(b.count, 1);
    for (uint32_t port = 0; port < b.graph->port_count; port++) {
        ways += b.graph->ports[port].node == ibshift_port_neighbour(b.graph, b.graph->hosts[0]) &&
                sim_fabric_busy(b.fabric, port, false) > 0;
    }
    tear_down(&b);
    return ways;
}

static void ways_are_kept(void **state)
{
    (void)state;
    assert_true(ways_of_a_message(false) > 1);
    assert_int_equal(ways_of_a_message(true), 1);
}

/* The same with turns of several packets: 0 0 0 1 1 1 0 0 0 ..., and so on. */
static void bursts(void **state)
{
    static const struct {
        uint32_t burst, behind; /* packets of message 1 after the last one of message 0 */
    } expected[] = {{1, 2}, {3, 1}, {5, 5}, {7, 3}, {10, 10}};
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t last = FLIGHT + ROUTING + 20 * PACKET + FLIGHT;

    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        options.burst = expected[i].burst;
        set_up(&b, "kary:4,1", &options);
        send(&b, 0, 0, 1, 10 * MTU);
        send(&b, 1, 0, 2, 10 * MTU);
        run(&b);
        assert_int_equal(b.arrived[0], last - expected[i].behind * PACKET);
        assert_int_equal(b.arrived[1], last);
        tear_down(&b);
    }
}

/* With room for one packet only, the next one leaves when word of the free place is back. */
static void one_credit(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t round = FLIGHT + ROUTING + PACKET + FLIGHT;

    (void)state;
    options.buffer = MTU;
    set_up(&b, "kary:4,1", &options);
    send(&b, 0, 0, 1, 5 * MTU);
    run(&b);
    assert_int_equal(b.arrived[0], 5 * round);
    tear_down(&b);
}

/* Host 0 fills its buffer in the switch for host 2, whose cable host 1 shares; its packet for host
 * 3 comes behind two of them and leaves at once: no head of line blocks it. */
static void output_queues(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    (void)state;
    set_up(&b, "kary:4,1", &options);
    send(&b, 1, 1, 2, 20 * MTU);
    send(&b, 0, 0, 2, 10 * MTU);
    send(&b, 2, 0, 3, MTU);
    run(&b);
    assert_int_equal(b.arrived[2], 2 * PACKET + FLIGHT + ROUTING + PACKET + FLIGHT);
    tear_down(&b);
}

/* The same with one queue an input: hosts 1 and 0 take turns on the cable to 2, and only when the
 * second packet of host 0 leaves (with one read: has left), its packet for 3 is the queue's head. */
static void one_queue(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    (void)state;
    options.arbiter = SIM_FIFO;
    for (uint32_t limit = 1; limit <= 3; limit += 2) {
        options.reads = limit;
        set_up(&b, "kary:4,1", &options);
        send(&b, 1, 1, 2, 20 * MTU);
        send(&b, 0, 0, 2, 10 * MTU);
        send(&b, 2, 0, 3, MTU);
        run(&b);
        assert_int_equal(b.arrived[2], FLIGHT + ROUTING + (limit == 1 ? 5 : 4) * PACKET + FLIGHT);
        assert_int_equal(b.count, 3);
        tear_down(&b);
    }
}

/* Matching begins at the multiples of a packet's time: two hosts have a packet each for 2, and then
 * one for 3. In the first slot only 2 is wanted; in the second each output serves another input. */
static void slots(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    (void)state;
    options.arbiter = SIM_MATCH;
    set_up(&b, "kary:4,1", &options);
    send(&b, 0, 0, 2, MTU);
    send(&b, 1, 1, 2, MTU);
    send(&b, 2, 0, 3, MTU);
    send(&b, 3, 1, 3, MTU);
    run(&b);
    assert_int_equal(b.arrived[0], PACKET + PACKET + FLIGHT);
    assert_int_equal(b.arrived[1], 2 * PACKET + PACKET + FLIGHT);
    assert_int_equal(b.arrived[2], 2 * PACKET + PACKET + FLIGHT);
    assert_int_equal(b.arrived[3], 3 * PACKET + PACKET + FLIGHT);
    tear_down(&b);
}

/* Both hosts have packets for both outputs, one read each: 2 and 3 both grant to host 0, which
 * accepts 2; in the second iteration 3 grants to host 1. No slot is lost. */
static void second_iteration(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    (void)state;
    options.arbiter = SIM_MATCH;
    options.reads = 1;
    set_up(&b, "kary:4,1", &options);
    for (uint32_t host = 0; host < 2; host++) { /* four halves come before the second slot */
        send(&b, 10 + host, host, 1 - host, MTU / 4);
        send(&b, 2 * host, host, 2, MTU / 4);
        send(&b, 2 * host + 1, host, 3, MTU / 4);
    }
    run(&b);
    assert_int_equal(b.arrived[10], PACKET + PACKET / 4 + FLIGHT);
    assert_int_equal(b.arrived[0], 2 * PACKET + PACKET / 4 + FLIGHT);
    assert_int_equal(b.arrived[3], 2 * PACKET + PACKET / 4 + FLIGHT);
    assert_int_equal(b.arrived[1], 3 * PACKET + PACKET / 4 + FLIGHT);
    assert_int_equal(b.arrived[2], 3 * PACKET + PACKET / 4 + FLIGHT);
    tear_down(&b);
}

/* One read at a time: what waits in the same input for another, free output waits for the packet
 * that leaves it now. With two reads it does not. */
static void reads(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint64_t expected[] = {5 * PACKET / 2, 2 * PACKET};

    (void)state;
    for (uint32_t limit = 1; limit <= 2; limit++) {
        options.reads = limit;
        set_up(&b, "kary:4,1", &options);
        send(&b, 1, 1, 2, MTU / 2); /* takes the cable to 2 first */
        send(&b, 0, 0, 2, MTU);     /* leaves the switch half a packet later than it could */
        send(&b, 2, 0, 3, MTU);     /* comes while that leaves */
        run(&b);
        assert_int_equal(b.arrived[0], FLIGHT + ROUTING + 3 * PACKET / 2 + FLIGHT);
        assert_int_equal(b.arrived[2], FLIGHT + ROUTING + expected[limit - 1] + FLIGHT);
        tear_down(&b);
    }
}

/* A message that may start a packet only every so often. */
static void gap(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct sim_flow flow;

    (void)state;
    set_up(&b, "kary:4,1", &options);
    flow = message(&b, 0, 0, 1, 4 * MTU);
    flow.gap = 3 * PACKET;
    sim_fabric_send(b.fabric, &flow);
    run(&b);
    assert_int_equal(b.arrived[0], 9 * PACKET + FLIGHT + ROUTING + PACKET + FLIGHT);
    tear_down(&b);
}

/* One that takes no turns leaves wholly before the next one. */
static void serial(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct sim_flow flow;

    (void)state;
    set_up(&b, "kary:4,1", &options);
    flow = message(&b, 0, 0, 1, 10 * MTU);
    flow.is_serial = true;
    sim_fabric_send(b.fabric, &flow);
    send(&b, 1, 0, 2, 10 * MTU);
    run(&b);
    assert_int_equal(b.arrived[0], FLIGHT + ROUTING + 10 * PACKET + FLIGHT);
    assert_int_equal(b.arrived[1], FLIGHT + ROUTING + 20 * PACKET + FLIGHT);
    tear_down(&b);
}

/* Another lane has its own credits: it passes a lane whose receiver is stuck. */
static void lanes(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct sim_flow flow;

    (void)state;
    options.lanes = 2;
    options.buffer = 2 * MTU; /* a packet each */
    options.reads = 1;
    set_up(&b, "kary:2,2", &options);
    send(&b, 0, 0, 3, 4 * MTU);
    flow = message(&b, 1, 0, 3, MTU);
    flow.sl = 1;
    sim_fabric_send(b.fabric, &flow);
    run(&b);
    /* right behind the first packet, while the second still waits for its credit */
    assert_int_equal(b.arrived[1], PACKET + 3 * (FLIGHT + ROUTING) + PACKET + FLIGHT);
    tear_down(&b);
}

static void refuses(void **state)
{
    struct sim_fabric_options options = usual();
    struct sim_fabric_user user = {.arrived = arrived};
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_fabric *fabric;
    struct ibshift_error err;

    (void)state;
    sim_queue_init(&queue);
    assert_int_equal(ibshift_synth_fabric("kary:2,2", &graph, &err), 0);
    options.buffer = 0;
    assert_int_equal(sim_fabric_create(graph, &options, &user, &queue, &fabric, &err), -EINVAL);
    options.buffer = 3 * MTU;
    options.lanes = 4;
    assert_int_equal(sim_fabric_create(graph, &options, &user, &queue, &fabric, &err), -EINVAL);
    assert_non_null(strstr(err.text, "room for a packet"));
    ibshift_fabric_free(graph);
}

/* Every host of a ring sends two to the right: with buffers of a packet, all wait for each other.
 */
static void ring_of(struct bench *b, const struct sim_fabric_options *options)
{
    set_up(b, "torus:5,1", options);
    for (uint32_t h = 0; h < 5; h++) {
        send(b, h, h, (h + 2) % 5, 8 * MTU);
    }
    run(b);
}

static void deadlock(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    uint32_t links[8];

    (void)state;
    options.buffer = MTU;
    for (int arbiter = SIM_ROUND_ROBIN; arbiter <= SIM_FIFO; arbiter++) {
        options.arbiter = (enum sim_arbiter)arbiter;
        ring_of(&b, &options);
        assert_true(b.count < 5);
        assert_int_equal(sim_fabric_deadlock(b.fabric, links, 8), 5);
        for (int i = 0; i < 5; i++) { /* each leads to the next one's switch */
            uint32_t node = ibshift_port_neighbour(b.graph, links[i]);

            assert_int_equal(b.graph->ports[links[(i + 1) % 5]].node, node);
        }
        tear_down(&b);
    }
}

/* The same on two lanes that change where the ring closes. */
static void no_deadlock_on_two_lanes(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct ibshift_fabric *graph;
    struct ibshift_error err;
    uint8_t *table;

    (void)state;
    assert_int_equal(ibshift_synth_fabric("torus:5,1", &graph, &err), 0);
    table = calloc(graph->switch_count, graph->lft_stride);
    assert_non_null(table);
    for (uint32_t s = 0; s < 5; s++) {
        for (uint32_t d = 0; d < 5; d++) {
            table[(size_t)s * graph->lft_stride + ibshift_host_lid(graph, d)] = d > s;
        }
    }
    options.buffer = 2 * MTU;
    options.lanes = 2;
    options.lane_table = table;
    ring_of(&b, &options);
    assert_int_equal(b.count, 5);
    assert_int_equal(sim_fabric_deadlock(b.fabric, NULL, 0), 0);
    tear_down(&b);
    ibshift_fabric_free(graph);
    free(table);
}

/* What stands in a queue and goes on is no deadlock. */
static void busy_is_not_stuck(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct sim_event event;
    int kind, events = 0;

    (void)state;
    options.buffer = 2 * MTU;
    for (int arbiter = SIM_ROUND_ROBIN; arbiter <= SIM_FIFO; arbiter++) {
        options.arbiter = (enum sim_arbiter)arbiter;
        set_up(&b, "kary:4,2", &options);
        for (uint32_t h = 1; h < 16; h++) {
            send(&b, h, h, 0, 6 * MTU);
            send(&b, 16 + h, h, h == 15 ? 1 : h + 1, 6 * MTU);
        }
        while (sim_queue_pop(&b.queue, &event, &kind)) {
            sim_fabric_event(b.fabric, kind, &event);
            if (++events % 16 == 0) {
                assert_int_equal(sim_fabric_deadlock(b.fabric, NULL, 0), 0);
            }
        }
        assert_int_equal(b.count, 30);
        tear_down(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message),
        cmocka_unit_test(five_switches),
        cmocka_unit_test(two_to_one),
        cmocka_unit_test(one_to_two),
        cmocka_unit_test(adaptive_switches),
        cmocka_unit_test(ways_are_kept),
        cmocka_unit_test(bursts),
        cmocka_unit_test(one_credit),
        cmocka_unit_test(output_queues),
        cmocka_unit_test(one_queue),
        cmocka_unit_test(slots),
        cmocka_unit_test(second_iteration),
        cmocka_unit_test(reads),
        cmocka_unit_test(gap),
        cmocka_unit_test(serial),
        cmocka_unit_test(lanes),
        cmocka_unit_test(refuses),
        cmocka_unit_test(deadlock),
        cmocka_unit_test(no_deadlock_on_two_lanes),
        cmocka_unit_test(busy_is_not_stuck),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The packet model against times computed by hand, to the picosecond. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "fabric/read/synth.h"
#include "sim/fabric.h"
#include "unit.h"

enum { FLIGHT = 7000, ROUTING = 90000, MTU = 1000, MESSAGES = 64 };
#define PACKET 250000u /* ps of 1,000 bytes at 32 Gb/s */

struct bench {
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_fabric *fabric;
    uint64_t arrived[MESSAGES];
    uint32_t count;
};

static void arrived(void *context, uint32_t user)
{
    struct bench *b = context;

    b->arrived[user] = b->queue.now;
    b->count++;
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

static void send(struct bench *b, uint32_t user, uint32_t from, uint32_t to, uint64_t bytes)
{
    struct sim_flow flow = {.user = user,
                            .from = from,
                            .bytes = bytes,
                            .lid = (uint16_t)ibshift_host_lid(b->graph, to)};

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

/* A message's way over a switch, but for its packets' length; each switch more costs the first two. */
#define SWITCH (FLIGHT + ROUTING)
#define WAY    (SWITCH + FLIGHT)
#define HALF   (PACKET / 2)
#define PART   (PACKET / 4)

/* Messages that are sent at time 0, and when the last bytes of each have come (0: whenever). */
static const struct scene {
    const char *what, *fabric;
    struct sim_fabric_options set; /* what is not as usual */
    struct {
        uint32_t from, to;
        uint64_t bytes, gap, comes;
        bool is_serial;
        uint8_t sl;
    } sent[8];
} scenes[] = {
    {"cut-through: the head's way, the packets' lengths once, the last cable", "kary:4,1",
     .sent = {{.from = 0, .to = 3, .bytes = 2 * MTU + 500, .comes = WAY + 2 * PACKET + HALF}}},
    {"five switches: the message's length counts once", "kary:2,3",
     .sent = {{.from = 0, .to = 7, .bytes = 10 * MTU, .comes = 4 * SWITCH + WAY + 10 * PACKET}}},
    {"two senders share the receiver's cable packet by packet", "kary:4,1",
     .sent = {{.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 19 * PACKET},
              {.from = 1, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    /* Two packets of the first one went, or were next, before the other one came. */
    {"two messages of one host take turns on its cable", "kary:4,1",
     .sent = {{.from = 0, .to = 1, .bytes = 10 * MTU, .comes = WAY + 18 * PACKET},
              {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    {"turns of three packets: 0 0 0 1 1 1 0 0 0 ...",
     "kary:4,1",
     {.burst = 3},
     {{.from = 0, .to = 1, .bytes = 10 * MTU, .comes = WAY + 19 * PACKET},
      {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    {"turns of five packets",
     "kary:4,1",
     {.burst = 5},
     {{.from = 0, .to = 1, .bytes = 10 * MTU, .comes = WAY + 15 * PACKET},
      {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    {"turns of seven packets",
     "kary:4,1",
     {.burst = 7},
     {{.from = 0, .to = 1, .bytes = 10 * MTU, .comes = WAY + 17 * PACKET},
      {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    {"turns of whole messages",
     "kary:4,1",
     {.burst = 10},
     {{.from = 0, .to = 1, .bytes = 10 * MTU, .comes = WAY + 10 * PACKET},
      {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    {"with room for one packet the next one leaves when word of the free place is back",
     "kary:4,1",
     {.buffer = MTU},
     {{.from = 0, .to = 1, .bytes = 5 * MTU, .comes = 5 * (WAY + PACKET)}}},
    /* Host 0 fills its buffer for host 2, whose cable host 1 shares; its packet for host 3 comes
     * behind two of them. */
    {"output queues: no head of line blocks another output's packet", "kary:4,1",
     .sent = {{.from = 1, .to = 2, .bytes = 20 * MTU},
              {.from = 0, .to = 2, .bytes = 10 * MTU},
              {.from = 0, .to = 3, .bytes = MTU, .comes = WAY + 3 * PACKET}}},
    /* The first takes the cable to 2, the second leaves half a packet later than it could, and the
     * third comes while that leaves. */
    {"one read: what waits for a free output waits for the packet that leaves the input",
     "kary:4,1",
     {.reads = 1},
     {{.from = 1, .to = 2, .bytes = MTU / 2},
      {.from = 0, .to = 2, .bytes = MTU, .comes = WAY + PACKET + HALF},
      {.from = 0, .to = 3, .bytes = MTU, .comes = WAY + 2 * PACKET + HALF}}},
    {"two reads: it does not",
     "kary:4,1",
     {.reads = 2},
     {{.from = 1, .to = 2, .bytes = MTU / 2},
      {.from = 0, .to = 2, .bytes = MTU, .comes = WAY + PACKET + HALF},
      {.from = 0, .to = 3, .bytes = MTU, .comes = WAY + 2 * PACKET}}},
    {"a message that may start a packet only every so often", "kary:4,1",
     .sent =
         {{.from = 0, .to = 1, .bytes = 4 * MTU, .gap = 3 * PACKET, .comes = WAY + 10 * PACKET}}},
    {"one that takes no turns leaves wholly before the next one", "kary:4,1",
     .sent =
         {{.from = 0, .to = 1, .bytes = 10 * MTU, .is_serial = true, .comes = WAY + 10 * PACKET},
          {.from = 0, .to = 2, .bytes = 10 * MTU, .comes = WAY + 20 * PACKET}}},
    /* A packet's room each: right behind the first packet, while the second waits for its credit. */
    {"another lane passes one whose receiver is stuck",
     "kary:2,2",
     {.lanes = 2, .buffer = 2 * MTU, .reads = 1},
     {{.from = 0, .to = 3, .bytes = 4 * MTU},
      {.from = 0, .to = 3, .bytes = MTU, .sl = 1, .comes = 2 * SWITCH + WAY + 2 * PACKET}}},
};

static void scene(const struct scene *s)
{
    struct sim_fabric_options options = usual();
    struct bench b;
    uint32_t count = 0;

    options.buffer = s->set.buffer > 0 ? s->set.buffer : options.buffer;
    options.lanes = s->set.lanes > 0 ? s->set.lanes : options.lanes;
    options.reads = s->set.reads > 0 ? s->set.reads : options.reads;
    options.burst = s->set.burst;
    set_up(&b, s->fabric, &options);
    for (; count < 8 && s->sent[count].bytes > 0; count++) {
        struct sim_flow flow = {.user = count,
                                .from = s->sent[count].from,
                                .bytes = s->sent[count].bytes,
                                .gap = s->sent[count].gap,
                                .is_serial = s->sent[count].is_serial,
                                .sl = s->sent[count].sl,
                                .lid = (uint16_t)ibshift_host_lid(b.graph, s->sent[count].to)};

        sim_fabric_send(b.fabric, &flow);
    }
    run(&b);
    assert_int_equal(b.count, count);
    assert_int_equal(b.fabric->stats.in_flight, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (s->sent[i].comes > 0 && b.arrived[i] != s->sent[i].comes) {
            fail_msg("%s: message %u comes at %llu, not at %llu", s->what, i,
                     (unsigned long long)b.arrived[i], (unsigned long long)s->sent[i].comes);
        }
    }
    tear_down(&b);
}

static void times(void **state)
{
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        scene(&scenes[i]);
    }
}

/* What two packets and a half put on cables. */
static void figures(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();

    set_up(&b, "kary:4,1", &options);
    send(&b, 1, 0, 3, 2 * MTU + 500);
    run(&b);
    assert_int_equal(b.fabric->stats.hops, 6);
    assert_int_equal(b.fabric->ports[b.graph->hosts[0]].busy[false], PACKET * 5 / 2);
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
    assert_int_equal(b.fabric->stats.in_flight, 0);
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
                b.fabric->ports[port].busy[false] > 0;
    }
    tear_down(&b);
    return ways;
}

static void ways_are_kept(void **state)
{
    assert_true(ways_of_a_message(false) > 1);
    assert_int_equal(ways_of_a_message(true), 1);
}

static void refuses(void **state)
{
    struct sim_fabric_options options = usual();
    struct sim_fabric_user user = {.arrived = arrived};
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_fabric *fabric;
    struct ibshift_error err;

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

    options.buffer = MTU;
    ring_of(&b, &options);
    assert_true(b.count < 5);
    assert_int_equal(sim_fabric_deadlock(b.fabric, links, 8), 5);
    for (int i = 0; i < 5; i++) { /* each leads to the next one's switch */
        uint32_t node = ibshift_port_neighbour(b.graph, links[i]);

        assert_int_equal(b.graph->ports[links[(i + 1) % 5]].node, node);
    }
    tear_down(&b);
}

/* The same on two lanes that change where the ring closes. */
static void no_deadlock_on_two_lanes(void **state)
{
    struct bench b;
    struct sim_fabric_options options = usual();
    struct ibshift_fabric *graph;
    struct ibshift_error err;
    uint8_t *table;

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

    options.buffer = 2 * MTU;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times),
        cmocka_unit_test(figures),
        cmocka_unit_test(adaptive_switches),
        cmocka_unit_test(ways_are_kept),
        cmocka_unit_test(refuses),
        cmocka_unit_test(deadlock),
        cmocka_unit_test(no_deadlock_on_two_lanes),
        cmocka_unit_test(busy_is_not_stuck),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Hosts' traffic: what counts, against times computed by hand. */
#include <string.h>

#include "fabric/read/synth.h"
#include "sim/traffic.h"
#include "unit.h"

enum { FLIGHT = 7000, ROUTING = 90000, MTU = 1000, HOSTS = 4, PACKETS = 10 };
#define PACKET 250000u /* ps of 1,000 bytes at 32 Gb/s */
#define ALONE                                                                                      \
    (2 * FLIGHT + ROUTING +                                                                        \
     PACKETS * (uint64_t)PACKET) /* a message through one switch            \
                                                         */

#define LAST (2 * FLIGHT + ROUTING + (uint64_t)PACKET) /* its last packet */

struct bench {
    struct ibshift_fabric *graph;
    struct sim_queue queue;
    struct sim_fabric *fabric;
    struct sim_traffic *traffic;
    struct sim_traffic_options options;
    uint64_t arrived; /* in the time that counts */
};

static void arrived(void *context, uint32_t user)
{
    struct bench *b = context;

    b->arrived += b->queue.now >= b->options.warm && b->queue.now < b->options.end;
    sim_traffic_arrived(b->traffic, user);
}

static void left(void *context, uint32_t user)
{
    sim_traffic_left(((struct bench *)context)->traffic, user);
}

/* All hosts of one switch, in so many groups of equal size. A lane has room for `room` packets. */
static void set_up_lanes(struct bench *b, const struct sim_traffic_options *options,
                         uint32_t groups, uint32_t lanes, uint32_t room)
{
    static const uint32_t member[HOSTS] = {0, 1, 2, 3};
    struct sim_fabric_options fabric = {.mtu = MTU,
                                        .buffer = lanes * room * MTU,
                                        .lanes = lanes,
                                        .reads = 3,
                                        .flight = FLIGHT,
                                        .routing = ROUTING,
                                        .rate = 32000};
    struct sim_fabric_user user = {b, arrived, left};
    uint32_t group[HOSTS];
    struct ibshift_error err;

    for (uint32_t i = 0; i < HOSTS; i++) {
        group[i] = i * groups / HOSTS;
    }
    memset(b, 0, sizeof(*b));
    b->options = *options;
    b->options.bytes = options->bytes > 0 ? options->bytes : PACKETS * MTU;
    b->options.seed = 1;
    sim_queue_init(&b->queue);
    assert_int_equal(ibshift_synth_fabric("kary:4,1", &b->graph, &err), 0);
    assert_int_equal(sim_fabric_create(b->graph, &fabric, &user, &b->queue, &b->fabric, &err), 0);
    b->traffic =
        sim_traffic_create(b->graph, &b->options, member, group, HOSTS, b->fabric, &b->queue);
}

static void set_up(struct bench *b, const struct sim_traffic_options *options, uint32_t groups)
{
    set_up_lanes(b, options, groups, 1, 50);
}

static void run_until(struct bench *b, uint64_t time)
{
    struct sim_event event;
    int kind;

    while (b->queue.now < time && sim_queue_pop(&b->queue, &event, &kind)) {
        if (kind < SIM_KINDS_FABRIC) {
            sim_fabric_event(b->fabric, kind, &event);
        } else {
            sim_traffic_event(b->traffic, &event);
        }
    }
}

static struct sim_traffic_figures run(struct bench *b)
{
    struct sim_traffic_figures figures;

    sim_traffic_begin(b->traffic);
    run_until(b, b->options.warm);
    sim_traffic_count(b->traffic);
    run_until(b, b->options.end);
    figures = sim_traffic_figures(b->traffic);
    assert_int_equal(figures.messages, b->arrived);
    sim_traffic_free(b->traffic);
    sim_fabric_free(b->fabric);
    sim_queue_free(&b->queue);
    ibshift_fabric_free(b->graph);
    return figures;
}

/* At full load a shift keeps every cable busy: message k arrives k messages after the first. */
static void steady_and_full(void **state)
{
    struct sim_traffic_options options = {.pattern = SIM_SHIFT, .load = 1, .is_steady = true};
    struct sim_traffic_figures figures;
    struct bench b;

    options.warm = ALONE + 1; /* the first does not count, nor the fifth and later ones */
    options.end = ALONE + 4 * (uint64_t)PACKETS * PACKET;
    set_up(&b, &options, 1);
    figures = run(&b);
    assert_int_equal(figures.messages, 3 * HOSTS);
    assert_true(figures.latency_mean == (double)LAST && figures.latency_max == (double)LAST);
    assert_true(figures.bytes_per_host == 4.0 * PACKETS * MTU);
    assert_true(figures.bytes_least == figures.bytes_per_host);
}

/* At half load packets start every two packets' time: so many fewer arrive, each as fast. */
static void steady_at_half(void **state)
{
    struct sim_traffic_options options = {.pattern = SIM_SHIFT, .load = 0.5, .is_steady = true};
    uint64_t message = 2 * (uint64_t)PACKETS * PACKET, last = ALONE + (PACKETS - 1) * PACKET;
    struct sim_traffic_figures figures;
    struct bench b;

    options.end = last + 2 * message + 1;
    set_up(&b, &options, 1);
    figures = run(&b);
    assert_int_equal(figures.messages, 3 * HOSTS);
    assert_true(figures.latency_mean == (double)LAST && figures.latency_max == (double)LAST);
}

/* Pairs that exchange messages never meet others: one that need not wait takes its own time. */
static void born_at_random(void **state)
{
    struct sim_traffic_options options = {.pattern = SIM_RANDOM, .load = 0.001};
    struct sim_traffic_figures figures;
    struct bench b;

    options.end = 40000 * (uint64_t)PACKETS * PACKET;
    set_up(&b, &options, 2);
    figures = run(&b);
    assert_in_range(figures.messages, 40 * HOSTS * 8 / 10, 40 * HOSTS * 12 / 10);
    assert_true(figures.latency_mean >= (double)ALONE);
    assert_true(figures.latency_mean < 1.01 * (double)ALONE);
}

/* More than the cable takes piles up: it is busy all the time, and never more than that. */
static void overload(void **state)
{
    struct sim_traffic_options options = {.pattern = SIM_RANDOM, .load = 4};
    uint64_t message = (uint64_t)PACKETS * PACKET;
    struct sim_traffic_figures figures;
    struct bench b;

    options.warm = 100 * message;
    options.end = 300 * message;
    set_up(&b, &options, 2);
    figures = run(&b);
    assert_true(figures.bytes_least == 200.0 * PACKETS * MTU);
    assert_true(figures.bytes_per_host == figures.bytes_least);
}

/* Where a lane has room for one packet, the next one waits until that has left and its credit is
 * back; a second lane fills the gap. */
static void lanes_in_turn(void **state)
{
    struct sim_traffic_options options = {
        .pattern = SIM_SHIFT, .load = 1, .bytes = MTU, .is_steady = true};
    uint64_t round = PACKET + 2 * FLIGHT + ROUTING;
    struct sim_traffic_figures figures;
    struct bench b;

    options.warm = 10 * round;
    options.end = options.warm + 1000 * round;
    set_up_lanes(&b, &options, 1, 2, 1);
    figures = run(&b);
    assert_true(figures.bytes_least == 1000.0 * MTU);
    options.takes_all_lanes = true;
    set_up_lanes(&b, &options, 1, 2, 1);
    figures = run(&b);
    assert_in_range(figures.bytes_least / MTU, 1000 * round / PACKET - 1,
                    1000 * round / PACKET + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_and_full), cmocka_unit_test(steady_at_half),
        cmocka_unit_test(born_at_random),  cmocka_unit_test(overload),
        cmocka_unit_test(lanes_in_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

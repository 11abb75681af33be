/* The wire's time-line: which bytes fall into which slice, and what the ring forgets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire_net.h"
#include "wire/wire_slices.h"

enum { LINKS = 2, OWNERS = 2, ROOM = 4 };

static struct wire_clock clock_;
static struct wire_link links[LINKS];
static struct wire_lane lanes[2 * OWNERS];
static struct wire_gate gates[OWNERS];
static struct wire_message messages[ROOM];
static uint32_t heap[ROOM];
static struct wire_slices *slices;

static struct wire_net net = {.clock = &clock_,
                              .links = links,
                              .lanes = lanes,
                              .gates = gates,
                              .messages = messages,
                              .heap = heap,
                              .room = ROOM};

static int set_up(void **state)
{
    memset(&clock_, 0, sizeof(clock_));
    memset(links, 0, sizeof(links));
    memset(lanes, 0, sizeof(lanes));
    memset(gates, 0, sizeof(gates));
    memset(messages, 0, sizeof(messages));
    links[0].rate = 2;
    links[1].rate = 1;
    slices = calloc(1, wire_slices_bytes(LINKS));
    assert_non_null(slices);
    slices->width = 100;
    slices->links = LINKS;
    net.slices = slices;
    return 0;
}

static int tear_down(void **state)
{
    free(slices);
    return 0;
}

static void put(uint32_t owner, uint64_t bytes, uint32_t hops, uint64_t now)
{
    static const uint32_t all[LINKS] = {0, 1};
    struct wire_request r = {.owner = owner,
                             .gate = owner,
                             .bytes = bytes,
                             .latency = 100,
                             .limit = 10,
                             .hops = hops,
                             .links = all};
    assert_int_not_equal(wire_net_send(&net, &r, now), WIRE_NONE);
}

static void assert_slices(uint32_t link, uint64_t first, const double *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_float_equal(wire_slices_get(slices, link, first + i), bytes[i], 1e-3);
    }
}

/* The first alone gets 2 a nanosecond, then each 1, then the second 2 again: 200 a slice. */
static void a_shared_link_is_full_in_every_slice(void **state)
{
    static const double expected[] = {200, 200, 200, 200, 200, 0};
    put(0, 600, 1, 0);
    put(1, 400, 1, 250);
    wire_net_advance(&net, 5000);
    assert_slices(0, 0, expected, 6);
}

/* Link 1 lets no more than 1 a nanosecond through, which leaves half of link 0 idle. */
static void a_slower_link_leaves_the_other_idle(void **state)
{
    static const double expected[] = {50, 100, 100, 0};
    put(0, 250, 2, 50);
    wire_net_advance(&net, 5000);
    assert_slices(0, 0, expected, 4);
    assert_slices(1, 0, expected, 4);
}

static void old_slices_are_forgotten(void **state)
{
    wire_slices_add(slices, 0, 0, 100, 1);
    wire_slices_add(slices, 1, 100, 200, 1);
    assert_float_equal(wire_slices_get(slices, 0, 0), 100, 1e-3);
    wire_slices_add(slices, 0, 100 * WIRE_SLICES, 100 * WIRE_SLICES + 50, 2);
    assert_float_equal(wire_slices_get(slices, 0, 0), 0, 0);
    assert_float_equal(wire_slices_get(slices, 0, WIRE_SLICES), 100, 1e-3);
    assert_float_equal(wire_slices_get(slices, 1, 1), 100, 1e-3);
    wire_slices_add(slices, 0, 5000ull * WIRE_SLICES * 100, 5000ull * WIRE_SLICES * 100 + 1, 1);
    assert_float_equal(wire_slices_get(slices, 1, 1), 0, 0);
    assert_float_equal(wire_slices_get(slices, 1, 4999ull * WIRE_SLICES + 1), 0, 0);
}

/* What began before the ring's oldest slice counts from there on. */
static void a_long_flow_fills_the_ring_once(void **state)
{
    double sum = 0;
    wire_slices_add(slices, 0, 0, 100ull * WIRE_SLICES * 3, 1);
    for (uint64_t i = 0; i < WIRE_SLICES * 3; i++) {
        sum += wire_slices_get(slices, 0, i);
    }
    assert_float_equal(sum, 100.0 * WIRE_SLICES, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shared_link_is_full_in_every_slice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_slower_link_leaves_the_other_idle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(old_slices_are_forgotten, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_flow_fills_the_ring_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The fluid wire against cases computed by hand, on a clock of its own. */
#include <stdlib.h>
#include <string.h>

#include "wire/wire_net.h"
#include "unit.h"

enum { LINKS = 4, OWNERS = 8, ROOM = 8 };

static struct wire_clock clock_;
static struct wire_link links[LINKS];
static struct wire_lane lanes[2 * OWNERS];
static struct wire_gate gates[OWNERS];
static uint64_t soonest[OWNERS];
static struct wire_message messages[ROOM];
static uint32_t heap[ROOM];

static void moved(uint32_t owner, uint64_t when)
{
    soonest[owner] = when < soonest[owner] ? when : soonest[owner];
}

static struct wire_net net = {.clock = &clock_,
                              .links = links,
                              .lanes = lanes,
                              .gates = gates,
                              .messages = messages,
                              .heap = heap,
                              .room = ROOM,
                              .moved = moved};

static int set_up(void **state)
{
    memset(&clock_, 0, sizeof(clock_));
    memset(links, 0, sizeof(links));
    memset(lanes, 0, sizeof(lanes));
    memset(gates, 0, sizeof(gates));
    memset(messages, 0, sizeof(messages));
    memset(soonest, 0xff, sizeof(soonest));
    for (int i = 0; i < LINKS; i++) {
        links[i].rate = 2;
    }
    return 0;
}

static uint32_t put_at(uint32_t gate, uint32_t owner, uint64_t bytes, uint32_t first, uint32_t hops,
                       uint64_t now)
{
    struct wire_request r = {.owner = owner,
                             .gate = gate,
                             .bytes = bytes,
                             .latency = 100,
                             .limit = 10,
                             .hops = hops,
                             .link = {first, first + 1, first + 2, first + 3}};
    return wire_net_send(&net, &r, now);
}

/* Owner o sends through gate o over links first .. first + hops - 1. */
static uint32_t put(uint32_t owner, uint64_t bytes, uint32_t first, uint32_t hops, uint64_t now)
{
    return put_at(owner, owner, bytes, first, hops, now);
}

static uint64_t landing(uint32_t message, uint32_t owner)
{
    uint64_t when = 0;
    assert_true(wire_net_look(&net, message, owner, clock_.now + 100000, &when));
    return when;
}

static void one_takes_bytes_over_rate_and_latency(void **state)
{
    uint64_t when;
    uint32_t a = put(0, 1000, 0, 2, 50);
    assert_false(wire_net_look(&net, a, 0, 60, &when));
    assert_int_equal(when, 550);
    assert_true(wire_net_look(&net, a, 0, 550, &when)); /* it has left, and will arrive */
    assert_int_equal(when, 650);
    assert_int_equal(links[0].bytes, 1000);
    assert_int_equal(links[1].most, 1);
    assert_int_equal(links[0].flows, 0);
}

/* Who sends what through which gate over links first .. first + hops - 1, and when it lands; with
   `burst` messages take turns, with a buffer for one. Links have a rate of 2, link 1 perhaps another. */
static const struct scene {
    const char *what;
    uint64_t burst;
    double rate_1;
    struct {
        uint32_t gate, owner, bytes, first, hops, at, lands;
    } put[4];
    uint32_t most; /* flows on link 0 at once */
} scenes[] = {
    {"two share a link", 0, 2, {{0, 0, 1000, 0, 1, 0, 850}, {1, 1, 1000, 0, 1, 250, 1100}}, 2},
    /* The second has half of link 0 for as long as the first is there, which takes less. */
    {"the least share counts",
     0,
     0.5,
     {{0, 0, 1000, 0, 2, 0, 2100}, {1, 1, 1000, 0, 1, 0, 1100}},
     2},
    /* Shares of 2/3 until 450, of 1 until 750, all from then on. */
    {"three leave one after the other",
     0,
     2,
     {{0, 0, 300, 0, 1, 0, 550}, {1, 1, 600, 0, 1, 0, 850}, {2, 2, 900, 0, 1, 0, 1000}},
     3},
    {"latencies of an owner overlap",
     0,
     2,
     {{0, 0, 100, 0, 1, 0, 150}, {0, 0, 100, 0, 1, 0, 200}},
     1},
    {"a limit holds without links", 0, 2, {{0, 0, 1000, 0, 0, 0, 200}}, 0},
    /* 50 ns a burst: a b a b, and then the 50 bytes that a has left; 225 and 200 without turns. */
    {"messages of a gate take turns",
     100,
     2,
     {{0, 0, 250, 0, 1, 0, 325}, {0, 1, 200, 0, 1, 0, 300}},
     1},
    /* a b a b and a's next; both would end at 200 without turns, and another gate is free. */
    {"long bursts keep the order",
     100,
     2,
     {{0, 0, 200, 0, 1, 0, 250},
      {0, 1, 200, 0, 1, 0, 300},
      {0, 0, 100, 0, 1, 0, 350},
      {2, 2, 200, 1, 1, 0, 200}},
     1},
    /* A burst of 200 ns, 50 ns of the fast one, which would end at 100 on its own. */
    {"a burst blocks those behind it",
     100,
     0.5,
     {{0, 0, 200, 0, 2, 0, 550}, {0, 1, 100, 0, 1, 0, 350}},
     1},
};

static void scenes_of_a_few(void **state)
{
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        const struct scene *s = &scenes[i];
        uint32_t message[4], n = 0;
        uint64_t bytes = 0;
        set_up(NULL);
        clock_.burst = s->burst;
        clock_.buffer = 2 * s->burst - 1;
        links[1].rate = s->rate_1;
        for (; n < 4 && s->put[n].bytes; n++) {
            message[n] = put_at(s->put[n].gate, s->put[n].owner, s->put[n].bytes, s->put[n].first,
                                s->put[n].hops, s->put[n].at);
            bytes += s->put[n].hops && !s->put[n].first ? s->put[n].bytes : 0;
        }
        for (uint32_t k = 0; k < n; k++) {
            uint64_t when = landing(message[k], s->put[k].owner);
            if (when != s->put[k].lands) {
                fail_msg("%s: message %u lands at %llu", s->what, k, (unsigned long long)when);
            }
        }
        assert_int_equal(links[0].bytes, bytes);
        assert_int_equal(links[0].most, s->most);
    }
}

static void a_gate_keeps_the_gap(void **state)
{
    clock_.gap = 10;
    uint32_t m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = put(0, 0, (uint32_t)i, 1, 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(landing(m[i], 0), 100 + 10 * i);
    }
}

static struct wire_request read_request(uint64_t bytes)
{
    return (struct wire_request){.bytes = bytes,
                                 .latency = 100,
                                 .limit = 10,
                                 .reads = true,
                                 .back_gate = 1,
                                 .hops = 1,
                                 .link = {3}};
}

static void a_read_follows_a_write_and_returns(void **state)
{
    struct wire_request r = read_request(400);
    uint32_t write = put(0, 1000, 0, 1, 0), read = wire_net_send(&net, &r, 0);
    uint32_t after = put(0, 200, 0, 1, 0);
    assert_int_equal(landing(write, 0), 500 + 100);
    assert_int_equal(landing(read, 0), 500 + 100 + 200 + 100);
    assert_int_equal(landing(after, 0), 600 + 100); /* does not wait for what returns */
    assert_int_equal(links[3].bytes, 400);
    assert_int_equal(links[0].bytes, 1200);
}

static void take_turns(uint64_t burst, uint64_t buffer)
{
    clock_.burst = burst;
    clock_.buffer = buffer;
}

static void so_many_bursts_are_under_way(void **state)
{
    uint64_t when;
    take_turns(100, 300);
    uint32_t m[4];
    links[1].rate = 0.5;
    for (uint32_t i = 0; i < 4; i++) {
        m[i] = put_at(0, i, 100, 0, 2, 0);
    }
    assert_false(wire_net_look(&net, m[3], 3, 0, &when));
    assert_int_equal(when, WIRE_NEVER);
    /* They begin at 0, 50 and 100, when the cable's rate of 2 has carried the one before. At 100
       the first has 100 - 25 - 12.5 bytes left, for a third of 0.5. */
    assert_int_equal(landing(m[0], 0), 475 + 100);
    assert_int_equal(links[1].most, 3);
    /* The fourth begins then, when the others have 25 and 37.5 left: a third each, and so on. */
    assert_int_equal(landing(m[1], 1), 475 + 150 + 100);
    assert_int_equal(landing(m[2], 2), 625 + 50 + 100);
    assert_int_equal(landing(m[3], 3), 675 + 125 + 100);
    assert_int_equal(links[1].most, 3);
}

static void the_rest_counts_for_the_landing(void **state)
{
    uint64_t when;
    take_turns(100, 199);
    uint32_t a = put(0, 1100, 0, 1, 0);
    assert_false(wire_net_look(&net, a, 0, 0, &when));
    assert_int_equal(when, 50 + 100); /* 1000 bytes at the limit of 10 */
    assert_int_equal(soonest[0], 0);
    soonest[0] = UINT64_MAX;
    wire_net_advance(&net, 50);
    assert_int_equal(soonest[0], 100); /* each burst's end wants a look */
    uint32_t b = put_at(0, 1, 100, 0, 1, 60);
    assert_false(wire_net_look(&net, a, 0, 60, &when));
    assert_int_equal(when, 100); /* no rest: another one waits for the end of this burst */
    assert_int_equal(landing(a, 0), 600 + 100);
    assert_int_equal(landing(b, 1), 150 + 100);
}

static void a_read_returns_in_turns_of_the_other_gate(void **state)
{
    struct wire_request r = read_request(200);
    take_turns(100, 199);
    uint32_t read = wire_net_send(&net, &r, 0), write = put_at(1, 1, 300, 3, 1, 20);
    /* the write until 120, the request is there at 100, then by turns: read, write, read */
    assert_int_equal(landing(write, 1), 220 + 100);
    assert_int_equal(landing(read, 0), 270 + 100);
}

static void late_calls_change_nothing(void **state)
{
    uint64_t when[2][3];
    for (int late = 0; late < 2; late++) {
        set_up(NULL);
        uint32_t m[3];
        for (uint32_t i = 0; i < 3; i++) {
            m[i] = put(i, 500 + 100 * i, i, 2, 10 * i);
        }
        for (uint64_t t = 30; t < 3000 && !late; t++) {
            wire_net_advance(&net, t);
        }
        for (uint32_t i = 0; i < 3; i++) {
            when[late][i] = landing(m[i], i);
        }
    }
    for (int i = 0; i < 3; i++) { /* rounding up to nanoseconds aside */
        assert_in_range(when[0][i] + 2 - when[1][i], 0, 4);
    }
}

static void a_flow_that_speeds_up_says_so(void **state)
{
    uint64_t when;
    uint32_t a = put(0, 1000, 0, 1, 0);
    put(1, 100, 0, 1, 0);
    assert_false(wire_net_look(&net, a, 0, 0, &when));
    assert_int_equal(when, 1000);
    soonest[0] = UINT64_MAX;
    wire_net_advance(&net, 100);
    assert_int_equal(soonest[0], 550);
    assert_int_equal(soonest[1], 0);
}

static void room_comes_back(void **state)
{
    uint32_t m[ROOM];
    for (uint32_t i = 0; i < ROOM; i++) {
        m[i] = put(i % OWNERS, 100, 0, 1, 0);
    }
    assert_int_equal(put(0, 100, 0, 1, 0), WIRE_NONE);
    landing(m[3], 3);
    assert_int_not_equal(put(0, 100, 0, 1, 1000000), WIRE_NONE);
}

static void what_is_forgotten_makes_room(void **state)
{
    uint32_t flowing = put(0, 100, 0, 1, 0), queued = put(0, 100, 0, 1, 0);
    uint32_t last = put(0, 100, 0, 1, 0);
    wire_net_forget(&net, queued, 0);
    wire_net_forget(&net, flowing, 0);
    assert_int_equal(landing(last, 0), 100 + 100); /* the queued one never left */
    assert_int_equal(links[0].bytes, 200);
    for (uint32_t i = 0; i < ROOM; i++) {
        assert_int_not_equal(put(0, 0, 0, 1, 1000000), WIRE_NONE);
    }
}

static void a_dead_caller_stops_nothing(void **state)
{
    uint32_t a = put(0, 1000, 0, 1, 0), b = put(0, 1000, 0, 1, 0);
    clock_.busy = 1; /* as it left the net when it was killed */
    links[0].flows = 7;
    clock_.events = 0;
    assert_int_equal(landing(a, 0), 0);
    assert_int_equal(landing(b, 0), 0);
    assert_int_equal(links[0].flows, 0);
    assert_int_equal(landing(put(0, 1000, 0, 1, 3000000), 0), 3000000 + 500 + 100);
}

/* Those that were told to wait for a call would wait for ever. */
static void a_dead_caller_leaves_nobody_asleep(void **state)
{
    uint64_t when;
    uint32_t a = put(0, 1000, 0, 1, 0), b = put(0, 1000, 0, 1, 0), c = put(1, 100, 1, 1, 0);
    assert_false(wire_net_look(&net, a, 0, 0, &when));
    assert_int_equal(when, 500);
    assert_false(wire_net_look(&net, b, 0, 0, &when));
    assert_int_equal(when, WIRE_NEVER);
    wire_net_advance(&net, 50); /* c has left, and arrives at 150 */
    memset(soonest, 0xff, sizeof(soonest));
    clock_.busy = 1; /* died before it called anybody */
    wire_net_advance(&net, 60);
    assert_int_equal(soonest[0], 50);
    assert_int_equal(soonest[1], 150);
    assert_int_equal(landing(a, 0), 50);
    assert_int_equal(landing(b, 0), 50);
    assert_int_equal(landing(c, 1), 150);
}

static void many_by_chance(uint32_t gate_count)
{
    uint64_t seed = 1, sent = 0, now = 0, when;
    uint32_t held[ROOM], owner[ROOM], n = 0;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint32_t o = (uint32_t)(seed >> 40) % OWNERS, bytes = (uint32_t)(seed >> 48) % 3000;
        now += (seed >> 33) % 200;
        uint32_t id = n < ROOM ? put_at(o % gate_count, o, bytes, 0, 1 + o % 2, now) : WIRE_NONE;
        if (id != WIRE_NONE) {
            sent += bytes;
            held[n] = id;
            owner[n++] = o;
        }
        for (uint32_t k = 0; k < n; k++) {
            if (wire_net_look(&net, held[k], owner[k], now, &when)) {
                held[k] = held[--n];
                owner[k--] = owner[n];
            }
        }
    }
    while (n > 0) {
        n--;
        assert_true(wire_net_look(&net, held[n], owner[n], now + 1000000, &when));
    }
    assert_int_equal(links[0].bytes, sent);
    assert_int_equal(links[0].flows + links[1].flows, 0);
    assert_int_equal(clock_.events, 0);
    /* the link can't have carried them in less time than they take */
    assert_true((double)clock_.now >= (double)sent / 2);
}

/* Without turns, and with one, two and three bursts of a gate under way. */
static void many_by_chance_keep_their_bytes(void **state)
{
    for (uint32_t turns = 0; turns <= 3; turns++) {
        set_up(NULL);
        take_turns(turns ? 512 : 0, (uint64_t)turns * 512);
        many_by_chance(turns ? 1 + turns : OWNERS);
        for (uint32_t i = 0; i < OWNERS; i++) {
            assert_int_equal(gates[i].bursts + gates[i].head, 0);
        }
        assert_true(!turns || links[0].most <= (1 + turns) * turns);
    }
}

static void a_dead_caller_leaves_no_turns(void **state)
{
    take_turns(100, 199);
    uint32_t a = put_at(0, 0, 300, 0, 1, 0), b = put_at(0, 1, 300, 0, 1, 0);
    clock_.busy = 1;
    assert_int_equal(landing(b, 1), 0);
    assert_int_equal(landing(a, 0), 0);
    assert_int_equal(landing(put(0, 300, 0, 1, 3000000), 0), 3000000 + 150 + 100);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(one_takes_bytes_over_rate_and_latency),
        TEST(scenes_of_a_few),
        TEST(a_gate_keeps_the_gap),
        TEST(a_read_follows_a_write_and_returns),
        TEST(so_many_bursts_are_under_way),
        TEST(the_rest_counts_for_the_landing),
        TEST(a_read_returns_in_turns_of_the_other_gate),
        TEST(late_calls_change_nothing),
        TEST(a_flow_that_speeds_up_says_so),
        TEST(room_comes_back),
        TEST(what_is_forgotten_makes_room),
        TEST(a_dead_caller_stops_nothing),
        TEST(a_dead_caller_leaves_nobody_asleep),
        TEST(many_by_chance_keep_their_bytes),
        TEST(a_dead_caller_leaves_no_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

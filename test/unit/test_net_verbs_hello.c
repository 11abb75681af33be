/* The handshake over a channel that loses, doubles and reorders datagrams. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "net/verbs/hello.h"
#include "unit.h"

static uint64_t seed;

static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

struct datagram {
    int to;
    uint8_t flags;
    uint64_t at;
};

struct channel {
    uint32_t loss;   /* percent */
    bool has_second; /* side 1 takes the options that side 0 has set */
    struct datagram way[256];
    int count;
    int sent;
};

struct side {
    struct ibshift_handshake h;
    int connects, readies;
};

static void put(struct channel *c, int to, uint8_t flags, uint64_t now)
{
    int copies = draw(100) < c->loss ? 0 : 1 + (draw(100) < 20);
    c->sent++;
    for (int i = 0; i < copies && c->count < 256; i++) {
        c->way[c->count++] = (struct datagram){to, flags, now + 1000 + draw(5000000)};
    }
}

static void act(struct channel *c, struct side *side, int me, unsigned todo, uint64_t now)
{
    if (todo & IBSHIFT_SHAKE_CONNECT) {
        assert_int_equal(side[me].connects++, 0);
        assert_true(!c->has_second || me == 0 || side[0].connects == 1);
    }
    if (todo & IBSHIFT_SHAKE_SEND) {
        put(c, !me, ibshift_handshake_flags(&side[me].h), now);
    }
    if (todo & IBSHIFT_SHAKE_READY) {
        assert_int_equal(side[me].readies++, 0);
        assert_int_equal(side[me].connects, 1);
        assert_int_equal(side[!me].connects, 1); /* the peer can receive: what READY promises */
    }
}

static void deliver(struct channel *c, struct side *side, uint64_t now)
{
    for (int i = 0; i < c->count;) {
        if (c->way[i].at > now) {
            i++;
            continue;
        }
        struct datagram d = c->way[i];
        c->way[i] = c->way[--c->count];
        bool is_second = c->has_second && d.to == 1;
        act(c, side, d.to, ibshift_handshake_receive(&side[d.to].h, d.flags, is_second, now), now);
    }
}

/* Runs one handshake; returns the number of datagrams sent. */
static int shake(uint64_t s, uint32_t loss, int first, int both_start, bool has_second)
{
    static struct channel c;
    struct side side[2] = {0};
    uint64_t now = 0;

    seed = s;
    c = (struct channel){.loss = loss, .has_second = has_second};
    act(&c, side, first, ibshift_handshake_begin(&side[first].h, now), now);
    for (int step = 0; step < 4000000; step++, now += 500000) {
        if (step == 3 && both_start) {
            act(&c, side, !first, ibshift_handshake_begin(&side[!first].h, now), now);
        }
        deliver(&c, side, now);
        for (int i = 0; i < 2; i++) {
            act(&c, side, i, ibshift_handshake_tick(&side[i].h, now, draw(256)), now);
        }
        if (side[0].readies && side[1].readies && c.count == 0) {
            return c.sent;
        }
    }
    fail_msg("seed %lu, loss %u %%, both_start %d: no end", (unsigned long)s, loss, both_start);
    return 0;
}

static void ends_on_every_channel(void **state)
{
    static const uint32_t losses[] = {0, 10, 50, 80};
    for (int l = 0; l < 4; l++) {
        int sent = 0;
        for (uint64_t s = 1; s <= 500; s++) {
            sent += shake(s, losses[l], 0, s % 2 != 0, false);
            (void)shake(s, losses[l], s % 4 < 2, s % 2 != 0, true);
        }
        printf("loss %2u %%: %.1f datagrams a handshake (seeds 1..500)\n", losses[l], sent / 500.0);
    }
}

static void survives_the_wire(void **state)
{
    struct ibshift_hello h = {.kind = IBSHIFT_HELLO_CONNECT,
                              .flags = IBSHIFT_HELLO_WANT,
                              .from_peer = 3,
                              .to_peer = 4,
                              .rails = 2,
                              .status = 0};
    struct ibshift_hello back;
    uint8_t wire[sizeof(h)];

    h.rail[1].qpn = 0xabcdef;
    h.rail[1].ece_options = 0x10000005;
    ibshift_hello_encode(&h, wire);
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire), &back), 0);
    assert_int_equal(back.rail[1].qpn, 0xabcdef);
    assert_int_equal(back.rail[1].ece_options, 0x10000005);
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire) - 1, &back), -EPROTO);
    h.rail[1].qpn = 1u << 24;
    ibshift_hello_encode(&h, wire);
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire), &back), -EINVAL);
    h.rail[1].qpn = 1;
    h.rails = 5;
    ibshift_hello_encode(&h, wire);
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire), &back), -EINVAL);
    h.rails = 2;
    h.path = 128;
    ibshift_hello_encode(&h, wire);
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire), &back), -EINVAL);
    wire[0]++;
    assert_int_equal(ibshift_hello_decode(wire, sizeof(wire), &back), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_on_every_channel),
        cmocka_unit_test(survives_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

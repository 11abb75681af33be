/* The address card of a process: wire format, and which ports reach each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/blob.h"
#include "net/verbs/choice.h"
#include "unit.h"

static struct ibshift_verbs_address ib_port(uint8_t network, uint16_t lid)
{
    struct ibshift_verbs_address a = {.lid = lid, .mtu = 5, .pkey = 0xffff};
    a.gid[0] = 0xfe;
    a.gid[1] = 0x80;
    a.gid[7] = network;
    a.gid[15] = (uint8_t)lid;
    return a;
}

static struct ibshift_verbs_address roce_port(uint8_t type, int is_ipv4)
{
    struct ibshift_verbs_address a = {.mtu = 3, .is_ethernet = 1, .gid_type = type};
    a.gid[0] = is_ipv4 ? 0 : 0x20;
    a.gid[10] = a.gid[11] = 0xff;
    a.gid[15] = 1;
    return a;
}

static struct ibshift_verbs_blob card(uint64_t incarnation, int ports, const uint8_t *networks)
{
    struct ibshift_verbs_blob b = {.incarnation = incarnation, .ports = (uint16_t)ports};
    for (int i = 0; i < ports; i++) {
        b.address[i] = ib_port(networks[i], (uint16_t)(incarnation * 8 + (unsigned)i + 1));
    }
    return b;
}

static void survives_the_wire(void **state)
{
    uint8_t networks[] = {0, 1};
    struct ibshift_verbs_blob b = card(77, 2, networks), back;
    uint8_t wire[sizeof(b)];

    b.host = 0x1122334455667788;
    b.ud_qpn = 0x123456;
    strcpy(b.hostname, "node007");
    ibshift_verbs_blob_encode(&b, wire);
    assert_int_equal(wire[0], 'I');
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire), &back), 0);
    assert_int_equal(back.host, b.host);
    assert_int_equal(back.ud_qpn, b.ud_qpn);
    assert_int_equal(back.address[1].lid, b.address[1].lid);
    assert_string_equal(back.hostname, "node007");
}

static void refuses_what_is_not_ours(void **state)
{
    uint8_t networks[] = {0};
    struct ibshift_verbs_blob b = card(1, 1, networks), back;
    uint8_t wire[sizeof(b)];

    ibshift_verbs_blob_encode(&b, wire);
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire) - 1, &back), -EPROTO);
    wire[4]++;
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire), &back), -EPROTO);
    wire[4]--;
    wire[6] = 5;
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire), &back), -EINVAL);
    wire[6] = 0;
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire), &back), -EINVAL);
    b.address[0].mtu = 9;
    ibshift_verbs_blob_encode(&b, wire);
    assert_int_equal(ibshift_verbs_blob_decode(wire, sizeof(wire), &back), -EINVAL);
}

static void limited_members_reach_full_ones(void **state)
{
    struct ibshift_verbs_address full = ib_port(0, 1), limited = ib_port(0, 2),
                                 other = ib_port(0, 3);

    limited.pkey = 0x7fff;
    other.pkey = 0x8001;
    assert_true(ibshift_verbs_can_reach(&full, &limited));
    assert_true(ibshift_verbs_can_reach(&limited, &full));
    assert_false(ibshift_verbs_can_reach(&limited, &limited));
    assert_false(ibshift_verbs_can_reach(&full, &other));
}

static void a_key_is_chosen_by_membership(void **state)
{
    const uint16_t table[] = {0x7fff, 0, 0x8005, 0x8002, 0x0001}, usual[] = {0xffff, 0x8001};

    assert_int_equal(ibshift_pkey_choose(table, 5, 0), 3);
    assert_int_equal(ibshift_pkey_choose(table, 1, 0), 0);
    assert_int_equal(ibshift_pkey_choose(table, 5, 0x8005), 2);
    assert_int_equal(ibshift_pkey_choose(table, 5, 0x8001), 4);
    assert_int_equal(ibshift_pkey_choose(table, 5, 0x8003), -ENOENT);
    assert_int_equal(ibshift_pkey_choose(table + 1, 1, 0), -ENOENT);
    assert_int_equal(ibshift_pkey_choose(usual, 2, 0), 0);
}

static void link_layers_and_subnets_are_told_apart(void **state)
{
    struct ibshift_verbs_address a = ib_port(0, 1), same = ib_port(0, 2), other = ib_port(1, 2);
    struct ibshift_verbs_address v1 = roce_port(IBSHIFT_GID_ROCE_V1, 1);
    struct ibshift_verbs_address v2 = roce_port(IBSHIFT_GID_ROCE_V2, 1);
    struct ibshift_verbs_address v2_ipv6 = roce_port(IBSHIFT_GID_ROCE_V2, 0);

    assert_true(ibshift_verbs_can_reach(&a, &same));
    assert_false(ibshift_verbs_can_reach(&a, &other));
    assert_false(ibshift_verbs_can_reach(&a, &v2));
    assert_true(ibshift_verbs_can_reach(&v2, &v2));
    assert_false(ibshift_verbs_can_reach(&v1, &v2));
    assert_false(ibshift_verbs_can_reach(&v2, &v2_ipv6));
}

/* Both sides must find the same pairs, each port in at most one, each pair on one network. */
static void check_pairs(const struct ibshift_verbs_blob *a, const struct ibshift_verbs_blob *b)
{
    uint8_t a_mine[4], a_theirs[4], b_mine[4], b_theirs[4];
    int n = ibshift_verbs_pair_ports(a, b, a_mine, a_theirs);
    unsigned used_a = 0, used_b = 0;

    assert_int_equal(n, ibshift_verbs_pair_ports(b, a, b_mine, b_theirs));
    for (int i = 0; i < n; i++) {
        assert_int_equal(a_mine[i], b_theirs[i]);
        assert_int_equal(a_theirs[i], b_mine[i]);
        assert_true(ibshift_verbs_can_reach(&a->address[a_mine[i]], &b->address[a_theirs[i]]));
        assert_false((used_a >> a_mine[i] | used_b >> a_theirs[i]) & 1);
        used_a |= 1u << a_mine[i];
        used_b |= 1u << a_theirs[i];
    }
    int first = ibshift_verbs_can_reach(&a->address[0], &b->address[0]);
    assert_int_equal(n > 0, first);
    if (n > 0) {
        assert_int_equal(a_mine[0] | a_theirs[0], 0);
    }
}

static void both_sides_pair_alike(void **state)
{
    srand(5);
    for (int round = 0; round < 20000; round++) {
        uint8_t na[4], nb[4];
        for (int i = 0; i < 4; i++) {
            na[i] = (uint8_t)(rand() % 3);
            nb[i] = (uint8_t)(rand() % 3);
        }
        struct ibshift_verbs_blob a = card(1 + (uint64_t)(rand() % 9), 1 + rand() % 4, na);
        struct ibshift_verbs_blob b = card(20, 1 + rand() % 4, nb);
        check_pairs(&a, &b);
    }
}

/* The address that a datagram comes from is that of the card's first port, its queue pair too. */
static void a_source_is_compared_with_the_card(void **state)
{
    uint8_t nets[4] = {0}, route[40] = {0};
    struct ibshift_verbs_blob c = card(1, 1, nets);
    struct ibshift_verbs_source source = {.qpn = c.ud_qpn, .lid = 64};

    c.address[0].lid = 64;
    c.address[0].lmc = 2;
    assert_true(ibshift_verbs_is_from(&c, &source));
    source.lid = 67;
    assert_true(ibshift_verbs_is_from(&c, &source));
    source.lid = 68;
    assert_false(ibshift_verbs_is_from(&c, &source));
    source.lid = 64;
    source.qpn++;
    assert_false(ibshift_verbs_is_from(&c, &source));

    source.qpn = c.ud_qpn;
    c.address[0] = roce_port(IBSHIFT_GID_ROCE_V2, 1);
    source.route = route;
    assert_false(ibshift_verbs_is_from(&c, &source));
    route[20] = 0x45;
    memcpy(route + 32, c.address[0].gid + 12, 4);
    assert_true(ibshift_verbs_is_from(&c, &source));
    route[35]++;
    assert_false(ibshift_verbs_is_from(&c, &source));
    c.address[0] = roce_port(IBSHIFT_GID_ROCE_V2, 0);
    assert_false(ibshift_verbs_is_from(&c, &source));
    memcpy(route + 8, c.address[0].gid, 16);
    assert_true(ibshift_verbs_is_from(&c, &source));
    c.ports = 0;
    assert_false(ibshift_verbs_is_from(&c, &source));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_the_wire),
        cmocka_unit_test(refuses_what_is_not_ours),
        cmocka_unit_test(limited_members_reach_full_ones),
        cmocka_unit_test(a_key_is_chosen_by_membership),
        cmocka_unit_test(link_layers_and_subnets_are_told_apart),
        cmocka_unit_test(both_sides_pair_alike),
        cmocka_unit_test(a_source_is_compared_with_the_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shapes found in graphs, and orders found in tables, whatever the names, places of ports and
 * GUIDs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/shape/order.h"
#include "fabric/graph/random.h"
#include "fabric/read/read.h"
#include "fabric/paths/route.h"
#include "unit.h"

static struct ibshift_fabric *load(const char *graph, const char *tables)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_warnings warnings = {.count = 0};
    struct ibshift_error err = {""};

    if (ibshift_fabric_load(graph, tables, &f, &warnings, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return f;
}

static void expect_shape(const char *graph, const char *name, uint32_t findings,
                         const char *finding)
{
    struct ibshift_fabric *f = load(graph, NULL);
    struct ibshift_shape shape;
    struct ibshift_error err;
    char text[128];

    assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
    ibshift_shape_name(&shape, text, sizeof(text));
    print_message("%s: %s, %u findings %s\n", graph, text, shape.findings.count,
                  shape.findings.count > 0 ? shape.findings.text[0] : "");
    assert_string_equal(text, name);
    if (finding != NULL) {
        assert_string_equal(shape.findings.text[0], finding);
    }
    assert_int_equal(shape.findings.count, findings);
    ibshift_shape_free(&shape);
    ibshift_fabric_free(f);
}

static void whole_shapes(void **state)
{
    expect_shape("kary:4,3", "4-ary-3-tree", 0, NULL);
    expect_shape("kary:2,4", "2-ary-4-tree", 0, NULL);
    expect_shape("kary:4,1", "one switch", 0, NULL);
    expect_shape("pgft:3;18,9,36;1,9,18;1,2,1", "PGFT(3; 18,9,36; 1,9,18; 1,2,1)", 0, NULL);
    expect_shape("pgft:2;24,12;1,12;1,1", "PGFT(2; 24,12; 1,12; 1,1)", 0, NULL);
    expect_shape("qft:3;4,2,8;1,2,4;1,2,1", "QFT(3; 4,2,8; 1,2,4; 1,2,1)", 0, NULL);
    expect_shape("qft:3;18,9,36;1,9,18;1,2,1", "QFT(3; 18,9,36; 1,9,18; 1,2,1)", 0, NULL);
    expect_shape("torus:8x8,4", "8x8 torus, 4 hosts per switch", 0, NULL);
    expect_shape("torus:2x3x4,1", "2x3x4 torus, 1 host per switch", 0, NULL);
    expect_shape("torus:4x4x4", "4x4x4 torus, 1 host per switch", 0, NULL);
    expect_shape("pgft:4;18,3,18,36;1,3,18,18;1,6,1,1", "PGFT(4; 18,3,18,36; 1,3,18,18; 1,6,1,1)",
                 0, NULL);
}

static void damage_is_named(void **state)
{
    expect_shape("kary:4,3/drop=h00007,h00011", "4-ary-3-tree", 0, NULL);
    expect_shape("kary:4,3/cut=1:3", "4-ary-3-tree", 2, NULL);
    expect_shape("kary:4,3/drop=s3-00002", "4-ary-3-tree", 5,
                 "level 3 has 15 switches, the whole shape has 16");
    expect_shape("pgft:3;4,2,8;1,2,4;1,2,1/cut=1:1", "PGFT(3; 4,2,8; 1,2,4; 1,2,1)", 2, NULL);
    expect_shape("torus:4x4,1/cut=1:1", "irregular", 1,
                 "'s1-00000' and 's1-00001' are of the same level 1, yet connected");
}

static void recorded_shapes(void **state)
{
    expect_shape(TOP_SRCDIR "/test/fabrics/tree16/ibnetdiscover", "4-ary-2-tree", 0, NULL);
    expect_shape(TOP_SRCDIR "/test/fabrics/qft64/ibnetdiscover", "QFT(3; 4,2,8; 1,2,4; 1,2,1)", 0,
                 NULL);
    expect_shape(TOP_SRCDIR "/test/fabrics/torus16/ibnetdiscover", "4x4 torus, 2 hosts per switch",
                 0, NULL);
}

/* Flows on the busiest link, over all stages of the shift over the places. */
static unsigned worst_of_shift(const struct ibshift_fabric *f, const uint32_t *place,
                               uint32_t count)
{
    unsigned *flows = calloc(f->port_count, sizeof(*flows)), worst = 0;
    uint32_t links[IBSHIFT_ROUTE_MAX];

    for (uint32_t stage = 1; stage < count; stage++) {
        memset(flows, 0, f->port_count * sizeof(*flows));
        for (uint32_t i = 0; i < count; i++) {
            uint32_t to = place[(i + stage) % count];
            int walked, length = 0;

            if (place[i] != IBSHIFT_NO_HOST && to != IBSHIFT_NO_HOST) {
                length = ibshift_route_walk(f, place[i], ibshift_host_lid(f, to), links,
                                            IBSHIFT_ROUTE_MAX, &walked);
                assert_true(length > 1);
            }
            for (int l = 0; l < length; l++) {
                flows[links[l]]++;
                worst = flows[links[l]] > worst ? flows[links[l]] : worst;
            }
        }
    }
    free(flows);
    return worst;
}

static void expect_order(const char *graph, const char *tables, unsigned worst, unsigned kept_worst)
{
    struct ibshift_fabric *f = load(graph, tables);
    struct ibshift_shape shape;
    struct ibshift_error err;
    uint32_t *order, *kept, count;
    bool *seen = calloc(f->host_count, sizeof(*seen));
    unsigned measured, kept_measured;

    assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
    assert_int_equal(ibshift_order_routing(f, &shape, &order, &err), 0);
    for (uint32_t i = 0; i < f->host_count; i++) {
        assert_false(seen[order[i]]);
        seen[order[i]] = true;
    }
    assert_int_equal(ibshift_order_keepers(f, &shape, &kept, &count, &err), 0);
    for (uint32_t i = 0; i < count; i++) {
        if (kept[i] != IBSHIFT_NO_HOST) {
            assert_true(seen[kept[i]]);
            seen[kept[i]] = false;
        }
    }
    for (uint32_t i = 0; i < f->host_count; i++) {
        assert_false(seen[i]);
    }
    measured = worst_of_shift(f, order, f->host_count);
    kept_measured = worst_of_shift(f, kept, count);
    print_message("%s %s: %u, %u places %u\n", graph, tables ? tables : "", measured, count,
                  kept_measured);
    assert_int_equal(measured, worst);
    assert_int_equal(kept_measured, kept_worst);
    free(order);
    free(kept);
    free(seen);
    ibshift_shape_free(&shape);
    ibshift_fabric_free(f);
}

static void orders_of_closed_forms(void **state)
{
    expect_order("kary:4,3", NULL, 1, 1);
    expect_order("kary:2,4", NULL, 1, 1);
    expect_order("pgft:3;4,2,8;1,2,4;1,2,1", NULL, 1, 1);
    expect_order("qft:3;4,2,8;1,2,4;1,2,1", NULL, 1, 1);
    expect_order("qft:3;4,4,16;1,2,8;1,4,1", NULL, 1, 1);
    expect_order("pgft:2;24,12;1,12;1,1", NULL, 2, 2);
    expect_order("pgft:2;3,4;1,4;1,1", NULL, 1, 1);
    expect_order("kary:4,3/hosts=50:2", NULL, 2, 1);
}

static void expect_recorded(const char *fabric, const char *tables, unsigned worst, unsigned kept)
{
    char graph_path[512], tables_path[512];

    snprintf(graph_path, sizeof(graph_path), TOP_SRCDIR "/test/fabrics/%s/ibnetdiscover", fabric);
    snprintf(tables_path, sizeof(tables_path), TOP_SRCDIR "/test/fabrics/%s/%s", fabric, tables);
    expect_order(graph_path, tables_path, worst, kept);
}

static void orders_of_opensm(void **state)
{
    expect_recorded("tree16", "opensm-lfts.dump", 1, 1);
    expect_recorded("tree15", "opensm-lfts.dump", 2, 1);
    expect_recorded("pgft32", "opensm-lfts.dump", 1, 1);
    expect_recorded("qft64", "opensm.fdbs", 1, 1);
}

static uint32_t add(struct ibshift_fabric *f, enum ibshift_node_kind kind, const char *letter,
                    uint32_t i)
{
    char name[32];
    struct ibshift_error err;
    int64_t node;

    snprintf(name, sizeof(name), "%s%u", letter, i);
    node = ibshift_fabric_add_node(f, kind, 1000 + f->node_count, name,
                                   kind == IBSHIFT_NODE_SWITCH ? 40 : 1, &err);
    assert_true(node >= 0);
    return (uint32_t)node;
}

/* A cable between the first free ports. */
static void join(struct ibshift_fabric *f, uint32_t a, uint32_t b)
{
    uint32_t p = f->nodes[a].first_port, q = f->nodes[b].first_port;
    struct ibshift_error err;

    while (f->ports[p].peer != IBSHIFT_NO_PORT) {
        p++;
    }
    while (f->ports[q].peer != IBSHIFT_NO_PORT) {
        q++;
    }
    assert_int_equal(ibshift_fabric_add_link(f, p, q, IBSHIFT_NO_RATE, &err), 0);
}

static void add_hosts(struct ibshift_fabric *f, uint32_t sw, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        join(f, sw, add(f, IBSHIFT_NODE_HCA, "h", f->node_count));
    }
}

/* width * width leaves of 3 levels (or `width` of 2) under spines, unequal hosts on the leaves,
 * `service` spines with one host, one cable cut. Nodes 0 .. leaves - 1 are the leaves. */
static struct ibshift_fabric *uneven_tree(unsigned levels, uint32_t width, uint32_t service,
                                          bool cut, uint64_t seed)
{
    struct ibshift_fabric *f = ibshift_fabric_new();
    uint32_t row = levels == 2 ? width : width * width, per = levels == 2 ? 4 : width;
    uint32_t spines = levels == 2 ? 4 : row, nodes[3][64];
    struct ibshift_error err;

    for (unsigned l = 0; l < levels; l++) {
        for (uint32_t i = 0; i < (l + 1 == levels ? spines : row); i++) {
            nodes[l][i] = add(f, IBSHIFT_NODE_SWITCH, l == 0 ? "leaf" : "up", 100 * l + i);
        }
    }
    for (uint32_t i = 0; i < row; i++) {
        for (uint32_t k = 0; k < per; k++) {
            if (!cut || i != 0 || k != 0) {
                join(f, nodes[0][i], levels == 2 ? nodes[1][k] : nodes[1][i / width * width + k]);
            }
            if (levels == 3) {
                join(f, nodes[1][i], nodes[2][i % width * width + k]);
            }
        }
    }
    for (uint32_t i = 0; i < row; i++) {
        add_hosts(f, nodes[0][i], 2 + ibshift_random_below(&seed, 7));
    }
    for (uint32_t i = 0; i < service; i++) {
        add_hosts(f, nodes[levels - 1][i], 1);
    }
    assert_int_equal(ibshift_fabric_finish(f, &err), 0);
    return f;
}

/* Whatever the leaves carry, they are the leaves: not the spines with a service host, and not the
 * full ones among them alone. */
static void uneven_leaves_are_leaves(void **state)
{
    for (uint64_t i = 0; i < 200; i++) {
        unsigned levels = 2 + i % 2;
        uint32_t service = i / 2 % 3, leaves = levels == 2 ? 9 : 16;
        struct ibshift_fabric *f = uneven_tree(levels, levels == 2 ? 9 : 4, service, i % 5 == 0, i);
        struct ibshift_shape shape;
        struct ibshift_error err;

        assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
        if (shape.levels != levels || shape.leaves != leaves || shape.hosts_elsewhere != service) {
            fail_msg("tree %u: %u levels, %u leaves, %u hosts elsewhere, not %u, %u, %u",
                     (unsigned)i, shape.levels, shape.leaves, shape.hosts_elsewhere, levels, leaves,
                     service);
        }
        for (uint32_t n = 0; n < leaves; n++) {
            assert_int_equal(shape.node_level[n], 1);
        }
        assert_int_equal(shape.parts, 1);
        ibshift_shape_free(&shape);
        ibshift_fabric_free(f);
    }
}

static void parts_are_counted(void **state)
{
    struct ibshift_fabric *f = ibshift_fabric_new();
    uint32_t a = add(f, IBSHIFT_NODE_SWITCH, "s", 0), b = add(f, IBSHIFT_NODE_SWITCH, "s", 1);
    struct ibshift_shape shape;
    struct ibshift_error err;

    add(f, IBSHIFT_NODE_SWITCH, "s", 2); /* of no account: nobody is on it */
    add_hosts(f, a, 3);
    add_hosts(f, b, 5);
    assert_int_equal(ibshift_fabric_finish(f, &err), 0);
    assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
    assert_int_equal(shape.parts, 2);
    assert_int_equal(shape.part_host[0], 0);
    assert_int_equal(shape.part_host[1], 3);
    ibshift_shape_free(&shape);
    ibshift_fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_shapes),      cmocka_unit_test(damage_is_named),
        cmocka_unit_test(recorded_shapes),   cmocka_unit_test(orders_of_closed_forms),
        cmocka_unit_test(orders_of_opensm),  cmocka_unit_test(uneven_leaves_are_leaves),
        cmocka_unit_test(parts_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

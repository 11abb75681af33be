/* Shapes found in graphs, and orders found in tables, whatever the names, places of ports and
 * GUIDs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/order.h"
#include "fabric/read.h"
#include "fabric/route.h"

static ibshift_fabric_t *load(const char *graph, const char *tables)
{
    ibshift_fabric_t *f = NULL;
    ibshift_notes_t notes = {.count = 0};
    ibshift_error_t err = {""};

    if (ibshift_fabric_load(graph, tables, &f, &notes, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return f;
}

static void expect_shape(const char *graph, const char *name, uint32_t findings,
                         const char *finding)
{
    ibshift_fabric_t *f = load(graph, NULL);
    ibshift_shape_t shape;
    ibshift_error_t err;
    char text[128];

    assert_int_equal(ibshift_shape_find(f, &shape, &err), 0);
    ibshift_shape_name(&shape, text, sizeof(text));
    print_message("%s: %s, %u findings %s\n", graph, text, shape.findings,
                  shape.findings > 0 ? shape.finding[0] : "");
    assert_string_equal(text, name);
    if (finding != NULL) {
        assert_string_equal(shape.finding[0], finding);
    }
    assert_int_equal(shape.findings, findings);
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
    expect_shape("torus:8x8,4", "8x8 torus, 4 hosts a switch", 0, NULL);
    expect_shape("torus:2x3x4,1", "2x3x4 torus, 1 host a switch", 0, NULL);
    expect_shape("torus:4x4x4", "4x4x4 torus, 1 host a switch", 0, NULL);
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
                 "'s1-00000' and 's1-00001' are of the same level 1, yet joined");
}

static void recorded_shapes(void **state)
{
    expect_shape(TOP_SRCDIR "/test/fabrics/tree16/ibnetdiscover", "4-ary-2-tree", 0, NULL);
    expect_shape(TOP_SRCDIR "/test/fabrics/qft64/ibnetdiscover", "QFT(3; 4,2,8; 1,2,4; 1,2,1)", 0,
                 NULL);
    expect_shape(TOP_SRCDIR "/test/fabrics/torus16/ibnetdiscover", "4x4 torus, 2 hosts a switch", 0,
                 NULL);
}

/* Flows on the busiest link, over all stages of the shift over the places. */
static unsigned worst_of_shift(const ibshift_fabric_t *f, const uint32_t *place, uint32_t count)
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
    ibshift_fabric_t *f = load(graph, tables);
    ibshift_shape_t shape;
    ibshift_error_t err;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_shapes),     cmocka_unit_test(damage_is_named),
        cmocka_unit_test(recorded_shapes),  cmocka_unit_test(orders_of_closed_forms),
        cmocka_unit_test(orders_of_opensm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Recorded fabrics (test/fabrics): all formats of one fabric give the same graph, tables and
 * routes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/read/read.h"
#include "fabric/paths/route.h"
#include "unit.h"

static struct ibshift_warnings warnings;

static const char *path_of(const char *fabric, const char *file, char *text, size_t size)
{
    snprintf(text, size, TOP_SRCDIR "/test/fabrics/%s/%s", fabric, file);
    return text;
}

static struct ibshift_fabric *load(const char *fabric, const char *graph, const char *tables)
{
    char graph_path[512], tables_path[512];
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};

    warnings.count = 0;
    path_of(fabric, graph, graph_path, sizeof(graph_path));
    if (ibshift_fabric_load(
            graph_path,
            tables == NULL ? NULL : path_of(fabric, tables, tables_path, sizeof(tables_path)), &f,
            &warnings, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return f;
}

static void check_routes(const struct ibshift_fabric *f)
{
    uint32_t links[IBSHIFT_ROUTE_MAX];

    for (uint32_t from = 0; from < f->host_count; from++) {
        for (uint32_t to = 0; to < f->host_count; to++) {
            for (unsigned i = 0; i < ibshift_host_lid_count(f, to); i++) {
                int walked, rc = ibshift_route_walk(f, from, ibshift_host_lid(f, to) + i, links,
                                                    IBSHIFT_ROUTE_MAX, &walked);

                if (rc < 0 || (from != to && rc < 2)) {
                    struct ibshift_error err;

                    ibshift_route_explain(f, from, ibshift_host_lid(f, to) + i, rc, links, walked,
                                          &err);
                    fail_msg("%s", err.text);
                }
            }
        }
    }
}

static void one(const char *fabric, const char *graph, const char *tables, uint32_t hosts,
                uint32_t switches, const struct ibshift_fabric *same)
{
    struct ibshift_fabric *f = load(fabric, graph, tables);

    assert_int_equal(f->host_count, hosts);
    assert_int_equal(f->switch_count, switches);
    assert_int_equal(warnings.count, 0);
    assert_int_equal(f->guid_sum, same->guid_sum);
    assert_int_equal(f->tables_sum, same->tables_sum);
    check_routes(f);
    ibshift_fabric_free(f);
}

static void all_formats_agree(void **state)
{
    const char *const graphs[] = {"netlist", "ibnetdiscover", "opensm-subnet.lst"};
    const char *const tables[] = {"dump_fts", "opensm-lfts.dump", "opensm.fdbs"};
    struct ibshift_fabric *reference = load("tree16", "ibnetdiscover", "opensm-lfts.dump");

    for (int g = 0; g < 3; g++) {
        for (int t = 0; t < 3; t++) {
            if (g != 0 || t != 2) { /* neither a netlist nor opensm.fdbs knows who has a LID */
                one("tree16", graphs[g], tables[t], 16, 8, reference);
            }
        }
    }
    ibshift_fabric_free(reference);
}

static void several_lids_a_host(void **state)
{
    struct ibshift_fabric *reference = load("tree16-lmc1", "ibnetdiscover", "opensm-lfts.dump");

    assert_int_equal(ibshift_host_lid_count(reference, 3), 2);
    one("tree16-lmc1", "netlist", "dump_fts", 16, 8, reference);
    one("tree16-lmc1", "opensm-subnet.lst", "opensm-lfts.dump", 16, 8, reference);
    one("tree16-lmc1", "ibnetdiscover", "opensm.fdbs", 16, 8, reference);
    ibshift_fabric_free(reference);
}

static void other_shapes(void **state)
{
    static const struct {
        const char *fabric, *tables;
        uint32_t hosts, switches;
    } cases[] = {{"tree15", "opensm-lfts.dump", 15, 8},
                 {"tree26-cut", "opensm-lfts.dump", 26, 27},
                 {"pgft32", "opensm-lfts.dump", 32, 8},
                 {"qft64", "opensm.fdbs", 64, 40},
                 {"torus16", "opensm.fdbs", 32, 16}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_fabric *f = load(cases[i].fabric, "ibnetdiscover", cases[i].tables);

        assert_int_equal(f->host_count, cases[i].hosts);
        assert_int_equal(f->switch_count, cases[i].switches);
        check_routes(f);
        ibshift_fabric_free(f);
    }
}

static void the_lid_that_dump_fts_loses(void **state)
{
    struct ibshift_fabric *f = load("lid64", "ibnetdiscover", "dump_fts");

    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.text[0], "LID 64 is missing from 8 tables"));
    ibshift_fabric_free(f);
    f = load("lid64", "ibnetdiscover", "opensm-lfts.dump");
    assert_int_equal(warnings.count, 0);
    check_routes(f);
    ibshift_fabric_free(f);
}

static void rates_and_names(void **state)
{
    struct ibshift_fabric *f = load("tree16", "ibnetdiscover", NULL);
    int64_t host = ibshift_fabric_find_host(f, "h00003");
    char text[128];

    assert_true(host >= 0);
    assert_int_equal(ibshift_fabric_find_host(f, "h00003 HCA-1"), host);
    assert_int_equal(ibshift_fabric_find_host(f, "0x0002c90300000041"), host);
    assert_int_equal(ibshift_fabric_find_host(f, "h0000"), -2);
    assert_int_equal(f->ports[f->hosts[host]].rate.mbps, 8000);
    ibshift_link_name(f, f->hosts[host], text, sizeof(text));
    assert_string_equal(text, "h00003 HCA-1 port 1 -> s1-00000 port 4");
    assert_null(f->lft);

    /* Switches without management are all called alike. */
    f->nodes[f->switches[1]].name = f->nodes[f->switches[0]].name;
    for (uint32_t s = 0; s < 2; s++) {
        char expected[128];
        const struct ibshift_node *node = &f->nodes[f->switches[s]];

        snprintf(expected, sizeof(expected), "%s (LID %u) port 1 -> ",
                 ibshift_node_name(f, f->switches[0]), node->lid);
        ibshift_link_name(f, node->first_port, text, sizeof(text));
        assert_memory_equal(text, expected, strlen(expected));
    }
    ibshift_link_name(f, f->nodes[f->switches[0]].first_port, text, 20);
    assert_int_equal(strlen(text), 19);
    ibshift_fabric_free(f);
}

static void order_with_place_keepers(void **state)
{
    struct ibshift_fabric *f = load("tree15", "ibnetdiscover", "opensm-lfts.dump");
    struct ibshift_error err;
    char path[512];
    uint32_t *order, count;

    path_of("tree15", "opensm-ftree-ca-order.dump", path, sizeof(path));
    assert_int_equal(ibshift_order_load(path, f, true, &order, &count, &err), 0);
    assert_int_equal(count, 16);
    assert_int_equal(order[7], IBSHIFT_NO_HOST);
    assert_string_equal(ibshift_host_name(f, order[8]), "h00008 HCA-1");
    free(order);
    assert_int_equal(ibshift_order_load(path, f, false, &order, &count, &err), 0);
    assert_int_equal(count, 15);
    assert_string_equal(ibshift_host_name(f, order[7]), "h00008 HCA-1");
    free(order);
    ibshift_fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_formats_agree), cmocka_unit_test(several_lids_a_host),
        cmocka_unit_test(other_shapes),      cmocka_unit_test(the_lid_that_dump_fts_loses),
        cmocka_unit_test(rates_and_names),   cmocka_unit_test(order_with_place_keepers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a file says and what there is: the same from whatever source, and each kind of difference is told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proof/compare.h"
#include "fabric/graph/rate.h"
#include "fabric/read/synth.h"
#include "unit.h"

static struct ibshift_error err;

static struct ibshift_fabric *synthetic(const char *text)
{
    struct ibshift_fabric *f = NULL;

    assert_int_equal(ibshift_synth_fabric(text, &f, &err), 0);
    return f;
}

static struct ibshift_fabric *with_levels(const char *text)
{
    struct ibshift_fabric *f = synthetic(text);

    f->sl_rows = 2;
    f->sl = calloc(f->sl_rows, f->lft_stride);
    f->sl_row = calloc(f->host_count, sizeof(*f->sl_row));
    assert_true(f->sl != NULL && f->sl_row != NULL);
    for (uint32_t i = 0; i < f->sl_rows * f->lft_stride; i++) {
        f->sl[i] = (uint8_t)(i % 3);
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        f->sl_row[h] = h % 2;
    }
    return f;
}

/* The same, listed from the last node to the first, switches with a port more that has no cable. */
static struct ibshift_fabric *listed_backwards(const struct ibshift_fabric *f)
{
    struct ibshift_fabric *g = ibshift_fabric_new();

    for (uint32_t n = f->node_count; n-- > 0;) {
        const struct ibshift_node *node = &f->nodes[n];
        int64_t m =
            ibshift_fabric_add_node(g, node->kind, node->guid, ibshift_node_name(f, n),
                                    node->port_count + (node->kind == IBSHIFT_NODE_SWITCH), &err);

        assert_true(m >= 0);
        for (unsigned i = 0; i <= node->port_count; i++) {
            uint32_t port = ibshift_node_port(f, n, i);
            unsigned lid = i == 0 ? node->lid : f->ports[port].lid;

            if (lid != 0) {
                assert_int_equal(ibshift_fabric_set_lid(g, (uint32_t)m, i, lid,
                                                        i == 0 ? node->lmc : f->ports[port].lmc,
                                                        &err),
                                 0);
            }
        }
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        uint32_t q = f->ports[p].peer, a, b;

        if (q == IBSHIFT_NO_PORT || q < p) {
            continue;
        }
        a = ibshift_fabric_find_guid(g, f->nodes[f->ports[p].node].guid);
        b = ibshift_fabric_find_guid(g, f->nodes[f->ports[q].node].guid);
        assert_int_equal(ibshift_fabric_add_link(g, ibshift_node_port(g, a, f->ports[p].number),
                                                 ibshift_node_port(g, b, f->ports[q].number),
                                                 f->ports[p].rate, &err),
                         0);
    }
    assert_int_equal(ibshift_fabric_finish(g, &err), 0);
    assert_int_equal(ibshift_fabric_tables_new(g, &err), 0);
    for (uint32_t s = 0; s < f->switch_count; s++) {
        uint32_t node = ibshift_fabric_find_guid(g, f->nodes[f->switches[s]].guid);

        for (unsigned lid = 1; lid < f->lft_stride; lid++) {
            ibshift_lft_set(g, g->nodes[node].switch_index, lid, ibshift_lft_get(f, s, lid));
        }
    }
    ibshift_fabric_tables_finish(g);
    return g;
}

static void the_order_of_a_source_is_nothing(void **state)
{
    static const char *const texts[] = {"kary:4,2", "kary:4,2/lmc=1", "torus:3x3,2"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ibshift_fabric *f = synthetic(texts[i]), *g = listed_backwards(f);

        assert_true(f->nodes[0].guid != g->nodes[0].guid);
        if (fabric_compare(f, g, true, &err) != 0 || fabric_compare(g, f, true, &err) != 0) {
            fail_msg("%s: %s", texts[i], err.text);
        }
        ibshift_fabric_free(f);
        ibshift_fabric_free(g);
    }
}

/* ---- one change of each kind, of what is there now ---- */

static uint32_t leaf(const struct ibshift_fabric *f)
{
    return f->ports[f->ports[f->hosts[0]].peer].node;
}

/* The first two cables of the first host's switch. */
static void swap_cables(struct ibshift_fabric *f)
{
    uint32_t a = ibshift_node_port(f, leaf(f), 1), b = ibshift_node_port(f, leaf(f), 2);
    uint32_t at_a = f->ports[a].peer, at_b = f->ports[b].peer;

    f->ports[a].peer = at_b;
    f->ports[at_b].peer = a;
    f->ports[b].peer = at_a;
    f->ports[at_a].peer = b;
}

static void pull_cable(struct ibshift_fabric *f)
{
    uint32_t a = ibshift_node_port(f, leaf(f), 5), b = f->ports[a].peer;

    f->ports[a].peer = f->ports[b].peer = IBSHIFT_NO_PORT;
}

static void change_lid(struct ibshift_fabric *f)
{
    f->ports[f->hosts[1]].lid += 100;
}

/* A source that does not tell it. */
static void set_lmc(struct ibshift_fabric *f)
{
    f->ports[f->hosts[1]].lmc = 2;
}

static void change_switch_lid(struct ibshift_fabric *f)
{
    f->nodes[leaf(f)].lid += 100;
}

static void change_rate(struct ibshift_fabric *f)
{
    f->ports[f->hosts[1]].rate = ibshift_rate_parse("4xSDR");
}

static void forget_rate(struct ibshift_fabric *f)
{
    f->ports[f->hosts[1]].rate = IBSHIFT_NO_RATE;
}

static void change_name(struct ibshift_fabric *f)
{
    f->names[f->nodes[f->ports[f->hosts[1]].node].name] = 'X';
}

static void forget_name(struct ibshift_fabric *f)
{
    memcpy(f->names + f->nodes[f->ports[f->hosts[1]].node].name, "0x", 2);
}

static void change_route(struct ibshift_fabric *f)
{
    ibshift_lft_set(f, f->nodes[leaf(f)].switch_index, ibshift_host_lid(f, 9), 8);
}

/* To a LID that is nobody's. */
static void change_no_route(struct ibshift_fabric *f)
{
    f->lid_port[ibshift_host_lid(f, 9)] = IBSHIFT_NO_PORT;
    change_route(f);
}

static void change_level(struct ibshift_fabric *f)
{
    f->sl[f->lft_stride + ibshift_host_lid(f, 4)] ^= 4;
}

static void forget_levels(struct ibshift_fabric *f)
{
    free(f->sl);
    free(f->sl_row);
    f->sl = NULL;
    f->sl_row = NULL;
    f->sl_rows = 0;
}

static void go_adaptive(struct ibshift_fabric *f)
{
    f->is_adaptive = true;
}

static void change_kind(struct ibshift_fabric *f)
{
    f->nodes[f->ports[f->hosts[1]].node].kind = IBSHIFT_NODE_OTHER;
}

static const struct {
    const char *now;                         /* a fabric; NULL: the file's, changed */
    void (*change)(struct ibshift_fabric *); /* or NULL */
    const char *told, *back; /* back: where file and now change places; NULL: the same words */
    bool is_whole_only;
} rows[] = {
    {"kary:4,2/drop=h00003", NULL, "host 'h00003 HCA-1' (GUID", "is new", false},
    {"kary:4,2/drop=h00003", NULL, "is gone", "host 'h00003 HCA-1'", false},
    {"kary:4,2/drop=s2-00001", NULL, "switch 's2-00001' (GUID", "is new", false},
    {NULL, change_kind, "node 'h00001 HCA-1'; in the file: a host",
     "host 'h00001 HCA-1'; in the file: a node", false},
    {NULL, swap_cables,
     "host 'h00000 HCA-1' port 1: cable to 's1-00000' port 2; in the file: cable to 's1-00000' "
     "port 1",
     "cable to 's1-00000' port 1; in the file: cable to 's1-00000' port 2", false},
    {NULL, pull_cable, "switch 's1-00000' port 5: no cable; in the file: cable to 's2-00000'",
     "switch 's1-00000' port 5: cable to 's2-00000' port 1; in the file: no cable", false},
    {NULL, change_lid, "host 'h00001 HCA-1' port 1: LID 102, LMC 0; in the file: 2, 0",
     "LID 2, LMC 0; in the file: 102, 0", false},
    {NULL, set_lmc, "LMC 2; in the file: 2, 0", "LMC 0; in the file: 2, 2", true},
    {"kary:4,2/lmc=1", NULL, "LID 2, LMC 1; in the file: 1, 0", "LID 1, LMC 0; in the file: 2, 1",
     false},
    {NULL, change_switch_lid, "switch 's1-00000': LID 117; in the file: 17",
     "LID 17; in the file: 117", false},
    {NULL, change_rate, "host 'h00001 HCA-1' port 1: cable of rate 4xSDR; in the file: 4xQDR",
     "cable of rate", false},
    {NULL, forget_rate, "host 'h00001 HCA-1' port 1: cable of rate", "cable of rate", true},
    {NULL, change_name, "is named 'X00001 HCA-1'; in the file: 'h00001 HCA-1'",
     "is named 'h00001 HCA-1'", false},
    {NULL, forget_name, "the host of GUID 0x", "is named 'h00001 HCA-1'", true},
    {NULL, change_route, "switch 's1-00000': LID 10 ('h00009 HCA-1') out of port 8; in the file: 6",
     "out of port 6; in the file: 8", false},
    {NULL, change_level, "to LID 5: service level", "to LID 5: service level", false},
    {NULL, forget_levels, "no service levels are known; in the file: they are",
     "service levels are known; in the file: none", true},
};

static void differences_are_told(void **state)
{
    struct ibshift_fabric *file = with_levels("kary:4,2"), *now;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        now = with_levels(rows[i].now != NULL ? rows[i].now : "kary:4,2");
        assert_true(rows[i].now != NULL || fabric_compare(file, now, true, &err) == 0);
        if (rows[i].change != NULL) {
            rows[i].change(now);
        }
        for (int back = 0; back < 2; back++) {
            const struct ibshift_fabric *a = back ? now : file, *b = back ? file : now;
            const char *told = back ? rows[i].back : rows[i].told;

            assert_int_equal(fabric_compare(a, b, false, &err),
                             rows[i].is_whole_only ? 0 : -ESTALE);
            assert_int_equal(fabric_compare(a, b, true, &err), -ESTALE);
            if (strstr(err.text, told) == NULL) {
                fail_msg("row %zu: '%s', not '%s'", i, err.text, told);
            }
        }
        ibshift_fabric_free(now);
    }
    ibshift_fabric_free(file);
}

/* That the switches route adaptively is a word against a file that does not have it; few sources say so. */
static void adaptive_routing_is_told(void **state)
{
    struct ibshift_fabric *file = synthetic("kary:4,2"), *now = synthetic("kary:4,2");

    go_adaptive(now);
    assert_int_equal(fabric_compare(file, now, false, &err), -ESTALE);
    assert_string_equal(err.text, "adaptive routing is on; in the file: off");
    assert_int_equal(fabric_compare(now, file, false, &err), 0);
    assert_int_equal(fabric_compare(now, file, true, &err), -ESTALE);
    ibshift_fabric_free(file);
    ibshift_fabric_free(now);
}

static void what_concerns_no_host_is_no_difference(void **state)
{
    struct ibshift_fabric *file = synthetic("kary:4,2"), *now = synthetic("kary:4,2");

    change_no_route(now);
    assert_int_equal(fabric_compare(file, now, true, &err), 0);
    ibshift_fabric_free(file);
    ibshift_fabric_free(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_a_source_is_nothing),
        cmocka_unit_test(differences_are_told),
        cmocka_unit_test(adaptive_routing_is_told),
        cmocka_unit_test(what_concerns_no_host_is_no_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

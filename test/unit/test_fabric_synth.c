/* Synthetic fabrics: counts, and every host reaches every LID; intact trees carry every shift
 * cleanly. */
#include <stdlib.h>
#include <string.h>

#include "fabric/paths/route.h"
#include "fabric/read/synth.h"
#include "route/verify.h"
#include "unit.h"

static struct ibshift_fabric *fabric_of(const char *text)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};

    if (ibshift_synth_fabric(text, &f, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return f;
}

static int links_between(const struct ibshift_fabric *f, uint32_t from, uint32_t to,
                         unsigned offset, uint32_t *links)
{
    int walked, count = ibshift_route_walk(f, from, ibshift_host_lid(f, to) + offset, links,
                                           IBSHIFT_ROUTE_MAX, &walked);

    if (count < 0) {
        struct ibshift_error err;

        ibshift_route_explain(f, from, ibshift_host_lid(f, to) + offset, count, links, walked,
                              &err);
        fail_msg("%s", err.text);
    }
    return count;
}

/* Flows on the busiest link over all stages of the whole fabric's shift. */
static unsigned worst_of_shift(const struct ibshift_fabric *f, unsigned offset)
{
    unsigned *flows = calloc(f->port_count, sizeof(*flows)), worst = 0;
    uint32_t links[IBSHIFT_ROUTE_MAX];

    for (uint32_t stage = 1; stage < f->host_count; stage++) {
        memset(flows, 0, f->port_count * sizeof(*flows));
        for (uint32_t h = 0; h < f->host_count; h++) {
            int count = links_between(f, h, (h + stage) % f->host_count, offset, links);

            for (int i = 0; i < count; i++) {
                flows[links[i]]++;
                worst = flows[links[i]] > worst ? flows[links[i]] : worst;
            }
        }
    }
    free(flows);
    return worst;
}

static void expect(const char *text, uint32_t hosts, uint32_t switches, unsigned worst)
{
    struct ibshift_fabric *f = fabric_of(text);

    assert_int_equal(f->host_count, hosts);
    assert_int_equal(f->switch_count, switches);
    if (worst != 0) {
        print_message("%s: %u\n", text, worst_of_shift(f, 0));
        assert_int_equal(worst_of_shift(f, 0), worst);
    } else {
        worst_of_shift(f, 0);
    }
    ibshift_fabric_free(f);
}

static void trees_are_clean(void **state)
{
    expect("kary:2,4", 16, 32, 1);
    expect("kary:4,3", 64, 48, 1);
    expect("kary:4,1", 4, 1, 1);
    expect("pgft:3;4,2,8;1,4,4;1,1,1", 64, 64, 1);
    expect("pgft:3;4,2,8;1,2,4;1,2,1", 64, 40, 1);
    expect("pgft:2;12,24;1,6;1,2", 288, 30, 1);
    expect("qft:3;4,2,8;1,2,4;1,2,1", 64, 40, 1);
    expect("qft:3;4,4,16;1,2,8;1,4,1", 256, 112, 1);
}

static void half_bisection_costs_two(void **state)
{
    expect("pgft:2;24,12;1,12;1,1", 288, 24, 2);
}

static void tori_reach(void **state)
{
    expect("torus:4x4,2", 32, 16, 0);
    expect("torus:2x3x4,1", 24, 24, 0);
    expect("torus:5,1", 5, 5, 0);
    expect("torus:8,3/cut=1:3", 24, 8, 0);
}

static void damage_is_routed_around(void **state)
{
    expect("kary:4,3/cut=5%:7", 64, 48, 0);
    expect("kary:4,3/drop=h00003,s3-00002", 63, 47, 0);
    expect("kary:4,3/hosts=20:5", 20, 48, 0);
    expect("qft:3;4,2,8;1,2,4;1,2,1/cut=4:2", 64, 40, 0);
    expect("kary:4,3/minhop", 64, 48, 0);
}

/* Each switch has as many cables to others as its shape says, and the longest route as few. */
static void shapes_without_a_root(void **state)
{
    static const struct {
        const char *text;
        uint32_t hosts, switches;
        unsigned cables[2], longest; /* of a switch: at least, at most; both hosts' own included */
    } cases[] = {{"dragonfly:2,4,2", 72, 36, {5, 5}, 5},
                 {"dragonfly:3,6,3,4", 72, 24, {8, 8}, 5}, /* 6 cables between two groups */
                 {"dragonfly:2,4,2,5", 40, 20, {5, 5}, 5},
                 {"dragonfly:1,8,1,1", 8, 8, {7, 7}, 3},
                 {"dragonfly+:2,4,4,2", 72, 72, {4, 6}, 5},
                 {"dragonfly+:4,3,2,3,4", 48, 20, {2, 6}, 5},
                 {"hyperx:4x3x5,2", 120, 60, {9, 9}, 5},
                 {"hyperx:8x8,3", 192, 64, {14, 14}, 4},
                 {"slimfly:5", 200, 50, {7, 7}, 4},
                 {"slimfly:7,2", 196, 98, {11, 11}, 4},
                 {"slimfly:13,1", 338, 338, {19, 19}, 4},
                 {"slimfly:19,1", 722, 722, {29, 29}, 4}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_fabric *f = fabric_of(cases[i].text);
        struct route_proof check;

        assert_int_equal(f->host_count, cases[i].hosts);
        assert_int_equal(f->switch_count, cases[i].switches);
        route_verify_tables(f, &check);
        assert_int_equal(check.lost + check.circles + check.strays, 0);
        assert_true(check.hops[cases[i].longest] > 0 && check.hops[cases[i].longest + 1] == 0);
        for (uint32_t s = 0; s < f->switch_count; s++) {
            const struct ibshift_node *node = &f->nodes[f->switches[s]];
            unsigned cables = 0;

            for (uint32_t p = 0; p < node->port_count; p++) {
                uint32_t next = ibshift_port_neighbour(f, node->first_port + p);

                cables += next != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, next);
            }
            assert_in_range(cables, cases[i].cables[0], cases[i].cables[1]);
        }
        ibshift_fabric_free(f);
    }
}

/* What is left of them is routed by shortest ways, and nothing is said of service levels. */
static void damaged_shapes(void **state)
{
    static const char *const texts[] = {"dragonfly:2,4,2/cut=5%:3", "dragonfly+:2,4,4,2/cut=5%",
                                        "hyperx:4x4,2/drop=s1-00005", "slimfly:5/cut=9:2",
                                        "slimfly:5/minhop"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct ibshift_fabric *f = fabric_of(texts[i]);
        struct route_proof check;

        route_verify_tables(f, &check);
        assert_int_equal(check.lost + check.circles + check.strays, 0);
        assert_null(f->sl);
        ibshift_fabric_free(f);
    }
}

static void further_lids_have_ways_of_their_own(void **state)
{
    struct ibshift_fabric *f = fabric_of("kary:4,3/lmc=2");
    uint32_t links[2][IBSHIFT_ROUTE_MAX];

    assert_int_equal(ibshift_host_lid_count(f, 5), 4);
    assert_int_equal(ibshift_host_lid(f, 5) % 4, 0);
    for (unsigned offset = 0; offset < 4; offset++) {
        assert_int_equal(worst_of_shift(f, offset), 1);
    }
    links_between(f, 0, 63, 0, links[0]);
    links_between(f, 0, 63, 1, links[1]);
    assert_int_not_equal(links[0][1], links[1][1]);
    ibshift_fabric_free(f);
}

static void tables_of_1620_switches_fit(void **state)
{
    struct ibshift_fabric *f = fabric_of("pgft:3;18,18,36;1,18,18;1,1,1");

    assert_int_equal(f->host_count, 11664);
    assert_int_equal(f->switch_count, 1620);
    assert_true((uint64_t)f->lft_stride * f->switch_count + f->port_count * sizeof(*f->ports) +
                    f->node_count * sizeof(*f->nodes) + f->names_size <
                64 << 20);
    ibshift_fabric_free(f);
}

static void nonsense_is_refused(void **state)
{
    const char *const bad[] = {"kary:",
                               "kary:4",
                               "kary:4,3,",
                               "kary:0,2",
                               "kary:127,6",
                               "kary:99999999999999999999,2",
                               "pgft:2;1;1;1",
                               "pgft:2;4,4;2,4;1,1",
                               "qft:2;4,4;1,4;1,3",
                               "torus:",
                               "torus:4x,1",
                               "torus:4096x4096,1",
                               "kary:4,2/x",
                               "kary:4,2/lmc=8",
                               "kary:4,2/drop=nobody",
                               "kary:4,2/hosts=99",
                               "dragonfly:2,4",
                               "dragonfly:0,1,1",
                               "dragonfly:2,4,2,10",
                               "dragonfly:4,200,100",
                               "dragonfly:1,2,1,",
                               "dragonfly+:1,1,1,1,1,1",
                               "dragonfly+:1,1,1,1,3",
                               "hyperx:4x4x",
                               "hyperx:300x2,1",
                               "slimfly:6",
                               "slimfly:3",
                               "slimfly:61",
                               "slimfly:59",
                               "slimfly:5,300",
                               "mesh:4"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ibshift_fabric *f = NULL;
        struct ibshift_error err = {""};

        assert_true(ibshift_synth_fabric(bad[i], &f, &err) < 0);
        assert_null(f);
        assert_string_not_equal(err.text, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_are_clean),
        cmocka_unit_test(half_bisection_costs_two),
        cmocka_unit_test(tori_reach),
        cmocka_unit_test(damage_is_routed_around),
        cmocka_unit_test(shapes_without_a_root),
        cmocka_unit_test(damaged_shapes),
        cmocka_unit_test(further_lids_have_ways_of_their_own),
        cmocka_unit_test(tables_of_1620_switches_fit),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

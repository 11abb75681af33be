/*
 * The routing engines: every table is proven, the same with one thread and with three; whole trees are free of
 * contention in every shift; on tori what the rings determine comes out; damaged fabrics are routed, or
 * refused with the names of two switches that no route joins.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/read/synth.h"
#include "route/verify.h"
#include "unit.h"

#define SEEDS 20

static int build(const char *engine, const char *fabric, int lmc, struct route *r,
                 struct ibshift_error *err)
{
    struct ibshift_fabric *f = NULL;
    unsigned vls = strcmp(engine, "ecube") == 0 ? 2 : 1;
    int rc;

    if (ibshift_synth_fabric(fabric, &f, err) != 0 || route_open(f, lmc, r, err) != 0) {
        fail_msg("%s: %s", fabric, err->text);
    }
    ibshift_fabric_free(f);
    r->vls = vls;
    rc = route_engine_find(engine)->build(r, err);
    if (rc == 0) {
        route_to_switches(r);
        assert_true(r->vls_used <= vls);
    }
    return rc;
}

static struct route_proof prove(const char *engine, const char *fabric, const struct route *r)
{
    struct route_proof proof;

    route_verify(r, 1, &proof);
    if (!route_is_proven(&proof)) {
        fail_msg("%s %s: %s, cycle of %u", engine, fabric, proof.broken, proof.cycle_length);
    }
    return proof;
}

static struct route_proof proof_of(const char *engine, const char *fabric, int lmc)
{
    struct ibshift_error err = {""};
    struct route_proof proof;
    struct route r;

    if (build(engine, fabric, lmc, &r, &err) != 0) {
        fail_msg("%s %s: %s", engine, fabric, err.text);
    }
    proof = prove(engine, fabric, &r);
    route_close(&r);
    return proof;
}

/* worst: the most flows on a link in a stage; 0: tables that are proven, whatever they carry. */
static const struct {
    const char *engine, *fabric;
    uint32_t worst;
    int lmc;
} fabrics_routed[] = {
    {"pgft", "kary:4,2", 1, -1},
    {"ftree", "kary:4,2", 1, -1},
    {"pgft", "kary:2,4", 1, -1},
    {"ftree", "kary:2,4", 1, -1},
    {"pgft", "kary:4,3", 1, 2},
    {"ftree", "kary:4,3", 1, 2},
    {"pgft", "pgft:3;6,6,12;1,6,6;1,1,1", 1, -1},
    {"ftree", "pgft:3;6,6,12;1,6,6;1,1,1", 1, -1},
    {"pgft", "pgft:2;8,4;1,4;1,2", 1, -1},
    {"ftree", "pgft:2;8,4;1,4;1,2", 1, -1},
    {"pgft", "pgft:3;4,4,6;1,2,8;1,2,1", 1, -1},
    {"ftree", "pgft:3;4,4,6;1,2,8;1,2,1", 1, -1},
    {"pgft", "pgft:1;5;1;1", 1, -1},
    {"ftree", "pgft:1;5;1;1", 1, -1},
    /* half bisection: two share */
    {"pgft", "pgft:2;8,4;1,4;1,1", 2, -1},
    {"ftree", "pgft:2;8,4;1,4;1,1", 2, -1},
    {"qft", "qft:3;4,2,8;1,2,4;1,2,1", 1, -1},
    {"qft", "qft:3;4,4,16;1,2,8;1,4,1", 1, -1},
    {"qft", "qft:4;4,2,4,4;1,2,4,4;1,2,1,1", 1, -1},
    {"qft", "qft:4;2,2,4,2;1,1,4,4;1,2,1,1", 1, -1},
    {"qft", "qft:3;4,4,4;1,4,2;1,1,2", 1, -1},
    /* hosts that are missing keep their places */
    {"pgft", "kary:4,3/hosts=50:1", 1, -1},
    {"ftree", "kary:4,3/hosts=50:1", 1, -1},
    {"pgft", "kary:4,3/drop=h00007,s1-00003", 1, -1},
    {"ftree", "kary:4,3/drop=h00007,s1-00003", 1, -1},
    {"ecube", "torus:5,2", 0, -1},
    {"ecube", "torus:2x4,2", 0, -1},
    {"ecube", "torus:9x2,1", 0, -1},
    {"ecube", "torus:5x7,2", 0, -1},
    {"ecube", "torus:8x3x4,1", 0, -1},
    {"ecube", "torus:3x4x2x3,1", 0, -1},
    {"ecube", "torus:2x2x2,3", 0, -1},
    {"ecube", "torus:6x5,1", 0, -1},
    {"ecube", "torus:4x5,2", 0, 2},
    {"updn", "torus:8x8,1", 0, -1},
    {"updn", "torus:2x4,2", 0, -1},
    {"updn", "kary:4,2", 0, -1},
    {"updn", "kary:2,4", 0, -1},
    {"updn", "torus:5x5,1/drop=s1-00007", 0, -1},
    {"updn", "qft:3;4,2,8;1,2,4;1,2,1", 0, -1},
    {"updn", "torus:4x4,2", 0, 1},
    {"flexible", "torus:2x4,2", 0, -1},
    {"flexible", "kary:2,3", 0, -1},
    {"flexible", "torus:4x4,1/drop=s1-00007", 0, -1},
};

static void fabrics_are_routed(void **state)
{
    for (size_t i = 0; i < sizeof(fabrics_routed) / sizeof(fabrics_routed[0]); i++) {
        struct route_proof proof =
            proof_of(fabrics_routed[i].engine, fabrics_routed[i].fabric, fabrics_routed[i].lmc);

        if ((fabrics_routed[i].worst != 0 && proof.worst != fabrics_routed[i].worst) ||
            (fabrics_routed[i].lmc >= 0 && proof.lids != 1u << fabrics_routed[i].lmc)) {
            fail_msg("%s %s: %u flows, %u LIDs", fabrics_routed[i].engine, fabrics_routed[i].fabric,
                     proof.worst, proof.lids);
        }
    }
}

static void ecube_is_even_where_rings_allow_it(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t least, most;
    } tori[] = {{"torus:4x4,1", 8, 8},   {"torus:6x6,1", 24, 30},   {"torus:8x8,1", 64, 64},
                {"torus:3x3x3,1", 9, 9}, {"torus:4x4x4,1", 32, 32}, {"torus:6x6,2", 108, 108},
                {"torus:7x7,1", 42, 42}};

    for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++) {
        struct route_proof proof = proof_of("ecube", tori[i].fabric, -1);

        if (proof.load_least != tori[i].least || proof.load_most != tori[i].most) {
            fail_msg("%s: %u to %u routes", tori[i].fabric, proof.load_least, proof.load_most);
        }
    }
}

/* Each wraparound has its bit: on 7 switches in a ring the ways of at most 3 over the cable from
 * the last to the first have SL 1, all others SL 0. */
static void ecube_says_wraps_in_the_sl(void **state)
{
    struct ibshift_error err = {""};
    uint32_t with[2] = {0, 0};
    struct route r;

    assert_int_equal(build("ecube", "torus:7,1", -1, &r, &err), 0);
    for (uint32_t s = 0; s < 7; s++) {
        for (uint32_t h = 0; h < 7; h++) {
            uint8_t sl = r.sl[(size_t)s * r.fabric->lft_stride + ibshift_host_lid(r.fabric, h)];

            assert_true(sl < 2);
            with[sl]++;
        }
    }
    assert_int_equal(with[1], 2 * (1 + 2 + 3));
    assert_int_equal(with[0], 49 - 12);
    route_close(&r);
}

static void flexible_is_more_even_than_updn(void **state)
{
    static const char *const fabrics[] = {"torus:4x4,1", "torus:3x3x3,1"};

    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        struct route_proof updn = proof_of("updn", fabrics[i], -1);
        struct route_proof flexible = proof_of("flexible", fabrics[i], -1);

        assert_true(flexible.load_most < updn.load_most);
    }
}

static void what_does_not_fit_is_named(void **state)
{
    static const struct {
        const char *engine, *fabric, *why;
    } cases[] = {
        {"ecube", "kary:4,2", "not a torus: the ports of switch 's1-00000'"},
        {"ecube", "torus:5x5,1/drop=s1-00006",
         "not a torus: switch 's1-00001' is cabled to 3 switches, 20 of 24 are to 4"},
        {"ecube", "torus:3x3x3x3x3,1", "5 dimensions needs 32 SLs"},
        {"updn", "kary:2,2/drop=s2-00000,s2-00001",
         "no cables join switch 's1-00000' and switch 's1-00001'"},
        {"flexible", "kary:2,2/drop=s2-00000,s2-00001", "no cables join"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_error err = {""};
        struct route r;
        int rc = build(cases[i].engine, cases[i].fabric, -1, &r, &err);

        if (rc != -ENOTSUP || strstr(err.text, cases[i].why) == NULL) {
            fail_msg("%s %s: %d '%s'", cases[i].engine, cases[i].fabric, rc, err.text);
        }
        route_close(&r);
    }
}

/* At a port of a switch whose host is not there. */
static void add_other(struct ibshift_fabric *f, uint64_t guid, uint32_t port)
{
    struct ibshift_error err = {""};
    int64_t node = ibshift_fabric_add_node(f, IBSHIFT_NODE_OTHER, guid, "AN", 1, &err);

    if (node < 0 ||
        ibshift_fabric_add_link(f, f->nodes[node].first_port, port, IBSHIFT_NO_RATE, &err) != 0 ||
        ibshift_fabric_finish(f, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static uint32_t free_port(const struct ibshift_fabric *f)
{
    for (uint32_t p = 0; p < f->port_count; p++) {
        if (ibshift_node_is_switch(f, f->ports[p].node) && f->ports[p].peer == IBSHIFT_NO_PORT) {
            return p;
        }
    }
    fail_msg("no port is free");
    return 0;
}

static void aggregation_nodes_are_reached_as_hosts(void **state)
{
    static const char *const engines[] = {"ftree", "pgft", "updn", "flexible"};
    struct ibshift_error err = {""};
    struct ibshift_fabric *f = NULL;
    struct route_proof proof;

    assert_int_equal(ibshift_synth_fabric("kary:4,2/drop=h00003,h00005", &f, &err), 0);
    add_other(f, 0xa0, free_port(f));
    add_other(f, 0xa1, free_port(f));
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        unsigned lid;
        struct route r;

        assert_int_equal(route_open(f, 1, &r, &err), 0);
        assert_int_equal(route_engine_find(engines[i])->build(&r, &err), 0);
        route_to_switches(&r);
        proof = prove(engines[i], "with aggregation nodes", &r);
        assert_int_equal(proof.routes, 14 * 13 * 2);
        assert_int_equal(proof.others, 2 * (2 * 14 * 2 + 2)); /* both ways, 2 LIDs; each other */
        assert_int_equal(proof.others_lost, 0);

        lid = r.fabric->ports[r.fabric->nodes[r.fabric->node_count - 1].first_port].lid;
        assert_int_not_equal(lid, 0);
        ibshift_lft_set(r.fabric, r.fabric->switch_count - 1, lid, 0);
        ibshift_lft_set(r.fabric, 0, lid, 1); /* leaf 0 gives it to a host */
        route_verify(&r, 1, &proof);
        assert_false(route_is_proven(&proof));
        route_close(&r);
    }
    ibshift_fabric_free(f);
}

/* True: routed and proven. False: refused, with a reason that names switches. */
static bool is_routed(const char *engine, const char *fabric, unsigned threads, uint64_t *sum)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};
    struct route r;
    int rc;

    if (ibshift_synth_fabric(fabric, &f, &err) != 0 || route_open(f, -1, &r, &err) != 0) {
        fail_msg("%s: %s", fabric, err.text);
    }
    r.threads = threads;
    rc = route_engine_find(engine)->build(&r, &err);
    if (rc == 0) {
        route_to_switches(&r);
        prove(engine, fabric, &r);
        ibshift_fabric_tables_finish(r.fabric);
        *sum = r.fabric->tables_sum;
    } else if (strstr(err.text, "switch '") == NULL && strstr(err.text, "take engine") == NULL) {
        fail_msg("%s %s: %s", engine, fabric, err.text);
    }
    route_close(&r);
    ibshift_fabric_free(f);
    return rc == 0;
}

static void try_cuts(const char *engine, const char *fabric, unsigned cuts, unsigned least)
{
    unsigned routed = 0;

    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        uint64_t sum = 0, same = 0;
        char text[128];

        snprintf(text, sizeof(text), "%s/cut=%u:%u", fabric, cuts, seed);
        if (is_routed(engine, text, 1, &sum)) {
            routed++;
            assert_true(is_routed(engine, text, 3, &same));
            assert_int_equal(sum, same);
        }
    }
    if (routed < least) {
        fail_msg("%s %s, %u cuts: %u of %u seeds routed", engine, fabric, cuts, routed, SEEDS);
    }
}

static void cables_may_be_missing(void **state)
{
    try_cuts("pgft", "kary:4,3", 1, SEEDS);
    try_cuts("pgft", "kary:4,3", 5, SEEDS);
    try_cuts("pgft", "pgft:2;8,6;1,4;1,2", 5, SEEDS);
    try_cuts("qft", "qft:3;4,2,8;1,2,4;1,2,1", 5, SEEDS);
    try_cuts("ftree", "kary:4,3", 5, SEEDS);
    try_cuts("pgft", "kary:4,3", 60, 0);
    try_cuts("qft", "qft:3;4,2,8;1,2,4;1,2,1", 60, 0);
    try_cuts("ftree", "kary:4,3", 60, 0);
}

static void switches_may_be_missing(void **state)
{
    static const char *const fabrics[] = {"kary:4,3/drop=s3-00002", "kary:4,3/drop=s2-00005",
                                          "kary:4,3/drop=s1-00009,s2-00001,s3-00007"};
    uint64_t sum;

    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        assert_true(is_routed("pgft", fabrics[i], 2, &sum));
        assert_true(is_routed("ftree", fabrics[i], 2, &sum));
    }
    assert_true(is_routed("qft", "qft:3;4,2,8;1,2,4;1,2,1/drop=s2-00003", 2, &sum));
}

/* A leaf without hosts looks like a root: it must not change what the others are. */
static void leaves_may_be_empty(void **state)
{
    static const char *const damage[] = {"/hosts=20:1", "/hosts=5:1", "/hosts=30:1/cut=3:1"};
    char text[128];
    uint64_t sum;

    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        snprintf(text, sizeof(text), "kary:4,3%s", damage[i]);
        assert_true(is_routed("pgft", text, 2, &sum));
        assert_true(is_routed("ftree", text, 2, &sum));
        snprintf(text, sizeof(text), "qft:3;4,2,8;1,2,4;1,2,1%s", damage[i]);
        assert_true(is_routed("qft", text, 2, &sum));
    }
}

/* Minimal routes of dragonflies and Slim Flies have credit loops on one VL, and none on the two of their
 * service levels; of the others none at all. */
static void levels_of_shapes(void **state)
{
    static const struct {
        const char *text;
        unsigned vls;
        bool has_loop; /* on one */
    } cases[] = {{"dragonfly:2,4,2", 2, true},       {"dragonfly:3,6,3,4", 2, true},
                 {"dragonfly+:2,4,4,2", 1, false},   {"slimfly:5,2", 2, true},
                 {"slimfly:7,1", 2, true},           {"slimfly:11,1", 2, true},
                 {"slimfly:5,2/hosts=40:3", 2, true}};
    unsigned vls;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_fabric *f = NULL;
        struct ibshift_error err;
        struct route_proof proof;

        assert_int_equal(ibshift_synth_fabric(cases[i].text, &f, &err), 0);
        route_verify_tables(f, &proof);
        assert_true((proof.cycle_length > 0) == cases[i].has_loop);
        assert_int_equal(route_verify_levels(f, &vls, &proof), 0);
        assert_int_equal(vls, cases[i].vls);
        assert_true(route_is_proven(&proof));
        /* The proof looks at the levels: without them the loop is back. */
        memset(f->sl, 0, (size_t)f->sl_rows * f->lft_stride);
        assert_int_equal(route_verify_levels(f, &vls, &proof), 0);
        assert_true((proof.cycle_length > 0) == cases[i].has_loop);
        ibshift_fabric_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fabrics_are_routed),
        cmocka_unit_test(ecube_is_even_where_rings_allow_it),
        cmocka_unit_test(ecube_says_wraps_in_the_sl),
        cmocka_unit_test(flexible_is_more_even_than_updn),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(aggregation_nodes_are_reached_as_hosts),
        cmocka_unit_test(cables_may_be_missing),
        cmocka_unit_test(switches_may_be_missing),
        cmocka_unit_test(leaves_may_be_empty),
        cmocka_unit_test(levels_of_shapes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

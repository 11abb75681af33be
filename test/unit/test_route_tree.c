/* Engines for trees on whole fabrics: every shift is free of contention, and every route arrives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fabric/read/synth.h"
#include "route/verify.h"

static struct route_proof proof_of(const char *engine, const char *fabric, int lmc)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};
    struct route_proof proof;
    struct route r;

    if (ibshift_synth_fabric(fabric, &f, &err) != 0 || route_open(f, lmc, &r, &err) != 0 ||
        route_engine_find(engine)->build(&r, &err) != 0 || route_to_switches(&r, &err) != 0 ||
        route_verify(&r, 1, &proof, &err) != 0) {
        fail_msg("%s %s: %s", engine, fabric, err.text);
    }
    if (!route_is_proven(&proof)) {
        fail_msg("%s %s: %s", engine, fabric, proof.broken);
    }
    route_close(&r);
    ibshift_fabric_free(f);
    return proof;
}

static void whole_trees_are_clean(void **state)
{
    static const char *const fabrics[] = {"kary:4,2",           "kary:2,4",
                                          "kary:4,3",           "pgft:3;6,6,12;1,6,6;1,1,1",
                                          "pgft:2;8,4;1,4;1,2", "pgft:3;4,4,6;1,2,8;1,2,1",
                                          "pgft:1;5;1;1"};

    (void)state;
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        assert_int_equal(proof_of("pgft", fabrics[i], -1).worst, 1);
        assert_int_equal(proof_of("ftree", fabrics[i], -1).worst, 1);
    }
}

static void half_bisection_shares_by_two(void **state)
{
    (void)state;
    assert_int_equal(proof_of("pgft", "pgft:2;8,4;1,4;1,1", -1).worst, 2);
    assert_int_equal(proof_of("ftree", "pgft:2;8,4;1,4;1,1", -1).worst, 2);
}

static void whole_quasi_trees_are_clean(void **state)
{
    static const char *const fabrics[] = {
        "qft:3;4,2,8;1,2,4;1,2,1", "qft:3;4,4,16;1,2,8;1,4,1", "qft:4;4,2,4,4;1,2,4,4;1,2,1,1",
        "qft:4;2,2,4,2;1,1,4,4;1,2,1,1", "qft:3;4,4,4;1,4,2;1,1,2"};

    (void)state;
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        if (proof_of("qft", fabrics[i], -1).worst != 1) {
            fail_msg("%s: not clean", fabrics[i]);
        }
    }
}

static void missing_hosts_keep_places(void **state)
{
    static const char *const engines[] = {"ftree", "pgft"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(proof_of(engines[i], "kary:4,3/hosts=50:1", -1).worst, 1);
        assert_int_equal(proof_of(engines[i], "kary:4,3/drop=h00007,s1-00003", -1).worst, 1);
    }
}

static void every_lane_is_clean(void **state)
{
    static const char *const engines[] = {"ftree", "pgft"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct route_proof proof = proof_of(engines[i], "kary:4,3", 2);

        assert_int_equal(proof.lids, 4);
        assert_int_equal(proof.worst, 1);
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

    (void)state;
    assert_int_equal(ibshift_synth_fabric("kary:4,2/drop=h00003,h00005", &f, &err), 0);
    add_other(f, 0xa0, free_port(f));
    add_other(f, 0xa1, free_port(f));
    for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
        unsigned lid;
        struct route r;

        assert_int_equal(route_open(f, 1, &r, &err), 0);
        assert_int_equal(route_engine_find(engines[i])->build(&r, &err), 0);
        assert_int_equal(route_to_switches(&r, &err), 0);
        assert_int_equal(route_verify(&r, 1, &proof, &err), 0);
        assert_true(route_is_proven(&proof));
        assert_int_equal(proof.routes, 14 * 13 * 2);
        assert_int_equal(proof.others, 2 * (2 * 14 * 2 + 2)); /* both ways, 2 LIDs; each other */
        assert_int_equal(proof.others_lost, 0);

        lid = r.fabric->ports[r.fabric->nodes[r.fabric->node_count - 1].first_port].lid;
        assert_int_not_equal(lid, 0);
        ibshift_lft_set(r.fabric, r.fabric->switch_count - 1, lid, 0);
        ibshift_lft_set(r.fabric, 0, lid, 1); /* leaf 0 gives it to a host */
        assert_int_equal(route_verify(&r, 1, &proof, &err), 0);
        assert_false(route_is_proven(&proof));
        route_close(&r);
    }
    ibshift_fabric_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_trees_are_clean),
        cmocka_unit_test(whole_quasi_trees_are_clean),
        cmocka_unit_test(missing_hosts_keep_places),
        cmocka_unit_test(half_bisection_shares_by_two),
        cmocka_unit_test(every_lane_is_clean),
        cmocka_unit_test(aggregation_nodes_are_reached_as_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

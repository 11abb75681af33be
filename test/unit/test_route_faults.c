/* Random damage: tables that prove right, or a refusal where no way up, then down is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/read/synth.h"
#include "route/verify.h"

#define SEEDS 20

/* True: routed and proven. False: refused, with a reason that names switches. */
static bool is_routed(const char *engine, const char *fabric, unsigned threads, uint64_t *sum)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err = {""};
    struct route_proof proof;
    struct route r;
    int rc;

    if (ibshift_synth_fabric(fabric, &f, &err) != 0 || route_open(f, -1, &r, &err) != 0) {
        fail_msg("%s: %s", fabric, err.text);
    }
    r.threads = threads;
    rc = route_engine_find(engine)->build(&r, &err);
    if (rc == 0) {
        rc = route_to_switches(&r, &err);
        assert_int_equal(rc, 0);
        assert_int_equal(route_verify(&r, 1, &proof, &err), 0);
        if (!route_is_proven(&proof)) {
            fail_msg("%s %s: %s, cycle of %u", engine, fabric, proof.broken, proof.cycle_length);
        }
        ibshift_fabric_tables_finish(r.fabric);
        *sum = r.fabric->tables_sum;
        rc = 0;
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
    (void)state;
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

    (void)state;
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

    (void)state;
    for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        snprintf(text, sizeof(text), "kary:4,3%s", damage[i]);
        assert_true(is_routed("pgft", text, 2, &sum));
        assert_true(is_routed("ftree", text, 2, &sum));
        snprintf(text, sizeof(text), "qft:3;4,2,8;1,2,4;1,2,1%s", damage[i]);
        assert_true(is_routed("qft", text, 2, &sum));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cables_may_be_missing),
        cmocka_unit_test(switches_may_be_missing),
        cmocka_unit_test(leaves_may_be_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

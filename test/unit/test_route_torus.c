/* Engines for tori and for any fabric: what is determined comes out, and every table is proven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/read/synth.h"
#include "route/verify.h"

static int build(const char *engine, const char *fabric, unsigned vls, int lmc, struct route *r,
                 struct ibshift_error *err)
{
    struct ibshift_fabric *f = NULL;
    int rc;

    if (ibshift_synth_fabric(fabric, &f, err) != 0 || route_open(f, lmc, r, err) != 0) {
        fail_msg("%s: %s", fabric, err->text);
    }
    ibshift_fabric_free(f);
    r->vls = vls;
    rc = route_engine_find(engine)->build(r, err);
    return rc == 0 ? route_to_switches(r, err) : rc;
}

static struct route_proof proof_of(const char *engine, const char *fabric, unsigned vls, int lmc)
{
    struct ibshift_error err = {""};
    struct route_proof proof;
    struct route r;

    if (build(engine, fabric, vls, lmc, &r, &err) != 0 || route_verify(&r, 1, &proof, &err) != 0) {
        fail_msg("%s %s: %s", engine, fabric, err.text);
    }
    if (!route_is_proven(&proof)) {
        fail_msg("%s %s: %s, cycle of %u", engine, fabric, proof.broken, proof.cycle_length);
    }
    assert_true(r.vls_used <= vls);
    route_close(&r);
    return proof;
}

static void ecube_is_even_where_rings_allow_it(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t least, most;
    } tori[] = {{"torus:4x4,1", 8, 8},   {"torus:6x6,1", 24, 30},   {"torus:8x8,1", 64, 64},
                {"torus:3x3x3,1", 9, 9}, {"torus:4x4x4,1", 32, 32}, {"torus:6x6,2", 108, 108},
                {"torus:7x7,1", 42, 42}};

    (void)state;
    for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++) {
        struct route_proof proof = proof_of("ecube", tori[i].fabric, 2, -1);

        if (proof.load_least != tori[i].least || proof.load_most != tori[i].most) {
            fail_msg("%s: %u to %u routes", tori[i].fabric, proof.load_least, proof.load_most);
        }
    }
}

static void ecube_takes_any_torus(void **state)
{
    static const char *const tori[] = {"torus:5,2",     "torus:2x4,2",   "torus:9x2,1",
                                       "torus:5x7,2",   "torus:8x3x4,1", "torus:3x4x2x3,1",
                                       "torus:2x2x2,3", "torus:6x5,1"};

    (void)state;
    for (size_t i = 0; i < sizeof(tori) / sizeof(tori[0]); i++) {
        proof_of("ecube", tori[i], 2, -1);
    }
    proof_of("ecube", "torus:4x5,2", 2, 2);
}

/* Each wraparound has its bit: on 7 switches in a ring the ways of at most 3 over the cable from
 * the last to the first have SL 1, all others SL 0. */
static void ecube_says_wraps_in_the_sl(void **state)
{
    struct ibshift_error err = {""};
    uint32_t with[2] = {0, 0};
    struct route r;

    (void)state;
    assert_int_equal(build("ecube", "torus:7,1", 2, -1, &r, &err), 0);
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

static void updn_takes_any_fabric(void **state)
{
    static const char *const fabrics[] = {"torus:4x4,1",
                                          "torus:8x8,1",
                                          "torus:3x3x3,1",
                                          "torus:2x4,2",
                                          "kary:4,2",
                                          "kary:2,4",
                                          "torus:5x5,1/drop=s1-00007",
                                          "qft:3;4,2,8;1,2,4;1,2,1"};

    (void)state;
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        proof_of("updn", fabrics[i], 1, -1);
    }
    proof_of("updn", "torus:4x4,2", 1, 1);
}

static void flexible_takes_any_fabric(void **state)
{
    static const char *const fabrics[] = {"torus:2x4,2", "kary:2,3", "torus:4x4,1/drop=s1-00007"};

    (void)state;
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        proof_of("flexible", fabrics[i], 1, -1);
    }
}

static void flexible_is_more_even_than_updn(void **state)
{
    static const char *const fabrics[] = {"torus:4x4,1", "torus:3x3x3,1"};

    (void)state;
    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        struct route_proof updn = proof_of("updn", fabrics[i], 1, -1);
        struct route_proof flexible = proof_of("flexible", fabrics[i], 1, -1);

        assert_true(flexible.load_most < updn.load_most);
    }
}

static void refuses(const char *engine, const char *fabric, unsigned vls, const char *why)
{
    struct ibshift_error err = {""};
    struct route r;
    int rc = build(engine, fabric, vls, -1, &r, &err);

    if (rc != -ENOTSUP || strstr(err.text, why) == NULL) {
        fail_msg("%s %s: %d '%s'", engine, fabric, rc, err.text);
    }
    route_close(&r);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    refuses("ecube", "torus:4x4,1", 1, "needs 2 VLs, the fabric has 1");
    refuses("ecube", "kary:4,2", 2, "not a torus: the ports of switch 's1-00000'");
    refuses("ecube", "torus:5x5,1/drop=s1-00006", 2,
            "not a torus: switch 's1-00001' is cabled to 3 switches, 20 of 24 are to 4");
    refuses("ecube", "torus:3x3x3x3x3,1", 2, "5 dimensions needs 32 SLs");
    refuses("updn", "kary:2,2/drop=s2-00000,s2-00001", 1,
            "no cables join switch 's1-00000' and switch 's1-00001'");
    refuses("flexible", "kary:2,2/drop=s2-00000,s2-00001", 1, "no cables join");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ecube_is_even_where_rings_allow_it),
        cmocka_unit_test(ecube_takes_any_torus),
        cmocka_unit_test(ecube_says_wraps_in_the_sl),
        cmocka_unit_test(updn_takes_any_fabric),
        cmocka_unit_test(flexible_takes_any_fabric),
        cmocka_unit_test(flexible_is_more_even_than_updn),
        cmocka_unit_test(what_does_not_fit_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

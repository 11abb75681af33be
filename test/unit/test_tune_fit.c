/* `ibshift tune` finds the parameters that its probes were priced with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "tune/tune.h"

enum { EAGER = 8192 };

/* Noise of up to so much of each time, the same in each run. */
static int priced(const struct ibshift_model *model, double noise, struct tune_point *points)
{
    struct tune_probe probes[TUNE_PROBES];
    int count = tune_probes((uint64_t)model->at_once, probes);
    uint64_t seed = 20071;

    for (int i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        points[i].probe = probes[i];
        points[i].weight = 1;
        points[i].us = tune_price(&probes[i], model) *
                       (1 + noise * (double)(seed >> 33) / (double)(UINT64_C(1) << 31));
        assert_true(points[i].us > 0);
    }
    return count;
}

static void assert_near(const char *name, double found, double known, double most)
{
    if (!(fabs(found - known) <= most * known)) {
        fail_msg("%s is %g, found %g", name, known, found);
    }
}

/* HDR between two hosts on one switch, slower by the scale; processors as they are. */
static struct ibshift_model wire(double scale)
{
    return (struct ibshift_model){.latency = 0.67 * scale,
                                  .gap = 0.005 * scale,
                                  .gap_byte = scale / 24200,
                                  .send_max = 1.5,
                                  .send_min = 1.1,
                                  .recv_max = 1.2,
                                  .recv_min = 0.8,
                                  .copy_byte = 1e-4,
                                  .at_once = EAGER,
                                  .free_messages = 1};
}

static void known_wires_are_found(void **state)
{
    (void)state;
    for (double scale = 100; scale <= 1000; scale *= 10) {
        struct ibshift_model known = wire(scale), found = {.copy_byte = 1e-4, .at_once = EAGER};
        struct tune_point points[TUNE_PROBES];
        double error = tune_fit(points, priced(&known, 0, points), true, &found);

        assert_true(error >= 0 && error < 0.01);
        assert_near("L", found.latency, known.latency, 0.02);
        assert_near("G", found.gap_byte, known.gap_byte, 0.02);
        assert_near("o_s_max", found.send_max, known.send_max, 0.01);
        assert_near("o_s_min", found.send_min, known.send_min, 0.01);
        assert_near("o_r_max", found.recv_max, known.recv_max, 0.01);
        assert_near("o_r_min", found.recv_min, known.recv_min, 0.01);
        if (known.gap > known.send_min) {
            assert_near("g", found.gap, known.gap, 0.02);
            assert_int_equal(1, found.free_messages);
        }
        assert_true(found.copy_byte == 1e-4 && found.at_once == EAGER);
    }
}

static void noise_of_two_percent_is_borne(void **state)
{
    struct ibshift_model known = wire(1000), found = {.at_once = EAGER};
    struct tune_point points[TUNE_PROBES];
    double error = tune_fit(points, priced(&known, 0.02, points), true, &found);

    (void)state;
    assert_true(error > 0.001 && error < 0.02);
    assert_near("L", found.latency, known.latency, 0.05);
    assert_near("G", found.gap_byte, known.gap_byte, 0.05);
    assert_near("g", found.gap, known.gap, 0.2); /* a tenth of the times that show it */
}

/* Parameters that hide behind each other may differ: what they say of times must not. */
static void other_machines_are_explained(void **state)
{
    const struct ibshift_model grants = {.latency = 0.1,
                                         .send_max = 0.1,
                                         .send_min = 0.05,
                                         .recv_max = 0.1,
                                         .recv_min = 0.1,
                                         .send_byte = 6e-5,
                                         .granted = 2,
                                         .free_messages = 1};
    const struct ibshift_model machines[] = {ibshift_model_typical, ibshift_model_software,
                                             ibshift_model_node, ibshift_model_example, grants};

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct ibshift_model known = machines[i], found;
        struct tune_point points[TUNE_PROBES];

        known.at_once = EAGER;
        found = (struct ibshift_model){.at_once = EAGER};
        double error = tune_fit(points, priced(&known, 0, points), true, &found);
        print_message("machine %zu: error %.4f, L %g g %g G %g O %g R %g f %d\n", i, error,
                      found.latency, found.gap, found.gap_byte, found.send_byte, found.granted,
                      found.free_messages);
        assert_true(error >= 0 && error < 0.03);
    }
}

/* An adapter moves the bytes by itself: what processors copy of short messages is E. */
static void adapters_move_the_bytes(void **state)
{
    struct ibshift_model known = ibshift_model_typical, found = {.at_once = EAGER};
    struct tune_point points[TUNE_PROBES];

    (void)state;
    known.at_once = EAGER;
    known.eager_byte = 8e-5;
    double error = tune_fit(points, priced(&known, 0, points), false, &found);
    assert_true(error >= 0 && error < 0.01);
    assert_true(found.send_byte == 0);
    assert_near("G", found.gap_byte, known.gap_byte, 0.05);
    assert_near("E", found.eager_byte, known.eager_byte, 0.2);
}

static void impossible_points_are_refused(void **state)
{
    struct ibshift_model known = wire(1000), found = {.latency = 77, .at_once = EAGER};
    struct tune_point points[TUNE_PROBES];
    int count = priced(&known, 0, points);

    (void)state;
    assert_true(tune_fit(points, 3, true, &found) < 0);
    points[5].us = 0;
    assert_true(tune_fit(points, count, true, &found) < 0);
    points[5].us = NAN;
    assert_true(tune_fit(points, count, true, &found) < 0);
    assert_true(found.latency == 77);
}

/* On one processor all that both ranks do is one after the other, and each of the two messages waits for a turn. */
static void a_turn_is_found(void **state)
{
    struct ibshift_model known = wire(1);
    double work = 2 * (known.send_max + known.recv_max);

    (void)state;
    assert_float_equal(tune_turn(&known, work + 2 * 3.5), 3.5, 1e-9);
    known.latency = 100;
    assert_float_equal(tune_turn(&known, work + 2 * 3.5), 3.5, 1e-9);
    assert_true(tune_turn(&known, work / 2) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_wires_are_found),
        cmocka_unit_test(a_turn_is_found),
        cmocka_unit_test(noise_of_two_percent_is_borne),
        cmocka_unit_test(other_machines_are_explained),
        cmocka_unit_test(adapters_move_the_bytes),
        cmocka_unit_test(impossible_points_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `ibshift tune` finds the parameters that its probes were priced with, and makes a file of them that
 * the model takes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "tune/tune.h"
#include "unit.h"

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

    assert_float_equal(tune_turn(&known, work + 2 * 3.5), 3.5, 1e-9);
    known.latency = 100;
    assert_float_equal(tune_turn(&known, work + 2 * 3.5), 3.5, 1e-9);
    assert_true(tune_turn(&known, work / 2) == 0);
}

/* Each pass takes so much longer than the one before. */
static void measure(struct tune_level_found *level, double more)
{
    struct ibshift_model known = wire(1000);
    struct tune_points *points = &level->points;

    *level = (struct tune_level_found){.is_there = true, .how = "ranks 0 and 1"};
    points->count = tune_probes(EAGER, points->probes);
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        for (int i = 0; i < points->count; i++) {
            points->us[pass][i] = tune_price(&points->probes[i], &known) * (1 + pass * more);
        }
    }
}

static struct ibshift_model local(void)
{
    return (struct ibshift_model){.copy_byte = 1e-4, .at_once = EAGER, .free_messages = 1};
}

/* The least counts, and the median of the five is two steps above it. */
static void the_noise_is_how_far_the_median_is_off(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;

    for (int noisy = 0; noisy < 2; noisy++) {
        measure(&level, 0.1 * noisy);
        assert_true(tune_found(&level, &model));
        assert_float_equal(level.noise, 0.2 * noisy, 1e-9);
        assert_near("L", level.model.latency, wire(1000).latency, 0.02);
        assert_true(noisy || level.error < 0.01);
    }
}

/* Both ranks were on one processor, in each pass so much longer. */
static void measure_turns(struct tune_level_found *level, double us, double more)
{
    level->points.is_shared = true;
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        level->points.shared[pass] = us * (1 + pass * more);
    }
}

/* It has a share in the noise as the others have. */
static void a_turn_is_one_of_the_measures(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;
    double streams = 0;

    measure(&level, 0);
    model.wake = 7;
    assert_true(tune_found(&level, &model));
    assert_true(level.model.wake == 7);
    measure_turns(&level, 3000, 0.1);
    assert_true(tune_found(&level, &model));
    for (int i = 0; i < level.points.count; i++) {
        streams += level.points.probes[i].kind == TUNE_STREAM;
    }
    assert_float_equal(level.noise, 0.2 / (streams + 1), 1e-9);
    assert_true(level.model.wake > 100);
    measure_turns(&level, 0, 0);
    assert_false(tune_found(&level, &model));
    assert_true(level.error < 0);
}

static void times_that_make_no_sense_are_refused(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;

    measure(&level, 0);
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        level.points.us[pass][3] = -1;
    }
    assert_false(tune_found(&level, &model));
}

static void the_report_is_a_parameter_file(void **state)
{
    static struct tune_found found = {.made = {.device = "mlx5 15b3:101b", .ompi = "4.1.4"}};
    struct ibshift_model model = local();
    struct ibshift_costs costs;
    char error[IBSHIFT_TEXT_ERROR];

    measure(&found.level[TUNE_FABRIC], 0.01);
    assert_true(tune_found(&found.level[TUNE_FABRIC], &model));
    snprintf(found.level[TUNE_NODE].how, sizeof(found.level[TUNE_NODE].how), "no rank is there");

    char *text = tune_report(&found);
    assert_non_null(text);
    assert_non_null(strstr(text, "# [node] was not measured: no rank is there."));
    assert_int_equal(0, ibshift_costs_parse(text, strlen(text), "p", &costs, error));
    assert_true(costs.has_far && !costs.has_near);
    assert_true(costs.far.latency == found.level[TUNE_FABRIC].model.latency);
    assert_string_equal("mlx5 15b3:101b", costs.made.device);

    free(text);
}

static void make_folder(char *folder)
{
    assert_non_null(mkdtemp(folder));
    assert_int_equal(0, setenv("HOME", folder, 1));
}

/* Of two levels the other one is quiet. */
static int judge_noise(double more, const struct tune_target *target)
{
    static struct tune_found found;
    struct ibshift_model model = local();

    found = (struct tune_found){.made = {.device = "memory", .ompi = "4.1.4"}};
    measure(&found.level[TUNE_FABRIC], 0);
    measure(&found.level[TUNE_NODE], more);
    found.level[TUNE_FABRIC].eager = found.level[TUNE_NODE].eager = EAGER;
    return tune_judge(target, &found, &model);
}

/* The median is two steps of a pass above the least, and 15 % are allowed. */
static void what_is_too_noisy_is_not_written(void **state)
{
    char folder[] = "/tmp/ibshift-judge-XXXXXX", file[64];
    struct tune_target target = {.output = file};

    make_folder(folder);
    snprintf(file, sizeof(file), "%s/costs", folder);
    assert_int_equal(CLI_FAILED, judge_noise(0.08, &target));
    assert_int_not_equal(0, access(file, F_OK));
    assert_int_equal(CLI_OK, judge_noise(0.07, &target));
    assert_int_equal(0, unlink(file));
    target.is_forced = true;
    assert_int_equal(CLI_OK, judge_noise(0.08, &target));
    assert_int_equal(0, unlink(file));
    assert_int_equal(0, rmdir(folder));
}

static void a_file_and_the_installed_one_are_both_written(void **state)
{
    char folder[] = "/tmp/ibshift-judge-XXXXXX", file[64], place[64], installed[96];
    struct tune_target target = {.output = file, .install = TUNE_INSTALL_USER};

    make_folder(folder);
    snprintf(file, sizeof(file), "%s/costs", folder);
    snprintf(place, sizeof(place), "%s/.ibshift", folder);
    snprintf(installed, sizeof(installed), "%s/costs-memory--4.1.4", place);
    assert_int_equal(CLI_OK, judge_noise(0, &target));
    assert_int_equal(0, unlink(file));
    assert_int_equal(0, unlink(installed));
    target.output = "/nonexistent/costs";
    assert_int_equal(CLI_USAGE, judge_noise(0, &target));
    assert_int_equal(0, unlink(installed));
    assert_int_equal(0, rmdir(place));
    assert_int_equal(0, rmdir(folder));
}

static void nothing_measured_is_nothing_to_write(void **state)
{
    static struct tune_found found;
    const struct tune_target target = {.output = "/nonexistent/costs"};
    struct ibshift_model model = local();

    assert_int_equal(CLI_UNFIT, tune_judge(&target, &found, &model));
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
        cmocka_unit_test(the_noise_is_how_far_the_median_is_off),
        cmocka_unit_test(a_turn_is_one_of_the_measures),
        cmocka_unit_test(times_that_make_no_sense_are_refused),
        cmocka_unit_test(the_report_is_a_parameter_file),
        cmocka_unit_test(what_is_too_noisy_is_not_written),
        cmocka_unit_test(a_file_and_the_installed_one_are_both_written),
        cmocka_unit_test(nothing_measured_is_nothing_to_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What `ibshift tune` makes of its passes: noise, a file that the model takes, and where it goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "tune/tune.h"

static const struct ibshift_model known = {.latency = 670,
                                           .gap = 5,
                                           .gap_byte = 0.0413,
                                           .send_max = 1.5,
                                           .send_min = 1.1,
                                           .recv_max = 1.2,
                                           .recv_min = 0.8,
                                           .copy_byte = 1e-4,
                                           .at_once = 8192,
                                           .free_messages = 1};

/* Each pass takes so much longer than the one before. */
static void measure(struct tune_level_found *level, double more)
{
    struct tune_points *points = &level->points;

    *level = (struct tune_level_found){.is_there = true, .how = "ranks 0 and 1"};
    points->count = tune_probes((uint64_t)known.at_once, points->probes);
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        for (int i = 0; i < points->count; i++) {
            points->us[pass][i] = tune_price(&points->probes[i], &known) * (1 + pass * more);
        }
    }
}

static struct ibshift_model local(void)
{
    return (struct ibshift_model){.copy_byte = 1e-4, .at_once = 8192, .free_messages = 1};
}

static void passes_that_agree_have_no_noise(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;

    (void)state;
    measure(&level, 0);
    assert_true(tune_found(&level, &model));
    assert_true(level.noise == 0 && level.error < 0.01);
    assert_true(fabs(level.model.latency / known.latency - 1) < 0.02);
    assert_true(level.low.latency <= level.model.latency * 1.001 &&
                level.high.latency >= level.model.latency * 0.999);
}

/* The least counts, and the median of the five is two steps above it. */
static void the_noise_is_how_far_the_median_is_off(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;

    (void)state;
    measure(&level, 0.1);
    assert_true(tune_found(&level, &model));
    assert_float_equal(level.noise, 0.2, 1e-9);
    assert_true(fabs(level.model.latency / known.latency - 1) < 0.02);
    assert_true(level.high.latency > 1.3 * level.low.latency);
}

/* Both ranks were on one processor, in each pass so much longer. */
static void measure_turns(struct tune_level_found *level, double us, double more)
{
    level->points.is_shared = true;
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        level->points.shared[pass] = us * (1 + pass * more);
    }
}

/* It has an interval and a share in the noise as the others have. */
static void a_turn_is_one_of_the_measures(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;
    double streams = 0;

    (void)state;
    measure(&level, 0);
    model.wake = 7;
    assert_true(tune_found(&level, &model));
    assert_true(level.model.wake == 7 && level.low.wake == 7 && level.high.wake == 7);
    measure_turns(&level, 3000, 0.1);
    assert_true(tune_found(&level, &model));
    for (int i = 0; i < level.points.count; i++) {
        streams += level.points.probes[i].kind == TUNE_STREAM;
    }
    assert_float_equal(level.noise, 0.2 / (streams + 1), 1e-9);
    assert_true(level.model.wake > 100);
    assert_float_equal(level.low.wake, level.model.wake, 0.02 * level.model.wake);
    assert_true(level.high.wake > 1.3 * level.low.wake);
    measure_turns(&level, 0, 0);
    assert_false(tune_found(&level, &model));
    assert_true(level.error < 0);
}

static void times_that_make_no_sense_are_refused(void **state)
{
    struct ibshift_model model = local();
    struct tune_level_found level;

    (void)state;
    measure(&level, 0);
    for (int pass = 0; pass < TUNE_PASSES; pass++) {
        level.points.us[pass][3] = -1;
    }
    assert_false(tune_found(&level, &model));
}

static void the_report_is_a_parameter_file(void **state)
{
    static struct tune_found found = {.made = {.device = "mlx5 15b3:101b", .ompi = "4.1.4"},
                                      .rates = "rates"};
    struct ibshift_model model = local();
    struct ibshift_costs costs;
    char error[IBSHIFT_TEXT_ERROR];

    (void)state;
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

    found = (struct tune_found){.made = {.device = "memory", .ompi = "4.1.4"}, .rates = "rates"};
    measure(&found.level[TUNE_FABRIC], 0);
    measure(&found.level[TUNE_NODE], more);
    found.level[TUNE_FABRIC].eager = found.level[TUNE_NODE].eager = (uint64_t)known.at_once;
    return tune_judge(target, &found, &model);
}

/* The median is two steps of a pass above the least, and 15 % are allowed. */
static void what_is_too_noisy_is_not_written(void **state)
{
    char folder[] = "/tmp/ibshift-judge-XXXXXX", file[64];
    struct tune_target target = {.output = file};

    (void)state;
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

    (void)state;
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
    static struct tune_found found = {.rates = ""};
    const struct tune_target target = {.output = "/nonexistent/costs"};
    struct ibshift_model model = local();

    (void)state;
    assert_int_equal(CLI_UNFIT, tune_judge(&target, &found, &model));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_that_agree_have_no_noise),
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

/* What `ibshift tune` makes of its passes: noise, and a file that the model takes. */
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

#include "tune/report.h"

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
    char error[IBSHIFT_MODEL_ERROR_SIZE], path[] = "/tmp/ibshift-report-XXXXXX";

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

    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(0, tune_write(path, text));
    assert_int_equal(0, ibshift_costs_read(path, &costs, error));
    unlink(path);
    assert_true(tune_write("/nonexistent/costs", text) < 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_that_agree_have_no_noise),
        cmocka_unit_test(the_noise_is_how_far_the_median_is_off),
        cmocka_unit_test(times_that_make_no_sense_are_refused),
        cmocka_unit_test(the_report_is_a_parameter_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Measured files: their names, which one a job finds, and how they differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/tuned.h"
#include "unit.h"

enum { PATH = 256 };

static const struct ibshift_made own = {
    .device = "mlx5 15b3:101b", .speed = "200000 Mb/s", .ompi = "4.1.4"};
static const char name[] = "costs-mlx5-15b3-101b-200000-Mb-s-4.1.4";

static char base[PATH / 4], site[PATH / 2], user[PATH / 2];

static void touch(const char *folder, const char *file)
{
    char path[PATH];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
}

static void drop(const char *folder, const char *file)
{
    char path[PATH];

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    assert_int_equal(0, unlink(path));
}

static void expect(enum ibshift_tuned wanted, const char *folder, const char *file)
{
    char path[PATH] = "", there[PATH];

    snprintf(there, sizeof(there), "%s/%s", folder, file);
    assert_int_equal(wanted, ibshift_tuned_find(site, &own, path, sizeof(path)));
    if (wanted != IBSHIFT_TUNED_NONE) {
        assert_string_equal(there, path);
    }
}

static int begin(void **state)
{
    strcpy(base, "/tmp/ibshift-tuned-XXXXXX");
    if (mkdtemp(base) == NULL) {
        return -1;
    }
    snprintf(site, sizeof(site), "%s/site", base);
    snprintf(user, sizeof(user), "%s/.ibshift", base);
    return setenv("HOME", base, 1) | mkdir(site, 0700) | mkdir(user, 0700);
}

static int end(void **state)
{
    return rmdir(site) | rmdir(user) | rmdir(base);
}

static void a_name_says_what_was_measured(void **state)
{
    char text[PATH];

    struct ibshift_made made = ibshift_tuned_made(own.device, "20.31", 200000, 4, 1, 4);

    ibshift_tuned_name(&own, text, sizeof(text));
    assert_string_equal(name, text);
    ibshift_tuned_name(&made, text, sizeof(text));
    assert_string_equal(name, text);
    made = ibshift_tuned_made("memory", "", 0, 5, 0, 1);
    ibshift_tuned_name(&made, text, sizeof(text));
    assert_string_equal("costs-memory--5.0.1", text);
}

/* Of another firmware or release of ours: used, and said. */
static void other_versions_are_doubtful(void **state)
{
    struct ibshift_made file = own, here = own;
    char words[PATH];

    strcpy(here.firmware, "20.31");
    strcpy(here.ibshift, "1.1.0");
    ibshift_tuned_doubt(&file, &here, "p", words, sizeof(words)); /* the file does not say */
    assert_string_equal("", words);
    strcpy(file.firmware, "20.28");
    strcpy(file.ibshift, "1.0.0");
    ibshift_tuned_differ(&file, &here, "p", words, sizeof(words));
    assert_string_equal("", words);
    ibshift_tuned_doubt(&file, &here, "p", words, sizeof(words));
    assert_string_equal(
        "p was measured with firmware 20.28 in place of 20.31, ibshift 1.0.0 in place of 1.1.0",
        words);
}

static void the_user_goes_before_the_administrator(void **state)
{
    expect(IBSHIFT_TUNED_NONE, "", "");
    touch(site, name);
    expect(IBSHIFT_TUNED_FOUND, site, name);
    touch(user, name);
    expect(IBSHIFT_TUNED_FOUND, user, name);
    drop(site, name);
    drop(user, name);
}

static void others_are_told_of_where_there_is_no_better(void **state)
{
    static const char other[] = "costs-mlx5-15b3-101b-100000-Mb-s-4.1.4";

    touch(user, "costs-half-written~17");
    touch(user, "fabric");
    expect(IBSHIFT_TUNED_NONE, "", "");
    touch(site, other);
    expect(IBSHIFT_TUNED_STALE, site, other);
    touch(user, other);
    expect(IBSHIFT_TUNED_STALE, user, other);
    drop(site, other);
    expect(IBSHIFT_TUNED_STALE, user, other);
    touch(site, name);
    expect(IBSHIFT_TUNED_FOUND, site, name);
    drop(site, name);
    drop(user, other);
    drop(user, "fabric");
    drop(user, "costs-half-written~17");
}

static void nobody_has_a_folder(void **state)
{
    char path[PATH];

    unsetenv("HOME");
    assert_int_equal(IBSHIFT_TUNED_NONE, ibshift_tuned_find("", &own, path, sizeof(path)));
    setenv("HOME", "relative", 1);
    assert_int_equal(IBSHIFT_TUNED_NONE, ibshift_tuned_find("", &own, path, sizeof(path)));
    setenv("HOME", base, 1);
}

/* A measured file says of shared memory what it has measured there, or nothing. */
static void files_speak_for_their_levels(void **state)
{
    struct ibshift_costs costs = {.has_far = true, .far = ibshift_model_example};
    struct ibshift_levels levels = ibshift_levels_typical(), before = levels;

    strcpy(costs.made.device, "x");
    ibshift_levels_take(&levels, &costs);
    assert_true(levels.hardware.latency == costs.far.latency &&
                levels.software.latency == costs.far.latency &&
                levels.node.latency == before.node.latency);
    assert_true(ibshift_levels_digest(&levels) != ibshift_levels_digest(&before));
    costs.made.device[0] = '\0'; /* nor does one that was written by hand */
    ibshift_levels_take(&levels, &costs);
    assert_true(levels.node.latency == before.node.latency);
    costs.has_near = true;
    costs.near = ibshift_model_node;
    ibshift_levels_take(&levels, &costs);
    assert_true(levels.node.latency == ibshift_model_node.latency);
    assert_true(levels.hardware.at_once == 0);
    ibshift_levels_limit(&levels, 777);
    assert_true(levels.hardware.at_once == 777 &&
                levels.node.at_once == ibshift_model_node.at_once);
}

static void differences_are_named(void **state)
{
    struct ibshift_made file = own;
    char words[PATH];

    ibshift_tuned_differ(&file, &own, "p", words, sizeof(words));
    assert_string_equal("", words);
    file.speed[0] = '\0'; /* it does not say */
    ibshift_tuned_differ(&file, &own, "p", words, sizeof(words));
    assert_string_equal("", words);
    strcpy(file.speed, "100000 Mb/s");
    strcpy(file.ompi, "5.0.1");
    ibshift_tuned_differ(&file, &own, "p", words, sizeof(words));
    assert_string_equal(
        "p was measured with speed 100000 Mb/s in place of 200000 Mb/s, Open MPI 5.0.1 in place of "
        "4.1.4",
        words);
}

/* Ranks whose models differ in any field must not work together. */
static void every_field_of_a_model_counts(void **state)
{
    struct ibshift_levels levels = ibshift_levels_typical();
    uint64_t before = ibshift_levels_digest(&levels);
    double *field = (double *)&levels.software;

    for (size_t i = 0; i < offsetof(struct ibshift_model, free_messages) / sizeof(*field); i++) {
        double kept = field[i];

        field[i] = kept * 2 + 1;
        assert_true(before != ibshift_levels_digest(&levels));
        field[i] = kept;
    }
    assert_true(before == ibshift_levels_digest(&levels));
    levels.hardware.free_messages++;
    assert_true(before != ibshift_levels_digest(&levels));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_a_model_counts),
        cmocka_unit_test(a_name_says_what_was_measured),
        cmocka_unit_test(other_versions_are_doubtful),
        cmocka_unit_test(the_user_goes_before_the_administrator),
        cmocka_unit_test(others_are_told_of_where_there_is_no_better),
        cmocka_unit_test(nobody_has_a_folder),
        cmocka_unit_test(files_speak_for_their_levels),
        cmocka_unit_test(differences_are_named),
    };

    return cmocka_run_group_tests(tests, begin, end);
}

/* What ranks have for each other: drawn, and read from hostile files. */
#include <stdio.h>
#include <string.h>

#include <errno.h>

#include "sim/job.h"
#include "unit.h"

enum { RANKS = 40, MOST = 100000 };

static int size_of(const struct sim_sizes *s, uint32_t from, uint32_t to)
{
    assert_int_equal(s->sent[from * s->ranks + to], s->received[to * s->ranks + from]);
    return s->sent[from * s->ranks + to];
}

static void a_spread_is_even_by_the_logarithm(void **state)
{
    struct sim_sizes *s;
    int small = 0, count = 0;

    s = sim_sizes_create(RANKS);
    sim_sizes_draw(s, MOST, 100, 1, false);
    for (uint32_t from = 0; from < RANKS; from++) {
        for (uint32_t to = 0; to < RANKS; to++) {
            int size = size_of(s, from, to);

            if (from == to) {
                assert_int_equal(size, 0);
                continue;
            }
            assert_in_range(size, MOST / 100, MOST);
            small += size < MOST / 10;
            count++;
        }
    }
    assert_in_range(small, count * 45 / 100, count * 55 / 100);
    sim_sizes_free(s);
}

static void a_builder_has_senders_and_receivers(void **state)
{
    struct sim_sizes *s;

    s = sim_sizes_create(RANKS);
    sim_sizes_draw(s, MOST, 10, 7, true);
    for (uint32_t from = 0; from < RANKS; from++) {
        for (uint32_t to = 0; to < RANKS; to++) {
            assert_int_equal(size_of(s, from, to) > 0, from < RANKS / 2 && to >= RANKS / 2);
        }
    }
    sim_sizes_free(s);
}

/* Returns what reading says, and the sizes of ranks 0 and 1. */
static int read_text(const char *text, int *there, int *back, struct ibshift_error *err)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    struct sim_sizes *s;
    int rc;

    assert_non_null(file);
    s = sim_sizes_create(3);
    rc = sim_sizes_read(s, file, "x", err);
    *there = size_of(s, 0, 1);
    *back = size_of(s, 1, 0);
    fclose(file);
    sim_sizes_free(s);
    return rc;
}

static void files_are_read(void **state)
{
    struct ibshift_error err;
    int there, back;

    assert_int_equal(read_text("# sizes\n\n0 1 12\n 1\t0 13 # b\n 2 0 0", &there, &back, &err), 0);
    assert_int_equal(there, 12);
    assert_int_equal(back, 13);
}

static void bad_lines_are_told(void **state)
{
    static const char *const bad[][2] = {
        {"0 1\n", "x:1: wants FROM TO BYTES"},
        {"0 1 5\nzero 1 5\n", "x:2: wants FROM TO BYTES"},
        {"0 1 5 6\n", "x:1: wants FROM TO BYTES"},
        {"0 3 5\n", "x:1: from 0 to 3: wants two of 3 ranks"},
        {"-1 2 5\n", "x:1: from -1 to 2: wants two of 3 ranks"},
        {"1 1 5\n", "x:1: from 1 to 1: wants two of 3 ranks"},
        {"0 1 -5\n", "x:1: -5 bytes: wants 0 to 1000000000"},
        {"0 1 99999999999\n", "x:1: 99999999999 bytes: wants 0 to 1000000000"},
    };
    struct ibshift_error err;
    int there, back;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_text(bad[i][0], &there, &back, &err), -EINVAL);
        assert_string_equal(err.text, bad[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spread_is_even_by_the_logarithm),
        cmocka_unit_test(a_builder_has_senders_and_receivers),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(bad_lines_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What ranks have for each other: made, and read from hostile files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/matrix.h"
#include "unit.h"

enum { RANKS = 40, BYTES = 100000 };

static uint64_t bytes[RANKS][RANKS];

static void make(const char *text)
{
    struct ibshift_error err;

    memset(bytes, 0, sizeof(bytes));
    if (matrix_fill(&bytes[0][0], RANKS, text, BYTES, &err) != 0) {
        fail_msg("%s", err.text);
    }
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(bytes[i][i], 0);
    }
}

static uint64_t sum_of(int rank, bool gets)
{
    uint64_t sum = 0;

    for (int i = 0; i < RANKS; i++) {
        sum += gets ? bytes[i][rank] : bytes[rank][i];
    }
    return sum;
}

static void a_spread_is_even_by_the_logarithm(void **state)
{
    int small = 0, count = 0;

    make("spread:100:1");
    for (int from = 0; from < RANKS; from++) {
        for (int to = 0; to < RANKS; to++) {
            if (from != to) {
                assert_in_range(bytes[from][to], BYTES / 100, BYTES);
                small += bytes[from][to] < BYTES / 10;
                count++;
            }
        }
    }
    assert_in_range(small, count * 45 / 100, count * 55 / 100);
}

static void a_builder_has_senders_and_receivers(void **state)
{
    make("builder:10:7");
    for (int from = 0; from < RANKS; from++) {
        for (int to = 0; to < RANKS; to++) {
            assert_int_equal(bytes[from][to] > 0, from < RANKS / 2 && to >= RANKS / 2);
        }
    }
}

static void the_mean_is_as_asked_for(void **state)
{
    static const char *const made[] = {"uniform", "random:3", "topk:4:3", "hot:300:3",
                                       "sparse:4:3"};

    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        uint64_t sum = 0;

        make(made[i]);
        for (int rank = 0; rank < RANKS; rank++) {
            sum += sum_of(rank, false);
        }
        sum /= (uint64_t)RANKS * (RANKS - 1);
        assert_in_range(sum, BYTES * 9 / 10, BYTES * 11 / 10);
    }
}

static void few_get_something(void **state)
{
    make("topk:4:1");
    for (int from = 0; from < RANKS; from++) {
        int count = 0;

        for (int to = 0; to < RANKS; to++) {
            count += bytes[from][to] > 0;
        }
        assert_int_equal(count, 4);
        assert_in_range(sum_of(from, false), (RANKS - 1) * BYTES - 4, (RANKS - 1) * BYTES);
    }
}

static void all_send_as_much_as_they_get(void **state)
{
    make("sparse:3:9");
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(sum_of(rank, true), sum_of(rank, false));
        assert_int_equal(sum_of(rank, true), sum_of(0, true));
    }
}

static void one_is_hot(void **state)
{
    uint64_t most = 0, mean = (uint64_t)(RANKS - 1) * BYTES;

    make("hot:500:2");
    for (int rank = 0; rank < RANKS; rank++) {
        most = sum_of(rank, true) > most ? sum_of(rank, true) : most;
    }
    assert_in_range(most, 4 * mean, 6 * mean);
}

static void one_block_is_giant(void **state)
{
    int giants = 0;

    make("giant:7:2");
    for (int i = 0; i < RANKS * RANKS; i++) {
        giants += bytes[i / RANKS][i % RANKS] == 7 * BYTES;
    }
    assert_int_equal(giants, 1);
    assert_in_range(sum_of(0, false), (RANKS - 1) * BYTES, (RANKS + 5) * BYTES);
}

static int read_text(const char *text, struct ibshift_error *err)
{
    FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    int rc;

    assert_non_null(file);
    memset(bytes, 0, sizeof(bytes));
    rc = matrix_read(&bytes[0][0], 3, file, "x", err);
    fclose(file);
    return rc;
}

static void files_are_read(void **state)
{
    struct ibshift_error err;
    const uint64_t *at = &bytes[0][0];

    assert_int_equal(read_text("# sizes\n\n0 1 12\n 1\t0 13 # b\n 2 0 0\n0 1 30", &err), 0);
    assert_int_equal(at[0 * 3 + 1], 42); /* lines of one pair add up */
    assert_int_equal(at[1 * 3 + 0], 13);
}

static void bad_lines_are_told(void **state)
{
    static const char *const bad[][2] = {
        {"0 1\n", "x:1: wants FROM TO BYTES"},
        {"0 1 5\nzero 1 5\n", "x:2: wants FROM TO BYTES"},
        {"0 1 5 6\n", "x:1: wants FROM TO BYTES"},
        {"0 3 5\n", "x:1: wants two of the ranks 0 to 2"},
        {"-1 2 5\n", "x:1: wants two of the ranks 0 to 2"},
        {"1 1 5\n", "x:1: wants two of the ranks 0 to 2"},
        {"0 1 -5\n", "x:1: wants 0 to 1000000000 bytes"},
        {"0 1 99999999999\n", "x:1: wants 0 to 1000000000 bytes"},
        {"0 1 1000000000\n0 1 1\n", "x:2: from 0 to 1 more than 1000000000 bytes in all"},
    };
    struct ibshift_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(read_text(bad[i][0], &err), -EINVAL);
        assert_string_equal(err.text, bad[i][1]);
    }
}

static void bad_words_are_told(void **state)
{
    static const char *const bad[][2] = {
        {"uniform:1", "uniform:1: uniform wants no number"},
        {"random", "random: random wants a seed"},
        {"random:", "random:: random wants a seed"},
        {"spread:0:1", "spread:0:1: spread wants a ratio from 1 to 1000000 and a seed"},
        {"topk:4", "topk:4: topk wants a number of ranks from 1 to 1000000 and a seed"},
        {"topk:-4:1", "topk:-4:1: topk wants a number of ranks from 1 to 1000000 and a seed"},
        {"sparse:99999999999999999999:1", "sparse:99999999999999999999:1: sparse wants a number of "
                                          "permutations from 1 to 1000000 and a seed"},
    };
    struct ibshift_error err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(matrix_fill(&bytes[0][0], RANKS, bad[i][0], BYTES, &err), -EINVAL);
        assert_string_equal(err.text, bad[i][1]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spread_is_even_by_the_logarithm),
        cmocka_unit_test(a_builder_has_senders_and_receivers),
        cmocka_unit_test(the_mean_is_as_asked_for),
        cmocka_unit_test(few_get_something),
        cmocka_unit_test(all_send_as_much_as_they_get),
        cmocka_unit_test(one_is_hot),
        cmocka_unit_test(one_block_is_giant),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(bad_lines_are_told),
        cmocka_unit_test(bad_words_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

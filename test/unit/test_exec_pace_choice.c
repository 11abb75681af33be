/* A pace in words, and the one that auto takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "exec/pace/pace.h"

static void words_are_read_and_written(void **state)
{
    static const char *const good[][2] = {{"none", "none"},
                                          {"window:256", "window:256"},
                                          {"window", "window:32"},
                                          {"grants:3", "grants:3"},
                                          {"grants", "grants:1"},
                                          {"clk", "clk"},
                                          {"rate", "rate:16/16"},
                                          {"rate:8", "rate:8/8"},
                                          {"rate:8/10", "rate:8/10"},
                                          {"grants:16", "grants:16"},
                                          {"window:16/4096", "window:16/4096"}};
    static const char *const bad[] = {
        "",           "grant",         "grants:",           "grants:0",         "grants:17",
        "clk:1",      "none:1",        "rate:1/",           "rate:/2",          "grants:-1",
        "grants:1x",  "rate:8/1001",   "grants: 2",         "window:0",         "window:257",
        "window:16/", "window:16/255", "window:16/1048577", "window:16/4096/2", "window/4096"};
    struct ibshift_pace pace;
    char text[64], why[200];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(ibshift_pace_parse(good[i][0], &pace, why, sizeof(why)), 0);
        ibshift_pace_format(&pace, text, sizeof(text));
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(ibshift_pace_parse(bad[i], &pace, why, sizeof(why)) < 0);
        assert_non_null(strstr(why, "is no pace"));
    }
    (void)state;
}

/* What auto takes; the noise and the caller's form are not asked. */
static void what_suits_is_chosen(void **state)
{
    static const struct {
        struct ibshift_pace_facts facts;
        const char *pace;
    } cases[] = {
        {{1 << 20, 4096, 1e5, 1e3, 64, 64, true}, "window:63"},
        {{1 << 20, 4096, 1e5, 1e3, 65, 128, true}, "window:48"},
        {{1 << 20, 4096, 1e5, 1e3, 1728, 1728, true}, "window:48"},
        {{1 << 20, 4096, 1e5, 1e3, 2, 64, true}, "none"},
        {{1 << 20, 4096, 1e5, 1e3, 64, 0, true}, "window:63"}, /* no routes */
        {{1 << 20, 4096, 1e5, 1e3, 1728, 0, true}, "window:256"},
        {{1 << 20, 4096, 1e5, 1e3, 2, 0, true}, "none"},
        {{1 << 20, 4096, 1e5, 1e3, 64, 64, false}, "none"}, /* steps wait */
        {{4096, 4096, 1e5, 1e3, 64, 64, true}, "none"},     /* no grant */
        {{8192, 4096, 7e3, 1e3, 64, 64, true}, "none"},     /* short */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_pace pace;
        const char *reason = NULL;
        char text[32];

        ibshift_pace_choose(&cases[i].facts, &pace, &reason);
        ibshift_pace_format(&pace, text, sizeof(text));
        assert_string_equal(text, cases[i].pace);
        assert_non_null(reason);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_written),
        cmocka_unit_test(what_suits_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

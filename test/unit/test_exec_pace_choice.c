/* A pace in words, and the one that auto takes. */
#include <string.h>

#include "choose/pace.h"
#include "unit.h"

static void words_are_read_and_written(void **state)
{
    static const char *const good[][2] = {{"none", "none"},
                                          {"window:256", "window:256"},
                                          {"window", "window:32"},
                                          {"window:16/4096", "window:16/4096"}};
    static const char *const bad[] = {"",
                                      "win",
                                      "window:",
                                      "grants:1",
                                      "clk",
                                      "none:1",
                                      "rate:4",
                                      "window:0",
                                      "window:257",
                                      "window:16/",
                                      "window:16/255",
                                      "window:16/1048577",
                                      "window:16/4096/2",
                                      "window/4096"};
    struct ibshift_pace pace;
    char text[64], why[200];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(ibshift_pace_parse(good[i][0], &pace, why, sizeof(why)), 0);
        ibshift_pace_format(&pace, text, sizeof(text));
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(ibshift_pace_parse(bad[i], &pace, why, sizeof(why)) < 0);
        assert_non_null(strstr(why, "is not a pace"));
    }
}

static void says_what_is_single(void **state)
{
    static const struct {
        const char *text;
        bool is_single;
    } paces[] = {{"none", false}, {"window:1", true}, {"window:1/2048", true}, {"window:2", false}};
    struct ibshift_pace pace;
    char why[200];

    for (size_t i = 0; i < sizeof(paces) / sizeof(paces[0]); i++) {
        assert_int_equal(ibshift_pace_parse(paces[i].text, &pace, why, sizeof(why)), 0);
        assert_int_equal(ibshift_pace_is_single(&pace), paces[i].is_single);
    }
}

static const struct {
    struct ibshift_pace_facts facts;
    const char *pace;
} cases[] = {
    /* bytes, eager, kib, latency, ranks, on a host, hosts, ring, share, burst, window, free,
       attended, post */
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 1728, 1, 1728, 0, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{8192, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 12, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:11/2048"},
    {{32768, 4096, 41, 700, 4, 1, 0, 0, 0, 0, 32, true, true, 0}, "window:3"}, /* few in flight */
    {{1 << 20, 4096, 41, 700, 8, 1, 0, 0, 0, 0, 32, true, true, 0}, "window:7/32768"},
    {{1 << 20, 4096, 41, 700, 64, 1, 0, 0, 0, 0, 32, true, true, 0}, "window:63/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 0},
     "window:31/4096"}, /* 100 Gb/s */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:31/8192"},
    {{1 << 20, 4096, 10, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:48/16384"},
    {{1 << 20, 4096, 82, 200, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:16/4096"}, /* posts */
    {{1 << 20, 4096, 82, 200, 64, 2, 64, 0, 0, 0, 32, true, true, 0},
     "window:16/2048"}, /* two ranks' */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 500, 0, 32, true, true, 0},
     "window:32/2048"}, /* half the rate, half the posts */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 333, 0, 32, true, true, 0}, "window:22/4096"},
    {{1 << 20, 4096, 256, 500, 256, 4, 64, 0, 0, 0, 32, true, true, 0}, "window:8/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 0, 0, 0, 32, true, true, 0}, "window:8/4096"},
    {{1 << 20, 4096, 256, 500, 1024, 16, 64, 0, 0, 0, 32, true, true, 0}, "window:4/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 4, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 0, 32, true, true, 0}, "window:24/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, false, 0},
     "window:8"}, /* nobody looks */
    {{16384, 4096, 20, 1500, 64, 1, 64, 0, 0, 0, 32, true, false, 0}, "window:16"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 2048, 32, true, false, 0}, "window:16"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 0, 32, true, false, 0}, "window:4"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 2048, 32, true, false, 0}, "window:4"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 32, true, true, 0},
     "window:63/2048"}, /* no routes */
    {{1 << 20, 4096, 256, 500, 1728, 0, 0, 0, 0, 0, 32, true, true, 0}, "window:256/2048"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 32, true, false, 0}, "window:63"},
    {{0, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0},
     "window:32/4096"}, /* they differ */
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 40, true, true, 0}, "window:40/4096"},
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 40, true, false, 0}, "window:40"},
    {{1 << 20, 4096, 256, 500, 2, 1, 64, 0, 0, 0, 32, true, true, 0}, "none"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, false, true, 0}, "none"},  /* steps wait */
    {{4096, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:16"}, /* no grant */
    {{1 << 20, 4096, 0, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0},
     "window:16/4096"}, /* no rate */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 984, 0, 32, true, true, 0}, "window:24/2048"},
    {{1 << 20, 4096, 82, 1500, 128, 1, 128, 8, 496, 0, 32, true, true, 0}, "window:7/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 1, 256, 8, 199, 0, 32, true, true, 0}, "window:4/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 8, 0, 0, 32, true, true, 0}, "window:6/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 500, 0, 32, true, true, 0},
     "window:32/2048"}, /* a tree */
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 2048, 32, true, true, 0}, "window:16"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 3072, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 8, 0, 2048, 32, true, true, 0}, "window:24/2048"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 1024, 32, true, true, 0}, "window:63"},
    {{0, 4096, 256, 500, 64, 1, 64, 0, 0, 2048, 32, true, true, 0}, "window:32"},
    {{8192, 8192, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:8"}, /* short */
    {{8192, 8192, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "window:17"},
    {{8192, 8192, 256, 500, 64, 1, 64, 8, 0, 0, 32, true, true, 0}, "window:8"},
    {{8192, 8192, 256, 500, 64, 1, 64, 8, 0, 2048, 32, true, true, 0}, "none"},
    {{8192, 8192, 256, 500, 256, 4, 64, 0, 0, 0, 32, true, true, 0}, "window:4"},
    {{3000, 8192, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, false, 0}, "window:22"},
    {{2048, 8192, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0}, "none"},
    {{8192, 8192, 256, 500, 64, 0, 0, 0, 0, 0, 32, true, true, 0}, "none"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 300}, "window:31/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 400}, "window:17/8192"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 700},
     "window:16/16384"}, /* dear, */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 1500},
     "window:8"}, /* too dear, */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 333, 0, 32, true, true, 700},
     "window:16/8192"}, /* but not at a third of the rate */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 250, 0, 32, true, true, 1500}, "window:4/8192"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 0, 0, 0, 32, true, true, 700}, "window:8/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 0, 32, true, true, 300}, "window:24/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 0, 0, 0, 0, 0, 32, true, true, 300}, "window:63/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 0, 0, 0, 0, 0, 32, true, true, 1500}, "window:63"},
    {{0, 4096, 82, 1500, 64, 1, 64, 0, 0, 0, 32, true, true, 1500}, "window:32"},
    /* Circles of links: as much as they carry. */
    {{1 << 20, 4096, 41, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0, false, true},
     "window:13/8192"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 957, 0, 32, true, true, 0, false, true},
     "window:15/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 513, 0, 32, true, true, 0, false, true},
     "window:8/2048"},
    {{1 << 20, 4096, 256, 500, 256, 4, 64, 0, 513, 0, 32, true, true, 0, false, true},
     "window:4/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 8, 496, 0, 32, true, true, 0, false, true},
     "window:7/2048"}, /* long rings as before */
    /* Switches choose the routes: the same window, whether a file says so or the user. */
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 0, 32, true, true, 0, true}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 1728, 0, 0, 0, 0, 0, 32, true, true, 0, true}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 256, 4, 0, 0, 0, 0, 32, true, true, 0, true}, "window:8/2048"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 32, true, false, 0, true}, "window:8"},
    {{8192, 8192, 256, 500, 64, 0, 0, 0, 0, 0, 32, true, true, 0, true}, "window:8"},
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 0, 40, true, true, 0, true}, "window:40/4096"},
};

/* What auto takes; the noise is not asked. */
static void what_suits_is_chosen(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ibshift_pace pace;
        const char *reason = NULL;
        char text[32];

        ibshift_pace_choose(&cases[i].facts, &pace, &reason);
        ibshift_pace_format(&pace, text, sizeof(text));
        assert_string_equal(text, cases[i].pace);
        assert_non_null(reason);
    }
}

/* No word of routes that are known, where none are. */
static void what_adaptive_switches_get_is_said(void **state)
{
    struct ibshift_pace_facts facts = {.kib = 256,
                                       .latency = 500,
                                       .ranks = 64,
                                       .window = 32,
                                       .has_free_steps = true,
                                       .is_adaptive = true};
    struct ibshift_pace pace;
    const char *reason;

    (void)state;
    for (facts.bytes = 4096; facts.bytes <= 1 << 20; facts.bytes <<= 8) {
        for (int i = 0; i < 4; i++) {
            facts.eager = i & 1 ? 1 << 20 : 0;
            facts.is_attended = (i & 2) != 0;
            ibshift_pace_choose(&facts, &pace, &reason);
            assert_int_equal(strncmp(reason, "switches choose the routes", 26), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_written),
        cmocka_unit_test(says_what_is_single),
        cmocka_unit_test(what_suits_is_chosen),
        cmocka_unit_test(what_adaptive_switches_get_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

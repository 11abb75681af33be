/* The pace of an all-to-all: in words, the one that auto takes, and how it is priced; the same on all ranks. */
#include <string.h>

#include "choose/pace.h"
#include "plan/nodes.h"
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
    /* bytes, eager, kib, latency, ranks, on a host, hosts, ring, share, window, free,
       attended, post */
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 1728, 1, 1728, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{8192, 4096, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 12, 1, 64, 0, 0, 32, true, true, 0}, "window:11/2048"},
    {{32768, 4096, 41, 700, 4, 1, 0, 0, 0, 32, true, true, 0}, "window:3"}, /* few in flight */
    {{1 << 20, 4096, 41, 700, 8, 1, 0, 0, 0, 32, true, true, 0}, "window:7/32768"},
    {{1 << 20, 4096, 41, 700, 64, 1, 0, 0, 0, 32, true, true, 0}, "window:63/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 0},
     "window:31/4096"}, /* 100 Gb/s */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:31/8192"},
    {{1 << 20, 4096, 10, 1500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:48/16384"},
    {{1 << 20, 4096, 82, 200, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:16/4096"}, /* posts */
    {{1 << 20, 4096, 82, 200, 64, 2, 64, 0, 0, 32, true, true, 0},
     "window:16/2048"}, /* two ranks' */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 500, 32, true, true, 0},
     "window:32/2048"}, /* half the rate, half the posts */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 333, 32, true, true, 0}, "window:22/4096"},
    {{1 << 20, 4096, 256, 500, 256, 4, 64, 0, 0, 32, true, true, 0}, "window:8/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 0, 0, 32, true, true, 0}, "window:8/4096"},
    {{1 << 20, 4096, 256, 500, 1024, 16, 64, 0, 0, 32, true, true, 0}, "window:4/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 4, 0, 32, true, true, 0}, "window:32/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 32, true, true, 0}, "window:24/2048"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, false, 0}, "window:8"}, /* nobody looks */
    {{16384, 4096, 20, 1500, 64, 1, 64, 0, 0, 32, true, false, 0}, "window:16"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 32, true, false, 0}, "window:4"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 32, true, true, 0},
     "window:63/2048"}, /* no routes */
    {{1 << 20, 4096, 256, 500, 1728, 0, 0, 0, 0, 32, true, true, 0}, "window:256/2048"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 32, true, false, 0}, "window:63"},
    {{0, 4096, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:32/4096"}, /* they differ */
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 40, true, true, 0}, "window:40/4096"},
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 40, true, false, 0}, "window:40"},
    {{1 << 20, 4096, 256, 500, 2, 1, 64, 0, 0, 32, true, true, 0}, "none"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 32, false, true, 0}, "none"},  /* steps wait */
    {{4096, 4096, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:16"}, /* no grant */
    {{1 << 20, 4096, 0, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:16/4096"}, /* no rate */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 984, 32, true, true, 0}, "window:24/2048"},
    {{1 << 20, 4096, 82, 1500, 128, 1, 128, 8, 496, 32, true, true, 0}, "window:7/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 1, 256, 8, 199, 32, true, true, 0}, "window:4/2048"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 8, 0, 32, true, true, 0}, "window:6/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 500, 32, true, true, 0},
     "window:32/2048"},                                                       /* a tree */
    {{8192, 8192, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:8"}, /* short */
    {{8192, 8192, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 0}, "window:17"},
    {{8192, 8192, 256, 500, 64, 1, 64, 8, 0, 32, true, true, 0}, "window:8"},
    {{8192, 8192, 256, 500, 256, 4, 64, 0, 0, 32, true, true, 0}, "window:4"},
    {{3000, 8192, 256, 500, 64, 1, 64, 0, 0, 32, true, false, 0}, "window:22"},
    {{2048, 8192, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0}, "none"},
    {{8192, 8192, 256, 500, 64, 0, 0, 0, 0, 32, true, true, 0}, "none"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 300}, "window:31/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 400}, "window:17/8192"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 700},
     "window:16/16384"},                                                            /* dear, */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 1500}, "window:8"}, /* too dear, */
    {{1 << 20, 4096, 41, 1500, 64, 1, 64, 0, 333, 32, true, true, 700},
     "window:16/8192"}, /* but not at a third of the rate */
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 250, 32, true, true, 1500}, "window:4/8192"},
    {{1 << 20, 4096, 82, 1500, 256, 4, 64, 0, 0, 32, true, true, 700}, "window:8/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 1, 64, 8, 0, 32, true, true, 300}, "window:24/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 0, 0, 0, 0, 32, true, true, 300}, "window:63/4096"},
    {{1 << 20, 4096, 82, 1500, 64, 0, 0, 0, 0, 32, true, true, 1500}, "window:63"},
    {{0, 4096, 82, 1500, 64, 1, 64, 0, 0, 32, true, true, 1500}, "window:32"},
    /* Circles of links: as much as they carry. */
    {{1 << 20, 4096, 41, 500, 64, 1, 64, 0, 0, 32, true, true, 0, false, true}, "window:13/8192"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 957, 32, true, true, 0, false, true},
     "window:15/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 513, 32, true, true, 0, false, true}, "window:8/2048"},
    {{1 << 20, 4096, 256, 500, 256, 4, 64, 0, 513, 32, true, true, 0, false, true},
     "window:4/2048"},
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 8, 496, 32, true, true, 0, false, true},
     "window:7/2048"}, /* long rings as before */
    /* Switches choose the routes: the same window, whether a file says so or the user. */
    {{1 << 20, 4096, 256, 500, 64, 1, 64, 0, 0, 32, true, true, 0, true}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 1728, 0, 0, 0, 0, 32, true, true, 0, true}, "window:32/2048"},
    {{1 << 20, 4096, 256, 500, 256, 4, 0, 0, 0, 32, true, true, 0, true}, "window:8/2048"},
    {{1 << 20, 4096, 256, 500, 64, 0, 0, 0, 0, 32, true, false, 0, true}, "window:8"},
    {{8192, 8192, 256, 500, 64, 0, 0, 0, 0, 32, true, true, 0, true}, "window:8"},
    {{0, 4096, 256, 500, 64, 0, 0, 0, 0, 40, true, true, 0, true}, "window:40/4096"},
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

static struct ibshift_sending sending_of(const struct ibshift_model *model,
                                         const struct ibshift_pacing_fabric *fabric)
{
    struct ibshift_pace_facts facts = {.bytes = 65536,
                                       .eager = 4096,
                                       .ranks = 8,
                                       .on_host = 1,
                                       .window = 32,
                                       .has_free_steps = true,
                                       .is_attended = true};
    struct ibshift_pace pace;
    const char *reason;

    ibshift_pacing_add(&facts, model, fabric);
    ibshift_pace_choose(&facts, &pace, &reason);
    return ibshift_pacing_sending(&pace);
}

static bool is_same(struct ibshift_sending a, struct ibshift_sending b)
{
    return a.window == b.window && a.piece == b.piece;
}

/* Some have a file of 400 Gb/s, some one of a torus, some none: none of it counts. */
static void a_file_that_others_lack_does_not_count(void **state)
{
    static const struct ibshift_pacing_fabric fast = {.kib = 20}, slow = {.kib = 1000},
                                              torus = {.ring = 8}, none = {.kib = 0};
    struct ibshift_sending sending = sending_of(&ibshift_model_typical, &none);

    assert_int_equal(sending.window, 7);
    assert_true(is_same(sending, sending_of(&ibshift_model_typical, &fast)));
    assert_true(is_same(sending, sending_of(&ibshift_model_typical, &slow)));
    assert_true(is_same(sending, sending_of(&ibshift_model_typical, &torus)));
}

static void the_same_file_counts(void **state)
{
    static const struct ibshift_pacing_fabric fast = {.hosts = 64, .kib = 20},
                                              slow = {.hosts = 64, .kib = 1000};

    assert_false(is_same(sending_of(&ibshift_model_typical, &fast),
                         sending_of(&ibshift_model_typical, &slow)));
}

/* What a post costs in the price decides whether there are posts to price. */
static void posts_cost_what_the_price_says(void **state)
{
    static const struct ibshift_pacing_fabric none = {.hosts = 0};
    struct ibshift_model dear = ibshift_model_typical;
    struct ibshift_pace_facts facts = {.bytes = 0};

    ibshift_pacing_add(&facts, &ibshift_model_software, &none);
    assert_float_equal(facts.post, 1e3 * ibshift_model_software.send_min, 1e-9);
    assert_float_equal(facts.latency, 1e3 * ibshift_model_software.latency, 1e-9);
    assert_true(sending_of(&dear, &none).piece > 0);
    dear.send_min = 5;
    assert_int_equal(sending_of(&dear, &none).piece, 0);
}

/* Pieces one at a time are dear, but only for rows that have pieces. */
static void pieces_change_the_choice(void **state)
{
    struct ibshift_plan plan = {.ranks = 16, .commutative = true};
    struct ibshift_question question = {.collective = IBSHIFT_ALLTOALL,
                                        .plan = &plan,
                                        .bytes = 1 << 16,
                                        .window = 32,
                                        .free = {.window = 32},
                                        .model = &ibshift_model_typical};
    struct ibshift_choice whole = ibshift_choose_best(&question).best, cut;

    assert_true((whole.alg->flags & IBSHIFT_ALG_FREE) != 0);
    question.free = (struct ibshift_sending){.window = 1, .piece = 256};
    cut = ibshift_choose_best(&question).best;
    assert_true((cut.alg->flags & IBSHIFT_ALG_FREE) == 0);
    question.wish.alg = whole.alg;
    assert_true(ibshift_choose_best(&question).best.price.posts > whole.price.posts);
    assert_int_equal(ibshift_choose_sending(&question, cut.alg).piece, 0);
    assert_int_equal(ibshift_choose_sending(&question, cut.alg).window, 32);
}

/* As the walk of all ranks counts them, also of more ranks than a choice walks. */
static void posts_are_those_of_the_walk(void **state)
{
    for (uint32_t ranks = 4; ranks <= 128; ranks *= 2) {
        for (uint64_t bytes = 1000; bytes <= 100000; bytes *= 10) {
            struct ibshift_plan plan = {.ranks = ranks, .commutative = true};
            struct ibshift_question question = {
                .plan = &plan, .bytes = bytes, .model = &ibshift_model_typical};
            struct ibshift_price_request request = {.alg =
                                                        ibshift_alg_find(IBSHIFT_ALLTOALL, "shift"),
                                                    .plan = &plan,
                                                    .model = &ibshift_model_typical,
                                                    .bytes = bytes,
                                                    .element = 1,
                                                    .window = 2,
                                                    .piece = 3000};
            struct ibshift_price price;

            assert_int_equal(ibshift_price(&request, &price), 0);
            assert_int_equal(ranks * ibshift_pacing_posts(&question, 3000), price.posts);
        }
    }
}

/* Ranks of a node share memory, where messages go whole. */
static void posts_within_a_node_are_whole(void **state)
{
    static const uint32_t node_of[] = {0, 0, 0, 1, 1, 2};
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = 6, .nodes = &nodes};
    struct ibshift_question question = {.plan = &plan,
                                        .bytes = 20000,
                                        .model = &ibshift_model_typical,
                                        .near = &ibshift_model_typical};

    assert_int_equal(ibshift_nodes_make(node_of, 6, &nodes), 0);
    assert_int_equal(ibshift_pacing_posts(&question, 4000), 2 + 3 * 5);
    ibshift_nodes_free(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read_and_written),
        cmocka_unit_test(says_what_is_single),
        cmocka_unit_test(what_suits_is_chosen),
        cmocka_unit_test(what_adaptive_switches_get_is_said),
        cmocka_unit_test(a_file_that_others_lack_does_not_count),
        cmocka_unit_test(the_same_file_counts),
        cmocka_unit_test(posts_cost_what_the_price_says),
        cmocka_unit_test(pieces_change_the_choice),
        cmocka_unit_test(posts_are_those_of_the_walk),
        cmocka_unit_test(posts_within_a_node_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How an all-to-all will be sent, as its price has to know: the same on all ranks. */
#include "choose/pace.h"
#include "plan/nodes.h"
#include "unit.h"

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
        cmocka_unit_test(a_file_that_others_lack_does_not_count),
        cmocka_unit_test(the_same_file_counts),
        cmocka_unit_test(posts_cost_what_the_price_says),
        cmocka_unit_test(pieces_change_the_choice),
        cmocka_unit_test(posts_are_those_of_the_walk),
        cmocka_unit_test(posts_within_a_node_are_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

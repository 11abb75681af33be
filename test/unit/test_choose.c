/* The choice: candidates, and the best of them. */
#include <errno.h>
#include <string.h>

#include "ask.h"
#include "choose/crowd.h"
#include "plan/nodes.h"
#include "plan/order.h"
#include "unit.h"

static const struct ibshift_wish nothing;

/* Every row, many sizes: within room, no plan twice, the simplest first. */
static void candidates_are_few_and_different(void **state)
{
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        for (int shift = 0; shift < 64; shift += 3) {
            int count = ibshift_candidates(alg, 1000, 1ull << shift, &nothing, found);

            assert_in_range(count, 1, IBSHIFT_CANDIDATES_MAX);
            assert_int_equal(found[0].radix, alg->radix_max > 0);
            assert_int_equal(found[0].segments, 1);
            for (int a = 0; a < count; a++) {
                assert_true(found[a].radix <= alg->radix_max);
                assert_true(found[a].segments >= 1 && found[a].segments <= IBSHIFT_SEGMENTS_MAX);
                for (int b = 0; b < a; b++) {
                    assert_true(found[a].radix != found[b].radix ||
                                found[a].segments != found[b].segments ||
                                found[a].leaders != found[b].leaders);
                }
            }
        }
    }
}

/* A radix is below the ranks; segments go from 4 KiB to 1 MiB. */
static void candidates_fit_ranks_and_bytes(void **state)
{
    static const struct {
        const char *name;
        uint32_t ranks;
        uint64_t bytes;
        int count;
        uint32_t radix[4], segments[4]; /* of the first of them; 0: of no interest */
    } rows[] = {{"knomial", 5, 8, 4, {1, 2, 3, 4}, {1, 1, 1, 1}},
                {"knomial", 1, 8, 1, {1}, {1}},
                {"chain", 8, 4096, 1, {0}, {1}},
                {"chain", 8, 1 << 16, 3, {0}, {1, 16, 4}},
                {"chain", 8, 1ull << 24, 6, {0}, {1}}};
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_BCAST, rows[i].name);

        assert_int_equal(ibshift_candidates(alg, rows[i].ranks, rows[i].bytes, &nothing, found),
                         rows[i].count);
        for (int k = 0; k < 4 && rows[i].segments[k] > 0; k++) {
            assert_int_equal(found[k].radix, rows[i].radix[k]);
            assert_int_equal(found[k].segments, rows[i].segments[k]);
        }
    }
}

static void what_is_asked_for_is_the_only_candidate(void **state)
{
    const struct ibshift_alg *tree = ibshift_alg_find(IBSHIFT_BCAST, "knomial");
    const struct ibshift_alg *chain = ibshift_alg_find(IBSHIFT_BCAST, "chain");
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
    struct ibshift_wish wish = {.radix = 5, .segment = 1000};

    assert_int_equal(ibshift_candidates(tree, 3, 8, &wish, found), 1);
    assert_int_equal(found[0].radix, 5);
    assert_int_equal(ibshift_candidates(chain, 3, 2001, &wish, found), 1);
    assert_int_equal(found[0].segments, 3);
    assert_int_equal(ibshift_candidates(chain, 3, 0, &wish, found), 1);
    assert_int_equal(found[0].segments, 1);
    wish = (struct ibshift_wish){.radix = UINT32_MAX, .segment = 1};
    assert_int_equal(ibshift_candidates(tree, 3, 8, &wish, found), 1);
    assert_int_equal(found[0].radix, tree->radix_max);
    assert_int_equal(ibshift_candidates(chain, 3, UINT64_MAX, &wish, found), 1);
    assert_int_equal(found[0].segments, IBSHIFT_SEGMENTS_MAX);
}

/* What the search takes is as good as the cheapest that it looks at, and nothing as good is simpler. */
static void nothing_is_better(const struct ibshift_choice *best,
                              const struct ibshift_choice *second, const struct ibshift_choice *one)
{
    double cheapest = second->alg != NULL && second->price.last < best->price.last
                          ? second->price.last
                          : best->price.last;

    assert_true(best->price.last >= 0 && best->price.last <= cheapest * IBSHIFT_PRICE_EQUAL);
    assert_true(one->price.last < 0 || one->price.last >= cheapest);
    if (one->price.last >= 0 && one->price.last <= cheapest * IBSHIFT_PRICE_EQUAL) {
        assert_false(ibshift_price_is_simpler(&one->price, &best->price));
    }
}

/* The price of each candidate that can be looked at in whole: of the best, and of the one taken. */
static double whole_price(const struct ibshift_question *question,
                          const struct ibshift_choice *taken, double *best)
{
    double own = -1;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
        int count =
            ibshift_candidates(alg, question->plan->ranks, question->bytes, &nothing, found);

        for (int k = 0; k < count && ibshift_alg_serves(alg, question->collective, 0); k++) {
            struct ibshift_plan plan = *question->plan;
            struct ibshift_price_request request = {.alg = alg,
                                                    .plan = &plan,
                                                    .model = question->model,
                                                    .bytes = question->bytes,
                                                    .window = question->window,
                                                    .limit = 1 << 15};
            struct ibshift_price price;
            char why[128];

            plan.radix = found[k].radix;
            plan.segments = found[k].segments;
            if (ibshift_alg_check(alg, &plan, why, sizeof(why)) != 0 ||
                (alg->flags & IBSHIFT_ALG_NODES) != 0 || ibshift_price(&request, &price) != 0) {
                continue;
            }
            *best = *best < 0 || price.last < *best ? price.last : *best;
            own =
                alg == taken->alg && plan.radix == taken->radix && plan.segments == taken->segments
                    ? price.last
                    : own;
        }
    }
    return own;
}

/* Of many ranks few messages are looked at: what is taken is seldom much dearer than the cheapest. */
static void a_glance_at_many_ranks_is_good_enough(void **state)
{
    static const uint32_t many[] = {65, 96, 128};
    double sum = 0;
    int cells = 0;

    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        struct ibshift_plan plan = {.ranks = many[i], .commutative = true};

        for (int collective = 0; collective < IBSHIFT_COLLECTIVES; collective++) {
            for (uint64_t bytes = 8; bytes <= 1 << 16; bytes *= 64) {
                struct ibshift_question question =
                    ask((enum ibshift_collective)collective, &plan, bytes);
                struct ibshift_choice best = ibshift_choose_best(&question).best;
                double cheapest = -1, own = whole_price(&question, &best, &cheapest);

                assert_non_null(best.alg);
                assert_true(own > 0 && own <= 1.6 * cheapest);
                sum += own / cheapest;
                cells++;
            }
        }
    }
    assert_true(sum / cells <= 1.05);
}

static void the_cheapest_wins(void **state)
{
    struct ibshift_plan plan = {.ranks = 12, .commutative = true};

    for (int collective = 0; collective < IBSHIFT_COLLECTIVES; collective++) {
        for (uint64_t bytes = 8; bytes <= 1 << 20; bytes *= 512) {
            struct ibshift_question question =
                ask((enum ibshift_collective)collective, &plan, bytes);
            struct ibshift_answer all = ibshift_choose_best(&question);
            int candidates = 0;

            assert_non_null(all.best.alg);
            nothing_is_better(&all.best, &all.second, &all.best);
            if (all.second.alg != NULL) {
                nothing_is_better(&all.best, &all.second, &all.second);
            }
            for (size_t i = 0; i < ibshift_alg_count; i++) {
                struct ibshift_answer one;

                question.wish.alg = ibshift_alg_table[i];
                one = ibshift_choose_best(&question);
                if ((int)ibshift_alg_table[i]->collective == collective &&
                    one.best.alg == ibshift_alg_table[i] &&
                    (one.best.alg->flags & IBSHIFT_ALG_NODES) == 0) {
                    nothing_is_better(&all.best, &all.second, &one.best);
                    candidates += one.candidates;
                }
            }
            assert_int_equal(candidates, all.candidates);
        }
    }
}

/* Plans that are too dear are not priced to their end, and nothing is chosen otherwise: flat, and on hosts that share. */
static void a_brief_answer_is_the_same(void **state)
{
    enum { RANKS = 12 };
    struct ibshift_place places[RANKS];
    struct ibshift_crowd crowd;
    struct ibshift_nodes nodes;

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        places[rank] = (struct ibshift_place){rank / 5 + 1, rank / 5 + 1, 2, false};
    }
    assert_int_equal(ibshift_crowd_make(places, RANKS, &crowd), 0);
    assert_int_equal(ibshift_nodes_make(crowd.host_of, RANKS, &nodes), 0);
    for (int i = 0; i < 2 * IBSHIFT_COLLECTIVES; i++) {
        for (uint64_t bytes = 8; bytes <= 1 << 18; bytes *= 32) {
            struct ibshift_plan plan = {.ranks = RANKS, .commutative = true};
            struct ibshift_question question =
                ask((enum ibshift_collective)(i % IBSHIFT_COLLECTIVES), &plan, bytes);
            struct ibshift_answer all, brief;

            if (i >= IBSHIFT_COLLECTIVES) {
                plan.nodes = &nodes;
                question.crowd = &crowd;
                question.near = &ibshift_model_node;
            }
            all = ibshift_choose_best(&question);
            question.is_brief = true;
            brief = ibshift_choose_best(&question);
            assert_true(is_same(&all.best, &brief.best));
            assert_int_equal(all.candidates, brief.candidates);
        }
    }
    ibshift_nodes_free(&nodes);
    ibshift_crowd_free(&crowd);
}

/* What it gives up is known to take longer; what it does not is what it is without a bound. */
static void a_price_has_a_bound(void **state)
{
    struct ibshift_plan plan = {.ranks = 12, .commutative = true, .radix = 2, .segments = 1};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(IBSHIFT_BCAST, "knomial"),
                                            .plan = &plan,
                                            .model = &ibshift_model_typical,
                                            .bytes = 1 << 16};
    struct ibshift_price price, bounded;

    assert_int_equal(ibshift_price(&request, &price), 0);
    request.most = price.last;
    assert_int_equal(ibshift_price(&request, &bounded), 0);
    assert_true(bounded.last == price.last && bounded.hops == price.hops);
    request.most = price.last * 0.999;
    assert_int_equal(ibshift_price(&request, &bounded), -ERANGE);
}

/* A call whose grants stand costs less than one that asks for each, and both are remembered apart. */
static void standing_grants_are_part_of_the_question(void **state)
{
    struct ibshift_model model = ibshift_model_typical;
    struct ibshift_plan plan = {.ranks = 8, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLREDUCE, &plan, 40000);
    struct ibshift_choice best[2];

    model.at_once = 16384;
    question.model = &model;
    question.wish.alg = ibshift_alg_find(IBSHIFT_ALLREDUCE, "recursive_doubling");
    for (int anew = 0; anew < 2; anew++) {
        question.grants_anew = anew;
        question.is_brief = true;
        struct ibshift_choice known = ibshift_choose(&question).best;
        best[anew] = ibshift_choose_best(&question).best;
        assert_true(is_same(&known, &best[anew]));
    }
    assert_true(best[0].price.last < best[1].price.last);
}

/* Four ranks on a host of two processors. */
static const uint32_t together[] = {0, 0, 0, 0}, two_processors[] = {2};
static const struct ibshift_crowd four_on_two = {
    .hosts = 1, .ports = 1, .host_of = together, .port_of = together, .processors = two_processors};

/* A linear scan and one by recursive doubling have equally many messages, and cost the same but for
 * the hops. */
static void equal_prices_are_told_by_hops(void **state)
{
    static const struct ibshift_model model = {.latency = 0.5,
                                               .send_max = 1,
                                               .send_min = 1,
                                               .recv_max = 1,
                                               .recv_min = 1,
                                               .free_messages = 1};
    struct ibshift_plan plan = {.ranks = 4, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_SCAN, &plan, 8);
    struct ibshift_answer answer;

    question.model = &model;
    question.crowd = &four_on_two;
    answer = ibshift_choose_best(&question);
    assert_string_equal(answer.best.alg->name, "recursive_doubling");
    assert_int_equal(answer.best.price.hops, 2);
    assert_string_equal(answer.second.alg->name, "linear");
    assert_int_equal(answer.second.price.hops, 3);
    assert_true(answer.second.price.last <= answer.best.price.last * IBSHIFT_PRICE_EQUAL);
}

/* A linear allreduce has the fewest hops, and twice the messages of those that cost the same. */
static void equal_prices_of_processors_are_told_by_messages(void **state)
{
    struct ibshift_plan plan = {.ranks = 4, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLREDUCE, &plan, 8);
    struct ibshift_choice best, linear;

    question.model = &ibshift_model_software;
    question.crowd = &four_on_two;
    best = ibshift_choose_best(&question).best;
    question.wish.alg = ibshift_alg_find(IBSHIFT_ALLREDUCE, "linear");
    linear = ibshift_choose_best(&question).best;
    assert_int_equal(best.price.of, IBSHIFT_PRICE_PROCESSORS);
    assert_int_equal(linear.price.of, IBSHIFT_PRICE_PROCESSORS);
    assert_int_equal(best.price.messages, 6);
    assert_int_equal(linear.price.messages, 12);
    assert_true(linear.price.hops < best.price.hops);
    assert_true(linear.price.last <= best.price.last * IBSHIFT_PRICE_EQUAL);
    assert_true(best.price.last <= linear.price.last * IBSHIFT_PRICE_EQUAL);
}

/* Ranks of one host with two processors, as bench/nodes/cells-kvm.csv has them: what ran then, and
 * how long it took. The built-in prices of shared memory are near, and the choice is what took less. */
static void shared_memory_is_priced_as_it_was_measured(void **state)
{
    static const struct {
        enum ibshift_collective collective;
        const char *ran;
        uint32_t ranks, bytes, radix;
        double us;
        const char *now;
    } cells[] = {
        {IBSHIFT_ALLGATHER, "ring", 2, 8, 0, 0.36, "ring"},
        {IBSHIFT_ALLGATHER, "ring", 2, 16384, 0, 0.96, "ring"},
        {IBSHIFT_GATHER, "linear", 2, 16384, 0, 0.65, "linear"},
        {IBSHIFT_REDUCE, "linear", 2, 4096, 0, 0.43, "linear"},
        {IBSHIFT_REDUCE, "exchange", 2, 16384, 0, 0.97, "linear"},
        {IBSHIFT_REDUCE, "linear", 4, 16384, 0, 4.74, "linear"},
        {IBSHIFT_ALLTOALL, "linear", 4, 1024, 0, 3.82, "linear"},
        {IBSHIFT_ALLREDUCE, "linear", 4, 64, 0, 3.63, "linear"},
        {IBSHIFT_ALLREDUCE, "knomial", 4, 512, 3, 6.35, "linear"},
        {IBSHIFT_ALLREDUCE, "knomial", 4, 4096, 3, 6.52, "linear"},
        {IBSHIFT_REDUCE_SCATTER, "linear", 4, 16384, 0, 8.47, "linear"},
        {IBSHIFT_SCATTER, "linear", 4, 16384, 0, 4.55, "linear"},
    };

    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
        struct ibshift_plan plan = {
            .ranks = cells[i].ranks, .commutative = true, .radix = cells[i].radix, .segments = 1};
        struct ibshift_question question = ask(cells[i].collective, &plan, cells[i].bytes);
        struct ibshift_price_request request = {
            .alg = ibshift_alg_find(cells[i].collective, cells[i].ran),
            .plan = &plan,
            .model = &ibshift_model_node,
            .crowd = &four_on_two,
            .bytes = cells[i].bytes};
        struct ibshift_price price;

        question.model = &ibshift_model_node;
        question.crowd = &four_on_two;
        assert_int_equal(ibshift_price(&request, &price), 0);
        print_message("%s %s: %.2f us, took %.2f\n", ibshift_collective_name(cells[i].collective),
                      cells[i].ran, price.last, cells[i].us);
        assert_true(price.last < 1.4 * cells[i].us && price.last > cells[i].us / 1.4);
        assert_string_equal(ibshift_choose_best(&question).best.alg->name, cells[i].now);
    }
}

static void a_wish_that_cannot_be_is_as_none(void **state)
{
    struct ibshift_plan plan = {.ranks = 7, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLGATHER, &plan, 64);
    struct ibshift_answer free_choice = ibshift_choose_best(&question), answer;

    question.wish.alg = ibshift_alg_find(IBSHIFT_ALLGATHER, "neighbor_exchange");
    answer = ibshift_choose_best(&question); /* even numbers only */
    assert_ptr_equal(answer.best.alg, free_choice.best.alg);
    question.wish.alg = ibshift_alg_find(IBSHIFT_BCAST, "linear"); /* another collective */
    answer = ibshift_choose_best(&question);
    assert_ptr_equal(answer.best.alg, free_choice.best.alg);
}

/* A pipeline beyond the limit is priced as a chain of few; who asks for it gets it, dear or not. */
static void a_wish_is_taken_at_any_price(void **state)
{
    struct ibshift_plan plan = {.ranks = 1 << 14};
    struct ibshift_question question = ask(IBSHIFT_BCAST, &plan, 1 << 20);
    struct ibshift_answer answer;

    question.wish.alg = ibshift_alg_find(IBSHIFT_BCAST, "chain");
    question.wish.segment = 1024;
    answer = ibshift_choose_best(&question);
    assert_ptr_equal(answer.best.alg, question.wish.alg);
    assert_int_equal(answer.best.segments, 1024);
    assert_true(answer.best.price.last > 0);
}

/* Rank 0 alone on its node leads a team of one; the memory of the other leader counts. */
static void a_leader_gathers_within_bounds(void **state)
{
    enum { RANKS = 65, BYTES = 1 << 13 };
    uint32_t host_of[RANKS];
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = RANKS};
    struct ibshift_question question = ask(IBSHIFT_ALLTOALL, &plan, 8);
    int all;

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        host_of[rank] = rank > 0;
    }
    assert_int_equal(ibshift_nodes_make(host_of, RANKS, &nodes), 0);
    plan.nodes = &nodes;
    all = ibshift_choose_best(&question).candidates;
    question.bytes = BYTES;
    assert_in_range(ibshift_choose_best(&question).candidates, 1, all - 1);
    ibshift_nodes_free(&nodes);
}

/* On two nodes both kinds of plans have a price; on one node, or one rank a node, only flat ones. */
static void both_kinds_are_told(void **state)
{
    static const uint32_t host_of[] = {0, 0, 0, 0, 1, 1, 1, 1}, alone[] = {0, 0, 0, 0, 0, 0, 0, 0};
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = 8, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLREDUCE, &plan, 8);
    struct ibshift_answer answer;

    question.near = &ibshift_model_node;
    assert_int_equal(ibshift_nodes_make(host_of, 8, &nodes), 0);
    plan.nodes = &nodes;
    for (uint64_t bytes = 8; bytes <= 1 << 20; bytes <<= 17) {
        question.bytes = bytes;
        answer = ibshift_choose_best(&question);
        assert_non_null(answer.other.alg);
        assert_true(((answer.best.alg->flags ^ answer.other.alg->flags) & IBSHIFT_ALG_NODES) != 0);
        nothing_is_better(&answer.best, &answer.second, &answer.other);
    }
    ibshift_nodes_free(&nodes);
    assert_int_equal(ibshift_nodes_make(alone, 8, &nodes), 0);
    answer = ibshift_choose_best(&question);
    assert_null(answer.other.alg);
    ibshift_nodes_free(&nodes);
}

/* On two nodes of four no tree has more than four ranks: of radices from 3 on one is looked at. */
static void radices_beyond_the_trees_are_left_out(void **state)
{
    static const uint32_t host_of[] = {0, 0, 0, 0, 1, 1, 1, 1};
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = 8, .commutative = true, .segments = 1, .leaders = 1};
    struct ibshift_question question = ask(IBSHIFT_EXSCAN, &plan, 1 << 20);

    assert_int_equal(ibshift_nodes_make(host_of, 8, &nodes), 0);
    plan.nodes = &nodes;
    assert_int_equal(ibshift_choose_best(&question).candidates, 2 + 3 * 5);
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        struct ibshift_price_request request = {
            .alg = alg, .plan = &plan, .model = question.model, .bytes = 4096};
        struct ibshift_price there, beyond;

        if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && alg->radix_max > 0) {
            plan.radix = 3;
            assert_int_equal(ibshift_price(&request, &there), 0);
            plan.radix = 15;
            assert_int_equal(ibshift_price(&request, &beyond), 0);
            assert_true(there.last == beyond.last);
        }
    }
    ibshift_nodes_free(&nodes);
}

static void an_order_is_followed(void **state)
{
    static uint32_t ranks[] = {2, 0, 3, 1}, slots[] = {1, 3, 0, 2};
    static const struct ibshift_order order = {
        .places = 4, .slots = 1, .step = 1, .rank_at = ranks, .slot_of = slots};
    struct ibshift_plan plan = {.ranks = 4, .order = &order};
    struct ibshift_question question = ask(IBSHIFT_ALLTOALL, &plan, 8192);

    question.needs = IBSHIFT_ALG_SIZES;
    assert_true(ibshift_choose_best(&question).best.alg->flags & IBSHIFT_ALG_ORDER);
}

/* 128 ranks send each other more messages than are looked at. */
static void many_messages_are_estimated(void **state)
{
    struct ibshift_plan plan = {.ranks = 128};
    struct ibshift_question question = ask(IBSHIFT_ALLTOALL, &plan, 65536);
    struct ibshift_answer answer = ibshift_choose_best(&question);
    struct ibshift_price_request request = {.alg = answer.best.alg,
                                            .plan = &plan,
                                            .model = question.model,
                                            .bytes = 65536,
                                            .window = question.window};
    struct ibshift_price price;

    plan.radix = answer.best.radix;
    assert_int_equal(answer.best.alg->radix_max, 0); /* not Bruck, which sends all several times */
    assert_int_equal(ibshift_price(&request, &price), 0);
    assert_true(answer.best.price.last > 0.93 * price.last);
    assert_true(answer.best.price.last < 1.03 * price.last);
}

static void classes_end_at_powers_and_halves(void **state)
{
    for (int class = 0; class < IBSHIFT_SIZE_CLASSES; class ++) {
        assert_int_equal(ibshift_size_class(ibshift_class_size(class)), class);
        assert_int_equal(ibshift_size_class(ibshift_class_size(class) + 1),
                         class + (class + 1 < IBSHIFT_SIZE_CLASSES));
    }
    static const struct {
        uint64_t bytes;
        int class;
    } some[] = {{0, 0}, {1, 0}, {2, 1}, {8, 7}, {9, 8}, {4096, 43}, {5120, 44}, {5121, 45}};

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        assert_int_equal(ibshift_size_class(some[i].bytes), some[i].class);
    }
    assert_int_equal(ibshift_size_class(UINT64_MAX), IBSHIFT_SIZE_CLASSES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_few_and_different),
        cmocka_unit_test(candidates_fit_ranks_and_bytes),
        cmocka_unit_test(what_is_asked_for_is_the_only_candidate),
        cmocka_unit_test(standing_grants_are_part_of_the_question),
        cmocka_unit_test(a_glance_at_many_ranks_is_good_enough),
        cmocka_unit_test(the_cheapest_wins),
        cmocka_unit_test(a_brief_answer_is_the_same),
        cmocka_unit_test(a_price_has_a_bound),
        cmocka_unit_test(equal_prices_are_told_by_hops),
        cmocka_unit_test(equal_prices_of_processors_are_told_by_messages),
        cmocka_unit_test(shared_memory_is_priced_as_it_was_measured),
        cmocka_unit_test(a_wish_that_cannot_be_is_as_none),
        cmocka_unit_test(a_wish_is_taken_at_any_price),
        cmocka_unit_test(a_leader_gathers_within_bounds),
        cmocka_unit_test(both_kinds_are_told),
        cmocka_unit_test(an_order_is_followed),
        cmocka_unit_test(radices_beyond_the_trees_are_left_out),
        cmocka_unit_test(many_messages_are_estimated),
        cmocka_unit_test(classes_end_at_powers_and_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

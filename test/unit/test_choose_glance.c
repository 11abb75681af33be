/* A glance at many ranks: how little is looked at, and how near its price is to the whole one. */
#include <errno.h>
#include <stdlib.h>

#include "choose/choose.h"
#include "choose/crowd.h"
#include "choose/glance.h"
#include "plan/nodes.h"
#include "unit.h"

/* Among 1,728 ranks a price does not take more than one among 64: few messages stand for all. */
static void what_is_seen_of_many_ranks_is_little(void **state)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");
    struct ibshift_plan plan = {.ranks = 1728};
    struct ibshift_price_request request = {
        .alg = alg, .plan = &plan, .model = &ibshift_model_typical, .bytes = 8192, .limit = 64};
    struct ibshift_plan few = {.ranks = 8};
    struct ibshift_price many, fewer;

    assert_int_equal(ibshift_price(&request, &many), -E2BIG);
    assert_int_equal(ibshift_glance(&request, &many), 0);
    request.plan = &few;
    assert_int_equal(ibshift_price(&request, &fewer), 0);
    assert_in_range(fewer.messages, 56, 56);
    assert_true(many.last > 1727.0 / 7 * 0.7 * fewer.last);
    assert_true(many.last < 1727.0 / 7 * 1.3 * fewer.last);
}

/* In pieces, too: the peers of all ranks keep a wire busy that those of few would leave idle. */
static void pieces_of_many_ranks_fill_the_wire(void **state)
{
    struct ibshift_plan plan = {.ranks = 128};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear"),
                                            .plan = &plan,
                                            .model = &ibshift_model_typical,
                                            .bytes = 1 << 20,
                                            .window = 256,
                                            .piece = 2048,
                                            .limit = 64};
    struct ibshift_price glanced, whole;

    assert_int_equal(ibshift_glance(&request, &glanced), 0);
    request.limit = 0;
    assert_int_equal(ibshift_price(&request, &whole), 0);
    print_message("%.0f us, %.0f at a glance\n", whole.last, glanced.last);
    assert_true(glanced.last > 0.9 * whole.last && glanced.last < 1.1 * whole.last);
}

static void count(void *context, const struct ibshift_price_event *event)
{
    (void)event;
    ++*(uint64_t *)context;
}

/* Of a million segments as few as of a plan that is looked at whole. */
static void what_is_seen_of_many_segments_is_little(void **state)
{
    static const enum ibshift_collective of[] = {IBSHIFT_BCAST, IBSHIFT_REDUCE};

    for (int i = 0; i < 2; i++) {
        struct ibshift_plan plan = {.ranks = 100, .segments = 1 << 20, .commutative = true};
        uint64_t events = 0;
        struct ibshift_price_request request = {.alg = ibshift_alg_find(of[i], "chain"),
                                                .plan = &plan,
                                                .model = &ibshift_model_typical,
                                                .bytes = 1 << 30,
                                                .window = 32,
                                                .limit = 64,
                                                .seen = count,
                                                .context = &events};
        struct ibshift_price price;

        assert_int_equal(ibshift_glance(&request, &price), 0);
        print_message("%d: %.0f us, %llu events\n", i, price.last, (unsigned long long)events);
        assert_in_range(events, 1, 16 * IBSHIFT_CHOOSE_LIMIT);
        assert_true(price.messages > 90ull << 20 && price.messages < 110ull << 20);
    }
}

static void a_glance_at_many_segments_is_good_enough(void **state)
{
    static const enum ibshift_collective of[] = {IBSHIFT_BCAST, IBSHIFT_REDUCE};

    for (int i = 0; i < 8; i++) {
        struct ibshift_plan plan = {
            .ranks = i < 4 ? 65 : 100, .segments = 6000, .commutative = true};
        struct ibshift_price_request request = {.alg = ibshift_alg_find(of[i % 2], "chain"),
                                                .plan = &plan,
                                                .model = &ibshift_model_typical,
                                                .bytes = i % 4 < 2 ? 6000 * 1024 : 6000 * 32768,
                                                .window = 32,
                                                .limit = 64};
        struct ibshift_price glanced, whole;

        assert_int_equal(ibshift_glance(&request, &glanced), 0);
        request.limit = 0;
        assert_int_equal(ibshift_price(&request, &whole), 0);
        print_message("%d: %.0f us, %.0f at a glance\n", i, whole.last, glanced.last);
        assert_true(glanced.last > 0.98 * whole.last && glanced.last < 1.02 * whole.last);
    }
}

/* What a brief question gives up early is not what another one chooses. */
static void a_brief_glance_is_the_same(void **state)
{
    static const uint32_t ranks[] = {65, 72, 200};

    for (int i = 0; i < 3 * IBSHIFT_COLLECTIVES; i++) {
        for (uint64_t bytes = 8; bytes <= 1 << 18; bytes *= 32) {
            struct ibshift_plan plan = {.ranks = ranks[i % 3], .commutative = true};
            struct ibshift_question question = {.collective = (enum ibshift_collective)(i / 3),
                                                .plan = &plan,
                                                .bytes = bytes,
                                                .window = 32,
                                                .model = &ibshift_model_typical};
            struct ibshift_choice all = ibshift_choose_best(&question).best, brief;

            question.is_brief = true;
            brief = ibshift_choose_best(&question).best;
            assert_true(all.alg == brief.alg && all.radix == brief.radix &&
                        all.segments == brief.segments);
        }
    }
}

/* Hosts of so many ranks, filled one after the other, or dealt in turn; the last third has half as many if they are not even. */
static void make_hosts(uint32_t ranks, uint32_t per_host, bool is_dealt, bool is_even,
                       struct ibshift_crowd *crowd, struct ibshift_nodes *nodes)
{
    struct ibshift_place *places = malloc(ranks * sizeof(*places));
    uint32_t hosts = ranks / per_host, full = is_even ? ranks : ranks * 2 / 3 / per_host * per_host;

    assert_non_null(places);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t host = is_dealt      ? rank % hosts
                        : rank < full ? rank / per_host
                                      : ranks + (rank - full) / (per_host / 2);

        places[rank] = (struct ibshift_place){host + 1, host + 1, 4, false};
    }
    assert_int_equal(ibshift_crowd_make(places, ranks, crowd), 0);
    assert_int_equal(ibshift_nodes_make(crowd->host_of, ranks, nodes), 0);
    free(places);
}

/* Its price to the end. */
static double whole(const struct ibshift_question *question, const struct ibshift_choice *choice)
{
    struct ibshift_plan plan = *question->plan;
    struct ibshift_price_request request = {.alg = choice->alg,
                                            .plan = &plan,
                                            .model = question->model,
                                            .near = question->near,
                                            .crowd = question->crowd,
                                            .bytes = question->bytes,
                                            .window = 32};
    struct ibshift_price price;

    plan.radix = choice->radix;
    plan.segments = choice->segments;
    plan.leaders = choice->leaders;
    assert_int_equal(ibshift_price(&request, &price), 0);
    return price.last;
}

/* Four ranks on each of 32 hosts or more: what is taken at a glance is as good as the best of all radices and segments of a few rows
 * that were found to be good there. */
static void a_glance_at_hosts_is_good_enough(void **state)
{
    static const struct {
        enum ibshift_collective collective;
        const char *names[4];
    } rows[] = {{IBSHIFT_BCAST, {"knomial", "by_node", "spread_ring", NULL}},
                {IBSHIFT_ALLREDUCE, {"recursive_doubling", "rabenseifner", "by_node", NULL}},
                {IBSHIFT_ALLTOALL, {"bruck", "linear", NULL}},
                {IBSHIFT_ALLGATHER, {"ring", "bruck", "by_node", NULL}}};

    for (int i = 0; i < 3 * 4 * 2; i++) {
        struct ibshift_crowd crowd;
        struct ibshift_nodes nodes;
        struct ibshift_plan plan = {.ranks = 128, .commutative = true, .nodes = &nodes};
        struct ibshift_question question = {.collective = rows[i % 4].collective,
                                            .plan = &plan,
                                            .bytes = i / 4 % 2 == 0 ? 64 : 16384,
                                            .window = 32,
                                            .is_brief = true,
                                            .model = &ibshift_model_typical,
                                            .near = &ibshift_model_node,
                                            .crowd = &crowd};
        struct ibshift_choice own;
        double taken;

        make_hosts(128, 4, i / 8 == 1, i / 8 != 2, &crowd, &nodes);
        own = ibshift_choose_best(&question).best;
        assert_non_null(own.alg);
        taken = whole(&question, &own);
        for (int k = 0; rows[i % 4].names[k] != NULL; k++) {
            const struct ibshift_alg *alg =
                ibshift_alg_find(question.collective, rows[i % 4].names[k]);
            struct ibshift_wish wish = {.alg = alg};
            struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
            int count = ibshift_candidates(alg, 128, question.bytes, &wish, found);

            for (int c = 0; c < count; c++) {
                struct ibshift_choice one = {alg, found[c].radix, found[c].segments,
                                             found[c].leaders, .most = 0};
                struct ibshift_plan other = plan;
                char why[128];

                other.radix = one.radix;
                other.segments = one.segments;
                other.leaders = one.leaders;
                if (ibshift_alg_check(alg, &other, why, sizeof(why)) == 0 &&
                    taken > 1.25 * whole(&question, &one)) {
                    fail_msg("%d: %s %u: %.1f us, but %s %u takes %.1f", i, own.alg->name,
                             own.radix, taken, alg->name, one.radix, whole(&question, &one));
                }
            }
        }
        ibshift_nodes_free(&nodes);
        ibshift_crowd_free(&crowd);
    }
}

/* 64 hosts of four ranks but the two that stand between the first and the last, which have one each. */
static void put_few_between(uint32_t *host_of, uint32_t *ranks)
{
    *ranks = 0;
    for (uint32_t host = 0; host < 64; host++) {
        for (uint32_t i = 0; i < (host == 21 || host == 42 ? 1 : 4); i++) {
            host_of[(*ranks)++] = host;
        }
    }
}

/* 32 hosts of four ranks but one, which has 16. */
static void put_many_on_one(uint32_t *host_of, uint32_t *ranks)
{
    *ranks = 0;
    for (uint32_t host = 0; host < 32; host++) {
        for (uint32_t i = 0; i < (host == 11 ? 16 : 4); i++) {
            host_of[(*ranks)++] = host;
        }
    }
}

static void a_glance_at_uneven_hosts_is_good_enough(void **state)
{
    static const struct {
        void (*put)(uint32_t *host_of, uint32_t *ranks);
        enum ibshift_collective collective;
        const char *name;
        uint32_t segments;
        uint64_t bytes;
    } of[] = {{put_few_between, IBSHIFT_BCAST, "chain", 1, 64},
              {put_few_between, IBSHIFT_BCAST, "chain", 64, 1 << 20},
              {put_few_between, IBSHIFT_REDUCE, "chain", 64, 1 << 20},
              {put_few_between, IBSHIFT_BCAST, "by_node", 64, 1 << 20},
              {put_many_on_one, IBSHIFT_BCAST, "by_node", 64, 1 << 20},
              {put_many_on_one, IBSHIFT_ALLTOALL, "linear", 1, 64},
              {put_many_on_one, IBSHIFT_ALLTOALL, "linear", 1, 8192}};

    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        uint32_t host_of[256], ranks;
        struct ibshift_place places[256];
        struct ibshift_crowd crowd;
        struct ibshift_nodes nodes;
        struct ibshift_plan plan = {.segments = of[i].segments, .radix = 1, .commutative = true};
        struct ibshift_price_request request = {.alg =
                                                    ibshift_alg_find(of[i].collective, of[i].name),
                                                .plan = &plan,
                                                .model = &ibshift_model_typical,
                                                .near = &ibshift_model_node,
                                                .crowd = &crowd,
                                                .bytes = of[i].bytes,
                                                .window = 32,
                                                .limit = 64};
        struct ibshift_price glanced, whole;

        of[i].put(host_of, &ranks);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            places[rank] = (struct ibshift_place){host_of[rank] + 1, host_of[rank] + 1, 16, false};
        }
        assert_int_equal(ibshift_crowd_make(places, ranks, &crowd), 0);
        assert_int_equal(ibshift_nodes_make(crowd.host_of, ranks, &nodes), 0);
        plan.ranks = ranks;
        plan.nodes = &nodes;
        assert_int_equal(ibshift_glance(&request, &glanced), 0);
        request.limit = 0;
        assert_int_equal(ibshift_price(&request, &whole), 0);
        print_message("%zu: %.0f us, %.0f at a glance\n", i, whole.last, glanced.last);
        assert_true(glanced.last > 0.9 * whole.last && glanced.last < 1.1 * whole.last);
        ibshift_nodes_free(&nodes);
        ibshift_crowd_free(&crowd);
    }
}

/* Among few hosts or on one, which are priced whole: a plan in segments that has too many messages for that has a price all
 * the same, and may be chosen. */
static void many_segments_of_few_hosts_have_a_price(void **state)
{
    static const struct {
        enum ibshift_collective collective;
        const char *name;
        uint32_t per_host;
    } rows[] = {{IBSHIFT_EXSCAN, "by_node", 4}, {IBSHIFT_BCAST, "by_node", 4},
                {IBSHIFT_BCAST, "chain", 4},    {IBSHIFT_BCAST, "chain", 32},
                {IBSHIFT_BCAST, "chain", 64},   {IBSHIFT_REDUCE, "chain", 64}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibshift_crowd crowd;
        struct ibshift_nodes nodes;
        struct ibshift_plan plan = {.ranks = 64, .commutative = true, .nodes = &nodes};
        struct ibshift_question question = {
            .collective = rows[i].collective,
            .plan = &plan,
            .bytes = 256 * 4096,
            .window = 32,
            .model = &ibshift_model_typical,
            .near = &ibshift_model_node,
            .crowd = &crowd,
            .wish = {.alg = ibshift_alg_find(rows[i].collective, rows[i].name),
                     .radix = 1,
                     .segment = 4096}};
        struct ibshift_choice own;
        double all;

        make_hosts(64, rows[i].per_host, false, true, &crowd, &nodes);
        own = ibshift_choose_best(&question).best;
        assert_ptr_equal(own.alg, question.wish.alg);
        assert_int_equal(own.segments, 256);
        all = whole(&question, &own);
        print_message("%s, %u a host: %.0f us, %.0f of few segments\n", rows[i].name,
                      (unsigned)rows[i].per_host, all, own.price.last);
        assert_true(own.price.last > 0.8 * all && own.price.last < 1.25 * all);
        ibshift_nodes_free(&nodes);
        ibshift_crowd_free(&crowd);
    }
}

/* Where ranks tell each other sizes first, that is paid for, too. */
static void counts_are_in_the_price_of_many_ranks(void **state)
{
    struct ibshift_crowd crowd;
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = 128, .nodes = &nodes};
    struct ibshift_question question = {
        .collective = IBSHIFT_GATHER,
        .wish = {.alg = ibshift_alg_find(IBSHIFT_GATHER, "by_node_linear")},
        .plan = &plan,
        .bytes = 4096,
        .window = 32,
        .model = &ibshift_model_typical,
        .near = &ibshift_model_node,
        .crowd = &crowd};
    struct ibshift_choice known, told;

    make_hosts(128, 4, false, true, &crowd, &nodes);
    known = ibshift_choose_best(&question).best;
    question.needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    told = ibshift_choose_best(&question).best;
    assert_ptr_equal(known.alg, question.wish.alg);
    assert_ptr_equal(told.alg, question.wish.alg);
    print_message("%.2f us, %.2f with counts\n", known.price.last, told.price.last);
    assert_true(told.price.last > known.price.last);
    assert_true(told.price.messages > known.price.messages);
    ibshift_nodes_free(&nodes);
    ibshift_crowd_free(&crowd);
}

/* Ranks on other nodes that a rank exchanges messages with; and marks them. */
static uint32_t peers_elsewhere(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                                uint32_t rank, uint32_t *seen)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t rounds = alg->rounds(plan, rank), count = 0;

    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t emitted = alg->emit(plan, rank, round, steps);

        for (uint32_t i = 0; i < emitted; i++) {
            if (!ibshift_step_is_local(&steps[i]) && seen[steps[i].peer] != rank + 1 &&
                plan->nodes->node_of[steps[i].peer] != plan->nodes->node_of[rank]) {
                seen[steps[i].peer] = rank + 1;
                count++;
            }
        }
    }
    return count;
}

/* At most a connection for each node; those between leaders are also what sizes are told over. */
static void has_few_peers(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    uint32_t *seen = calloc(plan->ranks, sizeof(*seen)), most = 0;

    assert_non_null(seen);
    for (uint32_t rank = 0; rank<plan->ranks; rank += plan->ranks> 1024 ? 97 : 1) {
        uint32_t peers = peers_elsewhere(alg, plan, rank, seen);

        most = peers > most ? peers : most;
    }
    print_message("at most %u connections a rank\n", most);
    assert_true(most > 0 && most < plan->nodes->nodes);
    free(seen);
}

/* What goes by node of a v-variant, unasked, and how much a leader then holds; of one rank a host, nothing does. */
static void short_blocks_of_vectors_go_by_node(void **state)
{
    static const uint32_t shapes[][2] = {{64, 1}, {64, 8}, {1024, 16}, {12288, 96}};
    static const enum ibshift_collective rows[] = {IBSHIFT_GATHER, IBSHIFT_SCATTER,
                                                   IBSHIFT_ALLTOALL};

    (void)state;
    for (size_t i = 0; i < 4 * 3; i++) {
        uint32_t ranks = shapes[i / 3][0], per_host = shapes[i / 3][1];
        struct ibshift_crowd crowd;
        struct ibshift_nodes nodes;
        struct ibshift_plan plan = {.ranks = ranks, .nodes = &nodes};
        struct ibshift_question question = {.collective = rows[i % 3],
                                            .needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE,
                                            .plan = &plan,
                                            .bytes = IBSHIFT_SIZE_UNKNOWN,
                                            .window = 32,
                                            .model = &ibshift_model_typical,
                                            .near = &ibshift_model_node,
                                            .crowd = &crowd,
                                            .leader_memory = 1 << 24,
                                            .is_brief = true};
        struct ibshift_choice best;

        make_hosts(ranks, per_host, false, true, &crowd, &nodes);
        best = ibshift_choose(&question).best;
        print_message("%s, %u hosts of %u ranks: %s, %u leaders, blocks up to %llu B, %.1f us\n",
                      ibshift_collective_name(rows[i % 3]), ranks / per_host, per_host,
                      best.alg->name, best.leaders, (unsigned long long)best.most, best.price.last);
        assert_true((best.most > 0) == (per_host > 1));
        if (best.most > 0) {
            ibshift_choice_take(&best, &plan);
            assert_true((best.alg->flags & question.needs) == IBSHIFT_ALG_SIZES_NODE);
            assert_true(best.alg->tmp(&plan, 0) * best.most <= question.leader_memory);
            has_few_peers(best.alg, &plan);
        }
        ibshift_nodes_free(&nodes);
        ibshift_crowd_free(&crowd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_blocks_of_vectors_go_by_node),
        cmocka_unit_test(a_glance_at_hosts_is_good_enough),
        cmocka_unit_test(a_glance_at_uneven_hosts_is_good_enough),
        cmocka_unit_test(many_segments_of_few_hosts_have_a_price),
        cmocka_unit_test(counts_are_in_the_price_of_many_ranks),
        cmocka_unit_test(what_is_seen_of_many_ranks_is_little),
        cmocka_unit_test(a_brief_glance_is_the_same),
        cmocka_unit_test(pieces_of_many_ranks_fill_the_wire),
        cmocka_unit_test(what_is_seen_of_many_segments_is_little),
        cmocka_unit_test(a_glance_at_many_segments_is_good_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

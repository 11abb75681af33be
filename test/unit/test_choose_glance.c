/* A glance at many ranks: how little is looked at, and how near its price is to the whole one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "choose/choose.h"
#include "choose/glance.h"

/* Among 1,728 ranks a price does not take more than one among 64: few messages stand for all. */
static void what_is_seen_of_many_ranks_is_little(void **state)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");
    struct ibshift_plan plan = {.ranks = 1728};
    struct ibshift_price_request request = {
        .alg = alg, .plan = &plan, .model = &ibshift_model_typical, .bytes = 8192, .limit = 64};
    struct ibshift_plan few = {.ranks = 8};
    struct ibshift_price many, fewer;

    (void)state;
    assert_int_equal(ibshift_price(&request, &many), -E2BIG);
    assert_int_equal(ibshift_glance(&request, &many), 0);
    request.plan = &few;
    assert_int_equal(ibshift_price(&request, &fewer), 0);
    assert_in_range(fewer.messages, 56, 56);
    assert_true(many.last > 1727.0 / 7 * 0.7 * fewer.last);
    assert_true(many.last < 1727.0 / 7 * 1.3 * fewer.last);
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

    (void)state;
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

    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_seen_of_many_ranks_is_little),
        cmocka_unit_test(what_is_seen_of_many_segments_is_little),
        cmocka_unit_test(a_glance_at_many_segments_is_good_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Trials of a choice: whose turn it is, what is compared, and who the rivals are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "choose/choose.h"
#include "choose/trial.h"

/* A rival has one call in a period, the one that it is compared with comes just before. */
static void turns_are_counted(void **state)
{
    (void)state;
    for (uint32_t period = 2; period <= 100; period += 49) {
        struct ibshift_trial trial = {.calls = 0};

        for (uint32_t call = 1; call <= 3 * period; call++) {
            enum ibshift_trial_turn turn = ibshift_trial_next(&trial, period);

            assert_int_equal(turn == IBSHIFT_TRIAL_RIVAL, call % period == 0);
            assert_int_equal(turn == IBSHIFT_TRIAL_OWN, (call + 1) % period == 0);
        }
    }
}

static void quartiles_are_kept(void **state)
{
    static const uint64_t times[IBSHIFT_TRIAL_CALLS] = {70, 1000000, 20, 50, 90, 10, 80, 30, 60};
    struct ibshift_trial trial = {.calls = 0};

    (void)state;
    for (int i = 0; i < IBSHIFT_TRIAL_CALLS; i++) {
        assert_false(ibshift_trial_is_full(&trial));
        ibshift_trial_take(&trial, IBSHIFT_TRIAL_RIVAL, times[i]);
        ibshift_trial_take(&trial, IBSHIFT_TRIAL_OWN, 1000 - i);
    }
    assert_true(ibshift_trial_is_full(&trial));
    ibshift_trial_take(&trial, IBSHIFT_TRIAL_RIVAL, 1);
    assert_int_equal(ibshift_trial_quartile(&trial, IBSHIFT_TRIAL_RIVAL), 30);
    assert_int_equal(ibshift_trial_quartile(&trial, IBSHIFT_TRIAL_OWN), 994);
}

/* What is hardly less is no gain; what all wait for a late rank changes nothing in who is faster. */
static void a_rival_must_gain(void **state)
{
    (void)state;
    assert_true(ibshift_trial_is_better(89, 100));
    assert_false(ibshift_trial_is_better(90, 100));
    assert_false(ibshift_trial_is_better(100, 89));
    assert_false(ibshift_trial_is_better(1000 + 89, 1000 + 100));
}

static void rivals_are_other_rows(void **state)
{
    struct ibshift_plan plan = {.ranks = 16, .commutative = true};
    struct ibshift_question question = {.collective = IBSHIFT_ALLREDUCE,
                                        .plan = &plan,
                                        .bytes = 4096,
                                        .model = &ibshift_model_typical};
    struct ibshift_choice own = ibshift_choose_best(&question).best, found[8], first;
    int count = ibshift_choose_rivals(&question, &own, 4, found, 8);

    (void)state;
    assert_in_range(count, 2, 8);
    for (int i = 0; i < count; i++) {
        assert_ptr_not_equal(found[i].alg, own.alg);
        assert_int_equal(found[i].alg->collective, IBSHIFT_ALLREDUCE);
        assert_int_equal(found[i].alg->flags & IBSHIFT_ALG_NODES, 0); /* there are none */
        assert_true(found[i].price.last <= 4 * own.price.last);
        assert_true(i == 0 || found[i].price.last >= found[i - 1].price.last);
    }
    first = found[0];
    assert_int_equal(ibshift_choose_rivals(&question, &own, 4, found, 1), 1);
    assert_ptr_equal(found[0].alg, first.alg);
    assert_int_equal(ibshift_choose_rivals(&question, &own, 0.5, found, 8), 0);
}

static int spaces;

struct ibshift_price_space *__real_ibshift_price_space_new(void);
struct ibshift_price_space *__wrap_ibshift_price_space_new(void);

struct ibshift_price_space *__wrap_ibshift_price_space_new(void)
{
    spaces++;
    return __real_ibshift_price_space_new();
}

/* All prices of a search are found in one space. */
static void a_search_has_one_space(void **state)
{
    struct ibshift_plan plan = {.ranks = 16, .commutative = true};
    struct ibshift_question question = {.collective = IBSHIFT_ALLREDUCE,
                                        .plan = &plan,
                                        .bytes = 4096,
                                        .model = &ibshift_model_typical};
    struct ibshift_choice own, found[8];

    (void)state;
    spaces = 0;
    own = ibshift_choose_best(&question).best;
    assert_int_equal(spaces, 1);
    assert_in_range(ibshift_choose_rivals(&question, &own, 4, found, 8), 2, 8);
    assert_int_equal(spaces, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_counted),      cmocka_unit_test(quartiles_are_kept),
        cmocka_unit_test(a_rival_must_gain),      cmocka_unit_test(rivals_are_other_rows),
        cmocka_unit_test(a_search_has_one_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

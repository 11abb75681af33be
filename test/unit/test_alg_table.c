/* The table of algorithms: names, limits, and what is said about a plan that cannot be. */
#include <errno.h>
#include <string.h>

#include "plan/alg.h"
#include "unit.h"

static void names_are_found_and_unique(void **state)
{
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        assert_ptr_equal(ibshift_alg_find(alg->collective, alg->name), alg);
        assert_true(i == 0 || alg->collective >= ibshift_alg_table[i - 1]->collective);
    }
    assert_null(ibshift_alg_find(IBSHIFT_BARRIER, "nothing"));
}

static void collectives_have_names(void **state)
{
    for (int c = 0; c < IBSHIFT_COLLECTIVES; c++) {
        assert_int_equal(ibshift_collective_find(ibshift_collective_name(c)), c);
    }
    assert_int_equal(ibshift_collective_find("nothing"), -ENOENT);
}

/* What a row names as its stand-in must have no limits itself. */
static void stand_ins_serve_everything(void **state)
{
    const uint32_t limits =
        IBSHIFT_ALG_POWER_OF_TWO | IBSHIFT_ALG_EVEN | IBSHIFT_ALG_COMMUTATIVE_ONLY;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i], *instead;
        bool first = i == 0 || alg->collective != ibshift_alg_table[i - 1]->collective;
        bool wants_order =
            (alg->flags & IBSHIFT_ALG_NODES) != 0 &&
            (alg->collective >= IBSHIFT_REDUCE || alg->collective == IBSHIFT_ALLTOALL);

        assert_int_equal((alg->flags & limits) != 0 || wants_order, alg->instead != NULL);
        assert_false(first && alg->instead != NULL);
        if (alg->instead != NULL) {
            instead = ibshift_alg_find(alg->collective, alg->instead);
            assert_non_null(instead);
            assert_int_equal(instead->flags & limits, 0);
        }
    }
}

/* The blocks of others lie anywhere where ranks have other names. */
static void single_rows_move_one_block_at_a_time(void **state)
{
    int steps_seen = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        for (uint32_t ranks = 1; ranks <= 9 && (alg->flags & IBSHIFT_ALG_SINGLE) != 0; ranks++) {
            struct ibshift_plan plan = {.ranks = ranks, .radix = 1, .segments = 1};

            for (uint32_t round = 0; round < alg->rounds(&plan, ranks - 1); round++) {
                struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
                uint32_t count = alg->emit(&plan, ranks - 1, round, steps);

                for (uint32_t k = 0; k < count; k++) {
                    assert_int_equal(steps[k].count, 1);
                    steps_seen++;
                }
            }
        }
    }
    assert_true(steps_seen > 0);
}

static void refuse(const struct ibshift_alg *alg, struct ibshift_plan plan, int code,
                   const char *text)
{
    char why[160] = "";

    assert_int_equal(ibshift_alg_check(alg, &plan, why, sizeof(why)), code);
    assert_string_equal(why, text);
}

static void broken_plans_are_refused(void **state)
{
    const struct ibshift_alg *bcast = ibshift_alg_find(IBSHIFT_BCAST, "knomial");

    refuse(bcast, (struct ibshift_plan){.ranks = 0, .radix = 1}, -EINVAL,
           "0 ranks: must be 1 to 16777216");
    refuse(bcast, (struct ibshift_plan){.ranks = 4, .root = 4, .radix = 1}, -EINVAL,
           "root 4 of 4 ranks: must be 0 to 3");
    refuse(bcast, (struct ibshift_plan){.ranks = 4, .radix = 17}, -EINVAL,
           "radix 17 for bcast knomial: must be 1 to 16");
    refuse(bcast, (struct ibshift_plan){.ranks = 4, .root = 3, .radix = 16}, 0, "");
}

static void broken_splits_are_refused(void **state)
{
    const struct ibshift_alg *scatter = ibshift_alg_find(IBSHIFT_SCATTER, "split");
    const uint32_t good[] = {0, 0, 1, 2, 1}, none[] = {0, 0, 1, 0, 2}, all[] = {0, 0, 1, 2, 4};

    refuse(scatter, (struct ibshift_plan){.ranks = 4, .split = good}, 0, "");
    refuse(scatter, (struct ibshift_plan){.ranks = 4, .split = none}, -EINVAL,
           "split of 3 blocks: 0 go first, must be 1 to 2");
    refuse(scatter, (struct ibshift_plan){.ranks = 4, .split = all}, -EINVAL,
           "split of 4 blocks: 4 go first, must be 1 to 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_and_unique),
        cmocka_unit_test(collectives_have_names),
        cmocka_unit_test(stand_ins_serve_everything),
        cmocka_unit_test(broken_plans_are_refused),
        cmocka_unit_test(broken_splits_are_refused),
        cmocka_unit_test(single_rows_move_one_block_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

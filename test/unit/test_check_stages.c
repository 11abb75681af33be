/* All-to-all over node orders and tables of stages: place keepers, several ranks a node, own rows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proof/check.h"
#include "plan/order.h"
#include "unit.h"

enum { SLOTS_MAX = 96, RANKS_MAX = 48 };

static uint64_t seed;

static uint32_t pick(uint32_t bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % bound);
}

static void prove(const char *name, const struct ibshift_plan *plan, uint32_t window)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, name);
    struct ibshift_check check = {.window = window, .sizes = true};
    struct ibshift_check_result result;
    int rc = ibshift_check_plan(alg, plan, &check, &result);

    if (rc != 0) {
        fail_msg("%s, %u ranks, window %u: %s", name, plan->ranks, window, result.why);
    }
}

/* Seats at random: some nodes are full, some lack ranks, some are place keepers. */
static uint32_t random_order(uint32_t places, uint32_t slots, uint32_t *rank_at, uint32_t *slot_of)
{
    uint32_t all = places * slots, ranks = 0;

    for (uint32_t slot = 0; slot < all; slot++) {
        bool used = pick(4) > 0 && ranks < RANKS_MAX;

        rank_at[slot] = used ? ranks++ : IBSHIFT_NO_RANK;
    }
    for (uint32_t i = all - 1; i > 0; i--) {
        uint32_t j = pick(i + 1), other = rank_at[j];

        rank_at[j] = rank_at[i];
        rank_at[i] = other;
    }
    for (uint32_t slot = 0; slot < all; slot++) {
        if (rank_at[slot] != IBSHIFT_NO_RANK) {
            slot_of[rank_at[slot]] = slot;
        }
    }
    return ranks;
}

/* In sequence it is the shift that has steps of 1. */
static void same_in_sequence(const struct ibshift_order *order, uint32_t ranks)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "shift");
    struct ibshift_order ones = *order;
    struct ibshift_plan plan = {.ranks = ranks, .order = &ones};
    struct ibshift_plan in_sequence = {.ranks = ranks, .order = order, .in_sequence = true};
    struct ibshift_step a[IBSHIFT_ROUND_STEPS], b[IBSHIFT_ROUND_STEPS];

    ones.step = 1;
    for (uint32_t round = 0; round < alg->rounds(&plan, 0); round++) {
        uint32_t count = alg->emit(&plan, ranks - 1, round, a);

        assert_int_equal(alg->emit(&in_sequence, ranks - 1, round, b), count);
        assert_memory_equal(a, b, count * sizeof(*a));
    }
}

static void shifts_over_any_order(void **state)
{
    uint32_t rank_at[SLOTS_MAX], slot_of[SLOTS_MAX];
    char why[160];

    for (seed = 1; seed < 60; seed++) {
        uint64_t start = seed;
        uint32_t slots = 1 + pick(4), places = 2 + pick(SLOTS_MAX / 4 - 2);
        double share = (1 + pick(99)) / 100.0;
        struct ibshift_order order = {places, slots, ibshift_order_step(places, share), rank_at,
                                      slot_of};
        struct ibshift_plan plan = {.ranks = random_order(places, slots, rank_at, slot_of),
                                    .order = &order};

        if (plan.ranks > 0) {
            assert_int_equal(ibshift_order_check(&order, plan.ranks, why, sizeof(why)), 0);
            prove("shift", &plan, 1);
            prove("shift", &plan, 2);
            same_in_sequence(&order, plan.ranks);
            order.step = places; /* comes to no other place */
            assert_int_equal(ibshift_order_check(&order, plan.ranks, why, sizeof(why)), -EINVAL);
        }
        seed = start;
    }
}

/* The example of order.h, stage by stage. */
static void shift_follows_the_order(void **state)
{
    uint32_t rank_at[] = {4, 1, 0, IBSHIFT_NO_RANK, 2, 3}, slot_of[] = {2, 1, 4, 5, 0};
    const struct ibshift_order order = {3, 2, 1, rank_at, slot_of};
    const struct ibshift_plan plan = {.ranks = 5, .order = &order};
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "shift");
    /* rank 4, place 0 slot 0: the first slots of places 1 and 2, then the second ones of all */
    const uint32_t to[] = {4, 0, 2, 1, IBSHIFT_NO_RANK, 3},
                   from[] = {4, 2, 0, 1, 3, IBSHIFT_NO_RANK};
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    assert_int_equal(alg->rounds(&plan, 4), 6);
    for (uint32_t round = 1; round < 6; round++) {
        uint32_t count = alg->emit(&plan, 4, round, steps), expected = 0;

        if (from[round] != IBSHIFT_NO_RANK) {
            assert_int_equal(steps[expected].kind, IBSHIFT_STEP_RECV);
            assert_int_equal(steps[expected++].peer, from[round]);
        }
        if (to[round] != IBSHIFT_NO_RANK) {
            assert_int_equal(steps[expected].kind, IBSHIFT_STEP_SEND);
            assert_int_equal(steps[expected++].peer, to[round]);
        }
        assert_int_equal(count, expected);
    }
    prove("shift", &plan, 1);
}

/* Stage s: rank r sends to permutation[(s + position of r) % ranks]; an idle stage in the middle.
 */
static void runs_tables(void **state)
{
    enum { RANKS = 7, STAGES = RANKS };
    uint32_t to[RANKS * STAGES], from[RANKS * STAGES], place[RANKS];
    const uint32_t permutation[RANKS] = {3, 0, 6, 2, 5, 1, 4};
    const struct ibshift_stages table = {STAGES, 0, RANKS, to, from};
    const struct ibshift_plan plan = {.ranks = RANKS, .stages = &table};
    char why[160];

    for (uint32_t i = 0; i < RANKS; i++) {
        place[permutation[i]] = i;
    }
    for (uint32_t r = 0; r < RANKS; r++) {
        for (uint32_t s = 0; s < STAGES; s++) {
            uint32_t hop = s < 3 ? s + 1 : s; /* stage 3 is idle */

            to[r * STAGES + s] = s == 3 ? IBSHIFT_NO_RANK : permutation[(place[r] + hop) % RANKS];
            from[r * STAGES + s] =
                s == 3 ? IBSHIFT_NO_RANK : permutation[(place[r] + RANKS - hop) % RANKS];
        }
    }
    assert_int_equal(ibshift_stages_check(&table, RANKS, why, sizeof(why)), 0);
    prove("stages", &plan, 1);
    prove("stages", &plan, 3);
}

/* A rank that holds its own row only emits the same plan. */
static void own_rows_are_enough(void **state)
{
    const uint32_t to[] = {1, 2, 2, 0, 0, 1}, from[] = {2, 1, 0, 2, 1, 0};
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "stages");
    const struct ibshift_stages all = {2, 0, 3, to, from};
    const struct ibshift_plan whole = {.ranks = 3, .stages = &all};

    for (uint32_t rank = 0; rank < 3; rank++) {
        const struct ibshift_stages row = {2, rank, 1, to + 2 * rank, from + 2 * rank};
        const struct ibshift_plan own = {.ranks = 3, .stages = &row};

        for (uint32_t round = 0; round < 2; round++) {
            struct ibshift_step a[IBSHIFT_ROUND_STEPS], b[IBSHIFT_ROUND_STEPS];
            uint32_t count = alg->emit(&whole, rank, round, a);

            assert_int_equal(alg->emit(&own, rank, round, b), count);
            assert_memory_equal(a, b, count * sizeof(a[0]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shifts_over_any_order),
        cmocka_unit_test(shift_follows_the_order),
        cmocka_unit_test(runs_tables),
        cmocka_unit_test(own_rows_are_enough),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Emission is pure: any round at any time gives the same steps, no more than a round may have. */
#include <errno.h>
#include <string.h>

#include "plan/alg_emit.h"
#include "unit.h"

static void backwards_is_the_same(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                                  uint32_t rank)
{
    struct ibshift_step forward[IBSHIFT_ROUND_STEPS + 1], again[IBSHIFT_ROUND_STEPS];
    uint32_t rounds = alg->rounds(plan, rank), sum[2] = {0, 0};

    for (uint32_t round = 0; round < rounds; round++) {
        memset(forward, 0xa5, sizeof(forward));
        sum[0] += alg->emit(plan, rank, round, forward);
        assert_int_equal(forward[IBSHIFT_ROUND_STEPS].kind, 0xa5);
    }
    for (uint32_t round = rounds; round-- > 0;) {
        uint32_t count = alg->emit(plan, rank, round, again);

        assert_true(count <= IBSHIFT_ROUND_STEPS);
        sum[1] += count;
        memset(forward, 0x5a, sizeof(forward));
        assert_int_equal(alg->emit(plan, rank, round, forward), count);
        assert_memory_equal(forward, again, count * sizeof(again[0]));
    }
    assert_int_equal(sum[0], sum[1]);
}

static void every_round_at_any_time(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 8, 17, 64, 257, 1024, 4099};
    char why[160];

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        for (size_t n = 0; n < sizeof(ranks) / sizeof(ranks[0]); n++) {
            for (uint32_t radix = 1; radix <= (alg->radix_max > 0 ? alg->radix_max : 1);
                 radix += 5) {
                struct ibshift_plan plan = {.ranks = ranks[n],
                                            .root = ranks[n] / 3,
                                            .radix = radix,
                                            .segments = 7,
                                            .commutative = n % 2 == 0};

                if (ibshift_alg_check(alg, &plan, why, sizeof(why)) != -ENOTSUP) {
                    backwards_is_the_same(alg, &plan, 0);
                    backwards_is_the_same(alg, &plan, ranks[n] / 2);
                    backwards_is_the_same(alg, &plan, ranks[n] - 1);
                }
            }
        }
    }
}

static void quotients_are_divisions(void **state)
{
    for (uint32_t divisor = 1; divisor <= IBSHIFT_RADIX_MAX + 1; divisor++) {
        for (uint32_t n = 0; n + divisor <= IBSHIFT_RANKS_MAX; n += 97 * divisor) {
            assert_int_equal(emit_quotient(n, divisor), n / divisor);
            assert_int_equal(emit_quotient(n + divisor - 1, divisor), n / divisor);
        }
        assert_int_equal(emit_quotient(IBSHIFT_RANKS_MAX, divisor), IBSHIFT_RANKS_MAX / divisor);
    }
}

static void bits_are_reversed(void **state)
{
    for (uint32_t bit = 0; bit < 32; bit++) {
        assert_int_equal(emit_reverse(UINT32_C(1) << bit), UINT32_C(1) << (31 - bit));
    }
    assert_int_equal(emit_reverse(0x00000b00), 0x00d00000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_at_any_time),
        cmocka_unit_test(quotients_are_divisions),
        cmocka_unit_test(bits_are_reversed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

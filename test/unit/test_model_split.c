/* The optimal split: the search finds what trying everything finds, and the simulation is the
 * faster for it. */
#include <math.h>

#include "choose/price.h"
#include "proof/split.h"
#include "unit.h"

enum { RANKS = 300 };

static const struct ibshift_model models[] = {
    {.latency = 5, .send_max = 2, .recv_max = 1.5, .gap = 3, .gap_byte = 1e-3, .free_messages = 1},
    {.latency = 1,
     .send_max = 0.2,
     .recv_max = 0.2,
     .gap = 0.3,
     .gap_byte = 1e-4,
     .free_messages = 1},
    {.latency = 20, .send_max = 1, .recv_max = 1, .gap = 1, .gap_byte = 0, .free_messages = 1},
};

static void search_equals_trying_all(void **state)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        for (uint64_t bytes = 1; bytes <= 65536; bytes *= 16) {
            const struct ibshift_model *m = &models[i];
            double hop = m->send_max + m->latency + m->recv_max, t[RANKS + 1] = {0};
            double gap = fmax(m->gap, m->send_max), found[RANKS + 1] = {0};
            uint32_t split[RANKS + 1];

            assert_int_equal(0, ibshift_model_split(m, bytes, RANKS, split));
            for (uint32_t p = 2; p <= RANKS; p++) {
                double block = (double)bytes * m->gap_byte;

                t[p] = INFINITY;
                for (uint32_t n = 1; n < p; n++) {
                    t[p] = fmin(t[p], n * block + fmax(hop + t[n], gap + t[p - n]));
                }
                assert_in_range(split[p], 1, p - 1);
                found[p] =
                    split[p] * block + fmax(hop + found[split[p]], gap + found[p - split[p]]);
                assert_true(found[p] <= t[p] * (1 + 1e-12));
            }
        }
    }
}

static double simulate(const uint32_t *split, uint32_t ranks)
{
    struct ibshift_plan plan = {.ranks = ranks, .radix = 1, .segments = 1, .split = split};
    struct ibshift_price_request request = {.alg = ibshift_alg_find(IBSHIFT_SCATTER, "split"),
                                            .plan = &plan,
                                            .model = &models[0],
                                            .bytes = 64};
    struct ibshift_price price;

    assert_int_equal(0, ibshift_price(&request, &price));
    return price.last;
}

static void optimal_is_never_slower_than_halves(void **state)
{
    uint32_t split[RANKS + 1];

    assert_int_equal(0, ibshift_model_split(&models[0], 64, RANKS, split));
    for (uint32_t ranks = 2; ranks <= RANKS; ranks += ranks / 4 + 1) {
        assert_true(simulate(split, ranks) <= simulate(NULL, ranks) + 1e-9);
    }
    assert_true(simulate(split, 256) < 0.8 * simulate(NULL, 256));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(search_equals_trying_all),
        cmocka_unit_test(optimal_is_never_slower_than_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a chain of messages takes: a search leaves plans out by that. */
#include "choose/price.h"
#include "nodes.h"
#include "unit.h"

enum { PLANS = 10000 };

static uint64_t random_state = 1;

static uint32_t below(uint32_t end)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % end;
}

/* No rank's chain takes longer than the plan; whether it has a price. */
static bool is_no_longer(const struct ibshift_price_request *request)
{
    struct ibshift_sizes sizes;
    struct ibshift_price price;
    char why[128];

    if (ibshift_alg_check(request->alg, request->plan, why, sizeof(why)) != 0 ||
        (request->alg->flags & IBSHIFT_ALG_MULTICAST) != 0 || ibshift_price(request, &price) != 0) {
        return false;
    }
    ibshift_sizes_begin(&sizes, request->alg, request->plan, request->bytes, 1);
    for (uint32_t rank = 0; rank < request->plan->ranks; rank++) {
        double chain = ibshift_chain(request, &sizes, rank);

        if (chain > price.last * 1.0001) {
            fail_msg("%s %s of %u ranks, radix %u, %u segments, root %u, %llu B: %.1f us at rank "
                     "%u, and the plan %.1f",
                     ibshift_collective_name(request->alg->collective), request->alg->name,
                     request->plan->ranks, request->plan->radix, request->plan->segments,
                     request->plan->root, (unsigned long long)request->bytes, chain, rank,
                     price.last);
        }
    }
    return true;
}

/* Of any row, radix and root, in segments, with and without nodes. */
static void a_chain_takes_no_longer_than_its_plan(void **state)
{
    static const struct ibshift_model *const models[] = {
        &ibshift_model_typical, &ibshift_model_example, &ibshift_model_software};
    int priced = 0;

    (void)state;
    for (int i = 0; i < PLANS; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[(uint32_t)i % ibshift_alg_count];
        uint32_t ranks = 2 + below(39);
        struct ibshift_nodes nodes = nodes_of_kind((int)below(NODES_KINDS), ranks, &random_state);
        bool has_nodes = below(4) > 0;
        bool has_segments = (alg->flags & IBSHIFT_ALG_SEGMENTS) != 0;
        struct ibshift_plan plan = {.ranks = ranks,
                                    .radix = alg->radix_max > 0 ? 1 + below(alg->radix_max) : 0,
                                    .segments = has_segments ? 1 + below(12) : 1,
                                    .commutative = true,
                                    .root = below(ranks),
                                    .nodes = has_nodes ? &nodes : NULL};
        struct ibshift_price_request request = {.alg = alg,
                                                .plan = &plan,
                                                .model = models[below(3)],
                                                .near = has_nodes ? &ibshift_model_node : NULL,
                                                .bytes = 1 + below(8u << below(18)),
                                                .grants_anew = below(2)};

        assert_non_null(nodes.node_of);
        priced += is_no_longer(&request);
        ibshift_nodes_free(&nodes);
    }
    print_message("%d plans\n", priced);
    assert_true(priced > PLANS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_takes_no_longer_than_its_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

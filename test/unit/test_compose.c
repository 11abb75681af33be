/* Plans of plans: proved for nodes of all kinds, and as few messages between nodes as they say. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "plan/composition.h"
#include "proof/check.h"
#include "unit.h"

static uint64_t cases;

static bool is_rooted(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective == IBSHIFT_SCATTER ||
           alg->collective == IBSHIFT_GATHER || alg->collective == IBSHIFT_REDUCE;
}

static bool is_sized(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective >= IBSHIFT_REDUCE ||
           (alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL)) != 0;
}

static void prove(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                  struct ibshift_check check)
{
    struct ibshift_check_result result;
    int rc;

    check.sizes = is_sized(alg);
    rc = ibshift_check_plan(alg, plan, &check, &result);
    if (rc == -ENOTSUP) {
        assert_true(alg->collective < IBSHIFT_REDUCE ? !plan->nodes->is_spaced
                    : alg->collective < IBSHIFT_SCAN
                        ? !plan->commutative && !plan->nodes->is_ordered
                        : !plan->nodes->is_ordered);
        return;
    }
    if (rc != 0) {
        fail_msg("%s %s, %u ranks on %u nodes, root %u, radix %u, segments %u, leaders %u, window "
                 "%u%s: %s",
                 ibshift_collective_name(alg->collective), alg->name, plan->ranks,
                 plan->nodes->nodes, plan->root, plan->radix, plan->segments, plan->leaders,
                 check.window, check.in_place ? ", in place" : "", result.why);
    }
    cases++;
}

static void prove_all_ways(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    prove(alg, plan, (struct ibshift_check){.window = 1});
    if ((alg->flags & IBSHIFT_ALG_IN_PLACE) != 0) {
        prove(alg, plan, (struct ibshift_check){.window = 1, .in_place = true});
    }
    if (cases % 7 == 0) {
        prove(alg, plan, (struct ibshift_check){.window = 1 + cases % 7});
    }
}

static void prove_nodes(const struct ibshift_alg *alg, const struct ibshift_nodes *nodes,
                        uint32_t ranks)
{
    static const uint32_t radices[] = {1, 2, 7}, segments[] = {1, 2, 7};
    struct ibshift_plan plan = {.ranks = ranks, .nodes = nodes};
    uint32_t leaders = (alg->flags & IBSHIFT_ALG_LEADERS) != 0 ? 4 : 1;

    for (plan.root = 0; plan.root < (is_rooted(alg) ? ranks : 1); plan.root += 1 + ranks / 5) {
        for (plan.leaders = 1; plan.leaders <= leaders; plan.leaders += 3) {
            for (uint32_t i = 0; i < 3; i++) {
                plan.radix = alg->radix_max > 0 ? radices[(i + plan.root) % 3] : 1;
                plan.segments = segments[i];
                for (int folds = alg->collective >= IBSHIFT_REDUCE; folds >= 0; folds--) {
                    plan.commutative = folds == 0;
                    prove_all_ways(alg, &plan);
                }
            }
        }
    }
}

static void every_composed_plan_is_right(void **state)
{
    uint64_t random = 17;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        if ((ibshift_alg_table[i]->flags & IBSHIFT_ALG_NODES) == 0) {
            continue;
        }
        for (uint32_t ranks = 1; ranks <= 25; ranks += 1 + ranks / 8) {
            for (int kind = 0; kind < NODES_KINDS; kind++) {
                struct ibshift_nodes nodes = nodes_of_kind(kind, ranks, &random);

                prove_nodes(ibshift_alg_table[i], &nodes, ranks);
                ibshift_nodes_free(&nodes);
            }
        }
    }
    printf("%llu cases\n", (unsigned long long)cases);
    assert_true(cases > 5000);
}

/* One slot of TMP is said to have another rank's block. */
struct liar {
    ibshift_see_pair *see;
    void *who;
    uint32_t until;
};

static uint32_t lie; /* the slot */

static void see_liar(void *who, uint32_t from, uint32_t to)
{
    struct liar *liar = who;

    liar->see(liar->who, from + (liar->until-- == 0), to);
}

static void wrong_pairs(const struct ibshift_plan *plan, uint32_t rank, ibshift_see_pair *see,
                        void *who)
{
    struct liar liar = {see, who, lie};

    ibshift_alg_find(IBSHIFT_ALLTOALL, "by_node")->tmp_pairs(plan, rank, see_liar, &liar);
}

/* Else the proof of uneven nodes would say nothing of them. */
static void a_wrong_pair_is_found(void **state)
{
    struct ibshift_alg alg = *ibshift_alg_find(IBSHIFT_ALLTOALL, "by_node");
    struct ibshift_check check = {.window = 1};
    struct ibshift_check_result result;
    uint64_t random = 17;
    struct ibshift_nodes nodes = nodes_of_kind(NODES_FILLED, 17, &random); /* one is not full */
    struct ibshift_plan plan = {.ranks = 17, .segments = 1, .leaders = 2, .nodes = &nodes};

    assert_int_equal(ibshift_check_plan(&alg, &plan, &check, &result), 0);
    alg.tmp_pairs = wrong_pairs;
    for (lie = 0; lie < alg.tmp(&plan, 0); lie++) {
        assert_int_equal(ibshift_check_plan(&alg, &plan, &check, &result), -EBADMSG);
        assert_non_null(strstr(result.why, "is for"));
    }
    ibshift_nodes_free(&nodes);
}

/* Messages of a plan that leave their node. */
static uint64_t messages_between(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint64_t sum = 0;

    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        for (uint32_t round = 0; round < alg->rounds(plan, rank); round++) {
            uint32_t count = alg->emit(plan, rank, round, steps);

            for (uint32_t i = 0; i < count; i++) {
                sum += steps[i].kind == IBSHIFT_STEP_SEND &&
                       ibshift_nodes_of(plan, steps[i].peer) != ibshift_nodes_of(plan, rank);
            }
        }
    }
    return sum;
}

static void few_messages_leave_their_node(void **state)
{
    static const struct {
        enum ibshift_collective collective;
        uint64_t messages; /* of four nodes, one segment, one leader */
    } expected[] = {{IBSHIFT_BARRIER, 8},   {IBSHIFT_BCAST, 3},           {IBSHIFT_REDUCE, 3},
                    {IBSHIFT_ALLREDUCE, 8}, {IBSHIFT_GATHER, 4},          {IBSHIFT_SCATTER, 4},
                    {IBSHIFT_ALLGATHER, 9}, {IBSHIFT_REDUCE_SCATTER, 12}, {IBSHIFT_ALLTOALL, 12},
                    {IBSHIFT_SCAN, 5},      {IBSHIFT_EXSCAN, 5}};
    uint32_t host_of[32];
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {
        .ranks = 32, .root = 13, .radix = 1, .segments = 1, .commutative = true, .nodes = &nodes};

    for (uint32_t rank = 0; rank < 32; rank++) {
        host_of[rank] = rank % 4;
    }
    assert_int_equal(ibshift_nodes_make(host_of, 32, &nodes), 0);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const struct ibshift_alg *alg = ibshift_alg_find(expected[i].collective, "by_node");

        assert_non_null(alg);
        assert_int_equal(messages_between(alg, &plan), expected[i].messages);
    }
    ibshift_nodes_free(&nodes);
}

/* As many steps in each round. */
static bool are_alike(const struct ibshift_alg *alg, struct ibshift_plan plan, uint32_t radix)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    struct ibshift_plan other = plan;

    other.radix = radix;
    for (uint32_t rank = 0; rank < plan.ranks; rank++) {
        for (uint32_t round = 0; round < alg->rounds(&plan, rank); round++) {
            if (alg->rounds(&plan, rank) != alg->rounds(&other, rank) ||
                alg->emit(&plan, rank, round, steps) != alg->emit(&other, rank, round, steps)) {
                return false;
            }
        }
    }
    return true;
}

/* Three ranks on each of four nodes: what candidates are left out are others over again (choose/best.c). */
static void radices_above_a_tree_change_nothing(void **state)
{
    static const uint32_t host_of[12] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {
        .ranks = 12, .radix = 2, .segments = 2, .commutative = true, .nodes = &nodes};

    assert_int_equal(ibshift_nodes_make(host_of, 12, &nodes), 0);
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        bool is_local = (alg->flags & IBSHIFT_ALG_INNER) != 0;

        if ((alg->flags & IBSHIFT_ALG_NODES) != 0 && alg->radix_max > 0) {
            assert_int_equal(are_alike(alg, plan, 3), is_local);
        }
    }
    ibshift_nodes_free(&nodes);
}

static void nodes_are_numbered_as_ranks_come_to_them(void **state)
{
    static const uint32_t host_of[] = {4, 1, 4, 1, 4};
    static const uint32_t node_of[] = {0, 1, 0, 1, 0}, place_of[] = {0, 0, 1, 1, 2};
    static const uint32_t first[] = {0, 3, 5}, rank_at[] = {0, 2, 4, 1, 3}, wrong[] = {0, 5};
    struct ibshift_nodes nodes;

    assert_int_equal(ibshift_nodes_make(host_of, 5, &nodes), 0);
    assert_int_equal(nodes.nodes, 2);
    assert_int_equal(nodes.most, 3);
    assert_false(nodes.is_ordered);
    assert_memory_equal(nodes.node_of, node_of, sizeof(node_of));
    assert_memory_equal(nodes.place_of, place_of, sizeof(place_of));
    assert_memory_equal(nodes.first, first, sizeof(first));
    assert_memory_equal(nodes.rank_at, rank_at, sizeof(rank_at));
    ibshift_nodes_free(&nodes);
    assert_int_equal(ibshift_nodes_make(wrong, 2, &nodes), -EINVAL);
}

static void refuses(const struct ibshift_alg *alg, const struct ibshift_plan *plan, int expected,
                    const char *words)
{
    char why[200] = "";

    assert_int_equal(ibshift_alg_check(alg, plan, why, sizeof(why)), expected);
    if (strstr(why, words) == NULL) {
        fail_msg("'%s' says nothing of '%s'", why, words);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    static const uint32_t dealt[] = {0, 1, 0, 1};
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLREDUCE, "by_node");
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = 4, .radix = 1, .segments = 1, .nodes = &nodes};

    assert_int_equal(ibshift_nodes_make(dealt, 4, &nodes), 0);
    refuses(alg, &plan, -ENOTSUP, "ranks in the order of their nodes");
    plan.commutative = true;
    refuses(alg, &plan, 0, "");
    plan.leaders = IBSHIFT_LEADERS_MAX + 1;
    refuses(alg, &plan, -EINVAL, "1025 leaders");
    plan.leaders = IBSHIFT_LEADERS_MAX;
    plan.segments = IBSHIFT_SEGMENTS_MAX;
    refuses(alg, &plan, -EINVAL, "too many");
    ibshift_nodes_free(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_composed_plan_is_right),
        cmocka_unit_test(a_wrong_pair_is_found),
        cmocka_unit_test(few_messages_leave_their_node),
        cmocka_unit_test(radices_above_a_tree_change_nothing),
        cmocka_unit_test(nodes_are_numbered_as_ranks_come_to_them),
        cmocka_unit_test(what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

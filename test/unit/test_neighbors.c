/* Neighbours: the plans of random graphs are proved; what is no topology is refused. */
#include <errno.h>

#include "graphs.h"
#include "proof/check.h"
#include "unit.h"
#include "world.h"

enum { GRAPHS = 600 };

static uint64_t seed;

static void prove(const char *name, enum ibshift_collective collective,
                  const struct ibshift_plan *plan, struct ibshift_check check)
{
    struct ibshift_check_result result;

    if (ibshift_check_plan(ibshift_alg_find(collective, name), plan, &check, &result) != 0) {
        fail_msg("%s, %u ranks, window %u: %s", ibshift_collective_name(collective), plan->ranks,
                 check.window, result.why);
    }
}

static void plans_of_random_graphs_are_right(void **state)
{
    uint64_t random = seed;

    for (uint32_t i = 0; i < GRAPHS; i++) {
        uint32_t ranks = 1 + world_random_below(&random, i % 10 == 0 ? 100 : 12);
        struct ibshift_neighbors graph = graph_draw(ranks, &random);
        const struct ibshift_plan plan = {.ranks = ranks, .neighbors = &graph};

        for (int c = IBSHIFT_NEIGHBOR_ALLGATHER; c <= IBSHIFT_NEIGHBOR_ALLTOALL; c++) {
            prove("linear", c, &plan, (struct ibshift_check){.window = 1, .sizes = true});
            prove("linear", c, &plan,
                  (struct ibshift_check){.window = 1 + i % 7, .sizes = true, .seed = i + 1});
        }
        graph_free(&graph);
    }
}

static int make(const struct ibshift_neighbor_lists *lists)
{
    struct ibshift_neighborhood own;
    int rc = ibshift_neighborhood_make(lists, 1, 4, NULL, &own);

    ibshift_neighborhood_free(&own);
    return rc;
}

static void what_is_no_topology_is_refused(void **state)
{
    static const uint32_t far[] = {2, 4}, selves[] = {1, 1}, self[] = {0, 1};
    const struct ibshift_neighbor_lists right = {selves, selves, 2, 2, false};
    const struct ibshift_neighbor_lists out_of_range = {far, self, 2, 2, false};
    const struct ibshift_neighbor_lists unlike = {selves, self, 2, 2, false};

    assert_int_equal(make(&right), 0);
    assert_int_equal(make(&out_of_range), -EINVAL);
    assert_int_equal(make(&unlike), -EINVAL);
}

/* Distances are those along the order, on both sides. */
static void edges_follow_an_order(void **state)
{
    static uint32_t rank_at[] = {3, 0, 2, 1}, slot_of[] = {1, 3, 2, 0};
    static const uint32_t all[] = {0, 1, 2, 3};
    const struct ibshift_order order = {4, 1, 1, rank_at, slot_of};
    const struct ibshift_neighbor_lists lists = {all, all, 4, 4, false};
    struct ibshift_neighborhood own;

    assert_int_equal(ibshift_neighborhood_make(&lists, 0, 4, &order, &own), 0);
    assert_int_equal(own.selves, 1);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(own.edges[i].rank, rank_at[(1 + 4 - i) % 4]);
        assert_int_equal(own.edges[4 + i].rank, rank_at[(1 + i) % 4]);
        assert_int_equal(own.edges[i].distance, i);
    }
    ibshift_neighborhood_free(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_random_graphs_are_right),
        cmocka_unit_test(what_is_no_topology_is_refused),
        cmocka_unit_test(edges_follow_an_order),
    };

    seed = world_seed(7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

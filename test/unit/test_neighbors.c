/* Neighbours: the plans of random graphs are proved; what is no topology is refused. */
#include <errno.h>
#include <stdlib.h>

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
            prove("linear", c, &plan, (struct ibshift_check){.window = 1 + i % 7, .sizes = true});
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

static bool is_mutual(const int *index, const int *edges, uint32_t rank, uint32_t ranks)
{
    int first = rank == 0 ? 0 : index[rank - 1];
    uint32_t degree = (uint32_t)(index[rank] - first);
    const uint32_t *list = (const uint32_t *)edges + first;
    const struct ibshift_neighbor_lists lists = {list, list, degree, degree, false};
    struct ibshift_neighborhood own;
    bool is_right;

    assert_int_equal(ibshift_neighborhood_make(&lists, rank, ranks, NULL, &own), 0);
    is_right = ibshift_neighbors_are_mutual(index, edges, rank, &own);
    ibshift_neighborhood_free(&own);
    return is_right;
}

/* Ranks 0 and 1 have each other twice and 1 itself once; 3 has 2, which has nobody. */
static void one_sided_graphs_are_seen(void **state)
{
    static const int both_twice[] = {1, 1, 0, 1, 0, 2}, twice_once[] = {1, 1, 0, 1, 1, 2};
    static const int index[] = {2, 5, 5, 6};

    assert_true(is_mutual(index, both_twice, 0, 4));
    assert_true(is_mutual(index, both_twice, 1, 4));
    assert_true(is_mutual(index, both_twice, 2, 4));
    assert_false(is_mutual(index, both_twice, 3, 4));
    assert_false(is_mutual(index, twice_once, 0, 4));
    assert_false(is_mutual(index, twice_once, 1, 4));
}

/* By degree squared the centre would take minutes here. */
static void the_centre_of_a_star_looks_once_at_each(void **state)
{
    enum { RANKS = 1 << 20 };
    int *index = malloc(RANKS * sizeof(*index)), *edges = calloc(2 * RANKS, sizeof(*edges));

    assert_non_null(index);
    assert_non_null(edges);
    for (int i = 0; i < RANKS; i++) {
        index[i] = RANKS - 1 + i;
        edges[i] = i + 1;
    }
    edges[RANKS - 1] = 0;
    assert_true(is_mutual(index, edges, 0, RANKS));
    assert_true(is_mutual(index, edges, RANKS - 1, RANKS));
    edges[2 * RANKS - 3] = 1;
    assert_false(is_mutual(index, edges, 0, RANKS));
    free(index);
    free(edges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_of_random_graphs_are_right),
        cmocka_unit_test(what_is_no_topology_is_refused),
        cmocka_unit_test(edges_follow_an_order),
        cmocka_unit_test(one_sided_graphs_are_seen),
        cmocka_unit_test(the_centre_of_a_star_looks_once_at_each),
    };

    seed = world_seed(7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

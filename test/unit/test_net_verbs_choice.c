/* Which ports are chosen, with and without a list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "net/verbs/choice.h"

static const struct ibshift_port_candidate node[] = {
    {"eth_0", 1, 1, 1, 25000, 0, 0, 0},         {"mlx5_0", 1, 1, 0, 100000, 2, 0xfe80, 0},
    {"mlx5_1", 1, 0, 0, 200000, 0, 0xfe80, 0},  {"mlx5_1", 2, 1, 0, 200000, 0, 0xfe80, 0},
    {"mlx5_2", 1, 1, 0, 200000, 0, 0xfe80, 0},  {"mlx5_3", 1, 1, 0, 200000, 0, 0xfe81, 0},
    {"mlx5_10", 1, 1, 0, 200000, 1, 0xfe80, 0},
};
enum { NODE = 7 };

static void nearest_fastest_active_of_one_network(void **state)
{
    int out[4];
    assert_int_equal(ibshift_port_choose(node, NODE, NULL, 4, out), 2);
    assert_int_equal(out[0], 3);
    assert_int_equal(out[1], 4);
    assert_int_equal(ibshift_port_choose(node, NODE, "", 1, out), 1);
    assert_int_equal(ibshift_port_choose(node, 1, NULL, 4, out), 1);
    assert_int_equal(ibshift_port_choose(node + 2, 1, NULL, 4, out), 0);
    assert_int_equal(ibshift_port_choose(node, 0, NULL, 4, out), 0);
}

static void list_names_what_is_taken(void **state)
{
    int out[4];
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_3:1,eth_0", 4, out), 2);
    assert_int_equal(out[0], 5);
    assert_int_equal(out[1], 0);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_1", 4, out), 1);
    assert_int_equal(out[0], 3);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_1:1", 4, out), 0);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2,mlx5_2:1", 4, out), 1);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2,mlx5_3", 1, out), 1);
}

/* For bonded cables, of which each queue pair has one. */
static void a_port_comes_as_often_as_it_is_named(void **state)
{
    int out[4];
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2:1,mlx5_2:1", 4, out), 2);
    assert_int_equal(out[0], 4);
    assert_int_equal(out[1], 4);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2:1,mlx5_2:1", 1, out), 1);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2,mlx5_2", 4, out), 1);
    assert_int_equal(ibshift_port_choose(node, NODE, "mlx5_2:1,mlx5_2", 4, out), 1);
}

static void bad_lists_are_refused_at_their_place(void **state)
{
    static const struct {
        const char *list;
        int at;
    } bad[] = {{"mlx5_0:", 7}, {"mlx5_0:0", 8}, {"mlx5_0:256", 10}, {",mlx5_0", 0},
               {"mlx5_0,", 6}, {"mlx5 0", 4},   {"mlx5_0:1x", 8},   {"a:1:2", 3}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *error = NULL;
        assert_int_equal(ibshift_port_list_check(bad[i].list, &error), -EINVAL);
        assert_int_equal(error - bad[i].list, bad[i].at);
    }
    const char *error = NULL;
    assert_int_equal(ibshift_port_list_check("mlx5_0:1,mlx4-bond.2", &error), 0);
    assert_int_equal(ibshift_port_list_check("", &error), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_fastest_active_of_one_network),
        cmocka_unit_test(list_names_what_is_taken),
        cmocka_unit_test(a_port_comes_as_often_as_it_is_named),
        cmocka_unit_test(bad_lists_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

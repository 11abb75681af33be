/* Which ports are chosen, with and without a list, and which GID of a port. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "net/verbs/choice.h"
#include "unit.h"

static const struct ibshift_port_candidate node[] = {
    {"eth_0", 1, 1, 1, 25000, 0, 0, 0},         {"mlx5_0", 1, 1, 0, 100000, 2, 0xfe80, 0},
    {"mlx5_1", 1, 0, 0, 200000, 0, 0xfe80, 0},  {"mlx5_1", 2, 1, 0, 200000, 0, 0xfe80, 0},
    {"mlx5_2", 1, 1, 0, 200000, 0, 0xfe80, 0},  {"mlx5_3", 1, 1, 0, 200000, 0, 0xfe81, 0},
    {"mlx5_10", 1, 1, 0, 200000, 1, 0xfe80, 0},
};
enum { NODE = 7 };

/* A port that is named with its number comes as often as it is: for bonded cables, of which each queue
   pair has one. */
static void ports(void **state)
{
    static const struct {
        const char *list;
        int first, n, max, count, out[2];
    } rows[] = {
        {NULL, 0, NODE, 4, 2, {3, 4}}, /* nearest, fastest, active, of one network */
        {"", 0, NODE, 1, 1, {3}},
        {NULL, 0, 1, 4, 1, {0}},
        {NULL, 2, 1, 4, 0, {0}},
        {NULL, 0, 0, 4, 0, {0}},
        {"mlx5_3:1,eth_0", 0, NODE, 4, 2, {5, 0}},
        {"mlx5_1", 0, NODE, 4, 1, {3}},
        {"mlx5_1:1", 0, NODE, 4, 0, {0}},
        {"mlx5_2,mlx5_2:1", 0, NODE, 4, 1, {4}},
        {"mlx5_2,mlx5_3", 0, NODE, 1, 1, {4}},
        {"mlx5_2:1,mlx5_2:1", 0, NODE, 4, 2, {4, 4}},
        {"mlx5_2:1,mlx5_2:1", 0, NODE, 1, 1, {4}},
        {"mlx5_2,mlx5_2", 0, NODE, 4, 1, {4}},
        {"mlx5_2:1,mlx5_2", 0, NODE, 4, 1, {4}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int out[4];

        assert_int_equal(
            ibshift_port_choose(node + rows[i].first, rows[i].n, rows[i].list, rows[i].max, out),
            rows[i].count);
        assert_memory_equal(out, rows[i].out, (size_t)rows[i].count * sizeof(out[0]));
    }
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

/* The first of a table that are chosen from; a forced index; which place, and its address. */
static void gids(void **state)
{
    static const struct {
        uint8_t type;
        uint32_t index;
        const char *address;
    } all[] = {
        {IBSHIFT_GID_ROCE_V1, 0, "fe80::1"},
        {IBSHIFT_GID_ROCE_V2, 1, "fe80::1"},
        {IBSHIFT_GID_ROCE_V1, 2, "::ffff:10.0.0.1"},
        {IBSHIFT_GID_ROCE_V2, 3, "::ffff:10.0.0.1"},
        {IBSHIFT_GID_ROCE_V2, 7, "2001:db8::2"},
        {IBSHIFT_GID_ROCE_V2, 6, "2001:db8::3"},
        {IBSHIFT_GID_ROCE_V2, 9, "fe80::"},
        {IBSHIFT_GID_IB, 1, "2001:db8::2"},
        {IBSHIFT_GID_IB, 0, "fe80::2"},
    };
    static const struct {
        int first, n, is_ethernet, forced, chosen;
    } rows[] = {
        {0, 5, 1, -1, 3},      {0, 3, 1, -1, 1},       {0, 1, 1, -1, 0},      {4, 2, 1, -1, 1},
        {7, 2, 0, -1, 1},      {0, 7, 1, 2, 2},        {0, 7, 1, 9, -ENOENT}, /* empty */
        {0, 7, 1, 8, -ENOENT}, {0, 0, 1, -1, -ENOENT},
    };
    struct ibshift_gid table[sizeof(all) / sizeof(all[0])];
    char text[46];

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        table[i] = (struct ibshift_gid){.index = all[i].index, .type = all[i].type};
        assert_int_equal(inet_pton(AF_INET6, all[i].address, table[i].raw), 1);
        assert_string_equal(ibshift_gid_text(table[i].raw, text), all[i].address);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(ibshift_gid_choose(table + rows[i].first, rows[i].n, rows[i].is_ethernet,
                                            rows[i].forced),
                         rows[i].chosen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports),
        cmocka_unit_test(bad_lists_are_refused_at_their_place),
        cmocka_unit_test(gids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

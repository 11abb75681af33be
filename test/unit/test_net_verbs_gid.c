/* Which GID of a table is chosen. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "net/verbs/gid.h"

static struct ibshift_gid gid(uint32_t index, int type, const char *address)
{
    struct ibshift_gid g = {.index = index, .type = (uint8_t)type};
    assert_int_equal(inet_pton(AF_INET6, address, g.raw), 1);
    return g;
}

static void prefers_roce_v2_with_ipv4(void **state)
{
    struct ibshift_gid table[] = {
        gid(0, IBSHIFT_GID_ROCE_V1, "fe80::1"),
        gid(1, IBSHIFT_GID_ROCE_V2, "fe80::1"),
        gid(2, IBSHIFT_GID_ROCE_V1, "::ffff:10.0.0.1"),
        gid(3, IBSHIFT_GID_ROCE_V2, "::ffff:10.0.0.1"),
        gid(4, IBSHIFT_GID_ROCE_V2, "2001:db8::1"),
    };
    assert_int_equal(ibshift_gid_choose(table, 5, 1, -1), 3);
    assert_int_equal(ibshift_gid_choose(table, 3, 1, -1), 1);
    assert_int_equal(ibshift_gid_choose(table, 1, 1, -1), 0);
}

static void prefers_routable_to_link_local(void **state)
{
    struct ibshift_gid table[] = {
        gid(5, IBSHIFT_GID_ROCE_V2, "fe80::2"),
        gid(7, IBSHIFT_GID_ROCE_V2, "2001:db8::2"),
        gid(6, IBSHIFT_GID_ROCE_V2, "2001:db8::3"),
    };
    assert_int_equal(ibshift_gid_choose(table, 3, 1, -1), 2);
}

static void infiniband_takes_the_first(void **state)
{
    struct ibshift_gid table[] = {
        gid(1, IBSHIFT_GID_IB, "2001:db8::2"),
        gid(0, IBSHIFT_GID_IB, "fe80::2"),
    };
    assert_int_equal(ibshift_gid_choose(table, 2, 0, -1), 1);
}

static void forced_index_wins_unless_empty(void **state)
{
    struct ibshift_gid table[] = {
        gid(0, IBSHIFT_GID_ROCE_V2, "::ffff:10.0.0.1"),
        gid(1, IBSHIFT_GID_ROCE_V1, "fe80::2"),
        gid(2, IBSHIFT_GID_ROCE_V2, "fe80::"),
    };
    assert_int_equal(ibshift_gid_choose(table, 3, 1, 1), 1);
    assert_int_equal(ibshift_gid_choose(table, 3, 1, 2), -ENOENT);
    assert_int_equal(ibshift_gid_choose(table, 3, 1, 9), -ENOENT);
    assert_int_equal(ibshift_gid_choose(table, 0, 1, -1), -ENOENT);
}

static void text_is_an_address(void **state)
{
    char text[46];
    struct ibshift_gid g = gid(0, IBSHIFT_GID_ROCE_V2, "::ffff:10.0.0.1");
    assert_string_equal(ibshift_gid_text(g.raw, text), "::ffff:10.0.0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefers_roce_v2_with_ipv4),
        cmocka_unit_test(prefers_routable_to_link_local),
        cmocka_unit_test(infiniband_takes_the_first),
        cmocka_unit_test(forced_index_wins_unless_empty),
        cmocka_unit_test(text_is_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of messages by peer and key. */
#include <stdlib.h>

#include "net/match.h"
#include "unit.h"

enum { COUNT = 5000 };

static void finds_what_is_in_it_and_nothing_else(void **state)
{
    struct ibshift_match_table table;
    struct ibshift_match *entry = calloc(COUNT, sizeof(*entry));

    assert_non_null(entry);
    assert_int_equal(ibshift_match_init(&table), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        entry[i].peer = i % 7;
        entry[i].key = (struct ibshift_net_key){.comm = i % 3, .seq = i / 11, .tag = i};
        ibshift_match_add(&table, &entry[i]);
    }
    for (uint32_t i = 0; i < COUNT; i += 2) {
        ibshift_match_remove(&entry[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        struct ibshift_match *found = ibshift_match_find(&table, entry[i].peer, &entry[i].key);
        assert_ptr_equal(found, i % 2 != 0 ? &entry[i] : NULL);
        assert_null(ibshift_match_find(&table, entry[i].peer + 1, &entry[i].key));
    }
    assert_int_equal(table.count, COUNT / 2);
    ibshift_match_free(&table);
    free(entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_is_in_it_and_nothing_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the order of arrivals says about an adapter's turns. */
#include <string.h>

#include "doctor/turn.h"
#include "unit.h"

enum { LENGTH = 64 * 1024 };

/* Words of the queue pair's digits; an arrival for each. */
static uint32_t told(const char *arrivals)
{
    uint8_t from[TURN_ARRIVALS];
    uint32_t count = (uint32_t)strlen(arrivals);

    for (uint32_t i = 0; i < count; i++) {
        from[i] = (uint8_t)(arrivals[i] - '0');
    }
    return turn_bytes(from, count, LENGTH);
}

static void a_turn_for_each_of_the_others(void **state)
{
    assert_int_equal(told("12"
                          "0"
                          "12121212"
                          "0"
                          "1212"),
                     LENGTH / 4);
    assert_int_equal(told("0"
                          "2121"
                          "0"
                          "21"),
                     LENGTH / 2);
    assert_int_equal(told("0"
                          "121"
                          "0"),
                     43 * 1024); /* 1.5 turns, to the nearest KiB */
}

/* Turns of queue pairs, not of messages: four packets each, of the long message too. */
static void short_messages_come_in_runs(void **state)
{
    assert_int_equal(told("0"
                          "1111222211112222"
                          "0"),
                     LENGTH / 2);
}

/* Who is late once sees several turns as one run: the median stays. */
static void a_late_look_changes_nothing(void **state)
{
    assert_int_equal(told("0"
                          "121212"
                          "111222"
                          "12121212"
                          "0"),
                     6 * 1024); /* 10 turns of 6.4 */
}

static void whole_messages_and_none(void **state)
{
    assert_int_equal(told("1212"
                          "00"
                          "1212"),
                     LENGTH);
    assert_int_equal(told("0"
                          "1"
                          "0"),
                     LENGTH); /* a turn is no longer than the message */
    assert_int_equal(told("1212"
                          "0"
                          "1212"),
                     0);
    assert_int_equal(told(""), 0);
}

static void the_median_of_rounds(void **state)
{
    uint32_t rounds[] = {9, 1, 4, 5, 3};

    assert_int_equal(turn_median(rounds, 5), 4);
    assert_int_equal(rounds[0], 1);
    assert_int_equal(rounds[4], 9);
    assert_int_equal(turn_median(rounds, 0), 0);
}

static void what_a_peer_says_has_bounds(void **state)
{
    static const uint32_t all[] = {0, 2048, LENGTH}, longer[] = {1024, LENGTH + TURN_UNIT},
                          odd[] = {1023};

    assert_true(turn_is_heard(all, 3, LENGTH));
    assert_false(turn_is_heard(longer, 2, LENGTH));
    assert_false(turn_is_heard(odd, 1, LENGTH));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_for_each_of_the_others),
        cmocka_unit_test(short_messages_come_in_runs),
        cmocka_unit_test(a_late_look_changes_nothing),
        cmocka_unit_test(whole_messages_and_none),
        cmocka_unit_test(the_median_of_rounds),
        cmocka_unit_test(what_a_peer_says_has_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

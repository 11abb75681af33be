/* Limits that count up for ever, and how a stock is shared out. */
#include "net/verbs/credit.h"
#include "unit.h"

static void news_may_come_in_any_order(void **state)
{
    uint32_t limit = 0xfffffff0u;

    ibshift_limit_advance(&limit, 0xfff8);
    assert_int_equal(limit, 0xfffffff8u);
    ibshift_limit_advance(&limit, 0x0004);
    assert_int_equal(limit, 4);
    ibshift_limit_advance(&limit, 0xfffa);
    assert_int_equal(limit, 4);
    ibshift_limit_advance32(&limit, 0xffffffffu, 64);
    assert_int_equal(limit, 4);
    ibshift_limit_advance32(&limit, 9, 64);
    assert_int_equal(limit, 9);
    limit = 0x90000000u;
    ibshift_limit_advance32(&limit, 0, 64); /* a word that nobody has written for long */
    assert_int_equal(limit, 0x90000000u);
}

static void shares_never_pass_the_stock(void **state)
{
    static const uint32_t stocks[] = {0, 1, 31, 64, 1000, 100000};

    for (int s = 0; s < 6; s++) {
        uint32_t left = stocks[s], previous = 64, with = 0;
        for (int peer = 0; peer < 20000; peer++) {
            uint32_t share = ibshift_stock_share(left, 16, 64);
            assert_true(share <= left && share <= previous);
            previous = share;
            left -= share;
            with += share > 0;
        }
        assert_true(left >= 16 || left == stocks[s]);
        assert_true(stocks[s] < 1000 || with >= 64);
    }
}

/* A sender and a receiver whose news are told only when the rule says so never stop. */
static void telling_by_the_rule_is_enough(void **state)
{
    for (uint32_t window = 1; window <= 64; window++) {
        uint32_t limit = window, told = window, arrived = 0, used = 0, words = 0;
        for (int message = 0; message < 1000; message++) {
            assert_true(used != told);
            used++;
            arrived++;
            limit++;
            if (ibshift_limit_is_news(limit, told, arrived, window)) {
                told = limit;
                words++;
            }
        }
        assert_true(words <= 2 * 1000 / window + 1);
    }
}

/* A stream one way of records of many lengths, of which some are held for long: the sender never
   stays without. */
static void rings_are_told_on_demand(void **state)
{
    enum { LINES = 1024, LONGEST = 65, MESSAGES = 9600 };
    uint32_t limit = LINES, known = LINES, used = 0, asked = 0, words = 0, held = 0, all = 0;
    bool is_asked = false;

    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t lines = 1 + i * 2654435761u % LONGEST;

        assert_true(limit - used >= lines);
        used += lines;
        all += lines;
        bool asks = ibshift_ring_asks(limit, used, asked, LINES);
        asked = asks ? limit : asked;
        is_asked |= asks;
        held = i % 1000 == 999 ? 0 : held + (i % 100 == 0 ? lines : 0);
        if (is_asked && ibshift_ring_answers(used + LINES - held, known, LINES)) {
            known = limit = used + LINES - held;
            is_asked = false;
            words++;
        }
    }
    assert_in_range(words, 1, all / (LINES / 2));
}

/* Of a peer that gives nothing for an hour: the pauses double, up to 128 ms, and all begins again with
   the first slot that it gives. */
static void who_lacks_a_slot_asks_less_and_less_often(void **state)
{
    enum { MOST = 128 };
    const uint64_t ms = 1000 * 1000;
    struct ibshift_asks asks = {0};
    uint64_t now = 77 * ms, asked = 0;

    for (uint32_t limit = 8; limit < 11; limit++) {
        uint64_t pause = 2;
        assert_true(ibshift_asks_now(&asks, limit, now));
        for (int tries = 0; tries < 100; tries++) {
            assert_false(ibshift_asks_now(&asks, limit, now + pause * ms));
            now += pause * ms + 1;
            assert_true(ibshift_asks_now(&asks, limit, now));
            pause = pause < MOST ? 2 * pause : MOST;
        }
        now += ms + 1; /* it gives some */
    }
    for (uint64_t end = now + 3600 * 1000 * ms; now < end; now += ms) {
        asked += ibshift_asks_now(&asks, 11, now);
    }
    assert_in_range(asked, 3600 * 1000 / (MOST + 1), 3600 * 1000 / MOST + 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(news_may_come_in_any_order),
        cmocka_unit_test(shares_never_pass_the_stock),
        cmocka_unit_test(telling_by_the_rule_is_enough),
        cmocka_unit_test(rings_are_told_on_demand),
        cmocka_unit_test(who_lacks_a_slot_asks_less_and_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

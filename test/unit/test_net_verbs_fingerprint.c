/* The fingerprint of records: the same however it is computed, another one when anything is older. */
#include <string.h>

#include "net/verbs/fingerprint.h"
#include "unit.h"

enum { MOST = 8192, GUARD = 32, WORD = 8 };

static uint8_t data[MOST + WORD], older[MOST], copy[MOST + GUARD];

static void fill(uint8_t *at, uint32_t seed)
{
    for (size_t i = 0; i < MOST; i++) {
        seed = seed * 1664525u + 1013904223u;
        at[i] = (uint8_t)(seed >> 24);
    }
}

static void check_copy(uint64_t (*make)(void *to, const void *from, size_t length), size_t length,
                       uint64_t expected)
{
    memset(copy, 0x5a, sizeof(copy));
    assert_int_equal(make(copy + 1, data + 3, length), expected);
    assert_memory_equal(copy + 1, data + 3, length);
    assert_int_equal(copy[0], 0x5a);
    assert_int_equal(copy[1 + length], 0x5a);
}

static void all_ways_have_the_same(void **state)
{
    fill(data, 1);
    for (size_t length = 0; length <= MOST - WORD; length += length < 400 ? 1 : 61) {
        uint64_t expected = ibshift_fingerprint(data + 3, length);

        check_copy(ibshift_fingerprint_copy, length, expected);
        check_copy(ibshift_fingerprint_plainly, length, expected);
        assert_int_equal(ibshift_fingerprint_plainly(NULL, data + 3, length), expected);
    }
}

/* It goes over the wire. */
static void values_stay(void **state)
{
    fill(data, 2);
    assert_int_equal(ibshift_fingerprint(data, 5), 0x8058c21cd0ffea77);
    assert_int_equal(ibshift_fingerprint(data, 100), 0x4dd07a926183ead7);
    assert_int_equal(ibshift_fingerprint(data, 4096), 0xca139b17ee182650);
}

static void every_bit_counts(void **state)
{
    for (size_t length = 1; length <= 300; length += length < 40 ? 1 : 83) {
        uint64_t before;

        fill(data, 3);
        before = ibshift_fingerprint(data, length);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_not_equal(ibshift_fingerprint(data, length), before);
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
}

/* Words of which some are still those of an older message. */
static void check_mixed(size_t length, uint32_t seed)
{
    uint64_t expected = ibshift_fingerprint(data, length);

    for (int times = 0; times < 2000; times++) {
        memcpy(copy, data, length);
        for (size_t at = 0; at + WORD <= length; at += WORD) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 30 == 0) {
                memcpy(copy + at, older + at, WORD);
            }
        }
        if (memcmp(copy, data, length) != 0) {
            assert_int_not_equal(ibshift_fingerprint(copy, length), expected);
        }
    }
}

static void older_words_show(void **state)
{
    static const size_t lengths[] = {64, 128, 1024, 1080};

    for (int i = 0; i < 4; i++) {
        fill(data, 4);
        fill(older, 5);
        check_mixed(lengths[i], 6);
        for (size_t at = 0; at < MOST; at += WORD) { /* other signs */
            memcpy(older + at, data + at, WORD);
            older[at + WORD - 1] ^= 0x80;
        }
        check_mixed(lengths[i], 7);
        for (size_t at = 0; at < MOST;
             at += WORD) { /* small numbers, which only change their places */
            uint64_t number = at / WORD % 3, other = (at / WORD + 1) % 3;
            memcpy(data + at, &number, WORD);
            memcpy(older + at, &other, WORD);
        }
        check_mixed(lengths[i], 8);
        memset(data, 0, MOST);
        check_mixed(lengths[i], 9);
        memset(older, 0xff, MOST);
        check_mixed(lengths[i], 10);
        for (size_t at = 0; at < MOST; at += sizeof(uint32_t)) { /* signs of what is shorter */
            uint32_t signs = 0x80008000u;
            memcpy(older + at, &signs, sizeof(signs));
        }
        check_mixed(lengths[i], 11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ways_have_the_same), cmocka_unit_test(values_stay),
        cmocka_unit_test(every_bit_counts), cmocka_unit_test(older_words_show)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Scratch at the same place each time: which calls have it, and that no other takes memory for it. */
#include "exec/standing.h"
#include "unit.h"

enum { ELEMENTS = 8192, ELEMENT = 4, EAGER = 16384 };

static bool is_near(void *context, uint32_t peer)
{
    return peer < *(const uint32_t *)context;
}

/* An allreduce of two ranks, of which this is rank 0; TMP is a vector in one piece. */
static struct ibshift_op_params allreduce(void)
{
    struct ibshift_op_params params = {
        .alg = ibshift_alg_find(IBSHIFT_ALLREDUCE, "recursive_doubling"),
        .plan = {.ranks = 2, .commutative = true},
        .element = ELEMENT};

    params.blocks[IBSHIFT_TMP] = (struct ibshift_blocks){.unit = ELEMENT * ELEMENTS};
    return params;
}

static char *tmp_of(struct ibshift_standing **standing, uint64_t elements, size_t max_eager,
                    uint32_t near_peers)
{
    struct ibshift_op_params params = allreduce();
    struct ibshift_channels over = {max_eager, is_near, &near_peers};

    params.standing = ibshift_standing_number(standing, &params, elements, false);
    assert_int_not_equal(params.standing, 0);
    return ibshift_standing_tmp(*standing, &params, ELEMENT * ELEMENTS, &over);
}

static void halves_come_in_turn(void **state)
{
    struct ibshift_standing *standing = NULL;
    char *first = tmp_of(&standing, ELEMENTS, EAGER, 0), *second;

    assert_non_null(first);
    second = tmp_of(&standing, ELEMENTS, EAGER, 0);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    assert_ptr_equal(tmp_of(&standing, ELEMENTS, EAGER, 0), first);
    assert_ptr_equal(tmp_of(&standing, ELEMENTS - 1, EAGER, 0), second);
    ibshift_standing_free(standing, false);
}

static void near_and_short_messages_take_none(void **state)
{
    struct ibshift_standing *standing = NULL;

    assert_null(tmp_of(&standing, ELEMENTS, EAGER, 2));
    assert_null(tmp_of(&standing, ELEMENTS - 1, ELEMENT * ELEMENTS, 0));
    assert_non_null(tmp_of(&standing, ELEMENTS - 2, EAGER, 1));
    assert_null(tmp_of(&standing, ELEMENTS, EAGER, 2));
    ibshift_standing_free(standing, false);
}

/* Of as many bytes of data, one with longer elements: other numbers, that no call before has had. */
static void lengths_tell_calls_apart(void **state)
{
    struct ibshift_standing *standing = NULL;
    struct ibshift_op_params params = allreduce();
    uint32_t number[4];

    for (uint32_t i = 0; i < 4; i++) {
        params.element = i / 2 == 0 ? ELEMENT : 2 * ELEMENT;
        number[i] = ibshift_standing_number(&standing, &params, ELEMENTS, false);
        for (uint32_t j = 0; j < i; j++) {
            assert_int_not_equal(number[i], number[j]);
        }
    }
    ibshift_standing_free(standing, true);
    ibshift_standing_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_come_in_turn),
        cmocka_unit_test(near_and_short_messages_take_none),
        cmocka_unit_test(lengths_tell_calls_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Symbolic blocks become addresses: every layout, ranges, gaps, and what does not fit together. */
#include <errno.h>
#include <string.h>

#include "exec/blocks.h"
#include "unit.h"

static char memory[1000];

static void assert_range(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                         ptrdiff_t at, size_t length)
{
    char *address;
    size_t got;

    assert_int_equal(ibshift_blocks_range(blocks, first, count, &address, &got), 0);
    assert_int_equal(got, length);
    if (length > 0) {
        assert_int_equal(address - blocks->base, at);
    }
}

static void uniform_blocks(void **state)
{
    struct ibshift_blocks blocks = {.base = memory, .layout = IBSHIFT_UNIFORM, .unit = 10};

    assert_range(&blocks, 3, 4, 30, 40);
    assert_range(&blocks, 3, 0, 0, 0);
}

static void pieces_of_a_vector(void **state)
{
    struct ibshift_blocks blocks = {
        .base = memory, .layout = IBSHIFT_PIECES, .unit = 4, .pieces = 4, .elements = 10};

    assert_range(&blocks, 0, 1, 0, 12); /* 3, 3, 2, 2 elements */
    assert_range(&blocks, 1, 2, 12, 20);
    assert_range(&blocks, 3, 1, 32, 8);
    assert_range(&blocks, 0, 4, 0, 40);
    blocks.elements = 2; /* fewer elements than pieces */
    assert_range(&blocks, 2, 2, 0, 0);
    assert_range(&blocks, 0, 4, 0, 8);
}

static void counts_with_gaps_are_single_blocks(void **state)
{
    static const int counts[] = {2, 3, 0, 1}, displs[] = {0, 2, 77, 9};
    struct ibshift_blocks blocks = {.base = memory,
                                    .layout = IBSHIFT_INT_COUNTS,
                                    .unit = 4,
                                    .counts = counts,
                                    .displs = displs};
    char *address;
    size_t length;

    assert_range(&blocks, 1, 1, 8, 12);
    assert_range(&blocks, 0, 3, 0, 20);
    assert_range(&blocks, 2, 2, 36, 4);
    assert_range(&blocks, 2, 1, 0, 0);
    assert_int_equal(ibshift_blocks_range(&blocks, 0, 4, &address, &length), -EINVAL);
}

static void wide_counts_pass_2_to_the_31(void **state)
{
    static const size_t counts[] = {1, (size_t)1 << 32};
    static const ptrdiff_t displs[] = {0, 1};
    struct ibshift_blocks blocks = {.base = memory,
                                    .layout = IBSHIFT_SIZE_COUNTS,
                                    .unit = 8,
                                    .size_counts = counts,
                                    .size_displs = displs};
    struct ibshift_blocks uniform = {
        .base = memory, .layout = IBSHIFT_UNIFORM, .unit = (size_t)1 << 31};

    assert_range(&blocks, 0, 2, 0, 8 + ((size_t)8 << 32));
    assert_range(&uniform, 5, 7, (ptrdiff_t)5 << 31, (size_t)7 << 31);
}

static void negative_displacements(void **state)
{
    static const int counts[] = {1, 1}, displs[] = {3, -3};
    struct ibshift_blocks blocks = {.base = memory + 100,
                                    .layout = IBSHIFT_INT_COUNTS,
                                    .unit = 8,
                                    .counts = counts,
                                    .displs = displs};

    assert_range(&blocks, 1, 1, -24, 8);
}

static void copies_go_block_by_block_over_gaps(void **state)
{
    static const int counts[] = {1, 2}, displs[] = {5, 0};
    static const size_t offsets[] = {0, 1, 3, 4};
    char from[] = "abc?", to[] = "......";
    struct ibshift_blocks blocks[IBSHIFT_BUFFERS] = {
        {.base = from, .layout = IBSHIFT_OFFSETS, .unit = 1, .offsets = offsets},
        {.base = to, .layout = IBSHIFT_INT_COUNTS, .unit = 1, .counts = counts, .displs = displs}};
    struct ibshift_step step = {
        .kind = IBSHIFT_STEP_COPY, .buf = IBSHIFT_RECV, .src = IBSHIFT_SEND, .count = 2};
    struct ibshift_piece piece;
    uint32_t i = 0;

    for (uint32_t pieces = 1; i < step.count; pieces++) {
        assert_int_equal(ibshift_blocks_piece(blocks, &step, &i, &piece), 0);
        assert_int_equal(i, pieces);
        memcpy(piece.to, piece.from, piece.length);
    }
    assert_string_equal(to, "bc...a");
    step.first = step.count = 1;
    step.from = 2;
    i = 0;
    assert_int_equal(ibshift_blocks_piece(blocks, &step, &i, &piece), -EMSGSIZE);
}

/* Two rows of TMP for a vector of 5 elements in 3 pieces: 2, 2, 1 and again. */
static uint32_t tmp_of_six(const struct ibshift_plan *plan, uint32_t rank)
{
    return 6;
}

static uint32_t third_of(const struct ibshift_plan *plan, uint32_t rank, uint32_t slot)
{
    return slot % 3;
}

static void tmp_has_the_sizes_of_its_blocks(void **state)
{
    struct ibshift_alg alg = {
        .collective = IBSHIFT_ALLREDUCE, .tmp = tmp_of_six, .tmp_block = third_of};
    struct ibshift_plan plan = {.ranks = 3};
    struct ibshift_blocks sizes = {.layout = IBSHIFT_PIECES, .unit = 8, .pieces = 3, .elements = 5};
    struct ibshift_blocks tmp;
    size_t offsets[7];

    assert_int_equal(ibshift_tmp_offsets(&alg, &plan, 0, &sizes), 7);
    assert_int_equal(ibshift_tmp_layout(&alg, &plan, 0, &sizes, offsets, &tmp), 80);
    tmp.base = memory;
    assert_range(&tmp, 2, 2, 32, 24);
    sizes.elements = 6; /* all alike */
    assert_int_equal(ibshift_tmp_offsets(&alg, &plan, 0, &sizes), 0);
    assert_int_equal(ibshift_tmp_layout(&alg, &plan, 0, &sizes, NULL, &tmp), 96);
    tmp.base = memory;
    assert_range(&tmp, 2, 2, 32, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_blocks),
        cmocka_unit_test(pieces_of_a_vector),
        cmocka_unit_test(counts_with_gaps_are_single_blocks),
        cmocka_unit_test(wide_counts_pass_2_to_the_31),
        cmocka_unit_test(negative_displacements),
        cmocka_unit_test(copies_go_block_by_block_over_gaps),
        cmocka_unit_test(tmp_has_the_sizes_of_its_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

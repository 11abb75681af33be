/* Up to which size blocks of an all-to-all with counts go padded: by what all ranks agree on. */
#include "choose/padded.h"
#include "unit.h"

enum { MANY = 16, FEW = 4 };

static struct ibshift_question question_of(const struct ibshift_plan *plan)
{
    return (struct ibshift_question){.collective = IBSHIFT_ALLTOALL,
                                     .plan = plan,
                                     .bytes = 1,
                                     .window = 32,
                                     .leader_memory = 32 << 20,
                                     .model = &ibshift_model_typical,
                                     .is_brief = true};
}

/* A rank with so many blocks of each of two sizes. */
static uint64_t most_of(uint32_t ranks, uint32_t few, uint64_t few_bytes, uint64_t bytes,
                        const struct ibshift_alg *wish)
{
    struct ibshift_plan plan = {.ranks = ranks, .commutative = true};
    struct ibshift_question question = question_of(&plan);
    struct ibshift_padded_counts counts = {.longest = 0};

    question.wish.alg = wish;
    for (uint32_t i = 0; i < ranks; i++) {
        ibshift_padded_add(&counts, i < few ? few_bytes : bytes);
    }
    return ibshift_padded_most(&question, &counts);
}

static void blocks_are_counted_by_size(void **state)
{
    static const uint64_t bytes[] = {0, 1, 8, 9, 128, 129, 1 << 20};
    static const uint64_t longer[IBSHIFT_PADDED_SIZES] = {6, 4, 3, 2, 1, 1, 1, 1};
    struct ibshift_padded_counts counts = {.longest = 0};

    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        ibshift_padded_add(&counts, bytes[i]);
    }
    assert_memory_equal(counts.longer, longer, sizeof(longer));
    assert_int_equal(counts.longest, 1 << 20);
}

static void equal_blocks_take_what_an_alltoall_takes(void **state)
{
    static const uint64_t bytes[] = {4, 8, 64, 256, 512, 4096, 1 << 20};
    struct ibshift_plan plan = {.ranks = MANY, .commutative = true};
    struct ibshift_question question = question_of(&plan);
    uint64_t longest = 0;

    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        uint64_t most = most_of(MANY, 0, 0, bytes[i], NULL);
        bool is_direct;

        question.bytes = bytes[i] + IBSHIFT_PADDED_WORD;
        is_direct = (ibshift_choose(&question).best.alg->flags & IBSHIFT_ALG_SIZES) != 0;
        assert_true(most == bytes[i] || most == 0);
        assert_true(most == 0 || !is_direct);
        longest = most > longest ? most : longest;
    }
    assert_in_range(longest, 8, 4096);
}

static void few_ranks_need_not_count(void **state)
{
    struct ibshift_plan plan = {.ranks = FEW, .commutative = true};
    struct ibshift_question question = question_of(&plan);

    assert_false(ibshift_padded_may_pay(&question));
    assert_int_equal(most_of(FEW, 0, 0, 8, NULL), 0);
    plan.ranks = MANY;
    assert_true(ibshift_padded_may_pay(&question));
}

static void one_long_block_pads_no_other(void **state)
{
    uint64_t most = most_of(4 * MANY, 1, 1 << 20, 8, NULL);

    assert_in_range(most, 8, 32);
}

static void sparse_blocks_go_from_rank_to_rank(void **state)
{
    assert_int_equal(most_of(4 * MANY, 4 * MANY - 2, 0, 8, NULL), 0);
    assert_int_equal(most_of(4 * MANY, 4 * MANY, 0, 0, NULL), 0);
}

static void what_is_named_carries_all_that_memory_allows(void **state)
{
    const struct ibshift_alg *bruck = ibshift_alg_find(IBSHIFT_ALLTOALL, "bruck");
    const struct ibshift_alg *linear = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");

    assert_int_equal(most_of(FEW, 0, 0, 30, bruck), 32);
    assert_int_equal(most_of(MANY, 0, 0, 8, linear), 0);
    assert_in_range(most_of(FEW, 1, 1 << 20, 100, bruck), 100, 64 * 1024);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_counted_by_size),
        cmocka_unit_test(equal_blocks_take_what_an_alltoall_takes),
        cmocka_unit_test(few_ranks_need_not_count),
        cmocka_unit_test(one_long_block_pads_no_other),
        cmocka_unit_test(sparse_blocks_go_from_rank_to_rank),
        cmocka_unit_test(what_is_named_carries_all_that_memory_allows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

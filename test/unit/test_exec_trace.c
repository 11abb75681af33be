/* What the executor traces are the lines of the plan, all of them, once each. */
#include <stdlib.h>
#include <string.h>

#include "plan/print.h"
#include "world.h"
#include "unit.h"

enum { RANKS = 6, LINES = 4096 };

struct lines {
    char text[LINES][IBSHIFT_STEP_TEXT];
    int count;
};

static struct lines traced, planned;

static void add_line(struct lines *lines, const char *text)
{
    assert_true(lines->count < LINES);
    strcpy(lines->text[lines->count++], text);
}

static void trace(void *context, const struct ibshift_op *op, const char *line)
{
    add_line(context, line);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void sort(struct lines *lines)
{
    qsort(lines->text, (size_t)lines->count, sizeof(lines->text[0]), compare);
}

static void print_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    char text[IBSHIFT_STEP_TEXT];

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        for (uint32_t round = 0; round < alg->rounds(plan, rank); round++) {
            uint32_t count = (uint32_t)alg->emit(plan, rank, round, steps);

            for (uint32_t i = 0; i < count; i++) {
                ibshift_step_format(&steps[i], rank, round, text, sizeof(text));
                add_line(&planned, text);
            }
        }
    }
}

static void check(const struct ibshift_alg *alg, uint64_t *random)
{
    struct ibshift_loop_options loop = {
        .peers = RANKS, .max_eager = 32, .room = 1, .depth = 1, .tick = 1, .delay = 9, .seed = 7};
    struct ibshift_engine_options engine = {.trace = trace, .trace_context = &traced};
    struct work_options options = {
        .alg = alg,
        .plan = {.ranks = RANKS, .root = 1, .radix = 1, .segments = 3, .commutative = true},
        .window = 2,
        .size = 40};
    struct world *world;
    struct work *work;
    char why[200];

    if (ibshift_alg_check(alg, &options.plan, why, sizeof(why)) != 0) {
        return;
    }
    world = world_create(&loop, &engine);
    work = work_create(world, &options, random);
    traced.count = planned.count = 0;
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        work_start(work, rank, 1);
    }
    for (int turn = 0; turn < 100000 && !work_is_done(work); turn++) {
        world_turn(world, random);
    }
    assert_true(work_is_done(work));
    print_plan(alg, &options.plan);
    sort(&traced);
    sort(&planned);
    assert_true(planned.count > 0);
    assert_int_equal(traced.count, planned.count);
    for (int i = 0; i < planned.count; i++) {
        assert_string_equal(traced.text[i], planned.text[i]);
    }
    work_free(work);
    world_free(world);
}

static void trace_is_the_plan(void **state)
{
    uint64_t random = 1;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        check(ibshift_alg_table[i], &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trace_is_the_plan)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

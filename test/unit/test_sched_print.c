/* The text of each kind of step: the contract between the printer and the executor's trace. */
#include <string.h>

#include "plan/print.h"
#include "unit.h"

static void expect(const char *text, struct ibshift_step step, uint32_t rank, uint32_t round)
{
    char line[IBSHIFT_STEP_TEXT];
    int length = ibshift_step_format(&step, rank, round, line, sizeof(line));

    assert_string_equal(text, line);
    assert_int_equal(strlen(text), length);
}

static void messages(void **state)
{
    struct ibshift_step step = {
        .kind = IBSHIFT_STEP_RECV, .buf = IBSHIFT_RECV, .count = 1, .peer = 1, .tag = 1};

    expect("rank 2 round 1: recv RECV[0] <- 1 tag 1", step, 2, 1);
    step = (struct ibshift_step){.kind = IBSHIFT_STEP_SEND,
                                 .buf = IBSHIFT_TMP,
                                 .count = 4,
                                 .tag = 2,
                                 .part = 1,
                                 .need = 2,
                                 .drain = 1};
    expect("rank 2 round 2: send TMP[0..3] -> 0 tag 2.1 need 2 drain 1", step, 2, 2);
    step = (struct ibshift_step){.kind = IBSHIFT_STEP_SEND, .peer = 7};
    expect("rank 0 round 0: send nothing -> 7 tag 0", step, 0, 0);
}

static void local_steps(void **state)
{
    struct ibshift_step step = {.kind = IBSHIFT_STEP_COPY,
                                .buf = IBSHIFT_RECV,
                                .src = IBSHIFT_TMP,
                                .count = 2,
                                .from = 4,
                                .need = 3};

    expect("rank 1 round 3: copy RECV[0..1] = TMP[4..5] need 3", step, 1, 3);
    step.kind = IBSHIFT_STEP_REDUCE;
    step.with = IBSHIFT_RECV;
    expect("rank 1 round 3: reduce RECV[0..1] = TMP[4..5] op RECV[0..1] need 3", step, 1, 3);
    step.kind = IBSHIFT_STEP_REDUCE_AFTER;
    expect("rank 1 round 3: reduce RECV[0..1] = RECV[0..1] op TMP[4..5] need 3", step, 1, 3);
    step.with = IBSHIFT_SEND;
    step.beside = 6;
    expect("rank 1 round 3: reduce RECV[0..1] = SEND[6..7] op TMP[4..5] need 3", step, 1, 3);
}

static void strided_copies(void **state)
{
    struct ibshift_step step = {.kind = IBSHIFT_STEP_COPY,
                                .buf = IBSHIFT_RECV,
                                .src = IBSHIFT_TMP,
                                .strided = IBSHIFT_STRIDED_SOURCE,
                                .count = 6,
                                .from = 5,
                                .run = 1,
                                .stride = -1};

    expect("rank 0 round 0: copy RECV[0..5] = TMP[5, runs of 1 by -1]", step, 0, 0);
    step.strided = IBSHIFT_STRIDED_TARGET;
    expect("rank 0 round 0: copy RECV[0, runs of 1 by -1] = TMP[5..10]", step, 0, 0);
}

static void longest_line_fits(void **state)
{
    struct ibshift_step step = {.kind = IBSHIFT_STEP_REDUCE_AFTER,
                                .buf = IBSHIFT_RECV,
                                .src = IBSHIFT_SEND,
                                .first = UINT32_MAX - 1,
                                .count = 2,
                                .from = UINT32_MAX - 1,
                                .beside = UINT32_MAX - 1,
                                .need = UINT32_MAX,
                                .drain = UINT32_MAX};
    char line[IBSHIFT_STEP_TEXT];

    assert_in_range(ibshift_step_format(&step, UINT32_MAX, UINT32_MAX, line, sizeof(line)), 1,
                    IBSHIFT_STEP_TEXT - 1);
}

static void a_short_buffer_is_cut_and_the_length_told(void **state)
{
    struct ibshift_step step = {
        .kind = IBSHIFT_STEP_SEND, .buf = IBSHIFT_RECV, .count = 1, .need = 1};
    char line[12];

    memset(line, 'x', sizeof(line));
    assert_int_equal(strlen("rank 0 round 0: send RECV[0] -> 0 tag 0 need 1"),
                     ibshift_step_format(&step, 0, 0, line, 8));
    assert_memory_equal("rank 0 \0xxxx", line, sizeof(line));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(local_steps),
        cmocka_unit_test(strided_copies),
        cmocka_unit_test(longest_line_fits),
        cmocka_unit_test(a_short_buffer_is_cut_and_the_length_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

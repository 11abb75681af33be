/* What a net answers when a peer asks after a communicator that it waits on. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "net/given_up.h"

enum { FAILED = 3, ASKED = 7, DEAD = 4, BUSY = 5 };

static const uint64_t second = 1000 * 1000 * 1000ull, start = 1000 * 1000 * 1000 * 1000ull;

/* The communicator ASKED has the members below `members`, and is here if there are any. */
struct asked {
    uint32_t members;
};

static bool is_here(void *context, uint32_t comm, uint32_t member)
{
    const struct asked *asked = context;

    return comm == ASKED && asked->members > 0 &&
           (member == IBSHIFT_ANY_MEMBER || member < asked->members);
}

static struct ibshift_given_up *given_up_of(uint32_t comm, uint32_t peer, int status)
{
    struct ibshift_given_up *given_up = calloc(1, sizeof(*given_up));
    struct ibshift_net_cause with = {.peer = BUSY, .status = -ECONNABORTED};
    struct ibshift_net_cause root = {.peer = peer, .status = status};

    assert_non_null(given_up);
    ibshift_given_up_add_comm(given_up, comm, &with, &root);
    return given_up;
}

static void drop(struct ibshift_given_up *given_up)
{
    ibshift_given_up_free(given_up);
    free(given_up);
}

static void assert_cause(const struct ibshift_net_cause *cause, uint32_t peer, int status)
{
    assert_non_null(cause);
    assert_int_equal(cause->peer, peer);
    assert_int_equal(cause->status, status);
}

/* Asks so many times, with a pause before each; the last answer. */
/* asked NULL: nobody knows what is here. */
static const struct ibshift_net_cause *answer(struct ibshift_given_up *given_up, uint32_t comm,
                                              struct asked *asked, uint64_t now)
{
    given_up->comms =
        (struct ibshift_net_comms){.context = asked, .is_here = asked != NULL ? is_here : NULL};
    return ibshift_given_up_answer(given_up, comm, now);
}

static const struct ibshift_net_cause *ask(struct ibshift_given_up *given_up, struct asked *asked,
                                           uint64_t *now, uint64_t pause, int times)
{
    const struct ibshift_net_cause *cause = NULL;

    for (int i = 0; i < times; i++) {
        *now += pause;
        cause = answer(given_up, ASKED, asked, *now);
    }
    return cause;
}

static void a_late_rank_is_waited_for(void **state)
{
    struct ibshift_given_up *nothing = calloc(1, sizeof(*nothing));
    struct ibshift_given_up *other = given_up_of(FAILED, DEAD, -ETIMEDOUT);
    struct asked here = {.members = DEAD}, absent = {0};
    uint64_t now = start;

    assert_non_null(nothing);
    assert_null(ask(nothing, &absent, &now, second, 100));
    assert_null(ask(nothing, &here, &now, second, 100));
    assert_null(ask(other, &here, &now, second, 100));
    assert_null(answer(other, ASKED, NULL, now));
    assert_null(ibshift_given_up_comm(other, ASKED));
    drop(other);
    drop(nothing);
}

static void what_was_given_up_is_told_with_what_began_it(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(ASKED, DEAD, -EIO);
    struct asked here = {.members = DEAD};

    assert_cause(answer(given_up, ASKED, &here, start), DEAD, -EIO);
    assert_cause(answer(given_up, ASKED, NULL, start), DEAD, -EIO);
    assert_int_equal(ibshift_given_up_comm(given_up, ASKED)->with.peer, BUSY);
    drop(given_up);
}

static void a_dead_member_is_told_and_remembered(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(FAILED, BUSY, -ECONNRESET);
    struct ibshift_net_cause dead = {.peer = DEAD, .status = -ETIMEDOUT};
    struct asked here = {.members = DEAD + 1};

    ibshift_given_up_add_comm(given_up, FAILED + 1, &dead, &dead);
    assert_cause(answer(given_up, ASKED, &here, start), DEAD, -ETIMEDOUT);
    assert_non_null(ibshift_given_up_comm(given_up, ASKED));
    assert_cause(answer(given_up, ASKED, NULL, start), DEAD, -ETIMEDOUT);
    drop(given_up);
}

static void an_error_is_no_death(void **state)
{
    static const int errors[] = {-EIO, -ECONNRESET, -ECONNABORTED, -EMSGSIZE, -ENOMEM};
    struct asked here = {.members = DEAD + 1};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct ibshift_given_up *given_up = given_up_of(FAILED, DEAD, errors[i]);
        uint64_t now = start;
        assert_null(ask(given_up, &here, &now, second, 100));
        assert_null(ibshift_given_up_comm(given_up, ASKED));
        drop(given_up);
    }
}

/* An error has kept one rank from making it: the others are not left waiting for ever. */
static void a_communicator_that_is_never_made_is_told_in_time(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(FAILED, DEAD, -EIO);
    struct asked absent = {0};
    uint64_t now = start;

    assert_null(ask(given_up, &absent, &now, second, 4));
    assert_cause(ask(given_up, &absent, &now, second / 2, 1), DEAD, -EIO);
    drop(given_up);
}

/* Else the questions of one slow collective a minute would add up. */
static void questions_far_apart_do_not_add_up(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(FAILED, DEAD, -EIO);
    struct asked absent = {0};
    uint64_t now = start;

    assert_null(ask(given_up, &absent, &now, 6 * second, 100));
    drop(given_up);
}

static void a_number_that_comes_back_is_another_communicator(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(ASKED, DEAD, -EIO);
    struct asked here = {.members = DEAD + 1}, absent = {0};
    uint64_t now = start;

    assert_false(ibshift_given_up_forget(given_up, ASKED)); /* no collective had begun on it */
    assert_null(ask(given_up, &here, &now, second, 10));
    assert_null(ask(given_up, &absent, &now, second, 4)); /* it may be on its way */
    ibshift_given_up_add_comm(given_up, FAILED, &(struct ibshift_net_cause){0},
                              &(struct ibshift_net_cause){.peer = BUSY, .status = -EIO});
    ibshift_given_up_enter(given_up, ASKED);
    assert_null(ibshift_given_up_comm(given_up, ASKED));
    assert_null(ask(given_up, &absent, &now, second, 4)); /* earlier questions are forgotten too */
    assert_cause(ask(given_up, &absent, &now, second, 1), BUSY, -EIO);
    drop(given_up);
}

static void the_first_reason_stays(void **state)
{
    struct ibshift_given_up *given_up = given_up_of(ASKED, DEAD, -ETIMEDOUT);
    struct ibshift_net_cause later = {.peer = BUSY, .status = -EIO};

    for (uint32_t comm = 0; comm < 100; comm++) {
        ibshift_given_up_add_comm(given_up, comm, &later, &later);
    }
    assert_cause(answer(given_up, ASKED, NULL, start), DEAD, -ETIMEDOUT);
    assert_cause(answer(given_up, 99, NULL, start), BUSY, -EIO);
    drop(given_up);
}

static struct ibshift_ledger *ledger_of(void *context, uint32_t comm)
{
    assert_int_equal(comm, ASKED);
    return context;
}

/* What a peer calls under a number, and what this side does. */
static bool is_unlike(struct ibshift_ledger *ledger, uint32_t badge, uint32_t seq)
{
    struct ibshift_given_up *given_up = calloc(1, sizeof(*given_up));
    struct ibshift_net_key theirs = {.comm = ASKED | badge << IBSHIFT_NET_COMM_BITS, .seq = seq},
                           ours;
    bool is;

    given_up->comms = (struct ibshift_net_comms){.context = ledger, .ledger = ledger_of};
    is = ibshift_given_up_unlike(given_up, BUSY, &theirs, &ours) != NULL;
    assert_int_equal(is, ibshift_given_up_here(given_up, &theirs));
    if (is) {
        assert_int_equal(ibshift_net_comm(ours.comm), ASKED);
        assert_int_not_equal(ours.comm, theirs.comm);
        assert_cause(&ibshift_given_up_comm(given_up, ASKED)->root, BUSY, -EBADMSG);
        assert_null(ibshift_given_up_unlike(given_up, BUSY, &theirs, &ours)); /* once */
    }
    drop(given_up);
    return is;
}

static void who_calls_something_else_is_told_from_who_is_late(void **state)
{
    const uint32_t persistent = IBSHIFT_PERSISTENT_SEQ | 5 << IBSHIFT_RUN_BITS;
    struct ibshift_ledger ledger;

    ibshift_ledger_init(&ledger);
    for (uint32_t seq = 0; seq < 100; seq++) {
        ibshift_ledger_write(&ledger,
                             ibshift_net_comm_seq(ASKED | (seq % 3) << IBSHIFT_NET_COMM_BITS, seq));
    }
    ibshift_ledger_write_persistent(
        &ledger, ibshift_net_comm_seq(ASKED | 9 << IBSHIFT_NET_COMM_BITS, persistent));
    for (uint32_t seq = 0; seq < 100; seq++) { /* of the oldest nothing is known */
        assert_false(is_unlike(&ledger, seq % 3, seq));
        assert_int_equal(is_unlike(&ledger, seq % 3 + 1, seq), seq >= 100 - IBSHIFT_LEDGER_CALLS);
    }
    assert_false(is_unlike(&ledger, 7, 100));            /* it has not begun here */
    assert_false(is_unlike(&ledger, 9, persistent + 4)); /* any of its runs */
    assert_true(is_unlike(&ledger, 8, persistent + 4));
    assert_false(is_unlike(&ledger, 8, persistent + (1 << IBSHIFT_RUN_BITS)));
    assert_false(is_unlike(NULL, 1, 99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_rank_is_waited_for),
        cmocka_unit_test(what_was_given_up_is_told_with_what_began_it),
        cmocka_unit_test(a_dead_member_is_told_and_remembered),
        cmocka_unit_test(an_error_is_no_death),
        cmocka_unit_test(a_communicator_that_is_never_made_is_told_in_time),
        cmocka_unit_test(questions_far_apart_do_not_add_up),
        cmocka_unit_test(a_number_that_comes_back_is_another_communicator),
        cmocka_unit_test(the_first_reason_stays),
        cmocka_unit_test(who_calls_something_else_is_told_from_who_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

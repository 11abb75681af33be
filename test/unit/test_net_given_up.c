/* What a net answers when a peer asks after a communicator that it waits on. */
#include <errno.h>

#include "net/given_up.h"
#include "unit.h"

enum { FAILED = 3, ASKED = 7, DEAD = 4, BUSY = 5 };

static const uint64_t second = 1000 * 1000 * 1000ull;

/* A net of which nothing is left but what it has given up, and what it tells of it. */
static struct {
    struct ibshift_net net;
    struct ibshift_given_up given_up;
    uint64_t now;
    bool is_told;
    struct ibshift_net_key key;
    struct ibshift_net_cause why;
    uint32_t members; /* of communicator ASKED: those below; 0: it is not here */
} it;

static void tell(struct ibshift_net *net, uint32_t peer, const struct ibshift_net_key *key,
                 const struct ibshift_net_cause *why)
{
    assert_ptr_equal(net, &it.net);
    assert_int_equal(peer, BUSY);
    it.is_told = true;
    it.key = *key;
    it.why = *why;
}

static uint64_t now(struct ibshift_net *net)
{
    (void)net;
    return it.now;
}

static bool is_here(void *context, uint32_t comm, uint32_t member)
{
    (void)context;
    return comm == ASKED && it.members > 0 && (member == IBSHIFT_ANY_MEMBER || member < it.members);
}

static const struct ibshift_net_ops ops = {.abort = tell, .now = now};

static int begin(void **state)
{
    memset(&it, 0, sizeof(it));
    it.net.ops = &ops;
    it.net.given_up = &it.given_up;
    it.given_up.comms.is_here = is_here;
    it.now = 1000 * second;
    return 0;
}

static int end(void **state)
{
    ibshift_given_up_free(&it.given_up);
    return 0;
}

static void give_up(uint32_t comm, uint32_t peer, int status)
{
    const struct ibshift_net_cause with = {.peer = BUSY, .status = -ECONNABORTED},
                                   root = {.peer = peer, .status = status};

    ibshift_given_up_add_comm(&it.given_up, comm, &with, &root);
}

/* So many questions after ASKED, with a pause before each: the last is answered with this, or not. */
static void ask(int times, uint64_t pause, uint32_t peer, int status)
{
    const struct ibshift_net_key key = {.comm = ASKED, .seq = 1};

    for (int i = 0; i < times; i++) {
        it.now += pause;
        it.is_told = false;
        ibshift_given_up_asked(&it.net, BUSY, &key);
    }
    assert_int_equal(it.is_told, status != 0);
    if (it.is_told) {
        assert_int_equal(it.why.peer, peer);
        assert_int_equal(it.why.status, status);
    }
}

static void a_late_rank_is_waited_for(void **state)
{
    ask(100, second, 0, 0);
    it.members = DEAD;
    ask(100, second, 0, 0);
    give_up(FAILED, DEAD, -ETIMEDOUT);
    ask(100, second, 0, 0);
    it.given_up.comms.is_here = NULL;
    ask(1, second, 0, 0);
    assert_null(ibshift_given_up_comm(&it.given_up, ASKED));
}

static void what_was_given_up_is_told_with_what_began_it(void **state)
{
    give_up(ASKED, DEAD, -EIO);
    it.members = DEAD;
    ask(1, 0, DEAD, -EIO);
    it.given_up.comms.is_here = NULL;
    ask(1, 0, DEAD, -EIO);
    assert_int_equal(ibshift_given_up_comm(&it.given_up, ASKED)->with.peer, BUSY);
}

static void a_dead_member_is_told_and_remembered(void **state)
{
    give_up(FAILED, BUSY, -ECONNRESET);
    give_up(FAILED + 1, DEAD, -ETIMEDOUT);
    it.members = DEAD + 1;
    ask(1, 0, DEAD, -ETIMEDOUT);
    assert_non_null(ibshift_given_up_comm(&it.given_up, ASKED));
    it.given_up.comms.is_here = NULL;
    ask(1, 0, DEAD, -ETIMEDOUT);
}

static void an_error_is_no_death(void **state)
{
    static const int errors[] = {-EIO, -ECONNRESET, -ECONNABORTED, -EMSGSIZE, -ENOMEM};

    it.members = DEAD + 1;
    for (uint32_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        give_up(FAILED + 10 * i, DEAD, errors[i]);
        ask(100, second, 0, 0);
        assert_null(ibshift_given_up_comm(&it.given_up, ASKED));
    }
}

/* An error has kept one rank from making it: the others are not left waiting for ever. But the
   questions of one slow collective a minute do not add up. */
static void a_communicator_that_is_never_made_is_told_in_time(void **state)
{
    give_up(FAILED, DEAD, -EIO);
    ask(100, 6 * second, 0, 0);
    ask(4, second, DEAD, -EIO);
    ask(1, 6 * second, 0, 0);
    ask(3, second, 0, 0);
    ask(1, second / 2, DEAD, -EIO);
}

static void a_number_that_comes_back_is_another_communicator(void **state)
{
    give_up(ASKED, DEAD, -EIO);
    assert_false(ibshift_given_up_forget(&it.given_up, ASKED)); /* no collective had begun on it */
    it.members = DEAD + 1;
    ask(10, second, 0, 0);
    it.members = 0;
    ask(4, second, 0, 0); /* it may be on its way */
    give_up(FAILED, BUSY, -EIO);
    ibshift_given_up_enter(&it.net, ASKED);
    assert_null(ibshift_given_up_comm(&it.given_up, ASKED));
    ask(4, second, 0, 0); /* earlier questions are forgotten too */
    ask(1, second, BUSY, -EIO);
}

static void the_first_reason_stays(void **state)
{
    give_up(ASKED, DEAD, -ETIMEDOUT);
    for (uint32_t comm = 0; comm < 100; comm++) {
        give_up(comm, BUSY, -EIO);
    }
    ask(1, 0, DEAD, -ETIMEDOUT);
}

/* The first are remembered without an allocation, for want of memory may be why they were given up. */
static void what_has_failed_needs_no_memory(void **state)
{
    for (uint32_t comm = 0; comm <= IBSHIFT_GIVEN_UP_COMMS; comm++) {
        assert_int_equal(it.given_up.failed == it.given_up.few, comm > 0);
        give_up(comm, DEAD, -ENOMEM);
    }
    assert_ptr_not_equal(it.given_up.failed, it.given_up.few);
    assert_int_equal(it.given_up.comm_count, IBSHIFT_GIVEN_UP_COMMS + 1);
}

/* Whom the peer has told of it asks again, if need be. */
static void the_oldest_of_peers_collectives_are_forgotten(void **state)
{
    struct ibshift_net_key key = {.comm = ASKED};

    for (key.seq = 0; key.seq < 2 * IBSHIFT_GIVEN_UP_BY_PEERS; key.seq++) {
        ibshift_given_up_add_by(&it.given_up, BUSY, &key);
    }
    for (key.seq = 0; key.seq < 2 * IBSHIFT_GIVEN_UP_BY_PEERS; key.seq++) {
        assert_int_equal(ibshift_given_up_by(&it.given_up, BUSY, &key),
                         key.seq >= IBSHIFT_GIVEN_UP_BY_PEERS);
    }
    assert_true(ibshift_given_up_forget(&it.given_up, ASKED));
    assert_int_equal(it.given_up.peer_count, 0);
}

static void hear(struct ibshift_net *net, uint32_t peer, uint32_t reporter)
{
    assert_ptr_equal(net, &it.net);
    assert_int_equal(reporter, BUSY);
    assert_int_equal(peer, DEAD);
    it.is_told = true;
}

static void a_death_is_heard_of_and_known(void **state)
{
    const struct ibshift_net_cause dead = {DEAD, -ETIMEDOUT}, error = {DEAD, -EIO};

    ibshift_given_up_heard(&it.given_up, BUSY, &dead); /* nobody listens */
    it.given_up.owner = &it.net;
    it.given_up.heard_dead = hear;
    ibshift_given_up_heard(&it.given_up, BUSY, &error);
    assert_false(it.is_told);
    ibshift_given_up_heard(&it.given_up, BUSY, &dead);
    assert_true(it.is_told);
    give_up(FAILED, DEAD, -EIO);
    assert_false(ibshift_given_up_is_dead(&it.given_up, DEAD));
    give_up(FAILED + 1, DEAD, -ETIMEDOUT);
    assert_true(ibshift_given_up_is_dead(&it.given_up, DEAD));
    assert_false(ibshift_given_up_is_dead(&it.given_up, BUSY));
}

static struct ibshift_ledger *ledger_of(void *context, uint32_t comm)
{
    assert_int_equal(comm, ASKED);
    return context;
}

/* What a peer calls under a number, and what this side does. */
static bool is_unlike(struct ibshift_ledger *ledger, uint32_t badge, uint32_t seq)
{
    const struct ibshift_net_key theirs = {.comm = ASKED | badge << IBSHIFT_NET_COMM_BITS,
                                           .seq = seq};
    bool is;

    end(NULL);
    begin(NULL);
    it.given_up.comms = (struct ibshift_net_comms){.context = ledger, .ledger = ledger_of};
    is = ibshift_given_up_unlike(&it.net, BUSY, &theirs);
    assert_int_equal(is, ibshift_given_up_is_over(&it.net, BUSY, &theirs));
    assert_int_equal(is, it.is_told);
    if (is) {
        assert_int_equal(ibshift_net_comm(it.key.comm), ASKED);
        assert_int_not_equal(it.key.comm, theirs.comm);
        assert_int_equal(it.why.status, -EBADMSG);
        assert_false(ibshift_given_up_unlike(&it.net, BUSY, &theirs)); /* once */
    }
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

static void only_what_lies_behind_is_past(void **state)
{
    const uint32_t last = IBSHIFT_PERSISTENT_SEQ - 1,
                   first = IBSHIFT_PERSISTENT_SEQ | 5 << IBSHIFT_RUN_BITS,
                   runs = 1 << IBSHIFT_RUN_BITS;
    struct ibshift_ledger ledger;

    ibshift_ledger_init(&ledger);
    assert_false(ibshift_ledger_is_past(&ledger, 0));
    ibshift_ledger_write(&ledger, ibshift_net_comm_seq(ASKED, last));
    assert_false(ibshift_ledger_is_past(&ledger, last)); /* it may be about to begin */
    ibshift_ledger_write(&ledger,
                         ibshift_net_comm_seq(ASKED, 1)); /* between, one without messages */
    assert_true(ibshift_ledger_is_past(&ledger, last));
    assert_false(ibshift_ledger_is_past(&ledger, 1));

    assert_false(ibshift_ledger_is_past(&ledger, first));
    ibshift_ledger_write_persistent(&ledger, ibshift_net_comm_seq(ASKED, first + runs - 1));
    assert_false(ibshift_ledger_is_past(&ledger, first)); /* made, not started */
    ibshift_ledger_write_persistent(&ledger, ibshift_net_comm_seq(ASKED, first + 1));
    assert_true(ibshift_ledger_is_past(&ledger, first + runs - 1)); /* they wrap */
    assert_true(ibshift_ledger_is_past(&ledger, first + 1));
    assert_false(ibshift_ledger_is_past(&ledger, first + 2));
    assert_false(ibshift_ledger_is_past(&ledger, first + runs + 1)); /* another call */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_rank_is_waited_for),
        TEST(what_was_given_up_is_told_with_what_began_it),
        TEST(a_dead_member_is_told_and_remembered),
        TEST(an_error_is_no_death),
        TEST(a_communicator_that_is_never_made_is_told_in_time),
        TEST(a_number_that_comes_back_is_another_communicator),
        TEST(the_first_reason_stays),
        TEST(what_has_failed_needs_no_memory),
        TEST(the_oldest_of_peers_collectives_are_forgotten),
        TEST(a_death_is_heard_of_and_known),
        TEST(who_calls_something_else_is_told_from_who_is_late),
        TEST(only_what_lies_behind_is_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

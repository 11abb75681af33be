/* Long messages of which both sides copy parts: senders that may not, are late, lie, or find no share. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "node_nets.h"

enum { LONG = 300000, OTHER = 2 };

/* Its sender cannot write there, and has taken a part: the receiver fetches all of it. */
static void help_that_fails(void **state)
{
    uint8_t *in,
        *pages = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct message m;

    assert_true(pages != MAP_FAILED);
    open_all(1 << 20, true);
    nets_make(&m, 0, 1, OTHER, LONG);
    in = m.in;
    m.in = pages;
    m.is_busy = true;
    (void)nets_post(&m, true);
    nets_take(1);
    (void)nets_post(&m, false);
    assert_int_equal(mprotect(pages, LONG, PROT_READ), 0);
    nets_take(0);
    assert_int_equal(mprotect(pages, LONG, PROT_READ | PROT_WRITE), 0);
    nets_take_all(5);
    assert_arrived(&m);
    assert_int_equal(ibshift_node(nets[0])->stats.direct, 1);
    assert_int_equal(peer_of(1)->shares, 0);
    close_all();
    munmap(pages, LONG);
    m.in = in;
}

/* More messages than shares: the rest are fetched. One that is over leaves its share to the next. */
static void shares_are_few(void **state)
{
    enum { MANY = IBSHIFT_NODE_SHARES + 3 };
    struct message m[MANY];

    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t i = 0; i < MANY; i++) {
            nets_make(&m[i], 0, 1, OTHER + i, LONG);
            m[i].key.seq = 1 + (uint32_t)turn;
            m[i].is_attended = true;
            (void)nets_post(&m[i], false);
        }
        assert_int_equal(peer_of(1)->shares, (1 << IBSHIFT_NODE_SHARES) - 1);
        for (uint32_t i = 0; i < MANY; i++) {
            (void)nets_post(&m[i], true);
        }
        nets_take_all(10 * MANY);
        for (uint32_t i = 0; i < MANY; i++) {
            assert_arrived(&m[i]);
        }
        assert_int_equal(peer_of(1)->shares, 0);
    }
}

/* A sender that is late: its share is another message's by now, so it takes nothing. */
static void a_late_helper(void **state)
{
    struct ibshift_node_note *late;
    struct message m, next;

    nets_make(&m, 0, 1, OTHER, LONG);
    nets_make(&next, 0, 1, OTHER + 1, LONG);
    m.is_busy = next.is_busy = true;
    (void)nets_post(&m, true);
    nets_take(1);
    (void)nets_post(&m, false);
    nets_take(0); /* it has taken a part */
    late = peer_of(0)->helping.first;
    assert_non_null(late);
    assert_true(late->done > 0);
    ibshift_net_cancel(nets[1], COMM, 1);
    next.key.seq = 2;
    (void)nets_post(&next, false);
    ibshift_nn_help(peer_of(0));
    assert_int_equal(next.in[0], 0);
    assert_int_equal(*ibshift_nn_taken(late) << 16, 0);
    nets_take_all(2);
    assert_int_equal(m.recv_status, -ECANCELED);
    (void)nets_post(&next, true);
    nets_take_all(5);
    assert_arrived(&next);
}

/* It says that it has copied other bytes than are missing. */
static void a_wrong_word(void **state)
{
    struct message m;

    nets_make(&m, 0, 1, OTHER, LONG);
    m.is_busy = true;
    (void)nets_post(&m, false);
    assert_int_equal(ibshift_nn_meet(peer_of(0)), 0);
    ibshift_nn_fill(peer_of(0), &peer_of(0)->out.cells[peer_of(0)->out_cells % IBSHIFT_NODE_CELLS],
                    IBSHIFT_NODE_DONE, &m.key, LONG, LONG - 1);
    nets_take(1);
    assert_int_equal(m.recv_status, -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_that_fails),
        NETS_TEST(shares_are_few),
        NETS_TEST(a_late_helper),
        NETS_TEST(a_wrong_word),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* Long messages that the receiver fetches. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "node_nets.h"

enum { FETCHED = 1, LONG = 100000 };

/* A long message from 0 to 1 that the receiver has asked for, and been told where it is. */
static void offer(struct message *m)
{
    nets_make(m, 0, 1, FETCHED, LONG);
    assert_int_equal(nets_post(m, true), IBSHIFT_NET_PENDING);
    assert_int_equal(nets_post(m, false), IBSHIFT_NET_PENDING);
    nets_take(0);
    assert_int_equal(m->in[LONG / 2], 0); /* nothing was written */
}

static void what_is_read_next_is_fetched(void **state)
{
    struct ibshift_node_stats stats;
    struct message m;

    (void)state;
    open_all(1 << 20, true);
    offer(&m);
    nets_take(1);
    assert_memory_equal(m.in, m.out, LONG);
    assert_int_equal(m.recv_status, WAITING); /* for the word that the message was still there */
    nets_take(0);
    nets_take(1);
    assert_arrived(&m);
    ibshift_net_node_stats(nets[0], &stats);
    assert_int_equal(stats.direct, 1);
    nets_unmake(&m);
    close_all();
}

/* Whoever takes it back, what was fetched of it meanwhile is no message. */
static void a_fetch_taken_back(void **state)
{
    struct message m;

    (void)state;
    open_all(1 << 20, true);
    offer(&m);
    ibshift_net_cancel(nets[0], COMM, 1);
    nets_take_all(3);
    assert_int_equal(m.send_status, -ECANCELED);
    assert_int_equal(m.recv_status, WAITING);
    ibshift_net_abort(nets[0], 1, COMM, 1);
    nets_take_all(2);
    assert_int_equal(m.recv_status, -ECONNABORTED);
    nets_unmake(&m);
    close_all();

    open_all(1 << 20, true);
    offer(&m);
    ibshift_net_cancel(nets[1], COMM, 1);
    nets_take_all(3);
    assert_int_equal(m.recv_status, -ECANCELED);
    assert_int_equal(m.send_status, WAITING);
    assert_int_equal(m.in[LONG / 2], 0);
    ibshift_net_cancel(nets[0], COMM, 1);
    nets_take_all(1);
    assert_int_equal(m.send_status, -ECANCELED);
    nets_unmake(&m);
    close_all();
}

/* The kernel has copied once, for the secret, and then does not: through the ring. */
static void a_fetch_that_fails(void **state)
{
    struct message m;
    uint8_t *out,
        *pages = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(pages != MAP_FAILED);
    open_all(1 << 20, true);
    nets_make(&m, 0, 1, FETCHED, LONG);
    out = m.out;
    memcpy(pages, out, LONG);
    m.out = pages;
    (void)nets_post(&m, true);
    (void)nets_post(&m, false);
    nets_take(0);
    assert_int_equal(mprotect(pages, LONG, PROT_NONE), 0);
    nets_take(1);
    assert_int_equal(mprotect(pages, LONG, PROT_READ), 0);
    nets_take_all(50);
    assert_arrived(&m);
    close_all();
    munmap(pages, LONG);
    m.out = out;
    nets_unmake(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_next_is_fetched),
        cmocka_unit_test(a_fetch_taken_back),
        cmocka_unit_test(a_fetch_that_fails),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

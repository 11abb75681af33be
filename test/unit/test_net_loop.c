/* The in-process net keeps the contract of net.h. */
#include <errno.h>
#include <string.h>

#include "net_loop.h"
#include "unit.h"

enum { PEERS = 3, MAX_EAGER = 64, BIG = 1000 };

static const struct ibshift_loop_options plain = {
    .peers = PEERS, .max_eager = MAX_EAGER, .room = 2, .depth = 4, .tick = 1, .timeout = 100};

static struct ibshift_net_message message(uint32_t peer, uint32_t tag, void *buffer, size_t length)
{
    return (struct ibshift_net_message){.peer = peer,
                                        .key = {.comm = 7, .seq = 1, .tag = tag},
                                        .buffer = buffer,
                                        .length = length,
                                        .cookie = tag};
}

static int send_to(struct ibshift_net *net, uint32_t peer, uint32_t tag, void *buffer,
                   size_t length)
{
    struct ibshift_net_message m = message(peer, tag, buffer, length);

    return ibshift_net_send(net, &m);
}

static int recv_from(struct ibshift_net *net, uint32_t peer, uint32_t tag, void *buffer,
                     size_t length)
{
    struct ibshift_net_message m = message(peer, tag, buffer, length);

    return ibshift_net_recv(net, &m);
}

/* Polls both ends until this net has an event; gives up after many polls. */
static int wait_event(struct ibshift_net *net, struct ibshift_net *other,
                      struct ibshift_net_event *event)
{
    struct ibshift_net_event ignored;

    for (int i = 0; i < 10000; i++) {
        if (ibshift_net_poll(net, event, 1) == 1) {
            return 1;
        }
        if (other != NULL) {
            (void)ibshift_net_poll(other, &ignored, 1);
        }
    }
    return 0;
}

static void long_message_waits_for_its_receive(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char from[BIG], to[BIG] = "";

    memset(from, 'x', BIG);
    assert_int_equal(send_to(a, 1, 5, from, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(wait_event(a, b, &event), 0);
    from[0] = 'y'; /* zero copy: still the sender's bytes */
    assert_int_equal(recv_from(b, 0, 5, to, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(wait_event(b, NULL, &event), 1);
    assert_int_equal(event.cookie, 5);
    assert_int_equal(event.peer, 0);
    assert_int_equal(event.status, 0);
    assert_memory_equal(from, to, BIG);
    assert_int_equal(wait_event(a, NULL, &event), 1);
    assert_int_equal(event.status, 0);
    assert_int_equal(ibshift_loop_left(loop), 0);
    ibshift_loop_free(loop);
}

static void early_messages_are_held_within_the_room(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char bytes[] = "0123", got;

    for (uint32_t tag = 0; tag < 4; tag++) {
        assert_int_equal(send_to(a, 1, tag, &bytes[tag], 1), IBSHIFT_NET_DONE);
    }
    assert_int_equal(send_to(a, 1, 9, bytes, 1), -EAGAIN);
    bytes[0] = 'x'; /* DONE: ours again */
    assert_int_equal(wait_event(b, NULL, &event), 0);
    assert_int_equal(recv_from(b, 0, 1, &got, 1), IBSHIFT_NET_DONE);
    assert_int_equal(got, '1');
    assert_int_equal(recv_from(b, 0, 0, &got, 1), IBSHIFT_NET_DONE);
    assert_int_equal(got, '0');
    assert_int_equal(recv_from(b, 0, 3, &got, 1),
                     IBSHIFT_NET_PENDING); /* was left with its sender */
    assert_int_equal(wait_event(b, NULL, &event), 1);
    assert_int_equal(got, '3');
    assert_int_equal(recv_from(b, 0, 2, &got, 1), IBSHIFT_NET_PENDING);
    assert_int_equal(wait_event(b, NULL, &event), 1);
    assert_int_equal(got, '2');
    assert_int_equal(ibshift_loop_left(loop), 0);
    ibshift_loop_free(loop);
}

static void lengths_that_differ_fail_on_both_sides(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char from[BIG] = "", to[BIG];

    assert_int_equal(recv_from(b, 0, 1, to, BIG - 1), IBSHIFT_NET_PENDING);
    assert_int_equal(send_to(a, 1, 1, from, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(wait_event(b, NULL, &event), 1);
    assert_int_equal(event.status, -EMSGSIZE);
    assert_int_equal(wait_event(a, NULL, &event), 1);
    assert_int_equal(event.status, -EMSGSIZE);
    ibshift_loop_free(loop);
}

static void cancel_ends_every_message(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char from[BIG] = "", to[BIG];

    assert_int_equal(send_to(a, 1, 1, from, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(recv_from(a, 1, 2, to, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(recv_from(a, 2, 3, to, 1), IBSHIFT_NET_PENDING);
    ibshift_net_cancel(a, 7, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wait_event(a, NULL, &event), 1);
        assert_int_equal(event.status, -ECANCELED);
    }
    assert_int_equal(send_to(b, 0, 4, from, 1), IBSHIFT_NET_DONE); /* late: dropped */
    assert_int_equal(wait_event(a, NULL, &event), 0);
    assert_int_equal(ibshift_loop_left(loop), 0);
    ibshift_loop_free(loop);
}

static void dead_peer_fails_what_is_with_it(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char from[BIG] = "", to[BIG], text[80];

    ibshift_loop_kill_after(loop, 1, 0);
    assert_int_equal(recv_from(a, 1, 1, to, 1), IBSHIFT_NET_PENDING);
    assert_int_equal(send_to(a, 1, 2, from, BIG), IBSHIFT_NET_PENDING);
    assert_int_equal(recv_from(b, 0, 3, to, 1), IBSHIFT_NET_PENDING);
    assert_int_equal(send_to(b, 0, 1, from, 1), -EIO);
    assert_int_equal(wait_event(a, NULL, &event), 1);
    assert_int_equal(event.cookie, 2);
    assert_int_equal(event.status, -ETIMEDOUT);
    assert_int_equal(wait_event(a, NULL, &event), 1);
    assert_int_equal(event.cookie, 1);
    assert_int_equal(event.status, -ECONNRESET);
    assert_int_equal(send_to(a, 1, 4, from, 1), -ETIMEDOUT);
    ibshift_net_describe(a, 1, text, sizeof(text));
    assert_non_null(strstr(text, "peer 1"));
    assert_int_equal(wait_event(b, NULL, &event), 1);
    assert_int_equal(event.status, -EIO);
    assert_int_equal(ibshift_loop_left(loop), 0);
    ibshift_loop_free(loop);
}

static void abort_fails_the_other_side(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char from[BIG] = "", to[BIG];

    assert_int_equal(send_to(a, 1, 1, from, BIG), IBSHIFT_NET_PENDING); /* waits for a grant */
    assert_int_equal(recv_from(a, 1, 2, to, 1), IBSHIFT_NET_PENDING);
    ibshift_net_abort(b, 0, 7, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wait_event(a, NULL, &event), 1);
        assert_int_equal(event.status, -ECONNABORTED);
    }
    assert_int_equal(recv_from(a, 1, 3, to, 1), -ECONNABORTED);
    assert_int_equal(ibshift_loop_left(loop), 0);
    ibshift_loop_free(loop);
}

static void probe_tells_dead_from_late(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0), *b = ibshift_loop_net(loop, 1);
    struct ibshift_net_event event;
    char to = 0;

    assert_int_equal(recv_from(a, 1, 1, &to, 1), IBSHIFT_NET_PENDING);
    ibshift_net_probe(a, 1);
    assert_int_equal(wait_event(a, b, &event), 0);
    ibshift_loop_kill_after(loop, 1, 0);
    assert_int_equal(send_to(b, 2, 1, &to, 1), -EIO);
    assert_int_equal(wait_event(a, b, &event), 0);
    ibshift_net_probe(a, 1);
    assert_int_equal(wait_event(a, b, &event), 1);
    assert_int_equal(event.status, -ECONNRESET);
    ibshift_loop_free(loop);
}

static void seeded_disorder_changes_the_order_only(void **state)
{
    enum { MESSAGES = 32 };
    bool was_out_of_order = false;

    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct ibshift_loop_options options = plain;
        struct ibshift_loop *loop;
        struct ibshift_net *a, *b;
        struct ibshift_net_event event;
        unsigned char from[MESSAGES], to[MESSAGES] = "";
        uint64_t last = 0;

        options.seed = seed;
        options.delay = 50;
        options.depth = MESSAGES;
        loop = ibshift_loop_create(&options);
        a = ibshift_loop_net(loop, 0);
        b = ibshift_loop_net(loop, 1);
        for (uint32_t tag = 0; tag < MESSAGES; tag++) {
            from[tag] = (unsigned char)(tag + 1);
            assert_int_equal(recv_from(b, 0, tag, &to[tag], 1), IBSHIFT_NET_PENDING);
            assert_in_range(send_to(a, 1, tag, &from[tag], 1), 0, 1);
        }
        for (int i = 0; i < MESSAGES; i++) {
            assert_int_equal(wait_event(b, NULL, &event), 1);
            assert_int_equal(event.status, 0);
            was_out_of_order |= event.cookie < last;
            last = event.cookie;
        }
        assert_memory_equal(from, to, MESSAGES);
        while (wait_event(a, NULL, &event) == 1) {
            assert_int_equal(event.status, 0);
        }
        assert_int_equal(ibshift_loop_left(loop), 0);
        ibshift_loop_free(loop);
    }
    assert_true(was_out_of_order);
}

static void registrations_are_checked(void **state)
{
    struct ibshift_loop *loop = ibshift_loop_create(&plain);
    struct ibshift_net *a = ibshift_loop_net(loop, 0);
    char buffer[8] = "";
    struct ibshift_net_mem *mem = ibshift_net_mem_register(a, buffer, 4);
    struct ibshift_net_message m = message(1, 1, buffer, 5);

    assert_non_null(mem);
    m.mem = mem;
    assert_int_equal(ibshift_net_send(a, &m), -EINVAL);
    assert_int_equal(ibshift_loop_left(loop), 1);
    ibshift_net_mem_release(a, mem);
    ibshift_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_message_waits_for_its_receive),
        cmocka_unit_test(early_messages_are_held_within_the_room),
        cmocka_unit_test(lengths_that_differ_fail_on_both_sides),
        cmocka_unit_test(cancel_ends_every_message),
        cmocka_unit_test(dead_peer_fails_what_is_with_it),
        cmocka_unit_test(abort_fails_the_other_side),
        cmocka_unit_test(probe_tells_dead_from_late),
        cmocka_unit_test(seeded_disorder_changes_the_order_only),
        cmocka_unit_test(registrations_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

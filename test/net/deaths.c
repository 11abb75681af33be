/* Ranks that die while others use the verbs net, and collectives that are given up, one case a run: deaths NAME. */
#include <errno.h>
#include <signal.h>

#include "messages.h"

/* Rank 1 is killed; the others wait for it, for short and long messages, and talk on. */
static int death(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[6][70000];
    uint32_t other = r->self == 0 ? 2 : 0;

    if (r->self != 1) {
        test_begin(&t, 0, 1, (uint32_t)r->self, data[0], 8);
    } else {
        test_begin(&t, 1, 0, 0, data[0], 8);
        test_begin(&t, 1, 2, 2, data[0], 8);
        test_poll_for(&t, 200);
        raise(SIGKILL);
    }
    test_begin(&t, 0, 1, 10, data[1], 8);
    test_begin(&t, 0, 1, 11, data[2], 70000);
    test_begin(&t, 1, 1, 12, data[3], 70000);
    test_begin(&t, 0, other, 13, data[4], 8);
    test_poll_for(&t, 400);
    test_begin(&t, 1, other, 13, data[5], 8);
    test_finish(&t);
    static const uint32_t lost[] = {10, 11, 12 + SENDS};
    for (int i = 0; i < 3; i++) {
        if (t.status[lost[i]] != -ETIMEDOUT && t.status[lost[i]] != -ECONNRESET) {
            ranks_fail(r, "message %u with a dead rank: status %d", lost[i], t.status[lost[i]]);
        }
        test_expect(&t, lost[i], t.status[lost[i]], 1);
    }
    test_expect(&t, 13, 0, other);
    return 0;
}

/* Rank 1 dies before rank 0 is connected with it; rank 2, which was, says so when it gives up. And
   a collective that rank 2 never comes to is answered for when it is asked after. */
static int reported(struct ranks *r)
{
    const struct ibshift_net_cause why = {.peer = 1, .status = -ETIMEDOUT};
    struct test t = {.r = r};
    static uint8_t data[3][8];

    if (r->self == 1) {
        test_begin(&t, 1, 2, 0, data[0], 8);
        test_finish(&t);
        test_poll_for(&t, 300);
        raise(SIGKILL);
    }
    if (r->self == 2) {
        test_begin(&t, 0, 1, 0, data[0], 8);
        test_begin(&t, 0, 1, 1, data[1], 8);
        test_finish(&t);
        ibshift_net_cancel(r->net, 7, 1);
        ibshift_net_give_up(r->net, 7, &why);
        ibshift_net_abort(r->net, 0, 7, 1);
        test_poll_for(&t, 6000);
        return 0;
    }
    test_poll_for(&t, 1000);
    test_begin(&t, 0, 2, 64, data[0], 8);
    test_begin(&t, 0, 1, 65, data[1], 8);
    test_begin(&t, 0, 2, 128, data[2], 8);
    test_poll_for(&t, 500);
    ibshift_net_ask(r->net, 2, 7, 2);
    test_finish(&t);
    test_expect(&t, 64, -ECONNABORTED, 2);
    test_expect(&t, 65, -ETIMEDOUT, 1);
    test_expect(&t, 128, -ECONNABORTED, 2);
    return 0;
}

/* Rank 1 dies before rank 0 is connected with it; rank 2, which was, waits for nothing of it. */
static int asked(struct ranks *r)
{
    struct test t = {.r = r};
    uint32_t *has_ended = &r->shared->arrived[1]; /* rank 0, in place of a barrier with the dead */
    static uint8_t data[8];

    if (r->self == 1) {
        test_begin(&t, 1, 2, 0, data, 8);
        test_finish(&t);
        test_poll_for(&t, 300);
        raise(SIGKILL);
    }
    if (r->self == 2) {
        test_begin(&t, 0, 1, 0, data, 8);
        test_finish(&t);
        while (__atomic_load_n(has_ended, __ATOMIC_ACQUIRE) == 0) {
            test_poll_once(&t);
        }
        return 0;
    }
    test_poll_for(&t, 1000);
    test_begin(&t, 0, 1, 64, data, 8);
    test_finish(&t);
    __atomic_store_n(has_ended, 1, __ATOMIC_RELEASE);
    test_expect(&t, 64, -ETIMEDOUT, 1);
    return 0;
}

/* Nobody was connected with rank 1 when it died; rank 2 has been told by others, or has seen it in shared memory. */
static int known(struct ranks *r)
{
    const struct ibshift_net_cause why = {.peer = 1, .status = -ETIMEDOUT};
    struct test t = {.r = r};
    uint32_t *has_ended = &r->shared->arrived[1];
    static uint8_t data[8];

    if (r->self == 1) {
        raise(SIGKILL);
    }
    if (r->self == 2) {
        ibshift_net_give_up(r->net, 7, &why);
        while (__atomic_load_n(has_ended, __ATOMIC_ACQUIRE) == 0) {
            test_poll_once(&t);
        }
        return 0;
    }
    test_begin(&t, 0, 1, 64, data, 8);
    test_finish(&t);
    __atomic_store_n(has_ended, 1, __ATOMIC_RELEASE);
    test_expect(&t, 64, -ETIMEDOUT, 1);
    return 0;
}

/* Both give up a collective in the middle of a long message, and with another one granted; the next
   one is right: nothing but the end of the connection would take a grant to write back. */
static int tolerant(struct ranks *r)
{
    struct test t = {.r = r};
    static uint8_t data[3][1 << 20];
    bool sends = r->self == 1;
    uint32_t peer = sends ? 0 : 1;

    if (!sends) {
        test_begin(&t, 0, peer, 64, data[0], sizeof(data[0]));
    }
    test_begin(&t, sends, peer, 65, data[1], sizeof(data[1]));
    test_poll_for(&t, 1 + 9 * peer);
    ibshift_net_cancel(r->net, 7, 1);
    ibshift_net_abort(r->net, peer, 7, 1);
    test_begin(&t, sends, peer, 128, data[2], sizeof(data[2]));
    test_finish(&t);
    test_expect(&t, sends ? 128 + SENDS : 128, 0, peer);
    return 0;
}

static const struct test_case cases[] = {{"death", death, 3, 2, 0, 0},
                                         {"reported", reported, 3, 2, 0, 0},
                                         {"asked", asked, 3, 2, 0, 0},
                                         {"known", known, 3, 2, 0, 0},
                                         {"tolerant", tolerant, 2, 0, 0, 0}};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

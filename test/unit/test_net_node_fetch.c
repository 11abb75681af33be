/* Long messages that the receiver fetches, and those that both sides copy. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node_nets.h"

enum { LONG = 300000, FITTING = 200000, OTHER = 2 };

static struct ibshift_node_stats stats_of(uint32_t net)
{
    struct ibshift_node_stats stats;

    ibshift_net_node_stats(nets[net], &stats);
    return stats;
}

/* Of messages from 0 to 1 that nobody waits for. */
static void fill_box(void)
{
    static struct message small[IBSHIFT_NODE_CELLS];

    for (uint32_t i = 0; i < IBSHIFT_NODE_CELLS; i++) {
        nets_make(&small[i], 0, 1, 2 * i + 10, 8);
        (void)nets_post(&small[i], true);
    }
}

/* A long message from 0 to 1, posted there first or last. */
static void offer(struct message *m, bool is_receiver_first)
{
    nets_make(m, 0, 1, OTHER, LONG);
    assert_int_equal(nets_post(m, !is_receiver_first), IBSHIFT_NET_PENDING);
    nets_take_all(2);
    assert_int_equal(nets_post(m, is_receiver_first), IBSHIFT_NET_PENDING);
}

/* Nobody asks before, nobody answers after: the receiver has it at the first look. */
static void what_was_offered_is_fetched(void **state)
{
    struct message m;

    offer(&m, false);
    nets_take(1);
    assert_int_equal(m.recv_status, 0);
    assert_int_equal(m.send_status, WAITING);
    nets_take(0);
    assert_arrived(&m);
    assert_int_equal(stats_of(0).control, 0);
    assert_int_equal(stats_of(1).control, 0);
    assert_int_equal(stats_of(0).direct, 1);
}

/* It asks for it, and the sender's call offers it: nothing is written. */
static void a_receiver_that_waits_fetches(void **state)
{
    struct message m;

    offer(&m, true);
    assert_int_equal(m.in[LONG / 2], 0);
    nets_take(1);
    assert_int_equal(m.recv_status, 0);
    nets_take(0);
    assert_arrived(&m);
    assert_int_equal(stats_of(1).control, 1);
}

/* Who asks has already been offered it: it comes once. */
static void an_offer_that_crosses(void **state)
{
    struct message m;

    nets_make(&m, 0, 1, OTHER, LONG);
    (void)nets_post(&m, true);
    (void)nets_post(&m, false);
    nets_take_all(4);
    assert_arrived(&m);
    nets_take_all(2);
    assert_int_equal(ibshift_node(nets[1])->rx.count, 0);
    assert_int_equal(ibshift_node(nets[0])->tx.count, 0);
}

/* The sender writes where the receiver is busy, or has another long one to get. */
static void the_sender_writes(void **state)
{
    struct message m, other;

    for (int why = 0; why < 2; why++) {
        open_all(1 << 20, true);
        nets_make(&m, 0, 1, OTHER, LONG);
        nets_make(&other, 2, 1, OTHER + 2, LONG);
        m.is_busy = why == 0;
        (void)nets_post(&m, true);
        if (why > 0) {
            (void)nets_post(&other, false);
        }
        nets_take(1);
        (void)nets_post(&m, false);
        nets_take(1);
        assert_int_equal(m.recv_status, WAITING);
        nets_take(0);
        assert_int_equal(m.send_status, 0); /* it has written */
        if (why > 0) {
            (void)nets_post(&other, true);
        }
        nets_take_all(3);
        assert_arrived(&m);
        if (why > 0) {
            assert_arrived(&other);
        }
        close_all();
    }
}

/* Given up by its sender: before its receive is posted, or before that has looked. */
static void an_offer_taken_back(void **state)
{
    struct message m;

    for (int is_late = 0; is_late < 2; is_late++) {
        open_all(1 << 20, true);
        nets_make(&m, 0, 1, OTHER, LONG);
        (void)nets_post(&m, true);
        if (is_late) {
            (void)nets_post(&m, false);
        } else {
            nets_take(1);
        }
        ibshift_net_cancel(nets[0], COMM, 1);
        assert_int_equal(m.send_status, WAITING); /* until the peer has been told */
        nets_take(0);
        assert_int_equal(m.send_status, -ECANCELED);
        memset(m.out, 0xee, LONG);
        if (!is_late) {
            nets_take(1);
            (void)nets_post(&m, false);
        }
        nets_take_all(3);
        assert_int_equal(m.recv_status, WAITING);
        ibshift_net_abort(nets[0], 1, COMM, 1);
        nets_take_all(2);
        assert_int_equal(m.recv_status, -ECONNABORTED);
        close_all();
    }
}

/* It is fetched, and only then does the receiver see that it was taken back. */
static void taken_back_meanwhile(void **state)
{
    struct message m;

    nets_make(&m, 0, 1, OTHER, LONG);
    (void)nets_post(&m, true);
    nets_take(1);
    ibshift_net_cancel(nets[0], COMM, 1);
    nets_take(0);
    assert_int_equal(m.send_status, -ECANCELED);
    (void)nets_post(&m, false); /* copies at once, before it looks into its box */
    assert_memory_equal(m.in, m.out, LONG);
    assert_int_equal(m.recv_status, WAITING);
    nets_take_all(3);
    assert_int_equal(m.recv_status, WAITING);
    ibshift_net_abort(nets[0], 1, COMM, 1);
    nets_take_all(2);
    assert_int_equal(m.recv_status, -ECONNABORTED);
}

/* A box that is full has a cell left for the word that nothing holds any more. */
static void broken_while_the_box_is_full(void **state)
{
    struct message m;
    struct ibshift_node_peer *peer;

    nets_make(&m, 0, 1, OTHER, LONG);
    (void)nets_post(&m, true);
    nets_take(1);
    fill_box();
    peer = ibshift_nn_peer(ibshift_node(nets[0]), 1);
    ibshift_nn_break(peer, -EPROTO, "for a test");
    (void)nets_post(&m, false);
    nets_take_all(3);
    assert_int_equal(m.recv_status, -ECONNRESET);
}

/* The peer takes back what it has not granted: the message is still found by its key, once. */
static void revoked_without_a_grant(void **state)
{
    struct ibshift_node_cell cell = {.kind = IBSHIFT_NODE_REVOKE};
    struct message m;
    struct ibshift_net_node *nn;
    uint32_t count;

    fill_box(); /* so that it is offered later */
    nets_make(&m, 0, 1, OTHER, LONG);
    (void)nets_post(&m, true);
    nn = ibshift_node(nets[0]);
    count = nn->tx.count;
    cell.key = m.key;
    ibshift_nn_revoke_came(ibshift_nn_peer(nn, 1), &cell);
    assert_int_equal(nn->tx.count, count);
}

/* Its receiver gives up: at once, since nobody else writes into its buffer. */
static void a_fetch_given_up(void **state)
{
    struct message m;

    nets_make(&m, 0, 1, OTHER, LONG);
    (void)nets_post(&m, false);
    ibshift_net_cancel(nets[1], COMM, 1);
    nets_take(1);
    assert_int_equal(m.recv_status, -ECANCELED);
    (void)nets_post(&m, true);
    nets_take_all(3);
    assert_int_equal(m.send_status, WAITING);
    assert_int_equal(m.in[LONG / 2], 0);
    ibshift_net_abort(nets[1], 0, COMM, 1);
    nets_take_all(2);
    assert_int_equal(m.send_status, -ECONNABORTED);
}

/* The kernel has copied once, for the secret, and then does not: through the ring. */
static void a_fetch_that_fails(void **state)
{
    struct message m;
    uint8_t *out,
        *pages = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED);
    open_all(1 << 20, true);
    nets_make(&m, 0, 1, OTHER, LONG);
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
}

/* What fits into the ring, with nothing beside it, needs no call of the kernel, whoever comes first. */
static void both_copy_what_fits(void **state)
{
    struct message m;

    for (int order = 0; order < 3; order++) {
        open_all(1 << 20, true);
        assert_int_equal(nets[0]->max_eager, 65536);
        nets_make(&m, 0, 1, OTHER + order, FITTING);
        m.is_attended = true;
        assert_int_equal(nets_post(&m, order > 0), IBSHIFT_NET_PENDING);
        if (order < 2) {
            nets_take_all(2);
        } /* else the offer and the grant cross */
        assert_int_equal(nets_post(&m, order == 0), IBSHIFT_NET_PENDING);
        nets_take_all(4);
        assert_arrived(&m);
        assert_int_equal(stats_of(0).rings, 1);
        assert_int_equal(stats_of(0).direct, 0);
        assert_int_equal(ibshift_node(nets[1])->rx.count, 0);
        assert_int_equal(ibshift_node(nets[0])->tx.count, 0);
        close_all();
    }
}

/* A sender that is not inside its call is not needed: the receiver has all of what was offered. */
static void a_sender_that_computes(void **state)
{
    struct message m;

    nets_make(&m, 0, 1, OTHER, FITTING);
    (void)nets_post(&m, true);
    (void)nets_post(&m, false); /* before it has seen the offer: then asks, and looks */
    for (int i = 0; i < 3; i++) {
        nets_take(1); /* nobody takes for 0 */
    }
    assert_int_equal(m.recv_status, 0);
    nets_take_all(2);
    assert_arrived(&m);
}

/* Each side would first write all of its own, then read: the kernel copies, and each side fetches,
 * though it is as busy as the other. */
static void an_exchange_does_not(void **state)
{
    struct message m, back;

    nets_make(&m, 0, 1, OTHER, FITTING);
    nets_make(&back, 1, 0, OTHER, FITTING);
    m.is_attended = back.is_attended = true;
    m.is_busy = back.is_busy = true;
    (void)nets_post(&m, true);
    (void)nets_post(&back, true);
    nets_take_all(1);
    (void)nets_post(&m, false);
    (void)nets_post(&back, false);
    assert_memory_equal(m.in, m.out, FITTING); /* 0 has not been called since */
    nets_take_all(4);
    assert_arrived(&m);
    assert_arrived(&back);
    assert_int_equal(stats_of(0).direct + stats_of(1).direct, 2);
    assert_int_equal(stats_of(0).control + stats_of(1).control, 0);
}

/*
 * Where the gauge has found the ring dear a message that would fit into it is offered, its receiver
 * expects it in the ring and fetches it all the same, and knows from then on. The receive is posted
 * last, first, or the receiver may not copy.
 */
static void a_dear_ring_is_left(void **state)
{
    enum { SHORT = 20000, LIMIT = 8192 };

    for (int order = 0; order < 3; order++) {
        struct message m, few;

        open_all(1 << 20, true);
        ibshift_nn_limit(peer_of(0), LIMIT);
        nets_make(&m, 0, 1, OTHER, SHORT);
        nets_make(&few, 0, 1, OTHER + 2, LIMIT);
        if (order == 2) {
            ibshift_node(nets[1])->options.may_copy = false;
        }
        assert_int_equal(nets_post(&m, order == 0), IBSHIFT_NET_PENDING);
        nets_take_all(1);
        assert_int_equal(nets_post(&m, order != 0), IBSHIFT_NET_PENDING);
        nets_take_all(4);
        assert_arrived(&m);
        assert_int_equal(stats_of(0).direct, order < 2);
        assert_int_equal(stats_of(0).rings, order == 2);
        assert_int_equal(peer_of(1)->at_once, LIMIT);
        assert_int_equal(nets[1]->max_tried, LIMIT);
        assert_int_equal(nets_post(&few, true), IBSHIFT_NET_DONE);
        assert_int_equal(nets_post(&few, false), IBSHIFT_NET_PENDING);
        nets_take_all(1);
        assert_arrived(&few);
        assert_int_equal(ibshift_node(nets[1])->rx.count, 0);
        assert_int_equal(ibshift_node(nets[0])->tx.count, 0);
        close_all();
    }
}

/* Its receiver tries it: it stops at the offer, and what it posts then fetches. */
static void an_offer_ends_a_try(void **state)
{
    struct message m;

    ibshift_nn_limit(peer_of(0), 8192);
    nets_make(&m, 0, 1, OTHER, 20000);
    (void)nets_post(&m, true);
    assert_false(nets_tried(&m));
    assert_int_equal(peer_of(1)->at_once, 8192);
    (void)nets_post(&m, false);
    nets_take_all(2);
    assert_arrived(&m);
    assert_int_equal(stats_of(0).direct, 1);
}

/*
 * A ring that costs nothing keeps its quarter and is asked again; one that costs a second a byte is left
 * for good, when two medians have said so. Rings of other peers are not asked.
 */
static void the_gauge_decides(void **state)
{
    static const double takes[] = {0, 1e9};

    for (int is_dear = 0; is_dear < 2; is_dear++) {
        struct ibshift_node_peer *peer;

        open_all(1 << 20, true);
        peer = peer_of(0);
        for (int i = 0; i < 2 * IBSHIFT_NODE_SAMPLES; i++) {
            assert_int_equal(peer->at_once, 65536);
            assert_int_equal(nets[0]->max_tried, 65536);
            ibshift_nn_gauge_add(peer, i % 3 == 0 ? takes[!is_dear] : takes[is_dear]);
        }
        assert_int_equal(peer->at_once, is_dear ? IBSHIFT_NODE_LIMIT_LEAST : 65536);
        assert_int_equal(nets[0]->max_tried, peer->at_once);
        assert_int_equal(nets[0]->max_eager, 65536);
        assert_int_equal(peer->gauge.rounds, is_dear ? IBSHIFT_NODE_ROUNDS : 2);
        assert_int_equal(ibshift_nn_peer(ibshift_node(nets[0]), 2)->at_once, 65536);
        close_all();
    }
}

/* Samples are taken of copies into what the peer has read before, and only where that is asked for. */
static void the_gauge_waits_a_round(void **state)
{
    enum { PART = 16384 };

    for (int is_gauged = 0; is_gauged < 2; is_gauged++) {
        open_all(1 << 20, true);
        ibshift_node(nets[0])->options.is_gauged = is_gauged;
        for (uint32_t i = 0; i < 262144 / PART + 1; i++) {
            struct message m;

            assert_int_equal(peer_of(0)->gauge.count, 0);
            nets_make(&m, 0, 1, 2 * i, PART);
            (void)nets_post(&m, true);
            (void)nets_post(&m, false);
            nets_take_all(2);
            assert_arrived(&m);
        }
        assert_int_equal(peer_of(0)->gauge.count, is_gauged);
        close_all();
    }
}

/* Either side gives up between the offer and the grant: nothing comes, and nothing is left. */
static void given_up_before_it_flows(void **state)
{
    struct message m;

    for (uint32_t who = 0; who < 2; who++) {
        open_all(1 << 20, true);
        nets_make(&m, 0, 1, OTHER, FITTING);
        m.is_attended = true;
        (void)nets_post(&m, true);
        nets_take(1);
        (void)nets_post(&m, false); /* grants */
        ibshift_net_cancel(nets[who], COMM, 1);
        ibshift_net_abort(nets[who], 1 - who, COMM, 1);
        nets_take_all(4);
        assert_int_equal(who == 0 ? m.send_status : m.recv_status, -ECANCELED);
        assert_int_equal(who == 0 ? m.recv_status : m.send_status, -ECONNABORTED);
        assert_int_equal(ibshift_node(nets[1])->rx.count, 0);
        assert_int_equal(ibshift_node(nets[0])->tx.count, 0);
        close_all();
    }
}

/* A process that sends the message to net 1, tells when some of it has gone, and waits for its end.
 * The receiver fetches: it has offered all. */
static void send_some(const struct message *m, bool may_copy, bool is_fetched, const int ends[2])
{
    struct ibshift_node_peer *peer;
    struct message own = *m;

    open_net(0, 1 << 20, may_copy);
    if (write(ends[1], &cards[0], sizeof(cards[0])) != (ssize_t)sizeof(cards[0])) {
        _exit(1);
    }
    (void)nets_post(&own, true);
    peer = ibshift_nn_peer(ibshift_node(nets[0]), 1);
    while (!is_fetched && (peer->ready.first == NULL || peer->ready.first->done == 0)) {
        nets_take(0);
    }
    if (write(ends[1], "", 1) != 1) {
        _exit(1);
    }
    pause();
    _exit(0);
}

/* In the middle of a message its sender is killed, whoever copies: the receive fails, and so does
 * what is posted after it. */
static void killed_in_the_middle(void **state)
{
    enum { VERY_LONG = 5000000 };
    static const struct {
        bool may_copy, is_busy;
    } ways[] = {{false, false}, {true, false}, {true, true}}; /* ring, fetched, written */

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        bool is_fetched = ways[i].may_copy && !ways[i].is_busy;
        struct message m, after;
        int ends[2];
        char byte;
        pid_t pid;

        assert_int_equal(pipe(ends), 0);
        open_net(1, 1 << 20, ways[i].may_copy);
        nets_make(&m, 0, 1, OTHER, VERY_LONG);
        nets_make(&after, 0, 1, OTHER + 2, 8);
        m.is_busy = ways[i].is_busy;
        pid = fork();
        if (pid == 0) {
            send_some(&m, ways[i].may_copy, is_fetched, ends);
        }
        assert_int_equal(read(ends[0], &cards[0], sizeof(cards[0])), sizeof(cards[0]));
        assert_int_equal(nets_post(&m, false), IBSHIFT_NET_PENDING);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        nets_take(1);
        assert_int_equal(m.recv_status, WAITING);
        assert_memory_equal(m.in, m.out, 100000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        for (int turn = 0; turn < 3; turn++) {
            nets_take(1);
            ibshift_net_probe(nets[1], 0);
        }
        nets_take(1);
        assert_int_equal(m.recv_status, -ETIMEDOUT);
        assert_int_equal(nets_post(&after, false), -ETIMEDOUT);
        assert_int_equal(ibshift_node(nets[1])->rx.count, 0);
        ibshift_net_destroy(nets[1]);
        close(ends[0]);
        close(ends[1]);
    }
    open_net(2, 1 << 20, true); /* sweeps what the last one has left */
    ibshift_net_destroy(nets[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NETS_TEST(what_was_offered_is_fetched),
        NETS_TEST(a_receiver_that_waits_fetches),
        NETS_TEST(an_offer_that_crosses),
        cmocka_unit_test(the_sender_writes),
        cmocka_unit_test(an_offer_taken_back),
        NETS_TEST(taken_back_meanwhile),
        NETS_TEST(broken_while_the_box_is_full),
        NETS_TEST(revoked_without_a_grant),
        NETS_TEST(a_fetch_given_up),
        cmocka_unit_test(a_fetch_that_fails),
        cmocka_unit_test(both_copy_what_fits),
        NETS_TEST(a_sender_that_computes),
        NETS_TEST(an_exchange_does_not),
        cmocka_unit_test(a_dear_ring_is_left),
        NETS_TEST(an_offer_ends_a_try),
        cmocka_unit_test(the_gauge_decides),
        cmocka_unit_test(the_gauge_waits_a_round),
        cmocka_unit_test(given_up_before_it_flows),
        cmocka_unit_test(killed_in_the_middle),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

/* Random traffic on several communicators of a host, some of which are given up in the middle: what is
 * posted ends, what is not given up arrives, nothing is kept, and buffers are the caller's from the end on. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "node_nets.h"
#include "unit.h"

enum { COMMS = 12, EACH = 40, MESSAGES = COMMS * EACH, TURNS_MAX = 1000000, SEEDS = 40 };

static uint64_t seed;
static struct message messages[MESSAGES];
static struct {
    uint8_t *sent;                   /* what was in the sender's buffer */
    bool is_send_used, is_recv_used; /* the buffer, for something else */
} after[MESSAGES];
static bool is_over[NETS][COMMS];

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static uint32_t comm_of(const struct message *m)
{
    return m->key.comm - COMM;
}

/* As the engine does it when a collective fails. */
static void give_up(uint32_t net, uint32_t comm, int status)
{
    struct ibshift_net_cause why = {.peer = (net + 1) % NETS, .status = status};

    if (is_over[net][comm]) {
        return;
    }
    is_over[net][comm] = true;
    ibshift_net_give_up(nets[net], COMM + comm, &why);
    ibshift_net_cancel(nets[net], COMM + comm, 1);
    for (uint32_t peer = 0; peer < NETS; peer++) {
        if (peer != net) {
            ibshift_net_abort(nets[net], peer, COMM + comm, 1);
        }
    }
}

enum { OTHER_USE = 0xaa };

static void use_buffers(uint32_t i)
{
    const struct message *m = &messages[i];

    if (m->send_status != WAITING && !after[i].is_send_used) {
        memset(m->out, OTHER_USE, m->length);
        after[i].is_send_used = true;
    }
    if (m->recv_status < 0 && !after[i].is_recv_used) {
        memset(m->in, OTHER_USE, m->length);
        after[i].is_recv_used = true;
    }
}

/* Who sees one message fail gives all the others up. */
static void follow(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct message *m = &messages[i];

        use_buffers(i);
        if (m->send_status < 0) {
            give_up(m->from, comm_of(m), m->send_status);
        }
        if (m->recv_status < 0) {
            give_up(m->to, comm_of(m), m->recv_status);
        }
    }
}

static bool is_tried(const struct message *m, bool is_send)
{
    struct ibshift_net_channel *to = nets[m->from]->ops->channel(nets[m->from], m->to);
    uint64_t comm_seq = ibshift_net_comm_seq(m->key.comm, m->key.seq);

    if (m->length > nets[is_send ? m->from : m->to]->max_tried) {
        return false;
    }
    return is_send ? to->try_send(to, comm_seq, m->key.tag, m->out, m->length) : nets_tried(m);
}

static void start(struct message *m, bool is_send)
{
    bool *is_started = is_send ? &m->is_sent : &m->is_received;
    int *status = is_send ? &m->send_status : &m->recv_status;

    if (*is_started) {
        return;
    }
    if (is_over[is_send ? m->from : m->to][comm_of(m)]) {
        *is_started = true;
        *status = -ECANCELED;
    } else if (draw(2) == 0 && is_tried(m, is_send)) {
        *is_started = true;
        *status = 0;
    } else if (draw(2) == 0) {
        m->is_busy = draw(2) == 0;
        m->is_attended = draw(2) == 0;
        (void)nets_post(m, is_send);
    }
}

static bool are_all_over(void)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        if (messages[i].send_status == WAITING || messages[i].recv_status == WAITING) {
            return false;
        }
    }
    return true;
}

static void make_messages(void)
{
    static const size_t lengths[] = {0,    1,     8,     40,    41,    64,     1000,   2048,
                                     2049, 10000, 16384, 16385, 65536, 100000, 300000, 1500000};
    enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

    memset(is_over, 0, sizeof(is_over));
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint32_t from = draw(NETS);

        nets_make(&messages[i], from, (from + 1 + draw(NETS - 1)) % NETS, i,
                  lengths[draw(i % 8 == 0 ? LENGTHS : LENGTHS - 3)]);
        messages[i].key.comm = COMM + i / EACH;
        after[i].is_send_used = after[i].is_recv_used = false;
        after[i].sent = malloc(messages[i].length + 1);
        memcpy(after[i].sent, messages[i].out, messages[i].length);
    }
}

static void run(uint32_t give_ups)
{
    for (uint32_t turn = 0; !are_all_over(); turn++) {
        assert_true(turn < TURNS_MAX);
        for (uint32_t i = draw(20); i-- > 0;) {
            start(&messages[draw(MESSAGES)], draw(2) == 0);
        }
        if (give_ups > 0 && draw(60) == 0) {
            give_up(draw(NETS), draw(COMMS), -EIO);
            give_ups--;
        }
        nets_take(draw(NETS));
        follow();
    }
    for (int i = 0; i < 100; i++) { /* the last words */
        nets_take_all(1);
        follow();
    }
}

static void assert_right(uint32_t i)
{
    const struct message *m = &messages[i];
    bool is_given_up = false;

    for (uint32_t net = 0; net < NETS; net++) {
        is_given_up |= is_over[net][comm_of(m)];
    }
    if (!is_given_up) {
        assert_int_equal(m->send_status, 0);
        assert_int_equal(m->recv_status, 0);
    }
    if (m->recv_status == 0) {
        assert_memory_equal(m->in, after[i].sent, m->length);
    } else if (m->length > 0) { /* all the same byte */
        assert_int_equal(m->in[0], OTHER_USE);
        assert_memory_equal(m->in, m->in + 1, m->length - 1);
    }
}

static void assert_nothing_kept(const struct ibshift_net_node *nn)
{
    assert_int_equal(nn->rx.count + nn->tx.count + nn->longs, 0);
    for (uint32_t i = 0; i < nn->met_count; i++) {
        const struct ibshift_node_peer *peer = nn->peers[nn->met[i]];

        assert_int_equal(peer->status, 0);
        assert_int_equal(peer->in_quota, peer->in_returned);
        assert_int_equal(peer->longs, 0);
        assert_true(peer->ready.first == NULL && peer->waiting.first == NULL &&
                    peer->resting.first == NULL);
    }
}

static void given_up_in_the_middle(void **state)
{
    for (uint32_t i = 0; i < SEEDS; i++) {
        seed = i + 1;
        print_message("seed %u\n", i + 1);
        open_all(i % 2 == 0 ? 1 << 20 : 50000, i % 4 < 2);
        make_messages();
        run(i % 5 * 3);
        for (uint32_t k = 0; k < MESSAGES; k++) {
            assert_right(k);
            free(after[k].sent);
        }
        for (uint32_t net = 0; net < NETS; net++) {
            for (uint32_t comm = 0; comm < COMMS; comm++) {
                ibshift_net_forget(nets[net], COMM + comm);
            }
            assert_nothing_kept(ibshift_node(nets[net]));
        }
        close_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(given_up_in_the_middle)};

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

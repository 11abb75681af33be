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

/*
 * A script is what happens to message m, from net 0 to net 1, and perhaps to n, back or from net 2. A letter a step:
 *   S R s r   m is sent, its receive is posted; likewise n
 *   0 1 - *   net 0 or 1 polls; all do, once or twice
 *   C c A a   net 0 cancels, or net 1; net 0 tells the other that it has given up, or net 1
 *   F B X     net 0's box for net 1 is filled; net 0 breaks with net 1; m's sender uses its buffer for something else
 *   M N n     m's bytes are at the receiver; they are not; n has arrived
 *   E         nothing is in the tables
 *   =XY       how m stands at its sender and receiver: ? not asked, or a letter of standings[]
 */
static const struct {
    char letter;
    int status;
} standings[] = {
    {'w', WAITING}, {'.', 0}, {'c', -ECANCELED}, {'a', -ECONNABORTED}, {'r', -ECONNRESET}};

enum { BUSY = 1, ATTENDED = 2, BACK = 4 };

static const struct {
    const char *what;
    size_t length;
    unsigned flags; /* BUSY and ATTENDED: of m; BACK: of both, and n goes back */
    const char *script;
    int direct, rings, control; /* messages of both nets in the end; -1: not asked */
} scripts[] = {
    {"nobody asks before or answers after: the receiver has it at the first look", LONG, 0,
     "S*R1=w.0=..M", 1, 0, 0},
    {"a receiver that waits asks, is offered it and fetches: nothing is written", LONG, 0,
     "R*SN1=?.0=..M", 1, 0, 1},
    {"who asks has already been offered it: it comes once", LONG, 0, "SR**=..M*E", 1, 0, -1},
    {"the sender writes where the receiver is busy", LONG, BUSY, "S1R000=wwM1=w.0=..", 1, 0, 1},
    {"as soon as it knows where, if the receiver came first", LONG, BUSY, "R0S000=wwM1=w.0=..", 1,
     0, 1},
    {"both do: who has no more to take waits for the other", LONG, BUSY, "S1R011=ww0=wwM1=w.0=..",
     1, 0, 1},
    {"where both wait, each takes half of what is left", LONG, ATTENDED, "S1R0=ww1=ww0=wwM1=w.0=..",
     1, 0, 1},
    {"a receiver that has several tells their senders, and does what they leave", LONG, 0,
     "Sr1R1=?.0=.?s**=..Mn", 1, 0, 2},
    {"who helps may give up: what it has written is no message", LONG, BUSY, "S1R0C0=c?X**=?wA*=?a",
     -1, -1, -1},
    {"taken back by its sender before its receive is posted", LONG, 0, "S1C=w?0=c?X1R**=?wA*=?a",
     -1, -1, -1},
    {"before the receive has looked", LONG, 0, "SRC=w?0=c?X**=?wA*=?a", -1, -1, -1},
    {"when it has been fetched, and the receiver has not yet looked into its box", LONG, 0,
     "S1C0=c?RM=?w**=?wA*=?a", -1, -1, -1},
    {"a full box has a cell left for the word that nothing holds any more", LONG, 0, "S1FBR**=?r",
     -1, -1, -1},
    {"its receiver gives up: at once, since nobody else writes into its buffer", LONG, 0,
     "Rc1=?cS**=w?Na*=a?", -1, -1, -1},
    {"where the sender has taken a part, the buffer is lent until it says that it writes no more",
     LONG, BUSY, "S1R0c1=?w01=?cC", -1, -1, -1},
    {"and is not where it has taken none", LONG, BUSY, "R*c1=?cC", -1, -1, -1},
    {"what fits into the ring needs no call of the kernel: receive first", FITTING, ATTENDED,
     "R*S**=..ME", 0, 1, -1},
    {"send first", FITTING, ATTENDED, "S*R**=..ME", 0, 1, -1},
    {"offer and grant cross", FITTING, ATTENDED, "SR**=..ME", 0, 1, -1},
    {"a sender that computes is not needed: the receiver asks, and looks", FITTING, 0,
     "SR111=?.*=..M", -1, -1, -1},
    {"in an exchange the kernel copies, and each side fetches, though it is busy", FITTING, BACK,
     "Ss-RrM**=..Mn", 2, 0, 0},
    {"the sender gives up between offer and grant: nothing comes, nothing is left", FITTING,
     ATTENDED, "S1RCA**=caE", -1, -1, -1},
    {"so does the receiver", FITTING, ATTENDED, "S1Rca**=acE", -1, -1, -1},
};

static bool stands(char letter, int status)
{
    for (size_t i = 0; i < sizeof(standings) / sizeof(standings[0]); i++) {
        if (standings[i].letter == letter) {
            return standings[i].status == status;
        }
    }
    return letter == '?';
}

/* False: an expectation is not met. */
static bool step(const char *at, struct message *m, struct message *n)
{
    switch (*at) {
    case 'S':
    case 'R':
        (void)nets_post(m, *at == 'S');
        break;
    case 's':
    case 'r':
        (void)nets_post(n, *at == 's');
        break;
    case '0':
    case '1':
        nets_take(*at == '1');
        break;
    case '-':
    case '*':
        nets_take_all(*at == '*' ? 2 : 1);
        break;
    case 'C':
    case 'c':
        ibshift_net_cancel(nets[*at == 'c'], COMM, 1);
        break;
    case 'A':
    case 'a':
        ibshift_net_abort(nets[*at == 'a'], *at == 'A', COMM, 1);
        break;
    case 'F':
        fill_box();
        break;
    case 'B':
        ibshift_nn_break(peer_of(0), -EPROTO, "for a test");
        break;
    case 'X':
        memset(m->out, 0xee, m->length);
        break;
    case 'M':
        return memcmp(m->in, m->out, m->length) == 0;
    case 'N':
        return m->in[m->length / 2] == 0;
    case 'n':
        assert_arrived(n);
        break;
    case 'E':
        return ibshift_node(nets[1])->rx.count + ibshift_node(nets[0])->tx.count == 0;
    default:
        return *at == '=' && stands(at[1], m->send_status) && stands(at[2], m->recv_status);
    }
    return true;
}

static void scripts_are_followed(void **state)
{
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        bool is_back = (scripts[i].flags & BACK) != 0;
        struct ibshift_node_stats a, b;
        struct message m, n;

        open_all(1 << 20, true);
        nets_make(&m, 0, 1, OTHER, scripts[i].length);
        nets_make(&n, is_back ? 1 : 2, !is_back, OTHER + 2, scripts[i].length);
        m.is_busy = is_back || (scripts[i].flags & BUSY) != 0;
        m.is_attended = is_back || (scripts[i].flags & ATTENDED) != 0;
        n.is_busy = n.is_attended = is_back;
        for (const char *at = scripts[i].script; *at != '\0'; at += *at == '=' ? 3 : 1) {
            if (!step(at, &m, &n)) {
                fail_msg("%s: at %s: %d at the sender, %d at the receiver", scripts[i].what, at,
                         m.send_status, m.recv_status);
            }
        }
        a = stats_of(0);
        b = stats_of(1);
        assert_true(scripts[i].direct < 0 || a.direct + b.direct == (uint64_t)scripts[i].direct);
        assert_true(scripts[i].rings < 0 || a.rings + b.rings == (uint64_t)scripts[i].rings);
        assert_true(scripts[i].control < 0 ||
                    a.control + b.control == (uint64_t)scripts[i].control);
        close_all();
    }
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

/* The sender cannot open the receiver's segment: so its word that it cannot stands in its own. */
static void a_segment_that_cannot_be_opened(void **state)
{
    struct ibshift_node_head *head = ibshift_node(nets[0])->own.base;
    struct message m;

    nets_make(&m, 1, 0, OTHER, LONG);
    (void)nets_post(&m, false);
    head->magic++;
    nets_take(1);
    assert_int_equal(nets_post(&m, true), -EHOSTUNREACH);
    nets_take_all(2);
    assert_int_equal(m.recv_status, WAITING);
    ibshift_net_probe(nets[0], 1);
    nets_take_all(1);
    assert_int_equal(m.recv_status, -ECONNRESET);
    head->magic--;
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

/* The message that is on its way through the ring, or that it helps with. */
static const struct ibshift_node_note *moving(const struct ibshift_node_peer *peer)
{
    return peer->ready.first != NULL ? peer->ready.first : peer->helping.first;
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
    while (!is_fetched && (moving(peer) == NULL || moving(peer)->done == 0)) {
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
        cmocka_unit_test(scripts_are_followed),     NETS_TEST(revoked_without_a_grant),
        NETS_TEST(a_segment_that_cannot_be_opened), cmocka_unit_test(a_fetch_that_fails),
        cmocka_unit_test(a_dear_ring_is_left),      NETS_TEST(an_offer_ends_a_try),
        cmocka_unit_test(the_gauge_decides),        cmocka_unit_test(the_gauge_waits_a_round),
        cmocka_unit_test(killed_in_the_middle),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

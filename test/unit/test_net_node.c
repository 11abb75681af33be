/* The net of one host: three endpoints in this process, and processes that die. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node_nets.h"
#include "profiler.h"
#include "unit.h"

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static const size_t lengths[] = {0, 1, 8, 40, 41, 64, 1000, 2048, 2049, 4096, 10000, 16384, 16385};

static long faults(void)
{
    struct rusage usage;

    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* A page of the ring that is touched for the first time takes longer than a short message. */
static void a_fresh_ring_is_mapped(void **state)
{
    enum { MESSAGES = 60, MOST = 20 };
    struct message m;
    long before = 0;

    if (madvise(NULL, 0, MADV_POPULATE_WRITE) != 0) { /* Linux before 5.14 */
        skip();
    }
#ifdef __SANITIZE_THREAD__
    skip(); /* each byte has its shadow, and that is touched for the first time as well */
#endif
    open_all(1 << 20, true);
    nets_make(&m, 0, 1, 0, 4096);
    for (int i = 0; i <= MESSAGES; i++) {
        if (i == 1) {
            before = faults();
        }
        m.send_status = m.recv_status = WAITING;
        (void)nets_post(&m, true);
        (void)nets_post(&m, false);
        nets_take_all(2);
        assert_arrived(&m);
    }
    assert_in_range(faults() - before, 0, MOST);
    close_all();
}

/* The receiver waits for the last of many that came unasked: the quota must not keep it back. */
static void what_is_waited_for_comes(void **state)
{
    enum { MANY = 300 };
    struct message m[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        nets_make(&m[i], 0, 1, i, 1000);
        assert_true(nets_post(&m[i], true) >= 0);
    }
    nets_take_all(20);
    for (uint32_t i = MANY; i-- > 0;) {
        assert_true(nets_post(&m[i], false) >= 0);
        nets_take_all(3);
        assert_int_equal(m[i].recv_status, 0);
    }
    nets_take_all(20);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_arrived(&m[i]);
    }
}

/* A message that the quota has room for is not asked for: it passes a longer one that has none. */
static void a_shorter_one_passes(void **state)
{
    uint32_t most = (uint32_t)ibshift_node_short(cards[1].ring);
    struct message m[5], shorter;

    for (uint32_t i = 0; i < 5; i++) {
        nets_make(&m[i], 0, 1, i, most - 128);
        assert_true(nets_post(&m[i], true) >= 0);
    }
    nets_make(&shorter, 0, 1, 5, 64);
    assert_true(nets_post(&shorter, false) >= 0);
    assert_true(nets_post(&shorter, true) >= 0);
    nets_take_all(20);
    assert_arrived(&shorter);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(nets_post(&m[i], false) >= 0);
        nets_take_all(20);
        assert_arrived(&m[i]);
    }
}

/* What is tried leaves now whenever there is room, and all has been taken. */
static void what_is_tried_leaves(void **state)
{
    enum { TIMES = 1000 };

    struct ibshift_net_channel *to;

    to = nets[0]->ops->channel(nets[0], 1);
    for (uint32_t i = 0; i < TIMES; i++) {
        struct message m;

        nets_make(&m, 0, 1, i, lengths[i % 10]);
        if (!to->try_send(to, ibshift_net_comm_seq(m.key.comm, m.key.seq), m.key.tag, m.out,
                          m.length)) {
            fail_msg("message %u, of %zu bytes, does not leave", i, m.length);
        }
        while (!nets_tried(&m)) {
            assert_int_equal(ibshift_net_poll(nets[1], NULL, 0), 0);
        }
        assert_memory_equal(m.in, m.out, m.length);
    }
}

/* As the sender does it, but no more than one part; the ring has not come round yet. */
static void put_part(const struct message *m, uint64_t offset, uint32_t size)
{
    struct ibshift_node_peer *to = ibshift_nn_peer(ibshift_node(nets[m->from]), m->to);
    struct ibshift_node_cell *cell;

    assert_int_equal(ibshift_nn_meet(to), 0);
    cell = &to->out.cells[to->out_cells % IBSHIFT_NODE_CELLS];
    memcpy(to->out.ring + to->out_ring, m->out + offset, size);
    cell->at = to->out_ring;
    cell->part.length = m->length;
    cell->part.offset = offset;
    to->out_ring += size;
    ibshift_node_publish(to, cell, IBSHIFT_NODE_PART, 0, size, &m->key);
}

/* What was tried and has come in part is there when the rest is, whoever waits for it then. */
static void a_late_part(void **state)
{
    const struct ibshift_node_peer *from;
    struct message m, other;

    for (uint32_t i = 0; i < 4; i++) {
        bool is_posted = i % 2 != 0, is_parted = i >= 2;

        nets_make(&m, 0, 1, 2 * i, 4096);
        nets_make(&other, 0, 1, 2 * i + 1, 24);
        put_part(&m, 0, 2048);
        if (is_parted) {
            (void)nets_post(&other, true);
        }
        assert_false(nets_tried(&m));
        assert_false(nets_tried(&m));
        if (is_posted) {
            assert_int_equal(nets_post(&m, false), IBSHIFT_NET_PENDING);
        }
        put_part(&m, 2048, 2048);
        m.send_status = 0;
        if (is_posted) {
            nets_take_all(2);
        } else {
            m.recv_status = nets_tried(&m) ? 0 : WAITING;
        }
        assert_arrived(&m);
        assert_true(!is_parted || nets_tried(&other));
    }
    from = ibshift_nn_peer(ibshift_node(nets[1]), 0);
    assert_int_equal(from->in_quota, from->in_returned);
}

static void other_length(void **state)
{
    static const size_t pairs[][2] = {
        {8, 16}, {16, 8}, {1000, 5000}, {8, 100000}, {200000, 100000}};

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        for (int first = 0; first < 2; first++) {
            struct message m;

            open_all(1 << 20, true);
            nets_make(&m, 0, 1, 1, 200000);
            m.length = pairs[i][first == 0];
            (void)nets_post(&m, first == 0);
            nets_take_all(2);
            m.length = pairs[i][first != 0];
            (void)nets_post(&m, first != 0);
            nets_take_all(10);
            ibshift_net_probe(nets[0], 1); /* as the engine does when nothing moves */
            nets_take_all(10);
            print_message("%zu sent, %zu expected, %s first: %d %d\n", pairs[i][1], pairs[i][0],
                          first ? "receive" : "send", m.send_status, m.recv_status);
            assert_int_equal(m.recv_status, -EMSGSIZE);
            assert_true(m.send_status == -EMSGSIZE ||
                        (m.send_status == 0 && pairs[i][1] <= nets[0]->max_eager));
            close_all();
        }
    }
}

static void given_up_here(void **state)
{
    struct message posted, rest[3];

    nets_make(&posted, 0, 1, 1, 100000);
    assert_true(nets_post(&posted, false) >= 0);
    nets_take_all(2); /* the grant is there */
    ibshift_net_cancel(nets[1], COMM, 1);
    ibshift_net_abort(nets[1], 0, COMM, 1);
    nets_take_all(5);
    assert_int_equal(posted.recv_status, -ECANCELED);
    assert_int_equal(nets_post(&posted, true), -ECONNABORTED);
    for (uint32_t i = 0; i < 3; i++) { /* what was sent before the abort was seen is dropped */
        nets_make(&rest[i], 2, 1, 10 + i, lengths[4 * i]);
        assert_true(nets_post(&rest[i], true) >= 0);
    }
    nets_take_all(5);
    ibshift_net_forget(nets[1], COMM);
    ibshift_net_forget(nets[0], COMM);
    nets_make(&posted, 0, 1, 1, 100000);
    posted.key.seq = 2;
    assert_true(nets_post(&posted, true) >= 0 && nets_post(&posted, false) >= 0);
    nets_take_all(10);
    assert_arrived(&posted);
}

static bool sequel_has_begun;

static bool has_ended(void *context, uint32_t comm, uint32_t seq)
{
    return comm == COMM && seq == 1 && sequel_has_begun;
}

/* Net 1 hears that net 0 has ended the collective: not as long as that may still send, and not before what it has sent. */
static void one_end_is_empty(void **state)
{
    static const struct {
        bool is_send;
        size_t length;
    } posted[] = {{false, 8}, {false, 800000}, {true, 800000}};

    for (size_t i = 0; i < sizeof(posted) / sizeof(posted[0]); i++) {
        bool is_send = posted[i].is_send;
        struct message m, sent;
        char text[256];

        open_all(1 << 20, true);
        ibshift_node(nets[0])->given_up.comms.has_ended = has_ended;
        sequel_has_begun = false;
        nets_make(&m, is_send, !is_send, 1, posted[i].length);
        nets_make(&sent, 0, 1, 2, 40);
        assert_true(nets_post(&m, is_send) >= 0 && nets_post(&sent, false) >= 0);
        ibshift_net_ask(nets[1], 0, COMM, m.key.seq);
        nets_take_all(5);
        assert_int_equal(is_send ? m.send_status : m.recv_status, WAITING);
        assert_true(nets_post(&sent, true) >= 0);
        sequel_has_begun = true;
        ibshift_net_ask(nets[1], 0, COMM, m.key.seq);
        nets_take_all(5);
        assert_arrived(&sent);
        assert_int_equal(is_send ? m.send_status : m.recv_status, -EMSGSIZE);
        ibshift_net_describe(nets[1], 0, text, sizeof(text));
        assert_non_null(strstr(text, "bytes here and 0 there"));
        close_all();
    }
}

static struct ibshift_ledger ledger;

static struct ibshift_ledger *ledger_of(void *context, uint32_t comm)
{
    return comm == COMM ? &ledger : NULL;
}

/* It came before this side had called anything, and its sender may have forgotten by now. */
static void another_call_that_is_held(void **state)
{
    const uint32_t ours = COMM | 2u << IBSHIFT_NET_COMM_BITS;
    struct ibshift_net_cause why;
    struct message m;

    ibshift_ledger_init(&ledger);
    ibshift_node(nets[1])->given_up.comms.ledger = ledger_of;
    nets_make(&m, 0, 1, 1, 8);
    m.key.comm = COMM | 1u << IBSHIFT_NET_COMM_BITS;
    assert_true(nets_post(&m, true) >= 0);
    nets_take(1);
    ibshift_ledger_write(&ledger, ibshift_net_comm_seq(ours, m.key.seq));
    assert_false(ibshift_net_has_given_up(nets[1], COMM, &why));
    ibshift_net_ask(nets[1], 0, ours, m.key.seq);
    assert_true(ibshift_net_has_given_up(nets[1], COMM, &why));
    assert_int_equal(why.peer, 0);
    assert_int_equal(why.status, -EBADMSG);
    nets_take(0);
    assert_int_equal(nets_post(&m, true), -ECONNABORTED); /* it has been told */
}

/* A process of the host that opens its net, tells its card, and is killed. */
static pid_t start_child(int *to_parent)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        open_net(0, 1 << 20, true);
        if (write(ends[1], &cards[0], sizeof(cards[0])) != (ssize_t)sizeof(cards[0])) {
            _exit(1);
        }
        pause();
        _exit(0);
    }
    close(ends[1]);
    *to_parent = ends[0];
    return pid;
}

static int segments_left(void)
{
    DIR *dir = opendir(folder);
    int count = 0;

    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        count += strncmp(e->d_name, "ibshift-", 8) == 0;
    }
    closedir(dir);
    return count;
}

static void a_dead_process(void **state)
{
    struct message m[3];
    int end;
    pid_t pid = start_child(&end);

    assert_int_equal(read(end, &cards[0], sizeof(cards[0])), sizeof(cards[0]));
    close(end);
    open_net(1, 1 << 20, true);
    nets_make(&m[0], 0, 1, 1, 8);
    nets_make(&m[1], 0, 1, 2, 100000);
    assert_true(nets_post(&m[0], false) >= 0 && nets_post(&m[1], false) >= 0);
    ibshift_net_probe(nets[1], 0);
    nets_take(1);
    assert_int_equal(m[0].recv_status, WAITING); /* late is not dead */
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ibshift_net_probe(nets[1], 0);
    nets_take(1);
    assert_int_equal(m[0].recv_status, -ETIMEDOUT);
    assert_int_equal(m[1].recv_status, -ETIMEDOUT);
    assert_int_equal(segments_left(), 2);
    open_net(2, 1 << 20, true); /* whoever comes next sweeps */
    assert_int_equal(segments_left(), 2);
    ibshift_net_destroy(nets[1]);
    ibshift_net_destroy(nets[2]);
    assert_int_equal(segments_left(), 0);
}

/* Cells of a peer that writes what it likes, some of it nearly right. */
static void write_cell(struct ibshift_node_peer *to, uint32_t kinds)
{
    struct ibshift_node_cell *cell = &to->out.cells[to->out_cells % IBSHIFT_NODE_CELLS];
    static const uint64_t odd[] = {0, 1, 40, 41, 1000, 16384, 65536, UINT32_MAX, UINT64_MAX};

    cell->kind = (uint8_t)draw(kinds);
    cell->flags = (uint8_t)draw(3);
    cell->size = (uint16_t)(draw(2) == 0 ? draw(70) : draw(65536));
    cell->key = (struct ibshift_net_key){.comm = COMM, .seq = 1, .tag = draw(8)};
    cell->at = draw(4) != 0 ? to->out_ring : draw(UINT32_MAX);
    cell->part.length = draw(3) == 0 ? odd[draw(9)] : cell->size;
    cell->part.offset = draw(3) == 0 ? odd[draw(9)] : 0;
    to->out_ring += cell->size;
    atomic_store_explicit(&cell->turn, ++to->out_cells, memory_order_release);
}

static void hostile(void **state)
{
    enum { RUNS = 3000, POSTED = 8 };
    struct message m[POSTED];

    for (uint32_t run = 0; run < RUNS; run++) {
        struct ibshift_node_peer *victim;

        seed = run;
        open_all(1 << 17, true);
        for (uint32_t i = 0; i < POSTED; i++) {
            nets_make(&m[i], 0, 1, i, lengths[draw(13)]);
            if (draw(2) == 0) {
                (void)nets_post(&m[i], false);
            }
        }
        victim = ibshift_nn_peer(ibshift_node(nets[0]), 1);
        assert_int_equal(ibshift_nn_meet(victim), 0);
        for (uint32_t i = 0; i < 60; i++) {
            write_cell(victim, IBSHIFT_NODE_BREAK + 2);
            if (!m[i % POSTED].is_received && draw(2) == 0) {
                (void)nets_tried(&m[i % POSTED]);
            }
            nets_take(1);
        }
        ibshift_nn_break(victim, -EIO, "enough");
        nets_take_all(70);
        for (uint32_t i = 0; i < POSTED; i++) {
            assert_true(!m[i].is_received || m[i].recv_status != WAITING);
        }
        close_all();
    }
}

/* What a segment's name is found under, but is not one. */
static void strangers_stay(void **state)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/ibshift-0123", folder);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("somebody's data", file);
    fclose(file);
    open_all(1 << 20, true);
    close_all();
    assert_int_equal(access(path, F_OK), 0);
    unlink(path);
}

/* A segment gets all its memory, however often they come, and they are not lost. */
static void profiled(void **state)
{
    uint32_t calm;

    open_all(1 << 20, true);
    calm = cards[0].ring;
    close_all();
    profiler_start();
    open_all(1 << 20, true);
    assert_int_equal(profiler_stop(), NETS);
    assert_int_equal(cards[0].ring, calm);
    close_all();
}

static void no_room(void **state)
{
    struct ibshift_node_options options = {
        .folder = "/nonexistent", .processes = 2, .memory = 1 << 20, .card = card_of};
    struct ibshift_net *net;
    char why[200];

    assert_int_equal(ibshift_net_node_create(&options, &net, why, sizeof(why)), -ENOENT);
    assert_non_null(strstr(why, "/nonexistent"));
    options.folder = folder;
    options.processes = 0;
    assert_int_equal(ibshift_net_node_create(&options, &net, why, sizeof(why)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_ring_is_mapped),
        NETS_TEST(what_is_waited_for_comes),
        NETS_TEST(a_shorter_one_passes),
        NETS_TEST(what_is_tried_leaves),
        NETS_TEST(a_late_part),
        cmocka_unit_test(other_length),
        cmocka_unit_test(one_end_is_empty),
        NETS_TEST(given_up_here),
        NETS_TEST(another_call_that_is_held),
        cmocka_unit_test(a_dead_process),
        cmocka_unit_test(hostile),
        cmocka_unit_test(strangers_stay),
        cmocka_unit_test(profiled),
        cmocka_unit_test(no_room),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

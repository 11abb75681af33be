/* What goes wrong: full queues, peers that do not answer, and processes that come and go. */
#include "vt.h"

#include <signal.h>
#include <sys/wait.h>

static void sq_overflow(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.depth = 8;
    conf.min_rnr_timer = 1;
    vt_connect(&p, &conf);
    uint32_t sends = p.a.cap.max_send_wr, receives = p.b.cap.max_recv_wr;
    VT_CHECK(sends >= 8 && receives >= 8, "asked for 8 places each, got %u and %u", sends,
             receives);
    /* Nothing receives: no send completes, none leaves its place. */
    for (uint32_t i = 0; i < sends; i++) {
        VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, IBV_WR_SEND, i, 0, 8)}));
    }
    struct vt_wr more[2] = {vt_wr(&p.a, IBV_WR_SEND, 98, 0, 8), vt_wr(&p.a, IBV_WR_SEND, 99, 0, 8)};
    struct ibv_send_wr *bad = NULL;
    int rc = ibv_post_send(p.a.qp, vt_list(more, 2), &bad);
    VT_CHECK(rc == ENOMEM, "a post to a full send queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    VT_CHECK(bad == &more[0].wr, "expected bad_wr to name the first request that was refused");
    for (uint32_t i = 0; i < receives; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 8));
    }
    for (uint32_t i = 0; i < sends && i < receives; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        VT_WC(p.b.rcq, i, IBV_WC_SUCCESS);
    }
    for (uint32_t i = 0; i < p.a.cap.max_recv_wr; i++) {
        VT_OK(vt_recv(&p.a, i, 0, 8));
    }
    rc = vt_recv(&p.a, 99, 0, 8);
    VT_CHECK(rc == ENOMEM, "a post to a full receive queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    vt_disconnect(&p);
}

static void recv_too_short(struct vt_pair *p)
{
    memset(p->b.buf, 0x77, 4096);
    VT_OK(vt_recv(&p->b, 1, 0, 64));
    VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_SEND, 2, 0, 65)}));
    VT_WC_OR(p->b.rcq, 1, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR);
    VT_WC_OR(p->a.scq, 2, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR);
    vt_wait_error(p->a.qp);
    vt_wait_error(p->b.qp);
    for (int i = 64; i < 4096; i++) {
        VT_CHECK(p->b.buf[i] == 0x77, "expected byte %d behind the receive untouched", i);
    }
}

static void flush_order(struct vt_pair *unused)
{
    enum { N = 8 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_wc wc;
    conf.rnr_retry = 0;
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.a, 100 + i, 0, 64));
    }
    /* The first send finds no receive and fails; those behind it are not executed. */
    for (uint64_t i = 0; i < N; i++) {
        struct vt_wr w = vt_wr(&p.a, i ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, i, i * 64, 64);
        vt_fill(p.a.buf + i * 64, 64, (unsigned)i + 1);
        w.wr.send_flags = i % 2 ? 0 : IBV_SEND_SIGNALED;
        VT_OK(vt_post(&p.a, &w));
    }
    VT_WC(p.a.scq, 0, IBV_WC_RNR_RETRY_EXC_ERR);
    for (uint64_t i = 1; i < N; i++) { /* unsignaled ones complete as well when flushed */
        VT_WC(p.a.scq, i, IBV_WC_WR_FLUSH_ERR);
        VT_CHECK(!vt_filled(p.b.buf + i * 64, 64, (unsigned)i + 1), "expected no bytes of a flush");
    }
    for (uint64_t i = 0; i < N; i++) {
        VT_WC(p.a.rcq, 100 + i, IBV_WC_WR_FLUSH_ERR);
    }
    vt_wait_error(p.a.qp);
    VT_DO(&p.a, IBV_WR_RDMA_WRITE, 50, 0, 64, IBV_WC_WR_FLUSH_ERR);
    VT_OK(vt_recv(&p.a, 51, 0, 64));
    if (!vt_poll(p.a.rcq, &wc, 1000)) {
        vt_differs("a receive posted in the error state was not flushed");
    } else {
        VT_CHECK(wc.wr_id == 51 && wc.status == IBV_WC_WR_FLUSH_ERR,
                 "a receive posted in the error state: expected a flush, got '%s'",
                 ibv_wc_status_str(wc.status));
    }
    VT_QUIET(p.a.scq);
    VT_CHECK(vt_state(p.b.qp) == IBV_QPS_RTS, "expected the other side in RTS");
    vt_disconnect(&p);
}

static void rd_atomic(struct vt_pair *unused)
{
    enum { MORE = 4, READS = 12, LEN = 4096 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf(), eager = conf;
    if (vt.dev.max_qp_init_rd_atom < MORE) {
        vt_skip("the device has %d READs in flight at most", vt.dev.max_qp_init_rd_atom);
    }
    eager.rd_atomic = MORE;
    vt_pair_create(&p, &conf);
    struct vt_address a = vt_address(&p.a), b = vt_address(&p.b);
    vt_side_connect(&p.a, &eager, &b);
    vt_side_connect(&p.b, &conf, &a);
    struct ibv_send_wr *bad;
    struct vt_wr w[READS];
    struct ibv_wc wc;
    for (uint64_t i = 0; i < READS; i++) {
        w[i] = vt_wr(&p.a, IBV_WR_RDMA_READ, i, i * LEN, LEN);
    }
    VT_OK(ibv_post_send(p.a.qp, vt_list(w, READS), &bad));
    do {
        VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected a completion");
    } while (wc.status == IBV_WC_SUCCESS && wc.wr_id + 1 < READS);
    if (wc.status == IBV_WC_SUCCESS) {
        vt_differs("%d READs were served where the responder has 1 place", READS);
    } else {
        VT_CHECK(wc.status == IBV_WC_REM_INV_REQ_ERR, "expected '%s', got '%s'",
                 ibv_wc_status_str(IBV_WC_REM_INV_REQ_ERR), ibv_wc_status_str(wc.status));
        vt_wait_error(p.a.qp);
    }
    vt_disconnect(&p);
}

/* Without a receive: as many retries as were asked for. */
static void check_not_ready(enum ibv_wr_opcode opcode, int retries)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.rnr_retry = retries;
    vt_connect(&p, &conf);
    vt_fill(p.a.buf, 64, 1);
    if (retries == 7) { /* for ever */
        VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, opcode, 1, 0, 64)}));
        VT_QUIET(p.a.scq);
        VT_OK(vt_recv(&p.b, 2, 0, opcode == IBV_WR_SEND ? 64 : 0));
        VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
        VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf, 64, 1), "expected the bytes sent, got others");
    } else {
        struct ibv_wc wc = VT_DO(&p.a, opcode, 1, 0, 64, IBV_WC_RNR_RETRY_EXC_ERR);
        VT_CHECK(wc.qp_num == p.a.qp->qp_num, "expected queue pair %u, got %u", p.a.qp->qp_num,
                 wc.qp_num);
        vt_wait_error(p.a.qp);
        VT_CHECK(vt_state(p.b.qp) == IBV_QPS_RTS, "expected the target unharmed in RTS");
    }
    vt_disconnect(&p);
}

static void rnr_retry(struct vt_pair *unused)
{
    check_not_ready(IBV_WR_SEND, 0);
    check_not_ready(IBV_WR_SEND, 1);
    check_not_ready(IBV_WR_SEND, 3);
    check_not_ready(IBV_WR_SEND, 7);
}

static void write_imm_rnr(struct vt_pair *unused)
{
    check_not_ready(IBV_WR_RDMA_WRITE_WITH_IMM, 7);
    check_not_ready(IBV_WR_RDMA_WRITE_WITH_IMM, 1);
}

static struct vt_conf retries(int n)
{
    struct vt_conf conf = vt_conf();
    conf.timeout = 10; /* 4 ms each */
    conf.retry_cnt = n;
    return conf;
}

static void retry_all(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = retries(7);
    struct ibv_wc wc;
    vt_connect(&p, &conf);
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 64)}));
    if (vt_poll(p.a.scq, &wc, 3000)) {
        VT_CHECK(wc.status == IBV_WC_RETRY_EXC_ERR, "expected retry counter exceeded, got %s",
                 ibv_wc_status_str(wc.status));
    } else {
        vt_differs("no end within 3 s: 7 is taken as without end");
    }
    vt_disconnect(&p);
}

static void check_silent(enum ibv_qp_state state, enum ibv_wr_opcode opcode)
{
    struct vt_pair p;
    struct vt_conf conf = retries(1);
    vt_connect(&p, &conf);
    VT_OK(vt_to_state(p.b.qp, state));
    VT_DO(&p.a, opcode, 1, 0, 64, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(p.a.qp);
    vt_disconnect(&p);
}

/* A lone queue pair that talks to an address where nobody is; 0: one where somebody was. */
static void check_address(uint32_t qpn, uint16_t lid)
{
    struct vt_conf conf = retries(1);
    struct vt_side side, gone;
    vt_side_create(&side, vt.pd, &conf, false);
    vt_side_create(&gone, vt.pd, &conf, false);
    struct vt_address to = vt_address(&gone);
    vt_side_destroy(&gone);
    to.qpn = qpn ? qpn : to.qpn;
    to.lid = lid ? lid : to.lid;
    vt_side_connect(&side, &conf, &to);
    VT_DO(&side, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(side.qp);
    vt_side_destroy(&side);
}

static void retry_exceeded(struct vt_pair *unused)
{
    check_silent(IBV_QPS_ERR, IBV_WR_RDMA_WRITE);
    check_silent(IBV_QPS_RESET, IBV_WR_RDMA_READ);
    check_silent(IBV_QPS_ERR, IBV_WR_SEND);
    check_address(0, 0);
    check_address(0xfffffe, 0);
    if (!vt.is_roce) {
        check_address(0xfffffe, 0xbfff);
    }
}

/* Two processes; each opens the device by itself. */
enum { LEN = 30000, ROUNDS = 20 };
static struct vt_conf conf;
static struct vt_side side;

static void run(enum ibv_wr_opcode opcode, const struct vt_address *to, uint64_t there, size_t len,
                enum ibv_wc_status status)
{
    struct vt_wr w = vt_wr(&side, opcode, 1, 0, len);
    vt_aim(&w, to, there);
    VT_RUN(&side, &w, status);
}

static void be_target(void)
{
    char c = 0;
    vt_meet(&side, &conf);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        VT_OK(vt_recv(&side, i, 0, LEN));
        vt_tell(&c, 1);
        VT_WC(side.rcq, i, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(side.buf, LEN, (unsigned)i), "round %d: wrong bytes", (int)i);
        VT_OK(vt_recv(&side, i, 0, 0));
        vt_fill(side.buf + 32768, LEN, (unsigned)i + 100);
        vt_tell(&c, 1);
        vt_hear(&c, 1); /* asleep while the other writes, reads and adds */
        VT_CHECK(vt_filled(side.buf, LEN, (unsigned)i + 200),
                 "round %d: expected the bytes written", (int)i);
        VT_WC(side.rcq, i, IBV_WC_SUCCESS);
    }
    vt_hear(&c, 1);
}

static void be_initiator(void)
{
    char c = 0;
    struct vt_address to = vt_meet(&side, &conf);
    for (unsigned i = 0; i < ROUNDS; i++) {
        vt_hear(&c, 1);
        vt_fill(side.buf, LEN, i);
        run(IBV_WR_SEND, &to, 0, LEN, IBV_WC_SUCCESS);
        vt_hear(&c, 1);
        vt_fill(side.buf, LEN, i + 200);
        run(IBV_WR_RDMA_WRITE, &to, 0, LEN, IBV_WC_SUCCESS);
        run(IBV_WR_RDMA_READ, &to, 32768, LEN, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(side.buf, LEN, i + 100), "round %u: expected the target's bytes", i);
        run(IBV_WR_RDMA_WRITE_WITH_IMM, &to, 0, 0, IBV_WC_SUCCESS);
        vt_tell(&c, 1);
    }
    vt_tell(&c, 1);
}

static void two_processes(struct vt_pair *unused)
{
    int status;
    pid_t pid = vt_split();
    vt_open(vt.rule);
    conf = vt_conf();
    if (pid == 0) {
        be_target();
        vt_side_destroy(&side);
        exit(vt_close());
    }
    be_initiator();
    vt_side_destroy(&side);
    VT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", vt_errname(errno));
    VT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the target process failed");
}

static void peer_killed(struct vt_pair *unused)
{
    pid_t pid = vt_split();
    vt_open(vt.rule);
    conf = retries(2);
    struct vt_address to = vt_meet(&side, &conf);
    while (pid == 0) {
        pause();
    }
    run(IBV_WR_RDMA_WRITE, &to, 0, 64, IBV_WC_SUCCESS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    run(IBV_WR_RDMA_WRITE, &to, 0, 64, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(side.qp);
    vt_side_destroy(&side);
}

static void fork_beside(struct vt_pair *unused)
{
    struct vt_pair p;
    int rc = ibv_fork_init(), gate[2], status;
    vt_open(vt.rule);
    if (rc == EOPNOTSUPP || rc == ENOSYS) {
        vt_skip("ibv_fork_init: %s", vt_errname(rc));
    }
    VT_CHECK(!rc, "ibv_fork_init: expected success, got %s", vt_errname(rc));
    struct vt_conf usual = vt_conf();
    vt_connect(&p, &usual);
    VT_CHECK(!pipe(gate), "pipe: %s", vt_errname(errno));
    for (unsigned round = 0; round < 3; round++) {
        pid_t pid = fork();
        VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
        if (pid == 0) {
            char c;
            _exit(read(gate[0], &c, 1) == 1 ? 3 : 4);
        }
        /* Written after the fork, with the child alive: the device must see the parent's pages. */
        vt_fill(p.a.buf, 16384, round);
        VT_DO(&p.a, IBV_WR_RDMA_WRITE, round, 0, 16384, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf, 16384, round), "round %u: expected what the parent wrote",
                 round);
        VT_CHECK(write(gate[1], "x", 1) == 1, "write: %s", vt_errname(errno));
        VT_CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3,
                 "expected the child to exit with 3");
        vt_expect_alive(&p);
    }
    vt_disconnect(&p);
}

const struct vt_rule vt_errors[] = {
    {"sq_overflow", "a full send or receive queue refuses the next request with ENOMEM", VT_DEVICE,
     sq_overflow},
    {"recv_too_short", "a receive too short is a length error here and an invalid request there",
     VT_RC, recv_too_short},
    {"flush_order", "an error flushes both queues in order, later posts as well", VT_DEVICE,
     flush_order},
    {"rd_atomic", "more READs at once than the responder has places for are refused", VT_DEVICE,
     rd_atomic},
    {"rnr_retry", "a send without a receive is retried rnr_retry times, 7 for ever", VT_DEVICE,
     rnr_retry},
    {"write_imm_rnr", "a write with immediate waits for a receive, at most rnr_retry times",
     VT_DEVICE, write_imm_rnr},
    {"retry_all", "retry_cnt 7 ends after seven retries, unlike rnr_retry", VT_DEVICE, retry_all},
    {"retry_exceeded", "a target that does not answer ends as retry count exceeded", VT_DEVICE,
     retry_exceeded},
    {"two_processes", "two processes reach each other, the target may sleep", VT_NOTHING,
     two_processes},
    {"peer_killed", "a killed target ends as retry count exceeded", VT_NOTHING, peer_killed},
    {"fork", "a forked child does not disturb the parent's registered memory", VT_NOTHING,
     fork_beside},
    {NULL, NULL, VT_NOTHING, NULL},
};

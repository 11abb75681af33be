/* Completion queues, their channels, shared receive queues, and the extended ways to use them. */
#include "vt.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>

static bool is_awake(struct ibv_comp_channel *channel, int ms)
{
    struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
    return poll(&pfd, 1, ms) == 1;
}

static void take_event(struct ibv_comp_channel *channel, struct ibv_cq *expected)
{
    struct ibv_cq *cq = NULL;
    void *context = &context;
    VT_CHECK(is_awake(channel, VT_WAIT_MS), "expected an event on the channel, got none");
    VT_OK(ibv_get_cq_event(channel, &cq, &context));
    VT_CHECK(cq == expected, "expected the event of the receive queue's completions");
    VT_CHECK(context == NULL, "expected the context that was given");
    ibv_ack_cq_events(cq, 1);
}

static void send_one(struct vt_pair *p, uint64_t id, unsigned flags)
{
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, id, 0, 8);
    VT_OK(vt_recv(&p->b, id, 0, 8));
    w.wr.send_flags |= flags;
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
}

/* Arm, look, wait: whatever the moment of the completion, one of the two sees it. */
static void arm_look_wait(struct vt_pair *p, struct ibv_comp_channel *channel, uint64_t i)
{
    struct ibv_wc wc;
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, i, 0, 8);
    VT_OK(vt_recv(&p->b, i, 0, 8));
    VT_OK(i % 2 ? vt_post(&p->a, &w) : 0);
    VT_OK(ibv_req_notify_cq(p->b.rcq, 0));
    VT_OK(i % 2 ? 0 : vt_post(&p->a, &w));
    if (ibv_poll_cq(p->b.rcq, 1, &wc) == 0) {
        take_event(channel, p->b.rcq);
        VT_CHECK(ibv_poll_cq(p->b.rcq, 1, &wc) == 1, "an event without its completion");
    }
    VT_CHECK(wc.wr_id == i && wc.status == IBV_WC_SUCCESS, "round %d: wrong completion", (int)i);
    VT_WC(p->a.scq, i, IBV_WC_SUCCESS);
    /* It may have been seen without its event: that is taken, so that rounds stay apart. */
    if (is_awake(channel, 0)) {
        take_event(channel, p->b.rcq);
    }
}

static void channel(struct vt_pair *unused)
{
    enum { ROUNDS = 300 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_comp_channel *ch = conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);

    send_one(&p, 1, 0);
    VT_CHECK(!is_awake(ch, VT_QUIET_MS), "expected no event from a queue that was never armed");
    VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);

    VT_OK(ibv_req_notify_cq(p.b.rcq, 0));
    VT_CHECK(!is_awake(ch, VT_QUIET_MS), "expected no event before a completion");
    send_one(&p, 2, 0);
    take_event(ch, p.b.rcq);
    send_one(&p, 3, 0);
    VT_CHECK(!is_awake(ch, VT_QUIET_MS), "expected one event only for each arming");
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 3, IBV_WC_SUCCESS);

    /* Devices differ in what they do about a completion that came before (--arm-waiting). */
    send_one(&p, 4, 0);
    VT_OK(ibv_req_notify_cq(p.b.rcq, 0));
    bool is_told = is_awake(ch, VT_QUIET_MS);
    VT_CHECK(!vt.strict || is_told == (getenv("ARM_WAITING") != NULL),
             "a completion that waits was%s told when armed", is_told ? "" : " not");
    if (is_told) {
        take_event(ch, p.b.rcq);
    }
    VT_WC(p.b.rcq, 4, IBV_WC_SUCCESS);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        arm_look_wait(&p, ch, i);
    }
    vt_disconnect(&p);
    VT_OK(ibv_destroy_comp_channel(ch));
}

static void solicited(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_comp_channel *ch = conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);
    VT_OK(ibv_req_notify_cq(p.b.rcq, 1));
    send_one(&p, 1, 0);
    VT_CHECK(!is_awake(ch, VT_QUIET_MS), "expected a plain message not to wake");
    send_one(&p, 2, IBV_SEND_SOLICITED);
    take_event(ch, p.b.rcq);
    VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_OK(vt_recv(&p.b, 3, 0, 8));
    VT_OK(ibv_req_notify_cq(p.b.rcq, 1));
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    if (is_awake(ch, 1000)) {
        take_event(ch, p.b.rcq);
    } else {
        vt_differs("a flushed receive did not wake the channel armed for solicited events");
    }
    VT_WC(p.b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
    vt_disconnect(&p);
    VT_OK(ibv_destroy_comp_channel(ch));
}

static struct ibv_cq_ex *create_ex(void)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 32,
                                       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                                                   IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(vt.ctx, &attr);
    if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device has no ibv_create_cq_ex");
    }
    VT_CHECK(cq, "ibv_create_cq_ex: expected a queue, got %s", vt_errname(errno));
    return cq;
}

static int start(struct ibv_cq_ex *cq, int ms)
{
    struct ibv_poll_cq_attr attr = {.comp_mask = 0};
    uint64_t end = vt_now_ms() + (uint64_t)ms;
    int rc = ibv_start_poll(cq, &attr);
    while (rc == ENOENT && vt_now_ms() < end) {
        sched_yield();
        rc = ibv_start_poll(cq, &attr);
    }
    return rc;
}

static void expect_two(struct ibv_cq_ex *cq, uint32_t qpn)
{
    VT_OK(start(cq, VT_WAIT_MS));
    VT_CHECK(cq->wr_id == 1 && cq->status == IBV_WC_SUCCESS, "expected completion 1, got %llu '%s'",
             (unsigned long long)cq->wr_id, ibv_wc_status_str(cq->status));
    VT_CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV, "expected the opcode RECV");
    VT_CHECK(ibv_wc_read_byte_len(cq) == 64, "expected 64 bytes, got %u", ibv_wc_read_byte_len(cq));
    VT_CHECK(ibv_wc_read_imm_data(cq) == htonl(9), "expected immediate 9");
    VT_CHECK(ibv_wc_read_qp_num(cq) == qpn, "expected queue pair %u, got %u", qpn,
             ibv_wc_read_qp_num(cq));
    VT_OK(ibv_next_poll(cq));
    VT_CHECK(cq->wr_id == 2, "expected completion 2, got %llu", (unsigned long long)cq->wr_id);
    int rc = ibv_next_poll(cq);
    VT_CHECK(rc == ENOENT, "behind the last completion: expected ENOENT, got %s", vt_errname(rc));
    ibv_end_poll(cq);
}

static void cq_ex(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_pair_create(&p, &conf);
    struct ibv_cq_ex *cq = create_ex();
    VT_OK(ibv_destroy_qp(p.b.qp));
    struct ibv_qp_init_attr init = {
        .send_cq = p.b.scq,
        .recv_cq = ibv_cq_ex_to_cq(cq),
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    p.b.qp = VT_PTR(ibv_create_qp(vt.pd, &init));
    vt_pair_connect(&p, &conf);
    int rc = start(cq, 0);
    VT_CHECK(rc == ENOENT, "an empty queue: expected ENOENT, got %s", rc ? vt_errname(rc) : "0");
    for (uint64_t i = 1; i <= 2; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 64));
    }
    for (uint64_t i = 1; i <= 2; i++) {
        struct vt_wr w = vt_wr(&p.a, i == 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i, 0, 64);
        w.wr.imm_data = htonl(9);
        VT_RUN(&p.a, &w, IBV_WC_SUCCESS);
    }
    usleep(VT_QUIET_MS * 1000); /* the receiver's completion may follow the sender's */
    expect_two(cq, p.b.qp->qp_num);
    vt_side_destroy(&p.b);
    VT_OK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
    vt_side_destroy(&p.a);
}

static void cq_overrun(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.cqe = 1;
    conf.depth = 512;
    vt_connect(&p, &conf);
    int room = p.a.scq->cqe;
    VT_CHECK(room >= 1, "asked for 1 entry, got %d", room);
    for (int i = 0; i < room + 8; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8);
        if (vt_post(&p.a, &w)) {
            VT_CHECK(i > room, "only %d posts taken, the completion queue has %d entries", i, room);
            break;
        }
    }
    vt_wait_event(IBV_EVENT_CQ_ERR, VT_WAIT_MS);
    vt_disconnect(&p);
}

static void post_writes(struct vt_pair *p, uint64_t first, uint64_t end)
{
    for (uint64_t i = first; i < end; i++) {
        VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_RDMA_WRITE, i, 0, 64)}));
    }
}

static void resize_cq(struct vt_pair *unused)
{
    enum { N = 8 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.depth = 2 * N;
    conf.cqe = N;
    vt_connect(&p, &conf);
    post_writes(&p, 0, N);
    VT_CHECK(vt_poll(p.a.scq, &(struct ibv_wc){0}, VT_WAIT_MS), "expected completion 0");
    usleep(VT_QUIET_MS * 1000); /* the others are in the queue by now */
    int err = ibv_resize_cq(p.a.scq, 4 * N);
    if (err == EOPNOTSUPP || err == ENOSYS) {
        vt_skip("the device does not resize completion queues");
    }
    VT_OK(err);
    VT_CHECK(p.a.scq->cqe >= 4 * N, "cqe: expected at least %d, got %d", 4 * N, p.a.scq->cqe);
    post_writes(&p, N, 2 * N); /* these would not have fitted before */
    usleep(VT_QUIET_MS * 1000);
    if (ibv_resize_cq(p.a.scq, 2) == 0 && p.a.scq->cqe < 2 * N - 1) {
        VT_FAIL("%d completions wait: expected a refusal to shrink to 2, got success", 2 * N - 1);
    }
    for (uint64_t i = 1; i < 2 * N; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
    }
    VT_QUIET(p.a.scq);
    VT_REFUSED(ibv_resize_cq(p.a.scq, 0));
    VT_REFUSED(ibv_resize_cq(p.a.scq, vt.dev.max_cqe + 1));
    vt_expect_alive(&p);
    vt_disconnect(&p);
}

static void srq(struct vt_pair *unused)
{
    enum { N = 12 };
    struct vt_pair p, q;
    struct vt_conf conf = vt_conf();
    struct ibv_srq_attr attr;
    conf.srq = vt_srq(N);
    vt_connect(&p, &conf);
    vt_connect(&q, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.b, 100 + i, i * 64, 64));
    }
    for (uint64_t i = 0; i < N; i++) {
        struct vt_pair *from = i % 3 == 1 ? &q : &p;
        vt_fill(from->a.buf, 64, (unsigned)i);
        VT_DO(&from->a, IBV_WR_SEND, i, 0, 64, IBV_WC_SUCCESS);
        struct ibv_wc wc = VT_WC(from->b.rcq, 100 + i, IBV_WC_SUCCESS);
        VT_CHECK(wc.qp_num == from->b.qp->qp_num, "message %d: expected queue pair %u, got %u",
                 (int)i, from->b.qp->qp_num, wc.qp_num);
        VT_CHECK(vt_filled(p.b.buf + i * 64, 64, (unsigned)i), "message %d: wrong bytes", (int)i);
    }
    VT_OK(ibv_query_srq(conf.srq, &attr));
    for (uint32_t i = 0; i < attr.max_wr; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 64));
    }
    int rc = vt_recv(&p.b, 99, 0, 64);
    VT_CHECK(rc == ENOMEM, "a full shared receive queue: expected ENOMEM, got %s",
             rc ? vt_errname(rc) : "success");
    vt_disconnect(&p);
    vt_disconnect(&q);
    VT_OK(ibv_destroy_srq(conf.srq));
}

static void srq_empty(struct vt_pair *unused)
{
    struct vt_pair p, q;
    struct vt_conf conf = vt_conf();
    conf.srq = vt_srq(4);
    vt_connect(&p, &conf);
    conf.rnr_retry = 1;
    vt_connect(&q, &conf);
    VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, IBV_WR_SEND, 1, 0, 64)}));
    VT_DO(&q.a, IBV_WR_SEND, 2, 0, 64, IBV_WC_RNR_RETRY_EXC_ERR);
    VT_QUIET(p.a.scq);
    VT_OK(vt_recv(&p.b, 3, 0, 64));
    VT_WC(p.b.rcq, 3, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    vt_expect_alive(&p);
    vt_disconnect(&p);
    vt_disconnect(&q);
    VT_OK(ibv_destroy_srq(conf.srq));
}

static void take_one(struct vt_pair *p)
{
    struct ibv_wc wc;
    VT_DO(&p->a, IBV_WR_SEND, 1, 0, 8, IBV_WC_SUCCESS);
    VT_CHECK(vt_poll(p->b.rcq, &wc, VT_WAIT_MS), "expected the message to arrive");
}

static void expect_no_event(const char *when)
{
    struct pollfd pfd = {.fd = vt.ctx->async_fd, .events = POLLIN};
    VT_CHECK(poll(&pfd, 1, VT_QUIET_MS) == 0, "expected no event %s", when);
}

static void srq_limit(struct vt_pair *unused)
{
    enum { N = 8, LIMIT = 4 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_srq_attr limit = {.srq_limit = LIMIT}, now;
    conf.srq = vt_srq(N);
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 64));
    }
    VT_OK(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    VT_OK(ibv_query_srq(conf.srq, &now));
    VT_CHECK(now.srq_limit == LIMIT, "the limit: expected %d, got %u", LIMIT, now.srq_limit);
    for (int left = N - 1; left >= LIMIT; left--) {
        take_one(&p);
    }
    expect_no_event("while as many receives as the limit are left");
    take_one(&p);
    vt_wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, VT_WAIT_MS);
    take_one(&p);
    expect_no_event("before the limit is armed again");
    limit.srq_limit = 2;
    VT_OK(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    take_one(&p);
    vt_wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, VT_WAIT_MS);
    limit.srq_limit = now.max_wr + 1;
    VT_REFUSED(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
}

static void last_wqe(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.srq = vt_srq(4);
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 1, 0, 64));
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    vt_wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, VT_WAIT_MS);
    VT_QUIET(p.b.rcq); /* the receive belongs to the shared queue and is not flushed */
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
}

static struct ibv_qp_ex *create_builder(struct vt_side *side)
{
    VT_OK(ibv_destroy_qp(side->qp));
    struct ibv_qp_init_attr_ex init = {
        .send_cq = side->scq,
        .recv_cq = side->rcq,
        .cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 32},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = vt.pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
                          IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM};
    side->qp = ibv_create_qp_ex(vt.ctx, &init);
    if (!side->qp && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device has no ibv_wr_* functions");
    }
    VT_CHECK(side->qp, "ibv_create_qp_ex: expected a queue pair, got %s", vt_errname(errno));
    return VT_PTR(ibv_qp_to_qp_ex(side->qp));
}

static void build_three(struct vt_side *a, struct ibv_qp_ex *qx, struct vt_side *b)
{
    uint64_t there = (uintptr_t)b->buf;
    vt_fill(a->buf, 4096, 1);
    VT_OK(vt_recv(b, 10, 8192, 64));
    VT_OK(vt_recv(b, 11, 8192, 64));
    ibv_wr_start(qx);
    qx->wr_id = 1;
    qx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qx, b->mr->rkey, there);
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf, 4096);
    qx->wr_id = 2;
    /* Soft-RoCE takes inline data for inline only when the flag says so too
     * (docs/verbs-differences.md). */
    qx->wr_flags |= vt.strict ? 0 : IBV_SEND_INLINE;
    ibv_wr_send_imm(qx, htonl(5));
    ibv_wr_set_inline_data(qx, "inline", 7);
    qx->wr_id = 3;
    qx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write_imm(qx, b->mr->rkey, there + 4096, htonl(6));
    ibv_wr_set_sge(qx, a->mr->lkey, (uintptr_t)a->buf, 128);
    VT_QUIET(b->rcq);
    VT_OK(ibv_wr_complete(qx));
    for (uint64_t id = 1; id <= 3; id++) {
        VT_WC(a->scq, id, IBV_WC_SUCCESS);
    }
    struct ibv_wc wc = VT_WC(b->rcq, 10, IBV_WC_SUCCESS);
    VT_CHECK(wc.imm_data == htonl(5) && wc.byte_len == 7, "expected 7 bytes and immediate 5");
    wc = VT_WC(b->rcq, 11, IBV_WC_SUCCESS);
    VT_CHECK(wc.imm_data == htonl(6) && wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
             "expected a write with immediate 6");
    VT_CHECK(vt_filled(b->buf, 4096, 1), "expected the bytes written");
    VT_CHECK(!strcmp((char *)b->buf + 8192, "inline"), "expected the inline bytes");
}

static void wr_api(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_pair_create(&p, &conf);
    struct ibv_qp_ex *qx = create_builder(&p.a);
    vt_pair_connect(&p, &conf);
    build_three(&p.a, qx, &p.b);

    ibv_wr_start(qx);
    qx->wr_id = 4;
    ibv_wr_rdma_write(qx, p.b.mr->rkey, (uintptr_t)p.b.buf + 16384);
    ibv_wr_set_sge(qx, p.a.mr->lkey, (uintptr_t)p.a.buf, 64);
    ibv_wr_abort(qx);
    VT_QUIET(p.a.scq);
    VT_CHECK(p.b.buf[16384] == 0, "expected nothing of an aborted list");

    ibv_wr_start(qx);
    qx->wr_id = 5;
    ibv_wr_rdma_read(qx, p.b.mr->rkey, (uintptr_t)p.b.buf);
    ibv_wr_set_sge(qx, p.a.mr->lkey, (uintptr_t)p.a.buf + 32768, 4096);
    VT_OK(ibv_wr_complete(qx));
    VT_WC(p.a.scq, 5, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.a.buf + 32768, 4096, 1), "expected the bytes read");
    vt_disconnect(&p);
}

const struct vt_rule vt_queues[] = {
    {"channel", "an armed completion queue wakes its channel once, and none is lost", VT_DEVICE,
     channel},
    {"solicited", "armed for solicited events, only solicited and failed completions wake",
     VT_DEVICE, solicited},
    {"cq_ex", "the extended completion queue tells what ibv_poll_cq tells", VT_DEVICE, cq_ex},
    {"cq_overrun", "an overrun completion queue raises a CQ error event", VT_DEVICE, cq_overrun},
    {"resize_cq", "a resized completion queue keeps its completions", VT_DEVICE, resize_cq},
    {"srq", "a shared receive queue gives out its receives in order", VT_DEVICE, srq},
    {"srq_empty", "an empty shared receive queue makes its senders wait or give up", VT_DEVICE,
     srq_empty},
    {"srq_limit", "the limit event of a shared receive queue comes once each time it is armed",
     VT_DEVICE, srq_limit},
    {"last_wqe", "a queue pair in error tells that it has taken its last shared receive", VT_DEVICE,
     last_wqe},
    {"wr_api", "requests built by ibv_wr_* run when the list is complete", VT_DEVICE, wr_api},
    {NULL, NULL, VT_NOTHING, NULL},
};

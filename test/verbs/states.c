/* What a device says of itself, the states of queue pairs, and what may be made and destroyed. */
#include "vt.h"

static void check_gids(void)
{
    union ibv_gid gid;
    struct ibv_gid_entry entry;
    for (int i = 0; i < vt.port.gid_tbl_len && i < 256; i++) {
        VT_OK(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, i, &gid));
    }
    VT_REFUSED(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, vt.port.gid_tbl_len, &gid));
    VT_REFUSED(ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, -1, &gid));
    VT_OK(ibv_query_gid_ex(vt.ctx, (uint32_t)vt.port_num, (uint32_t)vt.gid_index, &entry, 0));
    VT_CHECK(!memcmp(&entry.gid, &vt.gid, 16), "two queries tell two GIDs");
    bool is_ib = entry.gid_type == IBV_GID_TYPE_IB;
    VT_CHECK(is_ib == !vt.is_roce, "GID type: got %u on a port with%s RoCE", entry.gid_type,
             vt.is_roce ? "" : "out");
}

static void ports(struct vt_pair *unused)
{
    struct ibv_port_attr port;
    for (int i = 0; i < 10; i++) {
        memset(&port, 0, sizeof(port));
        VT_OK(ibv_query_port(vt.ctx, (uint8_t)vt.port_num, &port));
        VT_CHECK(port.lid == vt.port.lid && port.state == vt.port.state &&
                     port.active_mtu == vt.port.active_mtu &&
                     port.gid_tbl_len == vt.port.gid_tbl_len &&
                     port.max_msg_sz == vt.port.max_msg_sz,
                 "query %d of the port differs from the first", i + 2);
    }
    VT_REFUSED(ibv_query_port(vt.ctx, 0, &port));
    VT_REFUSED(ibv_query_port(vt.ctx, (uint8_t)(vt.dev.phys_port_cnt + 1), &port));
    VT_CHECK(vt.port.active_mtu <= vt.port.max_mtu && vt.port.active_mtu >= IBV_MTU_256,
             "active MTU %d, max MTU %d", vt.port.active_mtu, vt.port.max_mtu);
    VT_CHECK(vt.port.max_msg_sz >= 1u << 20, "max_msg_sz %u is less than 1 MiB",
             vt.port.max_msg_sz);
    VT_CHECK(vt.is_roce || (vt.port.lid > 0 && vt.port.lid < 0xc000), "LID 0x%x is no unicast LID",
             vt.port.lid);
    check_gids();
    uint16_t pkey;
    VT_OK(ibv_query_pkey(vt.ctx, (uint8_t)vt.port_num, 0, &pkey));
    VT_CHECK(pkey != 0, "P_Key 0 of the table is invalid");
    VT_REFUSED(ibv_query_pkey(vt.ctx, (uint8_t)vt.port_num, vt.port.pkey_tbl_len, &pkey));
    VT_CHECK(ibv_get_device_guid(vt.ctx->device) == vt.dev.node_guid,
             "the device list and the device attributes tell two GUIDs");
}

static void two_ports(struct vt_pair *unused)
{
    struct ibv_port_attr other;
    int first = vt.port_num, second = first == 1 ? 2 : 1;
    if (vt.dev.phys_port_cnt < 2) {
        vt_skip("the device has one port");
    }
    VT_OK(ibv_query_port(vt.ctx, (uint8_t)second, &other));
    if (other.state != IBV_PORT_ACTIVE || (vt.is_roce && !vt.strict)) {
        vt_skip("port %d is not active, or its network may be another", second);
    }
    union ibv_gid gid;
    VT_OK(ibv_query_gid(vt.ctx, (uint8_t)second, vt.gid_index, &gid));
    VT_CHECK(vt.is_roce || other.lid != vt.port.lid, "both ports have LID %u", other.lid);
    VT_CHECK(memcmp(&gid, &vt.gid, sizeof(gid)), "both ports have the same GID");
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_pair_create(&p, &conf);
    struct vt_address a = vt_address(&p.a), b = vt_address(&p.b);
    b.lid = other.lid;
    b.gid = gid;
    vt_side_connect(&p.a, &conf, &b);
    vt.port_num = second;
    vt_side_connect(&p.b, &conf, &a);
    vt.port_num = first;
    vt_expect_alive(&p);
    vt_disconnect(&p);
}

static struct ibv_qp *try_qp(struct ibv_cq *cq, struct ibv_qp_cap cap)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = cap, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(vt.pd, &init);
    if (qp) {
        VT_CHECK(init.cap.max_send_wr >= cap.max_send_wr &&
                     init.cap.max_recv_wr >= cap.max_recv_wr &&
                     init.cap.max_send_sge >= cap.max_send_sge &&
                     init.cap.max_recv_sge >= cap.max_recv_sge &&
                     init.cap.max_inline_data >= cap.max_inline_data,
                 "expected at least what was asked for");
    }
    return qp;
}

static void limits(struct vt_pair *unused)
{
    uint32_t wr = (uint32_t)vt.dev.max_qp_wr, sge = (uint32_t)vt.dev.max_sge;
    struct ibv_cq *cq = VT_PTR(ibv_create_cq(vt.ctx, 16, NULL, NULL, 0));
    VT_CHECK(cq->cqe >= 16, "asked for 16 completions, got %d", cq->cqe);
    VT_OK(ibv_destroy_qp(VT_PTR(try_qp(cq, (struct ibv_qp_cap){3, 5, 2, 1, 17}))));
    VT_OK(ibv_destroy_qp(VT_PTR(try_qp(cq, (struct ibv_qp_cap){1, 1, sge < 30 ? sge : 4, 1, 0}))));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){wr + 1, 1, 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, wr + 1, 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, sge + 1, 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, 1, sge + 1, 0}));
    VT_NULL(try_qp(cq, (struct ibv_qp_cap){1, 1, 1, 1, 1u << 20}));
    VT_OK(ibv_destroy_cq(cq));
    VT_NULL(ibv_create_cq(vt.ctx, vt.dev.max_cqe + 1, NULL, NULL, 0));
    VT_NULL(ibv_create_cq(vt.ctx, 0, NULL, NULL, 0));
    struct ibv_srq_init_attr init = {
        .attr = {.max_wr = (uint32_t)vt.dev.max_srq_wr + 1, .max_sge = 1}};
    VT_NULL(ibv_create_srq(vt.pd, &init));
}

static void expect_busy(int rc, const char *what)
{
    int err = rc > 0 ? rc : errno;
    VT_CHECK(rc && err == EBUSY, "%s: expected EBUSY, got %s", what,
             rc ? vt_errname(err) : "success");
}

static void destroy_busy(struct vt_pair *unused)
{
    static char memory[4096];
    struct vt_pair p;
    struct ibv_pd *pd = VT_PTR(ibv_alloc_pd(vt.ctx));
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
    expect_busy(ibv_dealloc_pd(pd), "a protection domain with a region");
    VT_OK(ibv_dereg_mr(mr));
    VT_OK(ibv_dealloc_pd(pd));

    struct vt_conf conf = vt_conf();
    conf.srq = vt_srq(4);
    conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);
    expect_busy(ibv_dealloc_pd(vt.pd), "a protection domain with queue pairs");
    expect_busy(ibv_destroy_cq(p.a.scq), "the completion queue of a send queue");
    expect_busy(ibv_destroy_cq(p.b.rcq), "the completion queue of a receive queue");
    expect_busy(ibv_destroy_srq(conf.srq), "a shared receive queue with a queue pair");
    expect_busy(ibv_destroy_comp_channel(conf.events), "a channel with a completion queue");
    vt_expect_alive(&p);
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
    VT_OK(ibv_destroy_comp_channel(conf.events));
}

/* A queue pair that is its own peer. */
static struct vt_conf conf;
static struct vt_side side;
static struct vt_address self;

static void make_side(void)
{
    conf = vt_conf();
    vt_side_create(&side, vt.pd, &conf, false);
    self = vt_address(&side);
}

static int step_to(enum ibv_qp_state state)
{
    return state == IBV_QPS_INIT  ? vt_to_init(side.qp, &conf)
           : state == IBV_QPS_RTR ? vt_to_rtr(side.qp, &conf, &self)
           : state == IBV_QPS_RTS ? vt_to_rts(side.qp, &conf)
                                  : vt_to_state(side.qp, state);
}

static void bring_to(enum ibv_qp_state state)
{
    VT_OK(vt_to_state(side.qp, IBV_QPS_RESET));
    for (enum ibv_qp_state s = IBV_QPS_INIT; s <= state; s++) {
        VT_OK(step_to(s));
    }
}

static void try_transition(enum ibv_qp_state from, enum ibv_qp_state to)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS"};
    bool is_legal =
        to == from + 1 || to == IBV_QPS_RESET || (from == IBV_QPS_INIT && to == IBV_QPS_INIT);
    enum ibv_qp_state expected = is_legal ? to : from, now;
    bring_to(from);
    int rc = step_to(to);
    VT_CHECK(!rc == is_legal, "%s to %s: expected %s, got %s", names[from], names[to],
             is_legal ? "success" : "a refusal", rc ? vt_errname(rc) : "success");
    now = vt_state(side.qp);
    VT_CHECK(now == expected, "after %s to %s: expected state %d, got %d", names[from], names[to],
             expected, now);
}

static void qp_states(struct vt_pair *unused)
{
    make_side();
    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_RTS; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_RTS; to++) {
            try_transition(from, to);
        }
        bring_to(from);
        if (from > IBV_QPS_RESET) {
            VT_OK(vt_to_state(side.qp, IBV_QPS_ERR));
            VT_CHECK(vt_state(side.qp) == IBV_QPS_ERR, "expected the state ERR after state %d",
                     from);
            VT_REFUSED(step_to(IBV_QPS_INIT));
            VT_REFUSED(step_to(IBV_QPS_RTS));
        }
    }
    vt_side_destroy(&side);
}

static int modify(enum ibv_qp_state state, int mask)
{
    struct ibv_qp_attr attr = {.qp_state = state,
                               .port_num = (uint8_t)vt.port_num,
                               .qp_access_flags = (unsigned)conf.qp_access,
                               .path_mtu = vt.port.active_mtu,
                               .dest_qp_num = self.qpn,
                               .max_dest_rd_atomic = 1,
                               .max_rd_atomic = 1,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .min_rnr_timer = 12,
                               .qkey = 0x1234,
                               .ah_attr = vt_ah_attr(&self)};
    return ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | mask);
}

/* With a foreign attribute, and with all its own but one, for each one, it is refused; then all are
   taken. */
static void check_required(enum ibv_qp_state state, int mask, int foreign)
{
    int rc = modify(state, mask | foreign);
    VT_CHECK(rc, "to state %d with attribute 0x%x: expected a refusal", state, foreign);
    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
        rc = mask & bit ? modify(state, mask & ~bit) : EINVAL;
        VT_CHECK(rc, "to state %d without attribute 0x%x: expected a refusal", state, bit);
    }
    rc = modify(state, mask);
    VT_CHECK(!rc, "to state %d with mask 0x%x: expected success, got %s", state, mask,
             vt_errname(rc));
}

static void qp_masks(struct vt_pair *unused)
{
    make_side();
    check_required(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                   IBV_QP_QKEY);
    check_required(IBV_QPS_RTR,
                   IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                   IBV_QP_SQ_PSN);
    check_required(IBV_QPS_RTS,
                   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                       IBV_QP_MAX_QP_RD_ATOMIC,
                   IBV_QP_PATH_MTU);
    VT_REFUSED(modify(IBV_QPS_RTS, IBV_QP_DEST_QPN)); /* the peer stays what it is */
    VT_OK(modify(IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER));
    vt_side_destroy(&side);
}

static void expect_value(const char *what, unsigned expected, unsigned got)
{
    VT_CHECK(got == expected, "%s: expected %u, got %u", what, expected, got);
}

static void qp_values(struct vt_pair *unused)
{
    make_side();
    struct vt_conf bad = conf;
    struct ibv_qp_attr q = {.qp_state = IBV_QPS_INIT,
                            .port_num = (uint8_t)(vt.dev.phys_port_cnt + 1)};
    VT_REFUSED(ibv_modify_qp(side.qp, &q,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    VT_OK(vt_to_init(side.qp, &conf));
    if (vt.dev.max_qp_rd_atom < 255) {
        bad.rd_atomic = vt.dev.max_qp_rd_atom + 1;
        if (vt_to_rtr(side.qp, &bad, &self) == 0) {
            vt_differs("more READs at once than the device can was accepted");
            bring_to(IBV_QPS_INIT);
        }
    }
    conf.rd_atomic = vt.dev.max_qp_rd_atom < 4 ? vt.dev.max_qp_rd_atom : 4;
    VT_OK(vt_to_rtr(side.qp, &conf, &self));
    conf.rnr_retry = 3;
    conf.retry_cnt = 5;
    conf.timeout = 17;
    VT_OK(vt_to_rts(side.qp, &conf));

    struct ibv_qp_init_attr init;
    int all = IBV_QP_STATE | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_RNR_RETRY |
              IBV_QP_RETRY_CNT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC |
              IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_PORT | IBV_QP_AV |
              IBV_QP_ACCESS_FLAGS | IBV_QP_CAP;
    VT_OK(ibv_query_qp(side.qp, &q, all, &init));
    expect_value("peer", self.qpn, q.dest_qp_num);
    expect_value("MTU", vt.port.active_mtu, q.path_mtu);
    expect_value("rnr_retry", 3, q.rnr_retry);
    expect_value("retry_cnt", 5, q.retry_cnt);
    expect_value("timeout", 17, q.timeout);
    expect_value("port", (unsigned)vt.port_num, q.port_num);
    expect_value("min_rnr_timer", (unsigned)conf.min_rnr_timer, q.min_rnr_timer);
    expect_value("max_send_wr", side.cap.max_send_wr, init.cap.max_send_wr);
    expect_value("GRH", vt.is_roce, q.ah_attr.is_global);
    VT_CHECK(q.max_rd_atomic >= conf.rd_atomic, "max_rd_atomic: expected at least %d, got %u",
             conf.rd_atomic, q.max_rd_atomic);
    vt_side_destroy(&side);
}

static void qp_reset(struct vt_pair *p)
{
    struct vt_conf usual = vt_conf();
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < p->b.cap.max_recv_wr; i++) {
            VT_OK(vt_recv(&p->b, i, 0, 64));
        }
        VT_OK(round == 1 ? vt_to_state(p->a.qp, IBV_QPS_ERR) : 0);
        VT_OK(vt_to_state(p->a.qp, IBV_QPS_RESET));
        VT_OK(vt_to_state(p->b.qp, IBV_QPS_RESET));
        VT_QUIET(p->b.rcq);
        vt_pair_connect(p, &usual);
        vt_expect_alive(p);
        vt_fill(p->a.buf, 4096, (unsigned)round);
        VT_DO(&p->a, IBV_WR_RDMA_WRITE, round, 0, 4096, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p->b.buf, 4096, (unsigned)round), "expected the bytes written");
    }
}

static void check_send_waits(struct vt_side *from, const char *state)
{
    struct vt_wr w = vt_wr(from, IBV_WR_RDMA_WRITE, 1, 0, 8);
    if (vt_post(from, &w) == 0) {
        vt_differs("a send posted in %s was taken", state);
    }
    VT_QUIET(from->scq);
    VT_OK(vt_to_state(from->qp, IBV_QPS_RESET));
}

static void post_states(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf usual = vt_conf();
    vt_pair_create(&p, &usual);
    struct vt_address to_a = vt_address(&p.a), to_b = vt_address(&p.b);
    vt_fill(p.a.buf, 8, 1);
    check_send_waits(&p.a, "RESET");
    VT_OK(vt_to_init(p.a.qp, &usual));
    check_send_waits(&p.a, "INIT");
    if (vt_recv(&p.b, 1, 0, 64) == 0) {
        vt_differs("a receive posted in RESET was taken");
        VT_OK(vt_to_state(p.b.qp, IBV_QPS_RESET));
    }
    VT_OK(vt_to_init(p.b.qp, &usual));
    VT_OK(vt_recv(&p.b, 2, 1024, 64));
    VT_OK(vt_to_rtr(p.b.qp, &usual, &to_a));
    VT_OK(vt_to_rts(p.b.qp, &usual));
    vt_side_connect(&p.a, &usual, &to_b);
    VT_CHECK(!vt_filled(p.b.buf, 8, 1), "expected no bytes written by requests posted before RTS");
    VT_DO(&p.a, IBV_WR_SEND, 3, 1024, 64, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    vt_disconnect(&p);
}

enum { HOLD = 6, HELD = HOLD * 4096, BACK = HELD + 64, RESUME_MS = 1000 };

/* Polls completions from `next` on that come in time. Returns the number of the next one. */
static uint64_t take_some(struct vt_pair *p, uint64_t next, uint64_t most, int ms)
{
    struct ibv_wc wc;
    while (next < most && vt_poll(p->a.scq, &wc, ms)) {
        VT_CHECK(wc.wr_id == next && wc.status == IBV_WC_SUCCESS,
                 "expected completion %d, got %d with '%s'", (int)next, (int)wc.wr_id,
                 ibv_wc_status_str(wc.status));
        next++;
    }
    return next;
}

static void sqd(struct vt_pair *p)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    for (uint64_t i = 0; i < HOLD; i++) {
        VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_RDMA_WRITE, i, i * 4096, 4096)}));
    }
    int err = ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
    if (err == EOPNOTSUPP || err == ENOSYS || err == EINVAL) {
        vt_skip("the device does not drain: %s", vt_errname(err));
    }
    VT_OK(err);
    vt_wait_event(IBV_EVENT_SQ_DRAINED, VT_WAIT_MS);
    VT_CHECK(vt_state(p->a.qp) == IBV_QPS_SQD, "expected the state SQD");
    uint64_t next = take_some(p, 0, HOLD, VT_QUIET_MS), before; /* what had begun; the rest waits */
    vt_fill(p->a.buf + HELD, 64, 3);
    VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_RDMA_WRITE, HOLD, HELD, 64)}));
    VT_QUIET(p->a.scq);
    VT_CHECK(!vt_filled(p->b.buf + HELD, 64, 3), "expected a request posted in SQD to wait");
    VT_OK(vt_recv(&p->a, 40, BACK, 64)); /* the receive side goes on */
    VT_DO(&p->b, IBV_WR_SEND, 41, BACK, 64, IBV_WC_SUCCESS);
    VT_WC(p->a.rcq, 40, IBV_WC_SUCCESS);
    VT_OK(vt_to_state(p->a.qp, IBV_QPS_RTS));
    before = next;
    next = take_some(p, next, next + 1, RESUME_MS);
    if (next == before) {
        struct vt_wr kick = vt_wr(&p->a, IBV_WR_RDMA_WRITE, HOLD + 1, HELD, 64);
        vt_differs("the send queue stands still in RTS until something is posted");
        kick.wr.send_flags = 0;
        VT_OK(vt_post(&p->a, &kick));
    }
    next = take_some(p, next, HOLD + 1, VT_WAIT_MS);
    VT_CHECK(next == HOLD + 1, "expected completion %d after RTS", (int)next);
    VT_CHECK(vt_filled(p->b.buf + HELD, 64, 3), "expected the bytes after RTS");
    vt_expect_alive(p);
}

const struct vt_rule vt_states[] = {
    {"ports", "port and device attributes hold together", VT_DEVICE, ports},
    {"two_ports", "queue pairs on two ports of one device reach each other", VT_DEVICE, two_ports},
    {"limits", "objects beyond the device's limits are refused", VT_DEVICE, limits},
    {"destroy_busy", "objects in use refuse to be destroyed", VT_DEVICE, destroy_busy},
    {"qp_states", "only the legal transitions of a queue pair's state are accepted", VT_DEVICE,
     qp_states},
    {"qp_masks", "a transition is refused without each of its required attributes", VT_DEVICE,
     qp_masks},
    {"qp_values", "values out of range are refused; a query returns what was set", VT_DEVICE,
     qp_values},
    {"qp_reset", "a queue pair through RESET is empty and works again", VT_RC, qp_reset},
    {"post_states", "sends wait for RTS, receives for INIT", VT_DEVICE, post_states},
    {"sqd", "SQD finishes what has begun and holds what comes after", VT_RC, sqd},
    {NULL, NULL, VT_NOTHING, NULL},
};

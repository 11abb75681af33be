/* Queue pairs: made, connected, used. */
#include "vt.h"

#include <sched.h>

struct vt_conf vt_conf(void)
{
    int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    if (vt.dev.atomic_cap != IBV_ATOMIC_NONE) {
        all |= IBV_ACCESS_REMOTE_ATOMIC;
    }
    return (struct vt_conf){
        .type = IBV_QPT_RC,
        .depth = 16,
        .sge = 1,
        .rnr_retry = 7,
        .min_rnr_timer = 6,
        .retry_cnt = 7,
        .timeout = 14,
        .rd_atomic = 1,
        .qp_access = all & ~IBV_ACCESS_LOCAL_WRITE,
        .mr_access = all,
    };
}

void vt_side_create(struct vt_side *side, struct ibv_pd *pd, const struct vt_conf *conf, bool is_b)
{
    int cqe = conf->cqe ? conf->cqe : 2 * conf->depth;
    memset(side, 0, sizeof(*side));
    side->pd = pd;
    VT_CHECK(!posix_memalign((void **)&side->buf, 4096, VT_BUF), "no memory");
    memset(side->buf, 0, VT_BUF);
    side->mr = VT_PTR(ibv_reg_mr(pd, side->buf, VT_BUF, conf->mr_access));
    side->scq = VT_PTR(ibv_create_cq(vt.ctx, cqe, NULL, NULL, 0));
    side->rcq = VT_PTR(ibv_create_cq(vt.ctx, cqe, NULL, is_b ? conf->events : NULL, 0));
    struct ibv_qp_init_attr init = {
        .send_cq = side->scq,
        .recv_cq = side->rcq,
        .srq = is_b ? conf->srq : NULL,
        .cap = {.max_send_wr = (uint32_t)conf->depth,
                .max_recv_wr = is_b && conf->srq ? 0 : (uint32_t)conf->depth,
                .max_send_sge = (uint32_t)conf->sge,
                .max_recv_sge = (uint32_t)conf->sge,
                .max_inline_data = (uint32_t)conf->inline_bytes},
        .qp_type = conf->type,
        .sq_sig_all = conf->sig_all,
    };
    side->qp = VT_PTR(ibv_create_qp(pd, &init));
    side->cap = init.cap;
}

void vt_side_destroy(struct vt_side *side)
{
    VT_OK(ibv_destroy_qp(side->qp));
    VT_OK(ibv_destroy_cq(side->scq));
    VT_OK(ibv_destroy_cq(side->rcq));
    if (side->mr) {
        VT_OK(ibv_dereg_mr(side->mr));
    }
    free(side->buf);
}

struct vt_address vt_address(const struct vt_side *side)
{
    return (struct vt_address){
        .qpn = side->qp->qp_num,
        .lid = vt.port.lid,
        .gid = vt.gid,
        .addr = (uintptr_t)side->buf,
        .rkey = side->mr->rkey,
    };
}

struct ibv_ah_attr vt_ah_attr(const struct vt_address *to)
{
    struct ibv_ah_attr ah = {.dlid = to->lid, .port_num = (uint8_t)vt.port_num};
    if (vt.is_roce) {
        ah.is_global = 1;
        ah.grh.dgid = to->gid;
        ah.grh.sgid_index = (uint8_t)vt.gid_index;
        ah.grh.hop_limit = 64;
    }
    return ah;
}

int vt_to_init(struct ibv_qp *qp, const struct vt_conf *conf)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = (uint8_t)vt.port_num,
                               .qkey = 0x1234,
                               .qp_access_flags = (unsigned)conf->qp_access};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (conf->type == IBV_QPT_UC) {
        attr.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
    }
    mask |= conf->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return ibv_modify_qp(qp, &attr, mask);
}

int vt_to_rtr(struct ibv_qp *qp, const struct vt_conf *conf, const struct vt_address *to)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = vt.port.active_mtu,
                               .rq_psn = 0x42,
                               .max_dest_rd_atomic = (uint8_t)conf->rd_atomic,
                               .min_rnr_timer = (uint8_t)conf->min_rnr_timer};
    int mask = IBV_QP_STATE;
    if (conf->type != IBV_QPT_UD) {
        attr.dest_qp_num = to->qpn;
        attr.ah_attr = vt_ah_attr(to);
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (conf->type == IBV_QPT_RC) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return ibv_modify_qp(qp, &attr, mask);
}

int vt_to_rts(struct ibv_qp *qp, const struct vt_conf *conf)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .sq_psn = 0x42,
                               .timeout = (uint8_t)conf->timeout,
                               .retry_cnt = (uint8_t)conf->retry_cnt,
                               .rnr_retry = (uint8_t)conf->rnr_retry,
                               .max_rd_atomic = (uint8_t)conf->rd_atomic};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (conf->type == IBV_QPT_RC) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return ibv_modify_qp(qp, &attr, mask);
}

int vt_to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state vt_state(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    VT_OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

void vt_wait_error(struct ibv_qp *qp)
{
    uint64_t end = vt_now_ms() + VT_WAIT_MS;
    while (vt_state(qp) != IBV_QPS_ERR) {
        VT_CHECK(vt_now_ms() < end, "expected queue pair %u in the state ERR, it is in %d",
                 qp->qp_num, vt_state(qp));
        sched_yield();
    }
}

void vt_side_connect(struct vt_side *side, const struct vt_conf *conf, const struct vt_address *to)
{
    VT_OK(vt_to_init(side->qp, conf));
    VT_OK(vt_to_rtr(side->qp, conf, to));
    VT_OK(vt_to_rts(side->qp, conf));
}

void vt_pair_create(struct vt_pair *p, const struct vt_conf *conf)
{
    vt_side_create(&p->a, vt.pd, conf, false);
    vt_side_create(&p->b, vt.pd, conf, true);
    p->a.peer = &p->b;
    p->b.peer = &p->a;
}

void vt_pair_connect(struct vt_pair *p, const struct vt_conf *conf)
{
    struct vt_address a = vt_address(&p->a), b = vt_address(&p->b);
    vt_side_connect(&p->a, conf, &b);
    vt_side_connect(&p->b, conf, &a);
}

void vt_connect(struct vt_pair *p, const struct vt_conf *conf)
{
    vt_pair_create(p, conf);
    vt_pair_connect(p, conf);
}

void vt_disconnect(struct vt_pair *p)
{
    vt_side_destroy(&p->a);
    vt_side_destroy(&p->b);
}

struct vt_wr vt_wr(struct vt_side *side, enum ibv_wr_opcode opcode, uint64_t id, size_t off,
                   size_t len)
{
    struct vt_wr w = {
        .sge = {.addr = (uintptr_t)side->buf + off,
                .length = (uint32_t)len,
                .lkey = side->mr->lkey},
        .wr = {.wr_id = id, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED}};
    if (!side->peer || !side->peer->mr) {
        return w;
    }
    uint64_t remote = (uintptr_t)side->peer->buf + off;
    uint32_t rkey = side->peer->mr->rkey;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        w.wr.wr.atomic.remote_addr = remote;
        w.wr.wr.atomic.rkey = rkey;
    } else if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
        w.wr.wr.rdma.remote_addr = remote;
        w.wr.wr.rdma.rkey = rkey;
    }
    return w;
}

int vt_post(struct vt_side *side, struct vt_wr *w)
{
    struct ibv_send_wr *bad = NULL;
    w->wr.sg_list = w->wr.num_sge ? &w->sge : NULL;
    int rc = ibv_post_send(side->qp, &w->wr, &bad);
    if (rc && bad != &w->wr) {
        vt_differs("ibv_post_send refused a request and did not say which");
    }
    return rc;
}

int vt_recv(struct vt_side *side, uint64_t id, size_t off, size_t len)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)side->buf + off, .length = (uint32_t)len, .lkey = side->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad = NULL;
    int rc = side->qp->srq ? ibv_post_srq_recv(side->qp->srq, &wr, &bad)
                           : ibv_post_recv(side->qp, &wr, &bad);
    if (rc && bad != &wr) {
        vt_differs("posting a receive was refused and not said which");
    }
    return rc;
}

struct ibv_wc vt_expect_run(struct vt_side *side, struct vt_wr *w, enum ibv_wc_status status,
                            const char *file, int line)
{
    vt_expect_ok(vt_post(side, w), "posting it", file, line);
    return vt_expect_wc(side->scq, w->wr.wr_id, status, file, line);
}

struct ibv_send_wr *vt_list(struct vt_wr *w, int n)
{
    for (int i = 0; i < n; i++) {
        w[i].wr.sg_list = &w[i].sge;
        w[i].wr.next = i + 1 < n ? &w[i + 1].wr : NULL;
    }
    return &w[0].wr;
}

struct ibv_ah *vt_ah(const struct vt_address *to)
{
    struct ibv_ah_attr attr = vt_ah_attr(to);
    return VT_PTR(ibv_create_ah(vt.pd, &attr));
}

struct vt_wr vt_datagram(struct vt_side *side, struct ibv_ah *ah, uint32_t qpn, uint64_t id,
                         size_t off, size_t len)
{
    struct vt_wr w = vt_wr(side, IBV_WR_SEND, id, off, len);
    w.wr.wr.ud.ah = ah;
    w.wr.wr.ud.remote_qpn = qpn;
    w.wr.wr.ud.remote_qkey = 0x1234;
    return w;
}

struct ibv_srq *vt_srq(uint32_t receives)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = receives, .max_sge = 1}};
    struct ibv_srq *srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    VT_CHECK(init.attr.max_wr >= receives, "asked for %u receives, got %u", receives,
             init.attr.max_wr);
    return srq;
}

struct ibv_mr *vt_reg(void *buf, int access)
{
    return VT_PTR(ibv_reg_mr(vt.pd, buf, 4096, access));
}

static void expect_message(struct vt_side *from, struct vt_side *to, unsigned seed)
{
    enum { LEN = 256, OFF = VT_BUF - LEN };
    vt_fill(from->buf + OFF, LEN, seed);
    memset(to->buf + OFF, 0, LEN);
    VT_OK(vt_recv(to, 0xa11e, OFF, LEN));
    VT_DO(from, IBV_WR_SEND, 0xa11e, OFF, LEN, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(to->rcq, 0xa11e, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == LEN, "expected a message of %d bytes, got %u", LEN, wc.byte_len);
    VT_CHECK(vt_filled(to->buf + OFF, LEN, seed), "expected the bytes sent, got others");
}

void vt_expect_alive(struct vt_pair *p)
{
    expect_message(&p->a, &p->b, 7);
    expect_message(&p->b, &p->a, 8);
}

void vt_check(const struct vt_rule *r)
{
    static const enum ibv_qp_type types[] = {
        [VT_RC] = IBV_QPT_RC, [VT_UC] = IBV_QPT_UC, [VT_UD] = IBV_QPT_UD};
    bool is_pair = r->frame != VT_NOTHING && r->frame != VT_DEVICE;
    struct vt_conf conf;
    struct vt_pair p;
    vt.rule = r->rule;
    if (r->frame != VT_NOTHING) {
        vt_open(r->rule);
    }
    if (is_pair) {
        conf = vt_conf();
        conf.type = types[r->frame];
        vt_connect(&p, &conf);
    }
    r->check(is_pair ? &p : NULL);
    if (is_pair) {
        vt_disconnect(&p);
    }
}

static int in, out;

pid_t vt_split(void)
{
    int down[2], up[2];
    VT_CHECK(!pipe(down) && !pipe(up), "pipe: %s", vt_errname(errno));
    pid_t pid = fork();
    VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
    in = pid ? up[0] : down[0];
    out = pid ? down[1] : up[1];
    close(pid ? down[0] : up[0]);
    close(pid ? up[1] : down[1]);
    return pid;
}

void vt_tell(const void *what, size_t len)
{
    VT_CHECK(write(out, what, len) == (ssize_t)len, "the other process is gone");
}

void vt_hear(void *what, size_t len)
{
    VT_CHECK(read(in, what, len) == (ssize_t)len, "the other process is gone");
}

struct vt_address vt_meet(struct vt_side *side, const struct vt_conf *conf)
{
    vt_side_create(side, vt.pd, conf, true);
    struct vt_address mine = vt_address(side), theirs;
    char c = 0;
    vt_tell(&mine, sizeof(mine));
    vt_hear(&theirs, sizeof(theirs));
    vt_side_connect(side, conf, &theirs);
    vt_tell(&c, 1);
    vt_hear(&c, 1);
    return theirs;
}

void vt_aim(struct vt_wr *w, const struct vt_address *to, uint64_t there)
{
    w->wr.wr.rdma.remote_addr = to->addr + there;
    w->wr.wr.rdma.rkey = to->rkey;
}

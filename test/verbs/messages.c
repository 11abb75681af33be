/* Messages of each kind: what arrives, where, in which order, and what their completions say. */
#include "vt.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>

static void zero_length(struct vt_pair *p)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
                                             IBV_WR_RDMA_READ};
    for (int i = 0; i < 4; i++) {
        struct vt_wr w = vt_wr(&p->a, ops[i], 2, 0, 0);
        w.wr.num_sge = 0; /* a piece of length 0 may mean 2 GiB to some devices */
        w.wr.wr.rdma.rkey = 0;
        w.wr.wr.rdma.remote_addr = 0;
        VT_OK(i < 2 ? vt_recv(&p->b, 1, 0, 64) : 0);
        VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
        if (i < 2) {
            struct ibv_wc wc = VT_WC(p->b.rcq, 1, IBV_WC_SUCCESS);
            VT_CHECK(wc.byte_len == 0, "byte_len: expected 0, got %u", wc.byte_len);
        }
    }
    vt_expect_alive(p);
}

static void read_all(struct vt_pair *p)
{
    enum { READS = 12, LEN = 4000 };
    vt_fill(p->b.buf, VT_BUF, 1);
    for (uint64_t i = 0; i < READS; i++) {
        VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_RDMA_READ, i, i * LEN, LEN)}));
    }
    for (uint64_t i = 0; i < READS; i++) {
        struct ibv_wc wc = VT_WC(p->a.scq, i, IBV_WC_SUCCESS);
        VT_CHECK(wc.opcode == IBV_WC_RDMA_READ, "opcode: expected RDMA_READ, got %d", wc.opcode);
        VT_CHECK(!memcmp(p->a.buf + i * LEN, p->b.buf + i * LEN, LEN),
                 "READ %d completed: expected the target's bytes", (int)i);
    }
    VT_CHECK(p->a.buf[READS * LEN] == 0, "expected nothing behind the last READ");
    VT_DO(&p->a, IBV_WR_RDMA_READ, 50, 0, VT_BUF, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p->a.buf, VT_BUF, 1), "expected all of the target's bytes");
    VT_QUIET(p->b.rcq);
}

static void fence(struct vt_pair *p)
{
    enum { ROUNDS = 100, LEN = 20000, OUT = 32768 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        vt_fill(p->b.buf, LEN, i);
        memset(p->a.buf, 0, LEN);
        struct vt_wr read = vt_wr(&p->a, IBV_WR_RDMA_READ, 1, 0, LEN);
        struct vt_wr write = vt_wr(&p->a, IBV_WR_RDMA_WRITE, 2, 0, LEN);
        read.wr.send_flags = 0;
        write.wr.send_flags |= IBV_SEND_FENCE;
        write.wr.wr.rdma.remote_addr = (uintptr_t)p->b.buf + OUT;
        VT_OK(vt_post(&p->a, &read));
        VT_RUN(&p->a, &write, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p->b.buf + OUT, LEN, i), "round %u: expected the bytes just read", i);
    }
}

static void order(struct vt_pair *p)
{
    enum { ROUNDS = 100, WRITES = 7, LEN = 8000 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        vt_fill(p->a.buf, WRITES * LEN, round);
        VT_OK(vt_recv(&p->b, round, VT_BUF - 8, 8));
        for (unsigned i = 0; i < WRITES; i++) {
            struct vt_wr w = vt_wr(&p->a, IBV_WR_RDMA_WRITE, i, i * LEN, LEN);
            w.wr.send_flags = 0;
            VT_OK(vt_post(&p->a, &w));
        }
        struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, 100 + round, VT_BUF - 8, 8);
        VT_OK(vt_post(&p->a, &w));
        VT_WC(p->b.rcq, round, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p->b.buf, WRITES * LEN, round),
                 "round %u: the send was received before the writes had landed", round);
        VT_WC(p->a.scq, 100 + round, IBV_WC_SUCCESS);
    }
    for (uint64_t i = 0; i < 16; i++) {
        VT_OK(vt_recv(&p->b, i, i * 8, 8));
    }
    for (uint64_t i = 0; i < 16; i++) {
        vt_fill(p->a.buf + i * 8, 8, (unsigned)i);
        VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, IBV_WR_SEND, i, i * 8, 8)}));
    }
    for (uint64_t i = 0; i < 16; i++) {
        VT_WC(p->b.rcq, i, IBV_WC_SUCCESS);
        VT_WC(p->a.scq, i, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p->b.buf + i * 8, 8, (unsigned)i), "send %d came out of order", (int)i);
    }
}

static void check_size(struct vt_pair *p, enum ibv_wr_opcode op, size_t len)
{
    bool is_read = op == IBV_WR_RDMA_READ, is_send = op == IBV_WR_SEND;
    unsigned char *from = is_read ? p->b.buf : p->a.buf, *to = is_read ? p->a.buf : p->b.buf;
    unsigned seed = (unsigned)op + (unsigned)len;
    vt_fill(from, len, seed);
    memset(to, 0xee, VT_BUF);
    VT_OK(is_send ? vt_recv(&p->b, len, 0, VT_BUF) : 0);
    VT_DO(&p->a, op, len, 0, len, IBV_WC_SUCCESS);
    if (is_send) {
        struct ibv_wc wc = VT_WC(p->b.rcq, len, IBV_WC_SUCCESS);
        VT_CHECK(wc.byte_len == len, "byte_len: expected %zu, got %u", len, wc.byte_len);
    }
    VT_CHECK(vt_filled(to, len, seed), "opcode %d, %zu bytes: wrong bytes", op, len);
    VT_CHECK(len == VT_BUF || to[len] == 0xee, "opcode %d, %zu bytes: more were written", op, len);
}

static void msg_sizes(struct vt_pair *p)
{
    size_t mtu = 128u << vt.port.active_mtu;
    size_t sizes[] = {1,   2,       3,       63,          64,         65,    mtu - 1,
                      mtu, mtu + 1, 2 * mtu, 3 * mtu + 5, VT_BUF - 1, VT_BUF};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_size(p, IBV_WR_SEND, sizes[i]);
        check_size(p, IBV_WR_RDMA_WRITE, sizes[i]);
        check_size(p, IBV_WR_RDMA_READ, sizes[i]);
    }
}

static void immediate(struct vt_pair *p)
{
    static const struct {
        enum ibv_wr_opcode sent;
        enum ibv_wc_opcode got;
        uint32_t imm, length;
    } cases[] = {
        {IBV_WR_SEND_WITH_IMM, IBV_WC_RECV, 0x01020304, 64},
        {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM, 0xfffefdfc, 4096},
        {IBV_WR_SEND, IBV_WC_RECV, 0, 64},
    };
    vt_fill(p->a.buf, 4096, 1);
    for (int i = 0; i < 3; i++) {
        struct vt_wr w = vt_wr(&p->a, cases[i].sent, 2, 0, cases[i].length);
        memset(p->b.buf + 8192, 0x55, 64);
        VT_OK(vt_recv(&p->b, 1, 8192, 64));
        w.wr.imm_data = htonl(cases[i].imm);
        VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
        struct ibv_wc wc = VT_WC(p->b.rcq, 1, IBV_WC_SUCCESS);
        VT_CHECK(wc.opcode == cases[i].got, "opcode: expected %d, got %d", cases[i].got, wc.opcode);
        VT_CHECK(!(wc.wc_flags & IBV_WC_WITH_IMM) == !cases[i].imm, "case %d: flag WITH_IMM", i);
        VT_CHECK(!cases[i].imm || wc.imm_data == htonl(cases[i].imm), "expected 0x%08x, got 0x%08x",
                 cases[i].imm, ntohl(wc.imm_data));
        VT_CHECK(wc.byte_len == cases[i].length, "byte_len: expected %u, got %u", cases[i].length,
                 wc.byte_len);
        if (cases[i].sent == IBV_WR_RDMA_WRITE_WITH_IMM) {
            VT_CHECK(vt_filled(p->b.buf, 4096, 1), "expected the bytes written");
            VT_CHECK(p->b.buf[8192] == 0x55 && !memcmp(p->b.buf + 8192, p->b.buf + 8193, 63),
                     "expected the receive's memory untouched");
        }
    }
    VT_OK(vt_recv(&p->b, 7, 0, 64)); /* a plain write takes none */
    VT_DO(&p->a, IBV_WR_RDMA_WRITE, 8, 0, 64, IBV_WC_SUCCESS);
    VT_QUIET(p->b.rcq);
}

static void post_list(struct vt_pair *unused)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.sig_all = 1;
    vt_connect(&p, &conf);
    struct vt_wr w[4];
    struct ibv_send_wr *bad = NULL;
    vt_fill(p.a.buf, 256, 1);
    for (int i = 0; i < 4; i++) {
        w[i] = vt_wr(&p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, (size_t)i * 64, 64);
        w[i].wr.send_flags = 0; /* the queue pair signals all */
    }
    VT_OK(ibv_post_send(p.a.qp, vt_list(w, 4), &bad));
    for (uint64_t i = 0; i < 4; i++) {
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
    }
    VT_CHECK(vt_filled(p.b.buf, 256, 1), "expected the bytes of all four");
    w[2].wr.num_sge = (int)p.a.cap.max_send_sge + 1;
    VT_REFUSED(ibv_post_send(p.a.qp, &w[0].wr, &bad));
    VT_CHECK(bad == &w[2].wr, "expected bad_wr to name the third request");
    VT_WC(p.a.scq, 0, IBV_WC_SUCCESS);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_QUIET(p.a.scq);
    vt_disconnect(&p);
}

static int post_unsignaled(struct vt_pair *p, int id, unsigned flags)
{
    struct vt_wr w = vt_wr(&p->a, IBV_WR_RDMA_WRITE, (uint64_t)id, 0, 8);
    w.wr.send_flags = flags;
    return vt_post(&p->a, &w);
}

static void unsignaled(struct vt_pair *p)
{
    int depth = (int)p->a.cap.max_send_wr, rc;
    for (int i = 0; i < 3 * depth; i++) { /* a correct program signals the last of a full queue */
        bool is_last = i % depth == depth - 1;
        rc = post_unsignaled(p, i, is_last ? IBV_SEND_SIGNALED : 0);
        VT_CHECK(!rc, "request %d, %d places: expected success, got %s", i, depth, vt_errname(rc));
        if (is_last) {
            VT_WC(p->a.scq, (uint64_t)i, IBV_WC_SUCCESS);
        }
    }
    VT_QUIET(p->a.scq);
    /* Without a signaled one the queue stays full, though all requests were executed long ago. */
    for (int i = 0; i < depth; i++) {
        VT_OK(post_unsignaled(p, i, 0));
    }
    VT_QUIET(p->a.scq);
    rc = post_unsignaled(p, 99, IBV_SEND_SIGNALED);
    VT_CHECK(!rc || rc == ENOMEM, "a post to a full queue: expected ENOMEM, got %s",
             vt_errname(rc));
    if (!rc) {
        vt_differs("the place of an unsignaled request was free before a later completion");
    }
}

static void uc(struct vt_pair *p)
{
    vt_expect_alive(p);
    vt_fill(p->a.buf, 4096, 1);
    VT_DO(&p->a, IBV_WR_RDMA_WRITE, 1, 0, 4096, IBV_WC_SUCCESS);
    uint64_t end = vt_now_ms() + VT_WAIT_MS;
    while (!vt_filled(p->b.buf, 4096, 1)) {
        VT_CHECK(vt_now_ms() < end, "expected the bytes written, got others");
    }
    VT_DO(&p->a, IBV_WR_SEND, 2, 0, 64, IBV_WC_SUCCESS); /* nobody waits for a receive */
    VT_OK(vt_recv(&p->b, 3, 0, 64));
    VT_QUIET(p->b.rcq);
    struct vt_wr w = vt_wr(&p->a, IBV_WR_RDMA_READ, 4, 0, 64);
    if (vt_post(&p->a, &w) == 0) {
        struct ibv_wc wc;
        VT_CHECK(vt_poll(p->a.scq, &wc, VT_WAIT_MS), "a READ: expected a refusal, got nothing");
        VT_CHECK(wc.status != IBV_WC_SUCCESS, "a READ: expected a refusal, got success");
    }
}

static void ud_grh(struct vt_pair *p)
{
    enum { LEN = 100 };
    struct vt_address to = vt_address(&p->b), from = vt_address(&p->a);
    struct ibv_ah *ah = vt_ah(&to);
    vt_fill(p->a.buf, LEN, 1);
    VT_OK(vt_recv(&p->b, 1, 0, 40 + LEN));
    struct vt_wr w = vt_datagram(&p->a, ah, to.qpn, 2, 0, LEN);
    w.wr.opcode = IBV_WR_SEND_WITH_IMM;
    w.wr.imm_data = htonl(77);
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p->b.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == 40 + LEN, "byte_len: expected %d, got %u", 40 + LEN, wc.byte_len);
    VT_CHECK(wc.src_qp == from.qpn, "src_qp: expected %u, got %u", from.qpn, wc.src_qp);
    VT_CHECK(wc.imm_data == htonl(77) && (wc.wc_flags & IBV_WC_WITH_IMM), "expected immediate 77");
    VT_CHECK(vt_filled(p->b.buf + 40, LEN, 1), "expected the bytes sent behind the GRH");
    VT_CHECK(!(wc.wc_flags & IBV_WC_GRH) == !vt.is_roce, "flag GRH: expected %d", vt.is_roce);
    VT_CHECK(vt.is_roce || wc.slid == vt.port.lid, "slid: expected %u, got %u", vt.port.lid,
             wc.slid);
    /* Another Q_Key: silently dropped, and the receive is still there. */
    VT_OK(vt_recv(&p->b, 3, 0, 40 + LEN));
    w.wr.wr.ud.remote_qkey = 0x4321;
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    VT_QUIET(p->b.rcq);
    VT_OK(ibv_destroy_ah(ah));
}

static void ud_mtu(struct vt_pair *p)
{
    struct vt_address to = vt_address(&p->b);
    struct ibv_ah *ah = vt_ah(&to);
    size_t mtu = 128u << vt.port.active_mtu;
    struct vt_wr w = vt_datagram(&p->a, ah, to.qpn, 1, 0, 64);
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS); /* without a receive it is gone */
    VT_QUIET(p->b.rcq);
    VT_OK(vt_recv(&p->b, 2, 0, 40 + mtu));
    VT_QUIET(p->b.rcq);

    vt_fill(p->a.buf, mtu, 1);
    w = vt_datagram(&p->a, ah, to.qpn, 3, 0, mtu);
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p->b.rcq, 2, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == 40 + mtu, "byte_len: expected %zu, got %u", 40 + mtu, wc.byte_len);
    VT_CHECK(vt_filled(p->b.buf + 40, mtu, 1), "expected the bytes sent");

    VT_OK(vt_recv(&p->b, 4, 0, VT_BUF));
    w = vt_datagram(&p->a, ah, to.qpn, 5, 0, mtu + 1);
    if (vt_post(&p->a, &w) == 0) { /* then it may end either way, but nothing may arrive */
        VT_CHECK(vt_poll(p->a.scq, &wc, VT_WAIT_MS), "expected a completion, got none");
    }
    VT_QUIET(p->b.rcq);
    VT_OK(ibv_destroy_ah(ah));
}

static void send_to(struct vt_side *from, struct vt_side *to, struct ibv_ah *ah, uint32_t qpn)
{
    struct vt_wr w = vt_datagram(from, ah, qpn, 2, 4096, 64);
    VT_OK(vt_recv(to, 1, 0, 40 + 64));
    VT_RUN(from, &w, IBV_WC_SUCCESS);
}

static void ah(struct vt_pair *p)
{
    struct vt_address to = vt_address(&p->b);
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    struct ibv_ah *there = vt_ah(&to), *back;
    attr.port_num = (uint8_t)(vt.dev.phys_port_cnt + 1);
    VT_NULL(ibv_create_ah(vt.pd, &attr));
    send_to(&p->a, &p->b, there, to.qpn);
    struct ibv_wc wc = VT_WC(p->b.rcq, 1, IBV_WC_SUCCESS);
    back =
        VT_PTR(ibv_create_ah_from_wc(vt.pd, &wc, (struct ibv_grh *)p->b.buf, (uint8_t)vt.port_num));
    vt_fill(p->b.buf + 4096, 64, 5);
    send_to(&p->b, &p->a, back, wc.src_qp);
    VT_WC(p->a.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p->a.buf + 40, 64, 5), "expected the answer's bytes");
    VT_OK(ibv_destroy_ah(back));
    VT_OK(ibv_destroy_ah(there));
}

enum { MLID = 0xc010 };

static union ibv_gid group(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x12, 0xa0, 0x1b, [14] = 0x77, [15] = 0x01}};
    if (vt.is_roce) { /* 239.1.2.3, as an IPv4 group is written in a GID */
        memset(gid.raw, 0, 10);
        memcpy(gid.raw + 10, (unsigned char[]){0xff, 0xff, 239, 1, 2, 3}, 6);
    }
    return gid;
}

static struct ibv_ah *group_ah(const union ibv_gid *gid)
{
    struct vt_address to = {.lid = MLID, .gid = *gid};
    struct ibv_ah_attr attr = vt_ah_attr(&to);
    attr.is_global = 1;
    attr.grh.dgid = *gid;
    attr.grh.sgid_index = (uint8_t)vt.gid_index;
    attr.grh.hop_limit = 1;
    return VT_PTR(ibv_create_ah(vt.pd, &attr));
}

static void mcast(struct vt_pair *p)
{
    enum { LEN = 64 };
    struct vt_side c;
    struct vt_conf rc_conf = vt_conf(), conf = rc_conf;
    union ibv_gid gid = group();
    vt_side_create(&c, vt.pd, &rc_conf, false);
    VT_REFUSED(ibv_attach_mcast(c.qp, &gid, MLID)); /* it is no datagram queue pair */
    vt_side_destroy(&c);
    conf.type = IBV_QPT_UD;
    vt_side_create(&c, vt.pd, &conf, true);
    struct vt_address self = vt_address(&c);
    vt_side_connect(&c, &conf, &self);
    int rc = ibv_attach_mcast(p->b.qp, &gid, MLID);
    if (rc == EOPNOTSUPP || rc == ENOSYS) {
        vt_skip("the device has no multicast");
    }
    VT_CHECK(!rc, "ibv_attach_mcast: expected success, got %s", vt_errname(rc));
    VT_OK(ibv_attach_mcast(c.qp, &gid, MLID));
    struct ibv_ah *there = group_ah(&gid);
    struct vt_wr w = vt_datagram(&p->a, there, 0xffffff, 2, 4096, LEN);
    vt_fill(p->a.buf + 4096, LEN, 3);
    VT_OK(vt_recv(&p->b, 10, 0, 40 + LEN));
    VT_OK(vt_recv(&c, 11, 0, 40 + LEN));
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    struct ibv_wc wc;
    if (!vt_poll(p->b.rcq, &wc, VT_WAIT_MS / 5)) {
        vt_differs("a datagram to a group did not reach the port it came from");
        vt_skip("no datagram to a group comes back on this port");
    }
    VT_CHECK(wc.wr_id == 10 && wc.status == IBV_WC_SUCCESS, "expected receive 10, got %llu '%s'",
             (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
    VT_WC(c.rcq, 11, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p->b.buf + 40, LEN, 3) && vt_filled(c.buf + 40, LEN, 3),
             "expected the bytes sent at both");
    VT_OK(ibv_detach_mcast(c.qp, &gid, MLID));
    VT_REFUSED(ibv_detach_mcast(c.qp, &gid, MLID));
    VT_OK(vt_recv(&p->b, 12, 0, 40 + LEN));
    VT_OK(vt_recv(&c, 13, 0, 40 + LEN));
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    VT_WC(p->b.rcq, 12, IBV_WC_SUCCESS);
    VT_QUIET(c.rcq);
    VT_OK(ibv_detach_mcast(p->b.qp, &gid, MLID));
    VT_OK(ibv_destroy_ah(there));
    vt_side_destroy(&c);
}

enum { THREADS = 4, EACH = 400, WINDOW = 4 };
static struct vt_pair shared;
static unsigned char done[THREADS][EACH];

static bool is_done(int thread, int i)
{
    return __atomic_load_n(&done[thread][i], __ATOMIC_ACQUIRE);
}

/* Whoever polls a completion marks it for its owner. */
static void poll_one(void)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(shared.a.scq, 1, &wc);
    VT_CHECK(n >= 0, "ibv_poll_cq: expected a count, got %d", n);
    if (n == 0) {
        sched_yield();
        return;
    }
    unsigned thread = (unsigned)(wc.wr_id >> 32), i = (unsigned)wc.wr_id;
    VT_CHECK(wc.status == IBV_WC_SUCCESS && thread < THREADS && i < EACH,
             "expected a successful completion, got %llx with '%s'", (unsigned long long)wc.wr_id,
             ibv_wc_status_str(wc.status));
    VT_CHECK(!__atomic_exchange_n(&done[thread][i], 1, __ATOMIC_ACQ_REL),
             "completion %u of thread %u came twice", i, thread);
}

static void *poster(void *arg)
{
    int thread = (int)(intptr_t)arg;
    for (int i = 0; i < EACH; i++) {
        size_t off = (size_t)thread * 4096 + (i % 4 ? 0 : 2048);
        struct vt_wr w = vt_wr(&shared.a, i % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                               (uint64_t)thread << 32 | (unsigned)i, off, 64);
        while (i >= WINDOW && !is_done(thread, i - WINDOW)) {
            poll_one();
        }
        VT_OK(vt_post(&shared.a, &w));
    }
    for (int i = EACH - WINDOW; i < EACH; i++) {
        while (!is_done(thread, i)) {
            poll_one();
        }
    }
    return NULL;
}

static void threads(struct vt_pair *unused)
{
    pthread_t thread[THREADS];
    struct vt_conf conf = vt_conf();
    conf.depth = THREADS * WINDOW + THREADS;
    vt_connect(&shared, &conf);
    for (int i = 0; i < THREADS; i++) {
        vt_fill(shared.a.buf + (size_t)i * 4096, 64, (unsigned)i);
    }
    for (int i = 0; i < THREADS; i++) {
        VT_OK(pthread_create(&thread[i], NULL, poster, (void *)(intptr_t)i));
    }
    for (int i = 0; i < THREADS; i++) {
        VT_OK(pthread_join(thread[i], NULL));
        VT_CHECK(vt_filled(shared.b.buf + (size_t)i * 4096, 64, (unsigned)i),
                 "thread %d: wrong bytes", i);
    }
    VT_QUIET(shared.a.scq);
    vt_disconnect(&shared);
}

const struct vt_rule vt_messages[] = {
    {"zero_length", "messages of no bytes are delivered; empty writes and reads check no key",
     VT_RC, zero_length},
    {"read", "READs bring the target's bytes; more than max_rd_atomic wait their turn", VT_RC,
     read_all},
    {"fence", "a fenced request waits for the READs before it", VT_RC, fence},
    {"order", "writes posted before a send have landed when the send is received", VT_RC, order},
    {"msg_sizes", "messages of every length arrive whole and no longer", VT_RC, msg_sizes},
    {"immediate", "immediate data arrives; a write with immediate consumes a receive", VT_RC,
     immediate},
    {"post_list", "a list is posted up to its first bad request", VT_DEVICE, post_list},
    {"unsignaled", "unsignaled requests hold their place until a later completion is polled", VT_RC,
     unsignaled},
    {"uc", "an unreliable connection sends and writes, never waits, never reads", VT_UC, uc},
    {"ud_grh", "a datagram arrives behind 40 bytes of GRH, from src_qp", VT_UD, ud_grh},
    {"ud_mtu", "a datagram fits into one packet or is refused; nobody waits for a receive", VT_UD,
     ud_mtu},
    {"ah", "an address handle made from a completion leads back", VT_UD, ah},
    {"mcast", "all queue pairs attached to a group get its datagrams", VT_UD, mcast},
    {"threads", "threads share a queue pair and a completion queue", VT_DEVICE, threads},
    {NULL, NULL, VT_NOTHING, NULL},
};

/* What keys cover, which rights an access needs, and what is copied when. */
#include "vt.h"

enum {
    LEN = 4096,
    OFF = 8192, /* of the region in its side's memory: there is room around it to see stray bytes */
    LW = IBV_ACCESS_LOCAL_WRITE,
    RW = IBV_ACCESS_REMOTE_WRITE,
    RR = IBV_ACCESS_REMOTE_READ,
    ALL = LW | RW | RR,
    HIGH = -1000000, /* stands for an address 32 bytes below the end of the address space */
};
#define WRITE IBV_WR_RDMA_WRITE
#define READ  IBV_WR_RDMA_READ
#define SEND  IBV_WR_SEND

/* A request of 64 bytes through a key of a region of its own. */
static const struct access {
    const char *rule, *what;
    enum ibv_wr_opcode opcode;
    bool is_local, is_other_pd; /* the key is that of the sender's memory, of another domain */
    int region, queue_pair;     /* rights; of the target */
    int at;                     /* in the region */
    uint32_t key;               /* its bits that are changed */
    enum ibv_wc_status status, other;
} accesses[] = {
    {"access_flags", "a permitted write", WRITE, 0, 0, LW | RW, RW, 0, 0, IBV_WC_SUCCESS, 0},
    {"access_flags", "a permitted read", READ, 0, 0, RR, RR, 0, 0, IBV_WC_SUCCESS, 0},
    {"access_flags", "a write to a region for reading", WRITE, 0, 0, LW | RR, RW | RR, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"access_flags", "a read of a region for writing", READ, 0, 0, LW | RW, RW | RR, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"access_flags", "a write to a local region", WRITE, 0, 0, LW, RW | RR, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    /* A queue pair that never allows the operation may call the request invalid instead. */
    {"access_flags", "a write to a queue pair for reading", WRITE, 0, 0, ALL, RR, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR},
    {"access_flags", "a read of a queue pair for writing", READ, 0, 0, ALL, RW, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR},
    {"access_local", "a send from read-only memory", SEND, 1, 0, 0, ALL, 0, 0, IBV_WC_SUCCESS, 0},
    {"access_local", "a read into read-only memory", READ, 1, 0, 0, RR, 0, 0, IBV_WC_LOC_PROT_ERR,
     IBV_WC_WR_FLUSH_ERR},
    {"lkey_bounds", "a write from beyond the end", WRITE, 1, 0, ALL, RW, LEN - 63, 0,
     IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"lkey_bounds", "a send from beyond the end", SEND, 1, 0, ALL, RW, LEN - 63, 0,
     IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"lkey_bounds", "a write from before the start", WRITE, 1, 0, ALL, RW, -1, 0,
     IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"lkey_bounds", "a write with another key", WRITE, 1, 0, ALL, RW, 0, 0x5a, IBV_WC_LOC_PROT_ERR,
     IBV_WC_WR_FLUSH_ERR},
    {"lkey_bounds", "a read into memory beyond the end", READ, 1, 0, ALL, RR, LEN - 63, 0,
     IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"rkey_bounds", "a write one byte beyond the end", WRITE, 0, 0, ALL, RW, LEN - 63, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"rkey_bounds", "a write one byte before the start", WRITE, 0, 0, ALL, RW, -1, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"rkey_bounds", "a write that wraps around", WRITE, 0, 0, ALL, RW, HIGH, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"rkey_bounds", "a read one byte beyond the end", READ, 0, 0, ALL, RR, LEN - 63, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"rkey_bounds", "a write with another key", WRITE, 0, 0, ALL, RW, 0, 0x5a,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
    {"rkey_bounds", "a read with another key", READ, 0, 0, ALL, RR, 0, 0x5a, IBV_WC_REM_ACCESS_ERR,
     IBV_WC_REM_ACCESS_ERR},
    {"pd_mismatch", "a write from another domain's memory", WRITE, 1, 1, ALL, RW, 0, 0,
     IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR},
    {"pd_mismatch", "a write to another domain's memory", WRITE, 0, 1, ALL, RW, 0, 0,
     IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
};

static void expect_end(const struct access *c, struct vt_pair *p)
{
    struct ibv_wc wc;
    VT_CHECK(vt_poll(p->a.scq, &wc, VT_WAIT_MS), "%s: expected a completion, got none", c->what);
    VT_CHECK(wc.status == c->status || (c->status && wc.status == c->other),
             "%s: expected '%s', got '%s'", c->what, ibv_wc_status_str(c->status),
             ibv_wc_status_str(wc.status));
    if (wc.status != c->status && c->is_local) {
        vt_differs("%s: '%s' in place of '%s'", c->what, ibv_wc_status_str(wc.status),
                   ibv_wc_status_str(c->status));
    }
    if (wc.status) {
        vt_wait_error(p->a.qp);
    }
}

static void try(const struct access *c, struct ibv_pd *pd)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.qp_access = c->queue_pair;
    vt_connect(&p, &conf);
    struct vt_side *owner = c->is_local ? &p.a : &p.b;
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(pd, owner->buf + OFF, LEN, c->region));
    struct vt_side *from = c->opcode == READ ? &p.b : &p.a, *to = from->peer;
    struct vt_wr w = vt_wr(&p.a, c->opcode, 5, OFF, 64);
    if (c->is_local) {
        w.sge.addr += (uint64_t)c->at;
        w.sge.lkey = mr->lkey ^ c->key;
    } else {
        w.wr.wr.rdma.remote_addr =
            c->at == HIGH ? UINT64_MAX - 31 : w.wr.wr.rdma.remote_addr + (uint64_t)c->at;
        w.wr.wr.rdma.rkey = mr->rkey ^ c->key;
    }
    vt_fill(from->buf, VT_BUF, 1);
    vt_fill(to->buf, VT_BUF, 2);
    if (c->opcode == SEND && !c->status) {
        VT_OK(vt_recv(&p.b, 1, OFF, 64));
    }
    int refused = vt_post(&p.a, &w);
    VT_CHECK(!refused || (c->is_local && c->status), "%s: the post was refused", c->what);
    if (!refused) {
        expect_end(c, &p);
    }
    if (c->opcode == SEND && !c->status) {
        VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    }
    if (c->status) {
        VT_CHECK(vt_filled(to->buf, VT_BUF, 2), "%s: expected nothing written", c->what);
    } else {
        VT_CHECK(!memcmp(to->buf + OFF, from->buf + OFF, 64), "%s: expected the bytes", c->what);
    }
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

static void check_accesses(const char *rule)
{
    struct ibv_pd *other = VT_PTR(ibv_alloc_pd(vt.ctx));
    for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
        if (strcmp(accesses[i].rule, rule) == 0) {
            try(&accesses[i], accesses[i].is_other_pd ? other : vt.pd);
        }
    }
    VT_OK(ibv_dealloc_pd(other));
}

/* A receive whose memory is not its own, or not for writing: the receiver is told, and the sender
   that it failed there. */
static void check_receive(uint64_t at, int access)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct ibv_mr *mr = vt_reg(p.b.buf, access);
    struct ibv_sge sge = {.addr = (uintptr_t)p.b.buf + at, .length = 64, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
    if (ibv_post_recv(p.b.qp, &wr, &bad) == 0) {
        VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, SEND, 8, 0, 64)}));
        VT_WC_OR(p.b.rcq, 9, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
        VT_WC(p.a.scq, 8, IBV_WC_REM_OP_ERR);
    }
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

static void access_flags(struct vt_pair *unused)
{
    check_accesses("access_flags");
}

static void access_local(struct vt_pair *unused)
{
    static char memory[64];
    VT_NULL(ibv_reg_mr(vt.pd, memory, sizeof(memory), RW));
    VT_NULL(ibv_reg_mr(vt.pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_ATOMIC));
    check_accesses("access_local");
    check_receive(0, 0);
}

static void lkey_bounds(struct vt_pair *unused)
{
    check_accesses("lkey_bounds");
    check_receive(LEN - 32, ALL);
}

static void dereg(struct vt_side *side)
{
    VT_OK(ibv_dereg_mr(side->mr));
    side->mr = NULL;
}

static void rkey_bounds(struct vt_pair *p)
{
    check_accesses("rkey_bounds");
    struct vt_wr w = vt_wr(&p->a, WRITE, 6, 0, 64);
    vt_fill(p->a.buf, 64, 3);
    dereg(&p->b);
    VT_RUN(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
    VT_CHECK(!vt_filled(p->b.buf, 64, 3), "expected no bytes through a deregistered key");
}

static void pd_mismatch(struct vt_pair *unused)
{
    check_accesses("pd_mismatch");
}

static void dereg_posted(struct vt_pair *p)
{
    struct vt_pair q;
    struct vt_conf conf = vt_conf();
    struct ibv_wc wc;
    VT_OK(vt_recv(&p->b, 1, 0, 64));
    dereg(&p->b);
    vt_fill(p->a.buf, 64, 1);
    VT_OK(vt_post(&p->a, (struct vt_wr[]){vt_wr(&p->a, SEND, 2, 0, 64)}));
    VT_WC_OR(p->b.rcq, 1, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR);
    VT_WC(p->a.scq, 2, IBV_WC_REM_OP_ERR);
    VT_CHECK(!vt_filled(p->b.buf, 64, 1), "expected no bytes in memory that was deregistered");

    /* A send waits for a receive; meanwhile its memory goes. It may have been read already. */
    vt_connect(&q, &conf);
    VT_OK(vt_post(&q.a, (struct vt_wr[]){vt_wr(&q.a, SEND, 3, 0, 64)}));
    dereg(&q.a);
    VT_OK(vt_recv(&q.b, 4, 0, 64));
    VT_CHECK(vt_poll(q.a.scq, &wc, VT_WAIT_MS), "expected the send to complete, somehow");
    if (wc.status != IBV_WC_LOC_PROT_ERR) {
        vt_differs("a send whose memory was deregistered before it ran ended with '%s'",
                   ibv_wc_status_str(wc.status));
    }
    vt_disconnect(&q);
}

static void rereg_mr(struct vt_pair *p)
{
    struct ibv_mr *mr = vt_reg(p->b.buf, RR);
    int rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL);
    if (rc && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        vt_skip("the device cannot re-register");
    }
    VT_CHECK(!rc, "ibv_rereg_mr: expected success, got %d (%s)", rc, vt_errname(errno));
    vt_fill(p->a.buf, 64, 1);
    struct vt_wr w = vt_wr(&p->a, WRITE, 1, 0, 64);
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p->b.buf, 64, 1), "expected the bytes written");
    rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LW | RR);
    VT_CHECK(!rc, "ibv_rereg_mr: expected success, got %d (%s)", rc, vt_errname(errno));
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_RUN(&p->a, &w, IBV_WC_REM_ACCESS_ERR);
    VT_OK(ibv_dereg_mr(mr));
}

static void atomic(struct vt_pair *p)
{
    static const struct {
        enum ibv_wr_opcode opcode;
        uint64_t before, arg, swap, after;
    } cases[] = {
        {IBV_WR_ATOMIC_FETCH_AND_ADD, 40, 2, 0, 42},
        {IBV_WR_ATOMIC_CMP_AND_SWP, 42, 42, 7, 7},
        {IBV_WR_ATOMIC_CMP_AND_SWP, 7, 42, 9, 7},
        {IBV_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 3, 0, 2},
    };
    struct vt_pair q;
    struct vt_conf conf = vt_conf();
    if (vt.dev.atomic_cap == IBV_ATOMIC_NONE) {
        vt_skip("the device has no atomics");
    }
    volatile uint64_t *there = (void *)(p->b.buf + 64), *here = (void *)(p->a.buf + 64);
    for (int i = 0; i < 4; i++) {
        struct vt_wr w = vt_wr(&p->a, cases[i].opcode, 1, 64, 8);
        w.wr.wr.atomic.compare_add = cases[i].arg;
        w.wr.wr.atomic.swap = cases[i].swap;
        *there = cases[i].before;
        VT_RUN(&p->a, &w, IBV_WC_SUCCESS);
        VT_CHECK(*here == cases[i].before && *there == cases[i].after,
                 "case %d: expected %llu back and %llu there, got %llu and %llu", i,
                 (unsigned long long)cases[i].before, (unsigned long long)cases[i].after,
                 (unsigned long long)*here, (unsigned long long)*there);
    }
    struct vt_wr w = vt_wr(&p->a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 64, 8);
    w.wr.wr.atomic.remote_addr += 4; /* unaligned */
    if (vt_post(&p->a, &w) == 0) {
        VT_WC(p->a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
    }
    conf.mr_access &= ~IBV_ACCESS_REMOTE_ATOMIC; /* the right for atomics is one of its own */
    vt_connect(&q, &conf);
    w = vt_wr(&q.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 64, 8);
    w.wr.wr.atomic.compare_add = 5;
    VT_RUN(&q.a, &w, IBV_WC_REM_ACCESS_ERR);
    VT_CHECK(q.b.buf[64] == 0, "expected the target's memory unchanged");
    vt_disconnect(&q);
}

static void inline_data(struct vt_pair *unused)
{
    enum { WANTED = 64, ROUNDS = 200 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.inline_bytes = WANTED;
    vt_connect(&p, &conf);
    uint32_t limit = p.a.cap.max_inline_data;
    VT_CHECK(limit >= WANTED, "asked for %d inline bytes, got %u", WANTED, limit);
    unsigned char local[WANTED];
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct vt_wr w = vt_wr(&p.a, i % 2 ? SEND : WRITE, i, 0, WANTED);
        w.sge.addr = (uintptr_t)local;
        w.sge.lkey = 0xdeadbeef;
        w.wr.send_flags |= IBV_SEND_INLINE;
        vt_fill(local, WANTED, i);
        VT_OK(i % 2 ? vt_recv(&p.b, i, 0, WANTED) : 0);
        VT_OK(vt_post(&p.a, &w));
        memset(local, 0xff, WANTED); /* the buffer is free at once */
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        if (i % 2) {
            VT_WC(p.b.rcq, i, IBV_WC_SUCCESS);
        }
        VT_CHECK(vt_filled(p.b.buf, WANTED, i), "round %u: expected the bytes of the post", i);
    }
    struct vt_wr w = vt_wr(&p.a, WRITE, 1, 0, limit + 1);
    w.wr.send_flags |= IBV_SEND_INLINE;
    VT_REFUSED(vt_post(&p.a, &w));
    w = vt_wr(&p.a, READ, 2, 0, 8);
    w.wr.send_flags |= IBV_SEND_INLINE;
    if (vt_post(&p.a, &w) == 0) {
        vt_differs("an inline READ was taken");
    }
    vt_disconnect(&p);
}

/* Pieces that lie backwards in memory, with gaps. */
enum { PIECE = 100 };
static void list_pieces(struct vt_side *side, struct ibv_sge *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (struct ibv_sge){.addr = (uintptr_t)side->buf + (n - 1 - i) * 2 * PIECE,
                                   .length = PIECE,
                                   .lkey = side->mr->lkey};
    }
}

static void max_sge(struct vt_pair *unused)
{
    enum { WANTED = 4 };
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.sge = WANTED;
    vt_connect(&p, &conf);
    uint32_t send_max = p.a.cap.max_send_sge, recv_max = p.b.cap.max_recv_sge;
    VT_CHECK(send_max >= WANTED && recv_max >= WANTED && send_max < 256 && recv_max < 256,
             "asked for %d pieces, got %u and %u", WANTED, send_max, recv_max);
    struct ibv_sge list[256], source[WANTED];
    vt_fill(p.a.buf, VT_BUF, 1);
    list_pieces(&p.b, list, WANTED);
    struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = list, .num_sge = WANTED}, *bad_recv;
    VT_OK(ibv_post_recv(p.b.qp, &recv, &bad_recv));
    list_pieces(&p.a, source, WANTED);
    struct ibv_send_wr *bad, send = {.wr_id = 2,
                                     .sg_list = source,
                                     .num_sge = WANTED,
                                     .opcode = SEND,
                                     .send_flags = IBV_SEND_SIGNALED};
    VT_OK(ibv_post_send(p.a.qp, &send, &bad));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    struct ibv_wc wc = VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_CHECK(wc.byte_len == WANTED * PIECE, "expected %d bytes, got %u", WANTED * PIECE,
             wc.byte_len);
    for (int i = 0; i < WANTED; i++) {
        VT_CHECK(!memcmp(p.a.buf + i * 2 * PIECE, p.b.buf + i * 2 * PIECE, PIECE),
                 "piece %d: expected the bytes sent, got others", i);
        VT_CHECK(p.b.buf[i * 2 * PIECE + PIECE] == 0, "expected the gaps untouched");
    }
    list_pieces(&p.a, list, send_max + 1);
    send.sg_list = list;
    send.num_sge = (int)send_max + 1;
    VT_REFUSED(ibv_post_send(p.a.qp, &send, &bad));
    list_pieces(&p.b, list, recv_max + 1);
    recv.num_sge = (int)recv_max + 1;
    VT_REFUSED(ibv_post_recv(p.b.qp, &recv, &bad_recv));
    vt_expect_alive(&p);
    vt_disconnect(&p);
}

const struct vt_rule vt_memory[] = {
    {"access_flags", "a remote access needs the right in the region and in the queue pair",
     VT_DEVICE, access_flags},
    {"access_local", "what the device writes to needs the local write right", VT_DEVICE,
     access_local},
    {"lkey_bounds", "a local buffer outside of its key's region ends as local protection error",
     VT_DEVICE, lkey_bounds},
    {"rkey_bounds", "a remote access outside of the key's region ends as remote access error",
     VT_RC, rkey_bounds},
    {"pd_mismatch", "a key of another protection domain is refused", VT_DEVICE, pd_mismatch},
    {"dereg_posted", "requests fail whose memory was deregistered", VT_RC, dereg_posted},
    {"rereg_mr", "re-registered with other rights, a region has them", VT_RC, rereg_mr},
    {"atomic", "atomics return the old value and leave the new one", VT_RC, atomic},
    {"inline_data", "inline data is copied by the post, up to max_inline_data bytes", VT_DEVICE,
     inline_data},
    {"max_sge", "lists of pieces are taken in order, up to max_sge", VT_DEVICE, max_sge},
    {NULL, NULL, VT_NOTHING, NULL},
};

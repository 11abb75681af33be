/* The target's key covers its region and nothing else, while the region lives. */
#include "vt.h"

enum { LEN = 4096, OFF = 8192 };

/* Stands for an address 32 bytes below the end of the address space. */
static const uint64_t wraps = UINT64_MAX;

static void check_refused(const char *what, enum ibv_wr_opcode opcode, uint64_t at, uint32_t rkey)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    /* A region in the middle of b's memory, with room around it to see stray bytes. */
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(vt.pd, p.b.buf + OFF, LEN, conf.mr_access));
    vt_fill(p.a.buf, LEN, 1);
    vt_fill(p.b.buf, VT_BUF, 2);
    struct vt_wr w = vt_wr(&p.a, opcode, 5, 0, 64);
    w.wr.wr.rdma.remote_addr = at == wraps ? UINT64_MAX - 31 : (uintptr_t)p.b.buf + at;
    w.wr.wr.rdma.rkey = mr->rkey ^ rkey;
    VT_OK(vt_post(&p.a, &w));
    struct ibv_wc wc;
    VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "%s: expected a completion, got none", what);
    VT_CHECK(wc.wr_id == 5 && wc.status == IBV_WC_REM_ACCESS_ERR,
             "%s: expected 'remote access error', got '%s'", what, ibv_wc_status_str(wc.status));
    vt_wait_error(p.a.qp);
    VT_CHECK(vt_filled(p.b.buf, VT_BUF, 2), "%s: expected the target's memory unchanged", what);
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
}

static void check_dead_key(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 6, 0, 64);
    vt_fill(p.a.buf, 64, 3);
    VT_OK(ibv_dereg_mr(p.b.mr));
    p.b.mr = NULL;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 6, IBV_WC_REM_ACCESS_ERR);
    VT_CHECK(!vt_filled(p.b.buf, 64, 3), "expected no bytes through a deregistered key");
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "a remote access outside of the key's region ends as remote access error");
    check_refused("a write one byte beyond the end", IBV_WR_RDMA_WRITE, OFF + LEN - 63, 0);
    check_refused("a write one byte before the start", IBV_WR_RDMA_WRITE, OFF - 1, 0);
    check_refused("a write that wraps around", IBV_WR_RDMA_WRITE, wraps, 0);
    check_refused("a read one byte beyond the end", IBV_WR_RDMA_READ, OFF + LEN - 63, 0);
    check_refused("a write with another key", IBV_WR_RDMA_WRITE, OFF, 0x5a);
    check_refused("a read with another key", IBV_WR_RDMA_READ, OFF, 0x5a);
    check_dead_key();
    return vt_close();
}

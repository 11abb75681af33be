/* Remote rights are those of the region and of the queue pair, both. */
#include "vt.h"

enum { LW = IBV_ACCESS_LOCAL_WRITE, RW = IBV_ACCESS_REMOTE_WRITE, RR = IBV_ACCESS_REMOTE_READ };

static enum ibv_wc_status try(enum ibv_wr_opcode opcode, int mr_access, int qp_access)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    struct ibv_wc wc;
    conf.qp_access = qp_access;
    vt_connect(&p, &conf);
    struct ibv_mr *mr = VT_PTR(ibv_reg_mr(vt.pd, p.b.buf, 4096, mr_access));
    vt_fill(p.a.buf, 64, 1);
    vt_fill(p.b.buf, 64, 2);
    struct vt_wr w = vt_wr(&p.a, opcode, 1, 0, 64);
    w.wr.wr.rdma.rkey = mr->rkey;
    VT_OK(vt_post(&p.a, &w));
    VT_CHECK(vt_poll(p.a.scq, &wc, VT_WAIT_MS), "expected a completion, got none");
    bool is_written = opcode == IBV_WR_RDMA_WRITE && wc.status == IBV_WC_SUCCESS;
    VT_CHECK(vt_filled(p.b.buf, 64, is_written ? 1 : 2), "expected the target's memory %s",
             is_written ? "written" : "unchanged");
    VT_OK(ibv_dereg_mr(mr));
    vt_disconnect(&p);
    return wc.status;
}

static void expect(enum ibv_wc_status got, bool region, const char *what)
{
    /* A queue pair that never allows the operation may call the request invalid instead. */
    bool is_refused = got == IBV_WC_REM_ACCESS_ERR || (!region && got == IBV_WC_REM_INV_REQ_ERR);
    VT_CHECK(is_refused, "%s: expected 'remote access error', got '%s'", what,
             ibv_wc_status_str(got));
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "a remote access needs the right in the region and in the queue pair");
    enum ibv_wc_status s = try(IBV_WR_RDMA_WRITE, LW | RW, RW);
    VT_CHECK(s == IBV_WC_SUCCESS, "a permitted write: got '%s'", ibv_wc_status_str(s));
    s = try(IBV_WR_RDMA_READ, RR, RR);
    VT_CHECK(s == IBV_WC_SUCCESS, "a permitted read: got '%s'", ibv_wc_status_str(s));
    expect(try(IBV_WR_RDMA_WRITE, LW | RR, RW | RR), true, "a write to a region for reading");
    expect(try(IBV_WR_RDMA_READ, LW | RW, RW | RR), true, "a read of a region for writing");
    expect(try(IBV_WR_RDMA_WRITE, LW, RW | RR), true, "a write to a local region");
    expect(try(IBV_WR_RDMA_WRITE, LW | RW | RR, RR), false, "a write to a queue pair for reading");
    expect(try(IBV_WR_RDMA_READ, LW | RW | RR, RW), false, "a read of a queue pair for writing");
    return vt_close();
}

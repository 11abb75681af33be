/* Fetch-and-add and compare-and-swap: the old value comes back, the new one is there. */
#include "vt.h"

static uint64_t do_atomic(struct vt_pair *p, enum ibv_wr_opcode opcode, uint64_t arg, uint64_t swap)
{
    struct vt_wr w = vt_wr(&p->a, opcode, 1, 64, 8);
    w.wr.wr.atomic.compare_add = arg;
    w.wr.wr.atomic.swap = swap;
    VT_OK(vt_post(&p->a, &w));
    VT_WC(p->a.scq, 1, IBV_WC_SUCCESS);
    uint64_t old;
    memcpy(&old, p->a.buf + 64, 8);
    return old;
}

static void check_unaligned(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 64, 8);
    w.wr.wr.atomic.remote_addr += 4;
    if (vt_post(&p.a, &w) == 0) {
        VT_WC(p.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
    }
    vt_disconnect(&p);
}

/* The right for atomics is one of its own. */
static void check_access(void)
{
    struct vt_pair p;
    struct vt_conf conf = vt_conf();
    conf.mr_access &= ~IBV_ACCESS_REMOTE_ATOMIC;
    vt_connect(&p, &conf);
    struct vt_wr w = vt_wr(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 64, 8);
    w.wr.wr.atomic.compare_add = 5;
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 3, IBV_WC_REM_ACCESS_ERR);
    VT_CHECK(p.b.buf[64] == 0, "expected the target's memory unchanged");
    vt_disconnect(&p);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "atomics return the old value and leave the new one");
    if (vt.dev.atomic_cap == IBV_ATOMIC_NONE) {
        vt_skip("the device has no atomics");
    }
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    volatile uint64_t *there = (void *)(p.b.buf + 64);
    *there = 40;
    uint64_t old = do_atomic(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
    VT_CHECK(old == 40 && *there == 42, "40 + 2: expected 40 back and 42 there, got %llu and %llu",
             (unsigned long long)old, (unsigned long long)*there);
    old = do_atomic(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7);
    VT_CHECK(old == 42 && *there == 7, "a swap: expected 42 back and 7 there, got %llu and %llu",
             (unsigned long long)old, (unsigned long long)*there);
    old = do_atomic(&p, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 9);
    VT_CHECK(old == 7 && *there == 7, "no swap: expected 7 back and there, got %llu and %llu",
             (unsigned long long)old, (unsigned long long)*there);
    *there = UINT64_MAX;
    old = do_atomic(&p, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0);
    VT_CHECK(old == UINT64_MAX && *there == 2, "expected the sum to wrap around to 2, got %llu",
             (unsigned long long)*there);
    vt_disconnect(&p);
    check_unaligned();
    check_access();
    return vt_close();
}

/*
 * Adversarial mode does what it promises: softhca-run --adversarial -- softhca-harsh. Everything
 * looked at here is undefined before the completion; each must be seen at least once in ROUNDS.
 */
#include "../../verbs/vt.h"

enum { ROUNDS = 300, LEN = 30000, SEED = 5 };

static struct vt_pair p;

/* Progress without a look at the send completions. */
static void turn(void)
{
    struct ibv_wc wc;

    VT_CHECK(ibv_poll_cq(p.b.scq, 1, &wc) == 0, "expected no completion at the target's sends");
}

static bool is_partial(void)
{
    return p.b.buf[LEN - 1] == p.a.buf[LEN - 1] && p.b.buf[0] == 0 && p.a.buf[0] != 0;
}

static int count_partial(enum ibv_wr_opcode opcode)
{
    int seen = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct vt_wr w;

        memset(p.b.buf, 0, LEN);
        vt_fill(p.a.buf, LEN, SEED);
        if (opcode == IBV_WR_SEND) {
            VT_OK(vt_recv(&p.b, 2, 0, LEN));
        }
        w = vt_wr(&p.a, opcode, 1, 0, LEN);
        VT_OK(vt_post(&p.a, &w));
        seen += is_partial();
        VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
        if (opcode == IBV_WR_SEND) {
            struct ibv_wc wc = VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);

            VT_CHECK(wc.src_qp != p.a.qp->qp_num, "src_qp: it is defined for datagrams only");
        }
        VT_CHECK(vt_filled(p.b.buf, LEN, SEED), "expected all bytes with the completion");
    }
    return seen;
}

/* Programs may read a word while it is written over: it is the old one or the new one. */
static void check_words(void)
{
    enum { WORDS = 4 };

    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint32_t old = i * 0x01010101u, new = old + 0x01010101u, word;
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, WORDS * sizeof(word));

        for (size_t j = 0; j < WORDS; j++) {
            memcpy(p.a.buf + j * sizeof(word), &new, sizeof(word));
            memcpy(p.b.buf + j * sizeof(word), &old, sizeof(word));
        }
        VT_OK(vt_post(&p.a, &w));
        for (size_t j = 0; j < WORDS; j++) {
            memcpy(&word, p.b.buf + j * sizeof(word), sizeof(word));
            VT_CHECK(word == old || word == new, "word %zu is %08x, neither %08x nor %08x", j, word,
                     old, new);
        }
        VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    }
}

/* A READ's buffer holds neither the old bytes nor the new ones until the completion. */
static int count_rubbish(void)
{
    int seen = 0;

    for (int i = 0; i < ROUNDS; i++) {
        struct vt_wr w;

        memset(p.a.buf, 0, LEN);
        vt_fill(p.b.buf, LEN, SEED);
        w = vt_wr(&p.a, IBV_WR_RDMA_READ, 1, 0, LEN);
        VT_OK(vt_post(&p.a, &w));
        for (int j = 0; j < 1000 && p.a.buf[7] == 0; j++) {
            turn();
        }
        seen += p.a.buf[7] != 0 && p.a.buf[7] != p.b.buf[7];
        VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.a.buf, LEN, SEED), "expected all bytes with the completion");
    }
    return seen;
}

/* An atomic has happened at the target, and its answer is not there. */
static int count_late_answers(void)
{
    int seen = 0;
    volatile uint64_t *there = (void *)p.b.buf, *here = (void *)p.a.buf;

    *there = 100;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8);

        w.wr.wr.atomic.compare_add = 1;
        *here = 0;
        VT_OK(vt_post(&p.a, &w));
        for (int j = 0; j < 1000 && *there != 101 + i; j++) {
            turn();
        }
        seen += *there == 101 + i && *here != 100 + i;
        VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
        VT_CHECK(*here == 100 + i, "expected the old value with the completion");
    }
    return seen;
}

static void check_error_fields(void)
{
    struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, 9, 0, 64);
    struct ibv_wc wc;

    w.wr.wr.rdma.rkey ^= 0x5a5a5a;
    wc = VT_RUN(&p.a, &w, IBV_WC_REM_ACCESS_ERR);
    VT_CHECK(wc.qp_num == p.a.qp->qp_num, "qp_num of an error: expected the queue pair's");
    VT_CHECK(wc.opcode != IBV_WC_RDMA_WRITE, "opcode of an error: expected rubbish");
}

int main(void)
{
    struct vt_conf conf;

    vt_open("what is undefined before a completion is not what programs hope for");
    conf = vt_conf();
    vt_connect(&p, &conf);
    VT_CHECK(count_partial(IBV_WR_RDMA_WRITE) > 0, "expected a write to land in parts, saw none");
    VT_CHECK(count_partial(IBV_WR_SEND) > 0, "expected a message to land in parts, saw none");
    VT_CHECK(count_rubbish() > 0, "expected rubbish in a buffer that is read into, saw none");
    VT_CHECK(count_late_answers() > 0, "expected answers of atomics to be late, saw none");
    check_words();
    check_error_fields();
    vt_disconnect(&p);
    return vt_close();
}

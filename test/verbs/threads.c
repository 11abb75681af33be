/* Threads share a queue pair and its completion queue: nothing is lost, doubled or out of order. */
#include "vt.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, EACH = 400, WINDOW = 4 };

static struct vt_pair p;
static unsigned char done[THREADS][EACH];

static bool is_done(int thread, int i)
{
    return __atomic_load_n(&done[thread][i], __ATOMIC_ACQUIRE);
}

/* Whoever polls a completion marks it for its owner. */
static void poll_one(void)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(p.a.scq, 1, &wc);
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
    size_t off = (size_t)thread * 4096;
    for (int i = 0; i < EACH; i++) {
        struct vt_wr w = vt_wr(&p.a, i % 4 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                               (uint64_t)thread << 32 | (unsigned)i, off, 64);
        w.wr.wr.rdma.remote_addr += i % 4 ? 0 : 2048;
        w.sge.addr += i % 4 ? 0 : 2048;
        while (i >= WINDOW && !is_done(thread, i - WINDOW)) {
            poll_one();
        }
        VT_OK(vt_post(&p.a, &w));
    }
    for (int i = EACH - WINDOW; i < EACH; i++) {
        while (!is_done(thread, i)) {
            poll_one();
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    vt_open(argc, argv, "threads share a queue pair and a completion queue");
    struct vt_conf conf = vt_conf();
    conf.depth = THREADS * WINDOW + THREADS;
    vt_connect(&p, &conf);
    for (int i = 0; i < THREADS; i++) {
        vt_fill(p.a.buf + (size_t)i * 4096, 64, (unsigned)i);
    }
    for (int i = 0; i < THREADS; i++) {
        VT_OK(pthread_create(&threads[i], NULL, poster, (void *)(intptr_t)i));
    }
    for (int i = 0; i < THREADS; i++) {
        VT_OK(pthread_join(threads[i], NULL));
    }
    for (int i = 0; i < THREADS; i++) {
        VT_CHECK(vt_filled(p.b.buf + (size_t)i * 4096, 64, (unsigned)i), "thread %d: wrong bytes",
                 i);
    }
    VT_QUIET(p.a.scq);
    vt_disconnect(&p);
    return vt_close();
}

/*
 * Processes that write to each other at random while some of them are killed:
 *   softhca-run -- softhca-stress PROCESSES KILLS MILLISECONDS SEED
 * Writes to the living must succeed, writes to the dead must fail in the end, and nobody may hang.
 */
#include <infiniband/verbs.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 64, BUFFER = 8192, DEADLINE_MS = 60000 };

static struct {
    int n;
    atomic_int ready, connected, stop, finished, leave;
    uint32_t qpn[MAX][MAX], rkey[MAX];
    uint64_t buffer[MAX];
    atomic_int failed[MAX][MAX]; /* status with which i's writes to j ended */
    atomic_ulong writes;
} * all;

static struct {
    int me;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp[MAX];
    uint16_t lid;
} mine;

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "softhca-stress: process %d: %s: %s\n", mine.me, what, strerror(errno));
        exit(1);
    }
}

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void make_objects(void)
{
    struct ibv_port_attr port;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    char *buffer;
    struct ibv_qp_init_attr init;

    need(list && list[0], "device list");
    ctx = ibv_open_device(list[0]);
    need(ctx && !ibv_query_port(ctx, 1, &port), "device");
    pd = ibv_alloc_pd(ctx);
    buffer = calloc(1, BUFFER);
    need(pd && buffer, "memory");
    mine.lid = port.lid;
    mine.mr = ibv_reg_mr(pd, buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    mine.cq = ibv_create_cq(ctx, MAX, NULL, NULL, 0);
    need(mine.mr && mine.cq, "objects");
    init = (struct ibv_qp_init_attr){
        .send_cq = mine.cq,
        .recv_cq = mine.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    for (int i = 0; i < all->n; i++) {
        mine.qp[i] = ibv_create_qp(pd, &init);
        need(mine.qp[i], "queue pair");
        all->qpn[mine.me][i] = mine.qp[i]->qp_num;
    }
    all->rkey[mine.me] = mine.mr->rkey;
    all->buffer[mine.me] = (uintptr_t)buffer;
}

static void connect_to(int i)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = all->qpn[i][mine.me],
        .ah_attr = {.dlid = mine.lid, .port_num = 1},
        .timeout = 12,
        .retry_cnt = 2,
    };
    int err = ibv_modify_qp(mine.qp[i], &a,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    a.qp_state = IBV_QPS_RTR;
    err |= ibv_modify_qp(mine.qp[i], &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a.qp_state = IBV_QPS_RTS;
    err |= ibv_modify_qp(mine.qp[i], &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    need(!err, "connecting");
}

/* True when it ended well. */
static bool write_to(int i)
{
    uint32_t n = 1 + (uint32_t)rand() % (BUFFER / 2);
    struct ibv_sge sge = {(uintptr_t)mine.mr->addr, n, mine.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    int got = 0;
    long end;

    wr.wr.rdma.remote_addr = all->buffer[i] + BUFFER / 2;
    wr.wr.rdma.rkey = all->rkey[i];
    need(ibv_post_send(mine.qp[i], &wr, &bad) == 0, "post");
    end = now_ms() + DEADLINE_MS;
    while (got == 0) {
        got = ibv_poll_cq(mine.cq, 1, &wc);
        errno = ETIMEDOUT;
        need(now_ms() < end, "waiting for a completion");
    }
    need(got == 1 && wc.wr_id == (uint64_t)i, "poll");
    atomic_fetch_add(&all->writes, wc.status == IBV_WC_SUCCESS);
    all->failed[mine.me][i] = wc.status;
    return wc.status == IBV_WC_SUCCESS;
}

static void live(int me, unsigned int seed)
{
    mine.me = me;
    srand(seed + (unsigned int)me);
    make_objects();
    for (atomic_fetch_add(&all->ready, 1); all->ready < all->n;) {
        usleep(1000);
    }
    for (int i = 0; i < all->n; i++) {
        connect_to(i);
    }
    for (atomic_fetch_add(&all->connected, 1); all->connected < all->n;) {
        usleep(1000);
    }
    while (!all->stop) {
        int i = rand() % all->n;

        if (all->failed[me][i] == IBV_WC_SUCCESS) {
            write_to(i);
        }
    }
    atomic_fetch_add(&all->finished, 1);
    while (!all->leave) { /* others may still write to us */
        usleep(1000);
    }
    exit(0);
}

static bool judge(const bool *killed, const int *status)
{
    bool ok = true;

    for (int i = 0; i < all->n; i++) {
        if (!killed[i] && status[i] != 0) {
            fprintf(stderr, "softhca-stress: process %d ended with status 0x%x\n", i, status[i]);
            ok = false;
        }
        for (int j = 0; j < all->n && !killed[i]; j++) {
            int s = all->failed[i][j];

            if (s != IBV_WC_SUCCESS && (!killed[j] || s != IBV_WC_RETRY_EXC_ERR)) {
                fprintf(stderr, "softhca-stress: a write of %d to %s %d ended with: %s\n", i,
                        killed[j] ? "the killed" : "the living", j, ibv_wc_status_str(s));
                ok = false;
            }
        }
    }
    return ok;
}

int main(int argc, char **argv)
{
    pid_t pid[MAX];
    bool killed[MAX] = {false};
    int status[MAX];
    int dead = 0;
    int n = argc == 5 ? atoi(argv[1]) : 0, kills = n ? atoi(argv[2]) : 0;
    unsigned int seed;
    long end, pause_us;

    if (n < 1 || n > MAX || kills > n) {
        fprintf(stderr, "usage: softhca-stress PROCESSES(1..%d) KILLS MILLISECONDS SEED\n", MAX);
        return 2;
    }
    seed = (unsigned int)atoi(argv[4]);
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    all->n = n;
    for (int i = 0; i < n; i++) {
        pid[i] = fork();
        if (pid[i] == 0) {
            live(i, seed);
        }
    }
    end = now_ms() + DEADLINE_MS;
    while (all->connected < n && now_ms() < end) {
        usleep(1000);
    }
    srand(seed);
    pause_us = atol(argv[3]) * 1000 / (kills + 1);
    for (int i = 0; i < kills; i++) {
        int victim;

        usleep((useconds_t)pause_us);
        victim = rand() % n;
        dead += !killed[victim];
        killed[victim] = true;
        kill(pid[victim], SIGKILL);
    }
    usleep((useconds_t)pause_us);
    all->stop = 1;
    for (end = now_ms() + DEADLINE_MS; all->finished < n - dead && now_ms() < end;) {
        usleep(1000);
    }
    all->leave = 1;
    for (int i = 0; i < n; i++) {
        waitpid(pid[i], &status[i], 0);
    }
    mine.me = 0;
    make_objects(); /* what the dead held can be used again */
    printf("%d processes, %d kills, seed %u: %lu writes\n", n, kills, seed, all->writes);
    return judge(killed, status) ? 0 : 1;
}

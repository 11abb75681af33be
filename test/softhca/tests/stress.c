/*
 * Processes that write to each other at random while some of them are killed:
 *   softhca-run -- softhca-stress PROCESSES KILLS MILLISECONDS SEED
 * Writes to the living must succeed, writes to the dead must fail in the end, and nobody may hang.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../../verbs/vt.h"

enum { MAX = 64, BUFFER = 8192, DEADLINE_MS = 60000 };

static struct {
    int n;
    atomic_int ready, connected, stop, finished, leave;
    struct vt_address address[MAX][MAX]; /* of i's queue pair to j */
    atomic_int failed[MAX][MAX];         /* status with which i's writes to j ended */
    atomic_ulong writes;
} * all;

static int me;
static struct vt_side side[MAX]; /* with one memory and one completion queue */
static struct vt_conf conf;

static void make_objects(void)
{
    vt_open("writes to the living arrive, writes to the dead end");
    conf = vt_conf();
    conf.depth = 1;
    conf.cqe = MAX;
    conf.timeout = 12;
    conf.retry_cnt = 2;
    vt_side_create(&side[0], vt.pd, &conf, false);
    for (int i = 0; i < all->n; i++) {
        struct ibv_qp_init_attr init = {.send_cq = side[0].scq,
                                        .recv_cq = side[0].rcq,
                                        .cap = {1, 1, 1, 1, 0},
                                        .qp_type = IBV_QPT_RC};

        if (i > 0) {
            side[i] = side[0];
            side[i].qp = VT_PTR(ibv_create_qp(vt.pd, &init));
        }
        all->address[me][i] = vt_address(&side[i]);
    }
}

/* True when it ended well. */
static bool write_to(int i)
{
    struct vt_wr w =
        vt_wr(&side[i], IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 1 + (size_t)rand() % (BUFFER / 2));
    struct ibv_wc wc;

    vt_aim(&w, &all->address[i][me], BUFFER / 2);
    VT_OK(vt_post(&side[i], &w));
    VT_CHECK(vt_poll(side[0].scq, &wc, DEADLINE_MS), "no completion came");
    VT_CHECK(wc.wr_id == (uint64_t)i, "another completion came");
    atomic_fetch_add(&all->writes, wc.status == IBV_WC_SUCCESS);
    all->failed[me][i] = wc.status;
    return wc.status == IBV_WC_SUCCESS;
}

static void come_together(atomic_int *counter)
{
    for (atomic_fetch_add(counter, 1); *counter < all->n;) {
        usleep(1000);
    }
}

static void live(int self, unsigned int seed)
{
    me = self;
    srand(seed + (unsigned int)me);
    make_objects();
    come_together(&all->ready);
    for (int i = 0; i < all->n; i++) {
        vt_side_connect(&side[i], &conf, &all->address[i][me]);
    }
    come_together(&all->connected);
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

static void wait_for(const atomic_int *counter, int n)
{
    for (uint64_t end = vt_now_ms() + DEADLINE_MS; *counter < n && vt_now_ms() < end;) {
        usleep(1000);
    }
}

int main(int argc, char **argv)
{
    pid_t pid[MAX];
    bool killed[MAX] = {false};
    int status[MAX], dead = 0;
    int n = argc == 5 ? atoi(argv[1]) : 0, kills = n ? atoi(argv[2]) : 0;
    unsigned int seed;
    long pause_us;

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
    wait_for(&all->connected, n);
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
    wait_for(&all->finished, n - dead);
    all->leave = 1;
    for (int i = 0; i < n; i++) {
        waitpid(pid[i], &status[i], 0);
    }
    make_objects(); /* what the dead held can be used again */
    printf("%d processes, %d kills, seed %u: %lu writes\n", n, kills, seed, all->writes);
    return judge(killed, status) ? 0 : 1;
}

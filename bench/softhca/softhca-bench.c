/*
 * What a write through the software HCA costs, as ratios to the raw system call in the same run:
 *   softhca-run -- softhca-bench [--check]
 * Blocks of raw process_vm_writev calls and of RDMA writes (post, and poll of its completion)
 * alternate; the figures are tenth percentiles over the blocks, since other work on the machine
 * only adds. --check: exit code 1 beyond the limits.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rc.h"

enum { BLOCKS = 301, LARGE = 1 << 20, WARM = 3 };

#define SMALL_LIMIT 1.6 /* time of an 8-byte write / raw call */
#define LARGE_LIMIT 0.8 /* bandwidth of 1 MiB writes / raw */

struct address {
    uint32_t qpn, rkey;
    uint16_t lid;
    uint64_t buffer;
    union ibv_gid gid;
    pid_t pid;
};

struct side {
    struct ibv_context *ctx;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer;
    bool is_roce;
};

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "softhca-bench: %s failed; start it with softhca-run\n", what);
        exit(2);
    }
}

static const char usage[] =
    "usage: softhca-run -- softhca-bench [OPTION]\n"
    "What an RDMA write on the software HCA costs beside the raw system call.\n\n"
    "  --check        exit code 1 when a ratio is beyond its limit\n"
    "  -h, --help     this text\n"
    "  -V, --version\n";

/* True for --check; ends at all but that and nothing. */
static bool parse(int argc, char **argv)
{
    const char *only = argc == 2 ? argv[1] : "";
    bool is_help = strcmp(only, "--help") == 0 || strcmp(only, "-h") == 0;

    if (argc == 1 || strcmp(only, "--check") == 0) {
        return argc == 2;
    }
    if (strcmp(only, "--version") == 0 || strcmp(only, "-V") == 0) {
        puts("ibshift " PACKAGE_VERSION);
        exit(0);
    }
    fputs(usage, is_help ? stdout : stderr);
    exit(is_help ? 0 : 2);
}

static void open_side(struct side *s, struct address *a)
{
    int n;
    struct ibv_port_attr port;
    struct ibv_device **list = ibv_get_device_list(&n);
    need(list && n > 0, "ibv_get_device_list");
    s->ctx = ibv_open_device(list[0]);
    need(s->ctx && ibv_query_port(s->ctx, 1, &port) == 0, "opening the device");
    s->is_roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
    struct ibv_pd *pd = ibv_alloc_pd(s->ctx);
    s->buffer = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(s->buffer, 1, LARGE);
    s->mr = ibv_reg_mr(pd, s->buffer, LARGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    s->cq = ibv_create_cq(s->ctx, 64, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = s->cq,
        .recv_cq = s->cq,
        .cap = {.max_send_wr = 32, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    s->qp = ibv_create_qp(pd, &init);
    need(s->mr && s->qp, "making the objects");
    *a = (struct address){s->qp->qp_num,        s->mr->rkey, port.lid,
                          (uintptr_t)s->buffer, {{0}},       getpid()};
    need(ibv_query_gid(s->ctx, 1, 0, &a->gid) == 0, "ibv_query_gid");
    ibv_free_device_list(list);
}

static void connect_side(struct side *s, const struct address *to)
{
    struct ibv_ah_attr ah = {.dlid = to->lid, .is_global = s->is_roce, .grh = {.dgid = to->gid}};

    need(rc_connect(s->qp, to->qpn, ah, IBV_MTU_1024, 14) == 0, "ibv_modify_qp");
}

static double time_raw(const struct side *s, const struct address *to, size_t bytes, int calls)
{
    struct iovec local = {s->buffer, bytes}, remote = {(void *)(uintptr_t)to->buffer, bytes};
    double start = rc_now_ns();
    for (int i = 0; i < calls; i++) {
        need(process_vm_writev(to->pid, &local, 1, &remote, 1, 0) == (ssize_t)bytes,
             "process_vm_writev");
    }
    return (rc_now_ns() - start) / calls;
}

static double time_write(struct side *s, const struct address *to, size_t bytes, int calls)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, (uint32_t)bytes, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    wr.wr.rdma.remote_addr = to->buffer;
    wr.wr.rdma.rkey = to->rkey;
    double start = rc_now_ns();
    for (int i = 0; i < calls; i++) {
        int n = 0;
        need(ibv_post_send(s->qp, &wr, &bad) == 0, "ibv_post_send");
        while (n == 0) {
            n = ibv_poll_cq(s->cq, 1, &wc);
        }
        need(n == 1 && wc.status == IBV_WC_SUCCESS, "the write");
    }
    return (rc_now_ns() - start) / calls;
}

static double tenth_percentile(double *v)
{
    qsort(v, BLOCKS, sizeof(*v), rc_by_value);
    return v[BLOCKS / 10];
}

static void measure(struct side *s, const struct address *to, size_t bytes, int calls, double *raw,
                    double *write)
{
    double r[BLOCKS], w[BLOCKS];
    for (int i = -WARM; i < BLOCKS; i++) {
        double one = time_raw(s, to, bytes, calls), other = time_write(s, to, bytes, calls);
        if (i >= 0) {
            r[i] = one;
            w[i] = other;
        }
    }
    *raw = tenth_percentile(r);
    *write = tenth_percentile(w);
}

int main(int argc, char **argv)
{
    struct side side;
    struct address mine, peer;
    int down[2], up[2];
    bool check = parse(argc, argv);
    need(pipe(down) == 0 && pipe(up) == 0, "pipe");
    pid_t child = fork();
    need(child >= 0, "fork");
    int in = child ? up[0] : down[0], out = child ? down[1] : up[1];
    open_side(&side, &mine);
    need(write(out, &mine, sizeof(mine)) == sizeof(mine), "write");
    need(read(in, &peer, sizeof(peer)) == sizeof(peer), "read");
    connect_side(&side, &peer);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
    }
    usleep(50000); /* the child connects, then sleeps: writes are one-sided */
    double raw8, write8, raw1m, write1m;
    measure(&side, &peer, 8, 50, &raw8, &write8);
    measure(&side, &peer, LARGE, 1, &raw1m, &write1m);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    double small = write8 / raw8, large = raw1m / write1m;
    printf("%-24s %12s %12s %8s\n", "", "raw", "RDMA write", "ratio");
    printf("%-24s %9.0f ns %9.0f ns %8.2f  (limit %.1f)\n", "8 bytes, one way", raw8, write8, small,
           SMALL_LIMIT);
    printf("%-24s %7.2f GB/s %7.2f GB/s %8.2f  (limit %.1f)\n", "1 MiB", LARGE / raw1m,
           LARGE / write1m, large, LARGE_LIMIT);
    return check && (small > SMALL_LIMIT || large < LARGE_LIMIT);
}

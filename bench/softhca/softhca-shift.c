/*
 * A shift all-to-all in plain verbs, for wires and fabrics under the software HCA: in stage s, rank
 * r writes a block to rank r + s and waits until it is complete and the block of rank r - s is
 * there. Starts its ranks itself, each on the modelled host of its number, and prints milliseconds
 * from the common start to the end of the last rank.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rc.h"

enum { RANKS = 64, NAP_US = 200, RELEASE_US = 20000 };

struct card {
    uint16_t lid;
    uint32_t qpn[RANKS], rkey;
    uint64_t address;
};

/* Between the ranks, beside the wire. */
struct table {
    atomic_uint arrived, failed;
    _Atomic uint64_t start, end[RANKS];
    struct card card[RANKS];
};

struct rank {
    struct table *table;
    uint32_t me, ranks, block;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    struct ibv_qp *qp[RANKS];
    char *memory; /* a block to send, then one from each rank */
    uint8_t is_there[RANKS];
};

static uint64_t now_ns(void)
{
    return (uint64_t)rc_now_ns();
}

/* All ranks, or -1 when one has failed. */
static int meet(struct rank *r, uint32_t times)
{
    atomic_fetch_add(&r->table->arrived, 1);
    while (atomic_load(&r->table->arrived) < r->ranks * times) {
        if (atomic_load(&r->table->failed)) {
            return -1;
        }
        usleep(NAP_US);
    }
    return 0;
}

static int open_port(struct rank *r)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;
    r->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!r->context || ibv_query_port(r->context, 1, &port) != 0) {
        fprintf(stderr, "softhca-shift: rank %u has no device: run it under softhca-run\n", r->me);
        return -1;
    }
    ibv_free_device_list(list);
    r->table->card[r->me].lid = port.lid;
    return 0;
}

static int make_objects(struct rank *r)
{
    size_t bytes = (size_t)r->block * (r->ranks + 1);
    r->memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    r->pd = ibv_alloc_pd(r->context);
    r->cq = ibv_create_cq(r->context, (int)(4 * r->ranks), NULL, NULL, 0);
    if (!r->memory || !r->pd || !r->cq) {
        return -1;
    }
    memset(r->memory, 0, bytes); /* no page is touched for the first time while time is taken */
    memset(r->memory, (int)(r->me + 1), r->block);
    r->mr = ibv_reg_mr(r->pd, r->memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (uint32_t i = 0; r->mr && i < r->ranks; i++) {
        struct ibv_qp_init_attr init = {.send_cq = r->cq,
                                        .recv_cq = r->cq,
                                        .qp_type = IBV_QPT_RC,
                                        .sq_sig_all = 1,
                                        .cap = {.max_send_wr = 4, .max_recv_wr = 4}};
        init.cap.max_send_sge = init.cap.max_recv_sge = 1;
        r->qp[i] = ibv_create_qp(r->pd, &init);
        if (!r->qp[i]) {
            return -1;
        }
        r->table->card[r->me].qpn[i] = r->qp[i]->qp_num;
    }
    r->table->card[r->me].address = (uintptr_t)r->memory;
    r->table->card[r->me].rkey = r->mr ? r->mr->rkey : 0;
    return r->mr ? 0 : -1;
}

static int connect_to(struct rank *r, uint32_t peer)
{
    const struct card *card = &r->table->card[peer];
    struct ibv_recv_wr *bad, wr = {.wr_id = peer};

    return rc_connect(r->qp[peer], card->qpn[r->me], (struct ibv_ah_attr){.dlid = card->lid},
                      IBV_MTU_4096, 20) ||
           ibv_post_recv(r->qp[peer], &wr, &bad);
}

static int send_block(struct rank *r, uint32_t to)
{
    const struct card *card = &r->table->card[to];
    struct ibv_sge sge = {(uintptr_t)r->memory, r->block, r->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.wr_id = to, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE_WITH_IMM};
    wr.wr.rdma.remote_addr = card->address + (uint64_t)r->block * (r->me + 1);
    wr.wr.rdma.rkey = card->rkey;
    return ibv_post_send(r->qp[to], &wr, &bad);
}

static int stage(struct rank *r, uint32_t to, uint32_t from)
{
    bool is_sent = false;
    if (send_block(r, to) != 0) {
        return -1;
    }
    while (!is_sent || !r->is_there[from]) {
        struct ibv_wc wc;
        int n = ibv_poll_cq(r->cq, 1, &wc);
        if (n < 0 || (n > 0 && wc.status != IBV_WC_SUCCESS) || atomic_load(&r->table->failed)) {
            fprintf(stderr, "softhca-shift: rank %u to %u: %s\n", r->me, to,
                    n > 0 ? ibv_wc_status_str(wc.status) : "stopped");
            return -1;
        }
        if (n == 0) {
            usleep(NAP_US);
        } else if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
            r->is_there[wc.wr_id] = 1;
        } else {
            is_sent = true;
        }
    }
    return 0;
}

static int check_blocks(const struct rank *r)
{
    for (uint32_t i = 0; i < r->ranks; i++) {
        const char *block = r->memory + (size_t)r->block * (i + 1);
        for (uint32_t k = 0; i != r->me && k < r->block; k++) {
            if (block[k] != (char)(i + 1)) {
                fprintf(stderr, "softhca-shift: rank %u: wrong byte %u of rank %u\n", r->me, k, i);
                return -1;
            }
        }
    }
    return 0;
}

static int run(struct rank *r)
{
    int err = open_port(r) || make_objects(r) || meet(r, 1);
    for (uint32_t i = 0; i < r->ranks && !err; i++) {
        err = i != r->me && connect_to(r, i);
    }
    err = err || meet(r, 2);
    if (!err && r->me == 0) {
        atomic_store(&r->table->start, now_ns() + RELEASE_US * 1000ull);
    }
    err = err || meet(r, 3);
    while (!err && now_ns() < atomic_load(&r->table->start)) {
        usleep(NAP_US);
    }
    for (uint32_t s = 1; s < r->ranks && !err; s++) {
        err = stage(r, (r->me + s) % r->ranks, (r->me + r->ranks - s) % r->ranks);
    }
    atomic_store(&r->table->end[r->me], now_ns());
    err = err || check_blocks(r) || meet(r, 4);
    if (err) {
        atomic_store(&r->table->failed, 1);
    }
    return err != 0;
}

static int start_ranks(struct table *table, uint32_t ranks, uint32_t block)
{
    int failed = 0, status;
    for (uint32_t i = 0; i < ranks; i++) {
        if (fork() == 0) {
            char host[16];
            snprintf(host, sizeof(host), "%u", i);
            setenv("SOFTHCA_HOST", host, 1);
            struct rank r = {.table = table, .me = i, .ranks = ranks, .block = block};
            exit(run(&r));
        }
    }
    while (wait(&status) > 0) {
        failed |= status;
    }
    return failed ? -1 : 0;
}

static const char usage[] =
    "usage: softhca-run --hosts RANKS [OPTION...] -- softhca-shift RANKS BLOCK\n"
    "A shift all-to-all in plain verbs, one rank on each modelled host; prints\n"
    "milliseconds.\n\n"
    "  RANKS          2 to 64\n"
    "  BLOCK          bytes from each rank to each other, 1 to 67108864\n"
    "  -h, --help     this text\n"
    "  -V, --version\n";

/* Is it all that was asked for? */
static bool has_told(int argc, char **argv)
{
    const char *only = argc == 2 ? argv[1] : "";
    bool is_help = strcmp(only, "--help") == 0 || strcmp(only, "-h") == 0;
    bool is_version = strcmp(only, "--version") == 0 || strcmp(only, "-V") == 0;

    if (is_help || is_version) {
        fputs(is_help ? usage : "ibshift " PACKAGE_VERSION "\n", stdout);
    }
    return is_help || is_version;
}

int main(int argc, char **argv)
{
    if (has_told(argc, argv)) {
        return 0;
    }
    unsigned long ranks = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long block = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (ranks < 2 || ranks > RANKS || block < 1 || block > 64ul << 20) {
        fputs(usage, stderr);
        return 2;
    }
    struct table *table =
        mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED || start_ranks(table, (uint32_t)ranks, (uint32_t)block) != 0) {
        return 1;
    }
    uint64_t last = 0;
    for (uint32_t i = 0; i < ranks; i++) {
        last = table->end[i] > last ? table->end[i] : last;
    }
    printf("%.3f\n", (double)(last - table->start) / 1e6);
    return 0;
}

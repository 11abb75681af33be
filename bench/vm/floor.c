/*
 * The floor of a device: half the round trip of RDMA writes and of sends between two processes, by
 * plain libibverbs. floor DEVICE GID-INDEX ROUND-TRIPS SIZE...      prints operation,size,us (the
 * median) as CSV Whoever finds nothing yields the processor, as all that is measured beside it
 * does: with fewer processors than processes a spinning one would only measure the scheduler's time
 * slice.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rc.h"

enum { LARGEST = 1 << 20, WARM = 10 };

struct address {
    uint32_t qpn, rkey;
    uint64_t buffer;
    union ibv_gid gid;
};

struct side {
    struct ibv_context *ctx;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer; /* the first half is written by the peer, the second is what is sent */
    int gid_index;
    struct address peer;
};

static void need(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "floor: %s failed\n", what);
        exit(2);
    }
}

static struct ibv_context *open_device(const char *name)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list != NULL && i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
            ctx = ibv_open_device(list[i]);
        }
    }
    ibv_free_device_list(list);
    return ctx;
}

static void open_side(struct side *s, const char *device, struct address *own)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    struct ibv_pd *pd;

    s->ctx = open_device(device);
    need(s->ctx != NULL, device);
    pd = ibv_alloc_pd(s->ctx);
    need(pd != NULL, "ibv_alloc_pd");
    s->buffer = calloc(2, LARGEST);
    need(s->buffer != NULL, "calloc");
    s->mr = ibv_reg_mr(pd, s->buffer, 2 * (size_t)LARGEST, access);
    s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
    need(s->mr != NULL && s->cq != NULL, "ibv_reg_mr, ibv_create_cq");
    init.send_cq = init.recv_cq = s->cq;
    s->qp = ibv_create_qp(pd, &init);
    need(s->qp != NULL, "ibv_create_qp");
    *own =
        (struct address){.qpn = s->qp->qp_num, .rkey = s->mr->rkey, .buffer = (uintptr_t)s->buffer};
    need(ibv_query_gid(s->ctx, 1, s->gid_index, &own->gid) == 0, "ibv_query_gid");
}

static void connect_side(struct side *s)
{
    struct ibv_port_attr port;
    struct ibv_ah_attr ah = {.is_global = 1};

    need(ibv_query_port(s->ctx, 1, &port) == 0, "ibv_query_port");
    ah.dlid = port.lid;
    ah.grh = (struct ibv_global_route){
        .dgid = s->peer.gid, .sgid_index = (uint8_t)s->gid_index, .hop_limit = 64};
    need(rc_connect(s->qp, s->peer.qpn, ah, port.active_mtu, 14) == 0, "ibv_modify_qp");
}

static void post(struct side *s, enum ibv_wr_opcode opcode, size_t size)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer + LARGEST, (uint32_t)size, s->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};

    wr.wr.rdma.remote_addr = s->peer.buffer;
    wr.wr.rdma.rkey = s->peer.rkey;
    need(ibv_post_send(s->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void post_receive(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buffer, LARGEST, s->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

    need(ibv_post_recv(s->qp, &wr, &bad) == 0, "ibv_post_recv");
}

/* Takes one completion if there is one; true: it was a receive. */
static bool poll_once(struct side *s)
{
    struct ibv_wc wc;
    int found = ibv_poll_cq(s->cq, 1, &wc);

    need(found >= 0 && (found == 0 || wc.status == IBV_WC_SUCCESS), "a request");
    if (found == 0) {
        sched_yield();
    }
    return found == 1 && wc.opcode == IBV_WC_RECV;
}

/* A write shows by its last byte, which is another one in each turn. */
static void wait_for_peer(struct side *s, enum ibv_wr_opcode opcode, size_t size, char mark)
{
    if (opcode == IBV_WR_SEND) {
        while (!poll_once(s)) {
        }
        post_receive(s);
        return;
    }
    while (((volatile char *)s->buffer)[size - 1] != mark) {
        poll_once(s);
    }
    poll_once(s); /* of the own write before, so that the queue never fills */
}

/* The mark is written when the peer has answered the message before: until then the device may read
 * it. */
static void one_trip(struct side *s, enum ibv_wr_opcode opcode, size_t size, int turn, bool first)
{
    char mark = (char)(1 + turn % 100);

    if (!first) {
        wait_for_peer(s, opcode, size, mark);
    }
    s->buffer[LARGEST + size - 1] = mark;
    post(s, opcode, size);
    if (first) {
        wait_for_peer(s, opcode, size, mark);
    }
}

static double measure(struct side *s, enum ibv_wr_opcode opcode, size_t size, int trips, bool first)
{
    double *samples = calloc((size_t)trips, sizeof(double)), result;

    need(samples != NULL, "calloc");
    for (int i = -WARM; i < trips; i++) {
        double start = rc_now_ns();

        one_trip(s, opcode, size, i + WARM, first);
        samples[i < 0 ? 0 : i] = (rc_now_ns() - start) / 2e3;
    }
    qsort(samples, (size_t)trips, sizeof(double), rc_by_value);
    result = samples[trips / 2];
    free(samples);
    return result;
}

static void talk(struct side *s, int channel, const struct address *own, bool first, int trips,
                 char **sizes)
{
    char go = 0;

    need(write(channel, own, sizeof(*own)) == sizeof(*own), "write");
    need(read(channel, &s->peer, sizeof(s->peer)) == sizeof(s->peer), "read");
    connect_side(s);
    post_receive(s);
    for (int k = 0; sizes[k] != NULL; k++) {
        size_t size = (size_t)strtoul(sizes[k], NULL, 10);

        need(size >= 1 && size <= LARGEST, "a size from 1 to 1048576");
        for (int is_send = 0; is_send < 2; is_send++) {
            double us;

            s->buffer[size - 1] = 0;
            need(write(channel, &go, 1) == 1 && read(channel, &go, 1) == 1, "the peer");
            us = measure(s, is_send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, size, trips, first);
            if (first) {
                printf("%s,%zu,%.3f\n", is_send ? "send" : "write", size, us);
            }
        }
    }
}

int main(int argc, char **argv)
{
    int channel[2], trips = argc > 4 ? atoi(argv[3]) : 0;
    struct address own;
    struct side side = {0};
    pid_t child;

    if (argc < 5 || trips < 1) {
        fprintf(stderr, "usage: floor DEVICE GID-INDEX ROUND-TRIPS SIZE...\n");
        return 2;
    }
    side.gid_index = atoi(argv[2]);
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, channel) == 0, "socketpair");
    child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    close(channel[child == 0]);
    open_side(&side, argv[1], &own);
    talk(&side, channel[child != 0], &own, child != 0, trips, argv + 4);
    fflush(stdout);
    if (child != 0) {
        need(waitpid(child, NULL, 0) == child, "waitpid");
    }
    return 0;
}

/* What the device does when it is asked to: each try makes what it needs and takes it away again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "doctor/doctor.h"
#include "net/verbs/verbs.h"

enum { LEVELS = 16, WRITES = 200, PACKETS = 4, BULK = 1 << 20, BULKS = 32, HUGE = 2 << 20 };
enum { STRICT = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static const uint64_t patience = 2000 * 1000 * 1000ull; /* ns */

/* Two queue pairs of the port, connected with each other. */
struct loop {
    struct ibv_qp *qp[2];
    uint32_t inlined;
};

static struct ibv_qp *make_qp(const struct doctor_port *port, uint32_t *inlined)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = port->cq,
        .recv_cq = port->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };

    attr.cap.max_inline_data = *inlined;
    struct ibv_qp *qp = ibv_create_qp(port->pd, &attr);
    *inlined = attr.cap.max_inline_data;
    return qp;
}

static void loop_close(struct loop *loop)
{
    for (int i = 0; i < 2; i++) {
        if (loop->qp[i] != NULL) {
            (void)ibv_destroy_qp(loop->qp[i]);
        }
    }
}

/* To the state in which it sends to the other one; 0 or an errno. */
static int connect_one(const struct doctor_port *port, struct loop *loop, int i, uint8_t level)
{
    struct ibv_qp *qp = loop->qp[i];
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = port->pkey_index,
                               .port_num = port->number,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = port->attr.active_mtu,
                              .dest_qp_num = loop->qp[!i]->qp_num,
                              .min_rnr_timer = 1};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 3, .rnr_retry = 3};

    rtr.ah_attr = (struct ibv_ah_attr){
        .dlid = port->attr.lid,
        .sl = level,
        .port_num = port->number,
        .is_global = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
                     (port->attr.flags & IBV_QPF_GRH_REQUIRED) != 0,
        .grh = {.dgid = port->gid, .sgid_index = port->gid_index, .hop_limit = 64}};
    int rc = ibv_modify_qp(qp, &init,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    rc = rc != 0
             ? rc
             : ibv_modify_qp(qp, &rtr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    return rc != 0 ? rc
                   : ibv_modify_qp(qp, &rts,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* 0 or an errno; closed by loop_close() in every case. */
static int loop_open(const struct doctor_port *port, struct loop *loop, uint8_t level)
{
    memset(loop, 0, sizeof(*loop));
    for (int i = 0; i < 2; i++) {
        loop->qp[i] = make_qp(port, &loop->inlined);
        if (loop->qp[i] == NULL) {
            return errno;
        }
    }
    int rc = connect_one(port, loop, 0, level);
    return rc != 0 ? rc : connect_one(port, loop, 1, level);
}

/* 0, or the status of a completion; ETIMEDOUT when none comes. */
static int wait_for_one(const struct doctor_port *port)
{
    uint64_t until = doctor_now() + patience;
    struct ibv_wc wc;
    int n = 0;

    while (n == 0 && doctor_now() < until) {
        n = ibv_poll_cq(port->cq, 1, &wc);
    }
    return n == 1 ? (int)wc.status : ETIMEDOUT;
}

static int post_write(struct loop *loop, const struct ibv_mr *from, const struct ibv_mr *to,
                      size_t at, uint32_t length, bool is_signaled)
{
    struct ibv_sge sge = {.addr = (uintptr_t)from->addr + at, .length = length, .lkey = from->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = is_signaled ? IBV_SEND_SIGNALED : 0};

    wr.wr.rdma.remote_addr = (uintptr_t)to->addr + at;
    wr.wr.rdma.rkey = to->rkey;
    return ibv_post_send(loop->qp[0], &wr, &bad);
}

static void say_options(struct doctor *d, struct ibv_qp *qp)
{
    struct ibv_ece ece = {0};

    if (ibv_query_ece(qp, &ece) == 0 && ece.vendor_id != 0) {
        info_say(&d->info, INFO_FACT, "connection options",
                 "0x%x of vendor 0x%06x, agreed upon with each peer", ece.options, ece.vendor_id);
    }
}

static void try_inline(struct doctor *d)
{
    uint32_t wanted = ibshift_net_verbs_defaults.inlined, granted = wanted;
    struct ibv_qp *qp = make_qp(&d->port, &granted);
    int refused = qp == NULL ? errno : 0;

    while (qp == NULL && granted > 0) {
        granted /= 2;
        qp = make_qp(&d->port, &granted);
    }
    if (qp == NULL) {
        info_say(&d->info, INFO_BAD, "inline", "no connected queue pair: %s", strerror(errno));
        return;
    }
    say_options(d, qp);
    (void)ibv_destroy_qp(qp);
    if (refused != 0) {
        info_say(&d->info, INFO_NOTE, "inline", "%u bytes refused (%s), %u granted", wanted,
                 strerror(refused), granted);
    } else {
        info_say(&d->info, INFO_FACT, "inline", "%u bytes asked, %u granted", wanted, granted);
    }
}

static void try_shared_receives(struct doctor *d)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 64, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(d->port.pd, &attr);

    if (srq == NULL) {
        info_say(&d->info, INFO_NOTE, "shared receives",
                 "none (%s): each peer gets receives of its own, over one port", strerror(errno));
        return;
    }
    (void)ibv_destroy_srq(srq);
    info_say(&d->info, INFO_FACT, "shared receives", "yes, up to %d", d->port.device.max_srq_wr);
}

static void try_address(struct doctor *d)
{
    struct ibv_ah_attr attr = {
        .dlid = d->port.attr.lid,
        .port_num = d->port.number,
        .is_global = 1,
        .grh = {.dgid = d->port.gid, .sgid_index = d->port.gid_index, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(d->port.pd, &attr);

    if (ah == NULL) {
        info_say(&d->info, INFO_BAD, "address handles",
                 "none (%s): no datagrams, which connect ranks", strerror(errno));
        return;
    }
    (void)ibv_destroy_ah(ah);
    info_say(&d->info, INFO_FACT, "address handles", "yes");
}

/* "0-3,5" of the levels whose bits are set. */
static const char *levels_text(unsigned levels, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < LEVELS; i++) {
        int last = i;
        size_t at = strlen(text);
        if (!(levels >> i & 1)) {
            continue;
        }
        while (last + 1 < LEVELS && levels >> (last + 1) & 1) {
            last++;
        }
        snprintf(text + at, size - at, last > i ? "%s%d-%d" : "%s%d", at > 0 ? "," : "", i, last);
        i = last;
    }
    return text;
}

extern int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
    __attribute__((weak));

static void try_order_told(struct doctor *d)
{
    unsigned connected = 0, ordered = 0;
    char text[64], others[64];

    for (uint8_t level = 0; level < LEVELS; level++) {
        struct loop loop;
        if (loop_open(&d->port, &loop, level) == 0) {
            connected |= 1u << level;
            ordered |= (unsigned)(ibv_query_qp_data_in_order != NULL &&
                                  ibv_query_qp_data_in_order(loop.qp[0], IBV_WR_RDMA_WRITE, 0) == 1)
                       << level;
        }
        loop_close(&loop);
    }
    levels_text(ordered, text, sizeof(text));
    levels_text(connected & ~ordered, others, sizeof(others));
    if (ordered == connected) {
        info_say(&d->info, INFO_FACT, "order promised", "on service levels %s", text);
    } else {
        info_say(&d->info, INFO_NOTE, "order promised",
                 "not on service levels %s: adaptive routing or out-of-order placement is likely "
                 "there, if the driver knows the question; where switches route "
                 "adaptively, jobs want coll_ibshift_expert adaptive=1 or a fabric file that says "
                 "it%s%s%s",
                 others, ordered != 0 ? "; on levels " : "", text,
                 ordered != 0 ? " jobs with coll_ibshift_service_level and adaptive=0 follow the "
                                "tables"
                              : "");
    }
}

/* One round: two writes of several packets each. Bit 0: the second was seen before the first; bit
   1: the end of one was seen before its beginning. Negative: they were refused. */
static int look_once(const struct doctor_port *port, struct loop *loop, const struct ibv_mr *from,
                     const struct ibv_mr *to, uint8_t round)
{
    uint32_t half = (uint32_t)from->length / 2;
    const volatile uint8_t *at = to->addr;
    uint64_t until = doctor_now() + patience;
    int seen = 0;

    memset(from->addr, round, from->length);
    if (post_write(loop, from, to, 0, half, false) != 0 ||
        post_write(loop, from, to, half, half, true) != 0) {
        return -1;
    }
    while (at[from->length - 1] != round && at[from->length / 2] != round && doctor_now() < until) {
    }
    seen |= at[from->length - 1] == round && at[0] != round ? 1 : 0;
    seen |= at[from->length - 1] == round && at[half] != round ? 2 : 0;
    return wait_for_one(port) == 0 ? seen : -1;
}

static void try_order_seen(struct doctor *d)
{
    size_t length = (size_t)2 * PACKETS * (128u << d->port.attr.active_mtu);
    uint8_t *data = calloc(2, length);
    struct ibv_mr *from = data != NULL ? ibv_reg_mr(d->port.pd, data, length, STRICT) : NULL;
    struct ibv_mr *to = from != NULL ? ibv_reg_mr(d->port.pd, data + length, length, STRICT) : NULL;
    struct loop loop = {{NULL, NULL}, 0};
    int swapped = 0, torn = 0, seen = -1;

    if (to != NULL && loop_open(&d->port, &loop, 0) == 0) {
        seen = 0;
    }
    for (int i = 0; i < WRITES && seen >= 0; i++) {
        seen = look_once(&d->port, &loop, from, to, (uint8_t)(1 + i % 255));
        swapped += seen > 0 && seen & 1;
        torn += seen > 1;
    }
    if (seen >= 0) {
        info_say(&d->info, swapped + torn > 0 ? INFO_NOTE : INFO_FACT, "order seen",
                 "of %d pairs of writes within the adapter %d swapped, and of %d the end came "
                 "before the beginning",
                 WRITES, swapped, torn);
    }
    loop_close(&loop);
    if (to != NULL) {
        (void)ibv_dereg_mr(to);
    }
    if (from != NULL) {
        (void)ibv_dereg_mr(from);
    }
    free(data);
}

/* GB/s of long writes within the adapter; 0: a key or a write was refused. */
static double rate_with(const struct doctor_port *port, uint8_t *data, int access, int *error)
{
    struct ibv_mr *mr = ibv_reg_mr(port->pd, data, 2 * BULK, access);
    struct loop loop = {{NULL, NULL}, 0};
    uint64_t begin = 0;

    *error = mr == NULL ? errno : loop_open(port, &loop, 0);
    if (*error == 0) {
        struct ibv_mr to = *mr;
        to.addr = data + BULK;
        begin = doctor_now();
        for (int i = 0; i < BULKS && *error == 0; i++) {
            *error = post_write(&loop, mr, &to, 0, BULK, true);
            *error = *error != 0 ? *error : wait_for_one(port);
        }
    }
    double rate = *error == 0 ? (double)BULK * BULKS / (double)(doctor_now() - begin) : 0;
    loop_close(&loop);
    if (mr != NULL) {
        (void)ibv_dereg_mr(mr);
    }
    return rate;
}

static void try_relaxed(struct doctor *d)
{
    uint8_t *data = calloc(2, BULK);
    int strict_error, relaxed_error;

    if (data == NULL) {
        return;
    }
    (void)rate_with(&d->port, data, STRICT, &strict_error); /* pages and caches are warm after it */
    double strict = rate_with(&d->port, data, STRICT, &strict_error);
    double relaxed =
        rate_with(&d->port, data, STRICT | IBV_ACCESS_RELAXED_ORDERING, &relaxed_error);
    if (strict_error != 0 && relaxed_error == 0) {
        info_say(&d->info, INFO_NOTE, "relaxed order",
                 "strict keys refused (%s): no rings for short messages; relaxed %.2f GB/s",
                 strerror(strict_error), relaxed);
    } else if (strict_error == 0) {
        info_say(&d->info, INFO_FACT, "relaxed order",
                 "writes of 1 MiB within the adapter: strict %.2f GB/s, relaxed %.2f GB/s", strict,
                 relaxed);
    } else {
        info_say(&d->info, INFO_NOTE, "relaxed order", "no write within the adapter succeeded (%d)",
                 strict_error);
    }
    free(data);
}

/* us for registering and releasing; negative: -errno. */
static double cost_of(const struct doctor_port *port, void *data, size_t length)
{
    uint64_t begin = doctor_now();
    struct ibv_mr *mr = ibv_reg_mr(port->pd, data, length, STRICT | IBV_ACCESS_RELAXED_ORDERING);

    if (mr == NULL) {
        return -errno;
    }
    (void)ibv_dereg_mr(mr);
    return (double)(doctor_now() - begin) / 1e3;
}

static void try_registration(struct doctor *d)
{
    const size_t sizes[] = {1 << 20, 8 << 20, 64 << 20};
    char text[DOCTOR_TEXT] = "";
    bool is_refused = false;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !is_refused; i++) {
        void *data =
            mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (data == MAP_FAILED) {
            break;
        }
        memset(data, 1, sizes[i]);
        double us = cost_of(&d->port, data, sizes[i]);
        size_t at = strlen(text);
        is_refused = us < 0;
        if (is_refused) {
            snprintf(text + at, sizeof(text) - at, "%s%zu MiB refused (%s)", at > 0 ? ", " : "",
                     sizes[i] >> 20, strerror((int)-us));
        } else {
            snprintf(text + at, sizeof(text) - at, "%s%zu MiB %.0f us", at > 0 ? ", " : "",
                     sizes[i] >> 20, us);
        }
        (void)munmap(data, sizes[i]);
    }
    info_say(&d->info, is_refused ? INFO_NOTE : INFO_FACT, "registration", "%s", text);
}

static void try_huge_page(struct doctor *d)
{
    void *data =
        mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

    if (data == MAP_FAILED) {
        info_say(&d->info, INFO_FACT, "huge pages", "none available (vm.nr_hugepages)");
        return;
    }
    double us = cost_of(&d->port, data, HUGE);
    (void)munmap(data, HUGE);
    info_say(&d->info, us < 0 ? INFO_NOTE : INFO_FACT, "huge pages",
             us < 0 ? "refused: %s" : "yes%s", us < 0 ? strerror((int)-us) : "");
}

void doctor_tries(struct doctor *d)
{
    if (d->port.context == NULL) {
        return;
    }
    info_say(&d->info, INFO_FACT, "tried", "%s:%u, within the adapter", d->port.name,
             d->port.number);
    try_inline(d);
    try_shared_receives(d);
    try_address(d);
    try_order_told(d);
    try_order_seen(d);
    try_relaxed(d);
    try_registration(d);
    try_huge_page(d);
}

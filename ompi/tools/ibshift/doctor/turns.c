/*
 * How many bytes of one message the adapters of a pair send in a turn: each sends to the other, who
 * looks at the order of arrivals (turn.h), by the adapter's stamps where it has any. Three queue pairs begin with a message that keeps them
 * busy until everything is posted; that of the first is the longest, so that short messages of the
 * others are under way when the long one behind it begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "doctor/turn.h"

enum {
    QPS = 1 + TURN_SHORTS,
    LONG = 256 << 10,
    FIRST = 512 << 10,       /* before it */
    FIRST_SHORT = 384 << 10, /* before the short ones: they begin a quarter of FIRST earlier */
    SHORT = 1024,            /* a packet of most paths */
    TRAIN = 511,             /* short messages of a queue pair */
    POSTS = TRAIN + 1,
    ROUNDS = 5,
    PATIENCE = 30, /* seconds for a round */
};

/* What one end says of itself. The same version is at both ends of a pair. */
struct card {
    struct doctor_end end[QPS];
    uint64_t address;
    uint32_t key;
    int32_t status; /* 0: all that follows can be had */
};

struct turns {
    const struct doctor_port *port;
    int fd;
    struct ibv_cq *sent, *received;
    struct ibv_cq_ex *stamped; /* the latter, if what is received has a time */
    struct ibv_qp *qp[QPS];
    struct ibv_mr *mr;
    uint8_t *data;
    struct card other;
};

static int open_queues(struct turns *t)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = POSTS, .max_recv_wr = POSTS, .max_send_sge = 1, .max_recv_sge = 1}};

    struct ibv_cq_init_attr_ex wanted = {.cqe = TURN_ARRIVALS,
                                         .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

    t->sent = ibv_create_cq(t->port->context, QPS, NULL, NULL, 0);
    t->stamped = ibv_create_cq_ex(t->port->context, &wanted);
    t->received = t->stamped != NULL
                      ? ibv_cq_ex_to_cq(t->stamped)
                      : ibv_create_cq(t->port->context, TURN_ARRIVALS, NULL, NULL, 0);
    t->data = calloc(1, FIRST);
    t->mr = t->data != NULL ? ibv_reg_mr(t->port->pd, t->data, FIRST,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
                            : NULL;
    attr.send_cq = t->sent;
    attr.recv_cq = t->received;
    for (int i = 0; i < QPS && t->sent != NULL && t->received != NULL && t->mr != NULL; i++) {
        t->qp[i] = ibv_create_qp(t->port->pd, &attr);
        if (t->qp[i] == NULL) {
            return errno;
        }
    }
    return t->qp[QPS - 1] != NULL ? 0 : errno;
}

static void close_queues(struct turns *t)
{
    for (int i = 0; i < QPS; i++) {
        if (t->qp[i] != NULL) {
            (void)ibv_destroy_qp(t->qp[i]);
        }
    }
    if (t->mr != NULL) {
        (void)ibv_dereg_mr(t->mr);
    }
    free(t->data);
    if (t->sent != NULL) {
        (void)ibv_destroy_cq(t->sent);
    }
    if (t->received != NULL) {
        (void)ibv_destroy_cq(t->received);
    }
}

static int say(const struct turns *t, const void *what, size_t size)
{
    return send(t->fd, what, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : EPIPE;
}

/* Both say who they are, and join their queue pairs. */
static int meet(struct turns *t, int status)
{
    struct card mine = {.status = status};

    for (int i = 0; i < QPS && status == 0; i++) {
        mine.end[i] = (struct doctor_end){.gid = t->port->gid,
                                          .number = t->qp[i]->qp_num,
                                          .lid = t->port->attr.lid,
                                          .mtu = t->port->attr.active_mtu};
        mine.address = (uintptr_t)t->data;
        mine.key = t->mr->rkey;
    }
    if (say(t, &mine, sizeof(mine)) != 0 ||
        doctor_read_all(t->fd, &t->other, sizeof(t->other)) != 0) {
        return EPIPE;
    }
    status = status != 0 ? status : t->other.status;
    for (int i = 0; i < QPS && status == 0; i++) {
        status = doctor_qp_connect(t->port, t->qp[i], &t->other.end[i], 0);
    }
    return status;
}

static int post_one(struct turns *t, int i, uint32_t length, bool is_signaled)
{
    struct ibv_sge sge = {.addr = (uintptr_t)t->data, .length = length, .lkey = t->mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                                   .send_flags = is_signaled ? IBV_SEND_SIGNALED : 0};

    wr.wr.rdma.remote_addr = t->other.address;
    wr.wr.rdma.rkey = t->other.key;
    return ibv_post_send(t->qp[i], &wr, &bad);
}

/* The shorter messages that keep queue pairs busy before the longest: then it cannot end first. */
static int post_sends(struct turns *t)
{
    int rc = 0;

    for (int i = QPS - 1; i >= 0 && rc == 0; i--) {
        rc = post_one(t, i, i == TURN_LONG ? FIRST : FIRST_SHORT, false);
    }
    rc = rc != 0 ? rc : post_one(t, TURN_LONG, LONG, true);
    for (int k = 1; k <= TRAIN && rc == 0; k++) {
        for (int i = 1; i < QPS && rc == 0; i++) {
            rc = post_one(t, i, SHORT, k == TRAIN);
        }
    }
    return rc;
}

static int post_receives(struct turns *t)
{
    int rc = 0;

    for (int i = 0; i < QPS; i++) {
        for (int k = 0; k < (i == TURN_LONG ? 2 : POSTS) && rc == 0; k++) {
            struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)i};
            rc = ibv_post_recv(t->qp[i], &wr, &bad);
        }
    }
    return rc;
}

struct arrival {
    uint64_t time; /* the adapter's, if it has any: who looks late sees them out of order */
    uint32_t place;
    uint8_t from;
};

static int by_time(const void *a, const void *b)
{
    const struct arrival *one = a, *other = b;

    return one->time != other->time ? (one->time > other->time) - (one->time < other->time)
                                    : (one->place > other->place) - (one->place < other->place);
}

/* 1, 0 when there is none, or a negative value. */
static int poll_stamped(struct ibv_cq_ex *cq, struct arrival *arrival)
{
    struct ibv_poll_cq_attr attr = {0};
    int rc = ibv_start_poll(cq, &attr);

    if (rc != 0) {
        return rc == ENOENT ? 0 : -1;
    }
    *arrival = (struct arrival){.time = ibv_wc_read_completion_ts(cq), .from = (uint8_t)cq->wr_id};
    rc = cq->status == IBV_WC_SUCCESS ? 1 : -1;
    ibv_end_poll(cq);
    return rc;
}

static int poll_plain(struct ibv_cq *cq, struct arrival *arrival)
{
    struct ibv_wc wc;
    int n = ibv_poll_cq(cq, 1, &wc);

    if (n == 1) {
        *arrival = (struct arrival){.from = (uint8_t)wc.wr_id};
    }
    return n == 1 && wc.status != IBV_WC_SUCCESS ? -1 : n;
}

/* So many completions, and whose they were; 0 or an errno. */
static int collect(struct ibv_cq *cq, struct ibv_cq_ex *stamped, uint32_t wanted, uint8_t *from)
{
    static struct arrival arrivals[TURN_ARRIVALS];
    uint64_t until = doctor_now() + PATIENCE * 1000000000ull;

    for (uint32_t got = 0; got < wanted;) {
        int n = stamped != NULL ? poll_stamped(stamped, &arrivals[got])
                                : poll_plain(cq, &arrivals[got]);
        if (n < 0) {
            return EIO;
        }
        if (n == 0 && doctor_now() > until) {
            return ETIMEDOUT;
        }
        arrivals[got].place = got;
        got += (uint32_t)n;
    }
    qsort(arrivals, wanted, sizeof(arrivals[0]), by_time);
    for (uint32_t i = 0; i < wanted; i++) {
        from[i] = arrivals[i].from;
    }
    return 0;
}

/* The other end waits at the descriptor and gets the status of each step, so that both leave. */
static int receive_round(struct turns *t, uint32_t *bytes)
{
    uint8_t from[TURN_ARRIVALS];
    uint32_t count = 2 + TURN_SHORTS * POSTS;
    int32_t status = post_receives(t), others;

    if (say(t, &status, sizeof(status)) != 0 || status != 0) {
        return status != 0 ? status : EPIPE;
    }
    status = collect(t->received, t->stamped, count, from);
    *bytes = status == 0 ? turn_bytes(from, count, LONG) : 0;
    if (doctor_read_all(t->fd, &others, sizeof(others)) != 0 || others != 0) {
        return status != 0 ? status : EIO;
    }
    return status;
}

static int send_round(struct turns *t)
{
    uint8_t from[QPS];
    int32_t status;

    if (doctor_read_all(t->fd, &status, sizeof(status)) != 0 || status != 0) {
        return EIO;
    }
    status = post_sends(t);
    status = status != 0 ? status : collect(t->sent, NULL, QPS, from);
    return say(t, &status, sizeof(status)) != 0 ? EPIPE : status;
}

/* Of the other end's adapter; sorts what the rounds gave. */
static int measure(struct turns *t, bool receives, uint32_t bytes[ROUNDS])
{
    int rc = 0;

    for (int i = 0; i < ROUNDS && rc == 0; i++) {
        rc = receives ? receive_round(t, &bytes[i]) : send_round(t);
    }
    if (rc == 0 && receives) {
        (void)turn_median(bytes, ROUNDS);
        return say(t, bytes, ROUNDS * sizeof(bytes[0]));
    }
    rc = rc != 0 ? rc : doctor_read_all(t->fd, bytes, ROUNDS * sizeof(bytes[0])) != 0 ? EPIPE : 0;
    return rc != 0 || turn_is_heard(bytes, ROUNDS, LONG) ? rc : EPROTO;
}

static void tell_of(struct doctor *d, const char *whose, uint32_t bytes[ROUNDS])
{
    uint32_t median = turn_median(bytes, ROUNDS);

    if (bytes[0] == 0) {
        info_say(&d->info, INFO_NOTE, "burst", "%s adapter: not clear from the arrivals", whose);
        return;
    }
    info_say(&d->info, INFO_FACT, "burst",
             "%s adapter sends %s%u bytes of a message before it sends from another queue pair "
             "(%u to %u in %d rounds)",
             whose, median == LONG ? "at least " : "", median, bytes[0], bytes[ROUNDS - 1], ROUNDS);
    d->burst = median > d->burst ? median : d->burst;
    d->least_burst = d->least_burst == 0 || median < d->least_burst ? median : d->least_burst;
}

void doctor_turns(struct doctor *d, int fd, int self)
{
    struct turns t = {.port = &d->port, .fd = fd};
    uint32_t mine[ROUNDS] = {0}, others[ROUNDS] = {0};
    int rc = d->port.context == NULL ? ENODEV : open_queues(&t);

    rc = meet(&t, rc);
    for (int turn = 0; turn < 2 && rc == 0; turn++) {
        bool receives = turn != self;
        rc = measure(&t, receives, receives ? others : mine);
    }
    close_queues(&t);
    if (rc != 0) {
        info_say(&d->info, INFO_NOTE, "burst", "not measured: %s", strerror(rc));
        return;
    }
    tell_of(d, "this", mine);
    tell_of(d, "the peer's", others);
}

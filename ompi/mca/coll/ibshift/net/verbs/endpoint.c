/* The verbs net as a whole: made, polled, taken down. */
#include <errno.h>
#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "net/verbs/inside.h"

enum { WC_BATCH = 16, SLOW_EVERY = 32, SLOW_EVERY_BUSY = 4, LOOK_EVERY = 2, SENDS_MOST = 8192 };

static const uint64_t walk_pause = 50 * 1000 * 1000;   /* ns */
static const uint64_t alive_pause = 500 * 1000 * 1000; /* ns */
static const uint64_t linger = 2000 * 1000 * 1000ull;  /* ns, for the last sends at destroy */

const struct ibshift_net_verbs_options ibshift_net_verbs_defaults = {
    .memory = 8 << 20,
    .max_eager = 8192,
    .queue = 64,
    .inlined = 128,
    .rings = 16,
    .timeout = 14,
    .retry = 6, /* 7 is without end on Soft-RoCE */
};

static uint64_t net_now(struct ibshift_net *net)
{
    struct timespec t;

    (void)net;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int net_send(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, m->peer);

    if (c == NULL) {
        return -EHOSTUNREACH;
    }
    if (c->status != 0) {
        return c->status;
    }
    if (nv->given_up.peer_count > 0 && ibshift_given_up_by(&nv->given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    return m->length <= net->max_eager ? ibshift_nv_send_short(nv, c, m)
                                       : ibshift_nv_send_long(nv, c, m);
}

static int net_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer(nv, m->peer);

    if (c == NULL) {
        return -EHOSTUNREACH;
    }
    if (nv->given_up.peer_count > 0 && ibshift_given_up_by(&nv->given_up, m->peer, &m->key)) {
        return -ECONNABORTED;
    }
    return c->status != 0 ? c->status : ibshift_nv_recv(nv, c, m);
}

/* A receive of the shared queue was used, by a message or by the end of a write. */
static bool slot_used(struct ibshift_net_verbs *nv, struct ibshift_connection *c,
                      const struct ibv_wc *wc, struct ibshift_slot *slot)
{
    struct ibshift_wire head = {.length = UINT32_MAX};
    bool is_kept = false;

    if (slot != NULL && wc->byte_len >= sizeof(head)) {
        memcpy(&head, slot->data, sizeof(head)); /* peers may write there: it is read once */
    }

    c->in.slots_arrived++;
    if (c->in.slots_window > 0) {
        c->in.slots++;
    } else {
        nv->slot_stock++;
        ibshift_nv_serve(nv);
    }
    ibshift_nv_heard(nv, c);
    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        ibshift_nv_part_came(nv, c, be32toh(wc->imm_data));
    } else if (head.length != wc->byte_len - sizeof(head)) {
        ibshift_nv_break(nv, c, -EIO, "it sent a message of %u bytes without a header",
                         wc->byte_len);
    } else {
        is_kept = ibshift_nv_arrive(nv, c, &head, slot->data + sizeof(head), slot);
    }
    if (c->status == 0 && ibshift_limit_is_news(c->in.slots, c->in.slots_told, c->in.slots_arrived,
                                                c->in.slots_window)) {
        ibshift_nv_tell(nv, c);
    }
    return is_kept;
}

static void complete_recv(struct ibshift_net_verbs *nv, struct ibshift_lane *lane,
                          const struct ibv_wc *wc, struct ibshift_slot *slot)
{
    struct ibshift_rail *rail = ibshift_lane_rail(lane, wc->qp_num);
    bool is_kept = false;

    lane->missing++;
    if (rail != NULL && rail->connection->status == 0) {
        if (wc->status == IBV_WC_SUCCESS) {
            is_kept = slot_used(nv, rail->connection, wc, slot);
        } else {
            ibshift_nv_wc_error(nv, rail->connection, wc);
        }
    }
    if (slot != NULL && !is_kept) {
        ibshift_nv_slot_free(nv, slot);
    }
}

static void complete_send(struct ibshift_net_verbs *nv, struct ibshift_lane *lane,
                          const struct ibv_wc *wc, void *object, enum ibshift_wr_kind kind)
{
    struct ibshift_rail *rail = ibshift_lane_rail(lane, wc->qp_num);

    if (rail == NULL) {
        return;
    }
    struct ibshift_connection *c = rail->connection;
    if (kind == IBSHIFT_WR_MARKER) {
        c->markers--;
    } else if (wc->status != IBV_WC_SUCCESS) {
        ibshift_nv_wc_error(nv, c, wc);
    } else {
        ibshift_rail_retire(nv, rail);
        if (rail == &c->rail[0] && (int32_t)(rail->retired - c->word_end) >= 0) {
            c->is_word_away = false;
        }
        if (kind == IBSHIFT_WR_WRITE || kind == IBSHIFT_WR_EARLY || kind == IBSHIFT_WR_PIECE) {
            ibshift_nv_written(nv, object, kind);
        }
        if (c->must_tell) { /* perhaps for the word that this completes */
            ibshift_nv_flush(nv, c);
        }
    }
}

static int poll_lane(struct ibshift_net_verbs *nv, struct ibshift_lane *lane)
{
    struct ibv_wc wc[WC_BATCH];
    int n = ibv_poll_cq(lane->cq, WC_BATCH, wc);

    for (int i = 0; i < n; i++) {
        enum ibshift_wr_kind kind = wc[i].wr_id & (IBSHIFT_WR_KINDS - 1);
        void *object = (void *)(uintptr_t)(wc[i].wr_id & ~(uint64_t)(IBSHIFT_WR_KINDS - 1));
        if (kind == IBSHIFT_WR_RECV || kind == IBSHIFT_WR_EMPTY) {
            complete_recv(nv, lane, &wc[i], object);
        } else {
            complete_send(nv, lane, &wc[i], object, kind);
        }
    }
    ibshift_nv_receives_post(nv, lane);
    return n;
}

/* Whoever waits for a peer writes its word now and then: a dead peer shows as an error. */
static void check_alive(struct ibshift_net_verbs *nv, struct ibshift_connection *c)
{
    bool is_waiting =
        c->resting.first != NULL || c->waiting.first != NULL || c->ready.first != NULL;

    if (is_waiting && nv->time - c->alive > alive_pause) {
        c->alive = nv->time;
        ibshift_nv_tell(nv, c);
    }
}

/* Now and then: late grants are asked after, rings move. */
static void walk(struct ibshift_net_verbs *nv)
{
    nv->next_walk = nv->time + walk_pause;
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_READY) {
            if (c->must_tell) {
                ibshift_nv_flush(nv, c);
            }
            ibshift_nv_probe(nv, c);
            check_alive(nv, c);
        }
    }
    ibshift_nv_rings_balance(nv);
    ibshift_nv_async_poll(nv);
}

static void slow_round(struct ibshift_net_verbs *nv)
{
    nv->time = ibshift_net_now(&nv->net);
    ibshift_nv_wireup_poll(nv);
    if (nv->time >= nv->next_walk) {
        walk(nv);
    }
}

static int poll_queues(struct ibshift_net_verbs *nv)
{
    int completions = 0;

    for (int i = 0; i < nv->lane_count; i++) {
        completions += poll_lane(nv, &nv->lanes[i]);
    }
    return completions;
}

/* Rings are cheaper to look at than a completion queue, so they come first, and every other time
   alone; but messages that fit into no ring end in the queue, and then it is the queue. */
static void progress(struct ibshift_net_verbs *nv)
{
    bool is_queue_first = nv->rings_used == 0 || nv->queued > 0;
    bool are_both_due = nv->looks++ % LOOK_EVERY == 0;
    int seen = is_queue_first ? poll_queues(nv) : ibshift_nv_rings_poll(nv);

    if (is_queue_first && (are_both_due || seen == 0)) {
        seen += ibshift_nv_rings_poll(nv);
    } else if (!is_queue_first) {
        if (!are_both_due) {
            return;
        }
        seen += poll_queues(nv);
    }
    if (nv->blocked != NULL) {
        ibshift_nv_blocked_poll(nv);
    }
    if (nv->draining > 0 && seen == 0) {
        ibshift_nv_drain_poll(nv);
        ibshift_nv_serve(nv);
    }
    if (++nv->polls % (nv->shaking > 0 ? SLOW_EVERY_BUSY : SLOW_EVERY) == 0) {
        slow_round(nv);
    }
}

static int net_poll(struct ibshift_net *net, struct ibshift_net_event *events, int max)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    int n = 0;

    progress(nv);
    while (n < max && nv->event_first != nv->event_last) {
        events[n++] = nv->events[nv->event_first++ & nv->event_mask];
    }
    return n;
}

/* Where it can be, and now and then everywhere. */
static void look(struct ibshift_net_verbs *nv, struct ibshift_connection *c, size_t length)
{
    struct ibshift_ring *ring = length <= IBSHIFT_RING_PAYLOAD ? c->in.ring : NULL;
    int seen = ring != NULL ? ibshift_nv_ring_poll(nv, ring) : poll_queues(nv);

    if (seen == 0) {
        progress(nv);
    }
}

static bool try_recv(struct ibshift_net *net, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    struct ibshift_connection *c = ibshift_nv_peer_known(nv, m->peer);
    bool is_there;

    if (c == NULL || c->status != 0 ||
        (nv->given_up.peer_count > 0 && ibshift_given_up_by(&nv->given_up, m->peer, &m->key))) {
        return false;
    }
    if ((c->in.ring != NULL && ibshift_nv_try_record(nv, c, m)) || ibshift_nv_try_held(nv, c, m)) {
        return true;
    }
    nv->wanted = m;
    look(nv, c, m->length);
    is_there = nv->wanted == NULL;
    nv->wanted = NULL;
    return is_there || ibshift_nv_try_held(nv, c, m);
}

static bool has_unsent(const struct ibshift_net_verbs *nv)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        const struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_READY && c->rail[0].posted != c->rail[0].retired) {
            return true;
        }
    }
    return nv->ud_sends > 0 || nv->draining > 0;
}

/* The last messages of a program are posted and perhaps not sent: a signaled request behind them
   says when they are there. */
static void let_sends_leave(struct ibshift_net_verbs *nv)
{
    uint64_t until = ibshift_net_now(&nv->net) + linger;

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
        if (c->state == IBSHIFT_CONNECTION_READY && c->rail[0].posted != c->rail[0].signaled) {
            wr.wr.rdma.remote_addr = c->out.word_address;
            wr.wr.rdma.rkey = c->out.word_key;
            (void)ibshift_rail_post(nv, &c->rail[0], &wr, true);
        }
    }
    while (has_unsent(nv) && ibshift_net_now(&nv->net) < until) {
        progress(nv);
        sched_yield(); /* a peer may need this processor to take them */
    }
}

static void close_connections(struct ibshift_net_verbs *nv)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        ibshift_nv_rails_destroy(nv, c);
        if (c->ah != NULL) {
            (void)ibv_destroy_ah(c->ah);
        }
        free(c->text);
        free(c);
    }
    free(nv->connections);
    ibshift_given_up_free(&nv->given_up);
    for (int i = 0; i < IBSHIFT_PEER_CHUNK; i++) {
        free(nv->chunks[i]);
    }
}

static void close_lanes(struct ibshift_net_verbs *nv)
{
    for (int i = 0; i < nv->lane_count; i++) {
        struct ibshift_lane *lane = &nv->lanes[i];
        if (lane->srq != NULL) {
            (void)ibv_destroy_srq(lane->srq);
        }
        if (lane->cq != NULL) {
            (void)ibv_destroy_cq(lane->cq);
        }
        free(lane->rails);
    }
}

static void net_destroy(struct ibshift_net *net)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    let_sends_leave(nv);
    ibshift_nv_ud_close(nv);
    close_connections(nv);
    close_lanes(nv);
    ibshift_nv_memory_close(nv);
    free(nv);
}

static const struct ibshift_net_ops ops = {
    .send = net_send,
    .recv = net_recv,
    .try_send = ibshift_nv_try_send,
    .try_recv = try_recv,
    .poll = net_poll,
    .cancel = ibshift_nv_cancel,
    .abort = ibshift_nv_abort,
    .give_up = ibshift_nv_give_up,
    .has_given_up = ibshift_nv_has_given_up,
    .enter = ibshift_nv_enter,
    .ask = ibshift_nv_ask_after,
    .forget = ibshift_nv_forget,
    .granted = ibshift_nv_is_granted,
    .leave = ibshift_nv_leave,
    .mem_register = ibshift_nv_mem_register,
    .mem_release = ibshift_nv_mem_release,
    .describe = ibshift_nv_describe,
    .now = net_now,
    .destroy = net_destroy,
};

static const struct ibshift_nv_senders senders = {.send_note = ibshift_nv_send_note,
                                                  .write = ibshift_nv_write,
                                                  .write_slowly = ibshift_nv_write_slowly};

static int open_lane(struct ibshift_net_verbs *nv, struct ibshift_lane *lane)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = nv->receives, .max_sge = 1}};
    uint32_t room = (uint32_t)lane->device->attr.max_cqe - nv->receives;

    room = room < SENDS_MOST ? room : SENDS_MOST;
    nv->cq_room = room < nv->cq_room ? room : nv->cq_room;
    lane->cq = ibv_create_cq(lane->device->context, (int)(nv->receives + room), NULL, NULL, 0);
    if (lane->cq == NULL) {
        return -errno;
    }
    lane->srq = ibv_create_srq(lane->device->pd, &attr);
    if (lane->srq == NULL) {
        return -errno;
    }
    lane->missing = nv->receives;
    ibshift_nv_receives_post(nv, lane);
    return lane->missing < IBSHIFT_REFILL ? 0 : -EIO;
}

static int open_all(struct ibshift_net_verbs *nv, const char **what)
{
    int rc;

    *what = "registering memory";
    nv->cq_room = SENDS_MOST;
    nv->lane_count = nv->verbs->device_count;
    for (int i = 0; i < nv->lane_count; i++) {
        nv->lanes[i].device = &nv->verbs->devices[i];
    }
    rc = ibshift_nv_memory_open(nv);
    for (int i = 0; i < nv->lane_count && rc == 0; i++) {
        *what = "creating its queues";
        rc = open_lane(nv, &nv->lanes[i]);
    }
    if (rc == 0) {
        *what = "starting its datagram queue pair";
        rc = ibshift_nv_ud_open(nv);
    }
    rc = rc != 0 ? rc : ibshift_nv_async_open(nv);
    return rc;
}

static int check_options(const struct ibshift_net_verbs_options *o, char *error, size_t size)
{
    size_t least = ibshift_net_verbs_memory_min(o);

    if (o->max_eager < 64 || o->max_eager > 1 << 20) {
        snprintf(error, size, "an eager limit of %zu bytes: must be 64 to 1048576", o->max_eager);
    } else if (o->memory < least) {
        snprintf(error, size,
                 "%zu bytes of memory: must be at least %zu with an eager limit of %zu", o->memory,
                 least, o->max_eager);
    } else if (o->queue < 8 || o->queue > 4096) {
        snprintf(error, size, "send queues of %u requests: must be 8 to 4096", o->queue);
    } else if (o->timeout < 1 || o->timeout > 31 || o->retry < 0 || o->retry > 7) {
        snprintf(error, size, "timeout %d, retry %d: must be 1 to 31, 0 to 7", o->timeout,
                 o->retry);
    } else {
        return 0;
    }
    return -EINVAL;
}

static int create(struct ibshift_verbs *verbs, const struct ibshift_net_verbs_options *options,
                  struct ibshift_net **net, char *error, size_t error_size)
{
    const char *what = "";
    struct ibshift_net_verbs *nv = calloc(1, sizeof(*nv));

    if (nv == NULL) {
        snprintf(error, error_size, "out of memory");
        return -ENOMEM;
    }
    nv->net.ops = &ops;
    nv->senders = &senders;
    nv->net.max_eager = nv->net.max_tried = options->max_eager;
    nv->verbs = verbs;
    nv->options = *options;
    nv->asking_end = &nv->asking;
    nv->blocked_end = &nv->blocked;
    nv->noise = (uint32_t)verbs->blob.incarnation;
    nv->time = net_now(NULL);
    int rc = open_all(nv, &what);
    if (rc != 0) {
        snprintf(error, error_size, "%s: %s", what, strerror(-rc));
        net_destroy(&nv->net);
        return rc;
    }
    *net = &nv->net;
    return 0;
}

/* Where the limit of locked memory is the usual reason. */
static void add_advice(size_t memory, char *error, size_t size)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    size_t length = strlen(error);
    char now[32] = "unlimited";

    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) {
        snprintf(now, sizeof(now), "%llu KiB", (unsigned long long)limit.rlim_cur >> 10);
    }
    snprintf(
        error + length, size - length,
        "; %zu KiB and the queues must fit into locked memory (limit here: %s): raise ulimit -l to "
        "unlimited by docker's --ulimit memlock=-1, memlock in PAM's limits.d, or systemd's "
        "LimitMEMLOCK=infinity, of slurmd too",
        memory >> 10, now);
}

/* A container's limit may be as large as our default, with nothing left for queues: less memory
   costs credits, no memory costs everything. */
int ibshift_net_verbs_create(struct ibshift_verbs *verbs,
                             const struct ibshift_net_verbs_options *options,
                             struct ibshift_net **net, char *error, size_t error_size)
{
    struct ibshift_net_verbs_options less = *options;
    size_t least = ibshift_net_verbs_memory_min(options);

    if (check_options(options, error, error_size) != 0) {
        return -EINVAL;
    }
    int rc = create(verbs, &less, net, error, error_size);
    while (rc == -ENOMEM && less.memory > least) {
        less.memory = less.memory / 2 > least ? less.memory / 2 : least;
        rc = create(verbs, &less, net, error, error_size);
    }
    if (rc == 0) {
        error[0] = '\0';
    }
    if (rc == 0 && less.memory < options->memory) {
        snprintf(error, error_size, "only %zu KiB of memory are registered", less.memory >> 10);
        add_advice(options->memory, error, error_size);
    } else if (rc == -ENOMEM) {
        add_advice(less.memory, error, error_size);
    }
    return rc;
}

void ibshift_net_verbs_stats(struct ibshift_net *net, struct ibshift_net_verbs_stats *stats)
{
    *stats = ibshift_nv(net)->stats;
}

/* Queue pairs: created, brought up, posted to, found by number, broken, flushed, destroyed. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/inside.h"

static const struct ibshift_net_key no_key;

struct ibshift_rail *ibshift_lane_rail(const struct ibshift_lane *lane, uint32_t qpn)
{
    return (struct ibshift_rail *)ibshift_match_find(&lane->rails, qpn, &no_key);
}

static int rail_to_init(struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = nv->verbs->ports[rail->my_port].pkey_index,
                               .port_num = nv->verbs->ports[rail->my_port].number,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    return -ibv_modify_qp(rail->qp, &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static struct ibv_qp *make_qp(struct ibshift_net_verbs *nv, struct ibshift_lane *lane,
                              uint32_t receives, uint32_t *inlined)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = lane->cq,
        .recv_cq = lane->cq,
        .srq = lane->srq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = nv->options.queue,
                .max_send_sge = 2,
                .max_recv_wr = receives,
                .max_recv_sge = receives > 0,
                .max_inline_data = nv->options.inlined},
    };
    struct ibv_qp *qp = ibv_create_qp(lane->device->pd, &attr);
    /* Whatever the error: drivers do not agree on the one for too much inline data. */
    while (qp == NULL && attr.cap.max_inline_data > 0) {
        attr.cap.max_inline_data = attr.cap.max_inline_data > 16 ? attr.cap.max_inline_data / 2 : 0;
        qp = ibv_create_qp(lane->device->pd, &attr);
    }
    *inlined = attr.cap.max_inline_data;
    return qp;
}

/* Until then requests need neither a completion nor a look at the room. */
static void set_plain(const struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    uint32_t signal = rail->signaled + (nv->options.queue + 3) / 4;
    uint32_t full = rail->retired + nv->options.queue - IBSHIFT_REQUESTS_RESERVED;

    rail->plain_until = (int32_t)(full - signal) < 0 ? full : signal;
}

static uint32_t own_receives(const struct ibshift_rail *rail)
{
    uint32_t window = rail->connection->in.slots_window;

    if (rail->lane->srq != NULL) {
        return 0;
    }
    return window > 0 ? window : 1; /* without a window slots are given one by one */
}

/* What the device does beyond the specification where both sides do, as selective repeat on RoCE. */
static void ask_options(struct ibshift_rail *rail)
{
    if (ibv_query_ece(rail->qp, &rail->ece) != 0) {
        memset(&rail->ece, 0, sizeof(rail->ece));
    }
}

static int create_rail(struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    rail->lane = &nv->lanes[nv->verbs->ports[rail->my_port].device - nv->verbs->devices];
    rail->marks = calloc(nv->options.queue, sizeof(*rail->marks));
    if (rail->marks == NULL) {
        return -ENOMEM;
    }
    rail->own_end = &rail->own;
    rail->qp = make_qp(nv, rail->lane, own_receives(rail), &rail->inlined);
    if (rail->qp == NULL) {
        return errno != 0 ? -errno : -EIO;
    }
    rail->plain_bytes = rail->inlined < IBSHIFT_PLAIN_BYTES ? rail->inlined : IBSHIFT_PLAIN_BYTES;
    set_plain(nv, rail);
    rail->psn = (nv->noise = nv->noise * 1664525u + 1013904223u) >> 8;
    int rc = rail_to_init(nv, rail);
    ask_options(rail);
    if (rc == 0) {
        rail->by_number.peer = rail->qp->qp_num;
        ibshift_match_add(&rail->lane->rails, &rail->by_number);
    }
    return rc;
}

int ibshift_nv_rails_create(struct ibshift_connection *c)
{
    uint8_t mine[IBSHIFT_PORTS_MAX], theirs[IBSHIFT_PORTS_MAX];
    int n = ibshift_verbs_pair_ports(&c->net->verbs->blob, &c->card, mine, theirs);

    if (n == 0) {
        return -EHOSTUNREACH;
    }
    for (int i = 0; i < n; i++) {
        struct ibshift_rail *rail = &c->rail[i];
        rail->connection = c;
        rail->my_port = mine[i];
        rail->their_port = theirs[i];
        c->rails = (uint8_t)(i + 1);
        int rc = create_rail(c->net, rail);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static uint8_t path_mtu(const struct ibshift_net_verbs *nv, const struct ibshift_rail *rail)
{
    uint8_t mtu = nv->verbs->blob.address[rail->my_port].mtu;
    uint8_t theirs = rail->connection->card.address[rail->their_port].mtu;

    return theirs < mtu ? theirs : mtu;
}

/*
 * The first ports may have several LIDs: we send to c->path of theirs, they to `path` of ours. Each
 * side names the other's choice as its own source, since a queue pair may check where packets are
 * from.
 */
static int find_address(const struct ibshift_net_verbs *nv, const struct ibshift_rail *rail,
                        unsigned path, struct ibv_ah_attr *ah)
{
    bool is_first = rail->my_port == 0 && rail->their_port == 0;

    if (is_first && path >> nv->verbs->blob.address[0].lmc != 0) {
        return -EPROTO;
    }
    ibshift_nv_address(rail->connection, rail->my_port, rail->their_port,
                       is_first ? rail->connection->path : 0, ah);
    ah->src_path_bits = is_first ? (uint8_t)path : 0;
    return 0;
}

static bool have_options(const struct ibshift_rail *rail, const struct ibshift_hello *hello, int i)
{
    return rail->ece.vendor_id != 0 && rail->ece.vendor_id == hello->rail[i].ece_vendor;
}

/* Of two sides with options the one with the greater number takes what the other one has set. */
bool ibshift_nv_is_second(const struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    bool have = false;

    for (int i = 0; i < c->rails && i < hello->rails; i++) {
        have |= have_options(&c->rail[i], hello, i);
    }
    return have && c->net->options.self > c->peer;
}

/* What the first side cannot set neither side has. */
static int set_options(const struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                       const struct ibshift_hello *hello, int i)
{
    struct ibv_ece ece = {.vendor_id = hello->rail[i].ece_vendor,
                          .options = hello->rail[i].ece_options};

    if (!have_options(rail, hello, i)) {
        return 0;
    }
    int rc = ibv_set_ece(rail->qp, &ece);
    if (rc != 0 && nv->options.self < rail->connection->peer) {
        memset(&rail->ece, 0, sizeof(rail->ece));
        rc = 0;
    }
    return rc;
}

static int connect_rail(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                        const struct ibshift_hello *hello, int i)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = (enum ibv_mtu)path_mtu(nv, rail),
                              .dest_qp_num = hello->rail[i].qpn,
                              .rq_psn = hello->rail[i].psn,
                              .min_rnr_timer = 1};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
                              .sq_psn = rail->psn,
                              .timeout = (uint8_t)nv->options.timeout,
                              .retry_cnt = (uint8_t)nv->options.retry,
                              .rnr_retry = 7};

    rail->their_qpn = hello->rail[i].qpn;
    int rc = find_address(nv, rail, hello->path, &rtr.ah_attr);
    if (rc != 0) {
        return rc;
    }
    rc = set_options(nv, rail, hello, i);
    if (rc != 0) {
        return -rc;
    }
    rc = ibv_modify_qp(rail->qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    rc = rc != 0 ? rc
                 : ibv_modify_qp(rail->qp, &rts,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (rc == 0 && have_options(rail, hello, i)) {
        ask_options(rail); /* what the device has made of the other side's */
    }
    return -rc;
}

/* Releases of rdma-core before 36 do not have it. */
extern int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
    __attribute__((weak));

/* Whether what the peer writes lands here in order: asked when the queue pair is up, since it may
   depend on the path. */
static bool is_in_order(const struct ibshift_rail *rail)
{
    return ibv_query_qp_data_in_order != NULL &&
           ibv_query_qp_data_in_order(rail->qp, IBV_WR_RDMA_WRITE, 0) == 1;
}

int ibshift_nv_rails_connect(struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    int rc = hello->rails == c->rails ? 0 : -EPROTO;

    for (int i = 0; i < c->rails && rc == 0; i++) {
        rc = connect_rail(c->net, &c->rail[i], hello, i);
    }
    c->is_ordered = rc == 0 && is_in_order(&c->rail[0]);
    return rc;
}

/* The first of its receives is no longer posted. */
void ibshift_rail_received(struct ibshift_rail *rail)
{
    rail->own = rail->own->next;
    if (rail->own == NULL) {
        rail->own_end = &rail->own;
    }
}

static void free_copies(struct ibshift_net_verbs *nv, struct ibshift_slot *copies)
{
    while (copies != NULL) {
        struct ibshift_slot *slot = copies;
        copies = slot->next;
        ibshift_nv_slot_free(nv, slot);
        nv->copy_stock++;
    }
}

void ibshift_nv_rails_destroy(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;

    for (int i = 0; i < c->rails; i++) {
        struct ibshift_rail *rail = &c->rail[i];
        nv->requests -= rail->posted - rail->retired;
        if (rail->qp != NULL) {
            ibshift_match_remove(&rail->by_number);
            (void)ibv_destroy_qp(rail->qp);
        }
        while (rail->own != NULL) {
            struct ibshift_slot *slot = rail->own;
            ibshift_rail_received(rail);
            ibshift_nv_slot_free(nv, slot);
        }
        while (rail->first_mark != rail->last_mark) {
            free_copies(nv, rail->marks[rail->first_mark++ % nv->options.queue].copies);
        }
        free_copies(nv, rail->copies);
        free(rail->marks);
        memset(rail, 0, sizeof(*rail));
    }
    c->rails = 0;
}

/*
 * The end of a connection: what broke it is written down, its queue pairs are flushed, and only
 * then do the messages that the device might still touch end.
 */

enum { TEXT_SIZE = 256 };

static const uint64_t drain_limit = 2000 * 1000 * 1000ull; /* ns */

struct ending {
    int status;
    bool all; /* also what the device may still touch */
};

static void end_note(struct ibshift_note *n, void *context)
{
    const struct ending *ending = context;

    if (ending->all || !ibshift_note_is_with_device(n)) {
        ibshift_nv_note_end(n, ending->status);
    }
}

/* The device is done with this connection. */
static void bury(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;

    ibshift_nv_rails_destroy(c);
    c->state = IBSHIFT_CONNECTION_DEAD;
    ibshift_nv_each(c, end_note, &(struct ending){c->status, true});
    while (c->standing.first != NULL) {
        ibshift_nv_note_end(c->standing.first, 0);
    }
    ibshift_nv_ring_free(c);
    nv->slot_stock += c->in.slots - c->in.slots_arrived;
    nv->quota_stock += c->in.quota_window;
    c->in.slots = c->in.slots_arrived;
    c->in.quota_window = 0;
}

static void silence(struct ibshift_connection *c)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    c->drained_by = ibshift_net_now(&c->net->net) + drain_limit;
    for (int i = 0; i < c->rails; i++) {
        struct ibshift_rail *rail = &c->rail[i];
        struct ibv_send_wr *bad, marker = {.opcode = IBV_WR_RDMA_WRITE,
                                           .send_flags = IBV_SEND_SIGNALED,
                                           .wr_id = ibshift_wr_id(rail, IBSHIFT_WR_MARKER)};
        if (ibv_modify_qp(rail->qp, &attr, IBV_QP_STATE) == 0 &&
            ibv_post_send(rail->qp, &marker, &bad) == 0) {
            c->markers++;
        }
    }
}

void ibshift_nv_break(struct ibshift_connection *c, int status, const char *format, ...)
{
    struct ibshift_net_verbs *nv = c->net;
    va_list args;

    if (c->status != 0) {
        return;
    }
    nv->net.given_up->has_failed = true;
    c->text = malloc(TEXT_SIZE);
    if (c->text != NULL) {
        va_start(args, format);
        vsnprintf(c->text, TEXT_SIZE, format, args);
        va_end(args);
    }
    __atomic_store_n(&c->status, status, __ATOMIC_RELEASE);
    if (c->state == IBSHIFT_CONNECTION_SHAKING) {
        nv->shaking--;
    }
    if (c->state == IBSHIFT_CONNECTION_IDLE) {
        bury(c);
        return;
    }
    ibshift_nv_bye(c);
    c->state = IBSHIFT_CONNECTION_DRAINING;
    nv->draining++;
    silence(c);
    ibshift_nv_each(c, end_note, &(struct ending){c->status, false});
}

void ibshift_nv_break_no_memory(struct ibshift_connection *c)
{
    ibshift_nv_break(c, -ENOMEM, "out of memory");
}

/* Called when a completion queue was found empty: what a dead connection received has been seen. */
void ibshift_nv_drain_poll(struct ibshift_net_verbs *nv)
{
    uint64_t now = ibshift_net_now(&nv->net);

    for (uint32_t i = 0; i < nv->connection_count && nv->draining > 0; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_DRAINING && (c->markers == 0 || now > c->drained_by)) {
            nv->draining--;
            bury(c);
        }
    }
}

int ibshift_nv_mismatch(struct ibshift_connection *c, const struct ibshift_net_key *key,
                        uint64_t ours, uint64_t theirs)
{
    c->lengths[0] = ours;
    c->lengths[1] = theirs;
    ibshift_nv_break(c, -EMSGSIZE,
                     "message %u of collective %u on communicator %u has %llu bytes here and %llu "
                     "there",
                     key->tag, key->seq, ibshift_net_comm(key->comm), (unsigned long long)ours,
                     (unsigned long long)theirs);
    return -EMSGSIZE;
}

void ibshift_rail_refused(struct ibshift_net_verbs *nv, struct ibshift_rail *rail, int error)
{
    ibshift_nv_break(rail->connection, -EIO, "a request could not be posted: %s", strerror(error));
}

static int post_own(struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    struct ibshift_slot *slot = ibshift_nv_slot_take(nv);
    struct ibv_recv_wr *bad, wr = {.num_sge = 1};
    struct ibv_sge sge = {.length = nv->slot_size, .lkey = rail->lane->mr->lkey};

    if (slot == NULL) {
        return ENOMEM;
    }
    sge.addr = (uintptr_t)slot->data;
    wr.sg_list = &sge;
    wr.wr_id = ibshift_wr_id(slot, IBSHIFT_WR_RECV);
    int rc = ibv_post_recv(rail->qp, &wr, &bad);
    if (rc != 0) {
        ibshift_nv_slot_free(nv, slot);
        return rc;
    }
    slot->next = NULL;
    *rail->own_end = slot;
    rail->own_end = &slot->next;
    return 0;
}

void ibshift_nv_slot_give(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    int rc = c->rail[0].lane->srq == NULL ? post_own(nv, &c->rail[0]) : 0;

    if (rc != 0) {
        ibshift_rail_refused(nv, &c->rail[0], rc);
        return;
    }
    nv->slot_stock--;
    c->in.slots++;
}

/* The caller has checked that there is room. A request is signaled now and then even when nobody
   needs its completion: only completions make room. */
int ibshift_rail_post(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                      struct ibv_send_wr *wr, bool is_signaled)
{
    struct ibv_send_wr *bad;

    if (is_signaled || (rail->posted - rail->signaled) * 4 >= nv->options.queue ||
        nv->requests * 2 >= nv->cq_room) {
        wr->send_flags |= IBV_SEND_SIGNALED;
        rail->signaled = rail->posted + 1;
        rail->marks[rail->last_mark++ % nv->options.queue] =
            (struct ibshift_mark){.upto = rail->signaled, .copies = rail->copies};
        rail->copies = NULL;
        set_plain(nv, rail);
    }
    rail->posted++;
    nv->requests++;
    int rc = ibv_post_send(rail->qp, wr, &bad);
    if (rc != 0) {
        ibshift_rail_refused(nv, rail, rc);
    }
    return -rc;
}

void ibshift_rail_retire(struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    if (rail->first_mark == rail->last_mark) {
        return;
    }
    const struct ibshift_mark *mark = &rail->marks[rail->first_mark++ % nv->options.queue];
    nv->requests -= mark->upto - rail->retired;
    rail->retired = mark->upto;
    set_plain(nv, rail);
    free_copies(nv, mark->copies);
}

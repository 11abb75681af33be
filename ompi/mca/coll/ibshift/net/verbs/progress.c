/*
 * Progress: completions, records in rings and events of the devices are taken in, and what is due
 * now and then is done.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "net/verbs/inside.h"

enum { WC_BATCH = 16, SLOW_EVERY = 32, SLOW_EVERY_BUSY = 4, LOOK_EVERY = 2 };

static const uint64_t walk_pause = 50 * 1000 * 1000;   /* ns */
static const uint64_t alive_pause = 500 * 1000 * 1000; /* ns */
static const uint64_t linger = 2000 * 1000 * 1000ull;  /* ns, for the last sends at destroy */
static const uint64_t probe_pause = 200 * 1000 * 1000; /* ns */

/*
 * A write is complete. The next piece goes at the queue's end: with several messages to one peer,
 * and after a device was full, all get their turns.
 */
static void written(struct ibshift_note *note, enum ibshift_wr_kind kind)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;

    if (kind == IBSHIFT_WR_WRITE && --note->parts == 0 && note->done == note->length) {
        ibshift_nv_note_end(note, 0);
    } else if (note->piece > 0) {
        note->pieces = ibshift_net_pieces(note->pieces, nv->pieced, note->beside);
        ibshift_note_move(&c->ready, note);
        ibshift_nv_flush(c);
    }
}

static void part_came(struct ibshift_connection *c, uint32_t immediate)
{
    uint32_t id = ibshift_immediate_id(immediate);
    struct ibshift_note *note = c->net->grants[id & (IBSHIFT_GRANTS - 1)];

    if (note == NULL || note->grant != id || note->connection != c) {
        ibshift_nv_break(c, -EIO, "it wrote a message that it had no grant for");
        return;
    }
    if (note->kind == IBSHIFT_NOTE_STANDING) {
        ibshift_nv_standing_came(note, ibshift_immediate_parts(immediate));
    } else if (++note->parts < ibshift_immediate_parts(immediate)) {
        return;
    } else if (note->standing != 0 && !note->is_cancelled) {
        ibshift_nv_stand(note);
    } else {
        ibshift_nv_note_end(note, 0);
    }
}

/* Asks after grants that are late: finds lengths that differ, and a peer that is dead. */
static void probe(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_wire_grant body = {0};
    struct ibshift_note *next;

    for (struct ibshift_note *n = c->resting.first; n != NULL; n = next) {
        next = n->next;
        if (n->kind == IBSHIFT_NOTE_LONG && !n->is_granted && c->ready.first == NULL &&
            nv->time - n->since > probe_pause) {
            n->since = nv->time;
            body.length = n->length;
            nv->stats.probes++;
            ibshift_nv_control(c, &n->match.key, IBSHIFT_WIRE_PROBE, &body);
            return;
        }
    }
}

/* A posted receive was used, by a message or by the end of a write. */
static bool slot_used(struct ibshift_connection *c, const struct ibv_wc *wc,
                      struct ibshift_slot *slot)
{
    struct ibshift_wire head = {.length = UINT32_MAX};
    bool is_kept = false;

    if (slot != NULL && wc->byte_len >= sizeof(head)) {
        memcpy(&head, slot->data, sizeof(head)); /* peers may write there: it is read once */
    }

    c->in.slots_arrived++;
    c->net->slot_stock++;
    if (c->in.slots_window > 0) {
        ibshift_nv_slot_give(c);
    } else {
        ibshift_nv_serve(c->net);
    }
    if (c->status != 0) {
        return false;
    }
    ibshift_nv_heard(c);
    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        part_came(c, be32toh(wc->imm_data));
    } else if (head.length != wc->byte_len - sizeof(head)) {
        ibshift_nv_break(c, -EIO, "it sent a message of %u bytes without a header", wc->byte_len);
    } else {
        is_kept = ibshift_nv_arrive(c, &head, slot->data + sizeof(head), slot);
    }
    if (c->status == 0 && ibshift_limit_is_news(c->in.slots, c->in.slots_told, c->in.slots_arrived,
                                                c->in.slots_window)) {
        ibshift_nv_tell(c);
    }
    return is_kept;
}

static const char *advice(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "the process there has died, or a link or switch on the way is down (its output; "
               "ibqueryerrors, iblinkinfo)";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the process there does not take messages (is it stopped?)";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
        return "the process there gave the memory or the connection up";
    case IBV_WC_LOC_PROT_ERR:
        return "a buffer was unmapped while it was in use";
    default:
        return "see the device's counters and the kernel's log";
    }
}

static void wc_error(struct ibshift_connection *c, const struct ibv_wc *wc)
{
    int status = -EIO;

    if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR) {
        status = -ETIMEDOUT;
    } else if (wc->status == IBV_WC_REM_ACCESS_ERR || wc->status == IBV_WC_REM_INV_REQ_ERR ||
               wc->status == IBV_WC_REM_OP_ERR || wc->status == IBV_WC_WR_FLUSH_ERR) {
        status = -ECONNRESET;
    }
    ibshift_nv_break(c, status, "%s (status %d, vendor 0x%x): %s", ibv_wc_status_str(wc->status),
                     (int)wc->status, wc->vendor_err, advice(wc->status));
}

/* qp NULL: all connections over this device. */
static void break_all(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane,
                      const struct ibv_qp *qp, enum ibv_event_type type)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];

        for (int r = 0; r < c->rails; r++) {
            if (c->rail[r].lane == lane && (qp == NULL || c->rail[r].qp == qp)) {
                ibshift_nv_break(c, -EIO, "device %s here reports: %s",
                                 ibv_get_device_name(lane->device->context->device),
                                 ibv_event_type_str(type));
            }
        }
    }
}

/* Others' ports of the device are none of our business. */
static void say_port_down(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane, int port)
{
    bool is_mine = false;
    char line[256];

    for (int i = 0; i < nv->verbs->port_count; i++) {
        is_mine |= nv->verbs->ports[i].device == lane->device && nv->verbs->ports[i].number == port;
    }
    if (is_mine && nv->options.say != NULL) {
        snprintf(line, sizeof(line),
                 "port %s:%d went down: collectives wait for it as long as the device tries again, "
                 "then they fail",
                 ibv_get_device_name(lane->device->context->device), port);
        nv->options.say(nv->options.context, line);
    }
}

static void take(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane,
                 const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        break_all(nv, lane, NULL, event->event_type);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        break_all(nv, lane, event->element.qp, event->event_type);
        break;
    case IBV_EVENT_PORT_ERR:
        say_port_down(nv, lane, event->element.port_num);
        break;
    default:
        break;
    }
}

static void async_poll(struct ibshift_net_verbs *nv)
{
    struct ibv_async_event event;

    for (int i = 0; i < nv->lane_count; i++) {
        if (ibv_get_async_event(nv->lanes[i].device->context, &event) == 0) {
            take(nv, &nv->lanes[i], &event);
            ibv_ack_async_event(&event);
        }
    }
}

static void complete_recv(struct ibshift_net_verbs *nv, struct ibshift_lane *lane,
                          const struct ibv_wc *wc, struct ibshift_slot *slot)
{
    struct ibshift_rail *rail = ibshift_lane_rail(lane, wc->qp_num);
    bool is_kept = false;

    if (lane->srq != NULL) {
        lane->missing++;
    } else if (rail != NULL) {
        ibshift_rail_received(rail);
    } else {
        return; /* it went with its queue pair */
    }
    if (rail != NULL && rail->connection->status == 0) {
        if (wc->status == IBV_WC_SUCCESS) {
            is_kept = slot_used(rail->connection, wc, slot);
        } else {
            wc_error(rail->connection, wc);
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
        if (kind == IBSHIFT_WR_CAST) {
            ibshift_nv_cast_completed(object, wc);
        }
        return;
    }
    struct ibshift_connection *c = rail->connection;
    if (kind == IBSHIFT_WR_MARKER) {
        c->markers--;
    } else if (wc->status != IBV_WC_SUCCESS) {
        wc_error(c, wc);
    } else {
        ibshift_rail_retire(nv, rail);
        if (rail == &c->rail[0] && (int32_t)(rail->retired - c->word_end) >= 0) {
            c->is_word_away = false;
        }
        if (kind == IBSHIFT_WR_WRITE || kind == IBSHIFT_WR_PIECE) {
            written(object, kind);
        }
        if (c->must_tell) { /* perhaps for the word that this completes */
            ibshift_nv_flush(c);
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
static void check_alive(struct ibshift_connection *c)
{
    bool is_waiting =
        c->resting.first != NULL || c->waiting.first != NULL || c->ready.first != NULL;

    if (is_waiting && c->net->time - c->alive > alive_pause) {
        c->alive = c->net->time;
        ibshift_nv_tell(c);
    }
}

/* Now and then: late grants are asked after, rings move. */
static void walk(struct ibshift_net_verbs *nv)
{
    uint64_t due = nv->casts != NULL ? ibshift_nv_casts_look(nv) : UINT64_MAX;
    bool is_full = nv->time >= nv->next_full;

    nv->next_full = is_full ? nv->time + walk_pause : nv->next_full;
    nv->next_walk = due < nv->next_full ? due : nv->next_full;
    if (!is_full) {
        return;
    }
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_READY) {
            if (c->must_tell) {
                ibshift_nv_flush(c);
            }
            probe(c);
            check_alive(c);
        }
    }
    ibshift_nv_rings_balance(nv);
    async_poll(nv);
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
        nv->time = ibshift_net_now(&nv->net);
        ibshift_nv_wireup_poll(nv);
        if (nv->time >= nv->next_walk) {
            walk(nv);
        }
    }
}

int ibshift_nv_poll(struct ibshift_net *net, struct ibshift_net_event *events, int max)
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
static void look(struct ibshift_connection *c, size_t length)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_ring *ring = length <= IBSHIFT_RING_PAYLOAD ? c->in.ring : NULL;
    int seen = ring != NULL ? ibshift_nv_ring_poll(nv, ring) : poll_queues(nv);

    if (seen == 0) {
        progress(nv);
    }
}

/* Of a message that is tried, where ibshift_nv_try_recv() is not enough. */
bool ibshift_nv_try_recv_rarely(struct ibshift_net_channel *channel, uint64_t comm_seq,
                                uint32_t tag, void *buffer, size_t length)
{
    struct ibshift_connection *c = (struct ibshift_connection *)channel;
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_net_message m = ibshift_net_tried(c->peer, comm_seq, tag, buffer, length);
    bool is_there;

    if (c->status != 0 || ibshift_given_up_by(nv->net.given_up, c->peer, &m.key)) {
        return false;
    }
    if (ibshift_nv_try_held(c, &m)) {
        return true;
    }
    nv->wanted = &m;
    look(c, length);
    is_there = nv->wanted == NULL;
    nv->wanted = NULL;
    return is_there || ibshift_nv_try_held(c, &m);
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
void ibshift_nv_let_sends_leave(struct ibshift_net_verbs *nv)
{
    uint64_t until = ibshift_net_now(&nv->net) + linger;

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        if (c->state == IBSHIFT_CONNECTION_READY && c->rail[0].posted != c->rail[0].signaled) {
            ibshift_nv_tell_nothing(c);
        }
    }
    while (has_unsent(nv) && ibshift_net_now(&nv->net) < until) {
        progress(nv);
        sched_yield(); /* a peer may need this processor to take them */
    }
}

/* Reading must not wait; the descriptor is of our own open of the device. */
int ibshift_nv_async_open(struct ibshift_net_verbs *nv)
{
    for (int i = 0; i < nv->lane_count; i++) {
        int fd = nv->lanes[i].device->context->async_fd;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
            return -errno;
        }
    }
    return 0;
}

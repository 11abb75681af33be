/* What comes of a multicast group: taken once, held, acknowledged, asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/cast/impl.h"

enum {
    ACKNOWLEDGED_EACH = IBSHIFT_CAST_WINDOW / 2,
    LESS = 256,
    LATE = 8, /* so many times what a receive waits */
};

static const uint64_t pause_least = 30 * 1000; /* ns that a receive waits before it asks */

/* Over the connection with that member, which a receive or a number from it has brought about. */
static void say(struct ibshift_cast *cast, uint32_t rank, enum ibshift_wire_kind kind,
                uint32_t number)
{
    static const struct ibshift_net_key none;
    struct ibshift_wire_grant body = {.address = cast->group, .id = cast->rank, .pieces = number};
    struct ibshift_connection *c = ibshift_nv_peer(cast->nv, cast->peers[rank]);

    if (c == NULL || c->status != 0) {
        return;
    }
    ibshift_nv_connect(c);
    if (c->status == 0) {
        ibshift_nv_control(c, &none, kind, &body);
    }
}

static void acknowledge(struct ibshift_cast *cast, uint32_t rank)
{
    struct ibshift_cast_source *s = &cast->sources[rank];

    s->told = s->came;
    say(cast, rank, IBSHIFT_WIRE_CAST_HAVE, s->came);
}

static bool has_come(const struct ibshift_cast_source *s, uint32_t number)
{
    uint32_t ahead = number - s->came;

    return (int32_t)ahead < 0 || (ahead < 64 && (s->ahead >> ahead & 1) != 0);
}

/* Numbers below one that has come, and above all that came before it, were lost or are late: asked for once. */
static void count(struct ibshift_cast *cast, uint32_t rank, uint32_t number)
{
    struct ibshift_cast_source *s = &cast->sources[rank];

    for (; (int32_t)(number - s->seen) > 0; s->seen++) {
        say(cast, rank, IBSHIFT_WIRE_CAST_MISS, s->seen);
    }
    s->seen = s->seen == number ? number + 1 : s->seen;
    s->ahead |= UINT64_C(1) << (number - s->came);
    while ((s->ahead & 1) != 0) {
        s->ahead >>= 1;
        s->came++;
    }
    if (s->came - s->told >= ACKNOWLEDGED_EACH) {
        acknowledge(cast, rank);
    }
}

static bool hold(struct ibshift_cast *cast, uint32_t peer, const struct ibshift_cast_head *head,
                 const uint8_t *payload)
{
    struct ibshift_cast_held *h = &cast->held[cast->held_count];

    if (cast->held_count == IBSHIFT_CAST_HELD) {
        return false; /* as if it had been lost: it is asked for when it is waited for */
    }
    cast->held_count++;
    h->peer = peer;
    h->key = head->key;
    h->length = head->length;
    ibshift_nv_copy(h->data, payload, head->length);
    return true;
}

/* Of its place in the list: the last one takes it, and its memory goes the other way. */
static void release(struct ibshift_cast *cast, struct ibshift_cast_held *h)
{
    struct ibshift_cast_held last = cast->held[--cast->held_count];

    cast->held[cast->held_count].data = h->data;
    *h = last;
}

/*
 * How long the next receives wait before they ask: a little less each time. More after one that asked in vain, but not where its
 * sender was much later than that, whose messages were not on their way; and more where the latest question of this
 * message was answered late, for who asks sooner than in the time of one way, and a quarter more, asks in vain.
 */
static void learn(struct ibshift_cast *cast, const struct ibshift_match *recv, bool is_repair)
{
    const struct ibshift_cast_awaited *a = cast->awaited, *end = a + cast->awaited_count;
    uint64_t pause = cast->pause, least;

    while (a < end && (a->peer != recv->peer || memcmp(&a->key, &recv->key, sizeof(a->key)) != 0)) {
        a++;
    }
    if (a < end && a->asked != 0 && is_repair) {
        least = (ibshift_net_now(&cast->nv->net) - a->asked) / 8 * 5;
        pause = least > pause ? least : pause - pause / LESS;
    } else if (a < end && a->asked != 0 && cast->nv->time - a->since < LATE * pause) {
        pause += pause / 2;
    } else {
        pause -= pause / LESS;
    }
    pause = pause < pause_least ? pause_least : pause;
    cast->pause = pause > cast->pause_most ? cast->pause_most : pause;
}

static void take(struct ibshift_cast *cast, struct ibshift_connection *c,
                 const struct ibshift_cast_head *head, const uint8_t *payload, bool is_repair)
{
    struct ibshift_net_verbs *nv = cast->nv;
    const struct ibshift_cast_source *s = &cast->sources[head->from];
    struct ibshift_note *note;

    if (s->is_near || has_come(s, head->number) || head->number - s->came >= IBSHIFT_CAST_WINDOW) {
        return;
    }
    note = ibshift_note_find(&nv->rx, c, &head->key);
    if (cast->is_closing || c->status != 0) {
        note = NULL; /* nobody wants it any more */
    } else if (note != NULL && (note->kind != IBSHIFT_NOTE_RECV || note->length != head->length)) {
        (void)ibshift_nv_mismatch(c, &head->key, note->length, head->length);
        return;
    } else if (note != NULL) {
        learn(cast, &note->match, is_repair);
        ibshift_nv_copy(note->buffer, payload, head->length);
        ibshift_nv_note_end(note, 0);
    } else if (!ibshift_given_up_is_over(&nv->net, c->peer, &head->key) &&
               !hold(cast, c->peer, head, payload)) {
        return;
    }
    count(cast, head->from, head->number);
}

/* NULL: it is none of this group from that member. */
static struct ibshift_connection *check(const struct ibshift_cast *cast,
                                        const struct ibshift_cast_head *head, size_t bytes)
{
    if (bytes < sizeof(*head) || head->group != cast->group || head->from >= cast->count ||
        head->from == cast->rank || head->length != bytes - sizeof(*head) ||
        head->length > cast->most) {
        return NULL;
    }
    return ibshift_nv_peer(cast->nv, cast->peers[head->from]);
}

int ibshift_nv_cast_receive(struct ibshift_cast_buffer *buffer)
{
    struct ibshift_cast *cast = buffer->cast;
    struct ibv_sge sge = {
        .addr = (uintptr_t)buffer->data, .length = (uint32_t)cast->stride, .lkey = cast->mr->lkey};
    struct ibv_recv_wr wr = {
        .wr_id = ibshift_wr_id(buffer, IBSHIFT_WR_CAST), .sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr *bad;

    return -ibv_post_recv(cast->qp, &wr, &bad);
}

/* The Q_Key is that of all groups of the connection manager, so anybody's may come: they lack the group's secret,
   which check() compares. Of the sender the address is compared; which queue pair it sent from is not known. */
static void datagram_came(struct ibshift_cast_buffer *buffer, const struct ibv_wc *wc)
{
    struct ibshift_cast *cast = buffer->cast;
    struct ibshift_cast_head head = {.group = 0};
    size_t bytes = wc->byte_len > IBSHIFT_CAST_ROUTE ? wc->byte_len - IBSHIFT_CAST_ROUTE : 0;
    struct ibshift_connection *c;

    if (bytes >= sizeof(head)) {
        memcpy(&head, buffer->data + IBSHIFT_CAST_ROUTE, sizeof(head));
    }
    c = check(cast, &head, bytes);
    if (c != NULL) {
        struct ibshift_verbs_source source = {.qpn = c->card.ud_qpn,
                                              .lid = wc->slid,
                                              .route =
                                                  wc->wc_flags & IBV_WC_GRH ? buffer->data : NULL};

        if (ibshift_verbs_is_from(&c->card, &source)) {
            take(cast, c, &head, buffer->data + IBSHIFT_CAST_ROUTE + sizeof(head), false);
        } else {
            cast->nv->strangers++;
        }
    }
    (void)ibshift_nv_cast_receive(buffer);
}

/* A datagram that is longer than its receive ends the queue pair: ibshift_nv_casts_look() begins it again. */
void ibshift_nv_cast_completed(struct ibshift_cast_buffer *buffer, const struct ibv_wc *wc)
{
    struct ibshift_cast *cast = buffer->cast;

    if (wc->status != IBV_WC_SUCCESS) {
        cast->is_broken = true;
        cast->nv->next_walk = 0;
    } else if (buffer == &cast->window) {
        cast->left++;
    } else {
        datagram_came(buffer, wc);
    }
}

void ibshift_nv_cast_repair_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                                 const uint8_t *payload)
{
    struct ibshift_cast_head head = {.group = 0};
    struct ibshift_cast *cast;

    if (wire->length >= sizeof(head)) {
        memcpy(&head, payload, sizeof(head));
    }
    cast = ibshift_cast_find(c->net, head.group);
    if (cast != NULL && check(cast, &head, wire->length) == c) {
        take(cast, c, &head, payload + sizeof(head), true);
    }
}

static int await(struct ibshift_cast *cast, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = cast->nv;

    if (cast->awaited_count == cast->awaited_room) {
        uint32_t room = 2 * cast->awaited_room + IBSHIFT_CAST_WINDOW;
        void *all = realloc(cast->awaited, room * sizeof(*cast->awaited));

        if (all == NULL) {
            return -ENOMEM;
        }
        cast->awaited = all;
        cast->awaited_room = room;
    }
    nv->time = ibshift_net_now(&nv->net);
    cast->awaited[cast->awaited_count++] =
        (struct ibshift_cast_awaited){.peer = m->peer,
                                      .key = m->key,
                                      .since = nv->time,
                                      .due = nv->time + cast->pause,
                                      .pause = cast->pause};
    nv->next_walk = nv->next_walk < nv->time + cast->pause ? nv->next_walk : nv->time + cast->pause;
    return IBSHIFT_NET_PENDING;
}

int ibshift_nv_cast_recv(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_cast *cast = m->cast;
    int rc;

    for (uint32_t i = 0; i < cast->held_count; i++) {
        struct ibshift_cast_held *h = &cast->held[i];

        if (h->peer != m->peer || memcmp(&h->key, &m->key, sizeof(m->key)) != 0) {
            continue;
        }
        if (h->length != m->length) {
            return ibshift_nv_mismatch(c, &m->key, m->length, h->length);
        }
        ibshift_nv_copy(m->buffer, h->data, h->length);
        release(cast, h);
        return IBSHIFT_NET_DONE;
    }
    rc = ibshift_nv_recv(c, m);
    if (rc != IBSHIFT_NET_PENDING || await(cast, m) == 0) {
        return rc;
    }
    ibshift_nv_break_no_memory(c); /* it may be lost, and nobody would ask */
    return IBSHIFT_NET_PENDING;
}

uint64_t ibshift_cast_ask(struct ibshift_cast *cast)
{
    uint64_t next = UINT64_MAX;

    for (uint32_t i = 0; i < cast->awaited_count;) {
        struct ibshift_cast_awaited *a = &cast->awaited[i];
        const struct ibshift_match *recv = ibshift_match_find(&cast->nv->rx, a->peer, &a->key);
        struct ibshift_connection *c = ibshift_nv_peer_known(cast->nv, a->peer);

        if (recv == NULL || c == NULL || c->status != 0) {
            *a = cast->awaited[--cast->awaited_count];
            continue;
        }
        if (cast->nv->time >= a->due &&
            (c->state != IBSHIFT_CONNECTION_READY || c->ready.first != NULL)) {
            a->due = cast->nv->time + a->pause; /* earlier questions take the room of the answers */
        } else if (cast->nv->time >= a->due) {
            struct ibshift_wire_grant body = {
                .address = cast->group, .id = cast->rank, .length = IBSHIFT_CAST_BY_KEY};

            ibshift_nv_control(c, &a->key, IBSHIFT_WIRE_CAST_MISS, &body);
            a->asked = cast->nv->time;
            a->pause *= a->pause < 2 * cast->pause_most ? 2 : 1;
            a->due = cast->nv->time + a->pause;
        }
        next = a->due < next ? a->due : next;
        i++;
    }
    return next;
}

void ibshift_cast_acknowledge_all(struct ibshift_cast *cast)
{
    for (uint32_t i = 0; i < cast->count; i++) {
        if (cast->sources[i].came != cast->sources[i].told) {
            acknowledge(cast, i);
        }
    }
}

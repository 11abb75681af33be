/* One message out over a connection, and what waits until it can go. */
#include <errno.h>

#include "net/verbs/inside.h"

enum { BLOCKED_PER_POLL = 16, BATCHED_COPY = 1024 + 32 };

/* Limits that the peer has written into our word since we looked last. */
static void read_word(struct ibshift_connection *c)
{
    struct ibshift_word *word = &c->net->words[c->number];

    ibshift_limit_advance32(&c->out.slots, __atomic_load_n(&word->slots, __ATOMIC_ACQUIRE),
                            IBSHIFT_CREDIT_MOST);
    ibshift_limit_advance32(&c->out.quota, __atomic_load_n(&word->quota, __ATOMIC_ACQUIRE),
                            IBSHIFT_CREDIT_MOST);
    ibshift_limit_advance32(&c->out.ring, __atomic_load_n(&word->ring, __ATOMIC_ACQUIRE),
                            IBSHIFT_RING_LINES);
}

static void ask(struct ibshift_connection *c)
{
    if (ibshift_asks_now(&c->out.asks, c->out.slots, ibshift_net_now(&c->net->net))) {
        ibshift_nv_hello(c, IBSHIFT_HELLO_ASK);
    }
}

bool ibshift_nv_has_slot(struct ibshift_connection *c)
{
    if (c->out.slots_used != c->out.slots) {
        return true;
    }
    read_word(c);
    if (c->out.slots_used == c->out.slots) {
        ask(c);
    }
    return c->out.slots_used != c->out.slots;
}

static bool has_quota(struct ibshift_connection *c)
{
    if (c->out.quota_used == c->out.quota) {
        read_word(c);
    }
    return c->out.quota_used != c->out.quota;
}

/* The news went out. */
static void told(struct ibshift_connection *c, uint32_t ring_limit)
{
    c->in.slots_told = c->in.slots;
    c->in.quota_told = c->in.quota;
    c->in.ring_asked &= c->in.ring_told == ring_limit; /* else the peer asks again if need be */
    c->in.ring_told = ring_limit;
}

/* The two parts of a message as they lie in memory: the header first, in a ring last. */
static void set_parts(struct ibv_sge *sge, const void *first, uint32_t first_length,
                      const void *second, uint32_t second_length)
{
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)first, .length = first_length};
    sge[1] = (struct ibv_sge){.addr = (uintptr_t)second, .length = second_length};
}

/* For what does not fit into the request; NULL: there is none now. It goes with the next request. */
static struct ibshift_slot *copy_slot(struct ibshift_net_verbs *nv, struct ibshift_rail *rail)
{
    struct ibshift_slot *slot = nv->copy_stock > 0 ? ibshift_nv_slot_take(nv) : NULL;

    if (slot != NULL) {
        nv->copy_stock--;
        slot->next = rail->copies;
        rail->copies = slot;
    }
    return slot;
}

/* As many bytes of the slot as the entry says. Each of the second half comes back at once, whatever
 * becomes of the others. */
static int post_copy(struct ibshift_connection *c, struct ibv_send_wr *wr, struct ibv_sge *sge,
                     const struct ibshift_slot *slot, bool is_signaled)
{
    struct ibshift_net_verbs *nv = c->net;

    sge->addr = (uintptr_t)slot->data;
    sge->lkey = nv->lanes[0].mr->lkey;
    wr->sg_list = sge;
    wr->num_sge = 1;
    return ibshift_rail_post(nv, &c->rail[0], wr,
                             is_signaled || nv->copy_stock * 2 < nv->copy_count);
}

static int post_parts(struct ibshift_connection *c, struct ibv_send_wr *wr, struct ibv_sge *sge,
                      bool is_signaled)
{
    struct ibshift_rail *rail = &c->rail[0];
    struct ibshift_slot *slot;

    if (sge[0].length + sge[1].length <= rail->inlined) {
        wr->sg_list = sge;
        wr->num_sge = sge[1].length > 0 ? 2 : 1;
        wr->send_flags |= IBV_SEND_INLINE;
        return ibshift_rail_post(c->net, rail, wr, is_signaled);
    }
    slot = copy_slot(c->net, rail);
    if (slot == NULL) {
        return -EAGAIN;
    }
    ibshift_nv_copy(slot->data, (void *)(uintptr_t)sge[0].addr, sge[0].length);
    ibshift_nv_copy(slot->data + sge[0].length, (void *)(uintptr_t)sge[1].addr, sge[1].length);
    sge[0].length += sge[1].length;
    return post_copy(c, wr, sge, slot, is_signaled);
}

int ibshift_nv_post_copy(struct ibshift_connection *c, struct ibv_send_wr *wr, const void *data,
                         uint32_t length)
{
    struct ibv_sge sge[2];

    set_parts(sge, data, length, NULL, 0);
    return post_parts(c, wr, sge, false);
}

static void count(struct ibshift_net_verbs *nv, const struct ibshift_wire *head, uint64_t *messages)
{
    if (head->kind == IBSHIFT_WIRE_DATA) {
        ++*messages;
    } else {
        nv->stats.control++;
    }
}

static int put_slot(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    struct ibv_sge sge[2];
    bool is_unasked = (head->flags & IBSHIFT_WIRE_UNASKED) != 0;

    if ((is_unasked && !has_quota(c)) || !ibshift_nv_has_slot(c)) {
        return -EAGAIN;
    }
    set_parts(sge, head, sizeof(*head), payload, head->length);
    int rc = post_parts(c, &wr, sge, false);
    if (rc == 0) {
        c->out.slots_used++;
        c->out.quota_used += is_unasked;
        count(c->net, head, &c->net->stats.eager);
    }
    return rc;
}

static bool fits_ring(struct ibshift_connection *c, uint32_t length)
{
    uint32_t lines = ibshift_ring_lines(length);

    if (c->out.ring_address == 0 || length > IBSHIFT_RING_PAYLOAD) {
        return false;
    }
    if (c->out.ring - c->out.ring_used < lines) {
        read_word(c);
    }
    return c->out.ring - c->out.ring_used >= lines;
}

/* Zero, but for what each record sets. */
static struct ibv_send_wr *record_request(const struct ibshift_connection *c, uint32_t length)
{
    struct ibv_send_wr *wr = &c->net->record;

    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags = 0;
    wr->wr_id = 0;
    wr->wr.rdma.remote_addr = c->out.ring_address + ibshift_ring_end(c->out.ring_used) -
                              sizeof(struct ibshift_wire) - length;
    wr->wr.rdma.rkey = c->out.ring_key;
    return wr;
}

/* A record that does not fit into the request: its payload is copied and looked at in one pass. */
static int put_copied(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload)
{
    struct ibshift_wire_words words = ibshift_wire_words_at(head);
    struct ibshift_slot *slot = copy_slot(c->net, &c->rail[0]);
    struct ibv_sge sge = {.length = head->length + (uint32_t)sizeof(*head)};

    if (slot == NULL) {
        return -EAGAIN;
    }
    if (c->out.is_ordered || head->length <= sizeof(uint64_t)) {
        ibshift_nv_copy(slot->data, payload, head->length);
        head->offset = ibshift_wire_check(&words, payload, c->out.is_ordered ? 0 : head->length);
    } else {
        head->offset =
            ibshift_wire_check_data(ibshift_wire_check_head(&words),
                                    ibshift_fingerprint_copy(slot->data, payload, head->length));
    }
    memcpy(slot->data + head->length, head, sizeof(*head));
    /* Long copies come back at once, while they are in the cache. */
    return post_copy(c, record_request(c, head->length), &sge, slot, head->length > BATCHED_COPY);
}

static int put_inlined(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload)
{
    struct ibshift_wire_words words = ibshift_wire_words_at(head);
    struct ibv_sge sge[2];

    head->offset = ibshift_wire_check(&words, payload, c->out.is_ordered ? 0 : head->length);
    if (head->length > 0) {
        set_parts(sge, payload, head->length, head, sizeof(*head));
    } else {
        set_parts(sge, head, sizeof(*head), NULL, 0);
    }
    return post_parts(c, record_request(c, head->length), sge, false);
}

static int put_ring(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload)
{
    uint32_t lines = ibshift_ring_lines(head->length);
    bool asks = ibshift_ring_asks(c->out.ring, c->out.ring_used + lines, c->out.ring_asked,
                                  IBSHIFT_RING_LINES);
    int rc;

    head->flags |= asks ? IBSHIFT_WIRE_TELL : 0;
    head->mark = ibshift_ring_mark(c->out.ring_used, c->out.ring_seed);
    rc = head->length + sizeof(*head) <= c->rail[0].inlined ? put_inlined(c, head, payload)
                                                            : put_copied(c, head, payload);
    if (rc == 0) {
        c->out.ring_used += lines;
        c->out.ring_asked = asks ? c->out.ring : c->out.ring_asked;
        count(c->net, head, &c->net->stats.ring);
    }
    return rc;
}

/* 0; -EAGAIN: no room now, nothing happened; else the connection broke. */
int ibshift_nv_put(struct ibshift_connection *c, struct ibshift_wire *head, const void *payload,
                   bool may_ring)
{
    if (ibshift_rail_room(c->net, &c->rail[0]) <= IBSHIFT_REQUESTS_RESERVED) {
        return -EAGAIN;
    }
    uint32_t ring_limit = ibshift_ring_limit(c);
    head->slots = (uint16_t)c->in.slots;
    head->quota = (uint16_t)c->in.quota;
    head->ring = (uint16_t)ring_limit;
    int rc = may_ring && fits_ring(c, head->length) ? put_ring(c, head, payload)
                                                    : put_slot(c, head, payload);
    if (rc == 0) {
        told(c, ring_limit);
    }
    return rc;
}

/*
 * Writes the peer's word: no receive is needed there, and a newer word replaces the older one. Two
 * writes of a queue pair may land in either order, so the newer one waits for the older one's
 * completion: else an old limit could stay there, and the peer would wait without reason.
 */
void ibshift_nv_tell(struct ibshift_connection *c)
{
    struct ibshift_word word = {
        .slots = c->in.slots, .quota = c->in.quota, .ring = ibshift_ring_limit(c)};
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    c->must_tell = true;
    if (c->state != IBSHIFT_CONNECTION_READY ||
        ibshift_rail_room(c->net, &c->rail[0]) < IBSHIFT_REQUESTS_RESERVED || c->is_word_away) {
        return;
    }
    wr.wr.rdma.remote_addr = c->out.word_address;
    wr.wr.rdma.rkey = c->out.word_key;
    set_parts(sge, &word, sizeof(word), NULL, 0);
    if (post_parts(c, &wr, sge, true) == 0) {
        c->must_tell = false;
        c->is_word_away = true;
        c->word_end = c->rail[0].posted;
        c->net->stats.words++;
        told(c, word.ring);
    }
}

/* No bytes, but a completion: all requests before it are complete then, or fail. */
void ibshift_nv_tell_nothing(struct ibshift_connection *c)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    wr.wr.rdma.remote_addr = c->out.word_address;
    wr.wr.rdma.rkey = c->out.word_key;
    (void)ibshift_rail_post(c->net, &c->rail[0], &wr, true);
}

static int try_note(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;

    if (note->kind == IBSHIFT_NOTE_LONG) {
        return nv->senders->write(note);
    }
    if (note->kind == IBSHIFT_NOTE_SEND) {
        return nv->senders->send_note(note);
    }
    if (note->wire_kind == IBSHIFT_WIRE_CAST_REPAIR) {
        return nv->senders->repair(note);
    }
    struct ibshift_wire head = {
        .key = note->match.key, .kind = note->wire_kind, .length = sizeof(note->to)};
    bool is_ordered = head.kind == IBSHIFT_WIRE_PULL || head.kind == IBSHIFT_WIRE_UNPULL;
    int rc = ibshift_nv_put(c, &head, &note->to, !is_ordered);
    if (rc == 0) {
        ibshift_nv_note_end(note, 0);
    }
    return rc;
}

static void block(struct ibshift_connection *c)
{
    if (!c->is_blocked) {
        c->is_blocked = true;
        c->next_blocked = NULL;
        *c->net->blocked_end = c;
        c->net->blocked_end = &c->next_blocked;
    }
}

/* Sends what can go; a note that went is gone, and a connection that broke has none left. */
void ibshift_nv_flush(struct ibshift_connection *c)
{
    int rc = c->state == IBSHIFT_CONNECTION_READY ? 0 : -EAGAIN;

    if (c->must_tell) {
        ibshift_nv_tell(c);
    }
    while (rc == 0 && c->ready.first != NULL) {
        rc = try_note(c->ready.first);
    }
    while (rc == 0 && c->waiting.first != NULL) {
        rc = try_note(c->waiting.first);
    }
    if (c->state == IBSHIFT_CONNECTION_READY &&
        (c->ready.first != NULL || c->waiting.first != NULL ||
         (c->must_tell && !c->is_word_away))) {
        block(c);
    }
}

/* Tries the connections that could not send, each once, some at a time. */
void ibshift_nv_blocked_poll(struct ibshift_net_verbs *nv)
{
    struct ibshift_connection *last = NULL;

    for (int i = 0; i < BLOCKED_PER_POLL && nv->blocked != NULL && nv->blocked != last; i++) {
        struct ibshift_connection *c = nv->blocked;
        nv->blocked = c->next_blocked;
        if (nv->blocked == NULL) {
            nv->blocked_end = &nv->blocked;
        }
        c->is_blocked = false;
        ibshift_nv_flush(c);
        last = last == NULL && c->is_blocked ? c : last;
    }
}

void ibshift_nv_control(struct ibshift_connection *c, const struct ibshift_net_key *key,
                        enum ibshift_wire_kind kind, const struct ibshift_wire_grant *grant)
{
    struct ibshift_note *note = ibshift_nv_note_new(c, IBSHIFT_NOTE_CONTROL, key);

    if (note == NULL) {
        ibshift_nv_break_no_memory(c);
        return;
    }
    note->wire_kind = (uint8_t)kind;
    if (grant != NULL) {
        note->to = *grant;
    }
    ibshift_note_append(&c->ready, note);
    if (note->previous == NULL) {
        ibshift_nv_flush(c);
    }
}

void ibshift_nv_grant_keep(struct ibshift_connection *c, const struct ibshift_net_key *key,
                           const struct ibshift_wire_grant *grant, bool is_pulled)
{
    struct ibshift_note *note = ibshift_nv_note_new(c, IBSHIFT_NOTE_GRANT, key);

    if (note == NULL) {
        ibshift_nv_break_no_memory(c);
        return;
    }
    note->is_pulled = is_pulled;
    note->to = *grant;
    ibshift_nv_note_enter(note, &c->resting);
    c->out.grants++;
}

/*
 * Switches that route adaptively keep writes with immediate data on the static route. Where data is
 * meant to leave it, the immediate data goes behind on its own: its completion tells the receiver
 * that all before it is there.
 */
int ibshift_nv_post_write(struct ibshift_net_verbs *nv, struct ibshift_rail *rail,
                          struct ibv_send_wr *wr, bool is_signaled)
{
    struct ibv_send_wr data = *wr;

    if (!nv->options.adaptive || wr->opcode != IBV_WR_RDMA_WRITE_WITH_IMM) {
        return ibshift_rail_post(nv, rail, wr, is_signaled);
    }
    data.opcode = IBV_WR_RDMA_WRITE;
    data.wr_id = 0;
    wr->num_sge = 0;
    nv->stats.empty++;
    int rc = ibshift_rail_post(nv, rail, &data, false);
    return rc != 0 ? rc : ibshift_rail_post(nv, rail, wr, is_signaled);
}

/* To a buffer that cannot be registered. */
int ibshift_nv_put_piece(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    size_t n = note->length - note->done;
    struct ibshift_wire head = {
        .key = note->match.key, .kind = IBSHIFT_WIRE_PIECE, .mark = note->to.id};

    n = n < nv->net.max_eager ? n : nv->net.max_eager;
    head.length = (uint32_t)n;
    head.offset = (uint32_t)(note->done / nv->net.max_eager);
    int rc = ibshift_nv_put(note->connection, &head, (uint8_t *)note->buffer + note->done, false);
    note->done += rc == 0 ? n : 0;
    return rc;
}

/*
 * Connections that nobody has used for long are taken down when there are more of them than wanted,
 * and made again at the next message.
 *
 *   CLOSE   may we? With what has been sent and received so far; nothing follows before the answer.
 *   CLOSED  yes, likewise; nothing follows at all. Or KEEP: no.
 *
 * Both sides agree only when nothing of the connection is under way, posted or held there, all that
 * the other says to have sent has been seen, and the asker had seen all that was sent to it: what
 * comes while it waits for the answer may have to be held. Whose requests are all complete destroys
 * its queue pairs; a request that fails after the agreement tells that the other side has been
 * faster. The number of the connection tells its handshake from those of earlier ones.
 */
#include "net/verbs/inside.h"

enum { UNUSED_WALKS = 2 };

/* Nothing that either side must do something about is left of it here. */
static bool is_idle(const struct ibshift_connection *c)
{
    bool is_moving = c->in.ring != NULL && c->in.ring->is_closing;

    for (int i = 1; i < c->rails; i++) {
        is_moving |= c->rail[i].posted != c->rail[i].retired;
    }
    return c->status == 0 && c->state == IBSHIFT_CONNECTION_READY && c->ready.first == NULL &&
           c->waiting.first == NULL && c->resting.first == NULL && c->standing.first == NULL &&
           !c->is_asking && !is_moving && c->in.held == 0 && c->in.ring_held == 0;
}

/* All that the peer has sent has been seen. */
static bool has_all(const struct ibshift_connection *c)
{
    return c->in.slots_arrived == c->last_slots && c->in.ring_head == c->last_ring;
}

/* 0, or it cannot be said now. A signaled request behind it: completions of all before it come. */
static int say(struct ibshift_connection *c, enum ibshift_wire_kind kind)
{
    struct ibshift_wire_grant body = {.id = c->out.ring_used,
                                      .pieces = c->out.slots_used + 1,
                                      .address = c->in.slots_arrived,
                                      .length = c->in.ring_head};
    struct ibshift_wire head = {.kind = (uint8_t)kind, .length = sizeof(body)};
    int rc = ibshift_nv_put(c, &head, &body, false);

    if (rc == 0) {
        ibshift_nv_tell_nothing(c);
        rc = c->status;
    }
    return rc;
}

static void ask(struct ibshift_connection *c)
{
    c->unused = 0;
    if (say(c, IBSHIFT_WIRE_CLOSE) == 0) {
        c->state = IBSHIFT_CONNECTION_CLOSING;
        c->alive = c->net->time;
        c->net->closing++;
    }
}

static bool is_unused(struct ibshift_connection *c)
{
    uint32_t used = c->rail[0].posted + c->in.slots_arrived + c->in.ring_head;

    c->unused = used == c->used ? c->unused + 1 : 0;
    c->used = used;
    return c->unused >= UNUSED_WALKS;
}

static uint32_t connected(const struct ibshift_net_verbs *nv)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        count += nv->connections[i]->rails > 0;
    }
    return count;
}

void ibshift_nv_close_unused(struct ibshift_net_verbs *nv)
{
    uint32_t count;

    if (nv->options.connections == 0) {
        return;
    }
    count = connected(nv);
    count -= count < nv->closing ? count : nv->closing;
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];

        if (c->state == IBSHIFT_CONNECTION_READY && is_unused(c) &&
            count > nv->options.connections && is_idle(c)) {
            ask(c);
            count--;
        }
    }
}

static void note_last(struct ibshift_connection *c, const struct ibshift_wire_grant *body)
{
    c->last_slots = body->pieces;
    c->last_ring = body->id;
}

/* The asker had seen all that was sent to it, but for a CLOSE that crossed its own. */
static bool had_all(const struct ibshift_connection *c, const struct ibshift_wire_grant *body,
                    bool is_crossed)
{
    return (uint32_t)body->address == c->out.slots_used - is_crossed &&
           (uint32_t)body->length == c->out.ring_used;
}

/* Both ask at once: the answer of the one with the greater number counts. */
static void close_came(struct ibshift_connection *c, const struct ibshift_wire_grant *body)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_net_key none = {0};
    bool has_asked = c->state == IBSHIFT_CONNECTION_CLOSING;

    if (has_asked && nv->options.self < c->peer) {
        return;
    }
    if (has_asked) {
        c->state = IBSHIFT_CONNECTION_READY;
        nv->closing--;
    }
    note_last(c, body);
    if (is_idle(c) && has_all(c) && had_all(c, body, has_asked) &&
        say(c, IBSHIFT_WIRE_CLOSED) == 0) {
        c->state = IBSHIFT_CONNECTION_CLOSED;
        nv->closing++;
    } else if (c->status == 0) {
        ibshift_nv_control(c, &none, IBSHIFT_WIRE_KEEP, NULL);
    }
    if (has_asked) {
        ibshift_nv_flush(c); /* what waited for the answer to our own */
    }
}

void ibshift_nv_close_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                           const struct ibshift_wire_grant *body)
{
    if (head->kind == IBSHIFT_WIRE_CLOSE) {
        close_came(c, body);
    } else if (c->state == IBSHIFT_CONNECTION_CLOSING && head->kind == IBSHIFT_WIRE_CLOSED) {
        note_last(c, body);
        c->state = IBSHIFT_CONNECTION_CLOSED;
    } else if (c->state == IBSHIFT_CONNECTION_CLOSING) {
        c->state = IBSHIFT_CONNECTION_READY;
        c->net->closing--;
        ibshift_nv_flush(c);
    }
}

/* Both sides, and all has been seen. */
bool ibshift_nv_has_agreed(const struct ibshift_connection *c)
{
    return c->state == IBSHIFT_CONNECTION_CLOSED && has_all(c);
}

bool ibshift_nv_is_closed(const struct ibshift_connection *c)
{
    return ibshift_nv_has_agreed(c) &&
           (c->has_peer_closed || c->rail[0].posted == c->rail[0].retired);
}

/* As if it had never been; what waits to be sent stays. */
void ibshift_nv_close(struct ibshift_connection *c)
{
    struct ibshift_net_verbs *nv = c->net;

    ibshift_nv_rails_destroy(c);
    ibshift_nv_ring_free(c);
    nv->slot_stock += c->in.slots - c->in.slots_arrived;
    nv->quota_stock += c->in.quota_window;
    memset(&c->in, 0, sizeof(c->in));
    memset(&c->out, 0, sizeof(c->out));
    memset(&c->shake, 0, sizeof(c->shake));
    c->must_tell = c->is_word_away = c->has_peer_closed = false;
    c->age++;
    c->state = IBSHIFT_CONNECTION_IDLE;
    nv->closing--;
    nv->stats.closed++;
}

/*
 * Rings for the hottest peers: they write short messages straight into our memory, and we see
 * them without a completion.
 */
#include "net/verbs/inside.h"

enum { MUCH_HOTTER = 4 };

static struct ibshift_ring *free_ring(struct ibshift_net_verbs *nv)
{
    for (uint32_t i = 0; i < nv->options.rings; i++) {
        if (nv->rings[i].connection == NULL) {
            return &nv->rings[i];
        }
    }
    return NULL;
}

static void offer(struct ibshift_connection *c, struct ibshift_ring *ring)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_net_key none = {0};
    uint32_t place = (uint32_t)(ring - nv->rings);
    struct ibshift_wire_grant body = {.address = (uintptr_t)ring->data,
                                      .id = c->in.ring_head + IBSHIFT_RING_LINES,
                                      .pieces = c->is_ordered,
                                      .key = {nv->lanes[0].mr->rkey}};

    /* This also brings all its pages, or its first round would be slower than all others. */
    for (size_t at = 0; at < IBSHIFT_RING_BYTES; at += IBSHIFT_RING_LINE) {
        ibshift_ring_spoil(ring->data + at + IBSHIFT_RING_LINE);
    }
    ring->seed = nv->noise = nv->noise * 1664525u + 1013904223u;
    body.seed = ring->seed;
    nv->rings_used = place >= nv->rings_used ? place + 1 : nv->rings_used;
    ring->connection = c;
    ring->is_closing = false;
    ring->is_closed = false;
    ring->is_ordered = c->is_ordered;
    c->in.ring = ring;
    c->in.ring_told = body.id;
    c->in.ring_asked = false;
    ibshift_nv_control(c, &none, IBSHIFT_WIRE_RING, &body);
}

/* The peer is hot: it gets a ring if one is free. */
void ibshift_nv_ring_wanted(struct ibshift_connection *c)
{
    struct ibshift_ring *ring = c->in.ring == NULL && c->in.recent >= IBSHIFT_RING_HOT &&
                                        c->state == IBSHIFT_CONNECTION_READY
                                    ? free_ring(c->net)
                                    : NULL;

    if (ring != NULL) {
        offer(c, ring);
    }
}

static void take_back(struct ibshift_net_verbs *nv, struct ibshift_ring *ring)
{
    struct ibshift_net_key none = {0};
    struct ibshift_wire_grant body = {0};

    ring->is_closing = true;
    ibshift_nv_control(ring->connection, &none, IBSHIFT_WIRE_RING, &body);
}

/* Now and then: a ring moves from the coldest of its users to a much hotter peer without one. */
void ibshift_nv_rings_balance(struct ibshift_net_verbs *nv)
{
    struct ibshift_ring *coldest = NULL;
    struct ibshift_connection *hottest = NULL;

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];
        struct ibshift_ring *ring = c->in.ring;
        if (ring != NULL && !ring->is_closing &&
            (coldest == NULL || c->in.recent < coldest->connection->in.recent)) {
            coldest = ring;
        }
        if (ring == NULL && c->state == IBSHIFT_CONNECTION_READY &&
            (hottest == NULL || c->in.recent > hottest->in.recent)) {
            hottest = c;
        }
    }
    if (hottest != NULL) {
        ibshift_nv_ring_wanted(hottest);
    }
    if (hottest != NULL && hottest->in.ring == NULL && hottest->in.recent >= IBSHIFT_RING_HOT &&
        coldest != NULL && hottest->in.recent > MUCH_HOTTER * coldest->connection->in.recent) {
        take_back(nv, coldest);
    }
    if (free_ring(nv) != NULL) {
        return; /* as long as one is free, who has sent enough gets it, however seldom it sends */
    }
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        nv->connections[i]->in.recent /= 2;
    }
}

/* The peer wrote its last record, and we have taken it; its cells are the next peer's. */
static void leave_if_done(struct ibshift_connection *c)
{
    struct ibshift_ring *ring = c->in.ring;

    if (ring != NULL && ring->is_closed && c->in.ring_head == ring->last && c->in.ring_held == 0) {
        ibshift_nv_ring_free(c);
    }
}

/* After records were taken, or held ones have ended. */
void ibshift_nv_ring_settle(struct ibshift_connection *c)
{
    if (c->in.ring == NULL) {
        return;
    }
    if (c->in.ring_asked &&
        ibshift_ring_answers(ibshift_ring_limit(c), c->in.ring_told, IBSHIFT_RING_LINES)) {
        ibshift_nv_tell(c);
    }
    leave_if_done(c);
}

/* An offer (with an address), the wish to have it back (without), or the answer to that wish. */
void ibshift_nv_ring_came(struct ibshift_connection *c, const struct ibshift_wire *head,
                          const struct ibshift_wire_grant *body)
{
    if (body->address != 0) {
        c->out.ring_address = body->address;
        c->out.ring_key = body->key[0];
        c->out.ring_seed = (uint32_t)body->seed;
        c->out.is_ordered = body->pieces != 0;
        ibshift_limit_advance32(&c->out.ring, body->id, IBSHIFT_RING_LINES);
    } else if (body->pieces == 0) {
        struct ibshift_wire_grant left = {.pieces = 1, .id = c->out.ring_used};
        c->out.ring_address = 0;
        c->out.ring = c->out.ring_used;
        ibshift_nv_control(c, &head->key, IBSHIFT_WIRE_RING, &left);
    } else if (c->in.ring != NULL && c->in.ring->is_closing) {
        c->in.ring->is_closed = true;
        c->in.ring->last = body->id;
        leave_if_done(c);
    }
}

void ibshift_nv_held_ended(struct ibshift_connection *c)
{
    if (c->status != 0) {
        return;
    }
    if (ibshift_limit_is_news(c->in.quota, c->in.quota_told, c->in.quota_arrived,
                              c->in.quota_window)) {
        ibshift_nv_tell(c);
    }
    ibshift_nv_ring_settle(c);
}

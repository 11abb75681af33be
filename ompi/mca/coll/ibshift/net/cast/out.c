/* What goes to a multicast group, and is kept until all have it. */
#include <errno.h>
#include <string.h>

#include "net/cast/impl.h"

enum { MANY_QPN = 0xffffff };

static const uint64_t alive_pause =
    500 * 1000 * 1000; /* ns that a member may be silent that is waited for */

/* -1: it has not been sent yet, or all have acknowledged it. */
static int64_t number_of(const struct ibshift_cast *cast, const struct ibshift_net_key *key,
                         const struct ibshift_wire_grant *body)
{
    if (body->length != IBSHIFT_CAST_BY_KEY) {
        return cast->sent - body->pieces - 1 < IBSHIFT_CAST_WINDOW ? (int64_t)body->pieces : -1;
    }
    for (uint32_t back = 1; back <= IBSHIFT_CAST_WINDOW && back <= cast->sent; back++) {
        const struct ibshift_cast_head *head =
            (const void *)ibshift_cast_slot(cast, cast->sent - back);

        if (memcmp(&head->key, key, sizeof(*key)) == 0) {
            return cast->sent - back;
        }
    }
    return -1;
}

/* Whose body names a group that is no more here: this side has all that it wanted of it. */
static struct ibshift_cast *cast_of(const struct ibshift_connection *c,
                                    const struct ibshift_wire_grant *body)
{
    struct ibshift_cast *cast = ibshift_cast_find(c->net, body->address);

    return cast != NULL && body->id < cast->count && cast->peers[body->id] == c->peer ? cast : NULL;
}

int ibshift_nv_cast_repair(struct ibshift_note *note)
{
    struct ibshift_connection *c = note->connection;
    const struct ibshift_cast *cast = ibshift_cast_find(c->net, note->to.address);
    const struct ibshift_cast_head *head;
    struct ibshift_wire wire = {.kind = IBSHIFT_WIRE_CAST_REPAIR};
    int rc = 0;

    if (cast != NULL && cast->sent - note->to.pieces - 1 < IBSHIFT_CAST_WINDOW) {
        head = (const void *)ibshift_cast_slot(cast, note->to.pieces);
        wire.key = head->key;
        wire.length = head->length + (uint32_t)sizeof(*head);
        rc = ibshift_nv_put(c, &wire, head, true);
        c->net->stats.repairs += rc == 0;
    }
    if (rc == 0) {
        ibshift_nv_note_end(note, 0);
    }
    return rc;
}

/* As soon as the peer has room: it may have asked more than once meanwhile. */
static void repair(struct ibshift_cast *cast, struct ibshift_connection *c, uint32_t number)
{
    static const struct ibshift_net_key none;
    const struct ibshift_wire_grant which = {.address = cast->group, .pieces = number};
    const struct ibshift_note *n = c->ready.first;

    while (n != NULL && (n->wire_kind != IBSHIFT_WIRE_CAST_REPAIR || n->to.address != cast->group ||
                         n->to.pieces != number)) {
        n = n->next;
    }
    if (n == NULL) {
        ibshift_nv_control(c, &none, IBSHIFT_WIRE_CAST_REPAIR, &which);
    }
}

/* Without a queue pair: over the connections, as if each had missed it. */
static void send_singly(struct ibshift_cast *cast)
{
    for (uint32_t i = 0; i < cast->count; i++) {
        struct ibshift_connection *c = i == cast->rank || cast->sources[i].is_near
                                           ? NULL
                                           : ibshift_nv_peer(cast->nv, cast->peers[i]);

        if (c != NULL && c->state == IBSHIFT_CONNECTION_READY) {
            repair(cast, c, cast->sent - 1);
        }
    }
    cast->left++;
}

void ibshift_nv_cast_miss_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                               const struct ibshift_wire_grant *body)
{
    struct ibshift_cast *cast = cast_of(c, body);
    int64_t number = cast != NULL ? number_of(cast, &wire->key, body) : -1;

    if (number >= 0) {
        repair(cast, c, (uint32_t)number);
    }
}

void ibshift_nv_cast_have_came(struct ibshift_connection *c, const struct ibshift_wire *wire,
                               const struct ibshift_wire_grant *body)
{
    struct ibshift_cast *cast = cast_of(c, body);

    (void)wire;
    if (cast != NULL && (int32_t)(body->pieces - cast->acknowledged[body->id]) > 0 &&
        (int32_t)(cast->sent - body->pieces) >= 0) {
        cast->acknowledged[body->id] = body->pieces;
    }
}

/* The first member that lacks the oldest of the window, or count. */
static uint32_t slowest(struct ibshift_cast *cast)
{
    uint32_t found = cast->count, least = cast->sent;

    for (uint32_t i = 0; i < cast->count; i++) {
        if (i != cast->rank && !cast->sources[i].is_near &&
            (int32_t)(cast->acknowledged[i] - least) < 0) {
            least = cast->acknowledged[i];
            found = i;
        }
    }
    cast->acknowledged_by_all = least;
    return found;
}

static bool is_full(const struct ibshift_cast *cast)
{
    return cast->sent - cast->acknowledged_by_all >= IBSHIFT_CAST_WINDOW ||
           cast->sent - cast->left >= IBSHIFT_CAST_WINDOW;
}

/* 0: it has room; -EAGAIN; -ECONNABORTED: a member will not acknowledge any more, for which the communicator is given up. */
static int make_room(struct ibshift_cast *cast, uint32_t comm)
{
    struct ibshift_net_verbs *nv = cast->nv;
    uint32_t rank = slowest(cast);
    struct ibshift_connection *c;

    if (!is_full(cast) || rank == cast->count) {
        return is_full(cast) ? -EAGAIN : 0;
    }
    c = ibshift_nv_peer(nv, cast->peers[rank]);
    if (c != NULL) {
        ibshift_nv_connect(c);
    }
    if (c == NULL || c->status != 0) {
        const struct ibshift_net_cause why = {.peer = cast->peers[rank],
                                              .status = c == NULL ? -EHOSTUNREACH : c->status};

        ibshift_net_give_up(&nv->net, comm, &why);
        return -ECONNABORTED;
    }
    if (nv->time - c->alive > alive_pause) {
        c->alive = nv->time;
        ibshift_nv_tell(c);
    }
    return -EAGAIN;
}

int ibshift_nv_cast_send(struct ibshift_net_verbs *nv, const struct ibshift_net_message *m)
{
    struct ibshift_cast *cast = m->cast;
    uint8_t *slot = ibshift_cast_slot(cast, cast->sent);
    struct ibshift_cast_head head = {.group = cast->group,
                                     .from = cast->rank,
                                     .number = cast->sent,
                                     .key = m->key,
                                     .length = (uint32_t)m->length};
    struct ibv_sge sge = {.addr = (uintptr_t)slot,
                          .length = (uint32_t)(sizeof(head) + m->length),
                          .lkey = cast->mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = ibshift_wr_id(&cast->window, IBSHIFT_WR_CAST),
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | (sge.length <= cast->inlined ? IBV_SEND_INLINE : 0),
        .wr.ud = {.ah = cast->ah, .remote_qpn = MANY_QPN, .remote_qkey = cast->place.key}};
    struct ibv_send_wr *bad;
    int rc;

    if (m->peer != cast->first) {
        return IBSHIFT_NET_DONE; /* it goes to this one, too */
    }
    rc = is_full(cast) ? make_room(cast, m->key.comm) : 0;
    if (rc != 0) {
        return rc;
    }
    memcpy(slot, &head, sizeof(head));
    ibshift_nv_copy(slot + sizeof(head), m->buffer, m->length);
    rc = cast->is_broken ? EIO : ibv_post_send(cast->qp, &wr, &bad);
    if (rc == ENOMEM) {
        return -EAGAIN;
    }
    cast->sent++;
    if (rc != 0) {
        cast->is_broken = true;
        send_singly(cast);
    }
    nv->stats.casts++;
    nv->stats.bytes += m->length;
    return IBSHIFT_NET_DONE;
}

bool ibshift_cast_is_acknowledged(struct ibshift_cast *cast)
{
    uint32_t rank = slowest(cast);

    while (rank < cast->count) { /* of those that will not, nothing is waited for */
        const struct ibshift_connection *c = ibshift_nv_peer_known(cast->nv, cast->peers[rank]);

        if (c != NULL && c->status == 0) {
            return false;
        }
        cast->acknowledged[rank] = cast->sent;
        rank = slowest(cast);
    }
    return true;
}

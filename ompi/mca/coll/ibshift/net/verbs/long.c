/* Long messages: the receiver's grant says where, the sender writes there, without a copy. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/verbs/inside.h"

enum { RESERVED_REQUESTS = 2, PART_MIN = 64 * 1024 };

static int device_of(const struct ibshift_net_verbs *nv, const struct ibshift_rail *rail)
{
    return (int)(rail->lane - nv->lanes);
}

/* Tells the sender of a posted receive where to write. */
void ibshift_nv_grant(struct ibshift_note *recv, struct ibshift_net_mem *mem)
{
    struct ibshift_connection *c = recv->connection;
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_wire_grant grant = {.length = recv->length};
    struct ibshift_region *region = NULL;
    uint32_t place = nv->free_grants[--nv->free_grant_count];

    nv->grants[place] = recv;
    recv->grant = place | (uint32_t)(nv->grant_ages[place] & 0x3fff) << 16;
    recv->is_granted = true;
    grant.id = recv->grant;
    if (nv->options.is_tolerant || ibshift_nv_cover(recv, mem, &region) != 0) {
        recv->standing = 0;
        grant.pieces = IBSHIFT_GRANT_PIECES;
    } else {
        grant.pieces = recv->standing != 0 ? IBSHIFT_GRANT_STANDS : 0;
        grant.address = (uintptr_t)recv->buffer;
        for (int i = 0; i < c->rails; i++) {
            grant.key[i] = region->mr[device_of(nv, &c->rail[i])]->rkey;
        }
    }
    recv->to = grant;
    ibshift_nv_control(c, &recv->match.key, IBSHIFT_WIRE_GRANT, &grant);
}

/* The peer waits for a grant that stands: it had no memory to keep it. */
void ibshift_nv_grant_again(struct ibshift_note *recv)
{
    recv->is_again = false;
    ibshift_nv_control(recv->connection, &recv->match.key, IBSHIFT_WIRE_GRANT, &recv->to);
}

/*
 * Standing grants. Where a message that comes again comes to the same place (net.h), its first grant says
 * that it stands: both sides keep it when the message is over, and the next one with the same
 * communicator, number and tag is written without another. What the sender may overwrite, and when, is
 * the affair of those who name the number.
 *
 * Whether a grant stands the receiver alone decides, with the first one; so both know it when the second
 * message comes. A grant stands until its number is revoked, or the communicator is forgotten. Once
 * anything has failed in this process, a peer that has not heard of it may write late, on whatever
 * communicator: the grants of what is forgotten then take nothing any more, and hold their memory, until
 * the connection ends. Opened numbers need not that: nobody writes before the receiver has said so.
 */
/* In their table: no other has such a key. */
static struct ibshift_net_key key_of(const struct ibshift_net_key *key, uint32_t standing,
                                     bool is_ours)
{
    return (struct ibshift_net_key){key->comm, standing << 1 | is_ours, key->tag};
}

/* NULL: there is none. */
static struct ibshift_note *find(const struct ibshift_connection *c,
                                 const struct ibshift_net_message *m, bool is_ours)
{
    struct ibshift_net_key key = key_of(&m->key, m->standing, is_ours);

    return m->standing == 0 || c->standing.first == NULL
               ? NULL
               : ibshift_note_find(&c->net->standing, c, &key);
}

/* Both sides know that it does not hold any more. */
static bool is_outdated(const struct ibshift_note *note, const struct ibshift_net_message *m)
{
    return (m->standing & IBSHIFT_NET_OPENED) != 0 && (m->is_anew || note->to.length != m->length);
}

const struct ibshift_note *ibshift_nv_standing_grant(const struct ibshift_connection *c,
                                                     const struct ibshift_net_message *m)
{
    const struct ibshift_note *note = find(c, m, false);

    return note == NULL || is_outdated(note, m) ? NULL : note;
}

/* Most grants stay for messages that come once. */
bool ibshift_nv_may_stand(const struct ibshift_net_verbs *nv)
{
    return nv->free_grant_count > IBSHIFT_GRANTS / 2;
}

static void enter(struct ibshift_note *note, bool is_ours)
{
    note->match.key = key_of(&note->match.key, note->standing, is_ours);
    ibshift_match_add(&note->connection->net->standing, &note->match);
}

/* A message has come whose grant stands: what is left of its note when it has ended. */
void ibshift_nv_stand(struct ibshift_note *recv)
{
    struct ibshift_net_verbs *nv = recv->connection->net;

    ibshift_match_remove(&recv->match);
    nv->queued -= recv->length > IBSHIFT_RING_PAYLOAD;
    ibshift_nv_event(nv, recv->cookie, recv->connection->peer, 0);
    recv->kind = IBSHIFT_NOTE_STANDING;
    recv->parts = 0;
    recv->came = recv->match.key.seq;
    enter(recv, true);
    ibshift_note_move(&recv->connection->standing, recv);
}

/* A send's grant has come. Where it stands, it takes the place of an earlier one, which holds no longer in any case.
   Without memory it is asked for again: see probe(). */
void ibshift_nv_standing_keep(const struct ibshift_note *send)
{
    struct ibshift_connection *c = send->connection;
    struct ibshift_net_message m = {.key = send->match.key, .standing = send->standing};
    struct ibshift_note *note = find(c, &m, false);

    if ((send->to.pieces & IBSHIFT_GRANT_STANDS) == 0) {
        if (note != NULL) {
            ibshift_nv_note_end(note, 0);
        }
        return;
    }
    if (note == NULL) {
        note = ibshift_nv_note_new(c, IBSHIFT_NOTE_STANDING, &send->match.key);
        if (note == NULL) {
            return;
        }
        note->standing = send->standing;
        enter(note, false);
        ibshift_note_append(&c->standing, note);
    }
    note->to = send->to;
}

/* Of a message whose grant stands. */
static int take(struct ibshift_note *note, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;

    if (note->length != m->length) {
        return ibshift_nv_mismatch(c, &m->key, m->length, note->length);
    }
    if (note->buffer != m->buffer) { /* the peer may write there, and nobody looks */
        ibshift_nv_break(c, -EIO, "a grant to it stands for another buffer");
        return c->status;
    }
    if (note->has_come) {
        note->has_come = false;
        note->came = m->key.seq;
        return IBSHIFT_NET_DONE;
    }
    ibshift_match_remove(&note->match);
    note->kind = IBSHIFT_NOTE_RECV;
    note->is_again = true;
    note->match.key = m->key;
    note->cookie = m->cookie;
    nv->queued += m->length > IBSHIFT_RING_PAYLOAD;
    ibshift_note_move(&c->resting, note);
    ibshift_match_add(&nv->rx, &note->match);
    return IBSHIFT_NET_PENDING;
}

int ibshift_nv_standing_recv(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_note *note = find(c, m, true);

    if (note != NULL && is_outdated(note, m)) {
        if (note->has_come) {
            return ibshift_nv_mismatch(c, &m->key, m->length, note->length);
        }
        ibshift_nv_note_end(note, 0);
        note = NULL;
    }
    return note == NULL ? -ENOENT : take(note, m);
}

/* A part of a message whose receive is not posted yet. */
void ibshift_nv_standing_came(struct ibshift_note *note, uint32_t parts)
{
    if (note->has_come) {
        ibshift_nv_break(note->connection, -EIO, "it wrote a message over another one");
    } else if (++note->parts == parts) {
        note->parts = 0;
        note->has_come = true;
    }
}

static bool may_be_written_late(const struct ibshift_note *note)
{
    return note->is_granted && (note->standing & IBSHIFT_NET_OPENED) == 0 &&
           ibshift_net_has_failed(&note->connection->net->net);
}

static void forget(struct ibshift_connection *c, uint32_t comm)
{
    struct ibshift_note *next;

    for (struct ibshift_note *n = c->standing.first; n != NULL; n = next) {
        next = n->next;
        if (ibshift_net_comm(n->match.key.comm) != comm) {
            continue;
        }
        if (may_be_written_late(n)) {
            ibshift_match_remove(&n->match); /* found by nobody */
            n->has_come = false;
        } else {
            ibshift_nv_note_end(n, 0);
        }
    }
}

void ibshift_nv_standing_forget(struct ibshift_net_verbs *nv, uint32_t comm)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        forget(nv->connections[i], comm);
    }
}

static bool is_of(const struct ibshift_note *note, uint32_t comm, uint32_t standing)
{
    return note->standing == standing && ibshift_net_comm(note->match.key.comm ^ comm) == 0;
}

/* As long as its message of that collective has not come. */
static bool may_write(const struct ibshift_connection *c, uint32_t comm, uint32_t standing,
                      uint32_t seq)
{
    const struct ibshift_note *n = c->standing.first;

    while (n != NULL &&
           (!is_of(n, comm, standing) || !n->is_granted || n->has_come || n->came == seq)) {
        n = n->next;
    }
    return n != NULL;
}

static void end_all(struct ibshift_connection *c, uint32_t comm, uint32_t standing)
{
    struct ibshift_note *next;

    for (struct ibshift_note *n = c->standing.first; n != NULL; n = next) {
        next = n->next;
        if (is_of(n, comm, standing)) {
            ibshift_nv_note_end(n, 0);
        }
    }
}

void ibshift_nv_standing_revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing,
                                const uint32_t *seq)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);

    for (uint32_t i = 0; i < nv->connection_count; i++) {
        struct ibshift_connection *c = nv->connections[i];

        if (seq != NULL && may_write(c, comm, standing, *seq)) {
            ibshift_nv_break(c, -ECONNRESET,
                             "collective %u on communicator %u was given up "
                             "while a grant to the peer stood for its buffer",
                             *seq, ibshift_net_comm(comm));
        }
        end_all(c, comm, standing);
    }
}

/* A message in pieces goes over one rail, for only writes of one queue pair land in their order. What goes through slots has pieces
 * of its own. */
static void cut(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;

    if (note->is_copied) {
        nv->pieced -= note->piece > 0;
        note->piece = 0;
    }
    if (note->piece > 0) {
        note->rail = (uint8_t)(nv->in_pieces++ % note->connection->rails);
    }
}

/* Finds the keys of a send's buffer, or it is to be copied. */
static void find_keys(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;
    struct ibshift_region *region = NULL;

    note->is_copied = ibshift_nv_cover(note, note->mem, &region) != 0;
    for (int i = 0; i < c->rails && !note->is_copied; i++) {
        note->local_key[i] = region->mr[device_of(nv, &c->rail[i])]->lkey;
    }
}

/* A send, whose keys have been looked for, and its grant are here. */
static void start(struct ibshift_note *note, const struct ibshift_wire_grant *grant)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;

    if (grant->length != note->length) {
        (void)ibshift_nv_mismatch(c, &note->match.key, note->length, grant->length);
        return;
    }
    note->to = *grant;
    note->is_granted = true;
    nv->ungranted -= note->length;
    if (note->standing != 0) {
        ibshift_nv_standing_keep(note);
    }
    cut(note);
    nv->stats.rendezvous++;
    nv->stats.bytes += note->length;
    ibshift_note_move(&c->ready, note);
    ibshift_nv_flush(c);
}

static void grant_came(struct ibshift_note *note, const struct ibshift_wire_grant *grant)
{
    if ((grant->pieces & IBSHIFT_GRANT_PIECES) != 0) {
        note->is_copied = true;
    } else {
        find_keys(note);
    }
    start(note, grant);
}

int ibshift_nv_send_long(struct ibshift_connection *c, const struct ibshift_net_message *m)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_note *grant = c->out.grants == 0 ? NULL : ibshift_note_find(&nv->tx, c, &m->key);
    struct ibshift_note *note = ibshift_nv_note_post(c, IBSHIFT_NOTE_LONG, m);
    const struct ibshift_note *standing = grant == NULL ? ibshift_nv_standing_grant(c, m) : NULL;

    if (note == NULL) {
        return -ENOMEM;
    }
    note->mem = m->mem;
    note->since = nv->time;
    note->piece = m->piece;
    note->beside = m->beside;
    note->pieces = 1;
    nv->pieced += m->piece > 0;
    note->standing = m->standing;
    if (standing != NULL) {
        nv->stats.standing++;
        find_keys(note);
        ibshift_note_append(&c->resting, note);
        start(note, &standing->to);
    } else if (grant == NULL) {
        ibshift_nv_note_enter(note, &c->resting);
        ibshift_nv_connect(c);
    } else {
        ibshift_note_append(&c->resting, note);
        struct ibshift_wire_grant to = grant->to; /* of a PULL: too short, a mismatch */
        ibshift_nv_note_end(grant, 0);
        grant_came(note, &to);
    }
    return IBSHIFT_NET_PENDING;
}

void ibshift_nv_granted(struct ibshift_connection *c, const struct ibshift_wire *head,
                        const struct ibshift_wire_grant *grant)
{
    struct ibshift_note *note = ibshift_note_find(&c->net->tx, c, &head->key);

    if (note != NULL && note->kind == IBSHIFT_NOTE_LONG) {
        ibshift_match_remove(&note->match);
        grant_came(note, grant);
    } else if (note != NULL) {
        (void)ibshift_nv_mismatch(c, &head->key, note->length, grant->length);
    } else if (!ibshift_given_up_is_over(&c->net->net, c->peer, &head->key)) {
        ibshift_nv_grant_keep(c, &head->key, grant, false);
    }
}

/* In how many parts, one a rail; all but the last of step bytes. */
static uint32_t parts_of(const struct ibshift_note *note, size_t *step)
{
    uint32_t parts = note->piece > 0 ? 1 : note->connection->rails;

    while (parts > 1 && note->length / parts < PART_MIN) {
        parts--;
    }
    *step = ((note->length + parts - 1) / parts + 4095) / 4096 * 4096;
    return (uint32_t)((note->length + *step - 1) / *step);
}

/* Up to the end of a part, or so many bytes. */
static int write_some(struct ibshift_note *note, size_t limit)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    size_t step;
    uint32_t parts = parts_of(note, &step);
    uint32_t part = (uint32_t)(note->done / step);
    struct ibshift_connection *c = note->connection;
    uint32_t number = note->rail + part;
    struct ibshift_rail *rail = &c->rail[number];
    size_t end = (part + 1) * step < note->length ? (part + 1) * step : note->length;

    size_t most = nv->verbs->ports[rail->my_port].attr.max_msg_sz;
    size_t n = end - note->done;
    n = n < most ? n : most;
    n = n < limit ? n : limit;
    bool is_last = note->done + n == end;
    struct ibv_sge sge = {.addr = (uintptr_t)note->buffer + note->done,
                          .length = (uint32_t)n,
                          .lkey = note->local_key[number]};
    enum ibshift_wr_kind kind = is_last           ? IBSHIFT_WR_WRITE
                                : note->piece > 0 ? IBSHIFT_WR_PIECE
                                                  : IBSHIFT_WR_PLAIN;
    struct ibv_send_wr wr = {.opcode = is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                             .wr_id = kind != IBSHIFT_WR_PLAIN ? ibshift_wr_id(note, kind) : 0,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .imm_data = htobe32(ibshift_immediate(note->to.id, parts))};

    if (ibshift_rail_room(nv, rail) <= RESERVED_REQUESTS + (uint32_t)nv->options.adaptive ||
        (is_last && !ibshift_nv_has_slot(c))) {
        return -EAGAIN;
    }
    wr.wr.rdma.remote_addr = note->to.address + note->done;
    wr.wr.rdma.rkey = note->to.key[number];
    note->parts += (uint8_t)is_last;
    note->done += n;
    c->out.slots_used += is_last;
    nv->stats.pieces += note->piece > 0;
    return ibshift_nv_post_write(nv, rail, &wr, kind != IBSHIFT_WR_PLAIN);
}

/* Of a buffer that cannot be registered: a copy is written to where it belongs, as the buffer would be. */
static int write_copy(struct ibshift_note *note)
{
    struct ibshift_net_verbs *nv = note->connection->net;
    struct ibshift_connection *c = note->connection;
    size_t left = note->length - note->done;
    size_t n = left < nv->net.max_eager ? left : nv->net.max_eager;
    bool is_last = n == left;
    struct ibv_send_wr wr = {.opcode = is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                             .imm_data = htobe32(ibshift_immediate(note->to.id, 1))};

    if (ibshift_rail_room(nv, &c->rail[0]) <= IBSHIFT_REQUESTS_RESERVED ||
        (is_last && !ibshift_nv_has_slot(c))) {
        return -EAGAIN;
    }
    wr.wr.rdma.remote_addr = note->to.address + note->done;
    wr.wr.rdma.rkey = note->to.key[0];
    int rc = ibshift_nv_post_copy(c, &wr, (uint8_t *)note->buffer + note->done, (uint32_t)n);
    if (rc == 0) {
        note->done += n;
        c->out.slots_used += is_last;
    }
    return rc;
}

/* 0: all is posted, or a piece, and the note has left the queue; -EAGAIN: later; else the
 * connection broke. */
int ibshift_nv_write(struct ibshift_note *note)
{
    size_t limit = note->piece > 0 ? note->piece * note->pieces : SIZE_MAX;
    int rc;

    do {
        rc = !note->is_copied                                ? write_some(note, limit)
             : (note->to.pieces & IBSHIFT_GRANT_PIECES) != 0 ? ibshift_nv_put_piece(note)
                                                             : write_copy(note);
    } while (rc == 0 && note->piece == 0 && note->done < note->length);
    if (rc == 0 && note->is_copied) {
        ibshift_nv_note_end(note, 0);
    } else if (rc == 0) {
        ibshift_note_move(&note->connection->resting, note);
    }
    return rc;
}

/*
 * A process of the job that does not keep to what it was granted: rogue CASE. What it does breaks
 * its own connection, with a reason, and changes nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "net/verbs/inside.h"

enum { EAGER = 64, SHORT = 32, DATAGRAMS = 10 };

static uint8_t memory[8192]; /* registered by the rogue, who fits into no slot */

static struct ibshift_net_verbs *nv_of(struct ranks *r)
{
    return (struct ibshift_net_verbs *)r->net;
}

/* Posts one message and waits for its end. */
static int message(struct ranks *r, int is_send, uint32_t peer, uint32_t tag, void *buffer,
                   size_t length)
{
    struct ibshift_net_message m = {
        .peer = peer, .key = {.comm = 7, .tag = tag}, .buffer = buffer, .length = length};
    int rc = is_send ? ibshift_net_send(r->net, &m) : ibshift_net_recv(r->net, &m);
    struct ibshift_net_event event = {.status = rc};

    while (rc == IBSHIFT_NET_PENDING && ibshift_net_poll(r->net, &event, 1) == 0) {
        usleep(20);
    }
    return rc < 0 ? rc : rc == IBSHIFT_NET_DONE ? 0 : event.status;
}

static void pass(struct ranks *r, int is_send, uint32_t peer, uint32_t tag)
{
    uint8_t data[SHORT];
    int status;

    ranks_fill(data, is_send ? SHORT : 0, tag);
    status = message(r, is_send, peer, tag, data, SHORT);
    if (status != 0 || ranks_differs(data, SHORT, tag) >= 0) {
        ranks_fail(r, "message %u: status %d, or wrong data", tag, status);
    }
}

/* The victim waits for what the rogue never sends, until the connection is broken. */
static int break_is_noticed(struct ranks *r, size_t length, const char *why)
{
    static uint8_t data[4096];
    char text[512];
    int status = message(r, 0, 1, 4000, data, length);

    ibshift_net_describe(r->net, 1, text, sizeof(text));
    printf("%s\n", text);
    return status != -EIO || strstr(text, why) == NULL;
}

/* Until rank 0 has offered a ring, both ways of going are tried. */
static struct ibshift_connection *become_hot(struct ranks *r)
{
    struct ibshift_connection *c = ibshift_nv_peer(nv_of(r), (uint32_t)!r->self);

    for (uint32_t tag = 0; tag < 3 * IBSHIFT_RING_HOT; tag++) {
        pass(r, r->self == 1, (uint32_t)!r->self, tag);
    }
    pass(r, r->self == 0, (uint32_t)!r->self, 3000); /* behind the offer */
    if (r->self == 1 && c->out.ring_address == 0) {
        ranks_fail(r, "no ring was offered");
    }
    return c;
}

static void post_from(struct ranks *r, struct ibshift_connection *c, struct ibv_send_wr *wr,
                      size_t from, size_t length)
{
    static struct ibshift_net_mem *mem;

    mem = mem != NULL ? mem : ibshift_net_mem_register(r->net, memory, sizeof(memory));
    if (mem == NULL) {
        ranks_fail(r, "the rogue cannot register its memory");
    }
    struct ibv_sge sge = {.addr = (uintptr_t)memory + from,
                          .length = (uint32_t)length,
                          .lkey = ((struct ibshift_region *)mem)->mr[0]->lkey};
    wr->sg_list = &sge;
    wr->num_sge = 1;
    if (ibshift_rail_post(nv_of(r), &c->rail[0], wr, 1) != 0) {
        ranks_fail(r, "the rogue cannot post");
    }
}

static void post(struct ranks *r, struct ibshift_connection *c, struct ibv_send_wr *wr,
                 uint32_t length)
{
    post_from(r, c, wr, 0, length);
}

/* Writes a piece of the memory to before an address in the victim's ring. */
static void write_memory(struct ranks *r, struct ibshift_connection *c, size_t from, size_t length,
                         uint64_t end)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

    wr.wr.rdma.remote_addr = end - length;
    wr.wr.rdma.rkey = c->out.ring_key;
    post_from(r, c, &wr, from, length);
}

/* Puts the next record's header behind its data in the memory. */
static void make_record(const struct ibshift_connection *c, struct ibshift_wire head,
                        uint32_t length)
{
    struct ibshift_wire_words words;

    head.length = length;
    head.mark = ibshift_ring_mark(c->out.ring_used, c->out.ring_seed);
    words = ibshift_wire_words_at(&head);
    head.offset = ibshift_wire_check(&words, memory, c->out.is_ordered ? 0 : length);
    memcpy(memory + length, &head, sizeof(head));
}

/* A record that is right but for what the header says. */
static void put_record(struct ranks *r, struct ibshift_connection *c, struct ibshift_wire head)
{
    uint64_t end = c->out.ring_address + ibshift_ring_end(c->out.ring_used);

    make_record(c, head, head.length);
    c->out.ring_used += ibshift_ring_lines(head.length);
    write_memory(r, c, 0, head.length + sizeof(head), end);
}

static const struct ibshift_wire early = {
    .key = {.comm = 7, .tag = 5000}, .kind = IBSHIFT_WIRE_DATA, .flags = IBSHIFT_WIRE_UNASKED};

/* Nobody waits for the record, so it goes to a slot, which is smaller. */
static int long_record(struct ranks *r)
{
    struct ibshift_connection *c = become_hot(r);
    struct ibshift_wire head = early;

    if (r->self == 0) {
        return break_is_noticed(r, SHORT, "200 bytes");
    }
    head.length = 200;
    put_record(r, c, head);
    return message(r, 0, 0, 4000, memory, SHORT) == 0;
}

/* Fits into the slot, whose size is rounded up, but is more than a short message may have. */
static int long_message(struct ranks *r)
{
    struct ibshift_connection *c = become_hot(r);
    struct ibshift_wire head = early;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

    if (r->self == 0) {
        return break_is_noticed(r, SHORT, "80 bytes");
    }
    head.length = 80;
    memcpy(memory, &head, sizeof(head));
    c->out.slots_used++;
    post(r, c, &wr, (uint32_t)sizeof(head) + head.length);
    return message(r, 0, 0, 4000, memory, SHORT) == 0;
}

/* Waits for a grant and takes it; which one. */
static uint32_t take_grant(struct ranks *r, struct ibshift_connection *c,
                           const struct ibshift_net_key *key)
{
    struct ibshift_note *note = NULL;

    while ((note = ibshift_note_find(&nv_of(r)->tx, c, key)) == NULL) {
        ibshift_net_poll(r->net, NULL, 0);
    }
    uint32_t grant = note->to.id;
    ibshift_nv_note_end(note, 0);
    return grant;
}

static void put_piece(struct ranks *r, struct ibshift_connection *c,
                      const struct ibshift_net_key *key, uint32_t grant, uint32_t number, int fill)
{
    struct ibshift_wire head = {
        .key = *key, .kind = IBSHIFT_WIRE_PIECE, .length = EAGER, .offset = number, .mark = grant};

    memset(memory, fill, EAGER);
    if (ibshift_nv_put(c, &head, memory, 0) != 0) {
        ranks_fail(r, "piece %u did not go", number);
    }
}

/* The same piece twice: the message would never be whole. */
static int double_piece(struct ranks *r)
{
    const struct ibshift_net_key key = {.comm = 7, .tag = 4000};

    if (r->self == 0) {
        return break_is_noticed(r, 2 * EAGER + 1, "piece");
    }
    struct ibshift_connection *c = ibshift_nv_peer(nv_of(r), 0);
    uint32_t grant = take_grant(r, c, &key);
    put_piece(r, c, &key, grant, 0, 1);
    put_piece(r, c, &key, grant, 0, 1);
    return message(r, 0, 0, 4001, memory, SHORT) == 0;
}

static void recv_whole(struct ranks *r, const struct ibshift_net_message *m)
{
    if (ibshift_net_recv(r->net, m) != IBSHIFT_NET_PENDING) {
        ranks_fail(r, "the receive does not wait");
    }
}

/*
 * Pieces of a message that the receiver has given up, before and after those of another one with
 * its key, as when a communicator's number comes back: they change nothing. One more than was
 * granted is too many.
 */
static int late_pieces(struct ranks *r)
{
    const struct ibshift_net_key key = {.comm = 8, .tag = 4000};
    struct ibshift_net_message m = {.peer = 1, .key = key, .buffer = memory, .length = 2 * EAGER};
    struct ibshift_connection *c = ibshift_nv_peer(nv_of(r), (uint32_t)!r->self);
    struct ibshift_net_event event = {.status = 0};

    if (r->self == 1) {
        uint32_t old = take_grant(r, c, &key);
        pass(r, 1, 0, 10);
        uint32_t grant = take_grant(r, c, &key);
        put_piece(r, c, &key, old, 0, 1);
        put_piece(r, c, &key, grant, 0, 2);
        put_piece(r, c, &key, grant, 1, 2);
        put_piece(r, c, &key, old, 1, 1);
        pass(r, 1, 0, 11);
        pass(r, 0, 0, 12);
        put_piece(r, c, &key, old, 1, 1);
        return message(r, 0, 0, 4001, memory, SHORT) == 0;
    }
    recv_whole(r, &m);
    pass(r, 0, 1, 10);
    ibshift_net_cancel(r->net, 8, 0);
    ibshift_net_forget(r->net, 8);
    if (ibshift_net_poll(r->net, &event, 1) != 1 || event.status != -ECANCELED) {
        ranks_fail(r, "the receive was not given up: %d", event.status);
    }
    recv_whole(r, &m);
    while (ibshift_net_poll(r->net, &event, 1) == 0) {
    }
    pass(r, 0, 1, 11);
    pass(r, 1, 1, 12);
    if (event.status != 0 || memory[0] != 2 || memory[2 * EAGER - 1] != 2) {
        ranks_fail(r, "status %d, data %u %u", event.status, memory[0], memory[2 * EAGER - 1]);
    }
    return break_is_noticed(r, SHORT, "piece");
}

/*
 * The end of a record lands before its beginning, as it may. With an equal record's data in its
 * place it would count, and the rest land in the midst of what comes there next. The ring is
 * new, so all of it would be equal.
 */
static int late_data(struct ranks *r)
{
    struct ibshift_connection *c = become_hot(r);
    struct ibshift_net_message m = {.peer = 1, .key = early.key, .buffer = memory, .length = EAGER};
    struct ibshift_net_event event = {.status = 1};
    uint64_t ring = c->out.ring_address;
    uint64_t end = ring + ibshift_ring_end(c->out.ring_used);
    int rc;

    if (r->self == 0) {
        if (c->is_ordered) {
            ranks_fail(r, "this device promises that data lands in order");
        }
        pass(r, 0, 1, 6000); /* behind the end of the record */
        rc = ibshift_net_recv(r->net, &m);
        if (rc != IBSHIFT_NET_PENDING) {
            ranks_fail(r, "half a record was taken for a whole one: %d", rc);
        }
        ranks_barrier(r, 0);
        while (ibshift_net_poll(r->net, &event, 1) == 0) {
        }
        return event.status;
    }
    make_record(c, early, EAGER);
    write_memory(r, c, EAGER / 2, EAGER / 2 + sizeof(struct ibshift_wire), end);
    c->out.ring_address = 0;
    pass(r, 1, 0, 6000);
    c->out.ring_address = ring;
    ranks_barrier(r, 0);
    write_memory(r, c, 0, EAGER / 2, end - IBSHIFT_RING_LINE);
    return 0;
}

/* The ring's last record says, in the ring, that it is the last but one. */
static int closed_ring(struct ranks *r)
{
    struct ibshift_connection *c = become_hot(r);
    struct ibshift_wire head = {.kind = IBSHIFT_WIRE_RING,
                                .length = sizeof(struct ibshift_wire_grant)};
    struct ibshift_wire_grant left = {.pieces = 1, .id = c->out.ring_used};

    if (r->self == 0) {
        if (c->in.ring == NULL) {
            ranks_fail(r, "no ring was offered");
        }
        c->in.ring->is_closing = true;
        ranks_barrier(r, 0);
        while (c->in.ring != NULL && c->status == 0) {
            ibshift_net_poll(r->net, NULL, 0);
        }
        pass(r, 0, 1, 6000);
        return 0;
    }
    ranks_barrier(r, 0);
    memcpy(memory, &left, sizeof(left));
    put_record(r, c, head);
    c->out.ring_address = 0;
    pass(r, 1, 0, 6000);
    return 0;
}

/* Rank 2 knows all cards, and speaks in the name of others. */
static void forge(struct ranks *r, uint8_t kind, uint32_t from, uint64_t incarnation)
{
    struct ibshift_connection *to = ibshift_nv_peer(nv_of(r), 0);
    struct ibshift_hello h = {.kind = kind,
                              .flags = IBSHIFT_HELLO_HAVE,
                              .from_incarnation = incarnation,
                              .to_incarnation = to->card.incarnation,
                              .from_peer = from,
                              .to_peer = 0,
                              .max_eager = EAGER,
                              .credits = 8,
                              .quota = 8,
                              .rails = 1,
                              .status = kind == IBSHIFT_HELLO_BYE ? -ECONNRESET : 0,
                              .rail = {{.qpn = 4711, .psn = 1}}};

    ibshift_nv_ud_send(to, &h);
}

static void forge_all(struct ranks *r, uint8_t kind)
{
    struct ibshift_connection *other = ibshift_nv_peer(nv_of(r), 1);

    forge(r, kind, 1, other->card.incarnation);
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        forge(r, kind, 100 + i, 0);
    }
    forge(r, kind, 3, 0); /* of the job, and with another incarnation */
}

/* An honest message behind them: when it is there, the datagrams have been looked at. */
static int datagrams(struct ranks *r)
{
    static const uint8_t kinds[] = {IBSHIFT_HELLO_CONNECT, IBSHIFT_HELLO_BYE};

    for (uint32_t i = 0; i < 2; i++) {
        if (r->self == 2) {
            forge_all(r, kinds[i]);
        }
        if (r->self == 0 || r->self == 2) {
            pass(r, r->self == 2, r->self == 2 ? 0 : 2, 10 + i);
        }
        ranks_barrier(r, (int)(2 * i));
        if (r->self < 2) {
            pass(r, r->self == 0, (uint32_t)!r->self, 20 + i);
            pass(r, r->self == 1, (uint32_t)!r->self, 30 + i);
        }
        ranks_barrier(r, (int)(2 * i + 1));
    }
    if (r->self == 0 && nv_of(r)->connection_count != 2) {
        ranks_fail(r, "%u connections instead of 2", nv_of(r)->connection_count);
    }
    return 0;
}

/* It says of processes that the job does not have that they do not answer. */
static int hearsay(struct ranks *r)
{
    for (uint32_t i = 0; r->self == 1 && i < DATAGRAMS; i++) {
        const struct ibshift_net_cause why = {.peer = 100 + i, .status = -ETIMEDOUT};

        ibshift_net_give_up(r->net, 100 + i, &why);
        ibshift_net_abort(r->net, 0, 100 + i, 1);
    }
    pass(r, r->self == 1, (uint32_t)!r->self, 10);
    pass(r, r->self == 0, (uint32_t)!r->self, 20);
    if (r->self == 0 && nv_of(r)->connection_count != 1) {
        ranks_fail(r, "%u connections instead of 1", nv_of(r)->connection_count);
    }
    return 0;
}

static const struct test_case cases[] = {
    {"long_record", long_record, 2, 0, 0, EAGER},   {"long_message", long_message, 2, 0, 0, EAGER},
    {"double_piece", double_piece, 2, 0, 0, EAGER}, {"closed_ring", closed_ring, 2, 0, 0, EAGER},
    {"late_data", late_data, 2, 0, 0, EAGER},       {"datagrams", datagrams, 4, 0, 0, EAGER},
    {"hearsay", hearsay, 2, 0, 0, EAGER},           {"late_pieces", late_pieces, 2, 0, 0, EAGER},
};

int main(int argc, char **argv)
{
    return test_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}

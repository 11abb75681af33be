/*
 * Messages that are tried, not posted: a short one straight into the peer's ring, the next record of
 * our own ring straight to who waits for it. All that is not as usual is left to those who know it.
 */
#include <errno.h>

#include "net/verbs/inside.h"

enum { KIND_SHIFT = 48 }; /* kind and flags in the third word of a header */

/* Of a message that nobody may be waiting for, when there is nothing else to say. */
static const uint64_t usual = IBSHIFT_WIRE_DATA | (uint64_t)IBSHIFT_WIRE_UNASKED << 8;

static inline uint64_t second_word(uint32_t tag, size_t length)
{
    return tag | (uint64_t)length << 32;
}

/* Nothing waits before it, nobody has asked for anything, and there is room. */
static inline bool is_usual(const struct ibshift_net_verbs *nv, const struct ibshift_connection *c,
                            uint32_t lines, size_t length)
{
    const struct ibshift_rail *rail = &c->rail[0];

    return c->state == IBSHIFT_CONNECTION_READY &&
           ((uintptr_t)c->ready.first | (uintptr_t)c->waiting.first | c->out.grants |
            nv->net.given_up->peer_count | c->in.ring_asked) == 0 &&
           length + sizeof(struct ibshift_wire) <= rail->plain_bytes &&
           (int32_t)(rail->plain_until - rail->posted) > 0 && nv->requests * 2 < nv->cq_room &&
           c->out.ring_address != 0 &&
           c->out.ring - c->out.ring_used > IBSHIFT_RING_LINES / 4 + lines;
}

/* The payload goes before the header; the fingerprint. */
static inline uint32_t put_payload(uint8_t *end, uint64_t head, const void *buffer, size_t length,
                                   bool is_ordered)
{
    uint64_t data;

    if (length == sizeof(data)) {
        data = ibshift_fingerprint_word(buffer);
        memcpy(end - sizeof(data), &data, sizeof(data));
    } else if (length > 0 && !is_ordered) {
        data = ibshift_fingerprint_copy(end - length, buffer, length);
    } else {
        ibshift_nv_copy(end - length, buffer, length);
        return (uint32_t)(head >> 32);
    }
    return is_ordered ? (uint32_t)(head >> 32) : ibshift_wire_check_data(head, data);
}

bool ibshift_nv_try_send(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         const void *buffer, size_t length)
{
    struct ibshift_connection *c = (struct ibshift_connection *)channel;
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_nv_plain *plain = &nv->plain;
    uint8_t *header = plain->record + sizeof(plain->record) - sizeof(struct ibshift_wire);
    uint32_t lines = ibshift_ring_lines((uint32_t)length), ring_limit = ibshift_ring_limit(c);
    struct ibshift_wire_words head;

    if (!is_usual(nv, c, lines, length)) {
        return ibshift_nv_try_send_rarely(channel, comm_seq, tag, buffer, length);
    }
    head.of[0] = comm_seq;
    head.of[1] = second_word(tag, length);
    head.of[2] = (uint16_t)c->in.slots | (uint32_t)c->in.quota << 16 |
                 ((uint16_t)ring_limit | usual << 16) << 32;
    head.of[3] = (uint64_t)ibshift_ring_mark(c->out.ring_used, c->out.ring_seed) << 32;
    head.of[3] |=
        put_payload(header, ibshift_wire_check_head(&head), buffer, length, c->out.is_ordered);
    memcpy(header, &head.of[0], sizeof(uint64_t)); /* one by one, so that they stay in registers */
    memcpy(header + 8, &head.of[1], sizeof(uint64_t));
    memcpy(header + 16, &head.of[2], sizeof(uint64_t));
    memcpy(header + 24, &head.of[3], sizeof(uint64_t));
    plain->sge.addr = (uintptr_t)header - length;
    plain->sge.length = (uint32_t)(sizeof(head) + length);
    plain->request.wr.rdma.remote_addr =
        c->out.ring_address + ibshift_ring_end(c->out.ring_used) - sizeof(head) - length;
    plain->request.wr.rdma.rkey = c->out.ring_key;
    if (!ibshift_rail_post_plain(nv, &c->rail[0], &plain->request)) {
        return false;
    }
    c->out.ring_used += lines;
    nv->stats.ring++;
    nv->stats.bytes += length;
    c->in.slots_told = c->in.slots;
    c->in.quota_told = c->in.quota;
    c->in.ring_told = ring_limit;
    return true;
}

/* Whether it is there, and then it is copied. */
static inline bool take_payload(void *buffer, const uint8_t *header, size_t length, uint64_t head,
                                uint32_t check, bool is_ordered)
{
    uint64_t data;

    if (length == 0 || is_ordered) {
        if ((uint32_t)(head >> 32) != check) {
            return false;
        }
        ibshift_nv_copy(buffer, header - length, length);
        return true;
    }
    if (length == sizeof(data)) {
        data = __atomic_load_n((const uint64_t *)(const void *)(header - sizeof(data)),
                               __ATOMIC_RELAXED);
        memcpy(buffer, &data, sizeof(data));
    } else {
        data = ibshift_fingerprint_copy(buffer, header - length, length);
    }
    return ibshift_wire_check_data(head, data) == check;
}

/* What the header tells of the limits of what we send. */
static inline void note_limits(struct ibshift_connection *c, uint64_t limits)
{
    if (c->out.heard != (uint32_t)limits) {
        c->out.heard = (uint32_t)limits;
        ibshift_limit_advance(&c->out.slots, (uint16_t)limits);
        ibshift_limit_advance(&c->out.quota, (uint16_t)(limits >> 16));
    }
    if (c->out.ring_address != 0) {
        ibshift_limit_advance(&c->out.ring, (uint16_t)(limits >> 32));
    }
}

/* A message that is not posted is in no table, so nothing else can be meant by its key. */
bool ibshift_nv_try_recv(struct ibshift_net_channel *channel, uint64_t comm_seq, uint32_t tag,
                         void *buffer, size_t length)
{
    struct ibshift_connection *c = (struct ibshift_connection *)channel;
    const struct ibshift_ring *ring = c->in.ring;
    struct ibshift_wire_words head;
    uint32_t lines = ibshift_ring_lines((uint32_t)length);

    if (ring != NULL && (c->status | c->in.ring_asked | ring->is_closing) == 0) {
        const uint8_t *end = ring->data + ibshift_ring_end(c->in.ring_head);
        const uint64_t *words = (const uint64_t *)(const void *)end - 4;

        head.of[3] = __atomic_load_n(words + 3, __ATOMIC_ACQUIRE);
        head.of[2] = __atomic_load_n(words + 2, __ATOMIC_RELAXED);
        head.of[1] = __atomic_load_n(words + 1, __ATOMIC_RELAXED);
        head.of[0] = __atomic_load_n(words, __ATOMIC_RELAXED);
        if (head.of[3] >> 32 == ibshift_ring_mark(c->in.ring_head, ring->seed) &&
            head.of[0] == comm_seq && head.of[1] == second_word(tag, length) &&
            head.of[2] >> KIND_SHIFT == usual &&
            take_payload(buffer, (const uint8_t *)words, length, ibshift_wire_check_head(&head),
                         (uint32_t)head.of[3], ring->is_ordered)) {
            note_limits(c, head.of[2]);
            c->in.recent++;
            ibshift_nv_record_taken(c, ring, lines);
            return true;
        }
    }
    return ibshift_nv_try_recv_rarely(channel, comm_seq, tag, buffer, length);
}

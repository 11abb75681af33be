/* The handshake over datagrams: its wire format and its states, without any device. */
#include <errno.h>
#include <string.h>

#include "net/verbs/hello.h"

static const uint64_t first_pause = 2 * 1000 * 1000;      /* ns */
static const uint64_t longest_pause = 1000 * 1000 * 1000; /* ns */

void ibshift_hello_encode(const struct ibshift_hello *hello, void *wire)
{
    struct ibshift_hello h = *hello;

    h.magic = IBSHIFT_HELLO_MAGIC;
    h.version = IBSHIFT_HELLO_VERSION;
    memcpy(wire, &h, sizeof(h));
}

static int is_in_range(const struct ibshift_hello *h)
{
    if (h->kind < IBSHIFT_HELLO_CONNECT || h->kind > IBSHIFT_HELLO_GONE || h->status > 0) {
        return 0;
    }
    if (h->kind == IBSHIFT_HELLO_CONNECT && h->rails < 1) {
        return 0;
    }
    if (h->rails > IBSHIFT_PORTS_MAX || h->path > IBSHIFT_PATH_MAX || h->from_peer == h->to_peer) {
        return 0;
    }
    for (int i = 0; i < h->rails; i++) {
        if (h->rail[i].qpn >= 1u << 24 || h->rail[i].psn >= 1u << 24) {
            return 0;
        }
    }
    return 1;
}

int ibshift_hello_decode(const void *wire, size_t size, struct ibshift_hello *hello)
{
    struct ibshift_hello h;
    if (size < sizeof(h)) {
        return -EPROTO;
    }
    memcpy(&h, wire, sizeof(h));
    if (h.magic != IBSHIFT_HELLO_MAGIC || h.version != IBSHIFT_HELLO_VERSION) {
        return -EPROTO;
    }
    if (!is_in_range(&h)) {
        return -EINVAL;
    }
    *hello = h;
    return 0;
}

unsigned ibshift_handshake_begin(struct ibshift_handshake *h, uint64_t now)
{
    if (h->is_begun) {
        return 0;
    }
    h->is_begun = 1;
    h->next = now + first_pause;
    return IBSHIFT_SHAKE_SEND;
}

unsigned ibshift_handshake_receive(struct ibshift_handshake *h, uint8_t flags, bool is_second,
                                   uint64_t now)
{
    unsigned todo = 0;
    int was_done = ibshift_handshake_is_done(h);

    if (!h->is_begun) {
        h->is_begun = 1;
        h->next = now + first_pause;
    }
    if (!h->has_theirs && (!is_second || (flags & IBSHIFT_HELLO_HAVE))) {
        h->has_theirs = 1;
        h->tries = 0;
        todo |= IBSHIFT_SHAKE_CONNECT;
    }
    if (flags & IBSHIFT_HELLO_HAVE) {
        h->they_have_mine = 1;
    }
    if (flags & IBSHIFT_HELLO_WANT) {
        todo |= IBSHIFT_SHAKE_SEND;
    }
    if (!was_done && ibshift_handshake_is_done(h)) {
        todo |= IBSHIFT_SHAKE_READY;
    }
    return todo;
}

unsigned ibshift_handshake_tick(struct ibshift_handshake *h, uint64_t now, uint32_t noise)
{
    if (!h->is_begun || ibshift_handshake_is_done(h) || now < h->next) {
        return 0;
    }
    uint64_t pause = first_pause << (h->tries < 9 ? ++h->tries : 9);
    if (pause > longest_pause) {
        pause = longest_pause;
    }
    h->next = now + pause + pause / 4 * (noise % 256) / 256;
    return IBSHIFT_SHAKE_SEND;
}

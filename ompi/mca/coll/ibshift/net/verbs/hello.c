/* The handshake over datagrams: its wire format and its states, without any device. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "net/verbs/hello.h"

static const uint64_t first_pause = 2 * 1000 * 1000;      /* ns */
static const uint64_t longest_pause = 1000 * 1000 * 1000; /* ns */

static void swap_all(struct ibshift_hello *h)
{
    /* le..toh and htole.. are the same exchange of bytes */
    h->magic = htole32(h->magic);
    h->version = htole16(h->version);
    h->from_incarnation = htole64(h->from_incarnation);
    h->to_incarnation = htole64(h->to_incarnation);
    h->from_peer = htole32(h->from_peer);
    h->to_peer = htole32(h->to_peer);
    h->word_address = htole64(h->word_address);
    h->word_key = htole32(h->word_key);
    h->max_eager = htole32(h->max_eager);
    h->credits = htole16(h->credits);
    h->quota = htole16(h->quota);
    h->status = (int32_t)htole32((uint32_t)h->status);
    h->age = htole32(h->age);
    for (int i = 0; i < IBSHIFT_PORTS_MAX; i++) {
        h->rail[i].qpn = htole32(h->rail[i].qpn);
        h->rail[i].psn = htole32(h->rail[i].psn);
        h->rail[i].ece_vendor = htole32(h->rail[i].ece_vendor);
        h->rail[i].ece_options = htole32(h->rail[i].ece_options);
    }
}

void ibshift_hello_encode(const struct ibshift_hello *hello, void *wire)
{
    struct ibshift_hello le = *hello;
    le.magic = IBSHIFT_HELLO_MAGIC;
    le.version = IBSHIFT_HELLO_VERSION;
    swap_all(&le);
    memcpy(wire, &le, sizeof(le));
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
    swap_all(&h);
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

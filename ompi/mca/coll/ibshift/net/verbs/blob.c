/* The address card of a process, and which ports of two processes reach each other. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "net/verbs/blob.h"
#include "net/verbs/choice.h"

void ibshift_verbs_blob_encode(const struct ibshift_verbs_blob *blob, void *wire)
{
    struct ibshift_verbs_blob b = *blob;

    b.magic = IBSHIFT_BLOB_MAGIC;
    b.version = IBSHIFT_BLOB_VERSION;
    memcpy(wire, &b, sizeof(b));
}

int ibshift_verbs_blob_decode(const void *wire, size_t size, struct ibshift_verbs_blob *blob)
{
    struct ibshift_verbs_blob b;

    if (size < sizeof(b)) {
        return -EPROTO;
    }
    memcpy(&b, wire, sizeof(b));
    if (b.magic != IBSHIFT_BLOB_MAGIC || b.version != IBSHIFT_BLOB_VERSION) {
        return -EPROTO;
    }
    if (b.ports < 1 || b.ports > IBSHIFT_PORTS_MAX || b.ud_qpn >= 1u << 24) {
        return -EINVAL;
    }
    b.hostname[sizeof(b.hostname) - 1] = '\0';
    for (int i = 0; i < b.ports; i++) {
        if (b.address[i].mtu < 1 || b.address[i].mtu > 5 || b.address[i].lmc > 7) {
            return -EINVAL;
        }
    }
    *blob = b;
    return 0;
}

/* Greater is better; 0: no key. */
static uint32_t rank_of_key(uint16_t key)
{
    uint32_t partition = key & IBSHIFT_PKEY_PARTITION;
    uint32_t is_full = (key & IBSHIFT_PKEY_FULL) != 0;
    uint32_t is_default = partition == IBSHIFT_PKEY_PARTITION;

    return partition == 0
               ? 0
               : is_full << 17 | is_default << 16 | (IBSHIFT_PKEY_PARTITION - partition + 1);
}

int ibshift_pkey_choose(const uint16_t *table, int n, uint16_t wanted)
{
    uint32_t most = 0;
    int best = -ENOENT;

    for (int i = 0; i < n; i++) {
        uint32_t rank = rank_of_key(table[i]);
        bool fits = wanted == 0 || ((table[i] ^ wanted) & IBSHIFT_PKEY_PARTITION) == 0;
        if (fits && rank > most) {
            most = rank;
            best = i;
        }
    }
    return best;
}

int ibshift_verbs_can_reach(const struct ibshift_verbs_address *a,
                            const struct ibshift_verbs_address *b)
{
    if (a->is_ethernet != b->is_ethernet) {
        return 0;
    }
    if (!a->is_ethernet) {
        return memcmp(a->gid, b->gid, 8) == 0 && a->lid != 0 && b->lid != 0 &&
               ((a->pkey ^ b->pkey) & IBSHIFT_PKEY_PARTITION) == 0 &&
               ((a->pkey | b->pkey) & IBSHIFT_PKEY_FULL) != 0;
    }
    return a->gid_type == b->gid_type && ibshift_gid_is_ipv4(a->gid) == ibshift_gid_is_ipv4(b->gid);
}

static int is_gid_of(const uint8_t gid[16], const uint8_t *route)
{
    enum { IPV4_AT = 20, IPV4_SOURCE = 32, SOURCE = 8 };

    if (ibshift_gid_is_ipv4(gid) && route[IPV4_AT] >> 4 == 4 &&
        memcmp(gid + 12, route + IPV4_SOURCE, 4) == 0) {
        return 1;
    }
    return memcmp(gid, route + SOURCE, 16) == 0;
}

int ibshift_verbs_is_from(const struct ibshift_verbs_blob *card,
                          const struct ibshift_verbs_source *source)
{
    const struct ibshift_verbs_address *a = &card->address[0];

    if (card->ports == 0 || source->qpn != card->ud_qpn) {
        return 0;
    }
    if (a->is_ethernet) {
        return source->route == NULL || is_gid_of(a->gid, source->route);
    }
    return source->lid >> a->lmc == a->lid >> a->lmc;
}

/* The partner of port i: the same place if it is free and fits, else the first that does; -1 =
 * none. */
static int partner(const struct ibshift_verbs_address *a, const struct ibshift_verbs_blob *b, int i,
                   unsigned used)
{
    if (i < b->ports && !(used & 1u << i) && ibshift_verbs_can_reach(a, &b->address[i])) {
        return i;
    }
    for (int j = 1; j < b->ports; j++) {
        if (!(used & 1u << j) && ibshift_verbs_can_reach(a, &b->address[j])) {
            return j;
        }
    }
    return -1;
}

int ibshift_verbs_pair_ports(const struct ibshift_verbs_blob *mine,
                             const struct ibshift_verbs_blob *theirs,
                             uint8_t my_port[IBSHIFT_PORTS_MAX],
                             uint8_t their_port[IBSHIFT_PORTS_MAX])
{
    int is_first = mine->incarnation <= theirs->incarnation;
    const struct ibshift_verbs_blob *a = is_first ? mine : theirs;
    const struct ibshift_verbs_blob *b = is_first ? theirs : mine;
    uint8_t *port_a = is_first ? my_port : their_port;
    uint8_t *port_b = is_first ? their_port : my_port;
    unsigned used = 0;
    int pairs = 0;

    for (int i = 0; i < a->ports; i++) {
        int j = partner(&a->address[i], b, i, used);
        if (i == 0 && j != 0) {
            return 0;
        }
        if (j >= 0) {
            port_a[pairs] = (uint8_t)i;
            port_b[pairs++] = (uint8_t)j;
            used |= 1u << j;
        }
    }
    return pairs;
}

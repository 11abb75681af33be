/* The address card of a process, and which ports of two processes reach each other. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "net/verbs/blob.h"
#include "net/verbs/gid.h"

void ibshift_verbs_blob_encode(const struct ibshift_verbs_blob *blob, void *wire)
{
    struct ibshift_verbs_blob le = *blob;
    le.magic = htole32(IBSHIFT_BLOB_MAGIC);
    le.version = htole16(IBSHIFT_BLOB_VERSION);
    le.ports = htole16(blob->ports);
    le.incarnation = htole64(blob->incarnation);
    le.host = htole64(blob->host);
    le.ud_qpn = htole32(blob->ud_qpn);
    le.ud_qkey = htole32(blob->ud_qkey);
    for (int i = 0; i < IBSHIFT_PORTS_MAX; i++) {
        le.address[i].lid = htole16(blob->address[i].lid);
    }
    memcpy(wire, &le, sizeof(le));
}

int ibshift_verbs_blob_decode(const void *wire, size_t size, struct ibshift_verbs_blob *blob)
{
    struct ibshift_verbs_blob b;
    if (size < sizeof(b)) {
        return -EPROTO;
    }
    memcpy(&b, wire, sizeof(b));
    b.magic = le32toh(b.magic);
    b.version = le16toh(b.version);
    b.ports = le16toh(b.ports);
    b.incarnation = le64toh(b.incarnation);
    b.host = le64toh(b.host);
    b.ud_qpn = le32toh(b.ud_qpn);
    b.ud_qkey = le32toh(b.ud_qkey);
    if (b.magic != IBSHIFT_BLOB_MAGIC || b.version != IBSHIFT_BLOB_VERSION) {
        return -EPROTO;
    }
    if (b.ports < 1 || b.ports > IBSHIFT_PORTS_MAX || b.ud_qpn >= 1u << 24) {
        return -EINVAL;
    }
    b.hostname[sizeof(b.hostname) - 1] = '\0';
    for (int i = 0; i < b.ports; i++) {
        b.address[i].lid = le16toh(b.address[i].lid);
        if (b.address[i].mtu < 1 || b.address[i].mtu > 5 || b.address[i].lmc > 7) {
            return -EINVAL;
        }
    }
    *blob = b;
    return 0;
}

int ibshift_verbs_can_reach(const struct ibshift_verbs_address *a,
                            const struct ibshift_verbs_address *b)
{
    if (a->is_ethernet != b->is_ethernet) {
        return 0;
    }
    if (!a->is_ethernet) {
        return memcmp(a->gid, b->gid, 8) == 0 && a->lid != 0 && b->lid != 0;
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

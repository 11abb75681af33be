#ifndef IBSHIFT_NET_VERBS_BLOB_H
#define IBSHIFT_NET_VERBS_BLOB_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "net/verbs/choice.h"

/*
 * What a process tells all others about itself before anyone connects: goes through the
 * launcher's key-value store, little endian.
 */
enum { IBSHIFT_BLOB_MAGIC = 0x66534249, IBSHIFT_BLOB_VERSION = 3 };

/* A partition key names a partition and says whether the port is a full member there. Limited
   members reach full ones alone. */
enum { IBSHIFT_PKEY_FULL = 0x8000, IBSHIFT_PKEY_PARTITION = 0x7fff };

struct ibshift_verbs_address {
    uint8_t gid[16]; /* on InfiniBand the first 8 bytes are the subnet's prefix */
    uint16_t lid;
    uint8_t lmc;
    uint8_t mtu; /* as in enum ibv_mtu */
    uint8_t is_ethernet;
    uint8_t gid_type; /* enum ibshift_gid_type */
    uint8_t port;
    uint8_t needs_grh; /* packets to and from it have a global header: virtual functions */
    uint16_t pkey;     /* of IBSHIFT_PKEY_* */
    uint16_t reserved;
};

struct ibshift_verbs_blob {
    uint32_t magic;
    uint16_t version;
    uint16_t ports;
    uint64_t incarnation; /* random: tells this process from an earlier one at the same address */
    uint64_t host;        /* the same for all processes of a host */
    uint32_t ud_qpn;
    uint32_t ud_qkey;
    char hostname[32];
    struct ibshift_verbs_address address[IBSHIFT_PORTS_MAX];
};
static_assert(sizeof(struct ibshift_verbs_address) == 28, "part of the wire format");
static_assert(sizeof(struct ibshift_verbs_blob) == 176, "the blob is a wire format");

void ibshift_verbs_blob_encode(const struct ibshift_verbs_blob *blob, void *wire);

/* 0; -EPROTO: of another version or not ours; -EINVAL: out of range. */
int ibshift_verbs_blob_decode(const void *wire, size_t size, struct ibshift_verbs_blob *blob);

/* Where a datagram came from, as its completion and its route header tell. */
struct ibshift_verbs_source {
    uint32_t qpn;
    uint16_t lid;
    const uint8_t *route; /* 40 bytes, or NULL: there is none */
};

/*
 * Whether the process of that card has sent it, from its first port. On Ethernet, where there is no
 * LID, the route header ends with an IPv4 header or is an IPv6 one, with the GID as the source.
 */
int ibshift_verbs_is_from(const struct ibshift_verbs_blob *card,
                          const struct ibshift_verbs_source *source);

/* The index of the key to use in a port's table: the one of partition `wanted` where that is not 0,
   else full membership before limited, the default partition before others, then the lowest number
   (not the lowest index, which differs between ports of one partition). -ENOENT: none. */
int ibshift_pkey_choose(const uint16_t *table, int n, uint16_t wanted);

int ibshift_verbs_can_reach(const struct ibshift_verbs_address *a,
                            const struct ibshift_verbs_address *b);

/*
 * Which of my ports talks to which of theirs; the first pair is that of the first ports, which
 * the handshake uses. Both sides find the same pairs. Returns how many; 0 = unreachable.
 */
int ibshift_verbs_pair_ports(const struct ibshift_verbs_blob *mine,
                             const struct ibshift_verbs_blob *theirs,
                             uint8_t my_port[IBSHIFT_PORTS_MAX],
                             uint8_t their_port[IBSHIFT_PORTS_MAX]);

#endif

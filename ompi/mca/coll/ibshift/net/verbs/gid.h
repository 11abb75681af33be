#ifndef IBSHIFT_NET_VERBS_GID_H
#define IBSHIFT_NET_VERBS_GID_H

#include <stdint.h>

enum ibshift_gid_type {
    IBSHIFT_GID_IB,
    IBSHIFT_GID_ROCE_V1,
    IBSHIFT_GID_ROCE_V2,
};

struct ibshift_gid {
    uint8_t raw[16];
    uint8_t type; /* enum ibshift_gid_type */
    uint32_t index;
};

/* The place in table of the GID to use: the entry with index forced when forced >= 0, otherwise on
   Ethernet RoCE v2 before v1, then IPv4-mapped, then routable IPv6, then link-local, then the
   lowest index; on InfiniBand the lowest index. -ENOENT when nothing fits. Empty GIDs are never
   chosen. */
int ibshift_gid_choose(const struct ibshift_gid *table, int n, int is_ethernet, int forced);

int ibshift_gid_is_ipv4(const uint8_t raw[16]);

/* Text of a GID as an address; out holds at least 46 bytes. */
const char *ibshift_gid_text(const uint8_t raw[16], char *out);

#endif

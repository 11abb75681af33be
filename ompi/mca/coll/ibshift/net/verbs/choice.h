#ifndef IBSHIFT_NET_VERBS_CHOICE_H
#define IBSHIFT_NET_VERBS_CHOICE_H

#include <stddef.h>
#include <stdint.h>

enum { IBSHIFT_PORTS_MAX = 4, IBSHIFT_DEVICE_NAME = 64 };

/* One port of one device as the choice sees it. */
struct ibshift_port_candidate {
    char device[IBSHIFT_DEVICE_NAME];
    uint8_t port;
    uint8_t is_active; /* and fit to use */
    uint8_t is_ethernet;
    uint32_t rate;          /* Mbit/s */
    uint32_t distance;      /* 0 = nearest to this process */
    uint64_t subnet_prefix; /* InfiniBand only */
    uint8_t lacks_srq;      /* its device has no shared receive queues */
};

/* Checks the text of a list "name[:port],..."; error points to the first place that does not parse.
 * 0 or -EINVAL. */
int ibshift_port_list_check(const char *list, const char **error);

/* Chooses at most max of n candidates and writes their places to out, best first; returns how many.
   With a list: what it names, in its order. Without: the nearest device's fastest active ports, and
   others as near, as fast and on the same network. Inactive ports are never chosen. */
int ibshift_port_choose(const struct ibshift_port_candidate *c, int n, const char *list, int max,
                        int *out);

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

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

#endif

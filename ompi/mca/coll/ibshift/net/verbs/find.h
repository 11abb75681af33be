#ifndef IBSHIFT_NET_VERBS_FIND_H
#define IBSHIFT_NET_VERBS_FIND_H

#include "net/verbs/device.h"

/* All ports of the devices in list; the caller frees *out. Returns how many or -ENOMEM. */
int ibshift_ports_find(struct ibv_device **list, void *topology,
                       struct ibshift_port_candidate **out);

/* Appends a port to verbs and its address to the blob. -ENODEV: it does not open; -ENOENT: it has
   no GID that fits. */
int ibshift_port_open(struct ibshift_verbs *verbs, struct ibv_device **list,
                      const struct ibshift_port_candidate *c,
                      const struct ibshift_verbs_options *options);

#endif

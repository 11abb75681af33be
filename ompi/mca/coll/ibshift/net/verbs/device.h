#ifndef IBSHIFT_NET_VERBS_DEVICE_H
#define IBSHIFT_NET_VERBS_DEVICE_H

/* The opened devices, shared by the files of the verbs net. */

#include <infiniband/verbs.h>

#include "net/verbs/verbs.h"
#include "net/verbs/blob.h"

struct ibshift_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
};

struct ibshift_port {
    struct ibshift_device *device;
    struct ibv_port_attr attr;
    uint8_t number;
    uint8_t gid_index;
    uint16_t pkey_index;
};

/* Ports of one device share it; ports[0] carries handshakes and short messages. */
struct ibshift_verbs {
    struct ibshift_device devices[IBSHIFT_PORTS_MAX];
    struct ibshift_port ports[IBSHIFT_PORTS_MAX];
    uint64_t registered;          /* regions, ever */
    size_t regions, regions_most; /* bytes of the users' that are registered; 0: no limit but
                                     the system's */
    int device_count;
    int port_count;
    uint8_t service_level;
    uint8_t traffic_class;
    struct ibv_cq *ud_cq;
    struct ibv_qp *ud_qp;
    struct ibshift_verbs_blob blob;
    uint8_t card[sizeof(struct ibshift_verbs_blob)];
};

enum {
    IBSHIFT_UD_DEPTH = 128,
    IBSHIFT_REFILL = 16,                       /* receives are posted in such batches */
    IBSHIFT_RECEIVES_MIN = 3 * IBSHIFT_REFILL, /* two may be missing, one is for messages */
};

/* 0 = all processors of the process are near the device's, then rising. */
uint32_t ibshift_cpuset_distance(void *topology, const void *device_cpus, const void *own_cpus);

/* All ports of the devices in list; the caller frees *out. Returns how many or -ENOMEM. */
int ibshift_ports_find(struct ibv_device **list, void *topology,
                       struct ibshift_port_candidate **out);

#endif

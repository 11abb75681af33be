#ifndef IBSHIFT_NET_VERBS_VERBS_H
#define IBSHIFT_NET_VERBS_VERBS_H

/*
 * net.h over libibverbs. In this order:
 *   ibshift_verbs_open()        finds the ports; its blob goes to all processes of the job
 *   ibshift_net_verbs_create()  the endpoint: memory, queues; connections come with the traffic
 * and back: ibshift_net_destroy(), ibshift_verbs_close().
 */

#include <stdbool.h>

#include "net/net.h"
#include "net/verbs/choice.h"

struct ibshift_verbs; /* the opened ports of this process */
struct ibv_mr;

struct ibshift_verbs_options {
    const char *ports;  /* "name[:port],..."; NULL or "": the nearest */
    int max_ports;      /* 1..IBSHIFT_PORTS_MAX */
    int gid_index;      /* -1: chosen, see blob.h */
    int service_level;  /* 0..15 */
    int traffic_class;  /* 0..255, of the global header */
    int pkey;           /* partition key, with or without its upper bit; 0: see blob.h */
    bool survives_fork; /* where it can be had: memory stays safe when the program forks */
    void *topology;     /* hwloc_topology_t of this machine; NULL: every port is as near */
};

/*
 * 0; -ENODEV: no port that fits, -EINVAL: an option is wrong, or another errno. Then error holds
 * one line that says why; whether anyone wants to read it is the caller's affair.
 */
int ibshift_verbs_open(const struct ibshift_verbs_options *options, struct ibshift_verbs **verbs,
                       char *error, size_t error_size);

/* The card that every other process needs to reach this one; lives as long as verbs. */
const void *ibshift_verbs_card(const struct ibshift_verbs *verbs, size_t *size);

/* "mlx5_0:1, mlx5_1:1": for people. */
void ibshift_verbs_describe(const struct ibshift_verbs *verbs, char *text, size_t size);

/* The subnet of the first port, as the port itself says: no management datagram is sent. All zero on
 * Ethernet. */
struct ibshift_verbs_subnet {
    uint64_t prefix;
    uint16_t sm_lid; /* where the subnet manager was when it last set the port */
};
struct ibshift_verbs_subnet ibshift_verbs_subnet(const struct ibshift_verbs *verbs);

/* No bus is behind the first port's device: a driver does its work on the host's processors. */
bool ibshift_verbs_is_software(const struct ibshift_verbs *verbs);

/* What measured costs are kept under: the device without its number, with vendor and part, and the
 * port's rate. */
void ibshift_verbs_kind(const struct ibshift_verbs *verbs, char *device, size_t size,
                        uint32_t *mbps);

/* As the first port's device tells it; may be empty. */
void ibshift_verbs_firmware(const struct ibshift_verbs *verbs, char *text, size_t size);

/* Processors of this machine that processes may use; topology as above. At least 1. */
uint32_t ibshift_processors_count(void *topology);

void ibshift_verbs_close(struct ibshift_verbs *verbs);

/* Memory that the devices of verbs may reach; the owner of the cache embeds it where it likes. */
struct ibshift_region {
    struct ibshift_verbs *verbs;
    void *base;
    size_t length;
    struct ibv_mr *mr[IBSHIFT_PORTS_MAX]; /* one a device */
    uint64_t number;                      /* of all those of verbs, from 1 */
};

/* 0 or a negative errno; -ENOMEM: a limit (locked memory, map count, the device's own). */
int ibshift_region_register(struct ibshift_verbs *verbs, void *base, size_t length,
                            struct ibshift_region *region);
int ibshift_region_deregister(struct ibshift_region *region);

/* Where regions come from: a cache that knows when memory goes away, or NULL: each use registers.
 */
struct ibshift_region_cache {
    void *context;
    int (*get)(void *context, void *base, size_t length, struct ibshift_region **region);
    void (*put)(void *context, struct ibshift_region *region);
    bool (*finds_again)(
        void); /* whether what was put and is got again is the same, while it stays mapped; NULL: not */
};

struct ibshift_verbs_address; /* blob.h */
struct ibshift_net_verbs_options {
    uint32_t self;  /* this process as a peer */
    uint32_t peers; /* of the job: their numbers are below this */
    void *context;  /* for card() and say() */
    /* Copies the card of a peer; returns its full size or a negative errno. */
    int (*card)(void *context, uint32_t peer, void *card, size_t size);
    /*
     * Which of the LIDs of the peer's first port data goes to, as what is added to its LID; asked
     * once, when the connection is made. NULL, or a port without so many: 0.
     */
    unsigned (*path)(void *context, uint32_t peer);
    /*
     * The service level of what goes from one of our ports to one of a peer's, by the LID that it is
     * sent to; asked when connections and addresses are made. -1, or NULL: that of the options of
     * the ports.
     */
    int (*service_level)(void *context, const struct ibshift_verbs_address *from,
                         const struct ibshift_verbs_address *to, unsigned path);
    void (*say)(void *context, const char *line); /* a warning for people; may be NULL */
    struct ibshift_net_comms comms;
    /*
     * Whether the peer's process is known to have ended: how it is known, or NULL. Asked again and
     * again while a connection is not answered. May be NULL.
     */
    const char *(*has_ended)(void *context, uint32_t peer);
    const struct ibshift_region_cache *cache; /* may be NULL; outlives the net */
    size_t memory;    /* bytes that are registered for good, whatever the number of peers */
    size_t max_eager; /* the same on all peers */
    uint32_t queue;   /* depth of a connection's send queue */
    uint32_t inlined; /* bytes asked for inside of a work request */
    uint32_t rings;   /* peers that write into a ring of their own; 0: none */
    int timeout;      /* exponent: 4.096 us * 2^timeout until a packet is sent again */
    int retry;        /* 0..7 */
    bool
        is_tolerant; /* peers may fail and others go on: long messages take no grant that only the end of
                         the connection takes back, but are copied */
    bool adaptive; /* immediate data, which keeps the static route, goes behind the data alone */
};

extern const struct ibshift_net_verbs_options ibshift_net_verbs_defaults;

/* The least that options.memory may be with the other options. */
size_t ibshift_net_verbs_memory_min(const struct ibshift_net_verbs_options *options);

/* 0, with a line in error when less memory could be registered than was asked for, else with none;
   or a negative errno with a line in error. */
int ibshift_net_verbs_create(struct ibshift_verbs *verbs,
                             const struct ibshift_net_verbs_options *options,
                             struct ibshift_net **net, char *error, size_t error_size);

/* Counters for people and tests. */
struct ibshift_net_verbs_stats {
    uint64_t connections, eager, ring, rendezvous; /* the last three: messages sent */
    uint64_t control;                              /* the net's own messages */
    uint64_t words;                                /* limits told without a message */
    uint64_t held, pulled, copied, probes;
    uint64_t bytes, registered; /* registered: by the net itself, now */
    uint64_t pieces;            /* writes of long messages that go in pieces */
    uint64_t empty;             /* writes of immediate data alone */
    uint64_t standing;          /* long messages sent with a grant that stood */
    uint64_t casts, repairs; /* datagrams to multicast groups; those that were sent again to one */
};

void ibshift_net_verbs_stats(struct ibshift_net *net, struct ibshift_net_verbs_stats *stats);

#endif

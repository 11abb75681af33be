/*
 * The fabric file of a job: the graph with its tables, and the order of its hosts that all-to-alls go
 * along. Each process reads it for itself; equal identities say that all have the same.
 */
#ifndef IBSHIFT_JOB_FABRIC_FILE_H
#define IBSHIFT_JOB_FABRIC_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "fabric/graph/fabric.h"

/* What the user asked for. */
enum ibshift_order_wish {
    IBSHIFT_ORDER_AUTO,
    IBSHIFT_ORDER_RANK,
    IBSHIFT_ORDER_ROUTING,
    IBSHIFT_ORDER_SCHEDULE,
    IBSHIFT_ORDER_FILE
};

struct ibshift_fabric_file {
    struct ibshift_fabric *fabric; /* NULL: there is none */
    enum ibshift_order_wish wish;
    uint32_t
        *order; /* the hosts in routing order or in that of the user's file; place keepers too */
    uint32_t order_count;
    uint64_t identity; /* of the fabric, its tables and the order; 0: there is none */
    unsigned ring;     /* the longest of a torus; 0: it is none */
};

/* The subnet that a process is in; 0 where it is not known. */
struct ibshift_subnet {
    const char *host; /* for people */
    uint64_t prefix;
    uint16_t sm_lid;
};

/* auto, rank, routing, schedule, or the name of a file. */
enum ibshift_order_wish ibshift_order_wish_of(const char *text);

/*
 * Reads path, and the order of that text. subnet NULL: it is not compared. prevents_loop: the process's
 * service level does, where the file lacks levels; ranks that differ in it have different files. 0,
 * -ESTALE (of another subnet, or old) or another negative errno; then file is empty. A fabric that routes adaptively
 * has no identity.
 */
int ibshift_fabric_file_read(const char *path, const char *order,
                             const struct ibshift_subnet *subnet, bool prevents_loop,
                             struct ibshift_fabric_file *file, struct ibshift_error *err);
void ibshift_fabric_file_free(struct ibshift_fabric_file *file);

/* The host whose port has this LID and GUID in the file, or IBSHIFT_NO_HOST. */
uint32_t ibshift_fabric_file_host(const struct ibshift_fabric_file *file, uint64_t guid,
                                  uint16_t lid);
/* The same for a host of the job. 0, or -ENOENT: why says in which way the file does not describe it. */
int ibshift_fabric_file_find(const struct ibshift_fabric_file *file, const char *hostname,
                             uint64_t guid, uint16_t lid, uint32_t *host, char *why, size_t size);

/* How many ns a KiB takes the slowest host's cable; 0: the file does not say, or there is none. */
uint64_t ibshift_fabric_file_kib(const struct ibshift_fabric_file *file);

#endif

/*
 * The fabric file of a job: the graph with its tables, and the order of its hosts that all-to-alls
 * go along. Each process reads it for itself; equal identities say that all have the same.
 */
#ifndef IBSHIFT_JOB_FABRIC_FILE_H
#define IBSHIFT_JOB_FABRIC_FILE_H

#include <limits.h>
#include <stdint.h>

#include "fabric/graph/fabric.h"
#include "job/params.h"
#include "net/verbs/blob.h"

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

/*
 * Reads the file that is named, or the administrator's, and the order. subnet NULL: there is no
 * adapter. Ranks whose service levels prevent a loop and such whose levels do not have different
 * files. path: where it was. 0, also when there is none; -ESTALE (of another subnet, or old) or
 * another negative errno, and file is empty.
 */
int ibshift_fabric_file_find(const struct ibshift_params *params,
                             const struct ibshift_subnet *subnet, struct ibshift_fabric_file *file,
                             char path[PATH_MAX], struct ibshift_error *err);
void ibshift_fabric_file_free(struct ibshift_fabric_file *file);

/* The service level of a pair, -1: the file has none. */
int ibshift_fabric_file_level(const struct ibshift_fabric_file *file,
                              const struct ibshift_verbs_address *from,
                              const struct ibshift_verbs_address *to, unsigned path);

/* host_of[i]: the host of the process peers[i]. 0, or -ENOENT, with the reason unless it is of no
 * interest: the same on all processes that look at the same peers. */
int ibshift_fabric_file_hosts(const struct ibshift_fabric_file *file, const uint32_t *peers,
                              uint32_t count, uint32_t *host_of, struct ibshift_error *err);

/* How many ns a KiB takes the slowest host's cable; 0: the file does not say, or there is none. */
uint64_t ibshift_fabric_file_kib(const struct ibshift_fabric_file *file);

#endif

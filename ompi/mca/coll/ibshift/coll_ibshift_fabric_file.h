#ifndef IBSHIFT_COLL_FABRIC_FILE_H
#define IBSHIFT_COLL_FABRIC_FILE_H

/*
 * The fabric file of coll_ibshift_fabric, or the administrator's, and the order of coll_ibshift_order: one a process, read
 * when the component opens, if at all. Each process puts the file's identity on its card, so that
 * all know, without a message, whether all have the same.
 */

#include <stddef.h>
#include <stdint.h>

#include "fabric/graph/fabric.h"
#include "net/verbs/verbs.h"

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

/* Set by open() and close(). */
extern struct ibshift_fabric_file ibshift_fabric_file;

/* A file that is wrong, of another subnet or old is reported; then there is none. */
void ibshift_fabric_file_open(const struct ibshift_verbs_subnet *subnet);
void ibshift_fabric_file_close(void);

/* Which LID of a process's port data goes to, as what is added to its LID; for net_verbs.h. Set
 * before the connection is made, or it has no effect. */
unsigned ibshift_fabric_path(void *context, uint32_t peer);
/* The service level of a pair in the file, -1: it has none; for net_verbs.h. */
int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path);
void ibshift_fabric_set_path(uint32_t peer, uint32_t path);

/* host_of[i]: the host of the process peers[i]. 0, or -ENOENT with the reason in why: the same on
 * all processes that look at the same peers. */
int ibshift_fabric_find_hosts(const uint32_t *peers, uint32_t count, uint32_t *host_of, char *why,
                              size_t size);

/* How many ns a KiB takes the slowest host's cable; 0: the file does not say, or there is none. */
uint64_t ibshift_fabric_file_kib(void);

#endif

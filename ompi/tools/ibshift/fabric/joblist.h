/* Jobs that have run: a line each, as `sacct -n -P -o JobID,ElapsedRaw,NodeList` prints them, or lists of
 * nodes alone. */
#ifndef IBSHIFT_FABRIC_JOBLIST_H
#define IBSHIFT_FABRIC_JOBLIST_H

#include "fabric/graph/fabric.h"

enum { FABRIC_JOBLIST_NODES = 100000 }; /* of one job, at most */

struct fabric_listed {
    const char *where; /* for messages: "FILE:7: job ID", or "FILE:7" */
    const char *name;  /* its ID, or "line 7" */
    double seconds;
    const uint32_t *hosts; /* in the order of the list, none twice */
    uint32_t count;
    const char *stranger; /* the first node that the fabric lacks; NULL: it has all */
};

/* What reads it: 0, or what the functions below end with, which leave err to it then. */
struct fabric_joblist {
    const struct ibshift_fabric *fabric;
    int (*job)(void *context, const struct fabric_listed *job);
    void *context;
};

/* "-": standard input. 0; -EINVAL: a line that is no list of nodes, err has its number; -EEXIST: a node is there twice;
 * -ENOENT: no adapter has a node's name; -ENOMEM, or what the file says. */
int fabric_joblist_load(const char *path, const struct fabric_joblist *to,
                        struct ibshift_error *err);

/* One list of nodes, as node[001-016],login1. 0; -EINVAL or -E2BIG with the reason; or as above. */
int fabric_joblist_nodes(const char *list, const char *where, const struct fabric_joblist *to,
                         struct ibshift_error *err);

#endif

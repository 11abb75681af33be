/* Jobs that have run: a line each, as `sacct -n -P -o JobID,ElapsedRaw,NodeList` prints them, or lists of
 * nodes alone. */
#ifndef IBSHIFT_FABRIC_JOBLIST_H
#define IBSHIFT_FABRIC_JOBLIST_H

#include <stdint.h>

#include "fabric/graph/error.h"

enum { FABRIC_JOBLIST_NODES = 100000 }; /* of one job, at most */

/* What reads it: job() at each line, then node() for each of its nodes, then end() if it has one. Each returns 0, or
 * what fabric_joblist_load() ends with. name: its ID, or "line 7"; where, for messages: "FILE:7: job ID", or "FILE:7". */
struct fabric_joblist {
    void *context;
    int (*job)(void *context, const char *where, const char *name, double seconds);
    int (*node)(void *context, const char *name);
    int (*end)(void *context);
};

/* "-": standard input. 0; -EINVAL: a line that is no list of nodes, err has its number; -ENOMEM, or what the file says. */
int fabric_joblist_load(const char *path, const struct fabric_joblist *to,
                        struct ibshift_error *err);

/* The nodes of one list, as node[001-016],login1: node() for each. 0; -EINVAL or -E2BIG with the reason;
 * or what node() says. */
int fabric_joblist_nodes(const char *list, const struct fabric_joblist *to,
                         struct ibshift_error *err);

#endif

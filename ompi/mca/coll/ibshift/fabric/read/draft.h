/*
 * A fabric while it is being read: nodes and cables as a file names them, by a key of its own (a GUID, an
 * id), kept until the last line has told how many ports a node has and what is joined. Nodes are numbered
 * as they come.
 */
#ifndef IBSHIFT_FABRIC_READ_DRAFT_H
#define IBSHIFT_FABRIC_READ_DRAFT_H

#include "fabric/read/read.h"

struct ibshift_draft_node {
    uint64_t guid;
    char *name;
    unsigned lid, lmc; /* of a switch; 0: not said */
    unsigned ports, line;
    enum ibshift_node_kind kind;
    bool is_described; /* has had a heading of its own */
};

struct ibshift_draft_end {
    uint64_t key;       /* of its node */
    uint64_t guid;      /* of an adapter's port; 0: not said */
    uint64_t port, lid; /* lid of an adapter's port; 0: not said */
    unsigned lmc;
};

struct ibshift_draft_cable {
    struct ibshift_draft_end end[2];
    struct ibshift_rate rate;
    unsigned line;
};

struct ibshift_draft {
    struct ibshift_lines *lines;
    struct ibshift_fabric *fabric;
    struct ibshift_draft_node *nodes;
    struct ibshift_draft_cable *cables;
    uint32_t node_count, cable_count;
    struct ibshift_map64 by_key;
};

/* The node with this key, added when new, with ports up to this one at the least; the name need not end. Good until the next
 * call. NULL: no memory, the lines' err says so. A node is a switch once one line says so. */
struct ibshift_draft_node *ibshift_draft_node(struct ibshift_draft *d, uint64_t key,
                                              enum ibshift_node_kind kind, const char *name,
                                              size_t length, uint64_t port);
int ibshift_draft_join(struct ibshift_draft *d, const struct ibshift_draft_end *near,
                       const struct ibshift_draft_end *far, struct ibshift_rate rate);

/* A port as a row of a report names it: with its switch's name, GUID and LID, or an adapter's with its own GUID. */
struct ibshift_draft_row {
    uint64_t guid, port, lid;
    enum ibshift_node_kind kind;
    const char *name;
    size_t length; /* of the name */
};

int ibshift_draft_add_row(struct ibshift_draft *d, const struct ibshift_draft_row *row);
int ibshift_draft_join_rows(struct ibshift_draft *d, const struct ibshift_draft_row *near,
                            const struct ibshift_draft_row *far, struct ibshift_rate rate);

/* Reads all lines and makes the fabric of them; what: that no node stands for. */
int ibshift_draft_read(struct ibshift_draft *d, int (*take)(void *context), void *context,
                       const char *what);
/* After the last line, all of it into the fabric; rc: of the lines. Frees the draft. */
int ibshift_draft_finish(struct ibshift_draft *d, int rc, const char *what);

#endif

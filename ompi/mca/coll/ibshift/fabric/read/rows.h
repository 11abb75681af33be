/* Nodes and cables as reports of ports name them, gathered until the last row tells what is joined. */
#ifndef IBSHIFT_FABRIC_READ_ROWS_H
#define IBSHIFT_FABRIC_READ_ROWS_H

#include "fabric/read/read.h"

enum ibshift_rows_column { PORT, STATE, WIDTH, SPEED, GUID, REMOTE, LID, NAME, COLUMNS };

struct ibshift_rows_node;
struct ibshift_rows_cable;

struct ibshift_rows {
    struct ibshift_lines *lines;
    struct ibshift_fabric *fabric;
    struct ibshift_error *err;
    struct ibshift_rows_node *nodes;
    struct ibshift_rows_cable *cables;
    uint32_t node_count, cable_count;
    struct ibshift_map64 by_guid;
    uint32_t current; /* the switch whose rows these are; node_count before the first */
    int column[COLUMNS];
    bool has_port_guids; /* adapters are named by their ports' GUIDs, else by their own */
};

/* A port as a row names it: of a switch by the switch's GUID and LID. */
struct ibshift_rows_end {
    uint64_t lid, port, guid;
    enum ibshift_node_kind kind;
    const char *name;
    int length; /* of the name */
};

/* The node of the end, added when new; negative: err. A node is a switch once one row says so. */
int64_t ibshift_rows_add(struct ibshift_rows *d, const struct ibshift_rows_end *end);
int ibshift_rows_join(struct ibshift_rows *d, const struct ibshift_rows_end *near,
                      const struct ibshift_rows_end *far, struct ibshift_rate rate);
/* After the last row: all of it into the fabric. */
int ibshift_rows_finish(struct ibshift_rows *d);
void ibshift_rows_free(struct ibshift_rows *d);

#endif

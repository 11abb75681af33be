/*
 * Sizes that the ranks of a node tell each other before a v-variant that no rank knows all sizes
 * of: its leader those that it passes on, of an all-to-all each rank those from its place on all
 * nodes.
 */
#ifndef IBSHIFT_EXEC_TOLD_H
#define IBSHIFT_EXEC_TOLD_H

#include "exec/op.h"

/* offsets: of all ranks' blocks, in bytes. sizes: what the node's ranks tell, and own what this
 * one tells them. To and from each rank goes one size, of an all-to-all one for each node: what
 * the rank gets from that of the other's place there. */
struct ibshift_told {
    size_t *offsets; /* ranks + 1 */
    uint64_t *sizes, *own;
    uint32_t *peers;
};

/* Parts of one memory. */
size_t ibshift_told_bytes(const struct ibshift_plan *plan, bool is_alltoall);
struct ibshift_told ibshift_told_at(void *memory, const struct ibshift_plan *plan,
                                    bool is_alltoall);

/* Makes params, of a collective, those of what tells own to the node's ranks; what they were is
 * what heard() wants. */
void ibshift_told_ask(const struct ibshift_told *told, bool is_alltoall,
                      struct ibshift_op_params *params);

/* Of a leader: sizes become offsets. Sizes of ranks elsewhere are not asked for. */
void ibshift_told_heard(const struct ibshift_told *told, const struct ibshift_op_params *main);

#endif

/*
 * Schedules of an all-to-all: which order costs least on these routes, as a shift or as a table.
 * Deterministic: the same routes, ranks and seed give the same table on every machine. Bounded in
 * steps, not in seconds, for that reason.
 */
#ifndef IBSHIFT_FABRIC_TABLE_SCHEDULE_H
#define IBSHIFT_FABRIC_TABLE_SCHEDULE_H

#include "fabric/paths/contend.h"

#define IBSHIFT_SCHEDULE_RANKS (UINT16_MAX - 1) /* at most: the search counts them in 16 bits */

struct ibshift_schedule {
    struct ibshift_stages table; /* all rows; table.to and table.from are owned here */
    uint32_t *to, *from;
    uint8_t *lid_offsets; /* [rank * stages + stage]: of the destination; NULL: its first LID */
};

struct ibshift_schedule_job {
    const struct ibshift_paths *paths;
    uint32_t ranks;
    const uint32_t *member_of;
    const uint32_t *sequence; /* the ranks in routing order, ranks of one member together */
    size_t memory;            /* that the search and the table may take */
    uint32_t
        block; /* one rank a member sits in blocks of so many places, whole and aligned; or 0 */
};

/*
 * A table in which no rank sends or receives twice in a stage, no link carries more flows than it
 * can at what the stage costs, and ranks of one member exchange in stages of their own at the end.
 * 0, -E2BIG (more than the memory would be taken), -ENOMEM.
 *
 * From blocks: the table of the blocks' first ranks, in which each stage becomes as many as a block has
 * ranks; pairs that have no room in their stages are placed anew. It costs at most IBSHIFT_REPAIR_ENOUGH
 * of the bound, so never more than that of what a search finds; -EDOM where that cannot be had.
 */
#define IBSHIFT_REPAIR_ENOUGH 1.02
int ibshift_schedule_make(const struct ibshift_schedule_job *job,
                          struct ibshift_schedule *schedule);
void ibshift_schedule_free(struct ibshift_schedule *schedule);

#endif

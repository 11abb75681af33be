/*
 * A table of stages under construction, for the files schedule_*.c. For every shared link and every
 * member's cable, out and in, a bitmap says in which stages it is taken; a pair of ranks fits into
 * a stage in which none of its bitmaps has the bit. A link that is k times as fast as the fastest
 * cable has k bitmaps, filled from the first: it is taken where the last has the bit.
 */
#ifndef IBSHIFT_FABRIC_FIT_H
#define IBSHIFT_FABRIC_FIT_H

#include "fabric/paths.h"

#define FIT_NOBODY UINT16_MAX
#define FIT_ROWS   (IBSHIFT_PATH_LINKS + 2) /* bitmaps that a pair looks at */

typedef struct fit {
    const ibshift_paths_t *paths;
    const uint32_t *member_of;
    uint32_t ranks, stages, words, rows;
    uint32_t *row;              /* shared link -> its first bitmap; [links] = the first cable's */
    uint64_t *busy;             /* [row][words]; members' cables out, then in, behind the links */
    uint16_t *owner;            /* [stage][rows]: the sending rank, or FIT_NOBODY */
    uint16_t *to;               /* [stage][ranks] */
    uint8_t *lane;              /* [stage][ranks], or NULL: one LID a host */
    uint32_t *low_out, *low_in; /* member -> words below are full */
} fit_t;

typedef struct fit_pair {
    uint16_t from, to;
    uint32_t not_in; /* stage it was pushed out of and does not take back at once */
} fit_pair_t;

#define FIT_PAIR(from, to) ((fit_pair_t){(uint16_t)(from), (uint16_t)(to), UINT32_MAX})

int fit_open(fit_t *fit, const ibshift_paths_t *paths, uint32_t ranks, const uint32_t *member_of,
             uint32_t stages);
void fit_close(fit_t *fit);
void fit_clear(fit_t *fit);

/* Whom the rank sends to in a stage, or FIT_NOBODY; who has taken the row then. */
static inline uint16_t fit_to(const fit_t *fit, uint32_t rank, uint32_t stage)
{
    return fit->to[(size_t)stage * fit->ranks + rank];
}

static inline uint16_t fit_owner(const fit_t *fit, uint32_t row, uint32_t stage)
{
    return fit->owner[(size_t)stage * fit->rows + row];
}

/* Rows that must be free for the pair over this lane; returns their number. */
uint32_t fit_rows(const fit_t *fit, fit_pair_t pair, uint32_t lane, const uint64_t **rows);
uint32_t fit_lanes(const fit_t *fit, fit_pair_t pair);
/* First free stage at or after `start`, over any lane; UINT32_MAX: none. */
uint32_t fit_find(const fit_t *fit, fit_pair_t pair, uint32_t start, uint32_t *lane);
void fit_place(fit_t *fit, fit_pair_t pair, uint32_t stage, uint32_t lane);
void fit_remove(fit_t *fit, fit_pair_t pair, uint32_t stage);

/*
 * Pairs in an order: next() gives the i-th, or false for one that is no pair (same member).
 * Places what fits; the others go to left[]. Returns their number, or UINT32_MAX when there is no
 * room for them.
 */
typedef bool (*fit_order)(const void *context, const fit_t *fit, uint32_t i, fit_pair_t *pair);
uint32_t fit_first(fit_t *fit, fit_order next, const void *context, uint32_t count,
                   fit_pair_t *left, uint32_t room);

/* Places left[] by evicting others; returns how many are still left after so many steps. */
uint32_t fit_eject(fit_t *fit, fit_pair_t *left, uint32_t count, uint32_t room, uint64_t steps,
                   uint64_t seed);

/* Stage after stage, pairs on the links with most left to carry first. Returns the number of stages
 * used, or UINT32_MAX when they did not suffice. */
uint32_t fit_stagewise(fit_t *fit, uint64_t seed);

#endif

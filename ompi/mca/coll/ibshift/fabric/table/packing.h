/*
 * A table of stages under construction. A stage is paid at a cost, and a link or cable on which one
 * flow costs less carries several flows in it: it has as many slots. For every slot a bitmap says
 * in which stages it is taken. Slots are taken from the first, so a pair of ranks fits into a stage
 * in which none of its resources has the last one's bit.
 */
#ifndef IBSHIFT_FABRIC_TABLE_PACKING_H
#define IBSHIFT_FABRIC_TABLE_PACKING_H

#include <stdlib.h>

#include "fabric/paths/paths.h"

#define IBSHIFT_NOBODY            UINT16_MAX
#define IBSHIFT_PACKING_RESOURCES (IBSHIFT_PATH_LINKS + 4) /* that a pair takes */
#define IBSHIFT_PACKING_SLOTS     255                      /* of one resource, at most */

/* Stages are cheap or dear; dear ones are for flows that no cheap stage can carry. */
struct ibshift_packing {
    const struct ibshift_paths *paths;
    const uint32_t *member_of;
    uint32_t ranks;
    bool cables;    /* ranks share cables: these are resources beside the ranks */
    bool is_single; /* each resource has one slot: its own number */
    float cost[2];  /* of a cheap stage, of a dear one */
    uint32_t stages, words, slots;
    uint32_t *slot;      /* resource -> its first slot; [resources] = all slots */
    uint8_t *missing;    /* resource -> slots that it has in dear stages alone */
    bool *dear;          /* [stage] */
    uint64_t *taken;     /* [slot][words] */
    uint16_t *owner;     /* [stage][slots]: the sending rank, or IBSHIFT_NOBODY; NULL: not known */
    uint16_t *to;        /* [stage][ranks] */
    uint8_t *lid_offset; /* [stage][ranks], or NULL: one LID a host */
    uint32_t *low_out, *low_in; /* rank -> words below are full */
};

struct ibshift_pair {
    uint16_t from, to;
    uint32_t not_in; /* stage it was pushed out of and does not take back at once */
};

#define IBSHIFT_PAIR(from, to) ((struct ibshift_pair){(uint16_t)(from), (uint16_t)(to), UINT32_MAX})

/* Flows that a resource of this cost carries in a stage of that cost. */
static inline uint32_t ibshift_packing_capacity(double stage_cost, double cost)
{
    double flows = stage_cost / cost + 1e-3; /* more than the rounding of a float's quotient */

    return flows > IBSHIFT_PACKING_SLOTS ? IBSHIFT_PACKING_SLOTS : (uint32_t)flows;
}

/* Without stages. 0 or -ENOMEM, as in the next two. */
int ibshift_packing_open(struct ibshift_packing *packing, const struct ibshift_paths *paths,
                         uint32_t ranks, const uint32_t *member_of, bool cables,
                         const float cost[2]);
int ibshift_packing_add_stages(struct ibshift_packing *packing, uint32_t count, bool dear);
/* From here on the owners of all slots are known, as ibshift_packing_walk() needs them. */
int ibshift_packing_own(struct ibshift_packing *packing);

static inline void ibshift_packing_disown(struct ibshift_packing *packing)
{
    free(packing->owner);
    packing->owner = NULL;
}

void ibshift_packing_close(struct ibshift_packing *packing);

/* Whom the rank sends to in a stage, or IBSHIFT_NOBODY. */
static inline uint16_t ibshift_packing_to(const struct ibshift_packing *packing, uint32_t rank,
                                          uint32_t stage)
{
    return packing->to[(size_t)stage * packing->ranks + rank];
}

/* Does the pair need a dear stage? */
bool ibshift_packing_is_dear(const struct ibshift_packing *packing, struct ibshift_pair pair);
/* Puts the pair into this stage, over this LID; false: it has no room. Before owners are known. */
bool ibshift_packing_place_at(struct ibshift_packing *packing, struct ibshift_pair pair,
                              uint32_t lid_offset, uint32_t stage);
/* Puts the pair into the first stage that has room, over any LID; false: there is none. */
bool ibshift_packing_place_first(struct ibshift_packing *packing, struct ibshift_pair pair);

/*
 * Places left[] by moving others, until all are placed or `patience` steps in a row have brought
 * nothing. Returns how many are still left. room: of left[], more than count.
 */
uint32_t ibshift_packing_walk(struct ibshift_packing *packing, struct ibshift_pair *left,
                              uint32_t count, uint32_t room, uint64_t patience, uint64_t *seed);

/* ---- what packing.c and packing_walk.c share ---- */

struct ibshift_packing_want {
    uint32_t resources[IBSHIFT_PACKING_RESOURCES], count;
    const uint64_t *last[IBSHIFT_PACKING_RESOURCES]; /* bitmap of each resource's last slot */
};

/* What the pair takes over this LID; false: a link that no stage has room for. */
bool ibshift_packing_want(const struct ibshift_packing *packing, struct ibshift_pair pair,
                          uint32_t lid_offset, struct ibshift_packing_want *want);
uint32_t ibshift_packing_lids(const struct ibshift_packing *packing, struct ibshift_pair pair);
/* The first stage that has room, over any LID; UINT32_MAX: none. */
uint32_t ibshift_packing_first(const struct ibshift_packing *packing, struct ibshift_pair pair,
                               uint32_t *lid_offset);
/* The first slot of the resource in such a stage. */
uint32_t ibshift_packing_slot(const struct ibshift_packing *packing, uint32_t resource,
                              uint32_t stage);
void ibshift_packing_place(struct ibshift_packing *packing, struct ibshift_pair pair,
                           uint32_t stage, uint32_t lid_offset);
/* Where owners are known. */
void ibshift_packing_remove(struct ibshift_packing *packing, struct ibshift_pair pair,
                            uint32_t stage);

#endif

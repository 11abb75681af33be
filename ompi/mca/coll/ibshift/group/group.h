/*
 * Ranks that do collectives together, as one of them sees it: who they are, and what has been found for them,
 * which depends on what all of them know alike. A shell has one for each communicator, or whatever it calls it.
 */
#ifndef IBSHIFT_GROUP_GROUP_H
#define IBSHIFT_GROUP_GROUP_H

#include "choose/choose.h"
#include "choose/pace.h"
#include "exec/standing.h"
#include "fabric/table/found.h"
#include "net/ledger.h"
#include "plan/neighbors.h"

enum ibshift_order_state {
    IBSHIFT_ORDER_UNKNOWN, /* not looked at yet: rank order */
    IBSHIFT_ORDER_BY_RANK, /* the file does not fit these ranks: rank order for good */
    IBSHIFT_ORDER_LOCATED, /* what serves before a search */
    IBSHIFT_ORDER_FOUND    /* by the search */
};

struct ibshift_group_order {
    enum ibshift_order_state state;
    uint32_t *host_of;                 /* of the ranks in the file; NULL: not looked at yet */
    struct ibshift_found_place *place; /* NULL: none */
    struct ibshift_order located;      /* of the place */
    enum ibshift_arrange_kind kind;    /* of an all-to-all with an order, or stages */
    struct ibshift_rank_map map;       /* no places: none */
    bool may_deadlock;                 /* the tables want service levels that the file lacks */
    struct ibshift_found_order *found;
    unsigned share;   /* of the hosts' rate that the routes leave, in thousandths; 0: not known */
    bool has_circle;  /* of links that wait for one another */
    uint64_t moved;   /* bytes that a rank has sent each other one */
    uint32_t *places; /* for prices: the members of the map's places */
    struct ibshift_distance distance;  /* of them, and of ranks; paths NULL: it is not known */
    const struct ibshift_order *order; /* of all-to-alls, now; NULL: rank order */
    const struct ibshift_stages *stages;
};

/*
 * The pace of all-to-alls (choose/pace.h) by size: made when a size is met first, it lives as
 * long as the group.
 */
struct ibshift_paced {
    struct ibshift_pace pace;
    const char *reason;
    bool is_told;   /* explain has said so */
    unsigned share; /* of the order that it was chosen for */
};

/* Unequal: the messages differ in length. */
enum { IBSHIFT_PACED_UNEQUAL = 1, IBSHIFT_PACED_ATTENDED = 2, IBSHIFT_PACED_FORMS = 4 };

struct ibshift_pacing {
    struct ibshift_paced *by_class[IBSHIFT_PACED_FORMS][IBSHIFT_SIZE_CLASSES];
};

struct ibshift_cast;

/* A multicast group of the ranks (group/multicast.h). */
struct ibshift_group_cast {
    bool is_known; /* whether there is one */
    bool is_forming;
    struct ibshift_cast *cast; /* NULL: none */
    size_t most;               /* bytes of a message */
};

struct ibshift_group {
    uint32_t rank, size;
    uint32_t id;      /* of the messages' keys: the same on all ranks */
    uint32_t *peers;  /* rank to peer of the net; the shell's */
    const char *name; /* what people call it; the shell's */
    struct ibshift_ledger ledger;
    struct ibshift_choices choices;
    struct ibshift_group_order order;
    struct ibshift_pacing pacing;
    struct ibshift_group_cast cast;
    struct ibshift_neighborhood neighborhood; /* edges NULL: nobody has asked for it yet */
    struct ibshift_neighbors neighbors;       /* it alone */
};

/* What a call asks for before a plan is chosen; the same on all ranks. */
struct ibshift_wanted {
    enum ibshift_collective collective;
    const char *name; /* the caller's word for it */
    uint32_t needs;   /* the row must have one of these flags; 0: any row */
    uint64_t bytes;   /* what the choice looks at: a block, or the vector */
    bool is_counted;  /* each block has its own size */
    bool commutes;    /* its operator */
    bool is_blocking; /* the caller looks at completions until the end */
    bool is_again;    /* persistent: made once, run often */
};

/* A v-variant of which no rank knows all sizes; the long blocks of one whose short blocks go by node. */
static inline bool ibshift_needs_any_size(uint32_t needs)
{
    return needs != 0 && (needs & IBSHIFT_ALG_SIZES_ALL) == 0;
}

static inline bool ibshift_needs_long_part(uint32_t needs)
{
    return ibshift_needs_any_size(needs) && (needs & IBSHIFT_ALG_SIZES_NODE) == 0;
}

/* Where grants stand in blocking calls, but not in this one. */
static inline bool ibshift_wanted_grants_anew(const struct ibshift_wanted *wanted)
{
    return wanted->bytes <= IBSHIFT_STANDING_MOST &&
           ((wanted->collective == IBSHIFT_ALLREDUCE && !wanted->is_blocking) ||
            (wanted->collective == IBSHIFT_REDUCE_SCATTER &&
             (!wanted->is_blocking || wanted->is_counted)));
}

/* Calls of one kind and size have one plan. */
static inline int ibshift_wanted_kind(const struct ibshift_wanted *wanted)
{
    int sizes = wanted->needs == 0                       ? 0
                : !ibshift_needs_any_size(wanted->needs) ? 2
                : ibshift_needs_long_part(wanted->needs) ? 1
                                                         : 3;

    return sizes * 8 + 4 * wanted->is_blocking + 2 * ibshift_wanted_grants_anew(wanted) +
           wanted->commutes;
}

#endif

/*
 * The order of the all-to-alls of a set of processes, found by them together: rank 0 searches for
 * the cheapest and tells the others, who keep their own part of it. Kept for the next communicator
 * of the same processes.
 */
#ifndef IBSHIFT_FABRIC_TABLE_FOUND_H
#define IBSHIFT_FABRIC_TABLE_FOUND_H

#include "fabric/table/arrange.h"

/* Who they are, in the order of their ranks, and where. */
struct ibshift_members {
    uint32_t rank, size;
    const uint32_t *peers;   /* names that stay when ranks change */
    const uint32_t *host_of; /* of the fabric */
    const struct ibshift_fabric *fabric;
    const uint32_t *order; /* of the fabric's hosts, as ibshift_placement_order() has it */
    uint32_t order_count;
};

/* How they tell each other, along trees to and from rank 0: other pairs are still to get their
 * LIDs. 0 or a negative errno. */
struct ibshift_together {
    void *comm;
    int (*least)(void *comm, int mine, int *least);                /* of all, for rank 0 */
    int (*tell)(void *comm, int *words, int count);                /* what rank 0 has */
    int (*deal)(void *comm, const int *rows, int *row, int count); /* each its row of rank 0's */
    void (*set_path)(uint32_t peer,
                     uint32_t lid_offset); /* for connections that are not made yet */
};

/* What rank 0 found, for people; text is empty where it has not searched. */
struct ibshift_found_words {
    uint32_t hosts;
    char text[640];
};

/* Read-only. */
struct ibshift_found_order {
    unsigned users;  /* under the lock */
    unsigned share;  /* of the hosts' rate that the routes leave, in thousandths; 0: not known */
    bool has_circle; /* of links that wait for one another */
    uint32_t size;
    uint32_t *peers;            /* what it is for */
    struct ibshift_order shift; /* unless it is a table */
    enum ibshift_arrange_kind kind;
    uint32_t *row; /* of this rank in a table: to, from, and LIDs where there are several */
    struct ibshift_stages table;
    const struct ibshift_order *order;   /* NULL: stages */
    const struct ibshift_stages *stages; /* NULL: a shift */
    struct ibshift_found_order *next;
};

/* Where ranks are, and their shift before a search: one for all communicators whose ranks have the same hosts. Read-only. */
struct ibshift_found_place {
    unsigned users; /* under the lock */
    struct ibshift_placement *placement;
    struct ibshift_order shift;
    enum ibshift_arrange_kind kind;
    struct ibshift_found_place *next;
};

/*
 * The ranks in routing order, those of one host together: the rank map of rings and trees. The
 * plan counts places of the order, emit() never sees the communicator's ranks.
 */
struct ibshift_rank_map {
    struct ibshift_order order; /* of as many places as ranks */
    uint32_t *peers;            /* place -> peer of the net */
    int *ones;                  /* blocks of one unit each, at the places' ranks */
};

/* Rank order is for all-to-alls alone: rings and trees go along the routing order anyway. 0 or a
 * negative errno. */
int ibshift_rank_map_make(const struct ibshift_members *members, struct ibshift_rank_map *map,
                          struct ibshift_error *err);
void ibshift_rank_map_free(struct ibshift_rank_map *map);

/* The shift of that kind. 0 or what ibshift_placement_open() and _along() say. */
int ibshift_found_shift(const struct ibshift_members *members, enum ibshift_arrange_kind kind,
                        struct ibshift_order *shift, struct ibshift_error *err);

/* Before a search: the shift in routing order, or, if is_auto, the better one of two that cost
 * none; with_routes: up to IBSHIFT_FIRST_HOSTS and IBSHIFT_FIRST_RANKS, as far as all arrive. A process says the same of both at
 * each call. leave() it. */
int ibshift_found_first(const struct ibshift_members *members, bool is_auto, bool with_routes,
                        struct ibshift_found_place **place, struct ibshift_error *err);
void ibshift_found_leave(struct ibshift_found_place *place); /* may be NULL */

/* By all members at once; release() it. kinds: bits of those allowed. After an error of the
 * search it is the routing order. 0 or a negative errno, on all members if on one. */
int ibshift_found_search(const struct ibshift_members *members, unsigned kinds,
                         const struct ibshift_together *together, struct ibshift_found_words *words,
                         struct ibshift_found_order **found);
void ibshift_found_release(struct ibshift_found_order *found); /* may be NULL */

/* Forgets what was found for processes that no communicator has. */
void ibshift_found_forget(void);

#endif

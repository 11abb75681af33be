/*
 * The routes among a set of hosts, cut down to what can be contended: the links that carry flows of
 * several sources and to several destinations. On all other links (a host's own cable, a down link
 * that serves one host) no two flows meet in a stage in which each host sends and receives once;
 * they count where they are slower than that host's cable.
 *
 * Members are numbered 0 .. hosts - 1; a member with an LMC has several LIDs, told apart by their
 * offset.
 * Read-only once built, safe to share.
 */
#ifndef IBSHIFT_FABRIC_PATHS_PATHS_H
#define IBSHIFT_FABRIC_PATHS_PATHS_H

#include "fabric/graph/fabric.h"

#define IBSHIFT_PATH_LINKS 64 /* of one route, shared ones */
#define IBSHIFT_NO_LINK    UINT32_MAX

struct ibshift_paths {
    const struct ibshift_fabric *fabric;
    uint32_t hosts;
    uint32_t *host;   /* member -> host of the fabric */
    uint32_t *leaf;   /* member -> row of cells */
    uint32_t *column; /* member -> first column of cells; [hosts] = their number */
    uint32_t leaves;
    uint32_t *on_leaf; /* leaf -> members of the set on it */
    uint32_t links;    /* shared links, numbered 0 .. links - 1 */
    uint32_t *link;    /* shared link -> directed link of the fabric */
    float *cost;       /* shared link -> time of one flow; 1 = that of the fastest host's cable */
    float *host_cost;  /* member -> the same for its own cable */
    uint32_t width;    /* entries of a cell */
    uint32_t *cells;   /* [leaf][column][width], NO_LINK behind the last */
};

/*
 * Routes among hosts[count] (indices of the fabric's hosts, each once). -EINVAL, -ENOMEM (the table
 * would pass 1 GiB), or what ibshift_route_walk() says of a route that does not arrive.
 */
int ibshift_paths_build(const struct ibshift_fabric *fabric, const uint32_t *hosts, uint32_t count,
                        struct ibshift_paths **paths, struct ibshift_error *err);
/* The same with one LID per host: the first. */
int ibshift_paths_build_base(const struct ibshift_fabric *fabric, const uint32_t *hosts,
                             uint32_t count, struct ibshift_paths **paths,
                             struct ibshift_error *err);
void ibshift_paths_free(struct ibshift_paths *paths);

/* Has any member several LIDs? */
static inline bool ibshift_paths_have_lmc(const struct ibshift_paths *p)
{
    return p->column[p->hosts] > p->hosts;
}

static inline uint32_t ibshift_paths_lids(const struct ibshift_paths *p, uint32_t member)
{
    return p->column[member + 1] - p->column[member];
}

/*
 * Whether some of the shared links wait for one another in a circle: packets on each go on over the
 * next. Virtual lanes keep that from standing still; but what waits on one link then slows down all
 * others of the circle, and itself. 0 or -ENOMEM.
 */
int ibshift_paths_circle(const struct ibshift_paths *p, bool *has_circle);

/* How many LIDs all members have: with the same offset everywhere, so many routings. */
uint32_t ibshift_paths_modes(const struct ibshift_paths *p);

/* Shared links from one member to another (width entries, NO_LINK behind the last). */
static inline const uint32_t *ibshift_paths_links(const struct ibshift_paths *p, uint32_t from,
                                                  uint32_t to, uint32_t lid_offset)
{
    size_t cell = (size_t)p->leaf[from] * p->column[p->hosts] + p->column[to] + lid_offset;

    return p->cells + cell * p->width;
}

#endif

/*
 * What stages of an all-to-all may be paid at. A stage is paid at a cost; links on which a flow costs less
 * carry several flows in it. Cheap stages are for most flows, dear ones for those of slow links.
 */
#ifndef IBSHIFT_FABRIC_TABLE_PROSPECT_H
#define IBSHIFT_FABRIC_TABLE_PROSPECT_H

#include "fabric/paths/paths.h"

#define IBSHIFT_LINK_KINDS                                                                         \
    16 /* different costs of links that are told apart: speeds times widths */

/* Links of one cost: what the fullest of them carries. */
struct ibshift_link_kind {
    double cost, flows;
};

struct ibshift_prospects {
    struct ibshift_link_kind kinds[IBSHIFT_LINK_KINDS];
    uint32_t kind_count;
    uint32_t sends; /* of the rank that sends to most others */
    uint32_t least; /* stages that there are to be */
    double bound;
};

/* Stages that an all-to-all needs at the least if they are paid at these costs. */
struct ibshift_prospect {
    float cost[2];
    uint32_t stages[2]; /* cheap ones, dear ones */
    double price;
};

/* Kinds and bound; the rest is the caller's. 0 or -ENOMEM. */
int ibshift_prospects_open(const struct ibshift_paths *paths, uint32_t ranks,
                           const uint32_t *member_of, struct ibshift_prospects *prospects);
/* The cheapest. */
struct ibshift_prospect ibshift_prospect_find(const struct ibshift_prospects *prospects);

#endif

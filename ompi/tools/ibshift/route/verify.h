/*
 * Proof of a routing's tables by walking them: every host, router and
 * aggregation node to every LID. Nothing is taken from the
 * engine but its tables, its SLs and VLs, and the order whose shift is counted.
 */
#ifndef IBSHIFT_ROUTE_VERIFY_H
#define IBSHIFT_ROUTE_VERIFY_H

#include "json.h"
#include "route/route.h"

#define ROUTE_HOPS_MOST   64    /* links of the longest route counted apart */
#define ROUTE_CYCLE_MOST  16    /* links of a cycle that are told */
#define ROUTE_SHIFTS_ALL  11664 /* so many places: all shifts are counted, above it a sample */
#define ROUTE_SHIFTS_SOME 2000

/* A directed link and a VL of it. */
struct route_channel {
    uint32_t link;
    unsigned vl;
};

struct route_proof {
    uint64_t routes;                     /* (host, LID of another host) */
    uint64_t to_switches, switches_lost; /* (switch with hosts, LID of a switch); without a way */
    /* From or to a router or aggregation node; without a way (see verify.c). */
    uint64_t others, others_lost;
    uint64_t lost, circles, strays;
    uint64_t hops[ROUTE_HOPS_MOST + 1]; /* routes by their links, both hosts' cables included */
    char broken[512];                   /* the first route that fails */

    uint64_t dependencies;
    unsigned cycle_length; /* 0: the channel dependency graph is acyclic */
    struct route_channel cycle[ROUTE_CYCLE_MOST];

    /* All routes to the first LIDs: of links between switches in use. */
    uint32_t links_used, load_most, load_least;
    double load_mean;
    uint32_t load_link; /* one with the most */

    uint32_t places, shifts; /* of the order; shifts counted */
    uint64_t shift_seed;     /* of the sample; 0: all */
    uint32_t lids;           /* of a host; the figures are those of the worst LID offset */
    uint32_t worst;          /* flows on a link in one stage */
    double average;          /* over stages, of the stage's worst link */
    uint32_t worst_shift, worst_link, worst_lid_offset;
};

/* All but the shifts' members of an empty proof are made first: route_verify() calls it. */
void route_count_shifts(const struct route *r, uint64_t shift_seed, struct route_proof *proof);
void route_verify(const struct route *r, uint64_t shift_seed, struct route_proof *proof);

/* The same of tables that somebody else made, as they are without SLs: all on one VL. No shifts. */
void route_verify_tables(const struct ibshift_fabric *f, struct route_proof *proof);

/*
 * The same with the service levels that the fabric knows, each on the VL of its number: *vls, one more
 * than the highest. -ENODATA: it knows none; -ENOTSUP: hosts of one switch differ in them.
 */
int route_verify_levels(const struct ibshift_fabric *f, unsigned *vls, struct route_proof *proof);

/* Every route arrives and no cycle of dependencies. */
static inline bool route_is_proven(const struct route_proof *proof)
{
    return proof->lost + proof->circles + proof->strays == 0 && proof->cycle_length == 0;
}

/* The proof in words, of tables on so many VLs, and as members of a JSON object. */
void route_proof_print(const struct ibshift_fabric *f, unsigned vls,
                       const struct route_proof *proof, FILE *out);
void route_proof_json(const struct route_proof *proof, struct json *j);
/* The cycle that was found. */
void route_cycle_print(const struct ibshift_fabric *f, const struct route_proof *proof, FILE *out);

#endif

/* SL-to-VL tables: the VL on which a switch sends a packet, by its service level and by the
 * ports where it comes in and goes out. In the form of opensm-sl2vl.dump. */
#ifndef IBSHIFT_FABRIC_SL2VL_H
#define IBSHIFT_FABRIC_SL2VL_H

#include <stdio.h>

#include "fabric/graph/fabric.h"
#include "pool.h"

enum { FABRIC_SLS = IBSHIFT_SL_MAX + 1, FABRIC_NO_VL = 15 /* such packets are dropped */ };

struct fabric_sl2vl {
    struct pool pool;
    uint8_t *vl;
    uint64_t *from; /* by switch: where its part of vl begins */
};

/* Place in vl of the SL for packets from port `in` (0: the switch itself) to port `out`. */
static inline size_t fabric_sl2vl_at(const struct ibshift_fabric *f, const struct fabric_sl2vl *t,
                                     uint32_t sw, unsigned in, unsigned out, unsigned sl)
{
    unsigned ports = f->nodes[f->switches[sw]].port_count;

    return t->from[sw] + ((size_t)in * (ports + 1) + out) * FABRIC_SLS + sl;
}

/* All 0. */
void fabric_sl2vl_new(const struct ibshift_fabric *f, struct fabric_sl2vl *t);
void fabric_sl2vl_free(struct fabric_sl2vl *t);

/*
 * *vls: 1 + the highest VL of the service levels that f->sl has. -EINVAL: it cannot be read, or one of
 * those levels has no VL between two cabled ports of a switch.
 */
int fabric_sl2vl_load(const char *path, const struct ibshift_fabric *f, struct fabric_sl2vl *t,
                      unsigned *vls, struct ibshift_error *err);
void fabric_sl2vl_write(const struct ibshift_fabric *f, const struct fabric_sl2vl *t, FILE *out);

/* Bit i: a pair of hosts has service level i; without f->sl level 0 alone. */
unsigned fabric_sls_used(const struct ibshift_fabric *f);

#endif

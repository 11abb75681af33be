/*
 * Which of the free hosts a job should get: those whose all-to-all is a clean shift (no cable carries two
 * messages in a stage), else those whose routes have the least bound, and whose shift costs little; then
 * those that break up few leaves that are wholly free, so that the next job has clean ones too.
 */
#ifndef IBSHIFT_FABRIC_PLACE_H
#define IBSHIFT_FABRIC_PLACE_H

#include "fabric/graph/fabric.h"
#include "pool.h"

struct fabric_place {
    const struct ibshift_fabric *fabric; /* with tables */
    const bool *is_free;                 /* [host] */
    uint32_t wanted;                     /* at least 1, at most as many as are free */
    /* ---- what was found ---- */
    uint32_t *hosts; /* [wanted], in routing order; the pool's */
    uint32_t leaves; /* that they are on, */
    uint32_t broken; /* and those of them that were wholly free and no longer are */
    /* Messages on the busiest cable, in all and as the sum over the stages of a shift in routing order,
     * over those on each host's own; 1 where a job has two hosts or one. */
    double bound, cost;
};

/* 0, or what the shape, the order and the routes say. */
int fabric_place_find(struct fabric_place *place, struct pool *pool, struct ibshift_error *err);

static inline bool fabric_place_is_clean(const struct fabric_place *place)
{
    return place->cost < 1.0001;
}

#endif

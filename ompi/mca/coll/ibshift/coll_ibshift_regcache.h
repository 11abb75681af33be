#ifndef IBSHIFT_COLL_REGCACHE_H
#define IBSHIFT_COLL_REGCACHE_H

#include "net/verbs/verbs.h"

/*
 * Registered memory stays registered as long as Open MPI's memory hooks see that it is mapped:
 * its registration cache "grdma" with our own callbacks. NULL: there is no such cache here, the
 * net then registers for each message. Close it before verbs, and before the component goes.
 */
const struct ibshift_region_cache *ibshift_regcache_open(struct ibshift_verbs *verbs);
void ibshift_regcache_close(void);

/* Under the lock of the net that uses the cache. */
struct ibshift_regcache_stats {
    uint64_t hits, registrations;
};
struct ibshift_regcache_stats ibshift_regcache_stats(void);

#endif

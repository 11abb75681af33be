/*
 * A price by a look at so many of a plan's messages, the request's limit: to the end where it has no more; else from the price of the
 * same among few ranks, and from what single ranks have to do in both, or from how it grows with the ranks.
 */
#ifndef IBSHIFT_CHOOSE_GLANCE_H
#define IBSHIFT_CHOOSE_GLANCE_H

#include "choose/price.h"

enum {
    IBSHIFT_CHOOSE_LIMIT = 1 << 13 /* the most messages that are looked at: a few milliseconds */
};

/* As ibshift_price(); -E2BIG where it goes by nodes that are not the hosts, -ENOTSUP where it cannot do it with few. */
int ibshift_glance(const struct ibshift_price_request *request, struct ibshift_price *price);

/* About what it takes at least, by what two of its ranks have to do and to wait for: an estimate, as of many rounds some are seen.
 * It is above the price of a few plans of a hundred. */
double ibshift_bound(const struct ibshift_price_request *request);

#endif

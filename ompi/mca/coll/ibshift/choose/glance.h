/* What a plan of many ranks costs, at a glance: from the price of the same among few, and from what single ranks have to do in both. */
#ifndef IBSHIFT_CHOOSE_GLANCE_H
#define IBSHIFT_CHOOSE_GLANCE_H

#include "choose/price.h"

/* The request's limit is that of the few ranks. 0, -E2BIG where it goes by nodes that are not the hosts, -ENOTSUP where it cannot do it with few, or as ibshift_price(). */
int ibshift_glance(const struct ibshift_price_request *request, struct ibshift_price *price);

#endif

/* The hosts of `ibshift plan price` and `compare`: so many ranks each, in rank order, with one
 * port. */
#include "plan/cmd.h"

#include <errno.h>
#include <stdlib.h>

int plan_price_shared(const struct plan_args *args, struct ibshift_price_request *request,
                      struct ibshift_price *price)
{
    uint32_t ranks = request->plan->ranks, *host_of, *processors;
    struct ibshift_crowd crowd;
    int rc;

    if (args->per_host == 0) {
        return ibshift_price(request, price);
    }
    host_of = malloc(2 * (size_t)ranks * sizeof(*host_of));
    if (host_of == NULL) {
        return -ENOMEM;
    }
    processors = host_of + ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        host_of[rank] = rank / args->per_host;
        processors[rank] = args->processors;
    }
    crowd = (struct ibshift_crowd){.hosts = host_of[ranks - 1] + 1,
                                   .ports = host_of[ranks - 1] + 1,
                                   .host_of = host_of,
                                   .port_of = host_of,
                                   .processors = processors};
    request->crowd = &crowd;
    rc = ibshift_price(request, price);
    request->crowd = NULL;
    free(host_of);
    return rc;
}

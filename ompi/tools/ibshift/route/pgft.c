/* Engine pgft: parallel-ports generalized fat trees, where no level is cross-connected. */
#include "route/closed.h"

#include <errno.h>

int route_pgft(struct route *r, struct ibshift_error *err)
{
    return route_closed_engine(r, false, err);
}

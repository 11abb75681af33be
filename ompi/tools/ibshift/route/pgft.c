/* Engine pgft: parallel-ports generalized fat trees, where no level is cross-connected. */
#include "route/closed.h"

#include <errno.h>

int route_pgft(route_t *r, ibshift_error_t *err)
{
    return route_closed_engine(r, false, err);
}

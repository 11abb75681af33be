/* Engine qft: quasi fat trees, where the switches of one level share the parts below them. */
#include "route/closed.h"

#include <errno.h>

int route_qft(struct route *r, struct ibshift_error *err)
{
    return route_closed_engine(r, true, err);
}

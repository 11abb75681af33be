/* Engine qft: quasi fat trees, where the switches of one level share the parts below them. */
#include "route/closed.h"

#include <errno.h>

int route_qft(route_t *r, ibshift_error_t *err)
{
    return route_closed_engine(r, true, err);
}

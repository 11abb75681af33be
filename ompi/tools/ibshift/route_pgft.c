/* Engine pgft: parallel-ports generalized fat trees, where no level is cross-connected. */
#include "route_closed.h"

#include <errno.h>

int route_pgft(route_t *r, ibshift_error_t *err)
{
    route_tree_t t;
    int rc = route_tree_find(r->fabric, &t, err);

    if (rc != 0) {
        return rc;
    }
    rc = route_closed_form(r, &t, err);
    if (rc == 0) {
        rc = route_tree_switches(r, &t, err);
    }
    route_tree_free(&t);
    return rc;
}

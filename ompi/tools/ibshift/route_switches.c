#include "route.h"

#include <errno.h>
#include <stdlib.h>

struct first_hosts {
    ibshift_fabric_t *f;
    uint8_t *sl;    /* the route's, or NULL */
    uint32_t *host; /* [switch]: + 1, 0 = none */
};

static int copy_columns(void *context, uint32_t first, uint32_t end)
{
    const struct first_hosts *c = context;
    ibshift_fabric_t *f = c->f;

    for (uint32_t s = first; s < end; s++) {
        uint8_t *row = f->lft + (size_t)s * f->lft_stride;

        for (uint32_t target = 0; target < f->switch_count; target++) {
            unsigned lid = f->nodes[f->switches[target]].lid;

            if (c->host[target] != 0 && target != s && lid != 0 && row[lid] == 0) {
                unsigned like = ibshift_host_lid(f, c->host[target] - 1);

                row[lid] = row[like];
                if (c->sl != NULL) {
                    c->sl[(size_t)s * f->lft_stride + lid] =
                        c->sl[(size_t)s * f->lft_stride + like];
                }
            }
        }
    }
    return 0;
}

int route_to_switches(route_t *r, ibshift_error_t *err)
{
    ibshift_fabric_t *f = r->fabric;
    struct first_hosts c = {
        .f = f, .sl = r->sl, .host = calloc((size_t)f->switch_count + 1, sizeof(*c.host))};

    if (c.host == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
    }
    for (uint32_t h = f->host_count; h-- > 0;) {
        uint32_t node = ibshift_port_neighbour(f, f->hosts[h]);

        if (ibshift_node_is_switch(f, node)) {
            c.host[f->nodes[node].switch_index] = h + 1;
        }
    }
    route_parallel(r->threads, f->switch_count, copy_columns, &c);
    free(c.host);
    return 0;
}

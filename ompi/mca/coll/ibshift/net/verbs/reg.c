/* Registration of the user's memory, through the owner's cache when it has one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/private.h"

int ibshift_region_register(struct ibshift_verbs *verbs, void *base, size_t length,
                            struct ibshift_region *region)
{
    memset(region->mr, 0, sizeof(region->mr));
    region->base = base;
    region->length = length;
    for (int i = 0; i < verbs->device_count; i++) {
        region->mr[i] = ibv_reg_mr(verbs->devices[i].pd, base, length,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (region->mr[i] == NULL) {
            int rc = errno != 0 ? -errno : -ENOMEM;
            (void)ibshift_region_deregister(region);
            return rc;
        }
    }
    return 0;
}

int ibshift_region_deregister(struct ibshift_region *region)
{
    int rc = 0;

    for (int i = 0; i < IBSHIFT_PORTS_MAX; i++) {
        if (region->mr[i] != NULL) {
            int failed = ibv_dereg_mr(region->mr[i]);
            rc = failed != 0 ? -failed : rc;
            region->mr[i] = NULL;
        }
    }
    return rc;
}

int ibshift_nv_region_get(struct ibshift_net_verbs *nv, void *base, size_t length,
                          struct ibshift_region **region)
{
    const struct ibshift_region_cache *cache = nv->options.cache;

    if (cache != NULL) {
        return cache->get(cache->context, base, length, region);
    }
    struct ibshift_region *r = malloc(sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    int rc = ibshift_region_register(nv->verbs, base, length, r);
    if (rc != 0) {
        free(r);
        return rc;
    }
    *region = r;
    return 0;
}

void ibshift_nv_region_put(struct ibshift_net_verbs *nv, struct ibshift_region *region)
{
    const struct ibshift_region_cache *cache = nv->options.cache;

    if (cache != NULL) {
        cache->put(cache->context, region);
        return;
    }
    (void)ibshift_region_deregister(region);
    free(region);
}

/* A struct ibshift_net_mem is a struct ibshift_region of ours. */
int ibshift_nv_mem_register(struct ibshift_net *net, void *base, size_t length,
                            struct ibshift_net_mem **mem)
{
    return ibshift_nv_region_get(ibshift_nv(net), base, length, (struct ibshift_region **)mem);
}

void ibshift_nv_mem_release(struct ibshift_net *net, struct ibshift_net_mem *mem)
{
    ibshift_nv_region_put(ibshift_nv(net), (struct ibshift_region *)mem);
}

#include "coll_ibshift.h"
#include "coll_ibshift_regcache.h"

#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/memoryhooks/memory.h"
#include "opal/runtime/opal_params.h"

#include <errno.h>
#include <stddef.h>

struct registration {
    mca_rcache_base_registration_t super; /* first: the cache's own */
    struct ibshift_region region;
};

static mca_rcache_base_module_t *rcache;
static uint64_t uses, registrations;

static int register_memory(void *context, void *base, size_t size,
                           mca_rcache_base_registration_t *reg)
{
    struct registration *r = (struct registration *)reg;
    int rc = ibshift_region_register(context, base, size, &r->region);

    registrations += 0 == rc;
    return 0 == rc ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int deregister_memory(void *context, mca_rcache_base_registration_t *reg)
{
    struct registration *r = (struct registration *)reg;

    return 0 == ibshift_region_deregister(&r->region) ? OPAL_SUCCESS : OPAL_ERROR;
}

static int get(void *context, void *base, size_t length, struct ibshift_region **region)
{
    mca_rcache_base_registration_t *reg = NULL;

    if (OPAL_SUCCESS !=
        rcache->rcache_register(rcache, base, length, 0, MCA_RCACHE_ACCESS_ANY, &reg)) {
        return -ENOMEM;
    }
    uses++;
    *region = &((struct registration *)reg)->region;
    return 0;
}

static void put(void *context, struct ibshift_region *region)
{
    char *reg = (char *)region - offsetof(struct registration, region);

    (void)rcache->rcache_deregister(rcache, (mca_rcache_base_registration_t *)reg);
}

/* Nobody has said whether registrations may outlive their use: they may when unmapping is seen. */
static void settle_leave_pinned(void)
{
    int needed = OPAL_MEMORY_FREE_SUPPORT | OPAL_MEMORY_MUNMAP_SUPPORT;

    if (opal_leave_pinned < 0 && (opal_mem_hooks_support_level() & needed) == needed) {
        opal_leave_pinned = 1;
    }
}

const struct ibshift_region_cache *ibshift_regcache_open(struct ibshift_verbs *verbs)
{
    static const struct ibshift_region_cache cache = {.get = get, .put = put};
    static char name[] = "ibshift";
    mca_rcache_base_resources_t resources = {
        .cache_name = name,
        .reg_data = verbs,
        .sizeof_reg = sizeof(struct registration),
        .register_mem = register_memory,
        .deregister_mem = deregister_memory,
    };

    settle_leave_pinned();
    rcache = mca_rcache_base_module_create("grdma", NULL, &resources);
    return NULL != rcache ? &cache : NULL;
}

void ibshift_regcache_close(void)
{
    if (NULL != rcache) {
        (void)mca_rcache_base_module_destroy(rcache);
        rcache = NULL;
    }
}

struct ibshift_regcache_stats ibshift_regcache_stats(void)
{
    return (struct ibshift_regcache_stats){.hits = uses > registrations ? uses - registrations : 0,
                                           .registrations = registrations};
}

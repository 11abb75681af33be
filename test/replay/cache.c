/* The cache of registrations that Open MPI lends the component. */
#include "ompi.h"

#include <stdlib.h>

#include "opal/mca/rcache/base/base.h"
#include "scheduler.h"

/* Registrations, as Open MPI's cache keeps them: until their memory goes. */
static struct cache {
    mca_rcache_base_module_t super;
    mca_rcache_base_resources_t resources;
    struct kept {
        struct kept *next;
        bool is_stale;
        mca_rcache_base_registration_t reg; /* and behind it what the component wants */
    } * first;
} * cache;

enum { PAGE = 4096 };

static void drop_unused(bool all)
{
    for (struct kept **at = &cache->first; *at != NULL;) {
        struct kept *kept = *at;

        if (kept->reg.ref_count == 0 && (all || kept->is_stale)) {
            *at = kept->next;
            (void)cache->resources.deregister_mem(cache->resources.reg_data, &kept->reg);
            free(kept);
        } else {
            at = &kept->next;
        }
    }
}

static struct kept *find(const unsigned char *base, const unsigned char *bound)
{
    struct kept *kept = cache->first;

    while (kept != NULL && (kept->is_stale || kept->reg.base > base || kept->reg.bound < bound)) {
        kept = kept->next;
    }
    return kept;
}

static int rcache_register(mca_rcache_base_module_t *module, void *address, size_t size,
                           uint32_t flags, int32_t access, mca_rcache_base_registration_t **reg)
{
    unsigned char *base = (unsigned char *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1));
    unsigned char *bound =
        base + (((uintptr_t)address - (uintptr_t)base + size + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    struct kept *kept = find(base, bound - 1);

    (void)module, (void)flags, (void)access;
    if (kept == NULL) {
        kept = calloc(1, sizeof(*kept) + cache->resources.sizeof_reg);
        kept->reg.base = base;
        kept->reg.bound = bound - 1;
        if (cache->resources.register_mem(cache->resources.reg_data, base, (size_t)(bound - base),
                                          &kept->reg) != 0) {
            drop_unused(true);
            if (cache->resources.register_mem(cache->resources.reg_data, base,
                                              (size_t)(bound - base), &kept->reg) != 0) {
                free(kept);
                return OPAL_ERR_OUT_OF_RESOURCE;
            }
        }
        kept->next = cache->first;
        cache->first = kept;
    }
    kept->reg.ref_count++;
    *reg = &kept->reg;
    return OPAL_SUCCESS;
}

static int rcache_deregister(mca_rcache_base_module_t *module, mca_rcache_base_registration_t *reg)
{
    (void)module;
    if (reg->ref_count <= 0) {
        replay_fail("rank %d gives a registration back that nobody uses", replay_self());
    }
    reg->ref_count--;
    drop_unused(false);
    return OPAL_SUCCESS;
}

mca_rcache_base_module_t *mca_rcache_base_module_create(const char *name, void *data,
                                                        mca_rcache_base_resources_t *resources)
{
    (void)name, (void)data;
    if (!replay_program()->has_cache) {
        return NULL;
    }
    cache = calloc(1, sizeof(*cache));
    cache->super.rcache_register = rcache_register;
    cache->super.rcache_deregister = rcache_deregister;
    cache->resources = *resources;
    return &cache->super;
}

int mca_rcache_base_module_destroy(mca_rcache_base_module_t *module)
{
    (void)module;
    drop_unused(true);
    if (cache->first != NULL) {
        replay_fail("rank %d still uses a registration at its end", replay_self());
    }
    free(cache);
    cache = NULL;
    return OPAL_SUCCESS;
}

void ompi_memory_goes(void *base, size_t size)
{
    for (struct kept *kept = cache == NULL ? NULL : cache->first; kept != NULL; kept = kept->next) {
        kept->is_stale |= kept->reg.base < (unsigned char *)base + size &&
                          kept->reg.bound >= (unsigned char *)base;
    }
    if (cache != NULL) {
        drop_unused(false);
    }
}

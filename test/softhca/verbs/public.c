/* The rest of libibverbs' public functions: what needs no HCA, and what is not supported here. */
#include "verbs/hca.h"

static enum ibv_fork_status fork_status = IBV_FORK_DISABLED;

/* Copies go through the memory map of the moment, so nothing must be kept from a child. */
HCA_EXPORT int ibv_fork_init(void)
{
    fork_status = IBV_FORK_ENABLED;
    return 0;
}

HCA_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return fork_status;
}

HCA_EXPORT int ibv_dontfork_range(void *base, size_t size);
HCA_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    return 0;
}

HCA_EXPORT struct ibv_context *ibv_import_device(int fd)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

HCA_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

HCA_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

HCA_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                            uint64_t iova, int fd, int access)
{
    return FAIL_WITH(EOPNOTSUPP);
}

HCA_EXPORT void ibv_register_driver(const char *name, void *init);

/* Drivers of before libibverbs 1.1: there is no hardware that they could find. */
void ibv_register_driver(const char *name, void *init)
{
}

#include "coll_ibshift.h"

#include "ompi/communicator/communicator.h"

/* Keeps what is installed in a slot that we are about to take; without a fallback we leave it. */
#define SAVE(name)                                                                                 \
    if (NULL != module->super.coll_##name) {                                                       \
        module->fallback.coll_##name = comm->c_coll->coll_##name;                                  \
        module->fallback.coll_##name##_module = comm->c_coll->coll_##name##_module;                \
        if (NULL == module->fallback.coll_##name) {                                                \
            module->super.coll_##name = NULL;                                                      \
        } else {                                                                                   \
            OBJ_RETAIN(module->fallback.coll_##name##_module);                                     \
        }                                                                                          \
    }

#define GIVE_BACK(name)                                                                            \
    if (NULL != module->fallback.coll_##name##_module) {                                           \
        OBJ_RELEASE(module->fallback.coll_##name##_module);                                        \
        module->fallback.coll_##name = NULL;                                                       \
        module->fallback.coll_##name##_module = NULL;                                              \
    }

static void give_back_fallbacks(mca_coll_ibshift_module_t *module)
{
    IBSHIFT_COLLECTIVE_SLOTS(GIVE_BACK)
}

static int module_enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    int rc = ibshift_borrow_fill(comm);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    IBSHIFT_COLLECTIVE_SLOTS(SAVE)
    return OMPI_SUCCESS;
}

/* Open MPI calls it once for every slot that we hold. */
static int module_disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    give_back_fallbacks((mca_coll_ibshift_module_t *)base);
    return OMPI_SUCCESS;
}

static void module_construct(mca_coll_ibshift_module_t *module)
{
    memset(&module->fallback, 0, sizeof(module->fallback));
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = module_disable;
}

/* Also the way out of a module that was never enabled, or whose slots others took. */
static void module_destruct(mca_coll_ibshift_module_t *module)
{
    give_back_fallbacks(module);
}

OBJ_CLASS_INSTANCE(mca_coll_ibshift_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

mca_coll_base_module_t *mca_coll_ibshift_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    mca_coll_ibshift_module_t *module = OBJ_NEW(mca_coll_ibshift_module_t);

    if (NULL == module) {
        return NULL;
    }
    *priority = ibshift_params.priority;
    return &module->super;
}

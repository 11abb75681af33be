#include "coll_ibshift.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/mca/base/base.h"

#include <string.h>

/*
 * A second framework named coll that selects libnbc alone: found, registered and opened by Open
 * MPI's own machinery, and invisible to the communicators' selection.
 */
static mca_base_framework_t shadow = {
    .framework_project = "ompi",
    .framework_name = "coll",
    .framework_selection = "libnbc",
    .framework_output = -1,
};
static bool is_open;
static mca_coll_base_component_t *lender; /* NULL: nothing is borrowed */

static mca_coll_base_component_t *find_libnbc(mca_base_framework_t *framework)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t)
    {
        if (0 == strcmp(item->cli_component->mca_component_name, "libnbc")) {
            return (mca_coll_base_component_t *)item->cli_component;
        }
    }
    return NULL;
}

int ibshift_borrow_open(bool progress_threads, bool mpi_threads)
{
    int rc;

    if (is_open || NULL != find_libnbc(&ompi_coll_base_framework)) {
        return OMPI_SUCCESS;
    }
    shadow.framework_static_components = ompi_coll_base_framework.framework_static_components;
    OBJ_CONSTRUCT(&shadow.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&shadow.framework_failed_components, opal_list_t);
    is_open = true;

    rc = mca_base_framework_components_register(&shadow, MCA_BASE_REGISTER_DEFAULT);
    if (OMPI_SUCCESS == rc) {
        rc = mca_base_framework_components_open(&shadow, MCA_BASE_OPEN_DEFAULT);
    }
    if (OMPI_SUCCESS == rc) {
        lender = find_libnbc(&shadow);
        rc = NULL == lender ? OMPI_ERR_NOT_FOUND
                            : lender->collm_init_query(progress_threads, mpi_threads);
    }
    if (OMPI_SUCCESS != rc) {
        ibshift_borrow_close();
    }
    return rc;
}

void ibshift_borrow_close(void)
{
    if (!is_open) {
        return;
    }
    lender = NULL;
    is_open = false;
    (void)mca_base_framework_components_close(&shadow, NULL);
    OBJ_DESTRUCT(&shadow.framework_components);
    OBJ_DESTRUCT(&shadow.framework_failed_components);
}

#define FILL(name)                                                                                 \
    if (NULL == comm->c_coll->coll_##name && NULL != module->coll_##name) {                        \
        comm->c_coll->coll_##name = module->coll_##name;                                           \
        comm->c_coll->coll_##name##_module = module;                                               \
        OBJ_RETAIN(module);                                                                        \
    }

int ibshift_borrow_fill(struct ompi_communicator_t *comm)
{
    mca_coll_base_module_t *module;
    int rc, priority;

    if (NULL == lender) {
        return OMPI_SUCCESS;
    }
    module = lender->collm_comm_query(comm, &priority);
    if (NULL == module) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = module->coll_module_enable(module, comm);
    if (OMPI_SUCCESS == rc) {
        IBSHIFT_COLLECTIVE_SLOTS(FILL)
        IBSHIFT_NEIGHBOR_SLOTS(FILL)
    }
    OBJ_RELEASE(module); /* the slots hold it now */
    return rc;
}

#include "coll_ibshift.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/mca/base/base.h"

#include <stdio.h>
#include <string.h>

/*
 * A second framework named coll that selects what is lent alone: found, registered and opened by
 * Open MPI's own machinery, and invisible to the communicators' selection.
 */
static mca_base_framework_t shadow = {
    .framework_project = "ompi",
    .framework_name = "coll",
    .framework_output = -1,
};
static bool is_open;

enum { LIBNBC, INTER, SELF, LENDER_COUNT };
static const char *const names[LENDER_COUNT] = {
    [LIBNBC] = "libnbc", [INTER] = "inter", [SELF] = "self"};
static mca_coll_base_component_t *lenders[LENDER_COUNT]; /* NULL: listed, nothing to borrow */

static mca_coll_base_component_t *find(mca_base_framework_t *framework, const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &framework->framework_components, mca_base_component_list_item_t)
    {
        if (0 == strcmp(item->cli_component->mca_component_name, name)) {
            return (mca_coll_base_component_t *)item->cli_component;
        }
    }
    return NULL;
}

static void select_unlisted(char *selection, size_t size)
{
    selection[0] = '\0';
    for (int i = 0; i < LENDER_COUNT; i++) {
        if (NULL == find(&ompi_coll_base_framework, names[i])) {
            size_t length = strlen(selection);
            snprintf(selection + length, size - length, "%s%s", length > 0 ? "," : "", names[i]);
        }
    }
}

static int open_shadow(void)
{
    int rc;

    shadow.framework_static_components = ompi_coll_base_framework.framework_static_components;
    OBJ_CONSTRUCT(&shadow.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&shadow.framework_failed_components, opal_list_t);
    is_open = true;
    rc = mca_base_framework_components_register(&shadow, MCA_BASE_REGISTER_DEFAULT);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    return mca_base_framework_components_open(&shadow, MCA_BASE_OPEN_DEFAULT);
}

int ibshift_borrow_open(bool progress_threads, bool mpi_threads)
{
    char selection[32];
    int rc;

    select_unlisted(selection, sizeof(selection));
    if (is_open || '\0' == selection[0]) {
        return OMPI_SUCCESS;
    }
    shadow.framework_selection = selection;
    rc = open_shadow();
    shadow.framework_selection = NULL;
    for (int i = 0; OMPI_SUCCESS == rc && i < LENDER_COUNT; i++) {
        lenders[i] = find(&shadow, names[i]);
        if (NULL != lenders[i]) {
            rc = lenders[i]->collm_init_query(progress_threads, mpi_threads);
        }
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
    memset(lenders, 0, sizeof(lenders));
    is_open = false;
    (void)mca_base_framework_components_close(&shadow, NULL);
    OBJ_DESTRUCT(&shadow.framework_components);
    OBJ_DESTRUCT(&shadow.framework_failed_components);
}

#define TAKE(name)                                                                                 \
    if (NULL != module->coll_##name && (replace || NULL == comm->c_coll->coll_##name)) {           \
        if (NULL != comm->c_coll->coll_##name##_module) {                                          \
            OBJ_RELEASE(comm->c_coll->coll_##name##_module);                                       \
        }                                                                                          \
        comm->c_coll->coll_##name = module->coll_##name;                                           \
        comm->c_coll->coll_##name##_module = module;                                               \
        OBJ_RETAIN(module);                                                                        \
    }

static int fill_from(mca_coll_base_component_t *lender, struct ompi_communicator_t *comm,
                     bool replace)
{
    mca_coll_base_module_t *module;
    int rc, priority;

    module = lender->collm_comm_query(comm, &priority);
    if (NULL == module) { /* not for this communicator */
        return OMPI_SUCCESS;
    }
    rc = module->coll_module_enable(module, comm);
    if (OMPI_SUCCESS == rc) {
        IBSHIFT_COLLECTIVE_SLOTS(TAKE)
        IBSHIFT_NEIGHBOR_SLOTS(TAKE)
    }
    OBJ_RELEASE(module); /* the slots hold it now */
    return rc;
}

int ibshift_borrow_fill(struct ompi_communicator_t *comm)
{
    int rc = OMPI_SUCCESS;

    if (NULL != lenders[LIBNBC]) {
        rc = fill_from(lenders[LIBNBC], comm, false);
    }
    if (OMPI_SUCCESS == rc && NULL != lenders[INTER] && OMPI_COMM_IS_INTER(comm)) {
        rc = fill_from(lenders[INTER], comm, true);
    }
    if (OMPI_SUCCESS == rc && NULL != lenders[SELF] && OMPI_COMM_IS_INTRA(comm) &&
        1 == ompi_comm_size(comm)) {
        rc = fill_from(lenders[SELF], comm, true);
    }
    return rc;
}

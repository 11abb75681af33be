/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */

#include "ompi_config.h"

#include "coll_ibshift.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/coll/base/base.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_component_repository.h"

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

enum { LIBNBC, INTER, SELF, TUNED };
static const char *const names[IBSHIFT_LENDERS] = {
    [LIBNBC] = "libnbc", [INTER] = "inter", [SELF] = "self", [TUNED] = "tuned"};
static mca_coll_base_component_t *lenders[IBSHIFT_LENDERS]; /* NULL: listed, nothing to borrow */

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

/* Open MPI ends the job where a component is selected that is not there. */
static bool is_installed(const char *name)
{
    const mca_base_component_t *fixed;
    mca_base_component_repository_item_t *item;
    opal_list_t *found = NULL;

    for (int i = 0; NULL != (fixed = ibshift_compat_static(&ompi_coll_base_framework, i)); i++) {
        if (0 == strcmp(fixed->mca_component_name, name)) {
            return true;
        }
    }
    (void)mca_base_component_repository_get_components(&ompi_coll_base_framework, &found);
    if (NULL != found) {
        OPAL_LIST_FOREACH(item, found, mca_base_component_repository_item_t)
        {
            if (0 == strcmp(item->ri_name, name)) {
                return true;
            }
        }
    }
    return false;
}

/* Nobody in the list but basic, and who may be borrowed, is there to serve in our place. */
static bool is_basic_alone(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_coll_base_framework.framework_components,
                      mca_base_component_list_item_t)
    {
        const char *name = item->cli_component->mca_component_name;
        bool is_other = 0 != strcmp(name, "ibshift") && 0 != strcmp(name, "basic");

        for (int i = 0; i < TUNED; i++) {
            is_other &= 0 != strcmp(name, names[i]);
        }
        if (is_other) {
            return false;
        }
    }
    return true;
}

static void select_unlisted(char *selection, size_t size)
{
    selection[0] = '\0';
    for (int i = 0; i < IBSHIFT_LENDERS; i++) {
        if (TUNED == i && !(is_basic_alone() && is_installed(names[i]))) {
            continue;
        }
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
    for (int i = 0; OMPI_SUCCESS == rc && i < IBSHIFT_LENDERS; i++) {
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

#define TAKE_SLOT(name) IBSHIFT_BORROW_SLOT(comm, module, &before, replaces, name)
#define TAKE(name)      IBSHIFT_FORMS(TAKE_SLOT, name)

static int fill_from(int lender, mca_coll_ibshift_module_t *ours, struct ompi_communicator_t *comm,
                     bool replaces)
{
    mca_coll_base_comm_coll_t before = *comm->c_coll;
    mca_coll_base_module_t *module;
    int rc, priority;

    module = NULL == lenders[lender] ? NULL : lenders[lender]->collm_comm_query(comm, &priority);
    if (NULL == module) { /* not for this communicator */
        return OMPI_SUCCESS;
    }
    rc = module->coll_module_enable(module, comm);
    if (OMPI_SUCCESS == rc) {
        IBSHIFT_NATIVE(TAKE)
    }
    if (OMPI_SUCCESS == rc && !IBSHIFT_SLOTS_HOLD) {
        ours->borrowed[lender] = module;
    } else {
        OBJ_RELEASE(module);
    }
    return rc;
}

int ibshift_borrow_fill(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    int rc = fill_from(LIBNBC, module, comm, false);

    if (OMPI_SUCCESS == rc && OMPI_COMM_IS_INTER(comm)) {
        rc = fill_from(INTER, module, comm, true);
    } else if (OMPI_SUCCESS == rc && 1 == ompi_comm_size(comm)) {
        rc = fill_from(SELF, module, comm, true);
    }
    return rc;
}

bool ibshift_borrow_has_tuned(void)
{
    return NULL != lenders[TUNED];
}

int ibshift_borrow_tuned(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    return fill_from(TUNED, module, comm, true);
}

void ibshift_borrow_return(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    for (int i = IBSHIFT_LENDERS - 1; i >= 0; i--) {
        if (NULL != module->borrowed[i]) {
            (void)module->borrowed[i]->coll_module_disable(module->borrowed[i], comm);
            OBJ_RELEASE(module->borrowed[i]);
            module->borrowed[i] = NULL;
        }
    }
}

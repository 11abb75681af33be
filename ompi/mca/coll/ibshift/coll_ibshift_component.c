#include "coll_ibshift.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_params.h"
#include "coll_ibshift_request.h"
#include "coll_ibshift_transport.h"

#include "mpi.h"
#include "ompi/constants.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/argv.h"
#include "opal/util/show_help.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PRIORITY_WHEN_NAMED = 45 }; /* above tuned, han and inter, below sync and self */

static const char release[] = IBSHIFT_OMPI_RELEASE;

/* Named in --mca coll (and not in a list of exclusions). */
static bool is_named(void)
{
    const char *selection = ompi_coll_base_framework.framework_selection;
    char **names;
    bool found = false;

    if (NULL == selection || '^' == selection[0]) {
        return false;
    }
    names = opal_argv_split(selection, ',');
    for (int i = 0; NULL != names && NULL != names[i]; i++) {
        found |= 0 == strcmp(names[i], "ibshift");
    }
    opal_argv_free(names);
    return found;
}

/* The release of the running library, as it says itself: "Open MPI v4.1.4, package: ...". */
static bool fits_release(char *running, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *from;
    int length = 0;

    if (MPI_SUCCESS != MPI_Get_library_version(text, &length) ||
        NULL == (from = strstr(text, "Open MPI v"))) {
        snprintf(running, size, "of an unknown version");
        return false;
    }
    from += strlen("Open MPI v");
    snprintf(running, size, "%.*s", (int)strcspn(from, ", "), from);
    return 0 == strcmp(running, release);
}

/* The first process that refuses ends the job, and what rank 0 has not printed by then is lost. */
static void let_rank_0_speak(void)
{
    if (0 != OMPI_PROC_MY_NAME->vpid) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
    }
}

static int component_register(void)
{
    char running[64];

    (void)opal_show_help_add_dir(IBSHIFT_HELP_DIR);
    if (!fits_release(running, sizeof(running))) {
        if (is_named()) {
            ibshift_help_once_a_job("wrong-release", release, running);
            let_rank_0_speak();
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    ibshift_params_register();
    ibshift_pvars_register();
    if (ibshift_params.priority < 0 && is_named()) {
        ibshift_params.priority = PRIORITY_WHEN_NAMED;
    }
    return OMPI_SUCCESS;
}

static int component_open(void)
{
    if (ibshift_params.priority < 0) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    ibshift_params_check();
    ibshift_choose_open();
    ibshift_transport_open(ibshift_trace_open);
    ibshift_requests_open();
    return OMPI_SUCCESS;
}

/*
 * When MPI_T is still in use, the components outlive MPI_Finalize, but what Open MPI's lower layers
 * had lent us is gone by then. The last module has ended what we have; the rest goes with the
 * process.
 */
static int component_close(void)
{
    if (ompi_mpi_state < OMPI_MPI_STATE_FINALIZE_COMPLETED) {
        ibshift_borrow_close();
        ibshift_end();
    }
    return OMPI_SUCCESS;
}

static int component_init_query(bool progress_threads, bool mpi_threads)
{
    return ibshift_borrow_open(progress_threads, mpi_threads);
}

mca_coll_base_component_t mca_coll_ibshift_component = {
    .collm_version =
        {
            IBSHIFT_COLL_BASE_VERSION,
            .mca_component_name = "ibshift",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init_query,
    .collm_comm_query = mca_coll_ibshift_comm_query,
};

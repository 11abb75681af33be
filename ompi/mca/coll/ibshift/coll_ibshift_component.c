/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"

#include "ompi/constants.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/installdirs/installdirs.h"
#include "opal/util/argv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PREFIX "OMPI_MCA_coll_ibshift_"

enum { PRIORITY_WHEN_NAMED = 45 }; /* above tuned, han and inter, below sync and self */

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

/* The first process that refuses ends the job, and what rank 0 has not printed by then is lost. */
static void let_rank_0_speak(void)
{
    if (0 != OMPI_PROC_MY_NAME->vpid) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 500 * 1000 * 1000}, NULL);
    }
}

static mca_base_var_type_t var_type(enum ibshift_param_type type)
{
    switch (type) {
    case IBSHIFT_PARAM_BOOL:
        return MCA_BASE_VAR_TYPE_BOOL;
    case IBSHIFT_PARAM_SIZE:
        return MCA_BASE_VAR_TYPE_SIZE_T;
    case IBSHIFT_PARAM_STRING:
        return MCA_BASE_VAR_TYPE_STRING;
    default:
        return MCA_BASE_VAR_TYPE_INT;
    }
}

/*
 * What mpirun was given. Open MPI takes what is no number for 0, or for its first digits, and its
 * message about a choice that is none may be lost (coll_ibshift.h); so it does not get to see them.
 */
static void check_text(const struct ibshift_param *p)
{
    char name[2 * IBSHIFT_PARAM_NAME];
    const char *text;

    snprintf(name, sizeof(name), PREFIX "%s", p->name);
    text = getenv(name);
    if (NULL != text && !ibshift_param_takes(p, text)) {
        ibshift_param_tell(p, text);
        (void)unsetenv(name);
    }
}

/* A text that Open MPI has made a null pointer of, since it was empty, it frees at the end. */
static void check_value(const struct ibshift_param *p)
{
    char given[IBSHIFT_PARAM_NUMBER];

    if (IBSHIFT_PARAM_STRING == p->type && NULL == *(char **)p->value) {
        *(char **)p->value = strdup(p->initial_text);
    }
    if (!ibshift_param_is_bounded(p)) {
        ibshift_param_tell(p, ibshift_param_text(p, false, given));
        ibshift_param_set_initial(p);
    }
}

static mca_base_var_enum_t *enumerate(const struct ibshift_param *p)
{
    mca_base_var_enum_value_t values[64] = {{0, NULL}};
    mca_base_var_enum_t *choices = NULL;
    char name[2 * IBSHIFT_PARAM_NAME];

    for (int i = 0; NULL != p->choices && NULL != p->choices[i] && i < 63; i++) {
        values[i] = (mca_base_var_enum_value_t){i, p->choices[i]};
    }
    if (NULL != p->choices) {
        snprintf(name, sizeof(name), "coll_ibshift_%s", p->name);
        (void)mca_base_var_enum_create(name, values, &choices);
    }
    return choices;
}

/*
 * A name that is one of coll_ibshift_expert now. Open MPI says nothing of a name in one of its files
 * that nobody registers; from the environment ibshift_params_check() finds it.
 */
static void register_moved(const struct ibshift_param *p)
{
    static char *given[64];
    static int count;
    char name[IBSHIFT_PARAM_NAME + sizeof(PREFIX)], shown[sizeof(name)];
    char **value = &given[count++ % 64];

    *value = NULL;
    (void)mca_base_component_var_register(&mca_coll_ibshift_component.collm_version, p->name,
                                          "A name in coll_ibshift_expert", MCA_BASE_VAR_TYPE_STRING,
                                          NULL, 0, MCA_BASE_VAR_FLAG_INTERNAL, OPAL_INFO_LVL_9,
                                          MCA_BASE_VAR_SCOPE_READONLY, value);
    snprintf(name, sizeof(name), PREFIX "%s", p->name);
    snprintf(shown, sizeof(shown), "coll_ibshift_expert (%s)", p->name);
    if (NULL != *value && NULL == getenv(name)) {
        ibshift_help_once_a_job("unknown-parameter", p->name, shown);
    }
}

static void register_row(void *context, const struct ibshift_param *p)
{
    mca_base_var_enum_t *choices;
    char *help;

    ibshift_param_set_initial(p);
    if (p->is_expert) {
        register_moved(p);
        return;
    }
    check_text(p);
    choices = enumerate(p);
    help = ibshift_param_help(p);
    (void)mca_base_component_var_register(
        &mca_coll_ibshift_component.collm_version, p->name, NULL == help ? p->help : help,
        var_type(p->type), choices, 0, p->is_settable ? MCA_BASE_VAR_FLAG_SETTABLE : 0,
        (mca_base_var_info_lvl_t)(OPAL_INFO_LVL_1 + p->level - 1),
        p->is_settable ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_READONLY, p->value);
    if (NULL != choices) {
        OBJ_RELEASE(choices);
    }
    free(help);
    check_value(p);
}

static void register_params(void)
{
    ibshift_params_visit(register_row, NULL);
    ibshift_params_read_expert();
}

/*
 * Not through opal_show_help(): between a process and mpirun, Open MPI 4.1.4 over PMIx 4 loses some of
 * those messages.
 */
static void set_teller(void)
{
    const struct ibshift_teller teller = {
        .folders = {IBSHIFT_HELP_DIR, opal_install_dirs.opaldatadir},
        .host = ompi_process_info.nodename,
        .job = OMPI_PROC_MY_NAME->jobid,
        .self = OMPI_PROC_MY_NAME->vpid,
        .event = ibshift_events_raise,
    };

    ibshift_teller_set(&teller);
}

static int component_register(void)
{
    set_teller();
    if (0 != strcmp(ompi_version_string, OMPI_IDENT_STRING)) { /* of the library; of its headers */
        if (is_named()) {
            ibshift_help_once_a_job("wrong-release", OMPI_IDENT_STRING, ompi_version_string);
            let_rank_0_speak();
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    register_params();
    ibshift_pvars_register();
    ibshift_events_register();
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
    set_teller(); /* MPI_T registers before MPI_Init, when this process has no name yet */
    ibshift_params_check(PREFIX);
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

MCA_BASE_COMPONENT_INIT(ompi, coll, ibshift)

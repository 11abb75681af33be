/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_tapes.h"

#include "ompi/runtime/mpiruntime.h"

#include <stdio.h>
#include <stdlib.h>

/* Keeps what is installed in a slot that we are about to take; without a fallback we leave it. */
#define SAVE_SLOT(name)                                                                            \
    if (NULL != module->super.coll_##name) {                                                       \
        module->fallback.coll_##name = comm->c_coll->coll_##name;                                  \
        module->fallback.coll_##name##_module = comm->c_coll->coll_##name##_module;                \
        if (NULL == module->fallback.coll_##name) {                                                \
            module->super.coll_##name = NULL;                                                      \
            skipped++;                                                                             \
        } else {                                                                                   \
            OBJ_RETAIN(module->fallback.coll_##name##_module);                                     \
            IBSHIFT_ENTER_SLOT(comm, &module->super, name);                                        \
        }                                                                                          \
    }
#define SAVE(name) IBSHIFT_FORMS(SAVE_SLOT, name)

#define GIVE_BACK_SLOT(name)                                                                       \
    if (NULL != module->fallback.coll_##name##_module) {                                           \
        OBJ_RELEASE(module->fallback.coll_##name##_module);                                        \
        module->fallback.coll_##name = NULL;                                                       \
        module->fallback.coll_##name##_module = NULL;                                              \
    }
#define GIVE_BACK(name) IBSHIFT_FORMS(GIVE_BACK_SLOT, name)

static void give_back_fallbacks(mca_coll_ibshift_module_t *module)
{
    IBSHIFT_NATIVE(GIVE_BACK)
}

#define LEAVE_SLOT(name) IBSHIFT_LEAVE_SLOT(comm, &module->super, &module->fallback, name)
#define LEAVE(name)      IBSHIFT_FORMS(LEAVE_SLOT, name)

#define INSTALL(name) ibshift_install_##name(&module->super);

/* All ranks of the communicator come to the same answer, from what all of them have published. */
static bool can_be_native(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    if (!OMPI_COMM_IS_INTRA(comm) || ompi_comm_size(comm) < 2 ||
        !ibshift_comm_wire_id(comm, &module->group.id)) {
        return false;
    }
    module->group.peers = ibshift_cards_peers(comm);
    return NULL != module->group.peers;
}

static void make_native(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    module->group.name = comm->c_name;
    module->group.rank = (uint32_t)ompi_comm_rank(comm);
    module->group.size = (uint32_t)ompi_comm_size(comm);
    if (IBSHIFT_NO_NUMBER != module->group.id) {
        ibshift_engine_enter(ibshift_endpoint.engine, module->group.id);
        ibshift_requests_enter(module);
    }
    IBSHIFT_NATIVE(INSTALL)
}

/* Once a job: nobody would see it otherwise. */
static void explain_unused(struct ompi_communicator_t *comm)
{
    char why[512];

    if (!ibshift_params.explain || comm != &ompi_mpi_comm_world.comm || 0 != ompi_comm_rank(comm)) {
        return;
    }
    ibshift_cards_why_not((uint32_t)ompi_comm_size(comm), why, sizeof(why));
    fprintf(stderr,
            "ibshift: %s, %d ranks: not used: %s; the collectives run in %s. \"ibshift info\" on "
            "that host says what it has\n",
            comm->c_name, ompi_comm_size(comm), why,
            ibshift_borrow_has_tuned() ? "tuned" : "the components beneath");
}

/* Up to 5.0 Open MPI calls it once for every slot that we hold. */
static int module_disable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;

    IBSHIFT_NATIVE(LEAVE)
    give_back_fallbacks(module);
    ibshift_borrow_return(module, comm);
    return OMPI_SUCCESS;
}

static int module_enable(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    int rc = ibshift_borrow_fill(module, comm), skipped = 0;

    if (OMPI_SUCCESS == rc && !can_be_native(module, comm)) {
        explain_unused(comm);
        rc = ibshift_borrow_tuned(module, comm);
    } else if (OMPI_SUCCESS == rc && ibshift_params.native) {
        make_native(module, comm);
        IBSHIFT_NATIVE(SAVE)
        if (skipped > 0) {
            ibshift_raise(IBSHIFT_EVENT_SKIPPED, (struct ibshift_event){.group = module->group.id,
                                                                        .collective = -1,
                                                                        .value = skipped});
        }
    }
    if (OMPI_SUCCESS != rc) {
        (void)module_disable(base, comm); /* nobody else does */
    }
    return rc;
}

void ibshift_end(void)
{
    ibshift_requests_close();
    ibshift_endpoint_close();
    ibshift_standing_end();
    ibshift_trace_close();
}

static _Atomic int modules; /* that live */

static void module_construct(mca_coll_ibshift_module_t *module)
{
    ibshift_device_look(ibshift_compat_devices());
    atomic_fetch_add_explicit(&modules, 1, memory_order_relaxed);
    /* All that is ours: OMPI_SUCCESS and what has been found of nothing are 0, too. */
    memset((char *)module + sizeof(module->super), 0, sizeof(*module) - sizeof(module->super));
    ibshift_ledger_init(&module->group.ledger);
    module->padded.left = module->padded.apart = 2;
    module->super.coll_module_enable = module_enable;
    module->super.coll_module_disable = module_disable;
    IBSHIFT_SET_REVOKE(&module->super, ibshift_revoke_local);
}

/* Also the way out of a module that was never enabled, or whose slots others took. */
static void module_destruct(mca_coll_ibshift_module_t *module)
{
    bool has_failed = false;

    give_back_fallbacks(module);
    ibshift_group_cast_free(&module->group);
    ibshift_group_free(&module->group);
    ibshift_tapes_free(module);
    if (NULL != module->group.peers && NULL != ibshift_endpoint.engine &&
        IBSHIFT_NO_NUMBER != module->group.id) {
        has_failed = ibshift_engine_forget(ibshift_endpoint.engine, module->group.id);
        ibshift_number_give_back(module);
    }
    ibshift_standing_free(module->standing, has_failed);
    module->standing = NULL;
    free(module->group.peers);
    free(module->padded.slots);
    if (1 == atomic_fetch_sub_explicit(&modules, 1, memory_order_relaxed) &&
        ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_STARTED) {
        ibshift_end();
    }
}

OBJ_CLASS_INSTANCE(mca_coll_ibshift_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

mca_coll_base_module_t *mca_coll_ibshift_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    mca_coll_ibshift_module_t *module = OBJ_NEW(mca_coll_ibshift_module_t);

    if (NULL == module) {
        ibshift_absent(comm);
        return NULL;
    }
    *priority = ibshift_params.priority;
    return &module->super;
}

/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"

#include "ompi/op/op.h"

#include <errno.h>

/*
 * The numbers of communicators on the wire. Open MPI's own are the same on all ranks, but for
 * communicators made from an MPI session: these have an identifier that is too long for our keys.
 * Their ranks agree on a number in the first blocking collective, where each may wait for the
 * others; what comes before that runs in the components beneath.
 */

enum { MOST_ATTEMPTS = 64 };

static mca_coll_ibshift_module_t *agreed; /* a list; under the engine's lock */

static mca_coll_ibshift_module_t *find_agreed(uint32_t id)
{
    mca_coll_ibshift_module_t *module = agreed;

    while (NULL != module && module->taken != id) {
        module = module->next_agreed;
    }
    return module;
}

/* False: another communicator of this process has it. */
static bool take_number(mca_coll_ibshift_module_t *module, uint32_t id)
{
    bool is_free;

    ibshift_engine_lock(ibshift_endpoint.engine);
    is_free = NULL == find_agreed(id);
    if (is_free) {
        module->taken = id;
        module->next_agreed = agreed;
        agreed = module;
    }
    ibshift_engine_unlock(ibshift_endpoint.engine);
    return is_free;
}

void ibshift_number_give_back(mca_coll_ibshift_module_t *module)
{
    mca_coll_ibshift_module_t **at = &agreed;

    ibshift_engine_lock(ibshift_endpoint.engine);
    while (NULL != *at && *at != module) {
        at = &(*at)->next_agreed;
    }
    if (NULL != *at) {
        *at = module->next_agreed;
    }
    ibshift_engine_unlock(ibshift_endpoint.engine);
}

/* Alike on all ranks; another one with each attempt, and another sequence for each communicator. */
static uint32_t draw_number(const struct ompi_communicator_t *comm, uint64_t attempt)
{
    uint64_t mixed = (ibshift_comm_long_id(comm) + attempt) * 0x9e3779b97f4a7c15u;

    return IBSHIFT_AGREED_NUMBERS | (uint32_t)(mixed >> 40) % IBSHIFT_AGREED_NUMBERS;
}

int ibshift_number_agree(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    int rc = OMPI_SUCCESS;

    /* Meanwhile the communicator's collectives run beneath: basic's allreduce is made of them. */
    module->group.id = IBSHIFT_AGREEING;
    for (uint64_t attempt = 0; attempt < MOST_ATTEMPTS && OMPI_SUCCESS == rc; attempt++) {
        int mine = take_number(module, draw_number(comm, attempt)), all = 0;

        rc = module->fallback.coll_allreduce(&mine, &all, 1, &ompi_mpi_int.dt, &ompi_mpi_op_min.op,
                                             comm, module->fallback.coll_allreduce_module);
        if (OMPI_SUCCESS == rc && 0 != all) {
            module->group.id = module->taken;
            ibshift_engine_enter(ibshift_endpoint.engine, module->group.id);
            return OMPI_SUCCESS;
        }
        ibshift_number_give_back(module);
    }
    module->group.id = IBSHIFT_NO_NUMBER;
    return OMPI_SUCCESS == rc ? OMPI_ERR_NOT_SUPPORTED : rc;
}

/* NULL: there is none yet, or it is not ours. */
static mca_coll_ibshift_module_t *find(uint32_t id)
{
    struct ompi_communicator_t *comm;
    uint32_t its_id;

    if (id >= IBSHIFT_AGREED_NUMBERS) {
        return find_agreed(id);
    }
    comm = ompi_comm_lookup(id);
    return NULL == comm || NULL == comm->c_coll || !ibshift_comm_wire_id(comm, &its_id) ||
                   its_id != id
               ? NULL
               : ibshift_module_of(comm);
}

/* Has it got as far as to its collectives? */
static bool has_comm(void *context, uint32_t id, uint32_t member)
{
    const mca_coll_ibshift_module_t *module = find(id);
    uint32_t rank = 0;

    if (NULL == module || IBSHIFT_ANY_MEMBER == member) {
        return NULL != module;
    }
    while (NULL != module->group.peers && rank < module->group.size &&
           module->group.peers[rank] != member) {
        rank++;
    }
    return NULL != module->group.peers && rank < module->group.size;
}

static struct ibshift_ledger *ledger(void *context, uint32_t id)
{
    mca_coll_ibshift_module_t *module = find(id);

    return NULL != module && NULL != module->group.peers ? &module->group.ledger : NULL;
}

const struct ibshift_net_comms ibshift_comms = {.is_here = has_comm, .ledger = ledger};

int ibshift_revoke_local(struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    mca_coll_ibshift_module_t *module = (mca_coll_ibshift_module_t *)base;
    int code = ibshift_comm_lost(comm), first = OMPI_SUCCESS;

    if (NULL != module->group.peers && module->group.id < IBSHIFT_AGREEING &&
        OMPI_SUCCESS != code && atomic_compare_exchange_strong(&module->failed, &first, code)) {
        ibshift_engine_give_up(ibshift_endpoint.engine, module->group.id,
                               module->group.peers[module->group.rank], -ECONNABORTED);
    }
    return OMPI_SUCCESS;
}

void ibshift_revoke_lost(void)
{
    for (int i = 0; i < opal_pointer_array_get_size(&ompi_mpi_communicators); i++) {
        struct ompi_communicator_t *comm = ompi_comm_lookup((uint32_t)i);
        mca_coll_ibshift_module_t *module =
            NULL == comm || NULL == comm->c_coll ? NULL : ibshift_module_of(comm);

        if (NULL != module) {
            (void)ibshift_revoke_local(comm, &module->super);
        }
    }
}

void ibshift_absent(const struct ompi_communicator_t *comm)
{
    struct ibshift_engine *engine = ibshift_endpoint.engine;
    uint32_t id;

    if (NULL != engine && ibshift_params.native && OMPI_COMM_IS_INTRA(comm) &&
        ibshift_comm_wire_id(comm, &id) && IBSHIFT_NO_NUMBER != id) {
        ibshift_engine_enter(engine, id);
        ibshift_engine_give_up(engine, id, OMPI_PROC_MY_NAME->vpid, -ENOMEM);
    }
}

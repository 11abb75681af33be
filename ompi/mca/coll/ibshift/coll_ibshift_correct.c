/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_alltoall_order.h"

#include "ompi/communicator/communicator.h"
#include "ompi/op/op.h"

#include <stdio.h>

enum { MOST_AT_ONCE = 8 }; /* trials that are compared in one allreduce */

/* Where ranks know unlike sizes, or an order of the fabric decides, nothing is tried. A rank's own
 * file does not tell: others may have none. */
static bool is_free(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return ibshift_params.correct > 0 && 0 == job->needs &&
           (IBSHIFT_ALLTOALL != job->collective || !ibshift_comm_order_is_agreed(module));
}

/* Every rank waits for every other. */
static bool meets_all(const struct ibshift_job *job)
{
    switch (job->collective) {
    case IBSHIFT_BARRIER:
        return true;
    case IBSHIFT_ALLGATHER:
    case IBSHIFT_ALLTOALL:
    case IBSHIFT_ALLREDUCE:
        return 0 == job->needs && job->bytes > 0;
    default:
        return false;
    }
}

static bool commutes(const struct ibshift_job *job)
{
    return NULL != job->op && ompi_op_is_commute(job->op);
}

static struct ibshift_correction *find(mca_coll_ibshift_module_t *module,
                                       const struct ibshift_job *job)
{
    return ibshift_correction_find(module->corrections, job->collective, job->bytes, commutes(job));
}

int ibshift_correct_plan(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                         struct ibshift_op_params *params)
{
    const struct ibshift_named named = ibshift_params_named(job->collective);
    const struct ibshift_kept_choice *kept;
    struct ibshift_question question;
    struct ibshift_correction *c;
    bool lacks_memory;
    int rc;

    if (!is_free(module, job)) {
        return OMPI_SUCCESS;
    }
    kept = ibshift_choices_at(&module->choices, job->collective,
                              ibshift_job_kind(job, params->plan.commutative, true), job->bytes);
    c = find(module, job);
    if (NULL == c && NULL == (c = ibshift_correction_add(&module->corrections, job->collective,
                                                         job->bytes, commutes(job)))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!ibshift_choice_holds(&c->own, &named)) {
        rc = ibshift_choose_question(module, job, &params->plan, true, &lacks_memory, &question);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        ibshift_correction_open(c, kept, &question);
        if (lacks_memory) { /* the others may have rivals that could not be priced here */
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    ibshift_choose_run(module, job->collective, &c->own.choice, params);
    if (c->is_rivals) {
        params->alg = c->rival[c->now].alg;
        ibshift_choice_take(&c->rival[c->now], &params->plan);
    }
    return OMPI_SUCCESS;
}

void ibshift_correct_begin(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                           struct ibshift_corrected *call)
{
    const struct ibshift_named named = ibshift_params_named(job->collective);
    struct ibshift_correction *c;

    *call = (struct ibshift_corrected){.correction = NULL};
    if (!is_free(module, job) || module->is_agreeing) {
        return;
    }
    c = find(module, job);
    if (NULL == c || !ibshift_choice_holds(&c->own, &named) || c->now == c->rivals ||
        ibshift_trial_is_full(&c->trial)) {
        return;
    }
    call->turn = ibshift_trial_next(
        &c->trial, ibshift_params.correct < 2 ? 2 : (uint32_t)ibshift_params.correct);
    if (IBSHIFT_TRIAL_IDLE != call->turn) {
        call->correction = c;
        call->begin = ibshift_net_now(ibshift_endpoint.net);
    }
    c->is_rivals = IBSHIFT_TRIAL_RIVAL == call->turn;
}

/* All trials that are full, by one allreduce of integers: every rank gets the same sums. */
static int agree(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_correction *full[MOST_AT_ONCE];
    uint64_t sums[MOST_AT_ONCE][2];
    int count = ibshift_correction_full(module->corrections, MOST_AT_ONCE, full, sums), rc;

    if (0 == count) {
        return OMPI_SUCCESS;
    }
    module->is_agreeing = true;
    rc = comm->c_coll->coll_allreduce(MPI_IN_PLACE, sums, 2 * count, MPI_UINT64_T, MPI_SUM, comm,
                                      comm->c_coll->coll_allreduce_module);
    module->is_agreeing = false;
    for (int i = 0; OMPI_SUCCESS == rc && i < count; i++) {
        struct ibshift_line line = {.length = 0};

        ibshift_correction_judge(full[i], sums[i], module->size, &line);
        if (ibshift_params.explain && 0 == module->rank) {
            fprintf(stderr, "ibshift: %s, %u ranks: %s\n", comm->c_name, module->size, line.text);
        }
    }
    return rc;
}

int ibshift_correct_end(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                        const struct ibshift_job *job, const struct ibshift_corrected *call, int rc)
{
    struct ibshift_correction *c = call->correction;

    if (NULL != c) {
        ibshift_trial_take(&c->trial, (enum ibshift_trial_turn)call->turn,
                           ibshift_net_now(ibshift_endpoint.net) - call->begin);
        c->is_rivals = false;
    }
    if (OMPI_SUCCESS != rc || NULL == module->corrections || module->is_agreeing ||
        !meets_all(job)) {
        return rc;
    }
    return agree(module, comm);
}

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
#include <stdlib.h>
#include <time.h>

enum {
    RIVALS = 8,      /* one after the other */
    TOO_DEAR = 4,    /* a rival may be priced at so many times the plan that was chosen */
    MOST_AT_ONCE = 8 /* trials that are compared in one allreduce */
};

/* Of a collective and a class of sizes. */
struct ibshift_correction {
    struct ibshift_correction *next;
    enum ibshift_collective collective;
    int class;
    bool commutes;
    struct ibshift_kept_choice own; /* the model's, until a rival was better */
    struct ibshift_choice rival[RIVALS];
    int rivals, now; /* now == rivals: done */
    bool is_rivals;  /* the call that is under way */
    struct ibshift_trial trial;
};

static uint64_t time_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

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
    int class = ibshift_size_class(job->bytes);
    struct ibshift_correction *c = module->corrections;

    while (NULL != c && (c->collective != job->collective || c->class != class ||
                         c->commutes != commutes(job))) {
        c = c->next;
    }
    return c;
}

/* What the model chose, or a parameter, is the plan to beat. */
static void open_trials(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                        const struct ibshift_plan *plan, const struct ibshift_kept_choice *kept,
                        struct ibshift_correction *c)
{
    struct ibshift_question question;

    c->own = *kept;
    c->now = c->rivals = 0;
    c->is_rivals = false;
    c->trial = (struct ibshift_trial){.calls = 0};
    ibshift_choose_question(module, job, plan, true, &question);
    if (!kept->is_wished && c->own.choice.price.last >= 0) {
        c->rivals = ibshift_choose_rivals(&question, &c->own.choice, TOO_DEAR, c->rival, RIVALS);
    }
}

static struct ibshift_correction *add_correction(mca_coll_ibshift_module_t *module,
                                                 const struct ibshift_job *job)
{
    struct ibshift_correction *c = calloc(1, sizeof(*c));

    if (NULL != c) {
        c->collective = job->collective;
        c->class = ibshift_size_class(job->bytes);
        c->commutes = commutes(job);
        c->next = module->corrections;
        module->corrections = c;
    }
    return c;
}

int ibshift_correct_plan(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                         struct ibshift_op_params *params)
{
    const struct ibshift_named named = ibshift_params_named(job->collective);
    const struct ibshift_kept_choice *kept;
    struct ibshift_correction *c;

    if (!is_free(module, job)) {
        return OMPI_SUCCESS;
    }
    kept = ibshift_choices_at(&module->choices, job->collective,
                              ibshift_job_kind(job, params->plan.commutative, true), job->bytes);
    c = find(module, job);
    if (NULL == c && NULL == (c = add_correction(module, job))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!ibshift_choice_holds(&c->own, &named)) {
        open_trials(module, job, &params->plan, kept, c);
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
        call->begin = time_ns();
    }
    c->is_rivals = IBSHIFT_TRIAL_RIVAL == call->turn;
}

static void add_plan(const struct ibshift_choice *choice, char *text, size_t size)
{
    if (choice->alg->radix_max > 0) {
        snprintf(text, size, "%s, radix %u", choice->alg->name, choice->radix);
    } else {
        snprintf(text, size, "%s", choice->alg->name);
    }
}

static void explain(const struct ompi_communicator_t *comm, const struct ibshift_correction *c,
                    uint32_t ranks, const double us[2], bool is_better)
{
    const struct ibshift_choice *rival = &c->rival[c->now];
    char own[64], other[64];

    add_plan(&c->own.choice, own, sizeof(own));
    add_plan(rival, other, sizeof(other));
    fprintf(
        stderr,
        "ibshift: %s, %u ranks: %s up to %llu B measured: %s %.2f us (modelled %.2f), %s %.2f us "
        "(modelled %.2f) on average over the ranks: %s from now on\n",
        comm->c_name, ranks, ibshift_collective_name(c->collective),
        (unsigned long long)(IBSHIFT_BARRIER == c->collective ? 0 : ibshift_class_size(c->class)),
        own, us[IBSHIFT_TRIAL_OWN], c->own.choice.price.last, other, us[IBSHIFT_TRIAL_RIVAL],
        rival->price.last, is_better ? other : own);
}

/* The better one meets the next rival. */
static void judge(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                  struct ibshift_correction *c, const uint64_t sums[2])
{
    bool is_better = ibshift_trial_is_better(sums[IBSHIFT_TRIAL_RIVAL], sums[IBSHIFT_TRIAL_OWN]);
    double us[2];

    for (int turn = 0; turn < 2; turn++) {
        us[turn] = (double)sums[turn] / 1e3 / module->size;
    }
    if (ibshift_params.explain && 0 == module->rank) {
        explain(comm, c, module->size, us, is_better);
    }
    if (is_better) {
        c->own.choice = c->rival[c->now];
    }
    c->own.measured = us[is_better ? IBSHIFT_TRIAL_RIVAL : IBSHIFT_TRIAL_OWN];
    c->now++;
    c->trial = (struct ibshift_trial){.calls = 0};
}

/* All trials that are full, by one allreduce of integers: every rank gets the same sums. */
static int agree(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_correction *full[MOST_AT_ONCE];
    uint64_t sums[MOST_AT_ONCE][2];
    int count = 0, rc;

    for (struct ibshift_correction *c = module->corrections; NULL != c && count < MOST_AT_ONCE;
         c = c->next) {
        if (c->now < c->rivals && ibshift_trial_is_full(&c->trial)) {
            sums[count][0] = ibshift_trial_quartile(&c->trial, IBSHIFT_TRIAL_OWN);
            sums[count][1] = ibshift_trial_quartile(&c->trial, IBSHIFT_TRIAL_RIVAL);
            full[count++] = c;
        }
    }
    if (0 == count) {
        return OMPI_SUCCESS;
    }
    module->is_agreeing = true;
    rc = comm->c_coll->coll_allreduce(MPI_IN_PLACE, sums, 2 * count, MPI_UINT64_T, MPI_SUM, comm,
                                      comm->c_coll->coll_allreduce_module);
    module->is_agreeing = false;
    for (int i = 0; OMPI_SUCCESS == rc && i < count; i++) {
        judge(module, comm, full[i], sums[i]);
    }
    return rc;
}

int ibshift_correct_end(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                        const struct ibshift_job *job, const struct ibshift_corrected *call, int rc)
{
    struct ibshift_correction *c = call->correction;

    if (NULL != c) {
        ibshift_trial_take(&c->trial, (enum ibshift_trial_turn)call->turn, time_ns() - call->begin);
        c->is_rivals = false;
    }
    if (OMPI_SUCCESS != rc || NULL == module->corrections || module->is_agreeing ||
        !meets_all(job)) {
        return rc;
    }
    return agree(module, comm);
}

void ibshift_corrections_free(mca_coll_ibshift_module_t *module)
{
    while (NULL != module->corrections) {
        struct ibshift_correction *c = module->corrections;

        module->corrections = c->next;
        free(c);
    }
}

/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_alltoall_order.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibshift_source source; /* of the prices */

static struct ibshift_rules rules;

/* What coll_ibshift_pace asks for. */
static struct {
    bool is_auto;
    struct ibshift_pace wish;
} pacing;

/* What is wrong is reported; then the model chooses. */
static void read_rules(void)
{
    char error[IBSHIFT_TEXT_ERROR];

    ibshift_rules_free(&rules);
    if ('\0' != ibshift_params.rules[0] &&
        (!ibshift_params_may_open(ibshift_params.rules, error, sizeof(error)) ||
         0 != ibshift_rules_read(ibshift_params.rules, &rules, error))) {
        ibshift_help_once_a_job("bad-rules", error);
    }
}

void ibshift_choose_open(void)
{
    const char *model = ibshift_params.model;
    char error[IBSHIFT_TEXT_ERROR];

    if (!ibshift_params_may_open(model, error, sizeof(error))) {
        ibshift_help_once_a_job("bad-model", error);
        model = "";
    }
    if (0 != ibshift_source_open(&source, model, ibshift_params.eager_limit, error)) {
        ibshift_help_once_a_job("bad-model", error);
    }
    source.is_given = '\0' != ibshift_params.model[0]; /* also where it cannot be read */
    read_rules();
    pacing.is_auto = 0 == strcmp(ibshift_params.pace, "auto");
    if (!pacing.is_auto &&
        0 != ibshift_pace_parse(ibshift_params.pace, &pacing.wish, error, sizeof(error))) {
        ibshift_help_once_a_job("bad-pace", error);
        pacing.is_auto = true;
    }
}

uint64_t ibshift_choose_digest(void)
{
    return ibshift_rules_digest(&rules, ibshift_levels_digest(&source.given));
}

uint64_t ibshift_choose_tuned(const char *device, uint32_t mbps, const char *firmware)
{
    const struct ibshift_made own = ibshift_tuned_made(device, firmware, mbps, OMPI_MAJOR_VERSION,
                                                       OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
    char error[IBSHIFT_TEXT_ERROR];

    if (ibshift_source_find(&source, ibshift_params.site, ibshift_params.model, &own) &&
        (!ibshift_params_may_open(source.path, error, sizeof(error)) ||
         0 != ibshift_source_measure(&source, &own, ibshift_params.eager_limit, error))) {
        ibshift_help_once_a_job("warning", ompi_process_info.nodename, error);
    }
    return source.digest;
}

void ibshift_choices_free(mca_coll_ibshift_module_t *module)
{
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(&module->choices, (enum ibshift_collective)i);
    }
    ibshift_crowd_free(&module->choices.crowd);
    ibshift_nodes_free(&module->choices.nodes);
    for (int i = 0; i < IBSHIFT_PACED_FORMS * IBSHIFT_SIZE_CLASSES; i++) {
        free(module->pacing.by_class[i / IBSHIFT_SIZE_CLASSES][i % IBSHIFT_SIZE_CLASSES]);
    }
}

static void explain_crowd(const mca_coll_ibshift_module_t *module,
                          const struct ompi_communicator_t *comm)
{
    const struct ibshift_crowd *crowd = &module->choices.crowd;
    char costs[768];
    uint32_t host, port;
    uint32_t on_host = ibshift_crowd_most(crowd->host_of, module->size, crowd->hosts, &host);
    uint32_t on_port = ibshift_crowd_most(crowd->port_of, module->size, crowd->ports, &port);

    ibshift_source_words(&source, module->choices.model, module->choices.is_measured, costs,
                         sizeof(costs));
    fprintf(stderr,
            "ibshift: %s, %u ranks: at most %u per host (of %u processors) and %u per port; "
            "costs %s\n",
            comm->c_name, module->size, on_host, crowd->processors[host], on_port, costs);
}

/* The nodes: processes of one host that share no memory, as in containers, are several. */
static int make_nodes(const struct ibshift_place *places, uint32_t ranks,
                      struct ibshift_nodes *nodes)
{
    struct ibshift_crowd by_node;
    int rc = ibshift_crowd_make(places, ranks, &by_node);

    if (0 == rc) {
        rc = ibshift_nodes_make(by_node.host_of, ranks, nodes);
        ibshift_crowd_free(&by_node);
    }
    return rc;
}

/* Who shares what, and what that costs, from the cards, which all ranks see alike, so that they come to the same plans. */
static int find_crowd(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    struct ibshift_choices *choices = &module->choices;
    struct ibshift_place *places, *by_node;
    bool is_software = false, share_memory = true, is_one_node = true;
    const struct ibshift_levels *levels;
    int rc = -ENOMEM;

    if (NULL != choices->model) {
        return OMPI_SUCCESS;
    }
    places = malloc(2 * module->size * sizeof(*places));
    by_node = places + module->size;
    choices->is_measured = 0 != source.digest;
    for (uint32_t rank = 0; NULL != places && rank < module->size; rank++) {
        struct ibshift_card_place card;

        (void)ibshift_card_place(module->peers[rank], &card);
        by_node[rank] = places[rank] =
            (struct ibshift_place){card.host, card.port, card.processors, card.is_crowded};
        by_node[rank].host = 0 != card.node ? card.node : card.host;
        is_software |= card.is_software;
        share_memory &= 0 != card.node;
        is_one_node &= by_node[rank].host == by_node[0].host;
        choices->is_measured &= card.costs == source.digest;
    }
    if (NULL != places && 0 == ibshift_crowd_make(places, module->size, &choices->crowd)) {
        rc = make_nodes(by_node, module->size, &choices->nodes);
        if (0 != rc) {
            ibshift_crowd_free(&choices->crowd);
        }
    }
    free(places);
    if (0 != rc) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    levels = choices->is_measured ? &source.measured : &source.given;
    choices->near = share_memory ? &levels->node : NULL;
    choices->model = share_memory && is_one_node ? &levels->node
                     : is_software               ? &levels->software
                                                 : &levels->hardware;
    if (ibshift_params.explain && 0 == module->rank) {
        explain_crowd(module, comm);
    }
    return OMPI_SUCCESS;
}

static uint64_t bytes_to_price(const struct ibshift_job *job)
{
    if (ibshift_job_is_any_size(job)) {
        return IBSHIFT_SIZE_UNKNOWN;
    }
    return job->bytes == 0 ? 0 : ibshift_class_size(ibshift_size_class(job->bytes));
}

/*
 * Packets of a long all-to-all would fill the buffers of a circle of links. Those of eager messages
 * and of other collectives, with few flows at once, hardly do.
 */
static bool may_deadlock(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    return module->order.may_deadlock && IBSHIFT_ALLTOALL == job->collective &&
           (ibshift_job_is_any_size(job) || bytes_to_price(job) > ibshift_params.eager_limit);
}

static void explain(const mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                    const struct ibshift_job *job, const struct ibshift_question *question,
                    const struct ibshift_answer *answer)
{
    const struct ibshift_alg *alg = answer->best.alg;
    const struct ibshift_decision decision = {
        .question = question,
        .answer = answer,
        .call = job->name,
        .is_any_size = ibshift_job_is_any_size(job),
        .order = NULL == alg ? NULL
                 : ibshift_comm_order_renames(module, job, alg)
                     ? "in routing order"
                     : ibshift_comm_order_words(module, question->plan, alg),
        .is_pace_asked_for = IBSHIFT_ALLTOALL == job->collective && !pacing.is_auto,
        .is_named = NULL != ibshift_params_wish(job->collective).alg,
        .beneath = may_deadlock(module, job) ? "the fabric's service levels are not known" : NULL};
    struct ibshift_line line = {.length = 0};

    ibshift_line_add(&line, "ibshift: %s, %u ranks: ", comm->c_name, module->size);
    ibshift_make_plain(line.text);
    ibshift_words_decision(&line, &decision);
    fprintf(stderr, "%s\n", line.text);
}

/* Once for each collective: the algorithm of a parameter, or of a rule, cannot do what it was asked for. */
static void tell_unfit(const struct ompi_communicator_t *comm, const struct ibshift_job *job,
                       const struct ibshift_question *question, const struct ibshift_alg *wished)
{
    static atomic_bool is_told[IBSHIFT_COLLECTIVES];
    struct ibshift_line why = {.length = 0}, able = {.length = 0};

    if (!atomic_exchange(&is_told[job->collective], true)) {
        ibshift_words_unfit(question, wished, &why, &able);
        ibshift_help_once_a_job("unfit-algorithm", ibshift_collective_name(job->collective),
                                wished->name, job->name, comm->c_name, question->plan->ranks,
                                why.text, able.text);
    }
}

static uint32_t all_hosts(const mca_coll_ibshift_module_t *module)
{
    return ibshift_comm_order_is_agreed(module) ? ibshift_fabric_file.fabric->host_count : 0;
}

/* As all ranks see it. */
static bool is_adaptive(const mca_coll_ibshift_module_t *module)
{
    return ibshift_params.adaptive > 0 || (0 != all_hosts(module) && ibshift_fabric_is_adaptive());
}

/* Of the fullest host. */
static uint32_t ranks_on_host(const mca_coll_ibshift_module_t *module)
{
    return 0 == module->order.located.slots && is_adaptive(module) ? module->choices.crowd.most
                                                                   : module->order.located.slots;
}

/* Short ones need a narrower window along the fabric alone, if all of a window are many bytes. */
static bool needs_no_pace(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job)
{
    if (IBSHIFT_ALLTOALL != job->collective || module->size < 2) {
        return true;
    }
    if (ibshift_job_is_any_size(job)) {
        return !pacing.is_auto && IBSHIFT_PACE_CLK == pacing.wish.kind;
    }
    return job->bytes <= ibshift_params.eager_limit &&
           (!pacing.is_auto || job->bytes * (uint32_t)ibshift_params.window <= IBSHIFT_PACE_BYTES ||
            (0 == all_hosts(module) && !is_adaptive(module)));
}

/* How rows whose steps are free send, and what was looked at. A table of stages has the hosts of the order that was found first.
 * The costs are the price's, so that both mean the same post; of ranks that share memory, as if they did not. */
static void decide_pace(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                        bool is_blocking, struct ibshift_paced *paced)
{
    const struct ibshift_levels *levels =
        module->choices.is_measured ? &source.measured : &source.given;
    const struct ibshift_model *model =
        &levels->node == module->choices.model ? &levels->hardware : module->choices.model;
    const struct ibshift_pacing_fabric fabric = {.hosts = all_hosts(module),
                                                 .ring = ibshift_fabric_file.ring,
                                                 .kib =
                                                     ibshift_fabric_file_kib(&ibshift_fabric_file)};
    struct ibshift_pace_facts facts = {
        .bytes = ibshift_job_is_any_size(job) ? 0 : job->bytes,
        .eager = ibshift_params.eager_limit,
        .ranks = module->size,
        .on_host = ranks_on_host(module),
        .is_adaptive = is_adaptive(module),
        .share = module->order.share,
        .burst = ibshift_params.burst,
        .window = (uint32_t)ibshift_params.window,
        .has_free_steps = true,
        .is_attended = is_blocking && !module->choices.crowd.is_crowded,
    };

    ibshift_pacing_add(&facts, model, &fabric);
    if (pacing.is_auto) {
        ibshift_pace_choose(&facts, &paced->pace, &paced->reason);
    } else {
        paced->pace = pacing.wish;
        paced->reason = "asked for";
    }
    paced->is_told = false;
    paced->share = facts.share;
    paced->pace.delay = (uint64_t)facts.latency;
    paced->pace.sync = 10ull * 1000 * 1000 * 1000; /* ns */
    paced->pace.clock = &module->pacing.clock;
    paced->pace.memory = &paced->memory;
}

/* The pace of such a job, made when its size is met first; NULL: it needs none. Without memory for it this rank would choose
 * otherwise than the others. */
static int find_paced(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                      bool is_blocking, struct ibshift_paced **paced)
{
    unsigned form = (ibshift_job_is_any_size(job) ? IBSHIFT_PACED_UNEQUAL : 0) |
                    (is_blocking ? IBSHIFT_PACED_ATTENDED : 0);
    struct ibshift_paced **place;
    bool is_new;

    *paced = NULL;
    if (needs_no_pace(module, job)) {
        return OMPI_SUCCESS;
    }
    place = &module->pacing.by_class[form][ibshift_size_class(job->bytes)];
    is_new = NULL == *place;
    if (is_new) {
        *place = calloc(1, sizeof(**place));
    }
    if (NULL == *place) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (is_new || (pacing.is_auto && (*place)->share != module->order.share)) {
        decide_pace(module, job, is_blocking, *place);
    }
    *paced = *place;
    return OMPI_SUCCESS;
}

int ibshift_choose_question(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                            const struct ibshift_plan *plan, bool is_blocking, bool *lacks_memory,
                            struct ibshift_question *question)
{
    struct ibshift_paced *paced;
    int rc = find_paced(module, job, is_blocking, &paced);

    *question = (struct ibshift_question){
        .collective = job->collective,
        .needs = job->needs,
        .plan = plan,
        .bytes = bytes_to_price(job),
        .window = (uint32_t)ibshift_params.window,
        .free = NULL != paced ? ibshift_pacing_sending(&paced->pace) : (struct ibshift_sending){0},
        .grants_anew = ibshift_job_grants_anew(job, is_blocking),
        .leader_memory = ibshift_params.leader_memory,
        .crowd = &module->choices.crowd,
        .model = module->choices.model,
        .near = module->choices.near,
        .is_brief = !ibshift_params.explain,
        .lacks_memory = lacks_memory,
        .wish = ibshift_params_wish(job->collective),
        .rules = &rules};
    *lacks_memory = false;
    return rc;
}

static int decide(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                  const struct ibshift_job *job, struct ibshift_op_params *params,
                  struct ibshift_kept_choice *kept)
{
    static atomic_bool is_told;
    struct ibshift_question question;
    struct ibshift_answer answer;
    struct ibshift_plan plan = params->plan;
    bool lacks_memory;
    int rc = find_crowd(module, comm);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    plan.nodes = &module->choices.nodes;
    plan.root = 0; /* also where ranks come to roots in another order */
    rc = ibshift_choose_question(module, job, &plan, params->is_attended, &lacks_memory, &question);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    answer = ibshift_choose(&question);
    if (lacks_memory) { /* the others may have chosen what could not be priced here */
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != answer.wish.alg && answer.wish.alg != answer.best.alg &&
        !ibshift_job_is_long_part(job)) {
        tell_unfit(comm, job, &question, answer.wish.alg);
    }
    if (may_deadlock(module, job)) {
        answer.best.alg = NULL;
        if (!atomic_exchange(&is_told, true)) {
            ibshift_help_once_a_job("no-service-levels", comm->c_name);
        }
    }
    if (ibshift_params.explain && 0 == module->rank) {
        explain(module, comm, job, &question, &answer);
    }
    *kept = (struct ibshift_kept_choice){
        .choice = answer.best, .is_known = true, .named = ibshift_params_named(job->collective)};
    return OMPI_SUCCESS;
}

static void explain_pace(const struct ompi_communicator_t *comm, const struct ibshift_job *job,
                         const struct ibshift_paced *paced)
{
    char pace[32];

    ibshift_pace_format(&paced->pace, pace, sizeof(pace));
    fprintf(stderr, "ibshift: %s: %s of %llu B: pace %s; %s\n", comm->c_name, job->name,
            (unsigned long long)job->bytes, pace, paced->reason);
}

/* Rows whose steps wait for one another have none, also where one is asked for: what a pace holds
 * back, they wait for, and they are priced without. */
static int take_pace(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                     const struct ibshift_job *job, bool is_blocking,
                     struct ibshift_op_params *params)
{
    struct ibshift_paced *paced = NULL;
    int rc = 0 == (params->alg->flags & IBSHIFT_ALG_FREE)
                 ? OMPI_SUCCESS
                 : find_paced(module, job, is_blocking, &paced);

    params->pace = NULL;
    params->window = (uint32_t)ibshift_params.window;
    if (NULL == paced) {
        return rc;
    }
    if (ibshift_params.explain && 0 == module->rank && !paced->is_told) {
        explain_pace(comm, job, paced);
    }
    paced->is_told = true;
    if (ibshift_pace_is_held(&paced->pace)) {
        params->pace = &paced->pace;
    } else if (IBSHIFT_PACE_WINDOW == paced->pace.kind) {
        params->window = paced->pace.window;
        params->piece = paced->pace.piece;
    }
    params->plan.in_sequence = ibshift_comm_order_in_sequence(module, &paced->pace);
    return OMPI_SUCCESS;
}

int ibshift_choose_call(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                        const struct ibshift_job *job, bool is_blocking,
                        struct ibshift_op_params *params)
{
    const struct ibshift_named named = ibshift_params_named(job->collective);
    struct ibshift_kept_choice *kept = ibshift_choices_at(
        &module->choices, job->collective,
        ibshift_job_kind(job, params->plan.commutative, is_blocking), job->bytes);
    int rc = OMPI_SUCCESS;

    if (NULL == kept) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (!ibshift_choice_holds(kept, &named)) {
        rc = decide(module, comm, job, params, kept);
    }
    if (OMPI_SUCCESS == rc) {
        ibshift_choose_run(module, job->collective, &kept->choice, params);
        rc = NULL == params->alg ? OMPI_ERR_NOT_SUPPORTED : OMPI_SUCCESS;
    }
    return OMPI_SUCCESS == rc ? take_pace(module, comm, job, is_blocking, params) : rc;
}

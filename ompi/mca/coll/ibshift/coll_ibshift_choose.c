#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_alltoall_order.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_SIZE = 8192 /* what is priced when no rank knows all sizes */ };

/* As coll_ibshift_model says, or typical ones; and as `ibshift tune` measured them here. */
static struct ibshift_levels models, measured;

static struct ibshift_made given; /* what coll_ibshift_model says of itself */

/* Of the measured ones. */
static struct {
    uint64_t digest; /* 0: there are none */
    char path[PATH_MAX];
    char note[512]; /* why they are not used, or doubtful; empty: they are */
} tuned;

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
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_costs costs;

    given = (struct ibshift_made){.ompi = ""};
    models = ibshift_levels_typical();
    if ('\0' != ibshift_params.model[0]) {
        if (!ibshift_params_may_open(ibshift_params.model, error, sizeof(error)) ||
            0 != ibshift_costs_read(ibshift_params.model, &costs, error)) {
            ibshift_help_once_a_job("bad-model", error);
        } else {
            ibshift_levels_take(&models, &costs);
            given = costs.made;
        }
    }
    ibshift_levels_limit(&models, ibshift_params.eager_limit);
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
    return ibshift_rules_digest(&rules, ibshift_levels_digest(&models));
}

/* Reads the file; those of another machine, copied to this name, are not used either. */
static void take_tuned(const struct ibshift_made *own, bool is_stale)
{
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_costs costs;

    if (!ibshift_params_may_open(tuned.path, error, sizeof(error)) ||
        0 != ibshift_costs_read(tuned.path, &costs, error)) {
        ibshift_help_once_a_job("warning", ompi_process_info.nodename, error);
        return;
    }
    ibshift_tuned_differ(&costs.made, own, tuned.path, tuned.note, sizeof(tuned.note));
    if (is_stale || '\0' != tuned.note[0]) {
        return;
    }
    ibshift_tuned_doubt(&costs.made, own, tuned.path, tuned.note, sizeof(tuned.note));
    measured = ibshift_levels_typical();
    ibshift_levels_take(&measured, &costs);
    measured.hardware.at_once = measured.software.at_once = 0; /* as it is in this job */
    ibshift_levels_limit(&measured, ibshift_params.eager_limit);
    tuned.digest = ibshift_levels_digest(&measured);
}

uint64_t ibshift_choose_tuned(const char *device, uint32_t mbps, const char *firmware)
{
    const struct ibshift_made own = ibshift_tuned_made(device, firmware, mbps, OMPI_MAJOR_VERSION,
                                                       OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
    enum ibshift_tuned found;

    tuned.digest = 0;
    tuned.note[0] = '\0';
    if ('\0' != ibshift_params.model[0]) {
        ibshift_tuned_differ(&given, &own, ibshift_params.model, tuned.note, sizeof(tuned.note));
        return 0;
    }
    found = ibshift_tuned_find(ibshift_params.site, &own, tuned.path, sizeof(tuned.path));
    if (IBSHIFT_TUNED_NONE != found) {
        take_tuned(&own, IBSHIFT_TUNED_STALE == found);
    }
    return tuned.digest;
}

void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective)
{
    atomic_store_explicit(&choices->last[collective], NULL, memory_order_relaxed);
    for (int kind = 0; kind < IBSHIFT_CHOICE_KINDS; kind++) {
        free(choices->table[collective][kind]);
        choices->table[collective][kind] = NULL;
    }
}

void ibshift_choices_free(mca_coll_ibshift_module_t *module)
{
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(&module->choices, (enum ibshift_collective)i);
    }
    ibshift_crowd_free(&module->choices.crowd);
    ibshift_nodes_free(&module->choices.nodes);
    for (int i = 0; i < IBSHIFT_PACED_FORMS * IBSHIFT_SIZE_CLASSES; i++) {
        struct ibshift_paced **place =
            &module->pacing.by_class[i / IBSHIFT_SIZE_CLASSES][i % IBSHIFT_SIZE_CLASSES];

        free(*place);
        *place = NULL;
    }
}

/* Where the prices come from. */
static void add_source(const mca_coll_ibshift_module_t *module, char *text, size_t size)
{
    const struct ibshift_model *model = module->choices.model;
    const char *source = '\0' != ibshift_params.model[0] ? "as coll_ibshift_model says"
                         : &models.node == model         ? "typical for shared memory"
                         : &models.software == model     ? "typical for a device in software"
                                                         : "typical for a device in hardware";

    if (module->choices.is_measured) {
        snprintf(text, size, "as ibshift tune measured them, %.200s%s%s", tuned.path,
                 '\0' != tuned.note[0] ? "; " : "", tuned.note);
    } else if (0 != tuned.digest) {
        snprintf(text, size, "%s, for the ranks have different files of measured ones", source);
    } else {
        snprintf(text, size, "%s%s%s", source, '\0' != tuned.note[0] ? "; " : "", tuned.note);
    }
}

static void explain_crowd(const mca_coll_ibshift_module_t *module,
                          const struct ompi_communicator_t *comm)
{
    const struct ibshift_crowd *crowd = &module->choices.crowd;
    char source[768];
    uint32_t host, port;
    uint32_t on_host = ibshift_crowd_most(crowd->host_of, module->size, crowd->hosts, &host);
    uint32_t on_port = ibshift_crowd_most(crowd->port_of, module->size, crowd->ports, &port);

    add_source(module, source, sizeof(source));
    fprintf(stderr,
            "ibshift: %s, %u ranks: at most %u per host (of %u processors) and %u per port; "
            "costs %s\n",
            comm->c_name, module->size, on_host, crowd->processors[host], on_port, source);
}

/* places: as cards tell them, but node by node. */
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

/* Processes of one host that share no memory, as in containers, are several nodes. From the cards,
 * which all ranks see alike, so that they come to the same nodes and plans. */
static int find_nodes(mca_coll_ibshift_module_t *module, const struct ibshift_levels *levels,
                      struct ibshift_place *places)
{
    bool share_memory = true;

    for (uint32_t rank = 0; rank < module->size; rank++) {
        struct ibshift_card_place card;

        (void)ibshift_card_place(module->peers[rank], &card);
        places[rank].host = 0 != card.node ? card.node : card.host;
        share_memory = share_memory && 0 != card.node;
    }
    module->choices.near = share_memory ? &levels->node : NULL;
    return make_nodes(places, module->size, &module->choices.nodes);
}

/* Who shares what, and what that costs, from the cards, which all ranks see alike. */
static int find_crowd(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm)
{
    struct ibshift_choices *choices = &module->choices;
    const struct ibshift_levels *levels;
    struct ibshift_place *places;
    bool is_software = false, is_node = true;
    uint64_t node = 0;
    int rc;

    if (NULL != choices->model) {
        return OMPI_SUCCESS;
    }
    places = malloc(module->size * sizeof(*places));
    choices->is_measured = 0 != tuned.digest;
    for (uint32_t rank = 0; NULL != places && rank < module->size; rank++) {
        struct ibshift_card_place card;

        (void)ibshift_card_place(module->peers[rank], &card);
        places[rank] =
            (struct ibshift_place){card.host, card.port, card.processors, card.is_crowded};
        is_software |= card.is_software;
        choices->is_measured = choices->is_measured && card.costs == tuned.digest;
        node = 0 == rank ? card.node : node;
        is_node = is_node && 0 != node && card.node == node;
    }
    if (NULL == places || 0 != ibshift_crowd_make(places, module->size, &choices->crowd)) {
        free(places);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    levels = choices->is_measured ? &measured : &models;
    rc = find_nodes(module, levels, places);
    free(places);
    if (0 != rc) {
        ibshift_crowd_free(&choices->crowd);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    choices->model = is_node ? &levels->node : is_software ? &levels->software : &levels->hardware;
    if (ibshift_params.explain && 0 == module->rank) {
        explain_crowd(module, comm);
    }
    return OMPI_SUCCESS;
}

/* What explain says about a choice that was made. */
struct decision {
    const mca_coll_ibshift_module_t *module;
    const struct ompi_communicator_t *comm;
    const struct ibshift_job *job;
    const struct ibshift_question *question;
    const struct ibshift_answer *answer;
};

static void add_what(struct ibshift_line *line, const struct decision *decision)
{
    ibshift_line_add(line, "%s", decision->job->name);
    if (ibshift_job_is_any_size(decision->job)) {
        ibshift_line_add(line, ", any size");
    } else if (IBSHIFT_BARRIER != decision->job->collective) {
        ibshift_line_add(line, " up to %llu B %s", (unsigned long long)decision->question->bytes,
                         ibshift_collective_has_vector(decision->job->collective) ? "of vector"
                                                                                  : "a block");
    }
}

static void add_choice(struct ibshift_line *line, const struct decision *decision)
{
    static const char *const shared[] = {[IBSHIFT_PRICE_PATH] = "",
                                         [IBSHIFT_PRICE_PROCESSORS] = " of shared processors",
                                         [IBSHIFT_PRICE_PORT] = " of a shared port"};
    const char *order = ibshift_comm_order_words(decision->module, decision->question->plan,
                                                 decision->answer->best.alg);
    struct ibshift_sending sending;

    ibshift_line_add(line, ": ");
    ibshift_line_add_plan(line, &decision->answer->best, &decision->module->choices.nodes);
    if (ibshift_comm_order_renames(decision->module, decision->job, decision->answer->best.alg)) {
        ibshift_line_add(line, ", in routing order");
    } else if (NULL != order) {
        ibshift_line_add(line, ", %s", order);
    }
    sending = ibshift_choose_sending(decision->question, decision->answer->best.alg);
    ibshift_line_add(line, ", window %u", sending.window);
    if (sending.piece > 0) {
        ibshift_line_add(line, ", in pieces of %u B, %llu posts by rank 0", sending.piece,
                         ibshift_pacing_posts(decision->question, sending.piece));
    }
    if (IBSHIFT_ALLTOALL == decision->job->collective && !pacing.is_auto &&
        0 == (decision->answer->best.alg->flags & IBSHIFT_ALG_FREE)) {
        ibshift_line_add(line, ", without a pace, because steps wait for one another");
    }
    if (decision->answer->best.price.last >= 0) {
        ibshift_line_add(line, "; modelled %.2f us%s", decision->answer->best.price.last,
                         shared[decision->answer->best.price.of]);
    }
}

static void add_reason(struct ibshift_line *line, const struct decision *decision)
{
    const struct ibshift_alg *forced = decision->question->wish.alg;
    const struct ibshift_choice *best = &decision->answer->best;
    const struct ibshift_choice *second = &decision->answer->second;
    const struct ibshift_choice *other = &decision->answer->other;

    if (NULL != forced && forced == best->alg) {
        bool is_rule = NULL == ibshift_params_wish(decision->job->collective).alg;

        ibshift_line_add(line, "; asked for by coll_ibshift_%s%s",
                         is_rule ? "rules" : ibshift_collective_name(decision->job->collective),
                         is_rule ? "" : "_algorithm");
        return;
    }
    if (NULL != forced) {
        ibshift_line_add(line, "; %s, asked for, cannot do it", forced->name);
    }
    if (NULL != second->alg && second->price.last >= 0) {
        ibshift_line_add(line, ", best of %d plans; next: ", decision->answer->candidates);
        ibshift_line_add_plan(line, second, &decision->module->choices.nodes);
        ibshift_line_add(line, " with %.2f us%s", second->price.last,
                         second->price.last >= best->price.last          ? ""
                         : second->price.messages > best->price.messages ? ", but more messages"
                                                                         : ", but more hops");
    }
    if (NULL != other->alg && other->alg != second->alg && other->price.last >= 0) {
        ibshift_line_add(line, 0 != (other->alg->flags & IBSHIFT_ALG_NODES) ? "; by nodes: "
                                                                            : "; flat: ");
        ibshift_line_add_plan(line, other, &decision->module->choices.nodes);
        ibshift_line_add(line, " with %.2f us", other->price.last);
    }
}

static void add_able(struct ibshift_line *line, const struct decision *decision)
{
    struct ibshift_plan plan = *decision->question->plan;
    char why[128];

    plan.segments = 1;
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        plan.radix = alg->radix_max > 0 ? 1 : 0;
        if (ibshift_alg_serves(alg, decision->job->collective, decision->job->needs) &&
            0 == ibshift_alg_check(alg, &plan, why, sizeof(why))) {
            ibshift_line_add(line, "%s%s", line->length > 0 ? ", " : "", alg->name);
        }
    }
}

/* Once for each collective: a parameter's algorithm cannot do what it was asked for. */
static void explain_unfit(const struct decision *decision)
{
    static atomic_bool is_told[IBSHIFT_COLLECTIVES];
    enum ibshift_collective collective = decision->job->collective;
    const struct ibshift_alg *forced = decision->question->wish.alg;
    const char *name = ibshift_collective_name(collective);
    char why[128] = "the ranks do not know each other's counts";
    struct ibshift_line able = {.length = 0};

    if (NULL == forced || forced == decision->answer->best.alg ||
        atomic_exchange(&is_told[collective], true)) {
        return;
    }
    if (ibshift_alg_serves(forced, collective, decision->job->needs)) {
        struct ibshift_plan plan = *decision->question->plan;

        plan.radix = forced->radix_max > 0 ? 1 : 0;
        plan.segments = 1;
        (void)ibshift_alg_check(forced, &plan, why, sizeof(why));
        why[strcspn(why, ";")] = '\0';
    }
    add_able(&able, decision);
    ibshift_help_once_a_job("unfit-algorithm", name, forced->name, decision->job->name,
                            decision->comm->c_name, decision->question->plan->ranks, why,
                            able.length > 0 ? able.text : "none of ibshift's");
}

static uint64_t bytes_to_price(const struct ibshift_job *job)
{
    if (ibshift_job_is_any_size(job)) {
        return UNKNOWN_SIZE;
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

static void leave_long(const struct ompi_communicator_t *comm, struct ibshift_answer *answer)
{
    static atomic_bool is_told;

    answer->best.alg = NULL;
    if (!atomic_exchange(&is_told, true)) {
        ibshift_help_once_a_job("no-service-levels", comm->c_name);
    }
}

static void explain(const struct decision *decision)
{
    struct ibshift_line line = {.length = 0};

    ibshift_line_add(&line, "ibshift: %s, %u ranks: ", decision->comm->c_name,
                     decision->question->plan->ranks);
    ibshift_make_plain(line.text);
    add_what(&line, decision);
    if (NULL == decision->answer->best.alg) {
        ibshift_line_add(&line, ": %s, runs in the component beneath",
                         may_deadlock(decision->module, decision->job)
                             ? "the fabric's service levels are not known"
                             : "no algorithm fits");
    } else {
        add_choice(&line, decision);
        add_reason(&line, decision);
    }
    fprintf(stderr, "%s\n", line.text);
}

static struct ibshift_kept_choice *remembered(struct ibshift_choices *choices,
                                              const struct ibshift_job *job,
                                              const struct ibshift_op_params *params)
{
    struct ibshift_kept_choice **table =
        &choices->table[job->collective]
                       [ibshift_job_kind(job, params->plan.commutative, params->is_attended)];

    if (NULL == *table) {
        *table = calloc(IBSHIFT_SIZE_CLASSES, sizeof(**table));
    }
    return NULL == *table ? NULL : &(*table)[ibshift_size_class(job->bytes)];
}

/* MPI_T may have changed the parameters since. */
bool ibshift_choice_holds(const struct ibshift_kept_choice *kept,
                          enum ibshift_collective collective)
{
    return kept->is_known && kept->algorithm == ibshift_params.algorithm[collective] &&
           kept->radix == ibshift_params.radix[collective] &&
           kept->segment == ibshift_params.segment[collective];
}

struct ibshift_kept_choice *ibshift_choices_known(mca_coll_ibshift_module_t *module,
                                                  const struct ibshift_job *job,
                                                  const struct ibshift_plan *plan, bool is_blocking)
{
    struct ibshift_kept_choice *table =
        module->choices
            .table[job->collective][ibshift_job_kind(job, plan->commutative, is_blocking)];
    struct ibshift_kept_choice *kept =
        NULL == table ? NULL : &table[ibshift_size_class(job->bytes)];

    return NULL != kept && ibshift_choice_holds(kept, job->collective) ? kept : NULL;
}

/* A parameter's, else a rule's for that many ranks and bytes. */
static struct ibshift_wish wish_for(const struct ibshift_job *job, uint32_t ranks)
{
    struct ibshift_wish wish = ibshift_params_wish(job->collective);
    const struct ibshift_rule *rule =
        ibshift_rules_find(&rules, job->collective, job->needs, ranks, bytes_to_price(job));

    return NULL == wish.alg && NULL != rule && NULL != rule->wish.alg ? rule->wish : wish;
}

static uint32_t all_hosts(const mca_coll_ibshift_module_t *module)
{
    return ibshift_comm_order_is_agreed(module) ? ibshift_fabric_file.fabric->host_count : 0;
}

/* Short ones need a narrower window along the fabric alone, if all of a window are many bytes. */
static bool needs_no_pace(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                          uint32_t window)
{
    if (IBSHIFT_ALLTOALL != job->collective || module->size < 2) {
        return true;
    }
    if (ibshift_job_is_any_size(job)) {
        return !pacing.is_auto && IBSHIFT_PACE_CLK == pacing.wish.kind;
    }
    return job->bytes <= ibshift_params.eager_limit &&
           (!pacing.is_auto || job->bytes * window <= IBSHIFT_PACE_BYTES || 0 == all_hosts(module));
}

/* The price's, so that both mean the same post; of ranks that share memory, as if they did not. */
static const struct ibshift_model *far_model(const mca_coll_ibshift_module_t *module)
{
    const struct ibshift_levels *levels = module->choices.is_measured ? &measured : &models;

    return &levels->node == module->choices.model ? &levels->hardware : module->choices.model;
}

/* The pace of rows whose steps are free, and what was looked at. A table of stages has the hosts of
 * the order that was found first. */
static struct ibshift_pace_facts find_pace(const mca_coll_ibshift_module_t *module,
                                           const struct ibshift_job *job, bool is_blocking,
                                           struct ibshift_pace *pace, const char **reason)
{
    const struct ibshift_pacing_fabric fabric = {.hosts = all_hosts(module),
                                                 .ring = ibshift_fabric_file.ring,
                                                 .kib =
                                                     ibshift_fabric_file_kib(&ibshift_fabric_file)};
    struct ibshift_pace_facts facts = {
        .bytes = ibshift_job_is_any_size(job) ? 0 : job->bytes,
        .eager = ibshift_params.eager_limit,
        .ranks = module->size,
        .on_host = module->order.located.slots,
        .share = module->order.share,
        .burst = ibshift_params.burst,
        .window = (uint32_t)ibshift_params.window,
        .has_free_steps = true,
        .is_attended = is_blocking && !module->choices.crowd.is_crowded,
    };

    ibshift_pacing_add(&facts, far_model(module), &fabric);
    if (pacing.is_auto) {
        ibshift_pace_choose(&facts, pace, reason);
    } else {
        *pace = pacing.wish;
        *reason = "asked for";
    }
    return facts;
}

/* How rows whose steps are free send, for their price. */
static struct ibshift_sending find_sending(const mca_coll_ibshift_module_t *module,
                                           const struct ibshift_job *job, bool is_blocking)
{
    struct ibshift_pace pace;
    const char *reason;

    if (needs_no_pace(module, job, (uint32_t)ibshift_params.window)) {
        return (struct ibshift_sending){.window = 0};
    }
    (void)find_pace(module, job, is_blocking, &pace, &reason);
    return ibshift_pacing_sending(&pace);
}

void ibshift_choose_question(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                             const struct ibshift_plan *plan, bool is_blocking,
                             struct ibshift_question *question)
{
    *question = (struct ibshift_question){.collective = job->collective,
                                          .needs = job->needs,
                                          .plan = plan,
                                          .bytes = bytes_to_price(job),
                                          .window = (uint32_t)ibshift_params.window,
                                          .free = find_sending(module, job, is_blocking),
                                          .grants_anew = ibshift_job_grants_anew(job, is_blocking),
                                          .crowd = &module->choices.crowd,
                                          .model = module->choices.model,
                                          .near = module->choices.near,
                                          .is_brief = !ibshift_params.explain,
                                          .wish = wish_for(job, module->size)};
}

static int decide(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                  const struct ibshift_job *job, struct ibshift_op_params *params,
                  struct ibshift_kept_choice *kept)
{
    struct ibshift_question question;
    struct ibshift_answer answer;
    struct ibshift_plan plan = params->plan;
    struct decision decision = {module, comm, job, &question, &answer};
    int rc = find_crowd(module, comm);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    plan.nodes = params->plan.nodes = &module->choices.nodes;
    plan.root = 0; /* also where ranks come to roots in another order */
    ibshift_choose_question(module, job, &plan, params->is_attended, &question);
    answer = question.is_brief ? ibshift_choose_known(&question) : ibshift_choose_best(&question);
    explain_unfit(&decision);
    if (may_deadlock(module, job)) {
        leave_long(comm, &answer);
    }
    if (ibshift_params.explain && 0 == module->rank) {
        explain(&decision);
    }
    *kept = (struct ibshift_kept_choice){.choice = answer.best,
                                         .is_known = true,
                                         .algorithm = ibshift_params.algorithm[job->collective],
                                         .radix = ibshift_params.radix[job->collective],
                                         .segment = ibshift_params.segment[job->collective]};
    return OMPI_SUCCESS;
}

static int choose_plan(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                       const struct ibshift_job *job, struct ibshift_op_params *params)
{
    struct ibshift_kept_choice *kept = remembered(&module->choices, job, params);
    const struct ibshift_choice *choice;

    if (NULL == kept) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    params->window = (uint32_t)ibshift_params.window;
    if (!ibshift_choice_holds(kept, job->collective)) {
        int rc = decide(module, comm, job, params, kept);

        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    choice = &kept->choice;
    atomic_store_explicit(&module->choices.last[job->collective], choice, memory_order_relaxed);
    params->plan.nodes = &module->choices.nodes;
    params->alg = choice->alg;
    ibshift_choice_take(choice, &params->plan);
    return NULL == choice->alg ? OMPI_ERR_NOT_SUPPORTED : OMPI_SUCCESS;
}

static void decide_pace(mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                        bool is_blocking, struct ibshift_paced *paced)
{
    struct ibshift_pace_facts facts =
        find_pace(module, job, is_blocking, &paced->pace, &paced->reason);

    paced->share = facts.share;
    paced->pace.delay = (uint64_t)facts.latency;
    paced->pace.sync = 10ull * 1000 * 1000 * 1000; /* ns */
    paced->pace.clock = &module->pacing.clock;
    paced->pace.memory = &paced->memory;
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
static int choose_pace(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                       const struct ibshift_job *job, bool is_blocking,
                       struct ibshift_op_params *params)
{
    unsigned form = (ibshift_job_is_any_size(job) ? IBSHIFT_PACED_UNEQUAL : 0) |
                    (is_blocking ? IBSHIFT_PACED_ATTENDED : 0);
    struct ibshift_paced **place = &module->pacing.by_class[form][ibshift_size_class(job->bytes)];
    bool is_new = NULL == *place;

    params->pace = NULL;
    if (0 == (params->alg->flags & IBSHIFT_ALG_FREE) ||
        needs_no_pace(module, job, params->window)) {
        return OMPI_SUCCESS;
    }
    if (is_new && NULL == (*place = calloc(1, sizeof(**place)))) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (is_new || (pacing.is_auto && (*place)->share != module->order.share)) {
        decide_pace(module, job, is_blocking, *place);
        if (ibshift_params.explain && 0 == module->rank) {
            explain_pace(comm, job, *place);
        }
    }
    if (ibshift_pace_is_held(&(*place)->pace)) {
        params->pace = &(*place)->pace;
    } else if (IBSHIFT_PACE_WINDOW == (*place)->pace.kind) {
        params->window = (*place)->pace.window;
        params->piece = (*place)->pace.piece;
    }
    params->plan.in_sequence = ibshift_comm_order_in_sequence(module, &(*place)->pace);
    return OMPI_SUCCESS;
}

int ibshift_choose(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                   const struct ibshift_job *job, bool is_blocking,
                   struct ibshift_op_params *params)
{
    int rc = choose_plan(module, comm, job, params);

    return OMPI_SUCCESS == rc ? choose_pace(module, comm, job, is_blocking, params) : rc;
}

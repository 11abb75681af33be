#include "group/choose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choose/pace.h"
#include "choose/tuned.h"
#include "choose/words.h"
#include "group/order.h"
#include "group/wishes.h"
#include "job/cards.h"
#include "job/params.h"
#include "job/say.h"
#include "job/site.h"

static struct ibshift_source source; /* of the prices */

/* What coll_ibshift_pace asks for. */
static struct {
    bool is_auto;
    struct ibshift_pace wish;
} pacing;

void ibshift_choose_open(void)
{
    const char *model = ibshift_params.model;
    char error[IBSHIFT_TEXT_ERROR];

    ibshift_site_check();
    if (!ibshift_site_may_open(model, error, sizeof(error))) {
        ibshift_help_once_a_job("bad-model", error);
        model = "";
    }
    if (ibshift_source_open(&source, model, ibshift_params.eager_limit, error) != 0) {
        ibshift_help_once_a_job("bad-model", error);
    }
    source.is_given = ibshift_params.model[0] != '\0'; /* also where it cannot be read */
    ibshift_wishes_open();
    pacing.is_auto = strcmp(ibshift_params.pace, "auto") == 0;
    if (!pacing.is_auto &&
        ibshift_pace_parse(ibshift_params.pace, &pacing.wish, error, sizeof(error)) != 0) {
        ibshift_help_once_a_job("bad-pace", error);
        pacing.is_auto = true;
    }
}

uint64_t ibshift_choose_digest(void)
{
    return ibshift_wishes_digest(ibshift_levels_digest(&source.given));
}

uint64_t ibshift_choose_tuned(const struct ibshift_made *own)
{
    char error[IBSHIFT_TEXT_ERROR];

    if (ibshift_source_find(&source, ibshift_params.site, ibshift_params.model, own) &&
        (!ibshift_site_may_open(source.path, error, sizeof(error)) ||
         ibshift_source_measure(&source, own, ibshift_params.eager_limit, error) != 0)) {
        ibshift_help_once_a_job("warning", ibshift_teller_host(), error);
    }
    return source.digest;
}

static void explain_crowd(const struct ibshift_group *group)
{
    const struct ibshift_crowd *crowd = &group->choices.crowd;
    char costs[768];
    uint32_t host, port;
    uint32_t on_host = ibshift_crowd_most(crowd->host_of, group->size, crowd->hosts, &host);
    uint32_t on_port = ibshift_crowd_most(crowd->port_of, group->size, crowd->ports, &port);

    ibshift_source_words(&source, group->choices.model, group->choices.is_measured, costs,
                         sizeof(costs));
    ibshift_say("ibshift: %s, %u ranks: at most %u per host (of %u processors) and %u per port; "
                "costs %s\n",
                group->name, group->size, on_host, crowd->processors[host], on_port, costs);
}

/* The nodes: processes of one host that share no memory, as in containers, are several. */
static int make_nodes(const struct ibshift_place *places, uint32_t ranks,
                      struct ibshift_nodes *nodes)
{
    struct ibshift_crowd by_node;
    int rc = ibshift_crowd_make(places, ranks, &by_node);

    if (rc == 0) {
        rc = ibshift_nodes_make(by_node.host_of, ranks, nodes);
        ibshift_crowd_free(&by_node);
    }
    return rc;
}

/* Who shares what, and what that costs, from the cards, which all ranks see alike, so that they come to the same plans. */
static int find_crowd(struct ibshift_group *group)
{
    struct ibshift_choices *choices = &group->choices;
    struct ibshift_place *places, *by_node;
    bool is_software = false, share_memory = true, is_one_node = true;
    const struct ibshift_levels *levels;
    int rc = -ENOMEM;

    if (choices->model != NULL) {
        return 0;
    }
    places = malloc(2 * group->size * sizeof(*places));
    by_node = places + group->size;
    choices->is_measured = source.digest != 0;
    for (uint32_t rank = 0; places != NULL && rank < group->size; rank++) {
        struct ibshift_card_place card;

        (void)ibshift_card_place(group->peers[rank], &card);
        by_node[rank] = places[rank] =
            (struct ibshift_place){card.host, card.port, card.processors, card.is_crowded};
        by_node[rank].host = card.node != 0 ? card.node : card.host;
        is_software |= card.is_software;
        share_memory &= card.node != 0;
        is_one_node &= by_node[rank].host == by_node[0].host;
        choices->is_measured &= card.costs == source.digest;
    }
    if (places != NULL && ibshift_crowd_make(places, group->size, &choices->crowd) == 0) {
        rc = make_nodes(by_node, group->size, &choices->nodes);
        if (rc != 0) {
            ibshift_crowd_free(&choices->crowd);
        }
    }
    free(places);
    if (rc != 0) {
        return -ENOMEM;
    }
    levels = choices->is_measured ? &source.measured : &source.given;
    choices->near = share_memory ? &levels->node : NULL;
    choices->model = share_memory && is_one_node ? &levels->node
                     : is_software               ? &levels->software
                                                 : &levels->hardware;
    if (ibshift_params.explain && group->rank == 0) {
        explain_crowd(group);
    }
    return 0;
}

static uint64_t bytes_to_price(const struct ibshift_wanted *wanted)
{
    if (ibshift_needs_any_size(wanted->needs)) {
        return IBSHIFT_SIZE_UNKNOWN;
    }
    return wanted->bytes == 0 ? 0 : ibshift_class_size(ibshift_size_class(wanted->bytes));
}

/*
 * Packets of a long all-to-all would fill the buffers of a circle of links. Those of eager messages
 * and of other collectives, with few flows at once, hardly do.
 */
static bool may_deadlock(const struct ibshift_group *group, const struct ibshift_wanted *wanted)
{
    return group->order.may_deadlock && wanted->collective == IBSHIFT_ALLTOALL &&
           (ibshift_needs_any_size(wanted->needs) ||
            bytes_to_price(wanted) > ibshift_params.eager_limit);
}

static void explain(const struct ibshift_group *group, const struct ibshift_wanted *wanted,
                    const struct ibshift_question *question, const struct ibshift_answer *answer)
{
    const struct ibshift_alg *alg = answer->best.alg;
    const struct ibshift_decision decision = {
        .question = question,
        .answer = answer,
        .call = wanted->name,
        .is_any_size = ibshift_needs_any_size(wanted->needs),
        .order = alg == NULL ? NULL
                 : ibshift_group_order_renames(group, wanted, alg)
                     ? "in routing order"
                     : ibshift_group_order_words(group, question->plan, alg),
        .is_pace_asked_for = wanted->collective == IBSHIFT_ALLTOALL && !pacing.is_auto,
        .is_named = ibshift_params_wish(wanted->collective).alg != NULL,
        .beneath =
            may_deadlock(group, wanted) ? "the fabric's service levels are not known" : NULL};
    struct ibshift_line line = {.length = 0};

    ibshift_line_add(&line, "ibshift: %s, %u ranks: ", group->name, group->size);
    ibshift_make_plain(line.text);
    ibshift_words_decision(&line, &decision);
    ibshift_wishes_explain(group, wanted, &line);
    ibshift_say("%s\n", line.text);
}

/* Once for each collective: the algorithm of a parameter, or of a rule, cannot do what it was asked for. */
static void tell_unfit(const struct ibshift_group *group, const struct ibshift_wanted *wanted,
                       const struct ibshift_question *question, const struct ibshift_alg *wished)
{
    static atomic_bool is_told[IBSHIFT_COLLECTIVES];
    struct ibshift_line why = {.length = 0}, able = {.length = 0};

    if (!atomic_exchange(&is_told[wanted->collective], true)) {
        ibshift_words_unfit(question, wished, &why, &able);
        ibshift_help_once_a_job("unfit-algorithm", ibshift_collective_name(wanted->collective),
                                wished->name, wanted->name, group->name, question->plan->ranks,
                                why.text, able.text);
    }
}

static uint32_t all_hosts(const struct ibshift_group *group)
{
    return ibshift_group_order_is_agreed(group) ? ibshift_fabric_file.fabric->host_count : 0;
}

/* As all ranks see it. */
static bool is_adaptive(const struct ibshift_group *group)
{
    return ibshift_params.adaptive > 0 || (all_hosts(group) != 0 && ibshift_fabric_is_adaptive());
}

/* Of the fullest host. */
static uint32_t ranks_on_host(const struct ibshift_group *group)
{
    return group->order.located.slots == 0 && is_adaptive(group) ? group->choices.crowd.most
                                                                 : group->order.located.slots;
}

/* Short ones need a narrower window along the fabric alone, if all of a window are many bytes. */
static bool needs_no_pace(const struct ibshift_group *group, const struct ibshift_wanted *wanted)
{
    if (wanted->collective != IBSHIFT_ALLTOALL || group->size < 2) {
        return true;
    }
    if (ibshift_needs_any_size(wanted->needs)) {
        return false;
    }
    return wanted->bytes <= ibshift_params.eager_limit &&
           (!pacing.is_auto ||
            wanted->bytes * (uint32_t)ibshift_params.window <= IBSHIFT_PACE_BYTES ||
            (all_hosts(group) == 0 && !is_adaptive(group)));
}

/* How rows whose steps are free send, and what was looked at. A table of stages has the hosts of the order that was found first.
 * The costs are the price's, so that both mean the same post; of ranks that share memory, as if they did not. */
static void decide_pace(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                        struct ibshift_paced *paced)
{
    const struct ibshift_levels *levels =
        group->choices.is_measured ? &source.measured : &source.given;
    const struct ibshift_model *model =
        &levels->node == group->choices.model ? &levels->hardware : group->choices.model;
    const struct ibshift_pacing_fabric fabric = {.hosts = all_hosts(group),
                                                 .ring = ibshift_fabric_file.ring,
                                                 .kib =
                                                     ibshift_fabric_file_kib(&ibshift_fabric_file)};
    struct ibshift_pace_facts facts = {
        .bytes = ibshift_needs_any_size(wanted->needs) ? 0 : wanted->bytes,
        .eager = ibshift_params.eager_limit,
        .ranks = group->size,
        .on_host = ranks_on_host(group),
        .is_adaptive = is_adaptive(group),
        .share = group->order.share,
        .has_circle = group->order.has_circle,
        .window = (uint32_t)ibshift_params.window,
        .has_free_steps = true,
        .is_attended = wanted->is_blocking && !group->choices.crowd.is_crowded,
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
}

/* The pace of such a wanted, made when its size is met first; NULL: it needs none. Without memory for it this rank would choose
 * otherwise than the others. */
static int find_paced(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                      struct ibshift_paced **paced)
{
    unsigned form = (ibshift_needs_any_size(wanted->needs) ? IBSHIFT_PACED_UNEQUAL : 0) |
                    (wanted->is_blocking ? IBSHIFT_PACED_ATTENDED : 0);
    struct ibshift_paced **place;
    bool is_new;

    *paced = NULL;
    if (needs_no_pace(group, wanted)) {
        return 0;
    }
    place = &group->pacing.by_class[form][ibshift_size_class(wanted->bytes)];
    is_new = *place == NULL;
    if (is_new) {
        *place = calloc(1, sizeof(**place));
    }
    if (*place == NULL) {
        return -ENOMEM;
    }
    if (is_new || (pacing.is_auto && (*place)->share != group->order.share)) {
        decide_pace(group, wanted, *place);
    }
    *paced = *place;
    return 0;
}

int ibshift_choose_question(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                            const struct ibshift_plan *plan, bool *lacks_memory,
                            struct ibshift_question *question)
{
    struct ibshift_paced *paced;
    int rc = find_paced(group, wanted, &paced);

    *question = (struct ibshift_question){
        .collective = wanted->collective,
        .needs = wanted->needs,
        .plan = plan,
        .bytes = bytes_to_price(wanted),
        .window = (uint32_t)ibshift_params.window,
        .free = paced != NULL ? ibshift_pacing_sending(&paced->pace) : (struct ibshift_sending){0},
        .grants_anew = ibshift_wanted_grants_anew(wanted),
        .leader_memory = ibshift_params.leader_memory,
        .crowd = &group->choices.crowd,
        .model = group->choices.model,
        .near = group->choices.near,
        .distance = ibshift_group_distance(group, wanted),
        .is_unattended = !wanted->is_blocking,
        .is_brief = !ibshift_params.explain,
        .lacks_memory = lacks_memory,
        .wish = ibshift_params_wish(wanted->collective),
        .rules = ibshift_wishes_rules()};
    if (plan->listed != NULL) {
        question->wish.alg = ibshift_listed_row(wanted->collective);
    }
    *lacks_memory = false;
    return rc;
}

static int decide(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                  struct ibshift_op_params *params, struct ibshift_kept_choice *kept)
{
    static atomic_bool is_told;
    struct ibshift_question question;
    struct ibshift_answer answer;
    struct ibshift_plan plan = params->plan;
    bool lacks_memory;
    int rc = find_crowd(group);

    if (rc != 0) {
        return rc;
    }
    plan.nodes = &group->choices.nodes;
    plan.multicast = (uint32_t)group->cast.most;
    plan.root = 0; /* also where ranks come to roots in another order */
    rc = ibshift_choose_question(group, wanted, &plan, &lacks_memory, &question);
    if (rc != 0) {
        return rc;
    }
    answer = ibshift_choose(&question);
    if (lacks_memory) { /* the others may have chosen what could not be priced here */
        return -ENOMEM;
    }
    if (answer.wish.alg != NULL && answer.wish.alg != answer.best.alg &&
        !ibshift_needs_long_part(wanted->needs) && !group->cast.is_forming) {
        tell_unfit(group, wanted, &question, answer.wish.alg);
    }
    if (may_deadlock(group, wanted)) {
        answer.best.alg = NULL;
        if (!atomic_exchange(&is_told, true)) {
            ibshift_help_once_a_job("no-service-levels", group->name);
        }
    }
    if (ibshift_params.explain && group->rank == 0) {
        explain(group, wanted, &question, &answer);
    }
    *kept = (struct ibshift_kept_choice){
        .choice = answer.best, .is_known = true, .named = ibshift_params_named(wanted->collective)};
    ibshift_raise(IBSHIFT_EVENT_CHOICE,
                  (struct ibshift_event){.group = group->id,
                                         .collective = (int32_t)wanted->collective,
                                         .value = ibshift_alg_place(answer.best.alg),
                                         .detail = (int32_t)answer.best.radix,
                                         .bytes = wanted->bytes});
    return 0;
}

static void explain_pace(const struct ibshift_group *group, const struct ibshift_wanted *wanted,
                         const struct ibshift_paced *paced)
{
    char pace[32];

    ibshift_pace_format(&paced->pace, pace, sizeof(pace));
    ibshift_say("ibshift: %s: %s of %llu B: pace %s; %s\n", group->name, wanted->name,
                (unsigned long long)wanted->bytes, pace, paced->reason);
}

/* Rows whose steps wait for one another have none, also where one is asked for: what a pace holds
 * back, they wait for, and they are priced without. */
static int take_pace(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                     struct ibshift_op_params *params)
{
    struct ibshift_paced *paced = NULL;
    int rc = (params->alg->flags & IBSHIFT_ALG_FREE) == 0 ? 0 : find_paced(group, wanted, &paced);

    params->window = (uint32_t)ibshift_params.window;
    if (paced == NULL) {
        return rc;
    }
    if (ibshift_params.explain && group->rank == 0 && !paced->is_told) {
        explain_pace(group, wanted, paced);
    }
    paced->is_told = true;
    if (paced->pace.kind == IBSHIFT_PACE_WINDOW) {
        params->window = paced->pace.window;
        params->piece = paced->pace.piece;
    }
    params->plan.in_sequence = ibshift_group_order_in_sequence(group, &paced->pace);
    return 0;
}

/* The call runs that plan, and who looks on sees it. */
static void run_choice(struct ibshift_group *group, enum ibshift_collective collective,
                       const struct ibshift_choice *choice, struct ibshift_op_params *params)
{
    atomic_store_explicit(&group->choices.last[collective], choice, memory_order_relaxed);
    params->plan.nodes = &group->choices.nodes;
    params->alg = choice->alg;
    if (choice->alg != NULL && (choice->alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        params->cast = group->cast.cast;
        params->cast_most = group->cast.most;
    }
    ibshift_choice_take(choice, &params->plan);
}

static int choose_call(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                       struct ibshift_op_params *params)
{
    const struct ibshift_named named = ibshift_params_named(wanted->collective);
    struct ibshift_kept_choice *kept = ibshift_choices_at(
        &group->choices, wanted->collective, ibshift_wanted_kind(wanted), wanted->bytes);
    int rc = 0;

    if (kept == NULL) {
        return -ENOMEM;
    }
    if (!ibshift_choice_holds(kept, &named)) {
        rc = decide(group, wanted, params, kept);
    }
    if (rc == 0) {
        run_choice(group, wanted->collective, &kept->choice, params);
        rc = params->alg == NULL ? -ENOTSUP : 0;
    }
    return rc == 0 ? take_pace(group, wanted, params) : rc;
}

int ibshift_group_choose(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                         uint32_t root, struct ibshift_op_params *params)
{
    params->plan =
        (struct ibshift_plan){.ranks = group->size, .root = root, .nodes = &group->choices.nodes};
    if (wanted->collective == IBSHIFT_ALLTOALL) {
        params->plan.order = group->order.order;
        params->plan.stages = group->order.stages;
    }
    if (ibshift_collective_is_of_neighbors(wanted->collective)) {
        params->plan.neighbors = &group->neighbors;
    }
    params->plan.commutative = wanted->commutes;
    params->plan.listed = ibshift_wishes_plan(group, wanted);
    params->is_attended = wanted->is_blocking;
    return choose_call(group, wanted, params);
}

void ibshift_group_free(struct ibshift_group *group)
{
    ibshift_group_order_free(&group->order);
    ibshift_neighborhood_free(&group->neighborhood);
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(&group->choices, (enum ibshift_collective)i);
    }
    ibshift_crowd_free(&group->choices.crowd);
    ibshift_nodes_free(&group->choices.nodes);
    for (int i = 0; i < IBSHIFT_PACED_FORMS * IBSHIFT_SIZE_CLASSES; i++) {
        free(group->pacing.by_class[i / IBSHIFT_SIZE_CLASSES][i % IBSHIFT_SIZE_CLASSES]);
    }
}

#include "coll_ibshift_call.h"
#include "coll_ibshift_search.h"

#include "choose/price.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PRICE_LIMIT = 1 << 13, /* messages: a few milliseconds */
    FIRST_SEGMENT = 4096,
    LAST_SEGMENT = 1 << 20,
    UNKNOWN_SIZE = 8192 /* what is priced when no rank knows all sizes */
};

static struct ibshift_model model, software_model, node_model;

static void fill_limit(struct ibshift_model *m)
{
    if (0 == m->at_once) {
        m->at_once = (double)ibshift_params.eager_limit;
    }
}

void ibshift_choose_open(void)
{
    char error[IBSHIFT_MODEL_ERROR_SIZE];

    model = ibshift_model_typical;
    software_model = ibshift_model_software;
    node_model = ibshift_model_node;
    if ('\0' != ibshift_params.model[0]) {
        if (!ibshift_params_may_open(ibshift_params.model, error, sizeof(error)) ||
            0 != ibshift_model_read(ibshift_params.model, &model, error)) {
            ibshift_help_once_a_job("bad-model", error);
            model = ibshift_model_typical;
        } else {
            software_model = node_model = model;
        }
    }
    fill_limit(&model);
    fill_limit(&software_model);
    fill_limit(&node_model);
}

const struct ibshift_choice *ibshift_choices_last(const struct ibshift_choices *choices,
                                                  enum ibshift_collective collective)
{
    return atomic_load_explicit(&choices->last[collective], memory_order_relaxed);
}

uint64_t ibshift_choose_digest(void)
{
    const struct ibshift_model *const all[] = {&model, &software_model, &node_model};
    uint64_t sum = IBSHIFT_DIGEST;
    char text[1024];

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        int length = ibshift_model_format(all[i], text, sizeof(text));

        sum = ibshift_digest(sum, text, strnlen(text, (size_t)length));
    }
    return sum;
}

const struct ibshift_model *ibshift_choose_model(void)
{
    return &model;
}

void ibshift_choices_forget(struct ibshift_choices *choices, enum ibshift_collective collective)
{
    atomic_store_explicit(&choices->last[collective], NULL, memory_order_relaxed);
    for (int kind = 0; kind < IBSHIFT_CHOICE_KINDS; kind++) {
        free(choices->table[collective][kind]);
        choices->table[collective][kind] = NULL;
    }
}

void ibshift_choices_free(struct ibshift_choices *choices)
{
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        ibshift_choices_forget(choices, (enum ibshift_collective)i);
    }
}

bool ibshift_serves(const struct ibshift_alg *alg, const struct ibshift_job *job)
{
    return alg->collective == job->collective &&
           (0 == job->needs || 0 != (alg->flags & job->needs));
}

static const struct ibshift_model *model_of(const struct ibshift_company *company)
{
    return company->is_node ? &node_model : company->is_software ? &software_model : &model;
}

/* A rank has its own row of a table only: the shift in its place has as many messages.
 * A row that nobody can price here costs nothing that is known: it stays behind all others. */
static void price(const struct ibshift_search *search, struct ibshift_choice *choice)
{
    struct ibshift_plan plan = search->params->plan;
    struct ibshift_price_request request = {.alg = choice->alg,
                                            .plan = &plan,
                                            .model = model_of(search->company),
                                            .crowd = search->company->crowd,
                                            .bytes = search->bytes,
                                            .element = 1,
                                            .window = search->params->window,
                                            .limit = PRICE_LIMIT};
    struct ibshift_price found;

    plan.stages = NULL;
    choice->price = -1;
    if (0 == ibshift_price(&request, &found)) {
        choice->price = found.last;
        choice->of = found.of;
    }
}

/* One without a price is better than nothing only. */
static bool is_better(const struct ibshift_choice *now, const struct ibshift_choice *best)
{
    return NULL == best->alg || (now->price >= 0 && (best->price < 0 || now->price < best->price));
}

static void consider(struct ibshift_search *search, const struct ibshift_alg *alg)
{
    struct ibshift_plan *plan = &search->params->plan;
    struct ibshift_choice now;
    char why[128];

    if (0 != ibshift_alg_check(alg, plan, why, sizeof(why))) {
        return;
    }
    search->candidates++;
    now = (struct ibshift_choice){.alg = alg, .radix = plan->radix, .segments = plan->segments};
    price(search, &now);
    if (is_better(&now, &search->best)) {
        search->second = search->best;
        search->best = now;
    } else if (is_better(&now, &search->second)) {
        search->second = now;
    }
}

static void consider_segments(struct ibshift_search *search, const struct ibshift_alg *alg)
{
    struct ibshift_plan *plan = &search->params->plan;
    size_t forced = ibshift_params.segment[alg->collective];

    plan->segments = 1;
    if (0 == (alg->flags & IBSHIFT_ALG_SEGMENTS)) {
        consider(search, alg);
    } else if (forced > 0) {
        uint64_t segments = (search->bytes + forced - 1) / forced;
        plan->segments = (uint32_t)(segments < 1 ? 1 : segments);
        if (segments > IBSHIFT_SEGMENTS_MAX) {
            plan->segments = IBSHIFT_SEGMENTS_MAX;
        }
        consider(search, alg);
    } else {
        consider(search, alg);
        for (uint64_t size = FIRST_SEGMENT; size <= LAST_SEGMENT && size < search->bytes;
             size *= 4) {
            plan->segments = (uint32_t)(search->bytes / size);
            if (plan->segments <= PRICE_LIMIT) {
                consider(search, alg);
            }
        }
    }
}

static void consider_row(struct ibshift_search *search, const struct ibshift_alg *alg)
{
    static const uint32_t radices[] = {1, 2, 3, 4, 7, 8, 15};
    uint32_t forced = (uint32_t)ibshift_params.radix[alg->collective];
    struct ibshift_plan *plan = &search->params->plan;

    if (0 == alg->radix_max || forced > 0) {
        plan->radix = forced < alg->radix_max ? forced : alg->radix_max;
        consider_segments(search, alg);
        return;
    }
    for (size_t i = 0; i < sizeof(radices) / sizeof(radices[0]); i++) {
        plan->radix = radices[i];
        if (radices[i] <= alg->radix_max && (radices[i] == 1 || radices[i] < plan->ranks)) {
            consider_segments(search, alg);
        }
    }
}

const struct ibshift_alg *ibshift_forced_row(enum ibshift_collective collective)
{
    int place = ibshift_params.algorithm[collective];

    for (size_t i = 0; place > 0 && i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == collective && 0 == --place) {
            return ibshift_alg_table[i];
        }
    }
    return NULL;
}

static void search_rows(struct ibshift_search *search)
{
    const struct ibshift_alg *forced = ibshift_forced_row(search->job->collective);

    if (NULL != forced && ibshift_serves(forced, search->job)) {
        consider_row(search, forced);
        if (NULL != search->best.alg) {
            return;
        }
    }
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        if (ibshift_serves(ibshift_alg_table[i], search->job) &&
            ibshift_route_allows(&search->params->plan, ibshift_alg_table[i])) {
            consider_row(search, ibshift_alg_table[i]);
        }
    }
}

static int size_class(uint64_t bytes)
{
    int class = bytes <= 1 ? 0 : 64 - __builtin_clzll(bytes - 1);

    return class < IBSHIFT_SIZE_CLASSES ? class : IBSHIFT_SIZE_CLASSES - 1;
}

static int kind_of(const struct ibshift_job *job, const struct ibshift_plan *plan)
{
    int sizes = 0 == job->needs ? 0 : 0 == (job->needs & IBSHIFT_ALG_SIZES_ALL) ? 1 : 2;

    return sizes * 2 + plan->commutative;
}

static struct ibshift_choice *remembered(struct ibshift_choices *choices,
                                         const struct ibshift_job *job,
                                         const struct ibshift_op_params *params)
{
    struct ibshift_choice **table = &choices->table[job->collective][kind_of(job, &params->plan)];

    if (NULL == *table) {
        *table = calloc(IBSHIFT_SIZE_CLASSES, sizeof(struct ibshift_choice));
    }
    return NULL == *table ? NULL : &(*table)[size_class(job->bytes)];
}

static uint64_t bytes_to_price(const struct ibshift_job *job)
{
    if (IBSHIFT_ALG_SIZES == job->needs) {
        return UNKNOWN_SIZE;
    }
    return job->bytes == 0 ? 0 : 1ull << size_class(job->bytes);
}

static struct ibshift_wish wish_of(enum ibshift_collective collective)
{
    return (struct ibshift_wish){.algorithm = ibshift_params.algorithm[collective],
                                 .radix = ibshift_params.radix[collective],
                                 .segment = ibshift_params.segment[collective]};
}

static bool holds(const struct ibshift_choice *choice, const struct ibshift_wish *wish)
{
    return choice->is_known && choice->wish.algorithm == wish->algorithm &&
           choice->wish.radix == wish->radix && choice->wish.segment == wish->segment;
}

int ibshift_choose(mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                   const struct ibshift_job *job, struct ibshift_op_params *params)
{
    struct ibshift_choice *choice = remembered(&module->choices, job, params);
    struct ibshift_search search = {.job = job, .params = params, .company = &module->company};
    struct ibshift_wish wish = wish_of(job->collective);

    if (NULL == choice) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    params->window = (uint32_t)ibshift_params.window;
    if (!holds(choice, &wish)) {
        int rc = ibshift_company_find(module, comm);

        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        search.bytes = bytes_to_price(job);
        search_rows(&search);
        ibshift_explain_unfit(&search, comm);
        if (ibshift_params.explain && 0 == module->rank) {
            search.is_renamed =
                NULL != search.best.alg && ibshift_route_renames(module, job, search.best.alg);
            search.order = NULL == search.best.alg
                               ? NULL
                               : ibshift_route_order(module, &params->plan, search.best.alg);
            ibshift_explain(&search, comm);
        }
        *choice = search.best;
        choice->wish = wish;
        choice->is_known = true;
    }
    atomic_store_explicit(&module->choices.last[job->collective], choice, memory_order_relaxed);
    params->alg = choice->alg;
    params->plan.radix = choice->radix;
    params->plan.segments = choice->segments;
    return NULL == choice->alg ? OMPI_ERR_NOT_SUPPORTED : OMPI_SUCCESS;
}

#include "coll_ibshift_search.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct line {
    char text[512];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->length;
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    line->length += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

/* What the size is of: the whole vector, or what one rank has for another. */
static bool counts_vector(enum ibshift_collective collective)
{
    return IBSHIFT_BCAST == collective || IBSHIFT_REDUCE == collective ||
           IBSHIFT_ALLREDUCE == collective || IBSHIFT_SCAN == collective ||
           IBSHIFT_EXSCAN == collective;
}

static void add_what(struct line *line, const struct ibshift_search *search)
{
    add(line, "%s", search->job->name);
    if (IBSHIFT_ALG_SIZES == search->job->needs) {
        add(line, ", any size");
    } else if (IBSHIFT_BARRIER != search->job->collective) {
        add(line, " up to %llu B %s", (unsigned long long)search->bytes,
            counts_vector(search->job->collective) ? "of vector" : "a block");
    }
}

static void add_plan(struct line *line, const struct ibshift_choice *choice)
{
    add(line, "%s", choice->alg->name);
    if (choice->alg->radix_max > 0) {
        add(line, ", radix %u", choice->radix);
    }
    if (0 != (choice->alg->flags & IBSHIFT_ALG_SEGMENTS)) {
        add(line, ", %u segment%s", choice->segments, choice->segments == 1 ? "" : "s");
    }
}

static void add_choice(struct line *line, const struct ibshift_search *search)
{
    static const char *const shared[] = {[IBSHIFT_PRICE_PATH] = "",
                                         [IBSHIFT_PRICE_PROCESSORS] = " of shared processors",
                                         [IBSHIFT_PRICE_PORT] = " of a shared port"};

    add(line, ": ");
    add_plan(line, &search->best);
    if (search->is_renamed) {
        add(line, ", in routing order");
    } else if (NULL != search->order) {
        add(line, ", %s", search->order);
    }
    add(line, ", window %u", search->params->window);
    if (search->best.price >= 0) {
        add(line, "; modelled %.2f us%s", search->best.price, shared[search->best.of]);
    }
}

static void add_reason(struct line *line, const struct ibshift_search *search)
{
    const struct ibshift_alg *forced = ibshift_forced_row(search->job->collective);

    if (NULL != forced && forced == search->best.alg) {
        add(line, "; asked for by coll_ibshift_%s_algorithm",
            ibshift_collective_name(search->job->collective));
        return;
    }
    if (NULL != forced) {
        add(line, "; %s, asked for, cannot do it", forced->name);
    }
    if (NULL != search->second.alg && search->second.price >= 0) {
        add(line, ", best of %d plans; next: ", search->candidates);
        add_plan(line, &search->second);
        add(line, " with %.2f us", search->second.price);
    }
}

static void add_able(struct line *line, const struct ibshift_search *search)
{
    struct ibshift_plan plan = search->params->plan;
    char why[128];

    plan.segments = 1;
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];

        plan.radix = alg->radix_max > 0 ? 1 : 0;
        if (ibshift_serves(alg, search->job) &&
            0 == ibshift_alg_check(alg, &plan, why, sizeof(why))) {
            add(line, "%s%s", line->length > 0 ? ", " : "", alg->name);
        }
    }
}

void ibshift_explain_unfit(const struct ibshift_search *search,
                           const struct ompi_communicator_t *comm)
{
    static atomic_bool is_told[IBSHIFT_COLLECTIVES];
    enum ibshift_collective collective = search->job->collective;
    const struct ibshift_alg *forced = ibshift_forced_row(collective);
    const char *name = ibshift_collective_name(collective);
    char why[128] = "the ranks do not know each other's counts there";
    struct line able = {.length = 0};

    if (NULL == forced || forced == search->best.alg ||
        atomic_exchange(&is_told[collective], true)) {
        return;
    }
    if (ibshift_serves(forced, search->job)) {
        struct ibshift_plan plan = search->params->plan;

        plan.radix = forced->radix_max > 0 ? 1 : 0;
        plan.segments = 1;
        (void)ibshift_alg_check(forced, &plan, why, sizeof(why));
        why[strcspn(why, ";")] = '\0';
    }
    add_able(&able, search);
    ibshift_help_once_a_job("unfit-algorithm", name, forced->name, search->job->name, comm->c_name,
                            search->params->plan.ranks, why,
                            able.length > 0 ? able.text : "none of ibshift's");
}

void ibshift_explain(const struct ibshift_search *search, const struct ompi_communicator_t *comm)
{
    struct line line = {.length = 0};

    add(&line, "ibshift: %s, %u ranks: ", comm->c_name, search->params->plan.ranks);
    ibshift_make_plain(line.text);
    add_what(&line, search);
    if (NULL == search->best.alg) {
        add(&line, ": no algorithm fits, runs in the component beneath");
    } else {
        add_choice(&line, search);
        add_reason(&line, search);
    }
    fprintf(stderr, "%s\n", line.text);
}

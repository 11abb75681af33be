#include "plan/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose/size.h"

static void add_entry(struct plan_comparison *c, const struct ibshift_alg *alg, uint32_t radix,
                      bool is_optimal)
{
    struct plan_entry *entry = &c->entries[c->entry_count];

    if (c->entry_count == PLAN_ENTRIES_MAX) {
        return;
    }
    entry->alg = alg;
    entry->radix = radix;
    entry->is_optimal = is_optimal;
    if (alg->radix_max > 0) {
        snprintf(entry->label, sizeof(entry->label), "%s k=%u", alg->name, radix);
    } else {
        snprintf(entry->label, sizeof(entry->label), "%s%s", alg->name,
                 is_optimal ? " optimal" : "");
    }
    c->entry_count++;
}

/* What the component would try, and besides what the user asks for. */
static int candidates(const struct plan_args *args, const struct ibshift_alg *alg, uint32_t ranks,
                      uint64_t bytes, struct ibshift_choice *found)
{
    struct ibshift_wish wish = {.radix = args->has_radix ? args->plan.radix : 0};
    int count = ibshift_candidates(alg, ranks, bytes, &wish, found);

    if ((alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        uint32_t segments = plan_cast_segments(args, alg, bytes);

        count = segments == 0 ? 0 : alg->radix_max > 0 ? count : 1;
        for (int i = 0; i < count; i++) {
            found[i].segments = segments;
        }
        return count;
    }
    for (int i = 0; args->has_segments && i < count; i++) {
        found[i].segments = args->plan.segments;
    }
    return count;
}

/* A column for each row and radix; segments are searched at each point. */
static void add_entries(struct plan_comparison *c)
{
    const struct plan_args *args = c->args;
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i];
        int count = candidates(args, alg, args->ranks_last, 0, found);

        if ((int)alg->collective != args->collective ||
            ((alg->flags & IBSHIFT_ALG_NODES) != 0 && args->per_host < 2)) {
            continue;
        }
        for (int n = 0; n < count; n++) {
            if (found[n].leaders == 1) {
                add_entry(c, alg, found[n].radix, false);
            }
        }
        if ((alg->flags & IBSHIFT_ALG_SPLIT) != 0) {
            add_entry(c, alg, args->plan.radix, true);
        }
    }
}

/* The best of the entry's segments. */
static int price_entry(const struct plan_comparison *c, const struct plan_entry *entry, int point,
                       const struct ibshift_price_request *request, struct ibshift_plan *plan)
{
    struct ibshift_choice found[IBSHIFT_CANDIDATES_MAX];
    int count = candidates(c->args, entry->alg, plan->ranks, request->bytes, found);
    char why[256];

    for (int i = 0; i < count; i++) {
        int rc;

        found[i].leaders = c->args->has_leaders ? c->args->plan.leaders : found[i].leaders;
        ibshift_choice_take(&found[i], plan);
        if ((entry->alg->radix_max > 0 && plan->radix != entry->radix) ||
            ibshift_alg_check(entry->alg, plan, why, sizeof(why)) != 0) {
            continue;
        }
        rc = ibshift_price(request, &found[i].price);
        rc = rc == 0 ? plan_fabric_add(c->args, request, &found[i].price) : rc;
        if (rc != 0 && rc != -E2BIG) {
            return rc;
        }
        if (rc == 0 && !(found[i].price.last >= entry->times[point])) {
            entry->times[point] = found[i].price.last;
            entry->best[point] = found[i];
        }
    }
    return 0;
}

static int price_point(const struct plan_comparison *c, const struct plan_entry *entry, int point,
                       const struct ibshift_model *model)
{
    bool has_hosts = c->args->per_host > 0;
    uint64_t bytes = c->is_over_ranks ? c->args->sizes[0] : (uint64_t)c->points[point];
    struct ibshift_plan plan = c->args->plan;
    struct ibshift_price_request request;
    struct plan_hosts hosts;
    uint32_t *split = NULL;
    int rc;

    entry->times[point] = NAN;
    entry->best[point].segments = 1;
    plan.ranks = c->is_over_ranks ? (uint32_t)c->points[point] : plan.ranks;
    plan.root = plan.root < plan.ranks ? plan.root : 0;
    if (plan_hosts_make(c->args, plan.ranks, &hosts) != CLI_OK) {
        return -ENOMEM;
    }
    plan.nodes = has_hosts ? &hosts.nodes : NULL;
    request = plan_request(c->args, has_hosts ? &hosts : NULL);
    request.alg = entry->alg;
    request.plan = &plan;
    request.model = model;
    request.bytes = bytes;
    request.piece = plan_piece_of(c, entry);
    request.limit = 1 << 24;
    if (entry->is_optimal) {
        plan.split = split = plan_split(model, bytes, plan.ranks);
    }
    rc = entry->is_optimal && split == NULL ? -ENOMEM
                                            : price_entry(c, entry, point, &request, &plan);
    plan_hosts_free(&hosts);
    free(split);
    return rc;
}

static int fill(struct plan_comparison *c)
{
    enum plan_model which = plan_which(c->args);
    struct ibshift_model model = plan_model_of(c->args, which);

    for (int e = 0; e < c->entry_count; e++) {
        c->entries[e].times = c->points + (size_t)(1 + e) * (size_t)c->point_count;
        c->entries[e].best = c->choices + (size_t)e * (size_t)c->point_count;
        for (int i = 0; i < c->point_count; i++) {
            int rc = price_point(c, &c->entries[e], i, &model);

            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

/* The first of the fastest at a point, or -1 when none can run. */
static int fastest_at(const struct plan_comparison *c, int point)
{
    int best = -1;

    for (int e = 0; e < c->entry_count; e++) {
        double time = c->entries[e].times[point];

        if (!isnan(time) && (best < 0 || time < c->entries[best].times[point] - 1e-9)) {
            best = e;
        }
    }
    return best;
}

int plan_winner_at(const struct plan_comparison *c, int point)
{
    int fastest = fastest_at(c, point), best = fastest;

    for (int e = 0; fastest >= 0 && e < c->entry_count; e++) {
        if (c->entries[e].times[point] <= c->entries[fastest].times[point] * IBSHIFT_PRICE_EQUAL &&
            ibshift_price_is_simpler(&c->entries[e].best[point].price,
                                     &c->entries[best].best[point].price)) {
            best = e;
        }
    }
    return best;
}

void plan_point_text(const struct plan_comparison *c, int point, char *text)
{
    if (c->is_over_ranks) {
        snprintf(text, 24, "%.0f", c->points[point]);
    } else {
        plan_size_text((uint64_t)c->points[point], text);
    }
}

void plan_compare_title(const struct plan_comparison *c, char *text, size_t size)
{
    const struct plan_args *args = c->args;
    bool has_vector = ibshift_collective_has_vector((enum ibshift_collective)args->collective);
    char bytes[24], pieces[48] = "";

    if (args->piece > 0) {
        snprintf(pieces, sizeof(pieces), ", free steps in pieces of %u B", args->piece);
    }
    plan_size_text(args->sizes[0], bytes);
    if (c->is_over_ranks) {
        snprintf(text, size, "%s, %s %s%s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 has_vector ? "vector of" : "blocks of", bytes, pieces);
    } else {
        snprintf(text, size, "%s on %u ranks, by size of %s%s",
                 ibshift_collective_name((enum ibshift_collective)args->collective),
                 args->plan.ranks, has_vector ? "the vector" : "a block", pieces);
    }
}

int plan_crossing(const struct plan_comparison *c, int a, int b)
{
    int from = -1;

    for (int i = 0; i < c->point_count; i++) {
        double ta = c->entries[a].times[i], tb = c->entries[b].times[i];

        if (isnan(ta) || isnan(tb)) {
            continue;
        }
        if (!(tb < ta - 1e-9)) {
            from = -1;
        } else if (from < 0) {
            from = i;
        }
    }
    return from;
}

int plan_compare_all(struct plan_comparison *c)
{
    struct plan_args *args = c->args;
    size_t points;

    c->is_over_ranks = args->ranks_last > args->plan.ranks;
    c->point_count =
        c->is_over_ranks ? (int)(args->ranks_last - args->plan.ranks) + 1 : args->size_count;
    add_entries(c);
    points = (size_t)c->point_count;
    c->points = malloc(points * (1 + (size_t)c->entry_count) * sizeof(*c->points));
    c->choices = malloc(points * (size_t)c->entry_count * sizeof(*c->choices));
    if (c->points == NULL || c->choices == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < c->point_count; i++) {
        c->points[i] = c->is_over_ranks ? args->plan.ranks + (double)i : (double)args->sizes[i];
    }
    return fill(c);
}

/* Blocks, or vectors, that must pass the port of some rank, one way. */
static double blocks_least(enum ibshift_collective collective, double ranks)
{
    switch (collective) {
    case IBSHIFT_BARRIER:
        return 0;
    case IBSHIFT_ALLREDUCE: /* each element is sent P - 1 times to be added, and again to be known */
        return 2 * (ranks - 1) / ranks;
    case IBSHIFT_BCAST:
    case IBSHIFT_REDUCE:
    case IBSHIFT_SCAN:
    case IBSHIFT_EXSCAN:
        return 1;
    default:
        return ranks - 1;
    }
}

/* And that the busiest processor must add at least: of all additions the mean. */
static double blocks_added(enum ibshift_collective collective, double ranks)
{
    return collective == IBSHIFT_REDUCE_SCATTER ? ranks - 1
           : collective == IBSHIFT_EXSCAN       ? (ranks - 2) / ranks
           : collective >= IBSHIFT_REDUCE       ? (ranks - 1) / ranks
                                                : 0;
}

/* Until what one rank has can be known to all: the broadcast that is optimal under LogP, in whole gaps. */
static double time_to_reach(const struct ibshift_model *model, double ranks)
{
    enum { GAPS = 4096 };
    double way = model->send_min + model->latency + model->recv_min;
    double gap = fmin(model->send_min, model->recv_min), known[GAPS];
    int delay = gap > 0 ? (int)fmin(way / gap, GAPS) : GAPS;

    for (int n = 0; n < GAPS && delay > 0; n++) {
        known[n] = n < delay ? 1 : known[n - 1] + known[n - delay];
        if (known[n] >= ranks) {
            return n * gap;
        }
    }
    return ranks > 1 ? way : 0;
}

double plan_least(const struct plan_comparison *c, int point)
{
    const struct plan_args *args = c->args;
    struct ibshift_model model = plan_model_of(args, plan_which(args));
    double ranks = c->is_over_ranks ? c->points[point] : args->plan.ranks;
    double bytes = c->is_over_ranks ? (double)args->sizes[0] : c->points[point], sent, added, way;
    enum ibshift_collective collective = (enum ibshift_collective)args->collective;

    if (args->per_host > 0 || args->nodes_text != NULL ||
        ibshift_collective_is_of_neighbors(collective) || ranks < 2) {
        return 0;
    }
    for (int e = 0; e < c->entry_count; e++) {
        if ((c->entries[e].alg->flags & IBSHIFT_ALG_MULTICAST) != 0 &&
            !isnan(c->entries[e].times[point])) {
            return 0; /* a datagram reaches all at once */
        }
    }
    way = model.send_min + model.latency + model.recv_min;
    sent = bytes * blocks_least(collective, ranks) - fmax(1, model.free_messages);
    sent = way + fmax(0, sent) * model.gap_byte;
    added = way + bytes * blocks_added(collective, ranks) * model.reduce_byte;
    return fmax(time_to_reach(&model, ranks), fmax(sent, added));
}

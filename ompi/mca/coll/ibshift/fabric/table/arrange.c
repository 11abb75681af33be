#include "fabric/table/arrange.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEW = 4, QUARTERS = 4, STEPS_TRIED = 16 };

struct arranger {
    const struct ibshift_placement *p;
    const uint32_t *order;
    uint32_t count;
    struct ibshift_arrangement *best;
    unsigned kinds;
    bool found;
    bool too_large; /* for a table */
    struct ibshift_error *err;
};

const char *ibshift_arrange_name(enum ibshift_arrange_kind kind)
{
    static const char *const names[IBSHIFT_ARRANGE_KINDS] = {
        "shift in rank order", "shift in routing order", "shift in routing order, place keepers",
        "shift in routing order, distances in steps", "table of stages"};

    return names[kind];
}

struct ibshift_stage_source ibshift_arrangement_source(const struct ibshift_placement *p,
                                                       const struct ibshift_arrangement *a)
{
    struct ibshift_stage_source source =
        a->kind == IBSHIFT_ARRANGE_TABLE
            ? ibshift_source_table(&a->schedule.table, p->ranks, a->schedule.lid_offsets,
                                   p->member_of)
            : ibshift_source_shift(&a->shift, p->ranks, p->member_of);

    source.lid_offset = a->lid_offset;
    return source;
}

/* Prices the candidate with so many stages at once, and keeps it if it is the cheapest so far, by
 * more than rounding. */
static int weigh(struct arranger *a, struct ibshift_arrangement *candidate, uint32_t together)
{
    struct ibshift_stage_source source = ibshift_arrangement_source(a->p, candidate);
    struct ibshift_contention c;
    int status = ibshift_contend(a->p->paths, &source, together, 0, &c);

    if (status != 0) {
        return status;
    }
    ibshift_contention_free(&c);
    if (a->best->tried[candidate->kind] == 0 || c.sum < a->best->tried[candidate->kind]) {
        a->best->tried[candidate->kind] = c.sum;
    }
    if (!a->found || c.sum < a->best->cost - 1e-6 * a->best->cost) {
        struct ibshift_order shift = a->best->shift;
        struct ibshift_schedule schedule = a->best->schedule;

        a->best->kind = candidate->kind;
        a->best->lid_offset = candidate->lid_offset;
        a->best->shift = candidate->shift;
        a->best->schedule = candidate->schedule;
        a->best->cost = c.sum;
        a->best->worst = c.worst / together;
        a->best->stages = c.stages;
        candidate->shift = shift;
        candidate->schedule = schedule;
        a->found = true;
    }
    return 0;
}

static int try_mode(struct arranger *a, enum ibshift_arrange_kind kind, uint32_t lid_offset)
{
    struct ibshift_arrangement candidate = {.kind = kind, .lid_offset = lid_offset};
    int status =
        kind == IBSHIFT_ARRANGE_RANK
            ? ibshift_placement_by_rank(a->p, &candidate.shift, a->err)
            : ibshift_placement_along(a->p, a->order, a->count, kind == IBSHIFT_ARRANGE_KEEPERS,
                                      &candidate.shift, a->err);

    if (status == 0) {
        status = weigh(a, &candidate, 1);
    }
    ibshift_arrangement_free(&candidate);
    return status;
}

static bool is_enough(const struct arranger *a)
{
    return a->found && a->best->cost <= IBSHIFT_ARRANGE_ENOUGH * a->best->bound;
}

static int try_shift(struct arranger *a, enum ibshift_arrange_kind kind)
{
    uint32_t modes = ibshift_paths_modes(a->p->paths);
    int status = 0;

    for (uint32_t i = 0; status == 0 && i < modes && (i == 0 || !is_enough(a)); i++) {
        status = try_mode(a, kind, i);
    }
    return status;
}

/* Stages that are priced together: as many as a host has messages in flight, but of a small job not
 * all, for then every step is even. */
static uint32_t stages_at_once(const struct arranger *a)
{
    uint32_t most = a->p->hosts / QUARTERS;

    return most > IBSHIFT_ORDER_FLIGHTS ? IBSHIFT_ORDER_FLIGHTS : most > 1 ? most : 1;
}

/* What a step costs, with few of the stages at once and with all that are in flight. */
static int price_step(const struct arranger *a, const struct ibshift_arrangement *candidate,
                      double *price)
{
    uint32_t all = stages_at_once(a), together[] = {FEW < all ? FEW : all, all};
    struct ibshift_stage_source source = ibshift_arrangement_source(a->p, candidate);
    struct ibshift_contention c;
    int status = 0;

    *price = 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        status = ibshift_contend(a->p->paths, &source, together[i], 0, &c);
        if (status == 0) {
            *price += c.sum;
            ibshift_contention_free(&c);
        }
    }
    return status;
}

/* Many hosts: the step that all shifts have, for each of the others would take long. */
static int try_steps(struct arranger *a)
{
    struct ibshift_arrangement candidate = {.kind = IBSHIFT_ARRANGE_STEPS,
                                            .lid_offset = a->best->lid_offset};
    struct ibshift_order *order = &candidate.shift;
    int status = ibshift_placement_along(a->p, a->order, a->count, false, &candidate.shift, a->err);
    uint32_t best = order->step;
    double price, least = INFINITY;

    for (int i = 0; status == 0 && i < STEPS_TRIED && order->places <= IBSHIFT_FIRST_HOSTS; i++) {
        order->step = ibshift_order_step(order->places, (i + 0.5) / (2 * STEPS_TRIED));
        status = price_step(a, &candidate, &price);
        if (status == 0 && price < least * (1 - 1e-6)) {
            least = price;
            best = order->step;
        }
    }
    if (status == 0) {
        order->step = best;
        a->best->together = stages_at_once(a);
        status = weigh(a, &candidate, a->best->together);
    }
    ibshift_arrangement_free(&candidate);
    return status;
}

/* Ranks along the order, those of one host together. */
static uint32_t *sequence_of(const struct arranger *a)
{
    const struct ibshift_placement *p = a->p;
    uint32_t *sequence = malloc(((size_t)p->ranks + 1) * sizeof(*sequence)), at = 0;

    for (uint32_t i = 0; sequence != NULL && i < a->count; i++) {
        uint32_t member =
            a->order[i] == IBSHIFT_NO_HOST ? IBSHIFT_NO_HOST : p->member_at[a->order[i]];

        for (uint32_t k = 0;
             member != IBSHIFT_NO_HOST && k < p->start[member + 1] - p->start[member]; k++) {
            sequence[at++] = p->rank_on[p->start[member] + k];
        }
    }
    return sequence;
}

/* The longest blocks that the hosts fill: all runs of them in the order begin and end at multiples.
 */
static uint32_t block_length(const struct arranger *a)
{
    uint32_t length = 0;
    bool was_used = false;

    for (uint32_t i = 0; i <= a->count; i++) {
        bool is_used = i < a->count && a->order[i] != IBSHIFT_NO_HOST &&
                       a->p->member_at[a->order[i]] != IBSHIFT_NO_HOST;

        if (is_used != was_used) {
            for (uint32_t rest = i, next; rest != 0; rest = next) {
                next = length % rest;
                length = rest;
            }
        }
        was_used = is_used;
    }
    return length;
}

/* Weighs the table that is found; the next start is tried where none could be. */
static int try_start(struct arranger *a, const struct ibshift_schedule_job *job)
{
    struct ibshift_arrangement candidate = {.kind = IBSHIFT_ARRANGE_TABLE};
    int status = ibshift_schedule_make(job, &candidate.schedule);

    if (status == 0) {
        status = weigh(a, &candidate, 1);
    }
    ibshift_arrangement_free(&candidate);
    a->too_large = status == -E2BIG;
    return status == -EDOM || status == -E2BIG ? 0 : status;
}

/* From blocks, of one rank a host; then from nothing. */
static int try_table(struct arranger *a)
{
    const struct ibshift_placement *p = a->p;
    uint32_t *sequence = sequence_of(a), length = p->ranks == p->hosts ? block_length(a) : 0;
    struct ibshift_schedule_job job = {.paths = p->paths,
                                       .ranks = p->ranks,
                                       .member_of = p->member_of,
                                       .sequence = sequence,
                                       .memory = IBSHIFT_TABLE_MEMORY};
    int status = sequence == NULL ? -ENOMEM : 0;

    if (status == 0 && length > 1 && length < p->ranks) {
        job.block = length;
        status = try_start(a, &job);
        job.block = 0;
    }
    if (status == 0 && !is_enough(a)) {
        status = try_start(a, &job);
    }
    free(sequence);
    return status;
}

/* The bound; and how far it is above that of the hosts' own cables. */
static int set_bound(struct arranger *a)
{
    const struct ibshift_placement *p = a->p;
    double cables = 0;
    int status = ibshift_alltoall_bound(p->paths, p->ranks, p->member_of, &a->best->bound,
                                        &a->best->busiest);

    for (uint32_t m = 0; m < p->paths->hosts; m++) {
        double on = p->start[m + 1] - p->start[m];
        double flows = on * (p->ranks - on) * p->paths->host_cost[m];

        cables = flows > cables ? flows : cables;
    }
    a->best->share = a->best->bound > 0 ? cables / a->best->bound : 1;
    return status != 0 ? status : ibshift_paths_circle(p->paths, &a->best->has_circle);
}

static void explain(const struct arranger *a)
{
    struct ibshift_arrangement *b = a->best;
    char link[160];
    double ratio = b->bound > 0 ? b->cost / b->bound : 1;
    int n = snprintf(b->reason, sizeof(b->reason), "%s", ibshift_arrange_name(b->kind));

    if (b->kind == IBSHIFT_ARRANGE_STEPS) {
        n += snprintf(b->reason + n, sizeof(b->reason) - (size_t)n, " of %u, %u stages at once",
                      b->shift.step, b->together);
    }
    if (b->lid_offset > 0) {
        n += snprintf(b->reason + n, sizeof(b->reason) - (size_t)n, ", to LID offset %u",
                      b->lid_offset);
    }
    n += snprintf(b->reason + n, sizeof(b->reason) - (size_t)n,
                  ": %.0f message times, %.3f of the bound", b->cost, ratio);

    if (b->kind == IBSHIFT_ARRANGE_TABLE && b->tried[IBSHIFT_ARRANGE_ROUTING] > 0) {
        n += snprintf(b->reason + n, sizeof(b->reason) - (size_t)n,
                      ", where the shift in routing order takes %.3f",
                      b->tried[IBSHIFT_ARRANGE_ROUTING] / b->bound);
    } else if (a->too_large && ratio > IBSHIFT_ARRANGE_ENOUGH) {
        n +=
            snprintf(b->reason + n, sizeof(b->reason) - (size_t)n,
                     "; a table of stages would take more than %zu MB", IBSHIFT_TABLE_MEMORY >> 20);
    }
    if (b->share < 0.9) {
        ibshift_contention_name(a->p->paths, b->busiest, link, sizeof(link));
        snprintf(b->reason + n, sizeof(b->reason) - (size_t)n,
                 ". The routing limits an all-to-all to 1/%.1f of the hosts' rate: %s",
                 1 / b->share, link);
    }
}

/* Tries a kind that is allowed and was not tried, unless what is there is good enough. */
static int try_kind(struct arranger *a, enum ibshift_arrange_kind kind)
{
    if ((a->kinds >> kind & 1) == 0 || is_enough(a) || a->best->tried[kind] > 0) {
        return 0;
    }
    return kind == IBSHIFT_ARRANGE_TABLE   ? try_table(a)
           : kind == IBSHIFT_ARRANGE_STEPS ? try_steps(a)
                                           : try_shift(a, kind);
}

/* With place keepers there are as many stages as places, however few ranks there are. */
static bool keepers_may_gain(const struct arranger *a, double cost)
{
    return !a->found || a->count - 1 <= cost;
}

static int try_kinds(struct arranger *a)
{
    int status = try_kind(a, IBSHIFT_ARRANGE_ROUTING);

    if (status == 0 && keepers_may_gain(a, IBSHIFT_ARRANGE_ENOUGH * a->best->bound)) {
        status = try_kind(a, IBSHIFT_ARRANGE_KEEPERS);
    }
    status = status == 0 ? try_kind(a, IBSHIFT_ARRANGE_RANK) : status;
    status = status == 0 ? try_kind(a, IBSHIFT_ARRANGE_TABLE) : status;
    /* Last: with several stages at once every order is cheaper, and clean stages are worth more. */
    status = status == 0 ? try_kind(a, IBSHIFT_ARRANGE_STEPS) : status;
    if (status == 0 && keepers_may_gain(a, a->best->cost)) {
        status = try_kind(a, IBSHIFT_ARRANGE_KEEPERS);
    }
    return status;
}

int ibshift_arrange(const struct ibshift_placement *placement, const uint32_t *order,
                    uint32_t count, unsigned kinds, struct ibshift_arrangement *arrangement,
                    struct ibshift_error *err)
{
    struct arranger a = {.p = placement,
                         .order = order,
                         .count = count,
                         .kinds = kinds,
                         .best = arrangement,
                         .err = err};
    int status;

    *arrangement = (struct ibshift_arrangement){0};
    status = set_bound(&a);
    if (status == 0) {
        status = try_kinds(&a);
    }
    if (status == 0 && !a.found) {
        status = ibshift_fail(err, -EDOM, "a table of stages would take more than %zu MB",
                              IBSHIFT_TABLE_MEMORY >> 20);
    }
    if (status == 0) {
        explain(&a);
    } else {
        ibshift_arrangement_free(arrangement);
    }
    return status == -ENOMEM
               ? ibshift_fail(err, status, "no memory to order %u ranks", placement->ranks)
               : status;
}

void ibshift_arrangement_free(struct ibshift_arrangement *a)
{
    ibshift_order_free(&a->shift);
    ibshift_schedule_free(&a->schedule);
}

int ibshift_arrange_price(const struct ibshift_placement *p, const struct ibshift_order *shift,
                          uint32_t together, unsigned threads, struct ibshift_contention *c)
{
    struct ibshift_order by_rank = {.rank_at = NULL};
    struct ibshift_stage_source source;
    struct ibshift_error err;
    int status = shift == NULL ? ibshift_placement_by_rank(p, &by_rank, &err) : 0;

    if (status == 0) {
        source = ibshift_source_shift(shift == NULL ? &by_rank : shift, p->ranks, p->member_of);
        status = ibshift_contend(p->paths, &source, together, threads, c);
    }
    if (status == 0) {
        ibshift_contention_free(c);
    }
    ibshift_order_free(&by_rank);
    return status;
}

int ibshift_arrange_first(struct ibshift_placement *placement, const uint32_t *order,
                          uint32_t count, struct ibshift_order *shift,
                          enum ibshift_arrange_kind *kind, struct ibshift_error *err)
{
    struct ibshift_order by_rank = {.rank_at = NULL};
    struct ibshift_contention routing, rank;
    int status = ibshift_placement_along(placement, order, count, false, shift, err);

    *kind = IBSHIFT_ARRANGE_ROUTING;
    if (status != 0 || placement->hosts > IBSHIFT_FIRST_HOSTS ||
        placement->ranks > IBSHIFT_FIRST_RANKS) {
        return status;
    }
    status = placement->paths != NULL ? 0 : ibshift_placement_routes(placement, false, err);
    if (status != 0 && status != -ENOMEM) {
        return 0; /* a route that does not arrive is the search's to tell */
    }
    status = status == 0 ? ibshift_placement_by_rank(placement, &by_rank, err) : status;
    /* In one thread: sums in another order might decide otherwise on another host. */
    status = status == 0 ? ibshift_arrange_price(placement, shift, 1, 1, &routing) : status;
    status = status == 0 ? ibshift_arrange_price(placement, &by_rank, 1, 1, &rank) : status;
    if (status == 0 && rank.sum < routing.sum - 1e-6 * routing.sum) {
        struct ibshift_order dear = *shift;

        *shift = by_rank;
        by_rank = dear;
        *kind = IBSHIFT_ARRANGE_RANK;
    }
    ibshift_order_free(&by_rank);
    return status;
}

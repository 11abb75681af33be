#include "fabric/paths/contend.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/nodes.h"

/* What one thread counts: its groups of stages are first, first + step, ... */
struct counter {
    const struct ibshift_paths *paths;
    const struct ibshift_stage_source *source;
    uint32_t first, step, together;
    struct ibshift_contention result;
    uint32_t *now; /* flows of the group at hand, a link each */
    float *cost;
    struct ibshift_flow *flows;
    pthread_t thread;
};

static uint32_t links_of(const struct ibshift_paths *p)
{
    return p->links + 2 * p->hosts;
}

double ibshift_contention_cost(const struct ibshift_paths *p, uint32_t i)
{
    return i < p->links ? p->cost[i] : p->host_cost[(i - p->links) % p->hosts];
}

void ibshift_contention_name(const struct ibshift_paths *p, uint32_t i, char *text, size_t size)
{
    const struct ibshift_fabric *f = p->fabric;
    uint32_t link;

    if (i < p->links) {
        link = p->link[i];
    } else {
        uint32_t cable = f->hosts[p->host[(i - p->links) % p->hosts]];

        link = i - p->links < p->hosts || f->ports[cable].peer == IBSHIFT_NO_PORT
                   ? cable
                   : f->ports[cable].peer;
    }
    ibshift_link_name(f, link, text, size);
}

/* Whether it goes over a cable. */
static bool add_flow(struct counter *c, const struct ibshift_flow *flow)
{
    const struct ibshift_paths *p = c->paths;
    const uint32_t *links;

    if (flow->from == flow->to) {
        return false;
    }
    links = ibshift_paths_links(p, flow->from, flow->to, flow->lid_offset);
    for (uint32_t i = 0; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
        c->now[links[i]]++;
    }
    c->now[p->links + flow->from]++;
    c->now[p->links + p->hosts + flow->to]++;
    return true;
}

static bool add_stage(struct counter *c, uint32_t stage)
{
    uint32_t count = c->source->flows(c->source, stage, c->flows);
    bool is_used = false;

    for (uint32_t i = 0; i < count; i++) {
        is_used = add_flow(c, &c->flows[i]) || is_used;
    }
    return is_used;
}

static void end_group(struct counter *c, uint32_t stages)
{
    struct ibshift_contention *r = &c->result;
    float worst = (float)stages;
    uint32_t bin;

    for (uint32_t i = 0; i < r->links; i++) {
        float cost = (float)c->now[i] * c->cost[i];

        worst = cost > worst ? cost : worst;
        r->worst_flows[i] = c->now[i] > r->worst_flows[i] ? c->now[i] : r->worst_flows[i];
        r->total[i] += c->now[i];
    }
    memset(c->now, 0, r->links * sizeof(*c->now));
    if (worst > 0) {
        bin = (uint32_t)ceilf(worst - 1e-4f);
        r->stages += stages;
        r->sum += worst;
        r->worst = worst > r->worst ? worst : r->worst;
        r->histogram[bin < IBSHIFT_CONTEND_BINS ? bin : IBSHIFT_CONTEND_BINS - 1]++;
    }
}

static void *count_stages(void *context)
{
    struct counter *c = context;

    for (uint32_t g = c->first; g * c->together < c->source->stages; g += c->step) {
        uint32_t end = (g + 1) * c->together, used = 0;

        for (uint32_t s = g * c->together; s < end && s < c->source->stages; s++) {
            used += add_stage(c, s);
        }
        end_group(c, used);
    }
    return NULL;
}

static int counter_open(struct counter *c, const struct ibshift_paths *p,
                        const struct ibshift_stage_source *source, uint32_t together,
                        uint32_t first, uint32_t step)
{
    uint32_t links = links_of(p);

    *c = (struct counter){
        .paths = p, .source = source, .together = together, .first = first, .step = step};
    c->result.links = links;
    c->result.total = calloc(links + 1, sizeof(*c->result.total));
    c->result.worst_flows = calloc(links + 1, sizeof(*c->result.worst_flows));
    c->now = calloc(links + 1, sizeof(*c->now));
    c->cost = malloc((links + 1) * sizeof(*c->cost));
    c->flows = malloc((source->most + 1) * sizeof(*c->flows));
    if (!c->result.total || !c->result.worst_flows || !c->now || !c->cost || !c->flows) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < links; i++) {
        c->cost[i] = (float)ibshift_contention_cost(p, i);
    }
    return 0;
}

static void counter_close(struct counter *c)
{
    ibshift_contention_free(&c->result);
    free(c->now);
    free(c->cost);
    free(c->flows);
}

static void merge(struct ibshift_contention *into, const struct ibshift_contention *from)
{
    for (uint32_t i = 0; i < into->links; i++) {
        into->total[i] += from->total[i];
        if (from->worst_flows[i] > into->worst_flows[i]) {
            into->worst_flows[i] = from->worst_flows[i];
        }
    }
    for (int b = 0; b < IBSHIFT_CONTEND_BINS; b++) {
        into->histogram[b] += from->histogram[b];
    }
    into->stages += from->stages;
    into->sum += from->sum;
    into->worst = from->worst > into->worst ? from->worst : into->worst;
}

static void set_bound(const struct ibshift_paths *p, struct ibshift_contention *r)
{
    for (uint32_t i = 0; i < r->links; i++) {
        double total = (double)r->total[i] * ibshift_contention_cost(p, i);

        r->bound = total > r->bound ? total : r->bound;
    }
}

/* Runs the counters, the first one in this thread; those that get no thread are run here as well.
 */
static void run(struct counter *counters, unsigned threads)
{
    unsigned started = 1;

    while (started < threads &&
           pthread_create(&counters[started].thread, NULL, count_stages, &counters[started]) == 0) {
        started++;
    }
    count_stages(&counters[0]);
    for (unsigned t = started; t < threads; t++) {
        count_stages(&counters[t]);
    }
    for (unsigned t = 1; t < started; t++) {
        pthread_join(counters[t].thread, NULL);
    }
}

int ibshift_contend(const struct ibshift_paths *paths, const struct ibshift_stage_source *source,
                    uint32_t together, unsigned threads, struct ibshift_contention *result)
{
    uint32_t groups = source->stages / together + (source->stages % together > 0);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct counter *counters;
    int status = 0;

    threads = threads > 0 ? threads : cores > 0 ? (unsigned)cores : 1;
    threads = threads > 64 ? 64 : threads;
    threads = threads > groups && groups > 0 ? groups : threads;
    counters = calloc(threads, sizeof(*counters));
    if (counters == NULL) {
        return -ENOMEM;
    }
    for (unsigned t = 0; t < threads && status == 0; t++) {
        status = counter_open(&counters[t], paths, source, together, t, threads);
    }
    if (status == 0) {
        run(counters, threads);
        for (unsigned t = 1; t < threads; t++) {
            merge(&counters[0].result, &counters[t].result);
        }
        set_bound(paths, &counters[0].result);
        *result = counters[0].result;
        counters[0].result = (struct ibshift_contention){0};
    }
    for (unsigned t = 0; t < threads; t++) {
        counter_close(&counters[t]);
    }
    free(counters);
    return status;
}

void ibshift_contention_free(struct ibshift_contention *result)
{
    free(result->total);
    free(result->worst_flows);
    result->total = NULL;
    result->worst_flows = NULL;
}

/* Stages from an order, from a table; the bound that needs no stages. */

static uint32_t shift_flows(const struct ibshift_stage_source *source, uint32_t stage,
                            struct ibshift_flow *flows)
{
    const struct ibshift_order *o = source->order;
    uint32_t distance = ibshift_order_distance(o, stage), turn = stage / o->places, count = 0;

    for (uint32_t place = 0; place < o->places; place++) {
        uint32_t to_place = (place + distance) % o->places;

        for (uint32_t slot = 0; slot < o->slots; slot++) {
            uint32_t from = o->rank_at[place * o->slots + slot];
            uint32_t to = o->rank_at[to_place * o->slots + (slot + turn) % o->slots];

            if (from != IBSHIFT_NO_RANK && to != IBSHIFT_NO_RANK) {
                flows[count++] = (struct ibshift_flow){source->member_of[from],
                                                       source->member_of[to], source->lid_offset};
            }
        }
    }
    return count;
}

static uint32_t table_flows(const struct ibshift_stage_source *source, uint32_t stage,
                            struct ibshift_flow *flows)
{
    const struct ibshift_stages *t = source->table;
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < t->rows; rank++) {
        size_t at = (size_t)rank * t->stages + stage;

        if (t->to[at] != IBSHIFT_NO_RANK) {
            flows[count++] = (struct ibshift_flow){
                source->member_of[t->first + rank], source->member_of[t->to[at]],
                source->lid_offsets != NULL ? source->lid_offsets[at] : 0};
        }
    }
    return count;
}

struct ibshift_stage_source ibshift_source_shift(const struct ibshift_order *order, uint32_t ranks,
                                                 const uint32_t *member_of)
{
    return (struct ibshift_stage_source){.stages = order->places * order->slots,
                                         .most = ranks,
                                         .flows = shift_flows,
                                         .order = order,
                                         .member_of = member_of,
                                         .ranks = ranks};
}

struct ibshift_stage_source ibshift_source_table(const struct ibshift_stages *table, uint32_t ranks,
                                                 const uint8_t *lid_offsets,
                                                 const uint32_t *member_of)
{
    return (struct ibshift_stage_source){.stages = table->stages,
                                         .most = ranks,
                                         .flows = table_flows,
                                         .table = table,
                                         .lid_offsets = lid_offsets,
                                         .member_of = member_of,
                                         .ranks = ranks};
}

/* Whatever LID of the destination is taken, the route goes over this link. */
static bool on_all_lids(const struct ibshift_paths *p, uint32_t from, uint32_t to, uint32_t link)
{
    for (uint32_t lid_offset = 1; lid_offset < ibshift_paths_lids(p, to); lid_offset++) {
        const uint32_t *links = ibshift_paths_links(p, from, to, lid_offset);
        uint32_t i = 0;

        while (i < p->width && links[i] != link && links[i] != IBSHIFT_NO_LINK) {
            i++;
        }
        if (i == p->width || links[i] != link) {
            return false;
        }
    }
    return true;
}

/* Flows between two members are the product of their ranks: counted per (leaf, destination). */
static void add_loads(const struct ibshift_paths *p, const uint32_t *on_member,
                      const uint32_t *on_leaf, const uint32_t *a_member, double *loads)
{
    for (uint32_t leaf = 0; leaf < p->leaves; leaf++) {
        for (uint32_t to = 0; to < p->hosts && on_leaf[leaf] > 0; to++) {
            const uint32_t *links = ibshift_paths_links(p, a_member[leaf], to, 0);
            uint32_t senders = on_leaf[leaf] - (p->leaf[to] == leaf ? on_member[to] : 0);

            for (uint32_t i = 0; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
                loads[links[i]] += on_all_lids(p, a_member[leaf], to, links[i])
                                       ? (double)senders * on_member[to]
                                       : 0;
            }
        }
    }
}

int ibshift_alltoall_loads(const struct ibshift_paths *p, uint32_t ranks, const uint32_t *member_of,
                           double **loads)
{
    uint32_t *on_member = calloc(p->hosts + 1, sizeof(*on_member));
    uint32_t *on_leaf = calloc(p->leaves + 1, sizeof(*on_leaf));
    uint32_t *a_member = calloc(p->leaves + 1, sizeof(*a_member));
    int status = -ENOMEM;

    *loads = calloc(p->links + 2 * (size_t)p->hosts + 1, sizeof(**loads));
    if (*loads && on_member && on_leaf && a_member) {
        for (uint32_t r = 0; r < ranks; r++) {
            on_member[member_of[r]]++;
            on_leaf[p->leaf[member_of[r]]]++;
            a_member[p->leaf[member_of[r]]] = member_of[r];
        }
        add_loads(p, on_member, on_leaf, a_member, *loads);
        for (uint32_t m = 0; m < p->hosts; m++) {
            (*loads)[p->links + m] = (*loads)[p->links + p->hosts + m] =
                (double)on_member[m] * (ranks - on_member[m]);
        }
        status = 0;
    }
    free(on_member);
    free(on_leaf);
    free(a_member);
    if (status != 0) {
        free(*loads);
    }
    return status;
}

int ibshift_alltoall_bound(const struct ibshift_paths *p, uint32_t ranks, const uint32_t *member_of,
                           double *bound, uint32_t *link)
{
    double *loads;
    int status = ibshift_alltoall_loads(p, ranks, member_of, &loads);

    *bound = 0;
    *link = 0;
    if (status != 0) {
        return status;
    }
    for (uint32_t i = 0; i < p->links + p->hosts; i++) {
        double time = loads[i] * ibshift_contention_cost(p, i);

        if (time > *bound) {
            *bound = time;
            *link = i;
        }
    }
    free(loads);
    return 0;
}

/* A message of a plan, on its way to its stage. */
struct tagged {
    struct ibshift_flow flow;
    uint32_t stage;
};

static uint32_t listed_flows(const struct ibshift_stage_source *source, uint32_t stage,
                             struct ibshift_flow *flows)
{
    size_t count = source->start[stage + 1] - source->start[stage];

    memcpy(flows, source->listed + source->start[stage], count * sizeof(*flows));
    return (uint32_t)count;
}

/* All sends of the plan, rank after rank. */
static int list_sends(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                      const uint32_t *member_of, struct tagged **sends, uint32_t *count)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        uint32_t rounds = alg->rounds(plan, rank);

        for (uint32_t round = 0; round < rounds; round++) {
            uint32_t emitted = alg->emit(plan, rank, round, steps);

            for (uint32_t i = 0; i < emitted; i++) {
                struct tagged *send;

                if (steps[i].kind != IBSHIFT_STEP_SEND ||
                    ibshift_nodes_of(plan, rank) == ibshift_nodes_of(plan, steps[i].peer)) {
                    continue; /* nothing over the fabric, even from adapter to adapter */
                }
                if (*count >= IBSHIFT_PLAN_FLOWS || steps[i].tag >= IBSHIFT_PLAN_FLOWS) {
                    return -E2BIG;
                }
                send = ibshift_room(sends, *count, 1, sizeof(*send));
                if (send == NULL) {
                    return -ENOMEM;
                }
                *send =
                    (struct tagged){{member_of[rank], member_of[steps[i].peer], 0}, steps[i].tag};
                ++*count;
            }
        }
    }
    return 0;
}

int ibshift_plan_flows_open(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                            const uint32_t *member_of, struct ibshift_plan_flows *result)
{
    struct tagged *sends = NULL;
    uint32_t count = 0, stages = 0, most = 0;
    int status = list_sends(alg, plan, member_of, &sends, &count);
    size_t *start;

    for (uint32_t i = 0; i < count; i++) {
        stages = sends[i].stage >= stages ? sends[i].stage + 1 : stages;
    }
    *result = (struct ibshift_plan_flows){.flows = malloc((count + 1) * sizeof(*result->flows)),
                                          .start = calloc((size_t)stages + 2, sizeof(size_t))};
    if (status == 0 && (result->flows == NULL || result->start == NULL)) {
        status = -ENOMEM;
    }
    if (status != 0) {
        ibshift_plan_flows_close(result);
        free(sends);
        return status;
    }
    /* start[s + 1] is where the next flow of stage s goes; in the end, where those of s + 1 begin. */
    start = result->start;
    for (uint32_t i = 0; i < count; i++) {
        start[sends[i].stage + 2]++;
    }
    for (uint32_t s = 0; s < stages; s++) {
        most = start[s + 2] > most ? (uint32_t)start[s + 2] : most;
        start[s + 2] += start[s + 1];
    }
    for (uint32_t i = 0; i < count; i++) {
        result->flows[start[sends[i].stage + 1]++] = sends[i].flow;
    }
    free(sends);
    result->source = (struct ibshift_stage_source){.stages = stages,
                                                   .most = most,
                                                   .flows = listed_flows,
                                                   .listed = result->flows,
                                                   .start = result->start,
                                                   .member_of = member_of,
                                                   .ranks = plan->ranks};
    return 0;
}

void ibshift_plan_flows_close(struct ibshift_plan_flows *flows)
{
    free(flows->flows);
    free(flows->start);
    *flows = (struct ibshift_plan_flows){0};
}

#include "fabric/paths/contend.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What one thread counts: its stages are first, first + step, ... */
struct counter {
    const struct ibshift_paths *paths;
    const struct ibshift_stage_source *source;
    uint32_t first, step;
    struct ibshift_contention result;
    uint32_t *now; /* flows of the stage at hand, a link each */
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

static void add_flow(struct counter *c, const struct ibshift_flow *flow)
{
    const struct ibshift_paths *p = c->paths;
    const uint32_t *links;

    if (flow->from == flow->to) {
        return;
    }
    links = ibshift_paths_links(p, flow->from, flow->to, flow->lane);
    for (uint32_t i = 0; i < p->width && links[i] != IBSHIFT_NO_LINK; i++) {
        c->now[links[i]]++;
    }
    c->now[p->links + flow->from]++;
    c->now[p->links + p->hosts + flow->to]++;
}

static void end_stage(struct counter *c)
{
    struct ibshift_contention *r = &c->result;
    float worst = 0;
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
        r->stages++;
        r->sum += worst;
        r->worst = worst > r->worst ? worst : r->worst;
        r->histogram[bin < IBSHIFT_CONTEND_BINS ? bin : IBSHIFT_CONTEND_BINS - 1]++;
    }
}

static void *count_stages(void *context)
{
    struct counter *c = context;

    for (uint32_t s = c->first; s < c->source->stages; s += c->step) {
        uint32_t count = c->source->flows(c->source, s, c->flows);

        for (uint32_t i = 0; i < count; i++) {
            add_flow(c, &c->flows[i]);
        }
        end_stage(c);
    }
    return NULL;
}

static int counter_open(struct counter *c, const struct ibshift_paths *p,
                        const struct ibshift_stage_source *source, uint32_t first, uint32_t step)
{
    uint32_t links = links_of(p);

    *c = (struct counter){.paths = p, .source = source, .first = first, .step = step};
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
                    unsigned threads, struct ibshift_contention *result)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct counter *counters;
    int status = 0;

    threads = threads > 0 ? threads : cores > 0 ? (unsigned)cores : 1;
    threads = threads > 64 ? 64 : threads;
    threads = threads > source->stages && source->stages > 0 ? source->stages : threads;
    counters = calloc(threads, sizeof(*counters));
    if (counters == NULL) {
        return -ENOMEM;
    }
    for (unsigned t = 0; t < threads && status == 0; t++) {
        status = counter_open(&counters[t], paths, source, t, threads);
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

/*
 * Flows per link in each stage of the shift over the engine's order, place keepers in their places:
 * in stage k the host at place i sends to the one at place i + k.
 */
#include "route/verify.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"

struct shifter {
    const struct route *r;
    const uint32_t *order;
    uint32_t places, shifts, lane;
    uint64_t seed;
    uint32_t *leaf; /* [place]: switch */
    struct route_proof *proof;
    double sum;
    pthread_mutex_t lock;
};

static uint32_t shift_at(const struct shifter *s, uint32_t index)
{
    uint64_t state = s->seed + index;

    return s->seed == 0 ? index + 1 : 1 + ibshift_random_below(&state, s->places - 1);
}

struct stage {
    uint32_t *flows; /* [link] */
    uint32_t *used;  /* links with flows */
    uint32_t used_count, worst, link;
};

static void add_flow(const struct shifter *s, uint32_t from, uint32_t to, struct stage *stage)
{
    const struct ibshift_fabric *f = s->r->fabric;
    uint32_t host = s->order[to], sw = s->leaf[from];
    uint32_t goal = f->hosts[host];
    unsigned lanes = ibshift_host_lid_count(f, host);
    unsigned lid = ibshift_host_lid(f, host) + (s->lane < lanes ? s->lane : 0);

    for (unsigned hops = 0; hops <= f->switch_count; hops++) {
        uint32_t link = route_next_link(f, sw, lid), peer;

        if (link == IBSHIFT_NO_PORT) {
            return;
        }
        if (stage->flows[link]++ == 0) {
            stage->used[stage->used_count++] = link;
        }
        if (stage->flows[link] > stage->worst) {
            stage->worst = stage->flows[link];
            stage->link = link;
        }
        peer = f->ports[link].peer;
        if (peer == goal || !ibshift_node_is_switch(f, f->ports[peer].node)) {
            return;
        }
        sw = f->nodes[f->ports[peer].node].switch_index;
    }
}

static void count_stage(const struct shifter *s, uint32_t distance, struct stage *stage)
{
    stage->worst = 0;
    for (uint32_t i = 0; i < s->places; i++) {
        uint32_t to = i + distance < s->places ? i + distance : i + distance - s->places;

        if (s->order[i] != IBSHIFT_NO_HOST && s->order[to] != IBSHIFT_NO_HOST) {
            add_flow(s, i, to, stage);
        }
    }
    while (stage->used_count > 0) {
        stage->flows[stage->used[--stage->used_count]] = 0;
    }
}

static int count_stages(void *context, uint32_t first, uint32_t end)
{
    struct shifter *s = context;
    size_t links = (size_t)s->r->fabric->port_count + 1;
    struct stage stage = {.flows = calloc(links, sizeof(*stage.flows)),
                          .used = malloc(links * sizeof(*stage.used))};
    int rc = stage.flows == NULL || stage.used == NULL ? -ENOMEM : 0;

    for (uint32_t i = first; rc == 0 && i < end; i++) {
        uint32_t distance = shift_at(s, i);

        count_stage(s, distance, &stage);
        pthread_mutex_lock(&s->lock);
        s->sum += stage.worst;
        if (stage.worst > s->proof->worst ||
            (stage.worst == s->proof->worst && s->proof->worst_lane == s->lane &&
             distance < s->proof->worst_shift)) {
            s->proof->worst = stage.worst;
            s->proof->worst_shift = distance;
            s->proof->worst_link = stage.link;
            s->proof->worst_lane = s->lane;
        }
        pthread_mutex_unlock(&s->lock);
    }
    free(stage.flows);
    free(stage.used);
    return rc;
}

static uint32_t *every_host(const struct ibshift_fabric *f)
{
    uint32_t *hosts = malloc(((size_t)f->host_count + 1) * sizeof(*hosts));

    for (uint32_t h = 0; hosts != NULL && h < f->host_count; h++) {
        hosts[h] = h;
    }
    return hosts;
}

static unsigned most_lanes(const struct ibshift_fabric *f)
{
    unsigned most = 1;

    for (uint32_t h = 0; h < f->host_count; h++) {
        unsigned lanes = ibshift_host_lid_count(f, h);

        most = lanes > most ? lanes : most;
    }
    return most;
}

static int count_lanes(struct shifter *s)
{
    const struct ibshift_fabric *f = s->r->fabric;
    struct route_proof *proof = s->proof;
    int rc = 0;

    for (uint32_t i = 0; i < s->places; i++) {
        uint32_t node = s->order[i] == IBSHIFT_NO_HOST
                            ? IBSHIFT_NO_NODE
                            : ibshift_port_neighbour(f, f->hosts[s->order[i]]);

        s->leaf[i] = node == IBSHIFT_NO_NODE ? 0 : f->nodes[node].switch_index;
    }
    proof->lanes = most_lanes(f);
    for (s->lane = 0; rc == 0 && s->lane < proof->lanes; s->lane++) {
        s->sum = 0;
        rc = route_parallel(s->r->threads, s->shifts, count_stages, s);
        if (s->shifts > 0 && s->sum / s->shifts > proof->average) {
            proof->average = s->sum / s->shifts;
        }
    }
    return rc;
}

int route_verify_shifts(const struct route *r, uint64_t seed, struct route_proof *proof,
                        struct ibshift_error *err)
{
    const struct ibshift_fabric *f = r->fabric;
    uint32_t *hosts = r->order == NULL ? every_host(f) : NULL;
    uint32_t places = r->order == NULL ? f->host_count : r->order_count;
    bool is_sampled = places > ROUTE_SHIFTS_ALL;
    struct shifter s = {.r = r,
                        .order = r->order == NULL ? hosts : r->order,
                        .places = places,
                        .shifts = is_sampled ? ROUTE_SHIFTS_SOME : places - 1,
                        .seed = is_sampled ? (seed != 0 ? seed : 1) : 0,
                        .leaf = calloc((size_t)places + 1, sizeof(*s.leaf)),
                        .proof = proof};
    int rc = -ENOMEM;

    proof->places = s.places;
    proof->shifts = s.shifts;
    proof->shift_seed = s.seed;
    pthread_mutex_init(&s.lock, NULL);
    if (s.order != NULL && s.leaf != NULL) {
        rc = count_lanes(&s);
    }
    pthread_mutex_destroy(&s.lock);
    free(s.leaf);
    free(hosts);
    return rc == 0 ? 0 : ibshift_fail(err, rc, "no memory to count the shifts");
}

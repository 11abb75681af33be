/*
 * Flows per link in each stage of the shift over the engine's order, place keepers in their places:
 * in stage k the host at place i sends to the one at place i + k.
 */
#include "route/verify.h"

#include <pthread.h>

#include "fabric/graph/random.h"

struct shifter {
    const struct route *r;
    const uint32_t *order;
    uint32_t lid_offset;
    uint32_t *leaf;            /* [place]: switch */
    struct route_proof *proof; /* places, shifts and seed as well */
    double sum;
    pthread_mutex_t lock;
};

static uint32_t shift_at(const struct shifter *s, uint32_t index)
{
    uint64_t state = s->proof->shift_seed + index;

    return s->proof->shift_seed == 0 ? index + 1
                                     : 1 + ibshift_random_below(&state, s->proof->places - 1);
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
    unsigned lids = ibshift_host_lid_count(f, host);
    unsigned lid = ibshift_host_lid(f, host) + (s->lid_offset < lids ? s->lid_offset : 0);

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
    uint32_t places = s->proof->places;

    stage->worst = 0;
    for (uint32_t i = 0; i < places; i++) {
        uint32_t to = i + distance < places ? i + distance : i + distance - places;

        if (s->order[i] != IBSHIFT_NO_HOST && s->order[to] != IBSHIFT_NO_HOST) {
            add_flow(s, i, to, stage);
        }
    }
    while (stage->used_count > 0) {
        stage->flows[stage->used[--stage->used_count]] = 0;
    }
}

static void count_stages(void *context, uint32_t first, uint32_t end)
{
    struct shifter *s = context;
    uint32_t links = s->r->fabric->port_count;
    struct pool pool = {NULL};
    struct stage stage = {.flows = pool_new(&pool, links, sizeof(*stage.flows)),
                          .used = pool_new(&pool, links, sizeof(*stage.used))};

    for (uint32_t i = first; i < end; i++) {
        uint32_t distance = shift_at(s, i);

        count_stage(s, distance, &stage);
        pthread_mutex_lock(&s->lock);
        s->sum += stage.worst;
        if (stage.worst > s->proof->worst ||
            (stage.worst == s->proof->worst && s->proof->worst_lid_offset == s->lid_offset &&
             distance < s->proof->worst_shift)) {
            s->proof->worst = stage.worst;
            s->proof->worst_shift = distance;
            s->proof->worst_link = stage.link;
            s->proof->worst_lid_offset = s->lid_offset;
        }
        pthread_mutex_unlock(&s->lock);
    }
    pool_free(&pool);
}

void route_count_shifts(const struct route *r, uint64_t seed, struct route_proof *proof)
{
    const struct ibshift_fabric *f = r->fabric;
    struct pool pool = {NULL};
    uint32_t places = r->order == NULL ? f->host_count : r->order_count;
    bool is_sampled = places > ROUTE_SHIFTS_ALL;
    uint32_t *every = pool_new(&pool, f->host_count, sizeof(*every));
    struct shifter s = {.r = r,
                        .order = r->order == NULL ? every : r->order,
                        .leaf = pool_new(&pool, places, sizeof(*s.leaf)),
                        .proof = proof,
                        .lock = PTHREAD_MUTEX_INITIALIZER};

    proof->places = places;
    proof->shifts = is_sampled ? ROUTE_SHIFTS_SOME : places - 1;
    proof->shift_seed = is_sampled ? (seed != 0 ? seed : 1) : 0;
    proof->lids = route_most_lids(f);
    for (uint32_t h = 0; h < f->host_count; h++) {
        every[h] = h;
    }
    for (uint32_t i = 0; i < places; i++) {
        s.leaf[i] =
            s.order[i] == IBSHIFT_NO_HOST ? 0 : ibshift_switch_behind(f, f->hosts[s.order[i]]);
    }
    for (s.lid_offset = 0; s.lid_offset < proof->lids; s.lid_offset++) {
        s.sum = 0;
        route_parallel(r->threads, proof->shifts, count_stages, &s);
        if (proof->shifts > 0 && s.sum / proof->shifts > proof->average) {
            proof->average = s.sum / proof->shifts;
        }
    }
    pool_free(&pool);
}

#include "choose/price_node.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define LIMIT_DEFAULT ((uint64_t)1 << 32)

/* Rounds, hence messages within a factor of the radix: cheap, and enough to refuse. */
static bool is_too_large(const struct ibshift_price_request *request)
{
    uint64_t limit = request->limit > 0 ? request->limit : LIMIT_DEFAULT, sum = 0;

    for (uint32_t rank = 0; rank < request->plan->ranks; rank++) {
        sum += request->alg->rounds(request->plan, rank);
        if (sum > limit) {
            return true;
        }
    }
    return false;
}

/* The most receives or sends of any rank, as far as the window lets them be in flight. */
static uint32_t slots_needed(const struct ibshift_price_request *request, uint32_t window)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t most = 1;

    for (uint32_t rank = 0; rank < request->plan->ranks && most < window; rank++) {
        uint32_t rounds = request->alg->rounds(request->plan, rank), count[2] = {0, 0};

        for (uint32_t round = 0; round < rounds && most < window; round++) {
            int emitted = request->alg->emit(request->plan, rank, round, steps);

            for (int i = 0; i < emitted; i++) {
                count[steps[i].kind == IBSHIFT_STEP_SEND] += !ibshift_step_is_local(&steps[i]);
            }
            most = count[0] > most ? count[0] : most;
            most = count[1] > most ? count[1] : most;
        }
    }
    return most < window ? most : window;
}

static int begin(struct ibshift_simulation *sim)
{
    const struct ibshift_price_request *r = sim->request;
    uint32_t ranks = r->plan->ranks;

    sim->walk.alg = r->alg;
    sim->walk.plan = r->plan;
    sim->nodes = calloc(ranks, sizeof(*sim->nodes));
    sim->posted = malloc((size_t)ranks * sim->slots * sizeof(*sim->posted));
    sim->unacked = malloc((size_t)ranks * sim->slots * sizeof(*sim->unacked));
    if (sim->nodes == NULL || sim->posted == NULL || sim->unacked == NULL) {
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        sim->nodes[rank].arrived = IBSHIFT_NO_MESSAGE;
        sim->nodes[rank].early = IBSHIFT_NO_MESSAGE;
        sim->nodes[rank].asked = IBSHIFT_NO_MESSAGE;
        sim->nodes[rank].grants = IBSHIFT_NO_MESSAGE;
    }
    for (uint32_t rank = 0; rank < ranks && sim->error == 0; rank++) {
        ibshift_node_begin(sim, rank);
    }
    return sim->error;
}

static int run(struct ibshift_simulation *sim)
{
    while (sim->heap.count > 0 && sim->error == 0) {
        struct ibshift_event event = ibshift_heap_pop(&sim->heap);
        struct ibshift_node *node = &sim->nodes[event.rank];

        if (event.item != IBSHIFT_NO_MESSAGE && sim->messages[event.item].is_grant) {
            ibshift_grant_arrive(sim, event.rank, event.time, event.item);
        } else if (event.item != IBSHIFT_NO_MESSAGE) {
            if (!ibshift_node_arrive(sim, event.rank, event.time, event.item)) {
                continue;
            }
        } else {
            node->is_asleep = node->is_asleep && node->wake != event.time;
            node->clock = node->clock > event.time ? node->clock : event.time;
        }
        ibshift_node_advance(sim, event.rank);
    }
    return sim->error;
}

static int finish(struct ibshift_simulation *sim, struct ibshift_price *price)
{
    struct ibshift_price sum = {.messages = sim->message_total, .bytes = sim->byte_total};
    bool is_first = true;

    for (uint32_t rank = 0; rank < sim->request->plan->ranks; rank++) {
        struct ibshift_node *node = &sim->nodes[rank];

        ibshift_node_resume(sim, rank);
        ibshift_node_acknowledge(sim, rank, INFINITY);
        if (!ibshift_walk_is_done(&sim->walk)) {
            return -EDEADLK;
        }
        sum.most = node->sent > sum.most ? node->sent : sum.most;
        if (!node->was_busy) {
            continue;
        }
        sum.last = node->finish > sum.last ? node->finish : sum.last;
        sum.first = is_first || node->finish < sum.first ? node->finish : sum.first;
        is_first = false;
    }
    *price = sum;
    return sim->request->crowd != NULL ? ibshift_price_share(sim, price) : 0;
}

int ibshift_price(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    struct ibshift_simulation sim = {
        .request = request,
        .model = *request->model,
        .window = request->window > 0 && request->window < IBSHIFT_WINDOW_MAX ? request->window
                                                                              : IBSHIFT_WINDOW_MAX,
        .message_free = IBSHIFT_NO_MESSAGE,
    };
    int rc;

    if (is_too_large(request)) {
        return -E2BIG;
    }
    ibshift_sizes_begin(&sim.sizes, request->alg, request->plan, request->bytes,
                        request->element > 0 ? request->element : 1);
    sim.slots = slots_needed(request, sim.window);
    rc = begin(&sim);
    if (rc == 0) {
        rc = run(&sim);
    }
    if (rc == 0) {
        rc = finish(&sim, price);
    }
    free(sim.heap.events);
    free(sim.messages);
    free(sim.unacked);
    free(sim.posted);
    free(sim.nodes);
    return rc;
}

/* What a chain of messages takes at least, each of which waits for the one before (choose/price.h). */
#include <math.h>

#include "choose/price.h"
#include "plan/nodes.h"

enum {
    HOPS = 16,       /* of a chain, */
    ROUNDS_APART = 4 /* whose two ends are looked for in so many rounds around each other's */
};

bool ibshift_hop_is_near(const struct ibshift_price_request *request, uint32_t a, uint32_t b)
{
    return request->near != NULL &&
           ibshift_nodes_of(request->plan, a) == ibshift_nodes_of(request->plan, b);
}

double ibshift_hop_work(const struct ibshift_model *near, int kind, double bytes)
{
    bool is_long = near->at_once > 0 && bytes > near->at_once;
    double copied = is_long ? 0 : bytes * near->eager_byte;

    return kind == IBSHIFT_STEP_RECV
               ? near->recv_min + copied
               : near->send_min + copied + bytes * near->send_byte + (is_long ? near->granted : 0);
}

double ibshift_hop(const struct ibshift_price_request *request, bool is_near, double bytes)
{
    const struct ibshift_model *model = request->model, *near = request->near;

    if (is_near) {
        return near->latency + ibshift_hop_work(near, IBSHIFT_STEP_SEND, bytes) +
               ibshift_hop_work(near, IBSHIFT_STEP_RECV, bytes);
    }
    return model->latency + model->send_min + model->recv_min +
           bytes * (model->send_byte + model->gap_byte);
}

/* A message that is waited for, from its end back. */
struct link {
    uint32_t rank, round; /* whose step it is */
    struct ibshift_step step;
};

/* The last receive in the rounds before that one. */
static bool find_last(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, uint32_t rank, uint32_t before,
                      struct link *found)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];

    for (uint32_t i = 0; i < ROUNDS_APART && i < before; i++) {
        uint32_t round = before - 1 - i;

        for (uint32_t count = request->alg->emit(request->plan, rank, round, steps); count > 0;
             count--) {
            const struct ibshift_step *step = &steps[count - 1];

            if (step->kind == IBSHIFT_STEP_RECV &&
                (step->count == 0 || ibshift_sizes_step(sizes, rank, step) > 0)) {
                *found = (struct link){rank, round, *step};
                return true;
            }
        }
    }
    return false;
}

/* us of the sender's processor, or of its port, by which a message leaves after those of the round before it that could not go
 * earlier; a long one to the own node waits for its grant first, and may let this one by. */
static double in_line(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, uint32_t rank,
                      const struct ibshift_step *steps, uint32_t index)
{
    double work = 0, wire = 0;

    for (uint32_t i = 0; i < index; i++) {
        if (steps[i].kind == IBSHIFT_STEP_SEND && steps[i].need == steps[index].need) {
            double bytes = (double)ibshift_sizes_step(sizes, rank, &steps[i]);
            bool near = ibshift_hop_is_near(request, rank, steps[i].peer);
            bool is_asked = near && request->near->at_once > 0 && bytes > request->near->at_once;
            const struct ibshift_model *model = request->model;

            if (!is_asked && (bytes > 0 || steps[i].count == 0)) {
                work += near ? ibshift_hop_work(request->near, IBSHIFT_STEP_SEND, bytes)
                             : model->send_min + bytes * model->send_byte;
                wire += near ? 0 : bytes * model->gap_byte;
            }
        }
    }
    return ibshift_hop_is_near(request, rank, steps[index].peer) ? work : fmax(work, wire);
}

/* Its send, in the rounds around that of its receive; us that it waits in line there. */
static bool find_send(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, const struct link *recv,
                      struct link *found, double *waits)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t from = recv->step.peer, rounds = request->alg->rounds(request->plan, from);

    for (uint32_t i = 0; i < 2 * ROUNDS_APART; i++) { /* the same, the one before, behind, ... */
        uint32_t round = i % 2 == 0 ? recv->round + i / 2 : recv->round - (i + 1) / 2, count;

        count = round < rounds ? request->alg->emit(request->plan, from, round, steps) : 0;
        for (uint32_t at = 0; at < count; at++) {
            if (steps[at].kind == IBSHIFT_STEP_SEND && steps[at].peer == recv->rank &&
                ibshift_step_key(&steps[at]) == ibshift_step_key(&recv->step)) {
                *found = (struct link){from, round, steps[at]};
                *waits = in_line(request, sizes, from, steps, at);
                return true;
            }
        }
    }
    return false;
}

double ibshift_chain(const struct ibshift_price_request *request, const struct ibshift_sizes *sizes,
                     uint32_t rank)
{
    uint32_t before = request->alg->rounds(request->plan, rank);
    struct link recv, send;
    double sum = 0, waits;

    for (int i = 0; i < HOPS && find_last(request, sizes, rank, before, &recv); i++) {
        sum += ibshift_hop(request, ibshift_hop_is_near(request, recv.step.peer, rank),
                           (double)ibshift_sizes_step(sizes, rank, &recv.step));
        if (!find_send(request, sizes, &recv, &send, &waits)) {
            break;
        }
        sum += waits;
        rank = send.rank;
        before = send.step.need;
    }
    return sum;
}

uint32_t ibshift_chain_end(const struct ibshift_plan *plan)
{
    uint32_t below = 1;

    while (2 * below <= plan->ranks) {
        below *= 2;
    }
    return (plan->root + below - 1) % plan->ranks;
}

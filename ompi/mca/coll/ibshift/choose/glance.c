#include "choose/glance.h"

#include <errno.h>
#include <math.h>

#include "choose/size.h"

enum {
    ROUNDS = 16,     /* of a rank that are looked at */
    CHAIN = 4,       /* the shortest in which ranks that pass on wait for each other */
    SEGMENTS = 2048, /* of a chain that are looked at: CHAIN times as many messages */
};

/* Pieces of a vector are alike and none is empty: who has which of few bytes depends on the number of
 * ranks. */
static uint64_t filled(const struct ibshift_price_request *request, uint64_t bytes)
{
    uint64_t pieces = ibshift_alg_pieces(request->alg, request->plan);
    uint64_t each = bytes / pieces + (bytes % pieces != 0);

    return !ibshift_collective_has_vector(request->alg->collective) || bytes == 0 ? bytes
           : each > UINT64_MAX / pieces                                           ? bytes
                                                                                  : each * pieces;
}

/* The request among fewer ranks, in fewer segments of the same size, into fewer and its plan. 0 or
 * -ENOTSUP. */
static int take_fewer(const struct ibshift_price_request *request, uint32_t ranks,
                      uint32_t segments, struct ibshift_plan *plan,
                      struct ibshift_price_request *fewer)
{
    char why[128];
    double share;

    *plan = *request->plan;
    plan->ranks = ranks;
    plan->segments = segments;
    plan->root = request->plan->root % ranks;
    plan->order = NULL;
    if (ibshift_alg_check(request->alg, plan, why, sizeof(why)) != 0) {
        return -ENOTSUP;
    }
    *fewer = *request;
    fewer->plan = plan;
    share = (double)ibshift_alg_pieces(request->alg, plan) /
            ibshift_alg_pieces(request->alg, request->plan);
    fewer->bytes = (uint64_t)ceil(share * (double)request->bytes);
    fewer->bytes = filled(fewer, fewer->bytes);
    return 0;
}

/* With as much for each piece of a vector, to the end. */
static int price_fewer(const struct ibshift_price_request *request, uint32_t ranks,
                       uint32_t segments, struct ibshift_price *price)
{
    struct ibshift_price_request fewer;
    struct ibshift_plan plan;
    int rc = take_fewer(request, ranks, segments, &plan, &fewer);

    fewer.limit = 0;
    return rc == 0 ? ibshift_price(&fewer, price) : rc;
}

/* us of a rank's port, processor and waits. */
struct load {
    double out, in, local, waits;
};

static void add_round(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, uint32_t rank, uint32_t round,
                      struct load *load)
{
    const struct ibshift_model *model = request->model;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = request->alg->emit(request->plan, rank, round, steps);
    bool waits = false;

    for (uint32_t i = 0; i < count; i++) {
        double bytes = (double)ibshift_sizes_step(sizes, rank, &steps[i]);

        if (bytes == 0 && steps[i].count > 0) {
            continue;
        }
        if (steps[i].kind == IBSHIFT_STEP_SEND) {
            load->out += model->gap + bytes * (model->gap_byte + model->send_byte);
            waits = waits || (round > 0 && steps[i].need == round);
        } else if (steps[i].kind == IBSHIFT_STEP_RECV) {
            load->in += model->gap + bytes * model->gap_byte;
        } else {
            load->local += bytes * (steps[i].kind == IBSHIFT_STEP_COPY ? model->copy_byte
                                                                       : model->reduce_byte);
        }
    }
    load->waits += waits ? model->latency + model->gap : 0;
}

/* Of many rounds one of each of ROUNDS parts, not at equal distances: rounds of a ring come in twos. */
static double load_of(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, uint32_t rank)
{
    uint32_t rounds = request->alg->rounds(request->plan, rank);
    uint32_t parts = rounds < ROUNDS ? rounds : ROUNDS;
    struct load load = {.out = 0};

    for (uint32_t i = 0; i < parts; i++) {
        uint32_t first = (uint32_t)((uint64_t)i * rounds / parts);
        uint32_t end = (uint32_t)((uint64_t)(i + 1) * rounds / parts);

        add_round(request, sizes, rank, first + i * UINT32_C(7919) % (end - first), &load);
    }
    return parts == 0 ? 0 : (fmax(load.out, load.in) + load.local + load.waits) * rounds / parts;
}

/* What the busiest of three ranks has to do: the root, the last before it, and one between. */
static double busiest(const struct ibshift_price_request *request)
{
    uint32_t ranks = request->plan->ranks, root = request->plan->root;
    const uint32_t seen[] = {root, (root + ranks - 1) % ranks, (root + ranks / 2) % ranks};
    struct ibshift_sizes sizes;
    double most = 0;

    ibshift_sizes_begin(&sizes, request->alg, request->plan, filled(request, request->bytes),
                        request->element > 0 ? request->element : 1);
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        most = fmax(most, load_of(request, &sizes, seen[i]));
    }
    return most;
}

/* times: the whole over the few. */
static void scale(struct ibshift_price *price, double times, double ranks)
{
    price->last *= times;
    price->hops = (uint32_t)((double)price->hops * times);
    price->messages = (uint64_t)((double)price->messages * ranks);
}

/* Each rank more than few, which are CHAIN or more, and each segment adds as much as the last. */
static int price_chain(const struct ibshift_price_request *request, uint32_t few,
                       struct ibshift_price *price)
{
    const struct ibshift_plan *plan = request->plan;
    uint32_t segments = plan->segments < SEGMENTS ? plan->segments : SEGMENTS;
    struct ibshift_price before = {.last = 0};
    double last;
    int rc = price_fewer(request, few, segments, price);

    if (rc != 0) {
        return rc;
    }
    last = price->last;
    if (few < plan->ranks) {
        rc = price_fewer(request, few - 1, segments, &before);
        last += (price->last - before.last) * (plan->ranks - few);
    }
    if (rc == 0 && segments < plan->segments) {
        rc = price_fewer(request, few, segments / 2, &before);
        last +=
            (price->last - before.last) * (plan->segments - segments) / (segments - segments / 2);
    }
    if (rc == 0) {
        scale(price, last / price->last,
              (plan->ranks - 1.0) / (few - 1.0) * ((double)plan->segments / segments));
    }
    return rc;
}

int ibshift_glance(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    const struct ibshift_alg *alg = request->alg;
    uint32_t ranks = request->plan->ranks;
    struct ibshift_price_request fewer;
    struct ibshift_plan plan = *request->plan;
    int rc;

    if (!ibshift_plan_exceeds(alg, &plan, request->limit)) {
        return ibshift_price(request, price);
    }
    if ((alg->flags & IBSHIFT_ALG_NODES) != 0) {
        return -E2BIG;
    }
    while (plan.ranks > 4 && ibshift_plan_exceeds(alg, &plan, request->limit)) {
        plan.ranks /= 2;
    }
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0) {
        return price_chain(request, plan.ranks < CHAIN && ranks > CHAIN ? CHAIN : plan.ranks,
                           price);
    }
    rc = take_fewer(request, plan.ranks, plan.segments, &plan, &fewer);
    fewer.limit = 0;
    rc = rc == 0 ? ibshift_price(&fewer, price) : rc;
    if (rc == 0) {
        scale(price, fmax(1, busiest(request) / busiest(&fewer)), (double)ranks / plan.ranks);
    }
    return rc;
}

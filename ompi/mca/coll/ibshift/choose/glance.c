#include "choose/glance.h"

#include <errno.h>
#include <math.h>

#include "choose/fewer.h"
#include "choose/size.h"
#include "plan/nodes.h"

enum {
    ROUNDS = 16,         /* of a rank that are looked at */
    FEW_HOSTS = 4,       /* of several ranks each, that stand for all */
    CHAIN = 4,           /* the shortest in which ranks that pass on wait for each other */
    SEGMENTS = 16,       /* that are looked at: each further one adds as much as the last; */
    SEGMENTS_HOSTS = 32, /* and of few hosts of several ranks, that stand for all */
};

/* Hosts, or ranks with one each. */
static uint32_t units_of(const struct ibshift_price_request *request)
{
    return ibshift_fewer_has_hosts(request) ? request->plan->nodes->nodes : request->plan->ranks;
}

static uint32_t segments_of(const struct ibshift_price_request *request, uint32_t most)
{
    return request->plan->segments < most ? request->plan->segments : most;
}

/* To the end. */
static int price_fewer(const struct ibshift_price_request *request, uint32_t units, bool lacks_one,
                       uint32_t segments, struct ibshift_price *price)
{
    struct ibshift_fewer fewer;
    int rc = ibshift_fewer_units(request, units, lacks_one, segments, &fewer);

    if (rc == 0) {
        rc = ibshift_price(&fewer.request, price);
        ibshift_fewer_free(&fewer);
    }
    return rc;
}

/* us of a rank's port, processor, and of the processor for what goes to ranks of its node; and what its rounds wait for others. */
struct load {
    double out, in, local, near, waits;
};

/* us until a message is there that its rank waits for: where ranks share nodes, the messages before it may all have been near. */
static double coming(const struct ibshift_price_request *request, bool is_near, double bytes)
{
    if (is_near || (request->near != NULL && request->plan->nodes->most > 1)) {
        return request->near->latency;
    }
    return ibshift_hop(request, false, bytes);
}

static void add_round(const struct ibshift_price_request *request,
                      const struct ibshift_sizes *sizes, uint32_t rank, uint32_t round,
                      struct load *load)
{
    const struct ibshift_model *model = request->model;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = request->alg->emit(request->plan, rank, round, steps);
    bool waits = round == 0;
    double last = 0;

    for (uint32_t i = 0; i < count; i++) {
        double bytes = (double)ibshift_sizes_step(sizes, rank, &steps[i]);
        bool is_message = steps[i].kind <= IBSHIFT_STEP_SEND;
        bool near = is_message && ibshift_hop_is_near(request, rank, steps[i].peer);

        if (bytes == 0 && steps[i].count > 0) {
            continue;
        }
        waits = waits || (steps[i].kind == IBSHIFT_STEP_SEND && steps[i].need == round);
        if (steps[i].kind == IBSHIFT_STEP_RECV) {
            last = fmax(last, coming(request, near, bytes));
        }
        if (near) {
            load->near += ibshift_hop_work(request->near, steps[i].kind, bytes);
        } else if (steps[i].kind == IBSHIFT_STEP_SEND) {
            load->out += model->gap + bytes * model->gap_byte;
            load->local += model->send_min + bytes * model->send_byte;
        } else if (steps[i].kind == IBSHIFT_STEP_RECV) {
            load->in += model->gap + bytes * model->gap_byte;
            load->local += model->recv_min;
        } else {
            load->local += bytes * (steps[i].kind == IBSHIFT_STEP_COPY ? model->copy_byte
                                                                       : model->reduce_byte);
        }
    }
    load->waits += waits ? last : 0;
}

/* Of many rounds one of each of ROUNDS parts, not at equal distances: rounds of a ring come in twos. */
static struct load load_of(const struct ibshift_price_request *request,
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
    if (parts > 0) {
        double times = (double)rounds / parts;

        load = (struct load){load.out * times, load.in * times, load.local * times,
                             load.near * times, load.waits * times};
    }
    return load;
}

/* What a host has to do: its busiest rank, or the port that its ranks share. */
static double load_of_host(const struct ibshift_price_request *request,
                           const struct ibshift_sizes *sizes, uint32_t rank)
{
    const struct ibshift_plan *plan = request->plan;
    uint32_t node = ibshift_nodes_of(plan, rank);
    uint32_t count = ibshift_fewer_has_hosts(request) ? ibshift_nodes_size(plan, node) : 1;
    struct load sum = {.out = 0};
    double most = 0;

    for (uint32_t place = 0; place < count; place++) {
        struct load one =
            load_of(request, sizes, count > 1 ? ibshift_nodes_rank(plan, node, place) : rank);

        most = fmax(most, fmax(one.out, one.in) + one.local + one.near + one.waits);
        sum.out += one.out;
        sum.in += one.in;
        sum.local += one.local + one.near;
    }
    if (count > 1) {
        const struct ibshift_crowd *crowd = request->crowd;
        double ports = fmax(1, (double)crowd->ports / crowd->hosts);
        double processors = crowd->processors[crowd->host_of[rank]];

        most = fmax(most, fmax(sum.out, sum.in) / ports);
        most = count > processors ? fmax(most, sum.local / processors) : most;
    }
    return most;
}

/* What the busiest of four hosts, or ranks, has to do: the root's, the last before it, one between, and the fullest. */
static double busiest(const struct ibshift_price_request *request)
{
    uint32_t ranks = request->plan->ranks, root = request->plan->root;
    const uint32_t seen[] = {
        root, (root + ranks - 1) % ranks, (root + ranks / 2) % ranks,
        ibshift_nodes_rank(request->plan, ibshift_nodes_fullest(request->plan), 0)};
    struct ibshift_sizes sizes;
    double most = 0;

    ibshift_sizes_begin(&sizes, request->alg, request->plan,
                        ibshift_fewer_filled(request, request->bytes),
                        request->element > 0 ? request->element : 1);
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        most = fmax(most, load_of_host(request, &sizes, seen[i]));
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

/* Each unit more than few, which are CHAIN or more, and each segment adds as much as the last; of trees each doubling does. */
static int price_chain(const struct ibshift_price_request *request, uint32_t few, uint32_t segments,
                       struct ibshift_price *price)
{
    const struct ibshift_plan *plan = request->plan;
    uint32_t units = units_of(request);
    struct ibshift_price before = {.last = 0};
    double last;
    int rc = price_fewer(request, few, false, segments, price);

    if (rc != 0) {
        return rc;
    }
    last = price->last;
    if (few < units) {
        bool is_deep = (request->alg->flags & IBSHIFT_ALG_DEEP) != 0;

        rc = price_fewer(request, is_deep ? few / 2 : few, !is_deep, segments, &before);
        last += fmax(price->last - before.last, 0) *
                (is_deep ? log2((double)units / few) : (double)(units - few));
    }
    if (rc == 0 && segments < plan->segments) {
        rc = price_fewer(request, few, false, segments / 2, &before);
        last +=
            (price->last - before.last) * (plan->segments - segments) / (segments - segments / 2);
    }
    if (rc == 0) {
        scale(price, last / price->last,
              (units - 1.0) / (few - 1.0) * ((double)plan->segments / segments));
    }
    return rc;
}

/* Whether it does, or cannot be done with so many: 0 or 1; or -ENOMEM. */
static int exceeds(const struct ibshift_price_request *request, uint32_t units)
{
    struct ibshift_fewer fewer;
    int rc = ibshift_fewer_units(request, units, false, request->plan->segments, &fewer);

    if (rc == 0) {
        rc = ibshift_plan_exceeds(request->alg, &fewer.plan, request->limit);
        ibshift_fewer_free(&fewer);
    }
    return rc == -ENOTSUP ? 1 : rc;
}

/* The most by halves that are not too many; of hosts FEW_HOSTS or more, and the smallest are looked at first. 0 or -ENOMEM. */
static int few_units(const struct ibshift_price_request *request, uint32_t *few)
{
    uint32_t units = units_of(request);

    if (!ibshift_fewer_has_hosts(request)) {
        struct ibshift_plan plan = *request->plan;

        while (plan.ranks > 4 && ibshift_plan_exceeds(request->alg, &plan, request->limit)) {
            plan.ranks /= 2;
        }
        *few = plan.ranks;
        return 0;
    }
    *few = units;
    for (int halves = 31; halves > 0 && *few == units; halves--) {
        int rc = units >> halves < FEW_HOSTS ? 0 : exceeds(request, units >> (halves - 1));

        if (rc < 0) {
            return rc;
        }
        *few = units >> (rc > 0 ? halves : 0);
    }
    return 0;
}

/* Pieces of a vector are alike, and none is empty. */
static uint64_t even(const struct ibshift_price_request *request)
{
    uint64_t pieces = ibshift_collective_has_vector(request->alg->collective)
                          ? ibshift_alg_pieces(request->alg, request->plan)
                          : 1;

    return request->bytes > 0 && request->bytes < pieces ? pieces
                                                         : request->bytes - request->bytes % pieces;
}

double ibshift_bound(const struct ibshift_price_request *request)
{
    uint32_t ranks = request->plan->ranks, root = request->plan->root;
    uint32_t end = ibshift_chain_end(request->plan);
    const uint32_t seen[] = {root, (root + ranks - 1) % ranks};
    struct ibshift_sizes sizes;
    double most;

    if ((request->alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        return 0; /* its messages are fewer than its sends */
    }
    ibshift_sizes_begin(&sizes, request->alg, request->plan, even(request),
                        request->element > 0 ? request->element : 1);
    most = end == seen[0] || end == seen[1] ? 0 : ibshift_chain(request, &sizes, end);
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        struct load load = load_of(request, &sizes, seen[i]);

        most = fmax(most, fmax(fmax(load.out, load.in), fmax(load.local + load.near, load.waits)));
        most = fmax(most, ibshift_chain(request, &sizes, seen[i]));
    }
    return most;
}

/* From so few ranks or hosts that the plan is within the limit, and what the busiest have to do among all. */
static int sketch(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    const struct ibshift_alg *alg = request->alg;
    uint32_t units = units_of(request), segments = request->plan->segments, few;
    bool is_by_node = (alg->flags & IBSHIFT_ALG_NODES) != 0;
    bool has_hosts = ibshift_fewer_has_hosts(request);
    struct ibshift_fewer fewer;
    int rc;

    if (is_by_node && !has_hosts) {
        return -E2BIG;
    }
    rc = few_units(request, &few);
    if (rc != 0) {
        return rc;
    }
    if ((alg->flags & IBSHIFT_ALG_SEGMENTS) != 0 && !is_by_node) {
        return price_chain(request, few < CHAIN && units > CHAIN ? CHAIN : few,
                           segments_of(request, has_hosts ? SEGMENTS_HOSTS : SEGMENTS), price);
    }
    segments = is_by_node ? segments_of(request, SEGMENTS_HOSTS) : segments;
    rc = ibshift_fewer_units(request, few, false, segments, &fewer);
    if (rc != 0) {
        return rc;
    }
    rc = ibshift_price(&fewer.request, price);
    if (rc == 0) {
        scale(price, fmax(1, busiest(request) / busiest(&fewer.request)),
              (double)units / few *
                  (segments > 0 ? (double)request->plan->segments / segments : 1));
    }
    ibshift_fewer_free(&fewer);
    return rc;
}

/* What a doubling of the ranks adds grows on as it did over the last two within the limit, from not at all (logarithmic) to
 * twofold (linear). */
static int extrapolate(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    struct ibshift_price fewer[3]; /* of a quarter, half and all of `ranks` */
    struct ibshift_plan half = *request->plan;
    uint32_t ranks = half.ranks, doublings = 0;
    double growth, added;

    do {
        half.ranks = ranks /= 2;
        doublings++;
    } while (ibshift_plan_exceeds(request->alg, &half, request->limit));
    if (ranks < 4 || (request->alg->flags & (IBSHIFT_ALG_NODES | IBSHIFT_ALG_SPLIT)) != 0) {
        return -E2BIG;
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct ibshift_fewer few;
        int rc = ibshift_fewer_ranks(request, ranks >> (2 - i), &few);

        rc = rc == 0 ? ibshift_price(&few.request, &fewer[i]) : rc;
        if (rc != 0) {
            return rc;
        }
    }
    *price = fewer[2];
    added = fewer[2].last - fewer[1].last;
    growth = fmin(fmax(added / (fewer[1].last - fewer[0].last), 1), 2);
    for (uint32_t i = 0; i < doublings; i++) {
        added *= growth;
        price->last += added;
        price->messages *= 2;
        price->hops += fewer[2].hops - fewer[1].hops;
    }
    return 0;
}

static int look(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    bool is_sketched = request->limit < IBSHIFT_CHOOSE_LIMIT || request->plan->segments > 1;
    struct ibshift_plan first = *request->plan; /* segments */
    int rc;

    first.segments = segments_of(request, SEGMENTS);
    if (first.segments < request->plan->segments && first.ranks > 1) {
        if (!ibshift_plan_exceeds(request->alg, &first, request->limit)) {
            return price_chain(request, units_of(request), SEGMENTS, price);
        }
    }
    if (is_sketched && ibshift_plan_exceeds(request->alg, request->plan, request->limit)) {
        return sketch(request, price);
    }
    rc = ibshift_price(request, price);
    return rc == -E2BIG ? extrapolate(request, price) : rc;
}

int ibshift_glance(const struct ibshift_price_request *request, struct ibshift_price *price)
{
    struct ibshift_price_request closer = *request;
    int rc;

    if ((request->alg->flags & IBSHIFT_ALG_MULTICAST) != 0) {
        closer.limit = IBSHIFT_CHOOSE_LIMIT;
        return ibshift_price(&closer, price);
    }
    rc = look(request, price);

    if (rc == 0 || rc == -ERANGE || rc == -ENOMEM || request->limit >= IBSHIFT_CHOOSE_LIMIT) {
        return rc;
    }
    closer.limit = IBSHIFT_CHOOSE_LIMIT;
    return look(&closer, price);
}

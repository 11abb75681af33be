#include "plan/relay.h"

/* One of the two rows, as the rank takes part in it. */
struct inner {
    const struct ibshift_alg *alg;
    struct ibshift_plan plan;
    uint32_t scale; /* blocks of ours that one of its blocks is */
    uint32_t tmp;   /* its first block of TMP */
    enum ibshift_relay_place place[IBSHIFT_TMP];
    int turn; /* 0 or 1 */
};

static bool is_vector(enum ibshift_collective collective)
{
    return collective == IBSHIFT_BCAST || collective == IBSHIFT_REDUCE ||
           collective == IBSHIFT_ALLREDUCE;
}

/* Blocks of TMP between the rows. */
static uint32_t held(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                     uint32_t rank)
{
    if (relay->recv[0] == IBSHIFT_RELAY_ALL) {
        return rank == plan->root ? plan->ranks : 0;
    }
    return relay->recv[0] == IBSHIFT_RELAY_RESULT && rank != plan->root;
}

static uint32_t tmp_of(const struct inner *inner, uint32_t rank)
{
    return inner->alg->tmp != NULL ? inner->alg->tmp(&inner->plan, rank) * inner->scale : 0;
}

static struct inner inner_of(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                             uint32_t rank, int turn)
{
    const struct ibshift_alg *alg = relay->alg[turn];
    uint32_t radix = relay->radix[turn] > 0 ? relay->radix[turn] : plan->radix;
    struct inner inner = {.alg = alg,
                          .plan = {.ranks = plan->ranks,
                                   .root = plan->root,
                                   .radix = radix < alg->radix_max ? radix : alg->radix_max,
                                   .segments = 1,
                                   .commutative = plan->commutative},
                          .scale = is_vector(alg->collective) ? plan->ranks : 1,
                          .place = {relay->send[turn], relay->recv[turn]},
                          .turn = turn};

    if (turn == 0) {
        inner.tmp = held(relay, plan, rank);
    } else {
        struct inner first = inner_of(relay, plan, rank, 0);

        inner.tmp = first.tmp + tmp_of(&first, rank);
    }
    return inner;
}

uint32_t ibshift_relay_rounds(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                              uint32_t rank)
{
    struct inner first = inner_of(relay, plan, rank, 0), second = inner_of(relay, plan, rank, 1);

    return first.alg->rounds(&first.plan, rank) + second.alg->rounds(&second.plan, rank);
}

/* Where an inner block lies. */
static enum ibshift_buffer place(const struct inner *inner, uint32_t rank, uint8_t buf,
                                 uint32_t *first)
{
    bool is_root = rank == inner->plan.root;

    *first *= inner->scale;
    if (buf == IBSHIFT_TMP) {
        *first += inner->tmp;
        return IBSHIFT_TMP;
    }
    switch (inner->place[buf]) {
    case IBSHIFT_RELAY_SEND:
        return IBSHIFT_SEND;
    case IBSHIFT_RELAY_OWN:
        *first += rank;
        return IBSHIFT_RECV;
    case IBSHIFT_RELAY_RESULT:
        *first += is_root ? rank : 0;
        return is_root ? IBSHIFT_RECV : IBSHIFT_TMP;
    case IBSHIFT_RELAY_ALL:
        return IBSHIFT_TMP;
    default:
        return IBSHIFT_RECV;
    }
}

/* The root has it already. */
static bool is_left_out(const struct ibshift_relay *relay, const struct inner *inner, uint32_t rank,
                        const struct ibshift_step *step)
{
    uint32_t root = inner->plan.root;

    if (!relay->root_has_all || inner->turn == 0) {
        return false;
    }
    if (step->kind == IBSHIFT_STEP_SEND) {
        return relay->is_direct && step->peer == root;
    }
    return rank == root &&
           (step->buf == IBSHIFT_RECV || (relay->is_direct && step->kind == IBSHIFT_STEP_RECV));
}

/* No inner plan has more tags: rounds of a ring are its ranks, of a reduction twice as many. */
static uint32_t tags_of_row(const struct ibshift_plan *plan)
{
    return 2 * plan->ranks + 2;
}

/* before: rounds of the first row, for a step of the second. False: there is nothing left of it. */
static bool translate(const struct inner *inner, uint32_t rank, uint32_t before,
                      struct ibshift_step *step)
{
    bool is_local = ibshift_step_is_local(step);

    step->buf = (uint8_t)place(inner, rank, step->buf, &step->first);
    step->count *= inner->scale;
    if (is_local) {
        step->src = (uint8_t)place(inner, rank, step->src, &step->from);
        step->run *= inner->scale;
        step->stride *= (int32_t)inner->scale;
    } else {
        step->tag += inner->turn == 0 ? 0 : tags_of_row(&inner->plan);
    }
    step->need += before;
    step->drain += step->drain > 0 || step->kind != IBSHIFT_STEP_SEND ? before : 0;
    return step->kind != IBSHIFT_STEP_COPY || step->strided != IBSHIFT_CONTIGUOUS ||
           step->buf != step->src || step->first != step->from;
}

uint32_t ibshift_relay_emit(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                            uint32_t rank, uint32_t round, struct ibshift_step *out)
{
    struct inner inner = inner_of(relay, plan, rank, 0);
    uint32_t before = inner.alg->rounds(&inner.plan, rank), count, kept = 0;

    if (round < before) {
        before = 0;
    } else {
        inner = inner_of(relay, plan, rank, 1);
    }
    count = inner.alg->emit(&inner.plan, rank, round - before, out);
    for (uint32_t i = 0; i < count; i++) {
        struct ibshift_step step = out[i];

        if (!is_left_out(relay, &inner, rank, &step) && translate(&inner, rank, before, &step)) {
            out[kept++] = step;
        }
    }
    return kept;
}

uint32_t ibshift_relay_tmp(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                           uint32_t rank)
{
    struct inner second = inner_of(relay, plan, rank, 1);

    return second.tmp + tmp_of(&second, rank);
}

/* Of the inner row's block; each block of a vector stands for all of ours. */
static uint32_t inner_block(const struct inner *inner, uint32_t rank, uint32_t slot)
{
    uint32_t own = slot / inner->scale;

    if (inner->scale > 1) {
        return slot % inner->scale;
    }
    return inner->alg->tmp_block != NULL ? inner->alg->tmp_block(&inner->plan, rank, own)
                                         : own % inner->plan.ranks;
}

uint32_t ibshift_relay_tmp_block(const struct ibshift_relay *relay, const struct ibshift_plan *plan,
                                 uint32_t rank, uint32_t slot)
{
    struct inner first = inner_of(relay, plan, rank, 0), second = inner_of(relay, plan, rank, 1);

    if (slot < first.tmp) {
        return relay->recv[0] == IBSHIFT_RELAY_ALL ? slot : rank;
    }
    return slot < second.tmp ? inner_block(&first, rank, slot - first.tmp)
                             : inner_block(&second, rank, slot - second.tmp);
}

uint32_t ibshift_relay_pieces(const struct ibshift_plan *plan)
{
    return plan->ranks;
}

/* The checker can fail: each mutant is a good plan with one mistake, and must be caught for the
 * right reason. */
#include "mutant.h"

static uint32_t wrong_peer(struct round *r)
{
    if (is_at(r, 2, 1)) {
        send_of(r)->peer = (send_of(r)->peer + 1) % r->plan->ranks;
    }
    return r->count;
}

static uint32_t wrong_block(struct round *r)
{
    recv_of(r)->first ^= is_at(r, 1, 2);
    return r->count;
}

static uint32_t sent_too_early(struct round *r)
{
    send_of(r)->need -= is_at(r, 3, 2);
    return r->count;
}

static uint32_t wrong_tag(struct round *r)
{
    send_of(r)->tag += is_at(r, 3, 2);
    return r->count;
}

static uint32_t sends_one_more(struct round *r)
{
    if (r->round + 2 == r->rounds) {
        send_of(r)->count++;
        recv_of(r)->count++;
    }
    return r->count;
}

static uint32_t rotates_wrongly(struct round *r)
{
    if (r->rank == 2 && r->round + 1 == r->rounds) {
        r->steps[0].from--;
    }
    return r->count;
}

static uint32_t wrong_stride(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].strided == IBSHIFT_STRIDED_SOURCE && r->steps[i].run == 2) {
            r->steps[i].stride--;
        }
    }
    return r->count;
}

static uint32_t no_drain(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        r->steps[i].drain = 0;
    }
    return r->count;
}

static uint32_t sends_what_it_gets(struct round *r)
{
    if (is_at(r, 2, 3)) {
        send_of(r)->first = recv_of(r)->first;
    }
    return r->count;
}

static uint32_t one_short(struct round *r)
{
    send_of(r)->count -= is_at(r, 0, 0);
    return r->count;
}

static uint32_t forwards_at_once(struct round *r)
{
    if (r->round > 0) {
        send_of(r)->need = 0;
    }
    return r->count;
}

static uint32_t swaps_receives(struct round *r)
{
    if (is_at(r, 0, 1)) {
        uint32_t first = r->steps[0].first;

        r->steps[0].first = r->steps[1].first;
        r->steps[1].first = first;
    }
    return r->count;
}

static uint32_t drops_send(struct round *r)
{
    return is_at(r, 0, 1) ? drop(r, send_of(r)) : r->count;
}

static uint32_t drops_receive(struct round *r)
{
    return is_at(r, 1, 0) ? drop(r, recv_of(r)) : r->count;
}

static uint32_t wrong_side(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_REDUCE_AFTER) {
            r->steps[i].kind = IBSHIFT_STEP_REDUCE;
        }
    }
    return r->count;
}

static uint32_t other_side(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_REDUCE) {
            r->steps[i].kind = IBSHIFT_STEP_REDUCE_AFTER;
        }
    }
    return r->count;
}

static uint32_t folds_twice(struct round *r)
{
    const struct ibshift_step *reduce = nth(r, IBSHIFT_STEP_REDUCE, 0);

    if (r->rank == 1 && reduce->count > 0) {
        r->steps[r->count] = *reduce;
        return r->count + 1;
    }
    return r->count;
}

static uint32_t folds_never(struct round *r)
{
    const struct ibshift_step *reduce = nth(r, IBSHIFT_STEP_REDUCE, 0);

    return r->rank == 1 && reduce->count > 0 ? drop(r, reduce) : r->count;
}

static uint32_t forgets_itself(struct round *r)
{
    const struct ibshift_step *copy = nth(r, IBSHIFT_STEP_COPY, 0);

    return r->rank == 2 && copy->count > 0 ? drop(r, copy) : r->count;
}

static uint32_t crosses_names(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->rank == 0 && r->round == 2 && r->steps[i].kind == IBSHIFT_STEP_SEND) {
            r->steps[i].part ^= 1;
        }
    }
    return r->count;
}

/* Farthest partner first, while receives still come nearest first. */
static uint32_t sends_backwards(struct round *r)
{
    uint32_t distance = r->plan->ranks - r->round;

    if (r->round > 0) {
        struct ibshift_step *send = send_of(r);

        send->peer = send->first = (r->rank + distance) % r->plan->ranks;
        send->tag = distance - 1;
    }
    return r->count;
}

static uint32_t waits_for_itself(struct round *r)
{
    send_of(r)->need += is_at(r, 1, 1);
    return r->count;
}

static uint32_t writes_to_send(struct round *r)
{
    if (is_at(r, 1, 1)) {
        recv_of(r)->buf = IBSHIFT_SEND;
        recv_of(r)->first = 0;
    }
    return r->count;
}

static uint32_t talks_to_itself(struct round *r)
{
    if (is_at(r, 1, 1)) {
        send_of(r)->peer = 1;
    }
    return r->count;
}

static uint32_t beyond_the_end(struct round *r)
{
    if (is_at(r, 2, 1)) {
        recv_of(r)->first = r->plan->ranks;
    }
    return r->count;
}

static uint32_t one_slot_for_all(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_RECV && r->steps[i].buf == IBSHIFT_TMP) {
            r->steps[i].first = 0;
        } else if (r->steps[i].kind == IBSHIFT_STEP_REDUCE && r->steps[i].src == IBSHIFT_TMP) {
            r->steps[i].from = 0;
        }
    }
    return r->count;
}

static uint32_t sends_own_result(struct round *r)
{
    if (r->rank == 2 && send_of(r)->count > 0) {
        send_of(r)->buf = IBSHIFT_RECV;
    }
    return r->count;
}

static uint32_t unused_result(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_REDUCE_AFTER && r->steps[i].count > 0 &&
            r->rank == 0) {
            r->steps[i + 1] = r->steps[i];
            return r->count + 1;
        }
    }
    return r->count;
}

static const struct mutant mutants[] = {
    {"last round missing", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, NULL, "holds nothing"},
    {"peer off by one", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, wrong_peer, "deadlock"},
    {"neighbour's block", IBSHIFT_ALLGATHER, "ring", 6, 1, 0, true, wrong_block,
     "overwrites RECV block 5"},
    {"sent before it came", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, sent_too_early,
     "reads RECV block 1, written in round 1, with need 1"},
    {"wrong tag", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, wrong_tag,
     "expects 1 blocks under tag 2.0 from rank 3, which sends 1 under 3.0"},
    {"waits for its own round", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, waits_for_itself,
     "waits for its own round"},
    {"receives into SEND", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, writes_to_send,
     "writes to SEND"},
    {"talks to itself", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, talks_to_itself,
     "has a peer that is not another rank"},
    {"beyond the buffer", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, beyond_the_end,
     "touches RECV block 5 of 5"},
    {"forgets its own block", IBSHIFT_ALLGATHER, "modified_ring", 5, 1, 0, true, forgets_itself,
     "holds nothing"},
    {"wrong last round size", IBSHIFT_ALLGATHER, "bruck", 7, 1, 0, true, sends_one_more,
     "touches TMP block 7 of 7"},
    {"rotation off by one", IBSHIFT_ALLGATHER, "bruck", 6, 2, 0, true, rotates_wrongly,
     "RECV block 3 holds block 0 of 1 rank(s) from 2"},
    {"parts cross", IBSHIFT_ALLGATHER, "dissemination", 7, 1, 0, true, crosses_names, "under 2.1"},
    {"half of a message", IBSHIFT_ALLGATHER, "recursive_doubling", 8, 1, 0, true, one_short,
     "expects 1 blocks"},
    {"packs with a wrong stride", IBSHIFT_ALLTOALL, "bruck", 8, 1, 0, true, wrong_stride,
     "holds block"},
    {"packs over what is being sent", IBSHIFT_ALLTOALL, "bruck", 8, 1, 0, true, no_drain,
     "overwrites TMP block 8, sent in round 1"},
    {"sends the wrong partner's block", IBSHIFT_ALLTOALL, "pairwise", 5, 1, 0, true,
     sends_what_it_gets, "RECV block 2 holds block 4"},
    {"orders that block each other", IBSHIFT_ALLTOALL, "linear", 5, 1, 0, true, sends_backwards,
     "deadlock with window 1"},
    {"subtree one short", IBSHIFT_SCATTER, "nway", 9, 2, 0, true, one_short, "expects 3 blocks"},
    {"forwards before it came", IBSHIFT_SCATTER, "nway", 9, 2, 3, true, forwards_at_once,
     "reads TMP block 1, written in round 0"},
    {"swapped subtrees", IBSHIFT_GATHER, "nway", 9, 2, 0, true, swaps_receives,
     "RECV block 1 holds block 0 of 1 rank(s) from 4"},
    {"child forgotten by its parent", IBSHIFT_BCAST, "knomial", 8, 1, 0, true, drops_send,
     "waits for a receive from rank 0"},
    {"child forgets its parent", IBSHIFT_BCAST, "linear", 4, 1, 0, true, drops_receive,
     "waits to send to rank 1"},
    {"passes a segment on too early", IBSHIFT_BCAST, "chain", 4, 1, 0, true, forwards_at_once,
     "reads RECV block 0"},
    {"wrong operand order", IBSHIFT_REDUCE, "knomial", 8, 1, 0, false, wrong_side,
     "reduces ranks 1..1 with ranks 0..0 in that order"},
    {"folds a slot twice", IBSHIFT_REDUCE, "knomial", 8, 1, 0, true, unused_result,
     "reduces what is not there"},
    {"one slot for all", IBSHIFT_REDUCE, "linear", 8, 1, 0, false, one_slot_for_all,
     "overwrites TMP block 0, written in round 1"},
    {"right operand from the left", IBSHIFT_SCAN, "linear", 4, 1, 0, false, other_side,
     "reduces ranks 1..1 with ranks 0..0"},
    {"result with its own vector", IBSHIFT_EXSCAN, "linear", 5, 1, 0, false, sends_own_result,
     "in that order"},
    {"overwrites what is being sent", IBSHIFT_ALLREDUCE, "recursive_doubling", 8, 1, 0, true,
     no_drain, "overwrites RECV block 0, sent in round 2"},
    {"overwrites a piece on its way", IBSHIFT_ALLREDUCE, "ring", 5, 1, 0, true, no_drain,
     "overwrites RECV block 4, sent in round 2"},
    {"operand counted twice", IBSHIFT_ALLREDUCE, "linear", 4, 1, 0, true, folds_twice,
     "of 7 rank(s)"},
    {"operand left out", IBSHIFT_REDUCE_SCATTER, "ring", 4, 1, 0, true, folds_never,
     "of 3 rank(s)"},
    {"partners' order reversed", IBSHIFT_ALLREDUCE, "rabenseifner", 8, 1, 0, false, other_side,
     "in that order"},
    {"leaves before all have come", IBSHIFT_BARRIER, "dissemination", 9, 1, 0, true, NULL,
     "may leave before rank 1"},
    {"tells what it does not know yet", IBSHIFT_BARRIER, "dissemination", 8, 1, 0, true,
     forwards_at_once, "may leave before"},
};

static void every_mutant_is_caught(void **state)
{
    expect_all_caught(mutants, sizeof(mutants) / sizeof(mutants[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mutant_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

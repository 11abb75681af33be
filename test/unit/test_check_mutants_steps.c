/* More mutants: blocks at a wrong place, slots used too early, steps that are malformed. */
#include "mutant.h"

/* Two pieces of one vector change places on the way, on one rank only: sizes and counts still fit.
 */
static uint32_t pieces_change_places(struct round *r)
{
    recv_of(r)->first ^= is_at(r, 1, 3);
    return r->count;
}

/* The result leaves before the last operand is in it. */
static uint32_t passes_on_unfolded(struct round *r)
{
    if (r->rank == 1 && r->round == 2) {
        send_of(r)->need = 1;
    }
    return r->count;
}

/* Receives into the slot from which it still folds. */
static uint32_t reuses_a_slot_early(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_RECV) {
            r->steps[i].need = 0;
        }
    }
    return r->count;
}

/* A barrier message that nobody awaits. */
static uint32_t one_signal_too_many(struct round *r)
{
    if (r->rank == 0 && r->round + 1 == r->rounds) {
        r->steps[r->count] = *send_of(r);
        r->steps[r->count].part = 1;
        return r->count + 1;
    }
    return r->count;
}

/* Both ends agree on a piece that the receiver has already. */
static uint32_t comes_twice(struct round *r)
{
    if (r->round == 2 && (r->rank == 0 || r->rank == 1)) {
        struct ibshift_step *step = r->rank == 0 ? send_of(r) : recv_of(r);

        step->first = 0;
        step->buf = IBSHIFT_RECV;
    }
    return r->count;
}

/* Reverses a run of blocks when it unpacks. */
static uint32_t reverses_too_much(struct round *r)
{
    if (r->rank == 3 && r->round + 1 == r->rounds) {
        r->steps[0].stride = 1;
        r->steps[0].first -= r->steps[0].count - 1;
    }
    return r->count;
}

/* Copies in the direction opposite to what was meant: scratch over what has come. */
static uint32_t copies_into_scratch(struct round *r)
{
    if (r->rank == 1 && r->round + 1 == r->rounds) {
        struct ibshift_step *copy = nth(r, IBSHIFT_STEP_COPY, 0);
        uint32_t first = copy->first;

        copy->buf = IBSHIFT_TMP;
        copy->src = IBSHIFT_RECV;
        copy->first = copy->from;
        copy->from = first;
    }
    return r->count;
}

/* The scatter's root keeps what belongs to another rank. */
static uint32_t keeps_another_block(struct round *r)
{
    if (r->rank == r->plan->root) {
        nth(r, IBSHIFT_STEP_COPY, 0)->from ^= 1;
    }
    return r->count;
}

static uint32_t unknown_kind(struct round *r)
{
    if (is_at(r, 2, 2)) {
        r->steps[0].kind = 7;
    }
    return r->count;
}

static uint32_t unknown_buffer(struct round *r)
{
    if (is_at(r, 2, 2)) {
        r->steps[0].buf = IBSHIFT_BUFFERS;
    }
    return r->count;
}

/* first + count passes 2^32. */
static uint32_t wraps_around(struct round *r)
{
    if (is_at(r, 2, 2)) {
        recv_of(r)->first = UINT32_MAX;
        recv_of(r)->count = 2;
    }
    return r->count;
}

static uint32_t strides_by_nothing(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].strided != IBSHIFT_CONTIGUOUS) {
            r->steps[i].run = 0;
        }
    }
    return r->count;
}

static const struct mutant mutants[] = {
    {"pieces change places", IBSHIFT_BCAST, "scatter_allgather", 8, 1, 0, true,
     pieces_change_places, "RECV block 7"},
    {"result leaves too early", IBSHIFT_SCAN, "linear", 4, 1, 0, false, passes_on_unfolded,
     "reads RECV block 0, written in round 1, with need 1"},
    {"slot reused too early", IBSHIFT_SCAN, "recursive_doubling", 8, 1, 0, false,
     reuses_a_slot_early, "overwrites TMP block 0, written in round 0, with need 0"},
    {"one signal too many", IBSHIFT_BARRIER, "dissemination", 8, 1, 0, true, one_signal_too_many,
     "waits to send to rank 4"},
    {"comes twice", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, comes_twice,
     "overwrites RECV block 0, written in round 0"},
    {"reverses too much", IBSHIFT_ALLTOALL, "bruck", 8, 1, 0, true, reverses_too_much,
     "RECV block 0 holds block 3 of 1 rank(s) from 5"},
    {"copies into scratch", IBSHIFT_ALLGATHER, "bruck", 8, 1, 0, true, copies_into_scratch,
     "overwrites TMP block 1, sent in round 2"},
    {"root keeps another block", IBSHIFT_SCATTER, "nway", 9, 2, 3, true, keeps_another_block,
     "RECV block 0 holds block 2 of 1 rank(s) from 3, should hold block 3"},
    {"unknown kind", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, unknown_kind, "is no step at all"},
    {"unknown buffer", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, unknown_buffer,
     "is no step at all"},
    {"range beyond 2^32", IBSHIFT_ALLGATHER, "ring", 5, 1, 0, true, wraps_around,
     "touches RECV block 4294967295 of 5"},
    {"stride of empty runs", IBSHIFT_ALLTOALL, "bruck", 8, 1, 0, true, strides_by_nothing,
     "has no runs"},
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

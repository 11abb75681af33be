/* The checker can fail: each mutant is a good plan with one mistake, and must be caught for the right reason. */
#include <errno.h>
#include <string.h>

#include "proof/check.h"
#include "unit.h"

enum { SEND = IBSHIFT_STEP_SEND, RECV = IBSHIFT_STEP_RECV, COPY = IBSHIFT_STEP_COPY };
enum { FOLD = IBSHIFT_STEP_REDUCE, FOLD_AFTER = IBSHIFT_STEP_REDUCE_AFTER, EVERY = 98, SENDS };

/* All ranks, or all rounds. */
#define ALL UINT32_MAX

enum field { KIND, BUF, PART, FIRST, COUNT, PEER, FROM, WITH, BESIDE, TAG, RUN, CAST, NEED, DRAIN };

static const struct {
    size_t at, size;
} fields[] = {
    [KIND] = {offsetof(struct ibshift_step, kind), 1},
    [BUF] = {offsetof(struct ibshift_step, buf), 1},
    [PART] = {offsetof(struct ibshift_step, part), 1},
    [FIRST] = {offsetof(struct ibshift_step, first), 4},
    [COUNT] = {offsetof(struct ibshift_step, count), 4},
    [PEER] = {offsetof(struct ibshift_step, peer), 4},
    [FROM] = {offsetof(struct ibshift_step, from), 4},
    [WITH] = {offsetof(struct ibshift_step, with), 1},
    [BESIDE] = {offsetof(struct ibshift_step, beside), 4},
    [TAG] = {offsetof(struct ibshift_step, tag), 4},
    [RUN] = {offsetof(struct ibshift_step, run), 4},
    [CAST] = {offsetof(struct ibshift_step, is_cast), 4},
    [NEED] = {offsetof(struct ibshift_step, need), 4},
    [DRAIN] = {offsetof(struct ibshift_step, drain), 4},
};

/* DROP: the step is missing. TWICE: it comes again at the round's end, the field changed by the value. */
enum how { NOT, ADD, XOR, SET, DROP, TWICE };

/* One round of one rank, to be spoilt. */
struct round {
    uint32_t ranks, rank, round, rounds, count;
    struct ibshift_step *steps;
};

/* A row without a name is more of the one before it. */
struct mutant {
    const char *name;
    enum ibshift_collective collective;
    const char *base;
    uint32_t ranks;
    const char *why; /* a part of what the checker must say */
    /* Of the first step of that kind in the round, or of every step or send. */
    uint32_t rank, round, kind;
    enum how how;
    enum field field;
    uint32_t value;
    void (*spoil)(struct round *r); /* where an edit cannot say it; may be NULL */
    uint32_t radix, root, rounds_cut;
    bool is_ordered; /* the operator is not commutative */
};

static void change(struct ibshift_step *step, enum how how, enum field field, uint32_t value)
{
    void *at = (char *)step + fields[field].at;
    uint32_t before = 0;

    memcpy(&before, at, fields[field].size); /* little endian, as net.h */
    before = how == SET ? value : how == XOR ? before ^ value : before + value;
    memcpy(at, &before, fields[field].size);
}

static void edit(struct round *r, const struct mutant *e)
{
    if (e->how == NOT || (e->rank != ALL && e->rank != r->rank) ||
        (e->round != ALL && e->round != r->round)) {
        return;
    }
    for (uint32_t i = 0, count = r->count; i < count; i++) {
        struct ibshift_step *step = &r->steps[i];

        if (e->kind != EVERY && step->kind != (e->kind == SENDS ? SEND : e->kind)) {
            continue;
        }
        if (e->how == DROP) {
            memmove(step, step + 1, (--r->count - i) * sizeof(*step));
        } else if (e->how == TWICE) {
            r->steps[r->count] = *step;
            change(&r->steps[r->count++], ADD, e->field, e->value);
        } else {
            change(step, e->how, e->field, e->value);
        }
        if (e->kind < EVERY) {
            return;
        }
    }
}

static void wrong_stride(struct round *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->steps[i].strided == IBSHIFT_STRIDED_SOURCE && r->steps[i].run == 2) {
            r->steps[i].stride--;
        }
    }
}

static void swaps_receives(struct round *r)
{
    if (r->rank == 0 && r->round == 1) {
        uint32_t first = r->steps[0].first;

        r->steps[0].first = r->steps[1].first;
        r->steps[1].first = first;
    }
}

/* Farthest partner first, while receives still come nearest first. */
static void sends_backwards(struct round *r)
{
    uint32_t distance = r->ranks - r->round;

    for (uint32_t i = 0; r->round > 0 && i < r->count; i++) {
        if (r->steps[i].kind == IBSHIFT_STEP_SEND) {
            r->steps[i].peer = r->steps[i].first = (r->rank + distance) % r->ranks;
            r->steps[i].tag = distance - 1;
        }
    }
}

/* Reverses a run of blocks when it unpacks. */
static void reverses_too_much(struct round *r)
{
    if (r->rank == 3 && r->round + 1 == r->rounds) {
        r->steps[0].stride = 1;
        r->steps[0].first -= r->steps[0].count - 1;
    }
}

/* Copies in the direction opposite to what was meant: scratch over what has come. */
static void copies_into_scratch(struct round *r)
{
    if (r->rank == 1 && r->round + 1 == r->rounds) {
        struct ibshift_step *copy = &r->steps[0];
        uint32_t first = copy->first;

        copy->buf = IBSHIFT_TMP;
        copy->src = IBSHIFT_RECV;
        copy->first = copy->from;
        copy->from = first;
    }
}

static const struct mutant mutants[] = {
    {"last round missing", IBSHIFT_ALLGATHER, "ring", 5, "holds nothing", .rounds_cut = 1},
    {"peer off by one", IBSHIFT_ALLGATHER, "ring", 5, "deadlock", 2, 1, SEND, ADD, PEER, 1},
    {"neighbour's block", IBSHIFT_ALLGATHER, "ring", 6, "overwrites RECV block 5", 1, 2, RECV, XOR,
     FIRST, 1},
    {"sent before it came", IBSHIFT_ALLGATHER, "ring", 5,
     "reads RECV block 1, written in round 1, with need 1", 3, 2, SEND, ADD, NEED, -1u},
    {"wrong tag", IBSHIFT_ALLGATHER, "ring", 5,
     "expects 1 blocks under tag 2.0 from rank 3, which sends 1 under 3.0", 3, 2, SEND, ADD, TAG,
     1},
    {"waits for its own round", IBSHIFT_ALLGATHER, "ring", 5, "waits for its own round", 1, 1, SEND,
     ADD, NEED, 1},
    {"receives into SEND", IBSHIFT_ALLGATHER, "ring", 5, "writes to SEND", 1, 1, RECV, SET, BUF,
     IBSHIFT_SEND},
    {NULL, 0, NULL, 0, NULL, 1, 1, RECV, SET, FIRST, 0},
    {"talks to itself", IBSHIFT_ALLGATHER, "ring", 5, "has a peer that is not another rank", 1, 1,
     SEND, SET, PEER, 1},
    {"beyond the buffer", IBSHIFT_ALLGATHER, "ring", 5, "touches RECV block 5 of 5", 2, 1, RECV,
     SET, FIRST, 5},
    {"comes twice", IBSHIFT_ALLGATHER, "ring", 5, "overwrites RECV block 0, written in round 0", 0,
     2, SEND, SET, FIRST, 0},
    {NULL, 0, NULL, 0, NULL, 1, 2, RECV, SET, FIRST, 0},
    {"unknown kind", IBSHIFT_ALLGATHER, "ring", 5, "is no step at all", 2, 2, RECV, SET, KIND, 7},
    {"unknown buffer", IBSHIFT_ALLGATHER, "ring", 5, "is no step at all", 2, 2, RECV, SET, BUF,
     IBSHIFT_BUFFERS},
    {"range beyond 2^32", IBSHIFT_ALLGATHER, "ring", 5, "touches RECV block 4294967295 of 5", 2, 2,
     RECV, SET, FIRST, UINT32_MAX},
    {NULL, 0, NULL, 0, NULL, 2, 2, RECV, SET, COUNT, 2},
    {"forgets its own block", IBSHIFT_ALLGATHER, "modified_ring", 5, "holds nothing", 2, ALL, COPY,
     DROP},
    {"wrong last round size", IBSHIFT_ALLGATHER, "bruck", 7, "touches TMP block 7 of 7", ALL, 2,
     SEND, ADD, COUNT, 1},
    {NULL, 0, NULL, 0, NULL, ALL, 2, RECV, ADD, COUNT, 1},
    {"rotation off by one", IBSHIFT_ALLGATHER, "bruck", 6,
     "RECV block 3 holds block 0 of 1 rank(s) from 2", 2, 2, COPY, ADD, FROM, -1u, .radix = 2},
    {"copies into scratch", IBSHIFT_ALLGATHER, "bruck", 8,
     "overwrites TMP block 1, sent in round 2", .spoil = copies_into_scratch},
    {"parts cross", IBSHIFT_ALLGATHER, "dissemination", 7, "under 2.1", 0, 2, SENDS, XOR, PART, 1},
    {"half of a message", IBSHIFT_ALLGATHER, "recursive_doubling", 8, "expects 1 blocks", 0, 0,
     SEND, ADD, COUNT, -1u},
    {"packs with a wrong stride", IBSHIFT_ALLTOALL, "bruck", 8, "holds block",
     .spoil = wrong_stride},
    {"packs over what is being sent", IBSHIFT_ALLTOALL, "bruck", 8,
     "overwrites TMP block 8, sent in round 1", ALL, ALL, EVERY, SET, DRAIN, 0},
    {"reverses too much", IBSHIFT_ALLTOALL, "bruck", 8,
     "RECV block 0 holds block 3 of 1 rank(s) from 5", .spoil = reverses_too_much},
    {"stride of empty runs", IBSHIFT_ALLTOALL, "bruck", 8, "has no runs", ALL, ALL, COPY, SET, RUN,
     0},
    {"sends the wrong partner's block", IBSHIFT_ALLTOALL, "pairwise", 5,
     "RECV block 2 holds block 4", 2, 3, SEND, SET, FIRST, 4},
    {"orders that block each other", IBSHIFT_ALLTOALL, "linear", 5, "deadlock with window 1",
     .spoil = sends_backwards},
    {"subtree one short", IBSHIFT_SCATTER, "nway", 9, "expects 3 blocks", 0, 0, SEND, ADD, COUNT,
     -1u, .radix = 2},
    {"forwards before it came", IBSHIFT_SCATTER, "nway", 9, "reads TMP block 1, written in round 0",
     ALL, ALL, SEND, SET, NEED, 0, .radix = 2, .root = 3},
    {"root keeps another block", IBSHIFT_SCATTER, "nway", 9,
     "RECV block 0 holds block 2 of 1 rank(s) from 3, should hold block 3", 3, ALL, COPY, XOR, FROM,
     1, .radix = 2, .root = 3},
    {"swapped subtrees", IBSHIFT_GATHER, "nway", 9,
     "RECV block 1 holds block 0 of 1 rank(s) from 4", .spoil = swaps_receives, .radix = 2},
    {"child forgotten by its parent", IBSHIFT_BCAST, "knomial", 8,
     "waits for a receive from rank 0", 0, 1, SEND, DROP},
    {"child forgets its parent", IBSHIFT_BCAST, "linear", 4, "waits to send to rank 1", 1, 0, RECV,
     DROP},
    {"passes a segment on too early", IBSHIFT_BCAST, "chain", 4, "reads RECV block 0", ALL, ALL,
     SEND, SET, NEED, 0},
    {"pieces change places", IBSHIFT_BCAST, "scatter_allgather", 8, "RECV block 7", 1, 3, RECV, XOR,
     FIRST, 1},
    {"wrong operand order", IBSHIFT_REDUCE, "knomial", 8,
     "reduces ranks 1..1 with ranks 0..0 in that order", ALL, ALL, FOLD_AFTER, SET, KIND, FOLD,
     .is_ordered = true},
    {"folds a slot twice", IBSHIFT_REDUCE, "knomial", 8, "reduces what is not there", 0, ALL,
     FOLD_AFTER, TWICE},
    {"its own left out", IBSHIFT_REDUCE, "chain", 4, "reduces what is not there", ALL, ALL,
     FOLD_AFTER, SET, WITH, IBSHIFT_RECV},
    {"another piece of its own", IBSHIFT_ALLREDUCE, "ring", 5, "reduces block", 1, 1, FOLD, XOR,
     BESIDE, 1},
    {"its target used up", IBSHIFT_REDUCE, "chain", 4, "uses up what is not TMP, or its target", 0,
     ALL, FOLD_AFTER, SET, BUF, IBSHIFT_TMP},
    {"one slot for all", IBSHIFT_REDUCE, "linear", 8, "overwrites TMP block 0, written in round 1",
     ALL, ALL, RECV, SET, FIRST, 0, .is_ordered = true},
    {NULL, 0, NULL, 0, NULL, ALL, ALL, FOLD, SET, FROM, 0},
    {"right operand from the left", IBSHIFT_SCAN, "linear", 4, "reduces ranks 1..1 with ranks 0..0",
     ALL, ALL, FOLD, SET, KIND, FOLD_AFTER, .is_ordered = true},
    {"result leaves too early", IBSHIFT_SCAN, "linear", 4,
     "reads RECV block 0, written in round 1, with need 1", 1, 2, SEND, SET, NEED, 1,
     .is_ordered = true},
    {"slot reused too early", IBSHIFT_SCAN, "recursive_doubling", 8,
     "overwrites TMP block 0, written in round 0, with need 0", ALL, ALL, RECV, SET, NEED, 0,
     .is_ordered = true},
    {"result with its own vector", IBSHIFT_EXSCAN, "linear", 5, "in that order", 2, ALL, SEND, SET,
     BUF, IBSHIFT_RECV, .is_ordered = true},
    {"overwrites what is being sent", IBSHIFT_ALLREDUCE, "recursive_doubling", 8,
     "overwrites RECV block 0, sent in round 2", ALL, ALL, EVERY, SET, DRAIN, 0},
    {"overwrites a piece on its way", IBSHIFT_ALLREDUCE, "ring", 5,
     "overwrites RECV block 4, sent in round 2", ALL, ALL, EVERY, SET, DRAIN, 0},
    {"operand counted twice", IBSHIFT_ALLREDUCE, "linear", 4, "of 7 rank(s)", 1, ALL, FOLD, TWICE},
    {"operand left out", IBSHIFT_REDUCE_SCATTER, "ring", 4, "of 3 rank(s)", 1, 1, FOLD, DROP},
    {"partners' order reversed", IBSHIFT_ALLREDUCE, "rabenseifner", 8, "in that order", ALL, ALL,
     FOLD, SET, KIND, FOLD_AFTER, .is_ordered = true},
    {"leaves before all have come", IBSHIFT_BARRIER, "dissemination", 9, "may leave before rank 1",
     .rounds_cut = 1},
    {"tells what it does not know yet", IBSHIFT_BARRIER, "dissemination", 8, "may leave before",
     ALL, ALL, SEND, SET, NEED, 0},
    {"a copy's stride left in a message", IBSHIFT_ALLTOALL, "bruck", 8, "row without multicast",
     ALL, ALL, SEND, SET, CAST, 1},
    {"one signal too many", IBSHIFT_BARRIER, "dissemination", 8, "waits to send to rank 4", 0, 2,
     SEND, TWICE, PART, 1},
};

static const struct mutant *now;
static const struct ibshift_alg *base;

static uint32_t mutant_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    return base->rounds(plan, rank) - now->rounds_cut;
}

static uint32_t mutant_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                            struct ibshift_step *out)
{
    struct round r = {.ranks = plan->ranks,
                      .rank = rank,
                      .round = round,
                      .rounds = base->rounds(plan, rank),
                      .count = base->emit(plan, rank, round, out),
                      .steps = out};

    edit(&r, now);
    if (now < &mutants[sizeof(mutants) / sizeof(mutants[0]) - 1] && now[1].name == NULL) {
        edit(&r, now + 1);
    }
    if (now->spoil != NULL) {
        now->spoil(&r);
    }
    return r.count;
}

static int judge(const struct ibshift_alg *alg, struct ibshift_check_result *result)
{
    struct ibshift_plan plan = {.ranks = now->ranks,
                                .root = now->root,
                                .radix = now->radix > 0 ? now->radix : 1,
                                .segments = 3,
                                .commutative = !now->is_ordered};

    return ibshift_check_plan(alg, &plan, &(struct ibshift_check){.window = 1}, result);
}

static void every_mutant_is_caught(void **state)
{
    for (size_t i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++) {
        struct ibshift_check_result result;
        struct ibshift_alg alg;

        now = &mutants[i];
        if (now->name == NULL) {
            continue;
        }
        base = ibshift_alg_find(now->collective, now->base);
        assert_non_null(base);
        assert_int_equal(judge(base, &result), 0);
        alg = *base;
        alg.rounds = mutant_rounds;
        alg.emit = mutant_emit;
        if (judge(&alg, &result) != -EBADMSG || strstr(result.why, now->why) == NULL) {
            print_error("%s: says '%s', not '%s'\n", now->name, result.why, now->why);
            fail();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mutant_is_caught),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

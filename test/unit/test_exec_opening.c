/*
 * An op that is opened sends no long message to a rank that has not begun, whatever the plan and whoever
 * is late; what it is told of each rank is what that rank says; and its results are right.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/op_impl.h"
#include "exec/opening.h"
#include "plan/print.h"
#include "world.h"
#include "unit.h"

enum { MOST_RANKS = 13, PLANS = 20, RUNS = 4, TURNS = 200000 };

static struct {
    struct work *work;
    uint32_t run;
    uint32_t begun[MOST_RANKS]; /* runs */
    uint8_t told[MOST_RANKS];
} seen;

/* Each send of a long message, as it starts. */
static void trace(void *context, const struct ibshift_op *op, const char *line)
{
    const struct ibshift_op_params *params = &op->params;
    uint32_t of, round;
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS], *step = NULL;
    char text[IBSHIFT_STEP_TEXT], *address;
    size_t length = 0;

    for (round = 0; round < params->alg->rounds(&params->plan, params->rank) && step == NULL;
         round++) {
        int count = params->alg->emit(&params->plan, params->rank, round, steps);

        for (int i = 0; i < count && step == NULL; i++) {
            ibshift_step_format(&steps[i], params->rank, round, text, sizeof(text));
            step = strcmp(text, line) == 0 ? &steps[i] : NULL;
        }
    }
    assert_non_null(step);
    of = step->peer;
    if (step->kind == IBSHIFT_STEP_SEND &&
        ibshift_blocks_range(&params->blocks[step->buf], step->first, step->count, &address,
                             &length) == 0 &&
        length > *(const size_t *)context) {
        assert_true(seen.begun[of] > seen.run);
        assert_int_equal(
            params->opening->heard[(of + params->plan.ranks - params->rank) % params->plan.ranks],
            seen.told[of]);
    }
}

static void start_all(struct work *work, uint64_t *random)
{
    uint32_t left = work->ranks;

    for (uint32_t turn = 0; left > 0 || !work_is_done(work); turn++) {
        uint32_t rank = world_random_below(random, work->ranks);

        assert_true(turn < TURNS);
        if (seen.begun[rank] == seen.run && world_random_below(random, 4) == 0) {
            uint8_t *told = &work->ops[rank].params.opening->told;

            *told = (uint8_t)world_random_below(random, 4);
            seen.told[rank] = *told;
            seen.begun[rank]++;
            left--;
            work_fill(work, rank, seen.run);
            work_start(work, rank, seen.run);
        }
        world_turn(work->world, random);
    }
}

static bool any_refuses(uint32_t ranks)
{
    bool refuses = false;

    for (uint32_t i = 0; i < ranks; i++) {
        refuses |= (seen.told[i] & IBSHIFT_OPENING_REFUSED) != 0;
    }
    return refuses;
}

static void revoke(struct ibshift_net *net, uint32_t comm, uint32_t standing, const uint32_t *seq)
{
    (void)net, (void)comm, (void)standing, (void)seq;
}

/* As if grants could stand there: so ops are opened. */
static void let_grants_stand(struct world *world)
{
    static struct ibshift_net_ops ops;

    ops = *world->nets[0]->ops;
    ops.revoke = revoke;
    for (uint32_t i = 0; i < world->ranks; i++) {
        world->nets[i]->ops = &ops;
    }
}

static void open_op(struct ibshift_op *op, uint32_t ranks)
{
    op->params.opening = ibshift_opening_make(ranks);
    assert_non_null(op->params.opening);
    ibshift_opening_take(op->params.opening, op);
    op->params.standing = IBSHIFT_NET_OPENED | 5;
}

static void run(const struct ibshift_alg *alg, uint32_t ranks, uint64_t *random)
{
    size_t max_eager = 0;
    struct ibshift_engine_options engine = {.trace = trace, .trace_context = &max_eager};
    struct work_options options = {.alg = alg,
                                   .plan = {.ranks = ranks, .radix = 1, .segments = 1},
                                   .window = 1 + world_random_below(random, 4),
                                   .size = 8 * (200 + world_random_below(random, 400)),
                                   .is_variant = (alg->flags & IBSHIFT_ALG_SIZES) &&
                                                 world_random_below(random, 2),
                                   .is_shuffled = world_random_below(random, 2)};
    struct world *world;
    char why[200];

    if (ibshift_alg_check(alg, &options.plan, why, sizeof(why)) != 0) {
        return;
    }
    world = world_create(ranks, false, &engine);
    let_grants_stand(world);
    max_eager = world->nets[0]->max_eager;
    memset(&seen, 0, sizeof(seen));
    seen.work = work_create(world, &options, random);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        open_op(&seen.work->ops[rank], ranks);
    }
    for (seen.run = 0; seen.run < RUNS; seen.run++) {
        start_all(seen.work, random);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            assert_int_equal(seen.work->ops[rank].status, 0);
            assert_true(work_is_right(seen.work, rank));
            assert_int_equal(ibshift_opening_has_told(seen.work->ops[rank].params.opening, ranks,
                                                      IBSHIFT_OPENING_REFUSED),
                             any_refuses(ranks));
        }
    }
    for (uint32_t rank = 0; rank < ranks; rank++) {
        free(seen.work->ops[rank].params.opening);
        seen.work->ops[rank].params.opening = NULL;
    }
    work_free(seen.work);
    world_free(world, false);
}

static void nobody_writes_before_the_receiver_has_begun(void **state)
{
    uint64_t random = world_seed(3411);

    for (size_t row = 0; row < ibshift_alg_count; row++) {
        const struct ibshift_alg *alg = ibshift_alg_table[row];

        for (int i = 0; i < PLANS && (alg->collective == IBSHIFT_ALLTOALL ||
                                      alg->collective == IBSHIFT_ALLGATHER);
             i++) {
            run(alg, 2 + world_random_below(&random, MOST_RANKS - 1), &random);
        }
    }
}

/* Each other rank that waits for more of the opening has the late one among those that it lacks. */
static void the_late_rank_is_among_those_that_are_lacked(void **state)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");
    struct ibshift_engine_options engine = {.trace = NULL};
    uint64_t random = world_seed(3412);
    uint32_t holding_up = 0;

    for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
        struct work_options options = {.alg = alg,
                                       .plan = {.ranks = ranks, .radix = 1, .segments = 1},
                                       .window = ranks,
                                       .size = 1600};
        uint32_t late = world_random_below(&random, ranks), first;
        struct world *world = world_create(ranks, false, &engine);
        struct work *work;

        let_grants_stand(world);
        work = work_create(world, &options, &random);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            open_op(&work->ops[rank], ranks);
            if (rank != late) {
                work_fill(work, rank, 0);
                work_start(work, rank, 0);
            }
        }
        for (uint32_t turn = 0; turn < TURNS / 10; turn++) {
            world_turn(world, &random);
        }
        for (uint32_t rank = 0; rank < ranks; rank++) {
            uint32_t count = rank == late ? 0 : ibshift_opening_lacks(&work->ops[rank], &first);
            uint32_t distance = (late + ranks - rank) % ranks;

            assert_true(count == 0 || (distance >= first && distance < first + count));
            assert_true(count == 0 ||
                        ibshift_op_awaited_rank(&work->ops[rank]) == (rank + first) % ranks);
            holding_up += count > 0;
        }
        work_fill(work, late, 0);
        work_start(work, late, 0);
        for (uint32_t turn = 0; !work_is_done(work); turn++) {
            assert_true(turn < TURNS);
            world_turn(world, &random);
        }
        for (uint32_t rank = 0; rank < ranks; rank++) {
            assert_int_equal(ibshift_opening_lacks(&work->ops[rank], &first), 0);
            free(work->ops[rank].params.opening);
            work->ops[rank].params.opening = NULL;
        }
        work_free(work);
        world_free(world, false);
    }
    assert_true(holding_up > MOST_RANKS);
}

static void few_grants_are_not_worth_it(void **state)
{
    assert_false(ibshift_opening_refuses(2, 1));
    assert_true(ibshift_opening_refuses(2, 0));
    assert_true(ibshift_opening_refuses(9, 3));
    assert_false(ibshift_opening_refuses(9, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_writes_before_the_receiver_has_begun),
        cmocka_unit_test(the_late_rank_is_among_those_that_are_lacked),
        cmocka_unit_test(few_grants_are_not_worth_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

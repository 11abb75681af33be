/*
 * A tape has the steps of its plan, each ready when it comes; and a collective that runs down its tape, or leaves it anywhere for
 * the engine, moves the right bytes: any row, root and window, on nodes and graphs of all kinds, with ranks that are late.
 */
#include <stdio.h>
#include <stdlib.h>

#include "graphs.h"
#include "nodes.h"
#include "world.h"
#include "unit.h"

enum { MANY_TURNS = 100000, MOST_RANKS = 12, NEVER = INT32_MAX };

static uint64_t seed;

/* Of the ranks of the plans at hand. */
static struct ibshift_nodes nodes;
static struct ibshift_neighbors graph;

static void draw_places(uint32_t ranks, uint64_t *random)
{
    ibshift_nodes_free(&nodes);
    graph_free(&graph);
    nodes = nodes_of_kind((int)world_random_below(random, NODES_KINDS), ranks, random);
    graph = graph_draw(ranks, random);
    assert_true(nodes.nodes > 0);
}

static struct work_options random_work(const struct ibshift_alg *alg, uint32_t ranks,
                                       uint64_t *random)
{
    bool has_variant = alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL);
    struct work_options options = {
        .alg = alg,
        .plan = {.ranks = ranks,
                 .root = world_random_below(random, ranks),
                 .radix = alg->radix_max > 0 ? 1 + world_random_below(random, alg->radix_max) : 1,
                 .segments = 1 + world_random_below(random, 4),
                 .leaders = world_random_below(random, 4),
                 .nodes = &nodes,
                 .commutative =
                     (alg->flags & IBSHIFT_ALG_COMMUTATIVE_ONLY) || world_random_below(random, 2)},
        .window = 1 + world_random_below(random, 8),
        .size = world_random_below(random, 8) == 0 ? 0 : 8 * world_random_below(random, 9),
        .is_variant = has_variant && world_random_below(random, 2),
        .is_in_place = (alg->flags & IBSHIFT_ALG_IN_PLACE) && world_random_below(random, 2),
        .is_shuffled = world_random_below(random, 2),
    };

    draw_places(ranks, random);
    options.plan.neighbors = world_random_below(random, 4) > 0 ? &graph : NULL; /* else a ring */
    return options;
}

static bool is_possible(const struct work_options *options)
{
    char why[200];

    return ibshift_alg_check(options->alg, &options->plan, why, sizeof(why)) == 0;
}

static struct ibshift_tape *tape_of(const struct work *work, uint32_t rank)
{
    return ibshift_engine_tape(work->world->engines[work->peers[rank]], &work->ops[rank].params,
                               work->rank[rank].length[IBSHIFT_TMP]);
}

/* What of a plan is over, step by step, without a walk. */
struct done {
    const struct ibshift_op_params *params;
    uint32_t rounds;
    uint64_t *steps; /* by round, a bit for each */
};

static bool is_round_over(const struct done *done, uint32_t round, bool of_sends)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t count = done->params->alg->emit(&done->params->plan, done->params->rank, round, steps);

    for (uint32_t i = 0; i < count; i++) {
        if ((steps[i].kind == IBSHIFT_STEP_SEND) == of_sends && !(done->steps[round] >> i & 1)) {
            return false;
        }
    }
    return true;
}

static struct ibshift_progress progress_of(const struct done *done)
{
    struct ibshift_progress progress = {0, 0};

    while (progress.received < done->rounds && is_round_over(done, progress.received, false)) {
        progress.received++;
    }
    while (progress.sent < done->rounds && is_round_over(done, progress.sent, true)) {
        progress.sent++;
    }
    return progress;
}

static void check_message(const struct ibshift_op_params *params, const struct ibshift_step *step,
                          const struct ibshift_tape_step *on_tape)
{
    char *address;
    size_t length;

    assert_int_equal(ibshift_blocks_range(&params->blocks[step->buf], step->first, step->count,
                                          &address, &length),
                     0);
    assert_int_equal(on_tape->length, length);
    assert_ptr_equal(params->blocks[on_tape->buf].base + on_tape->at, address);
    assert_int_equal(on_tape->peer, params->peers != NULL ? params->peers[step->peer] : step->peer);
    assert_int_equal(on_tape->tag, ibshift_step_key(step));
    assert_int_equal(on_tape->action, length == 0 && step->count > 0    ? IBSHIFT_TAPE_NOTHING
                                      : step->kind == IBSHIFT_STEP_SEND ? IBSHIFT_TAPE_SEND
                                                                        : IBSHIFT_TAPE_RECV);
}

static void check_tape(const struct ibshift_op_params *params, const struct ibshift_tape *tape)
{
    struct done done = {params, params->alg->rounds(&params->plan, params->rank), NULL};
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t last[IBSHIFT_CLASSES] = {0};

    done.steps = calloc(done.rounds + 1, sizeof(*done.steps));
    assert_non_null(done.steps);
    for (uint32_t i = 0; i < tape->count; i++) {
        const struct ibshift_tape_step *on_tape = &tape->steps[i];
        const struct ibshift_step *step = &steps[on_tape->index];
        struct ibshift_progress progress = progress_of(&done);
        uint32_t place = on_tape->round << 6 | on_tape->index;

        assert_true(on_tape->round < done.rounds);
        assert_true(on_tape->index <
                    params->alg->emit(&params->plan, params->rank, on_tape->round, steps));
        assert_true(ibshift_step_is_ready(step, &progress));
        assert_int_equal(on_tape->which, ibshift_step_class(step));
        assert_true(last[on_tape->which] <= place); /* a class keeps the plan's order */
        last[on_tape->which] = place;
        if (on_tape->which != IBSHIFT_CLASS_LOCAL) {
            check_message(params, step, on_tape);
        }
        assert_false(done.steps[on_tape->round] >> on_tape->index & 1);
        done.steps[on_tape->round] |= (uint64_t)on_tape->is_last << on_tape->index;
    }
    assert_int_equal(progress_of(&done).received, done.rounds);
    assert_int_equal(progress_of(&done).sent, done.rounds);
    free(done.steps);
}

static void every_tape_is_its_plan(void **state)
{
    struct ibshift_engine_options engine = {0};
    uint64_t random = seed;
    int tapes = 0, none = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        for (uint32_t ranks = 1; ranks <= 17; ranks++) {
            struct work_options options = random_work(ibshift_alg_table[i], ranks, &random);
            struct world *world;
            struct work *work;

            if (!is_possible(&options)) {
                continue;
            }
            world = world_create(ranks, false, &engine);
            work = work_create(world, &options, &random);
            for (uint32_t rank = 0; rank < ranks; rank++) {
                struct ibshift_tape *tape = tape_of(work, rank);

                if (tape != NULL) {
                    check_tape(&work->ops[rank].params, tape);
                }
                tapes += tape != NULL;
                none += tape == NULL;
                free(tape);
            }
            work_free(work);
            world_free(world, false);
        }
    }
    print_message("%d tapes, %d ranks without\n", tapes, none);
    assert_true(tapes > 1000 && none < tapes / 20);
}

/* How each rank runs: down its tape as far as the step `cut`, or until it has waited `patience` times. */
struct way {
    struct ibshift_tape *tape;    /* NULL: an op from the start */
    struct ibshift_tape *shorter; /* its first steps */
    struct ibshift_tape_run run;
    int patience;
    bool is_on_tape;
};

static void prepare(struct way *way, struct work *work, uint32_t rank, uint32_t cut, int patience)
{
    const struct ibshift_op_params *params = &work->ops[rank].params;

    *way = (struct way){.tape = tape_of(work, rank), .patience = patience};
    if (way->tape == NULL) {
        return;
    }
    way->shorter = tape_of(work, rank);
    assert_non_null(way->shorter);
    while (cut < way->tape->count && cut > 0 && !way->tape->steps[cut - 1].is_last) {
        cut++;
    }
    way->shorter->count = cut < way->tape->count ? cut : way->tape->count;
    way->run = (struct ibshift_tape_run){.comm = params->comm,
                                         .element = params->element,
                                         .reduce = params->reduce,
                                         .reduce_context = params->reduce_context};
    for (int i = 0; i < IBSHIFT_BUFFERS; i++) {
        way->run.base[i] = params->blocks[i].base;
    }
}

static void enter(struct way *way, struct work *work, uint32_t rank, uint32_t seq)
{
    if (way->tape == NULL) {
        work_start(work, rank, seq);
        return;
    }
    work_fill(work, rank, seq);
    way->run.tape = way->shorter;
    way->run.seq = seq;
    way->run.next = 0;
    way->is_on_tape = true;
}

static void go_on(struct way *way, struct work *work, uint32_t rank)
{
    struct ibshift_engine *engine = work->world->engines[work->peers[rank]];
    bool is_over = ibshift_engine_sprint(engine, &way->run);

    if (is_over && way->shorter->count == way->tape->count) {
        way->is_on_tape = false;
    } else if (is_over || way->patience-- == 0) {
        way->is_on_tape = false;
        way->run.tape = way->tape;
        ibshift_engine_take_over(engine, &work->ops[rank], &way->run);
    }
}

static bool is_over(const struct way *ways, struct work *work)
{
    for (uint32_t rank = 0; rank < work->ranks; rank++) {
        if (ways[rank].is_on_tape) {
            return false;
        }
    }
    return work_is_done(work);
}

static void run(struct work *work, struct way *ways, uint32_t seq, uint64_t *random)
{
    uint32_t entered = 0, first = world_random_below(random, work->ranks);
    int turn = 0;

    for (; turn < MANY_TURNS && (entered < work->ranks || !is_over(ways, work)); turn++) {
        uint32_t rank = (first + entered) % work->ranks;

        if (entered < work->ranks && world_random_below(random, 2) == 0) {
            enter(&ways[rank], work, rank, seq);
            entered++;
        }
        for (rank = 0; rank < work->ranks; rank++) {
            if (ways[rank].is_on_tape) {
                go_on(&ways[rank], work, rank);
            }
        }
        world_turn(work->world, random);
    }
    for (uint32_t rank = 0; rank < work->ranks; rank++) {
        if (turn == MANY_TURNS || !work_is_right(work, rank)) {
            fail_msg("%s %s, %u ranks: rank %u %s",
                     ibshift_collective_name(work->options.alg->collective),
                     work->options.alg->name, work->ranks, rank,
                     turn == MANY_TURNS ? "does not end" : "is wrong");
        }
    }
}

/* Twice, the second time from the start of the sequence. cut NEVER: to the end of the tape. */
static uint32_t check(bool has_room, const struct work_options *options, uint32_t cut, int patience,
                      uint64_t *random)
{
    struct ibshift_engine_options engine = {0};
    uint32_t ranks = options->plan.ranks;
    struct world *world = world_create(ranks, has_room, &engine);
    struct work *work = work_create(world, options, random);
    struct way ways[WORLD_MOST];
    uint32_t longest = 0;

    for (uint32_t again = 0; again < 2; again++) {
        for (uint32_t rank = 0; rank < ranks; rank++) {
            prepare(&ways[rank], work, rank, cut, patience);
            longest = ways[rank].tape != NULL && ways[rank].tape->count > longest
                          ? ways[rank].tape->count
                          : longest;
        }
        run(work, ways, UINT32_MAX + again, random);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            free(ways[rank].tape);
            free(ways[rank].shorter);
        }
    }
    work_free(work);
    world_free(world, false);
    return longest;
}

/* All ranks leave their tapes at the same place, each place in turn. */
static void the_engine_goes_on_from_every_step(void **state)
{
    uint64_t random = seed + 1;
    uint32_t places = 0;

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        for (uint32_t ranks = 2; ranks <= 7; ranks++) {
            struct work_options options = random_work(ibshift_alg_table[i], ranks, &random);
            uint32_t longest = is_possible(&options) ? 1 : 0;

            for (uint32_t cut = 0; cut < longest; cut++, places++) {
                longest = check(false, &options, cut, NEVER, &random);
            }
        }
    }
    print_message("%u places\n", places);
    assert_true(places > 1000);
}

/* Long messages, little room, ranks that give up waiting after some tries; now and then more messages under way than usual. */
static void disorder_changes_nothing(void **state)
{
    static const int patiences[] = {0, 1, 5, 100};
    uint64_t random = seed + 2;

    for (int i = 0; i < 800; i++) {
        bool is_wide = i % 100 == 0;
        const struct ibshift_alg *alg =
            is_wide ? ibshift_alg_find(IBSHIFT_ALLTOALL, "linear")
                    : ibshift_alg_table[world_random_below(&random, (uint32_t)ibshift_alg_count)];
        uint32_t ranks = is_wide ? WORLD_MOST : 2 + world_random_below(&random, MOST_RANKS - 1);
        struct work_options options = random_work(alg, ranks, &random);
        bool has_room = world_random_below(&random, 3) == 0;

        options.window = is_wide ? 256 : options.window;
        options.size *= world_random_below(&random, 2) == 0 ? 1 : 100;
        if (is_possible(&options)) {
            (void)check(has_room, &options, NEVER, patiences[world_random_below(&random, 4)],
                        &random);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_tape_is_its_plan),
        cmocka_unit_test(the_engine_goes_on_from_every_step),
        cmocka_unit_test(disorder_changes_nothing),
    };

    seed = world_seed(31);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

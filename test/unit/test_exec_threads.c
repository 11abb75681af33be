/* Ranks as threads, several threads a rank: every collective ends right, whoever makes the progress. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "world.h"
#include "unit.h"

enum { RANKS = 4, LANES = 3, RUNS = 40, PATIENT_POLLS = 20000000 };

/* Thread (rank, lane) runs collectives on the lane's communicator, all ranks in the same order. */
struct thread {
    pthread_t id;
    struct work *work;
    uint32_t rank;
    bool is_told; /* waits for ended() instead of watching the op */
    atomic_uint ended;
    uint32_t wrong;
    bool hangs;
};

static uint64_t seed;

static void count_end(struct ibshift_op *op)
{
    struct thread *thread = op->owner;

    atomic_fetch_add(&thread->ended, 1);
}

static bool has_ended(struct thread *thread, uint32_t run)
{
    return thread->is_told ? atomic_load(&thread->ended) == run + 1
                           : ibshift_op_is_done(&thread->work->ops[thread->rank]);
}

static void *run_rank(void *argument)
{
    struct thread *thread = argument;
    struct work *work = thread->work;
    struct ibshift_engine *engine = work->world->engines[work->peers[thread->rank]];

    for (uint32_t run = 0; run < RUNS && !thread->hangs; run++) {
        uint32_t polls = 0;

        work_start(work, thread->rank, run);
        while (!has_ended(thread, run) && polls++ < PATIENT_POLLS) {
            if (ibshift_engine_progress(engine) == 0) {
                sched_yield();
            }
        }
        thread->hangs = !has_ended(thread, run);
        thread->wrong += !thread->hangs && !work_is_right(work, thread->rank);
    }
    return NULL;
}

static bool choose(struct work_options *options, uint32_t lane, uint64_t *random)
{
    const struct ibshift_alg *alg =
        ibshift_alg_table[world_random_below(random, (uint32_t)ibshift_alg_count)];
    char why[200];

    *options = (struct work_options){
        .alg = alg,
        .plan = {.ranks = RANKS,
                 .root = world_random_below(random, RANKS),
                 .radix = 1,
                 .segments = 3,
                 .commutative = true},
        .comm = lane,
        .window = 1 + world_random_below(random, 4),
        .size = 8 * world_random_below(random, 20),
        .is_shuffled = true,
    };
    return ibshift_alg_check(alg, &options->plan, why, sizeof(why)) == 0;
}

static void many_threads(bool has_room, uint64_t *random)
{
    struct ibshift_engine_options engine = {0};
    struct world *world = world_create(RANKS, has_room, &engine);
    struct thread threads[LANES][RANKS] = {0};
    struct work *works[LANES];

    for (uint32_t lane = 0; lane < LANES; lane++) {
        struct work_options options;

        while (!choose(&options, lane, random)) {
        }
        works[lane] = work_create(world, &options, random);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            struct thread *thread = &threads[lane][rank];

            thread->work = works[lane];
            thread->rank = rank;
            thread->is_told = lane % 2;
            works[lane]->ops[rank].owner = thread;
            works[lane]->ops[rank].ended = thread->is_told ? count_end : NULL;
        }
    }
    for (uint32_t i = 0; i < LANES * RANKS; i++) {
        struct thread *thread = &threads[i / RANKS][i % RANKS];

        assert_int_equal(pthread_create(&thread->id, NULL, run_rank, thread), 0);
    }
    for (uint32_t i = 0; i < LANES * RANKS; i++) {
        struct thread *thread = &threads[i / RANKS][i % RANKS];

        pthread_join(thread->id, NULL);
        assert_false(thread->hangs);
        assert_int_equal(thread->wrong, 0);
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        work_free(works[lane]);
    }
    world_free(world, false);
}

static void threads_make_each_others_progress(void **state)
{
    uint64_t random = seed;

    for (int i = 0; i < 8; i++) {
        many_threads(i % 2, &random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_make_each_others_progress),
    };

    seed = world_seed(22);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

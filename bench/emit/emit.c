/*
 * What emission costs, for every algorithm: nanoseconds of CPU time a step, native code.
 * A rank's figure is the time of its whole plan, rounds() and all its emit() calls, divided by its
 * steps. With the arguments COLLECTIVE ALGORITHM RADIX it emits the sampled plans once and prints
 * their number of steps, for bench/emit/run to count instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/alg.h"

enum { RANKS = 1024, SAMPLES = 128, REPEATS = 20 };

static uint64_t sink; /* keeps the work from being left out */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static uint64_t walk(const struct ibshift_alg *alg,
                                               const struct ibshift_plan *plan, uint32_t rank)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t rounds = alg->rounds(plan, rank);
    uint64_t count = 0, peers = 0;

    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t emitted = alg->emit(plan, rank, round, steps);

        count += emitted;
        peers += emitted > 0 ? steps[emitted - 1].peer : 0;
    }
    sink += peers;
    return count;
}

static uint32_t sampled(int i)
{
    return (uint32_t)(i * 521 + 1) % RANKS; /* an odd distance: ranks of all kinds of digits */
}

/* The best of a few measurements of one rank's plan, in ns. */
static double time_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                        uint32_t rank)
{
    uint64_t steps = walk(alg, plan, rank);
    int loops = (int)(1000 / (steps + 1)) + 1;
    double best = 1e300;

    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double start = now(), each;

        for (int i = 0; i < loops; i++) {
            walk(alg, plan, rank);
        }
        each = (now() - start) / loops;
        best = each < best ? each : best;
    }
    return best;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static uint32_t empty_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    (void)rank;
    return plan->segments;
}

static uint32_t empty_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                           struct ibshift_step *out)
{
    (void)plan, (void)rank, (void)round, (void)out;
    return 0;
}

/* What the machine takes for a call from the table that does nothing: no round is cheaper. */
static double time_call(void)
{
    const struct ibshift_alg empty = {.rounds = empty_rounds, .emit = empty_emit};
    struct ibshift_plan plan = {.ranks = RANKS, .segments = 1000};

    return time_plan(&empty, &plan, 0) / plan.segments;
}

static void measure(const struct ibshift_alg *alg, uint32_t radix, int *slow, int *rows)
{
    struct ibshift_plan plan = {
        .ranks = RANKS, .radix = radix, .segments = 16, .commutative = true};
    double each[SAMPLES], time = 0, all = 0;
    uint64_t steps = 0;
    int count = 0;

    for (int i = 0; i < SAMPLES; i++) {
        uint32_t rank = sampled(i);
        uint64_t own = walk(alg, &plan, rank);
        double spent = time_plan(alg, &plan, rank);

        time += spent;
        steps += own;
        if (own > 0) {
            each[count++] = spent / (double)own;
        }
    }
    qsort(each, (size_t)count, sizeof(each[0]), ascending);
    all = steps > 0 ? time / (double)steps : 0;
    printf("%-14s %-19s %5u %10.1f %9.1f %9.1f %9.1f\n", ibshift_collective_name(alg->collective),
           alg->name, radix, (double)steps / SAMPLES, each[count / 2], all, time / SAMPLES);
    *slow += each[count / 2] > 10;
    ++*rows;
}

static void ring_of_all(void)
{
    const struct ibshift_alg *ring = ibshift_alg_find(IBSHIFT_ALLGATHER, "ring");
    struct ibshift_plan plan = {.ranks = 4096};
    uint64_t steps = 0;
    double start = now();

    for (uint32_t rank = 0; rank < plan.ranks; rank++) {
        steps += walk(ring, &plan, rank);
    }
    start = now() - start;
    printf("allgather ring, all 4096 ranks: %llu steps in %.3f s, %.1f ns a step\n",
           (unsigned long long)steps, start / 1e9, start / (double)steps);
}

static int emit_once(const char *collective, const char *name, const char *radix)
{
    int c = ibshift_collective_find(collective);
    const struct ibshift_alg *alg =
        c < 0 ? NULL : ibshift_alg_find((enum ibshift_collective)c, name);
    struct ibshift_plan plan = {.ranks = RANKS,
                                .radix = (uint32_t)strtoul(radix, NULL, 10),
                                .segments = 16,
                                .commutative = true};
    uint64_t steps = 0;
    char why[160] = "no such algorithm";

    if (alg == NULL || ibshift_alg_check(alg, &plan, why, sizeof(why)) != 0) {
        fprintf(stderr, "emit: %s %s: %s\n", collective, name, why);
        return 2;
    }
    for (int i = 0; i < SAMPLES; i++) {
        steps += walk(alg, &plan, sampled(i));
    }
    printf("steps %llu\n", (unsigned long long)steps);
    return 0;
}

static void time_all(void)
{
    int slow = 0, rows = 0;

    printf("emission at P = %d, root 0, %d sampled ranks; CPU time in ns, best of %d\n", RANKS,
           SAMPLES, REPEATS);
    printf("a call that emits nothing: %.1f ns; a rank calls rounds() once and emit() each round\n",
           time_call());
    printf("%-14s %-19s %5s %10s %9s %9s %9s\n", "collective", "algorithm", "radix", "steps/rank",
           "median/st", "mean/step", "ns/plan");
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        measure(ibshift_alg_table[i], 1, &slow, &rows);
        if (ibshift_alg_table[i]->radix_max > 0) {
            measure(ibshift_alg_table[i], 4, &slow, &rows);
        }
    }
    printf("%d of %d rows have a median rank above 10 ns a step\n", slow, rows);
}

int main(int argc, char **argv)
{
    const struct ibshift_alg *bruck = ibshift_alg_find(IBSHIFT_ALLGATHER, "bruck");
    struct ibshift_plan plan = {.ranks = RANKS, .radix = 1};

    if (argc == 4) {
        return emit_once(argv[1], argv[2], argv[3]);
    }
    time_all();
    ring_of_all();
    printf(
        "allgather bruck, radix 1, one of %d ranks, whole plan: %.0f ns for %llu steps, %u calls\n",
        RANKS, time_plan(bruck, &plan, 5), (unsigned long long)walk(bruck, &plan, 5),
        bruck->rounds(&plan, 5) + 1);
    return sink == 1; /* never */
}

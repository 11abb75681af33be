/* Every algorithm, every number of ranks to 64 and some above, every root, radices 1 to 8: proved.
 * Of composed ones fewer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "proof/check.h"
#include "unit.h"

struct tally {
    uint64_t cases;
    uint64_t steps;
};

static const uint32_t larger[] = {65, 96, 127, 128, 129, 243, 256, 257};

static bool is_rooted(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective == IBSHIFT_SCATTER ||
           alg->collective == IBSHIFT_GATHER || alg->collective == IBSHIFT_REDUCE;
}

static bool has_vector(const struct ibshift_alg *alg)
{
    return alg->collective == IBSHIFT_BCAST || alg->collective >= IBSHIFT_REDUCE;
}

static void prove(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                  struct ibshift_check check, struct tally *tally)
{
    struct ibshift_check_result result;
    int rc;

    check.sizes =
        has_vector(alg) || (alg->flags & (IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL)) != 0;
    rc = ibshift_check_plan(alg, plan, &check, &result);
    if (rc == -ENOTSUP) {
        return;
    }
    if (rc != 0) {
        fail_msg("%s %s, %u ranks, root %u, radix %u, segments %u, window %u%s%s: %s",
                 ibshift_collective_name(alg->collective), alg->name, plan->ranks, plan->root,
                 plan->radix, plan->segments, check.window, check.in_place ? ", in place" : "",
                 plan->commutative ? ", commutative" : "", result.why);
    }
    tally->cases++;
    tally->steps += result.steps;
}

/* One plan: with and without overlap, window 1; every few wider windows as well. */
static void prove_plan(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                       struct tally *tally)
{
    uint64_t number = tally->cases;

    prove(alg, plan, (struct ibshift_check){.window = 1}, tally);
    if ((alg->flags & IBSHIFT_ALG_IN_PLACE) != 0 && (plan->ranks <= 32 || number % 4 == 0)) {
        prove(alg, plan, (struct ibshift_check){.window = 1, .in_place = true}, tally);
    }
    if (plan->ranks <= 16 && number % 4 == 0) {
        prove(alg, plan, (struct ibshift_check){.window = 1 + number % 7}, tally);
        prove(alg, plan, (struct ibshift_check){.window = 64}, tally);
    }
}

/* Without nodes composed plans are those of their leaders: test_compose proves them with nodes. */
static bool is_composed(const struct ibshift_alg *alg)
{
    return (alg->flags & IBSHIFT_ALG_NODES) != 0;
}

static void prove_ranks(const struct ibshift_alg *alg, uint32_t ranks, struct tally *tally)
{
    uint32_t roots = is_rooted(alg) ? ranks : 1;
    uint32_t radices = alg->radix_max == 0 ? 1 : is_composed(alg) ? 3 : 8;
    uint32_t stride = ranks > 64 || is_composed(alg) ? 1 + ranks / 3 : 1;
    struct ibshift_plan plan = {.ranks = ranks, .radix = 1};

    for (plan.root = 0; plan.root < roots; plan.root += stride) {
        for (plan.radix = 1; plan.radix <= radices; plan.radix++) {
            for (int commutative = alg->collective >= IBSHIFT_REDUCE ? 0 : 1; commutative <= 1;
                 commutative++) {
                plan.commutative = commutative;
                plan.segments = 1 + (plan.root + ranks) % 5;
                prove_plan(alg, &plan, tally);
            }
        }
    }
}

static void every_algorithm(void **state)
{
    struct tally all = {0};
    clock_t begin = clock();

    for (size_t i = 0; i < ibshift_alg_count; i++) {
        struct tally tally = {0};
        clock_t start = clock();

        for (uint32_t ranks = 1; ranks <= 64;
             ranks += is_composed(ibshift_alg_table[i]) ? 1 + ranks / 8 : 1) {
            prove_ranks(ibshift_alg_table[i], ranks, &tally);
        }
        for (size_t l = 0;
             l < sizeof(larger) / sizeof(larger[0]) && !is_composed(ibshift_alg_table[i]); l++) {
            prove_ranks(ibshift_alg_table[i], larger[l], &tally);
        }
        assert_true(tally.cases > 0);
        printf("%-14s %-20s %6llu cases %9llu steps %5.2f s\n",
               ibshift_collective_name(ibshift_alg_table[i]->collective),
               ibshift_alg_table[i]->name, (unsigned long long)tally.cases,
               (unsigned long long)tally.steps, (double)(clock() - start) / CLOCKS_PER_SEC);
        all.cases += tally.cases;
        all.steps += tally.steps;
    }
    printf("%llu cases, %llu steps proved in %.1f s of CPU time\n", (unsigned long long)all.cases,
           (unsigned long long)all.steps, (double)(clock() - begin) / CLOCKS_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

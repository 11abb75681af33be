/* All ranks of a plan on their way: each comes where one alone does. */
#include <errno.h>
#include <string.h>

#include "plan/walk.h"
#include "plan/walks.h"
#include "unit.h"

enum { RANKS_MAX = 24, WINDOW = 5, TURNS = 20000 };

static uint64_t random_state = 1;

static uint32_t below(uint32_t end)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % end;
}

static int refused; /* the allocation that is: 1: the next one; below: none */

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);

void *__wrap_realloc(void *at, size_t size)
{
    return refused > 0 && --refused == 0 ? NULL : __real_realloc(at, size);
}

/* What is in flight of a rank and class. */
struct flights {
    uint32_t count, round[WINDOW], flight[WINDOW];
};

static struct ibshift_walk alone[RANKS_MAX];
static struct ibshift_pages pages[RANKS_MAX];
static struct flights flights[RANKS_MAX][IBSHIFT_CLASS_LOCAL];

static bool is_same(const struct ibshift_step *a, const struct ibshift_step *b)
{
    return a == NULL || b == NULL ? a == b : memcmp(a, b, sizeof(*a)) == 0;
}

/* A step starts, if one of that class may; both say which. */
static void start(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which)
{
    const struct ibshift_step *step = ibshift_walks_next(walks, rank, which);
    uint32_t round = walks->ranks[rank].cursor[which].round, flight = 0;

    if (!walks->lacks_memory) {
        assert_true(is_same(step, ibshift_walk_next(&alone[rank], which)));
    }
    if (step == NULL) {
        return;
    }
    if (!walks->lacks_memory) {
        flight = ibshift_walk_start(&alone[rank], which);
    }
    ibshift_walks_start(walks, rank, which);
    if (which != IBSHIFT_CLASS_LOCAL) {
        struct flights *in = &flights[rank][which];

        in->round[in->count] = round;
        in->flight[in->count++] = flight;
    }
}

/* Any that is in flight ends. */
static void complete(struct ibshift_walks *walks, uint32_t rank, enum ibshift_class which)
{
    struct flights *in = &flights[rank][which];
    uint32_t i = in->count > 0 ? below(in->count) : 0;

    if (in->count > 0) {
        if (!walks->lacks_memory) {
            ibshift_walk_complete(&alone[rank], which, in->flight[i]);
        }
        ibshift_walks_complete(walks, rank, which, in->round[i]);
        in->round[i] = in->round[--in->count];
        in->flight[i] = in->flight[in->count];
    }
}

/* A round that is not over is as it is emitted. */
static void look(struct ibshift_walks *walks, uint32_t rank)
{
    const struct ibshift_walks_rank *walk = &walks->ranks[rank];
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint32_t round = walk->over, count;

    if (walk->over < walk->rounds) {
        const struct ibshift_step *seen;

        round += below(walk->rounds - walk->over);
        seen = ibshift_walks_look(walks, rank, round, &count);
        if (!walks->lacks_memory) {
            assert_int_equal(count, walks->alg->emit(walks->plan, rank, round, steps));
            assert_memory_equal(seen, steps, count * sizeof(*steps));
        }
    }
}

/* In any order, until all ranks are done, or for so many turns where memory lacks. */
static void go(struct ibshift_walks *walks, bool looks)
{
    uint32_t ranks = walks->plan->ranks, done = 0;

    memset(flights, 0, sizeof(flights));
    for (uint32_t rank = 0; rank < ranks; rank++) {
        ibshift_walk_begin(&alone[rank], &pages[rank], walks->alg, walks->plan, rank, WINDOW);
        ibshift_walks_begin_rank(walks, rank);
    }
    for (int turns = 0; done < ranks && (turns < TURNS || !walks->lacks_memory); turns++) {
        uint32_t rank = below(ranks), what = below(6);

        if (what < IBSHIFT_CLASSES) {
            start(walks, rank, (enum ibshift_class)what);
        } else if (what < 5) {
            complete(walks, rank, (enum ibshift_class)(what % IBSHIFT_CLASS_LOCAL));
        } else if (looks) {
            look(walks, rank);
        }
        if (!walks->lacks_memory) {
            assert_int_equal(walks->ranks[rank].progress.sent, alone[rank].progress.sent);
            assert_int_equal(walks->ranks[rank].progress.received, alone[rank].progress.received);
        }
        while (done < ranks && ibshift_walks_are_done(walks, done)) {
            done++;
        }
    }
}

static bool can(const struct ibshift_alg *alg, const struct ibshift_plan *plan)
{
    char why[128];

    return ibshift_alg_check(alg, plan, why, sizeof(why)) == 0;
}

/* Any row, one after the other in the same memory. */
static void each_rank_goes_as_if_alone(void **state)
{
    static const uint32_t ranks[] = {2, 7, 24};
    struct ibshift_walks walks = {.ranks = NULL};

    (void)state;
    for (size_t i = 0; i < ibshift_alg_count * 3; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i / 3];
        bool has_segments = (alg->flags & IBSHIFT_ALG_SEGMENTS) != 0;
        struct ibshift_plan plan = {.ranks = ranks[i % 3],
                                    .radix = alg->radix_max > 2 ? 2 : alg->radix_max,
                                    .segments = has_segments ? 9 : 1,
                                    .commutative = true,
                                    .root = 1};

        if (can(alg, &plan)) {
            assert_int_equal(ibshift_walks_begin(&walks, alg, &plan, WINDOW), 0);
            go(&walks, i % 2 == 0);
            assert_false(walks.lacks_memory);
        }
    }
    ibshift_walks_free(&walks);
}

/* Each allocation fails once: that is said, and nothing else happens. */
static void who_lacks_memory_says_so(void **state)
{
    struct ibshift_plan plan = {.ranks = RANKS_MAX, .radix = 1, .segments = 1};
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLGATHER, "ring");
    int fails = 0;

    (void)state;
    for (int at = 1; at > 0; at++) {
        struct ibshift_walks walks = {.ranks = NULL};
        bool has_failed;
        int rc;

        refused = at;
        rc = ibshift_walks_begin(&walks, alg, &plan, WINDOW);
        if (rc == 0) {
            go(&walks, true);
        }
        has_failed = refused == 0;
        refused = 0;
        assert_true(rc == (at <= 2 ? -ENOMEM : 0));
        assert_int_equal(has_failed, rc != 0 || walks.lacks_memory);
        assert_int_equal(ibshift_walks_begin(&walks, alg, &plan, WINDOW), 0);
        go(&walks, true);
        assert_false(walks.lacks_memory);
        ibshift_walks_free(&walks);
        fails += has_failed;
        at = has_failed ? at : -1;
    }
    print_message("%d allocations\n", fails);
    assert_true(fails > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_goes_as_if_alone),
        cmocka_unit_test(who_lacks_memory_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

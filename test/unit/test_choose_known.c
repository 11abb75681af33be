/* What is kept of choices: for all communicators of a process the same as what each would find. */
#include <string.h>

#include "ask.h"
#include "unit.h"

/* The same question, asked again, on other memory, or of another shape. */
static void what_is_known_is_the_best(void **state)
{
    struct ibshift_model slow = ibshift_model_typical;

    slow.latency *= 50;
    for (int again = 0; again < 2; again++) {
        for (uint32_t ranks = 2; ranks < 12; ranks += 3) {
            for (int i = 0; i < 2 * IBSHIFT_COLLECTIVES; i++) {
                struct ibshift_plan plan = {.ranks = ranks, .commutative = true};
                struct ibshift_question question =
                    ask((enum ibshift_collective)(i / 2), &plan, 1024);
                struct ibshift_choice known, best;

                question.is_brief = true;
                question.model = i % 2 ? &slow : &ibshift_model_typical;
                known = ibshift_choose(&question).best;
                best = ibshift_choose_best(&question).best;
                assert_true(is_same(&known, &best));
            }
        }
    }
}

enum { RANKS = 8 };

static const uint32_t halves[RANKS] = {0, 0, 0, 0, 1, 1, 1, 1};
static const uint32_t uneven[RANKS] = {0, 1, 1, 1, 1, 1, 1, 1};
static const uint32_t two[] = {2, 2}, three[] = {3, 3};
static const struct ibshift_crowd crowd = {
    .hosts = 2, .ports = 2, .host_of = halves, .port_of = halves, .processors = two};
static const struct ibshift_crowd hosts = {
    .hosts = 2, .ports = 2, .host_of = uneven, .port_of = halves, .processors = two};
static const struct ibshift_crowd ports = {
    .hosts = 2, .ports = 2, .host_of = halves, .port_of = uneven, .processors = two};
static const struct ibshift_crowd processors = {
    .hosts = 2, .ports = 2, .host_of = halves, .port_of = halves, .processors = three};

/* Both questions have answers that differ, so that one must not be taken for the other. */
static void differ(const char *what, const struct ibshift_question *one,
                   const struct ibshift_question *other)
{
    const struct ibshift_question *questions[] = {one, other, one};
    struct ibshift_choice best[2];

    print_message("%s\n", what);
    for (int i = 0; i < 2; i++) {
        best[i] = ibshift_choose_best(questions[i]).best;
        assert_non_null(best[i].alg);
    }
    assert_false(is_same(&best[0], &best[1]));
    for (int i = 0; i < 3; i++) {
        struct ibshift_question brief = *questions[i];
        struct ibshift_choice known;

        brief.is_brief = true;
        known = ibshift_choose(&brief).best;
        assert_true(is_same(&known, &best[i % 2]));
    }
}

static void what_is_asked_for_counts(void **state)
{
    struct ibshift_plan plan = {.ranks = RANKS, .commutative = true}, fixed = plan, fewer = plan,
                        many = plan;
    struct ibshift_question one = ask(IBSHIFT_BCAST, &plan, 1 << 16), other = one;

    other.collective = IBSHIFT_REDUCE;
    differ("collective", &one, &other);
    other = one;
    other.bytes /= 2;
    differ("bytes", &one, &other);
    fewer.ranks--;
    other = one;
    other.plan = &fewer;
    differ("ranks", &one, &other);
    other = one;
    other.model = &ibshift_model_software;
    differ("model", &one, &other);
    other = one;
    other.wish.alg = ibshift_alg_find(IBSHIFT_BCAST, "chain");
    differ("wish", &one, &other);
    one = other;
    other.wish.segment = 1000;
    differ("segment", &one, &other);
    one.wish.alg = other.wish.alg = ibshift_alg_find(IBSHIFT_BCAST, "knomial");
    one.wish.segment = other.wish.segment = 0;
    one.wish.radix = 1;
    other.wish.radix = 3;
    differ("radix", &one, &other);
    one = other = ask(IBSHIFT_ALLTOALL, &plan, 1 << 10);
    one.wish.alg = other.wish.alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "linear");
    other.window = 1;
    differ("window", &one, &other);
    one.bytes = other.bytes = 1 << 16;
    one.free.window = other.free.window = 32;
    other.free.piece = 1024;
    differ("pieces", &one, &other);
    other.free = (struct ibshift_sending){.window = 1};
    differ("window of free steps", &one, &other);
    many.ranks = 64;
    one = other = ask(IBSHIFT_ALLTOALL, &many, 8);
    other.needs = IBSHIFT_ALG_SIZES;
    differ("needs", &one, &other);
    fixed.commutative = false;
    one = other = ask(IBSHIFT_REDUCE_SCATTER, &plan, 1 << 16);
    other.plan = &fixed;
    differ("commutative", &one, &other);
}

static void who_shares_what_counts(void **state)
{
    static const struct ibshift_crowd *const crowds[] = {NULL, &hosts, &ports, &processors};
    static const char *const names[] = {"crowd", "hosts", "ports", "processors"};
    struct ibshift_nodes by_halves, by_one;
    struct ibshift_plan plan = {.ranks = RANKS, .commutative = true}, nodes = plan, apart, root;
    struct ibshift_question one, other;

    assert_int_equal(ibshift_nodes_make(halves, RANKS, &by_halves), 0);
    assert_int_equal(ibshift_nodes_make(uneven, RANKS, &by_one), 0);
    for (int i = 0; i < 4; i++) {
        one = other = ask(IBSHIFT_ALLTOALL, &plan, 1 << 12);
        one.model = other.model = i % 2 == 1 ? &ibshift_model_software : one.model;
        one.crowd = &crowd;
        other.crowd = crowds[i];
        differ(names[i], &one, &other);
    }
    nodes.nodes = &by_halves;
    apart = root = nodes;
    apart.nodes = &by_one;
    one = other = ask(IBSHIFT_ALLREDUCE, &nodes, 1 << 12);
    one.near = other.near = &ibshift_model_node;
    other.plan = &apart;
    differ("nodes", &one, &other);
    other = one;
    other.near = NULL;
    differ("near", &one, &other);
    apart.root = 0;
    root.nodes = &by_one;
    root.root = RANKS - 1;
    one = ask(IBSHIFT_BCAST, &apart, 1 << 12);
    other = ask(IBSHIFT_BCAST, &root, 1 << 12);
    one.near = other.near = &ibshift_model_node;
    differ("root", &one, &other);
    ibshift_nodes_free(&by_halves);
    ibshift_nodes_free(&by_one);
}

static int spaces;

struct ibshift_price_space *__real_ibshift_price_space_new(void);
struct ibshift_price_space *__wrap_ibshift_price_space_new(void);

struct ibshift_price_space *__wrap_ibshift_price_space_new(void)
{
    spaces++;
    return __real_ibshift_price_space_new();
}

/* All prices of a search are found in one space. */
static void a_search_has_one_space(void **state)
{
    struct ibshift_plan plan = {.ranks = 16, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLREDUCE, &plan, 4096);

    spaces = 0;
    (void)ibshift_choose_best(&question);
    assert_int_equal(spaces, 1);
}

static int refused; /* the allocation that is: 1: the next one; below: none */

static bool is_refused(void)
{
    return refused > 0 && --refused == 0;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *at, size_t size)
{
    return is_refused() ? NULL : __real_realloc(at, size);
}

enum { HOSTS = 32, PER_HOST = 4 };

/* Of so many ranks few hosts are looked at. Each allocation fails once: the answer is the same, or it is said to be none; and
 * what is said to be none is not kept. */
static void who_lacks_memory_says_so(void **state)
{
    struct ibshift_place places[HOSTS * PER_HOST];
    struct ibshift_crowd many;
    struct ibshift_nodes nodes;
    struct ibshift_plan plan = {.ranks = HOSTS * PER_HOST, .nodes = &nodes, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLREDUCE, &plan, 1 << 14);
    struct ibshift_choice best, now;
    bool lacks = true;
    int tried = 0, said = 0;

    for (uint32_t rank = 0; rank < plan.ranks; rank++) {
        places[rank] = (struct ibshift_place){rank / PER_HOST + 1, rank / PER_HOST + 1, 16, false};
    }
    assert_int_equal(ibshift_crowd_make(places, plan.ranks, &many), 0);
    assert_int_equal(ibshift_nodes_make(many.host_of, plan.ranks, &nodes), 0);
    question.crowd = &many;
    question.near = &ibshift_model_node;
    question.is_brief = true;
    best = ibshift_choose_best(&question).best;
    question.lacks_memory = &lacks;
    for (bool has_struck = true; has_struck; tried++) {
        refused = tried + 1;
        lacks = false;
        now = ibshift_choose_best(&question).best;
        has_struck = refused == 0;
        refused = 0;
        said += lacks;
        assert_true(lacks || is_same(&now, &best));
    }
    print_message("%d allocations, %d of them told of\n", tried - 1, said);
    assert_true(said > 0);
    refused = 2; /* the first is the search's space */
    lacks = false;
    (void)ibshift_choose(&question);
    assert_true(lacks);
    spaces = 0;
    for (int again = 0; again < 2; again++) { /* the second time it is known */
        lacks = false;
        now = ibshift_choose(&question).best;
        assert_true(!lacks && is_same(&now, &best));
        assert_int_equal(spaces, 1);
    }
    ibshift_nodes_free(&nodes);
    ibshift_crowd_free(&many);
}

/* Who looks on now and then has the same plan in fewer segments, where these cost little more. */
static void unattended_pipelines_have_longer_segments(void **state)
{
    struct ibshift_plan plan = {.ranks = 4, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_REDUCE, &plan, 1 << 20);
    struct ibshift_model slow = ibshift_model_typical;
    struct ibshift_choice attended, now;

    slow.latency *= 50;
    slow.gap_byte *= 50;
    question.model = &slow;
    question.wish.alg = ibshift_alg_find(IBSHIFT_REDUCE, "chain");
    question.is_brief = true;
    attended = ibshift_choose(&question).best;
    question.is_unattended = true;
    now = ibshift_choose(&question).best;
    assert_ptr_equal(now.alg, attended.alg);
    assert_true(now.segments > 1 && now.segments < attended.segments);
    assert_true(now.price.last > attended.price.last && now.price.last < attended.price.last * 1.2);
}

/* Of ranks that choose together one may explain, for which it prices each plan to its end. */
static void brief_or_not_each_row_is_chosen_alike(void **state)
{
    for (size_t i = 0; i < ibshift_alg_count * 32; i++) {
        const struct ibshift_alg *alg = ibshift_alg_table[i / 32];
        struct ibshift_plan plan = {.ranks = i % 8 < 4 ? 4 : 70, .commutative = true};
        struct ibshift_question question = ask(alg->collective, &plan, 16384ull << i % 4 * 3);
        struct ibshift_choice all, brief;

        question.is_unattended = i / 8 % 2 != 0;
        question.wish.alg = i / 16 % 2 != 0 ? alg : NULL;
        all = ibshift_choose_best(&question).best;
        question.is_brief = true;
        brief = ibshift_choose_best(&question).best;
        assert_true(is_same(&all, &brief));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(brief_or_not_each_row_is_chosen_alike),
        cmocka_unit_test(what_is_known_is_the_best),
        cmocka_unit_test(what_is_asked_for_counts),
        cmocka_unit_test(who_shares_what_counts),
        cmocka_unit_test(a_search_has_one_space),
        cmocka_unit_test(who_lacks_memory_says_so),
        cmocka_unit_test(unattended_pipelines_have_longer_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

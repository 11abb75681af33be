/* What shared links add to a price: counted by hand, and as the contention of the same plan. */
#include <math.h>

#include "ask.h"
#include "fabric/paths/contend.h"
#include "fabric/read/synth.h"
#include "unit.h"

enum { BYTES = 1 << 16 };

struct place {
    struct ibshift_fabric *fabric;
    struct ibshift_paths *paths;
    uint32_t member_of[512];
};

/* Ranks 0, stride, 2 * stride ... of each turn on the hosts in their order. */
static struct place open_place(const char *text, uint32_t stride)
{
    struct ibshift_error err = {""};
    struct place p = {NULL};
    uint32_t hosts[512], at = 0;

    assert_int_equal(ibshift_synth_fabric(text, &p.fabric, &err), 0);
    assert_true(p.fabric->host_count <= 512);
    for (uint32_t host = 0; host < p.fabric->host_count; host++) {
        hosts[host] = host;
    }
    for (uint32_t first = 0; first < stride; first++) {
        for (uint32_t rank = first; rank < p.fabric->host_count; rank += stride) {
            p.member_of[rank] = at++;
        }
    }
    assert_int_equal(
        ibshift_paths_build_base(p.fabric, hosts, p.fabric->host_count, &p.paths, &err), 0);
    return p;
}

static void close_place(struct place *p)
{
    ibshift_paths_free(p->paths);
    ibshift_fabric_free(p->fabric);
}

static double added(const struct place *p, enum ibshift_collective collective, const char *name,
                    uint64_t bytes)
{
    struct ibshift_plan plan = {.ranks = p->paths->hosts, .radix = 1, .segments = 1};
    const struct ibshift_price_request request = {.alg = ibshift_alg_find(collective, name),
                                                  .plan = &plan,
                                                  .model = &ibshift_model_typical,
                                                  .bytes = bytes};
    struct ibshift_price price = {.last = 1};

    plan.commutative = true;
    assert_non_null(request.alg);
    assert_int_equal(ibshift_price_distance(&request, p->paths, p->member_of, &price), 0);
    return (price.last - 1) / ibshift_model_typical.gap_byte;
}

static void near_partners_share_nothing(void **state)
{
    struct place p = open_place("kary:4,2", 1);

    assert_int_equal(added(&p, IBSHIFT_ALLGATHER, "ring", BYTES), 0);
    assert_int_equal(added(&p, IBSHIFT_ALLGATHER, "ring", 0), 0);
    assert_int_equal(added(&p, IBSHIFT_BARRIER, "dissemination", 0), 0);
    close_place(&p);
    p = open_place("kary:4,1", 3); /* one switch */
    assert_int_equal(added(&p, IBSHIFT_ALLGATHER, "bruck", BYTES), 0);
    close_place(&p);
}

/* Leaves of four hosts with one link up: the last round of recursive doubling sends 8 blocks from each of them, 32 through the link,
 * the one before 4, that is 16; of a ring one host of a leaf sends up in each stage. */
static void a_thin_tree_counts_by_hand(void **state)
{
    struct place p = open_place("pgft:2;4,4;1,1;1,1", 1);

    assert_int_equal(p.paths->hosts, 16);
    assert_int_equal(round(added(&p, IBSHIFT_ALLGATHER, "recursive_doubling", BYTES)),
                     (32 - 8 + 16 - 4) * BYTES);
    assert_int_equal(round(added(&p, IBSHIFT_ALLGATHER, "ring", BYTES)), 0);
    assert_true(added(&p, IBSHIFT_ALLGATHER, "bine", BYTES) <
                added(&p, IBSHIFT_ALLGATHER, "recursive_doubling", BYTES) / 2);
    close_place(&p);
    p = open_place("pgft:2;4,4;1,1;1,1", 4); /* ranks dealt to the leaves: a ring always goes up */
    assert_int_equal(round(added(&p, IBSHIFT_ALLGATHER, "ring", BYTES)), 15 * 3 * BYTES);
    close_place(&p);
}

/* Messages of one length: what contention counts beyond one flow a stage. Also where not all rounds are looked at. */
static void it_is_the_contention_of_the_plan(void **state)
{
    static const char *const fabrics[] = {"kary:4,3", "torus:6x6,2", "dragonfly:4,2,2",
                                          "kary:20,2"};

    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        struct place p = open_place(fabrics[i], 7);
        struct ibshift_plan plan = {.ranks = p.paths->hosts, .radix = 1, .segments = 1};
        struct ibshift_plan_flows flows;
        struct ibshift_contention c;
        double found = added(&p, IBSHIFT_ALLGATHER, "ring", BYTES) / BYTES;

        assert_int_equal(ibshift_plan_flows_open(ibshift_alg_find(IBSHIFT_ALLGATHER, "ring"), &plan,
                                                 p.member_of, &flows),
                         0);
        assert_int_equal(ibshift_contend(p.paths, &flows.source, 1, 1, &c), 0);
        print_message("%s: %.3f, counted %.3f\n", fabrics[i], found, c.sum - c.stages);
        assert_true(c.sum > c.stages);
        assert_true(fabs(found - (c.sum - c.stages)) < 1e-6 * c.sum);
        ibshift_contention_free(&c);
        ibshift_plan_flows_close(&flows);
        close_place(&p);
    }
}

static uint32_t emitted;

static uint32_t emit_counted(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                             struct ibshift_step *out)
{
    emitted++;
    return ibshift_alg_find(IBSHIFT_ALLGATHER, "ring")->emit(plan, rank, round, out);
}

/* However many plans a search prices. */
static void rounds_of_a_search_are_bounded(void **state)
{
    struct place p = open_place("kary:8,3", 1);
    struct ibshift_plan plan = {.ranks = 512, .radix = 1, .segments = 1};
    struct ibshift_alg counted = *ibshift_alg_find(IBSHIFT_ALLGATHER, "ring");
    struct ibshift_price_request request = {.alg = &counted,
                                            .plan = &plan,
                                            .model = &ibshift_model_typical,
                                            .bytes = BYTES,
                                            .space = ibshift_price_space_new()};
    struct ibshift_price price = {.last = 1};

    counted.emit = emit_counted;
    for (int i = 0; i < 12; i++) {
        assert_int_equal(ibshift_price_distance(&request, p.paths, p.member_of, &price), 0);
    }
    print_message("%u rounds\n", emitted);
    assert_true(emitted <= (1 << 16) + 12 * 4 * 512);
    ibshift_price_space_free(request.space);
    close_place(&p);
}

/* Two plans that cost the same on links that nobody shares. */
static void a_choice_takes_near_partners(void **state)
{
    struct place p = open_place("pgft:2;16,4;1,4;1,1", 1);
    struct ibshift_plan plan = {.ranks = p.paths->hosts, .commutative = true};
    struct ibshift_question question = ask(IBSHIFT_ALLGATHER, &plan, 8192);
    struct ibshift_choice far, near;

    question.is_brief = true;
    far = ibshift_choose(&question).best;
    question.distance = (struct ibshift_distance){p.paths, p.member_of, NULL, 1};
    near = ibshift_choose(&question).best;
    print_message("%s k=%u, and where links count %s k=%u\n", far.alg->name, far.radix,
                  near.alg->name, near.radix);
    assert_false(is_same(&far, &near));
    assert_true(near.price.last >= far.price.last);
    question.distance.paths = NULL; /* each has its own place among what is kept */
    far = ibshift_choose(&question).best;
    assert_false(is_same(&far, &near));
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_partners_share_nothing),
        cmocka_unit_test(a_thin_tree_counts_by_hand),
        cmocka_unit_test(it_is_the_contention_of_the_plan),
        cmocka_unit_test(rounds_of_a_search_are_bounded),
        cmocka_unit_test(a_choice_takes_near_partners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

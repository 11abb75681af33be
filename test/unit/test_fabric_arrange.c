/* The order of an all-to-all: the shift where it is clean, a table where it is not, and why. */
#include <stdlib.h>
#include <string.h>

#include "fabric/table/found.h"
#include "fabric/paths/contend.h"
#include "fabric/graph/random.h"
#include "fabric/read/synth.h"
#include "unit.h"

struct world {
    struct ibshift_fabric *f;
    struct ibshift_placement *p;
    uint32_t *order, count;
};

/* keep hosts (0: all) in random order, each with so many ranks, numbered round robin. */
static struct world world_open(const char *text, uint32_t keep, uint32_t per_host, uint64_t seed)
{
    uint32_t hosts[2048], host_of[4096];
    struct ibshift_error err = {""};
    struct world w = {0};

    assert_int_equal(ibshift_synth_fabric(text, &w.f, &err), 0);
    assert_true(w.f->host_count <= 2048);
    keep = keep > 0 ? keep : w.f->host_count;
    for (uint32_t h = 0; h < w.f->host_count; h++) {
        hosts[h] = h;
    }
    ibshift_random_shuffle(&seed, hosts, w.f->host_count);
    for (uint32_t r = 0; r < keep * per_host; r++) {
        host_of[r] = hosts[r % keep];
    }
    if (ibshift_placement_open(w.f, host_of, keep * per_host, &w.p, &err) != 0 ||
        ibshift_placement_routes(w.p, true, &err) != 0 ||
        ibshift_placement_order(w.f, &w.order, &w.count, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return w;
}

static void world_close(struct world *w)
{
    ibshift_placement_close(w->p);
    free(w->order);
    ibshift_fabric_free(w->f);
}

static struct ibshift_arrangement arrange(const struct world *w, unsigned kinds)
{
    struct ibshift_arrangement a;
    struct ibshift_error err = {""};
    char why[200];

    if (ibshift_arrange(w->p, w->order, w->count, kinds, &a, &err) != 0) {
        fail_msg("%s", err.text);
    }
    if (a.kind == IBSHIFT_ARRANGE_TABLE) {
        assert_int_equal(ibshift_stages_check(&a.schedule.table, w->p->ranks, why, sizeof(why)), 0);
    } else {
        assert_int_equal(ibshift_order_check(&a.shift, w->p->ranks, why, sizeof(why)), 0);
    }
    return a;
}

static void circles_of_links_are_found(void **state)
{
    static const struct {
        const char *text;
        bool has_circle;
    } fabrics[] = {{"kary:4,3", false},          {"pgft:2;12,12;1,6;1,1", false},
                   {"kary:4,3/cut=5%:1", false}, {"dragonfly+:2,2,2,2", false},
                   {"hyperx:3x3,2", false},      {"dragonfly:2,4,2", true},
                   {"slimfly:5", true},          {"torus:5x5,1", true}};

    for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
        struct world w = world_open(fabrics[i].text, 0, 1, 1);
        bool has_circle = !fabrics[i].has_circle;

        assert_int_equal(ibshift_paths_circle(w.p->paths, &has_circle), 0);
        if (has_circle != fabrics[i].has_circle) {
            fail_msg("%s: %d", fabrics[i].text, has_circle);
        }
        world_close(&w);
    }
}

static void routing_order_on_a_whole_tree(void **state)
{
    for (uint32_t per_host = 1; per_host <= 2; per_host++) {
        struct world w = world_open("kary:4,3", 0, per_host, 3);
        struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL);

        assert_int_equal(a.kind, IBSHIFT_ARRANGE_ROUTING);
        assert_true(a.cost == a.bound);
        assert_true(a.worst == per_host);
        assert_non_null(strstr(a.reason, "routing order"));
        ibshift_arrangement_free(&a);
        world_close(&w);
    }
}

/* On a torus no order's single stages are clean, but those of some steps are even together. */
static void steps_on_a_torus(void **state)
{
    struct world w = world_open("torus:8x8,1", 0, 1, 5);
    struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL);

    assert_int_equal(a.kind, IBSHIFT_ARRANGE_STEPS);
    assert_true(a.shift.step > 1);
    assert_true(a.cost <= 1.15 * a.bound);
    assert_true(a.cost < a.tried[IBSHIFT_ARRANGE_TABLE]);
    assert_true(2 * a.cost < a.tried[IBSHIFT_ARRANGE_ROUTING]);
    assert_non_null(strstr(a.reason, "stages at once"));
    ibshift_arrangement_free(&a);
    world_close(&w);
}

static void table_for_a_part_of_it(void **state)
{
    struct world w = world_open("kary:6,3", 70, 1, 5);
    struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL), shift;

    shift = arrange(&w, 1u << IBSHIFT_ARRANGE_ROUTING);
    assert_int_equal(a.kind, IBSHIFT_ARRANGE_TABLE);
    assert_true(a.worst == 1);
    assert_true(a.cost <= 1.03 * a.bound);
    assert_true(shift.cost > 1.3 * a.cost);
    assert_true(a.tried[IBSHIFT_ARRANGE_ROUTING] == shift.cost);
    ibshift_arrangement_free(&a);
    ibshift_arrangement_free(&shift);
    world_close(&w);
}

/* So many blocks of so many places in routing order, at random; each host with one rank. */
static struct world world_of_blocks(const char *text, uint32_t blocks, uint32_t length,
                                    uint64_t seed)
{
    uint32_t block[2048], host_of[4096], all;
    struct ibshift_error err = {""};
    struct world w = {0};

    assert_int_equal(ibshift_synth_fabric(text, &w.f, &err), 0);
    assert_int_equal(ibshift_placement_order(w.f, &w.order, &w.count, &err), 0);
    all = w.count / length;
    for (uint32_t b = 0; b < all; b++) {
        block[b] = b;
    }
    ibshift_random_shuffle(&seed, block, all);
    for (uint32_t r = 0; r < blocks * length; r++) {
        host_of[r] = w.order[block[r % blocks] * length + r / blocks];
    }
    assert_int_equal(ibshift_placement_open(w.f, host_of, blocks * length, &w.p, &err), 0);
    assert_int_equal(ibshift_placement_routes(w.p, true, &err), 0);
    return w;
}

/* What a search for each pair leaves at 1.02 or 1.03 of the bound. */
static void tables_of_blocks(void **state)
{
    uint32_t clean = 0;

    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct world w = world_of_blocks("kary:12,3", 12, 36, seed);
        struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL);

        print_message("%u ranks: %g of %g\n", w.p->ranks, a.cost, a.bound);
        clean += a.cost <= 1.005 * a.bound;
        ibshift_arrangement_free(&a);
        world_close(&w);
    }
    assert_true(clean >= 6);
}

/* Though steps would be as cheap in the mean of 16 stages. */
static void clean_stages_are_taken(void **state)
{
    struct world w = world_open("kary:12,3", 144, 1, 1);
    struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL),
                               steps = arrange(&w, 1u << IBSHIFT_ARRANGE_STEPS);

    assert_int_equal(a.kind, IBSHIFT_ARRANGE_TABLE);
    assert_true(a.cost <= IBSHIFT_ARRANGE_ENOUGH * a.bound);
    assert_true(steps.cost <= a.cost);
    ibshift_arrangement_free(&a);
    ibshift_arrangement_free(&steps);
    world_close(&w);
}

static double cost_of(const struct world *w, enum ibshift_arrange_kind kind)
{
    struct ibshift_arrangement a = arrange(w, 1u << kind);
    double cost = a.cost;

    ibshift_arrangement_free(&a);
    return cost;
}

/* Both happen: tables of a tree that fit its order, and tables that fit none. */
static void the_first_order_is_the_cheaper_of_two(void **state)
{
    static const char *const texts[] = {"kary:4,3", "kary:3,3/minhop", "torus:4x4,1"};
    int taken[IBSHIFT_ARRANGE_KINDS] = {0};

    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w = world_open(texts[seed % 3], seed < 4 ? 0 : 5 + (uint32_t)seed % 7,
                                    1 + (uint32_t)seed / 4 % 2, seed);
        double rank = cost_of(&w, IBSHIFT_ARRANGE_RANK),
               routing = cost_of(&w, IBSHIFT_ARRANGE_ROUTING);
        struct ibshift_order shift, wanted;
        struct ibshift_error err = {""};
        enum ibshift_arrange_kind kind;

        assert_int_equal(ibshift_arrange_first(w.p, w.order, w.count, &shift, &kind, &err), 0);
        assert_int_equal(kind, rank < routing * (1 - 1e-6) ? IBSHIFT_ARRANGE_RANK
                                                           : IBSHIFT_ARRANGE_ROUTING);
        assert_int_equal(kind == IBSHIFT_ARRANGE_RANK
                             ? ibshift_placement_by_rank(w.p, &wanted, &err)
                             : ibshift_placement_along(w.p, w.order, w.count, false, &wanted, &err),
                         0);
        assert_memory_equal(shift.slot_of, wanted.slot_of, w.p->ranks * sizeof(*shift.slot_of));
        taken[kind]++;
        ibshift_order_free(&shift);
        ibshift_order_free(&wanted);
        world_close(&w);
    }
    print_message("routing order %d times, rank order %d times\n", taken[IBSHIFT_ARRANGE_ROUTING],
                  taken[IBSHIFT_ARRANGE_RANK]);
    assert_true(taken[IBSHIFT_ARRANGE_ROUTING] > 5 && taken[IBSHIFT_ARRANGE_RANK] > 0);
}

static void place_keepers_keep_a_shift_clean(void **state)
{
    struct world w = world_open("kary:6,3", 200, 1, 5);
    struct ibshift_arrangement a = arrange(&w, 1u << IBSHIFT_ARRANGE_KEEPERS);

    assert_true(a.worst == 1);
    assert_int_equal(a.stages, 215);
    ibshift_arrangement_free(&a);
    world_close(&w);
}

static void the_routing_is_named_as_the_limit(void **state)
{
    struct world w = world_open("torus:4x4,4", 0, 1, 1);
    struct ibshift_arrangement a = arrange(&w, IBSHIFT_ARRANGE_ALL);

    assert_true(a.share < 0.9);
    assert_non_null(strstr(a.reason, "The routing limits an all-to-all to 1/"));
    assert_non_null(strstr(a.reason, " -> "));
    ibshift_arrangement_free(&a);
    world_close(&w);
}

/* The same ranks on the same routes: the same table. */
static void same_every_time(void **state)
{
    struct world w = world_open("kary:6,3", 90, 2, 8);
    struct ibshift_arrangement a = arrange(&w, 1u << IBSHIFT_ARRANGE_TABLE),
                               b = arrange(&w, 1u << IBSHIFT_ARRANGE_TABLE);
    size_t cells = (size_t)w.p->ranks * a.schedule.table.stages;

    assert_int_equal(a.schedule.table.stages, b.schedule.table.stages);
    assert_memory_equal(a.schedule.to, b.schedule.to, cells * sizeof(*a.schedule.to));
    ibshift_arrangement_free(&a);
    ibshift_arrangement_free(&b);
    world_close(&w);
}

static void a_host_missing_in_the_order_is_named(void **state)
{
    struct world w = world_open("kary:4,2", 0, 1, 1);
    struct ibshift_order shift;
    struct ibshift_error err;

    assert_true(ibshift_placement_along(w.p, w.order, w.count - 1, false, &shift, &err) < 0);
    assert_non_null(strstr(err.text, ibshift_host_name(w.f, w.order[w.count - 1])));
    world_close(&w);
}

/* The shift as a plan costs what the shift as an order costs. */
static void plan_of_the_shift_agrees(void **state)
{
    const struct ibshift_alg *alg = ibshift_alg_find(IBSHIFT_ALLTOALL, "shift");
    struct world w = world_open("kary:4,3", 50, 1, 2);
    struct ibshift_plan plan = {.ranks = 50, .radix = 1, .segments = 1};
    struct ibshift_order shift;
    struct ibshift_stage_source source;
    struct ibshift_plan_flows flows;
    struct ibshift_contention a, b;
    struct ibshift_error err;

    assert_int_equal(ibshift_placement_by_rank(w.p, &shift, &err), 0);
    source = ibshift_source_shift(&shift, 50, w.p->member_of);
    assert_int_equal(ibshift_contend(w.p->paths, &source, 1, 1, &a), 0);
    assert_int_equal(ibshift_plan_flows_open(alg, &plan, w.p->member_of, &flows), 0);
    assert_int_equal(ibshift_contend(w.p->paths, &flows.source, 1, 2, &b), 0);
    assert_int_equal(a.stages, b.stages);
    assert_true(a.sum == b.sum && a.worst == b.worst && a.bound == b.bound);
    assert_memory_equal(a.total, b.total, a.links * sizeof(*a.total));
    ibshift_contention_free(&a);
    ibshift_contention_free(&b);
    ibshift_plan_flows_close(&flows);
    ibshift_order_free(&shift);
    world_close(&w);
}

/* Where no table may be had, a shift goes to the LIDs of the offset that makes it cheapest. */
static void a_shift_goes_to_the_best_lids(void **state)
{
    int others = 0;

    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct world w = world_open("kary:4,3/cut=10%/lmc=2", 40, 1, seed);
        struct ibshift_arrangement a = arrange(&w, 1u << IBSHIFT_ARRANGE_ROUTING);
        struct ibshift_stage_source source = ibshift_source_shift(&a.shift, 40, w.p->member_of);
        double sum[4];

        assert_int_equal(ibshift_paths_modes(w.p->paths), 4);
        for (source.lid_offset = 0; source.lid_offset < 4; source.lid_offset++) {
            struct ibshift_contention c;

            assert_int_equal(ibshift_contend(w.p->paths, &source, 1, 1, &c), 0);
            sum[source.lid_offset] = c.sum;
            ibshift_contention_free(&c);
            assert_true(a.cost <= c.sum);
        }
        assert_true(a.cost == sum[a.lid_offset]);
        assert_true((strstr(a.reason, ", to LID offset ") != NULL) == (a.lid_offset > 0));
        others += a.lid_offset > 0 && a.cost < sum[0];
        ibshift_arrangement_free(&a);
        world_close(&w);
    }
    assert_true(others >= 2);
}

/* Communicators alike have one set of routes; those of others go when they do. */
static void places_are_shared(void **state)
{
    struct world w = world_open("kary:4,3", 24, 2, 1);
    struct ibshift_error err = {""};
    struct ibshift_found_place *place[8];
    uint32_t host_of[48];
    struct ibshift_members m = {0, 48, NULL, host_of, w.f, w.order, w.count};

    for (uint32_t i = 0; i < 8; i++) { /* two alike, then two others */
        for (uint32_t rank = 0; rank < m.size; rank++) {
            host_of[rank] = w.p->host[w.p->member_of[(rank + i / 2) % m.size]];
        }
        assert_int_equal(ibshift_found_first(&m, i % 4 < 2, true, &place[i], &err), 0);
        assert_non_null(place[i]->placement->paths);
        assert_int_equal(place[i]->shift.slots, 2);
        assert_true(i == 0 || (place[i] == place[i - 1]) == (i % 2 == 1));
    }
    for (uint32_t i = 0; i < 8; i++) {
        ibshift_found_leave(place[i]);
    }
    ibshift_found_forget();
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(circles_of_links_are_found),
        cmocka_unit_test(routing_order_on_a_whole_tree),
        cmocka_unit_test(steps_on_a_torus),
        cmocka_unit_test(table_for_a_part_of_it),
        cmocka_unit_test(tables_of_blocks),
        cmocka_unit_test(clean_stages_are_taken),
        cmocka_unit_test(the_first_order_is_the_cheaper_of_two),
        cmocka_unit_test(place_keepers_keep_a_shift_clean),
        cmocka_unit_test(the_routing_is_named_as_the_limit),
        cmocka_unit_test(same_every_time),
        cmocka_unit_test(a_host_missing_in_the_order_is_named),
        cmocka_unit_test(plan_of_the_shift_agrees),
        cmocka_unit_test(a_shift_goes_to_the_best_lids),
        cmocka_unit_test(places_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Contention counted by the compact paths equals a plain walk of every route; known figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/paths/contend.h"
#include "fabric/paths/route.h"
#include "fabric/graph/random.h"
#include "fabric/graph/rate.h"
#include "fabric/paths/route.h"
#include "fabric/read/synth.h"
#include "unit.h"

struct job {
    struct ibshift_fabric *fabric;
    struct ibshift_paths *paths;
    uint32_t *hosts, *identity, count;
};

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* keep hosts at random (0: all), in the fabric's order or shuffled. */
static struct job job_open(const char *text, uint32_t keep, uint64_t seed, int shuffled)
{
    struct ibshift_error err = {""};
    struct job j = {0};

    if (ibshift_synth_fabric(text, &j.fabric, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    j.count = keep > 0 ? keep : j.fabric->host_count;
    j.hosts = malloc(j.fabric->host_count * sizeof(*j.hosts));
    j.identity = malloc(j.fabric->host_count * sizeof(*j.identity));
    assert_non_null(j.hosts);
    assert_non_null(j.identity);
    for (uint32_t i = 0; i < j.fabric->host_count; i++) {
        j.hosts[i] = j.identity[i] = i;
    }
    if (keep > 0 || shuffled) {
        ibshift_random_shuffle(&seed, j.hosts, j.fabric->host_count);
    }
    if (!shuffled) {
        qsort(j.hosts, j.count, sizeof(*j.hosts), ascending);
    }
    if (ibshift_paths_build(j.fabric, j.hosts, j.count, &j.paths, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return j;
}

static void job_close(struct job *j)
{
    ibshift_paths_free(j->paths);
    ibshift_fabric_free(j->fabric);
    free(j->hosts);
    free(j->identity);
}

static struct ibshift_contention shift_by(const struct job *j, uint32_t step, uint32_t together)
{
    struct ibshift_order order = {j->count, 1, step, j->identity, j->identity};
    struct ibshift_stage_source source = ibshift_source_shift(&order, j->count, j->identity);
    struct ibshift_contention c = {0};

    assert_int_equal(ibshift_contend(j->paths, &source, together, 2, &c), 0);
    return c;
}

static struct ibshift_contention shift(const struct job *j)
{
    return shift_by(j, 1, 1);
}

/* The dearest link of some stages of a shift together, by walking each route link by link. */
static uint32_t plain_stages(const struct job *j, uint32_t step, uint32_t first, uint32_t end)
{
    uint32_t *flows = calloc(j->fabric->port_count, sizeof(*flows)), worst = 0;
    uint32_t links[64];
    int walked;

    assert_non_null(flows);
    for (uint32_t i = 0; i < (end - first) * j->count; i++) {
        uint32_t from = i % j->count, stage = first + i / j->count;
        unsigned lid = ibshift_host_lid(j->fabric, j->hosts[(from + stage * step) % j->count]);
        int count =
            stage == 0 ? 0 : ibshift_route_walk(j->fabric, j->hosts[from], lid, links, 64, &walked);

        assert_true(count > 0 || stage == 0);
        for (int k = 0; k < count; k++) {
            worst = ++flows[links[k]] > worst ? flows[links[k]] : worst;
        }
    }
    free(flows);
    return worst;
}

static void same_as_a_plain_walk(void **state)
{
    static const char *const fabrics[] = {"kary:4,3",    "pgft:2;4,6;1,3;1,2", "qft:2;4,8;1,4;1,1",
                                          "torus:4x4,2", "kary:3,3/cut=3:1",   "kary:4,2/minhop"};

    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        for (int shuffled = 0; shuffled < 2; shuffled++) {
            struct job j = job_open(fabrics[f], 0, 42, shuffled);
            struct ibshift_contention c = shift(&j);
            double sum = 0;

            for (uint32_t d = 1; d < j.count; d++) {
                sum += plain_stages(&j, 1, d, d + 1);
            }
            assert_int_equal(c.stages, j.count - 1);
            assert_int_equal((long)c.sum, (long)sum);
            ibshift_contention_free(&c);
            job_close(&j);
        }
    }
}

/* Some at once: at least one message time for each, or what their dearest link carries. */
static void stages_together_as_a_plain_walk(void **state)
{
    static const char *const fabrics[] = {"kary:4,3", "torus:4x4,2", "kary:4,2/minhop"};

    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        for (uint32_t together = 2; together <= 16; together *= 2) {
            struct job j = job_open(fabrics[f], 0, 42, 1);
            uint32_t step = ibshift_order_step(j.count, 0.3), sum = 0;
            struct ibshift_contention c = shift_by(&j, step, together);

            for (uint32_t first = 0; first < j.count; first += together) {
                uint32_t end = first + together < j.count ? first + together : j.count;
                uint32_t cost = plain_stages(&j, step, first, end);

                sum += cost > end - first - (first == 0) ? cost : end - first - (first == 0);
            }
            assert_int_equal(c.stages, j.count - 1);
            assert_int_equal((long)c.sum, sum);
            ibshift_contention_free(&c);
            job_close(&j);
        }
    }
}

/* Each stage is clean either way; but with the distances in their order those in flight together
 * leave the cables of one direction idle and fill those of another. */
static void a_step_spreads_what_is_in_flight(void **state)
{
    struct job j = job_open("torus:4x4x4,1", 0, 0, 0);
    struct ibshift_contention near = shift_by(&j, 1, IBSHIFT_ORDER_FLIGHTS),
                              mixed =
                                  shift_by(&j, ibshift_order_step(j.count, IBSHIFT_ORDER_GOLDEN),
                                           IBSHIFT_ORDER_FLIGHTS);
    uint32_t most_near = 0, most_mixed = 0;

    for (uint32_t i = 0; i < j.paths->links; i++) {
        most_near = near.worst_flows[i] > most_near ? near.worst_flows[i] : most_near;
        most_mixed = mixed.worst_flows[i] > most_mixed ? mixed.worst_flows[i] : most_mixed;
    }
    print_message("a cable carries %u of %d in order, %u in steps\n", most_near,
                  IBSHIFT_ORDER_FLIGHTS, most_mixed);
    assert_true(most_mixed * 4 <= most_near * 3);
    ibshift_contention_free(&near);
    ibshift_contention_free(&mixed);
    job_close(&j);
}

static void shift_in_routing_order_is_clean(void **state)
{
    static const char *const fabrics[] = {"kary:4,3", "kary:12,2", "pgft:3;4,4,8;1,4,4;1,1,1"};

    for (size_t f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
        struct job j = job_open(fabrics[f], 0, 0, 0);
        struct ibshift_contention c = shift(&j);

        assert_true(c.worst == 1);
        assert_true(c.sum == j.count - 1);
        assert_true(c.bound == j.count - 1);
        ibshift_contention_free(&c);
        job_close(&j);
    }
}

/* The bound that is computed without stages is the one that the stages add up to. */
static void bound_agrees_with_the_stages(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t keep;
    } cases[] = {{"kary:4,3", 0}, {"kary:4,3", 37}, {"torus:6x6,2", 0}, {"kary:6,2/minhop", 30}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job j = job_open(cases[i].fabric, cases[i].keep, 7, 0);
        struct ibshift_contention c = shift(&j);
        double bound;
        uint32_t link;

        assert_int_equal(ibshift_alltoall_bound(j.paths, j.count, j.identity, &bound, &link), 0);
        assert_int_equal((long)bound, (long)c.bound);
        assert_int_equal(c.total[link], (long)bound);
        assert_true(c.sum >= c.bound);
        ibshift_contention_free(&c);
        job_close(&j);
    }
}

/* Two ranks on each of 16 hosts: the shift over places with two slots. */
static void several_ranks_a_host(void **state)
{
    struct job j = job_open("kary:4,2", 0, 0, 0);
    uint32_t ranks = 2 * j.count, rank_at[64], slot_of[64], member_of[64], link;
    struct ibshift_order order = {j.count, 2, 1, rank_at, slot_of};
    struct ibshift_stage_source source = ibshift_source_shift(&order, ranks, member_of);
    struct ibshift_contention c = {0};
    double bound;

    for (uint32_t r = 0; r < ranks; r++) {
        rank_at[r] = slot_of[r] = r;
        member_of[r] = r / 2;
    }
    assert_int_equal(ibshift_contend(j.paths, &source, 1, 1, &c), 0);
    assert_int_equal(ibshift_alltoall_bound(j.paths, ranks, member_of, &bound, &link), 0);
    assert_true(bound == 2 * (ranks - 2));
    assert_true(c.bound == bound);
    assert_true(c.worst == 2);
    assert_true(c.sum == bound);
    ibshift_contention_free(&c);
    job_close(&j);
}

static void no_route_is_said(void **state)
{
    struct ibshift_error err = {""};
    struct ibshift_fabric *f = NULL;
    struct ibshift_paths *p = NULL;
    uint32_t hosts[] = {0, 5};
    unsigned lid;

    assert_int_equal(ibshift_synth_fabric("kary:4,2", &f, &err), 0);
    lid = ibshift_host_lid(f, 5);
    for (uint32_t s = 0; s < f->switch_count; s++) {
        ibshift_lft_set(f, s, lid, 0);
    }
    assert_true(ibshift_paths_build(f, hosts, 2, &p, &err) < 0);
    assert_non_null(strstr(err.text, "has no usable entry"));
    ibshift_fabric_free(f);
}

static void rates_are_of_data(void **state)
{
    static const struct {
        const char *name;
        uint32_t mbps;
    } known[] = {{"1xSDR", 2000},    {"4xSDR", 8000},   {"4xDDR", 16000},  {"4xQDR", 32000},
                 {"4xFDR10", 40000}, {"4xFDR", 54546},  {"4xEDR", 100000}, {"2xHDR", 100000},
                 {"4xHDR", 200000},  {"2xNDR", 200000}, {"4xNDR", 400000}, {"12xXDR", 2400000}};
    char name[32];

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct ibshift_rate rate = ibshift_rate_parse(known[i].name);

        assert_int_equal(rate.mbps, known[i].mbps);
        ibshift_rate_name(rate, name, sizeof(name));
        assert_string_equal(name, known[i].name);
    }
    assert_int_equal(ibshift_rate_parse("0xEDR").mbps, 0);
    assert_int_equal(ibshift_rate_parse("4xADR").mbps, 0);
    ibshift_rate_name(ibshift_rate_of_lanes(4, 25781.25), name, sizeof(name));
    assert_string_equal(name, "4xEDR");
    ibshift_rate_name(ibshift_rate_of_lanes(4, 14060), name, sizeof(name));
    assert_string_equal(name, "4xFDR");
    assert_int_equal(ibshift_rate_of_lanes(13, 2500).mbps, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_a_plain_walk),
        cmocka_unit_test(stages_together_as_a_plain_walk),
        cmocka_unit_test(a_step_spreads_what_is_in_flight),
        cmocka_unit_test(shift_in_routing_order_is_clean),
        cmocka_unit_test(bound_agrees_with_the_stages),
        cmocka_unit_test(several_ranks_a_host),
        cmocka_unit_test(no_route_is_said),
        cmocka_unit_test(rates_are_of_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

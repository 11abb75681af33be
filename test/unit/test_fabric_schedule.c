/* Table schedules: valid, clean, near the bound, the same every time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/random.h"
#include "fabric/schedule.h"
#include "fabric/synth.h"

#define RANKS_MAX 512

typedef struct result {
    uint32_t stages;
    double cost, bound, worst;
    uint64_t checksum;
} result_t;

/* keep hosts at random (0: all) with so many ranks each. */
static uint32_t seat_ranks(const ibshift_fabric_t *f, uint32_t keep, uint32_t ranks_a_host,
                           uint64_t seed, uint32_t *hosts, uint32_t *member_of)
{
    uint32_t all[RANKS_MAX], count = 0;

    keep = keep > 0 ? keep : f->host_count;
    assert_true(f->host_count <= RANKS_MAX && keep * ranks_a_host <= RANKS_MAX);
    memset(all, 0, sizeof(all));
    for (uint32_t chosen = 0; chosen < keep;) {
        uint32_t h = keep < f->host_count ? ibshift_random_below(&seed, f->host_count) : chosen;

        chosen += all[h] == 0;
        all[h] = 1;
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        if (all[h]) {
            hosts[count++] = h;
        }
    }
    for (uint32_t r = 0; r < count * ranks_a_host; r++) {
        member_of[r] = r / ranks_a_host;
    }
    return count;
}

static void check_pairs(const ibshift_schedule_t *s, uint32_t ranks)
{
    char why[200] = "";

    if (ibshift_stages_check(&s->table, ranks, why, sizeof(why)) != 0) {
        fail_msg("%s", why);
    }
}

static result_t make(const char *text, uint32_t keep, uint32_t ranks_a_host, uint64_t seed)
{
    uint32_t hosts[RANKS_MAX], member_of[RANKS_MAX], sequence[RANKS_MAX], count, ranks, link;
    ibshift_error_t err = {""};
    ibshift_fabric_t *f = NULL;
    ibshift_paths_t *p = NULL;
    ibshift_schedule_t s;
    ibshift_stage_source_t source;
    ibshift_contention_t c = {0};
    result_t r = {0};

    assert_int_equal(ibshift_synth_fabric(text, &f, &err), 0);
    count = seat_ranks(f, keep, ranks_a_host, seed, hosts, member_of);
    ranks = count * ranks_a_host;
    for (uint32_t i = 0; i < ranks; i++) {
        sequence[i] = i;
    }
    assert_int_equal(ibshift_paths_build(f, hosts, count, &p, &err), 0);
    assert_int_equal(ibshift_alltoall_bound(p, ranks, member_of, &r.bound, &link), 0);
    assert_int_equal(ibshift_schedule_make(p, ranks, member_of, sequence, r.bound, 1, &s), 0);
    check_pairs(&s, ranks);
    source = ibshift_source_table(&s.table, ranks, s.lanes, member_of);
    assert_int_equal(ibshift_contend(p, &source, 1, &c), 0);
    r.stages = s.table.stages;
    r.cost = c.sum;
    r.worst = c.worst;
    for (size_t i = 0; i < (size_t)ranks * s.table.stages; i++) {
        r.checksum = r.checksum * 31 + s.to[i];
    }
    ibshift_contention_free(&c);
    ibshift_schedule_free(&s);
    ibshift_paths_free(p);
    ibshift_fabric_free(f);
    return r;
}

static void near_the_bound(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t keep;
        double at_most; /* of the bound */
    } cases[] = {{"kary:4,3", 0, 1.02},        {"kary:6,3", 60, 1.04},
                 {"kary:6,3", 150, 1.02},      {"kary:6,3/cut=10:3", 0, 1.02},
                 {"kary:8,2/minhop", 0, 1.02}, {"torus:4x4,2", 0, 1.25}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        result_t r = make(cases[i].fabric, cases[i].keep, 1, 5);

        print_message("%s %u: %g of %g\n", cases[i].fabric, cases[i].keep, r.cost, r.bound);
        assert_true(r.worst == 1);
        assert_true(r.cost >= r.bound);
        assert_true(r.cost <= cases[i].at_most * r.bound + 1);
    }
}

static void several_ranks_a_host(void **state)
{
    for (uint32_t ranks = 2; ranks <= 4; ranks *= 2) {
        result_t r = make("kary:4,3", 40, ranks, 9);

        assert_true(r.worst == 1);
        assert_true(r.cost <= 1.02 * r.bound + 1);
        assert_true(r.stages >= r.cost + ranks - 1); /* and the exchanges within hosts */
    }
}

/* A second LID a host, routed elsewhere, is used where it makes a stage clean. */
static void lanes_of_an_lmc(void **state)
{
    result_t one = make("kary:4,3", 40, 1, 3), two = make("kary:4,3/lmc=1", 40, 1, 3);

    assert_true(two.worst == 1);
    assert_true(two.cost <= one.cost + 1);
}

static void same_every_time(void **state)
{
    result_t a = make("kary:6,3", 100, 1, 11), b = make("kary:6,3", 100, 1, 11);

    assert_true(a.checksum == b.checksum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_bound),
        cmocka_unit_test(several_ranks_a_host),
        cmocka_unit_test(lanes_of_an_lmc),
        cmocka_unit_test(same_every_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

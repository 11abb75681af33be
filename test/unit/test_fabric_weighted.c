/* Stages of an all-to-all whose blocks differ: whole, within the links, near the bound. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/graph/random.h"
#include "fabric/matrix.h"
#include "fabric/paths/route.h"
#include "fabric/read/synth.h"
#include "fabric/weighted.h"
#include "unit.h"

enum { MOST = 128, BYTES = 65536, MEMORY = 64 << 20 };

static uint64_t bytes[MOST * MOST];
static uint32_t hosts[MOST], member_of[MOST];

/* So many hosts, ranks on each; a matrix of them. */
static struct ibshift_weighted_job job_on(const struct ibshift_fabric *f, uint32_t count,
                                          uint32_t ranks_a_host, const char *matrix)
{
    struct ibshift_weighted_job job = {
        .ranks = count * ranks_a_host, .member_of = member_of, .bytes = bytes, .memory = MEMORY};
    struct ibshift_paths *paths;
    struct ibshift_error err;

    assert_true(count <= f->host_count && job.ranks <= MOST);
    for (uint32_t i = 0; i < count; i++) {
        hosts[i] = i * (f->host_count / count);
    }
    for (uint32_t r = 0; r < job.ranks; r++) {
        member_of[r] = r / ranks_a_host;
    }
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(matrix_fill(bytes, job.ranks, matrix, BYTES, &err), 0);
    assert_int_equal(ibshift_paths_build_base(f, hosts, count, &paths, &err), 0);
    job.paths = paths;
    return job;
}

static void check_table(const struct ibshift_weighted_job *job,
                        const struct ibshift_weighted *found)
{
    char why[200] = "";
    double cost;

    if (ibshift_stages_check(&found->table, job->ranks, why, sizeof(why)) != 0) {
        fail_msg("%s", why);
    }
    assert_int_equal(ibshift_weighted_cost(job, &found->table, &cost), 0);
    assert_true(cost <= found->cost * 1.0001); /* a stage carries no more than it lasts */
}

/* The cost of the table, in parts of the bound. */
static double made(const char *fabric, uint32_t count, uint32_t ranks_a_host, const char *matrix)
{
    struct ibshift_fabric *f;
    struct ibshift_error err;
    struct ibshift_weighted_job job;
    struct ibshift_weighted found, again;
    struct ibshift_weighted_bound bound;
    double sum = 0, share;

    assert_int_equal(ibshift_synth_fabric(fabric, &f, &err), 0);
    job = job_on(f, count > 0 ? count : f->host_count, ranks_a_host, matrix);
    assert_int_equal(ibshift_weighted_bound(&job, &bound), 0);
    assert_int_equal(ibshift_weighted_make(&job, &found), 0);
    check_table(&job, &found);
    for (uint32_t from = 0; from < job.ranks; from++) {
        for (uint32_t to = 0; to < job.ranks; to++) {
            if (ibshift_weighted_takes(&job, from, to, bound.link)) {
                sum += (double)bytes[(size_t)from * job.ranks + to];
            }
        }
    }
    assert_float_equal(sum, bound.time, bound.time * 1e-9); /* all cables are alike */
    assert_int_equal(ibshift_weighted_make(&job, &again), 0);
    assert_memory_equal(found.to, again.to,
                        (size_t)job.ranks * found.table.stages * sizeof(uint32_t));
    share = bound.time > 0 ? found.cost / bound.time : 1;
    ibshift_weighted_free(&found);
    ibshift_weighted_free(&again);
    ibshift_paths_free((struct ibshift_paths *)(uintptr_t)job.paths);
    ibshift_fabric_free(f);
    return share;
}

static void what_is_even_is_at_the_bound(void **state)
{
    assert_float_equal(made("kary:4,2", 0, 1, "uniform"), 1, 0.001);
    assert_float_equal(made("kary:4,3", 0, 1, "uniform"), 1, 0.001);
    assert_in_range(1000 * made("kary:4,3", 0, 1, "topk:4:1"), 1000, 1050);
}

/* Whole blocks, stage after stage: with some rest at the end of each. */
static void what_differs_is_near_it(void **state)
{
    static const char *const matrices[] = {"random:1",  "spread:10:1", "spread:1000:1",
                                           "hot:300:1", "sparse:4:1",  "builder:10:1",
                                           "topk:16:1"};

    for (size_t i = 0; i < sizeof(matrices) / sizeof(matrices[0]); i++) {
        assert_in_range(1000 * made("kary:4,3", 0, 1, matrices[i]), 1000, 1350);
        assert_in_range(1000 * made("kary:4,3", 23, 1, matrices[i]), 1000, 1500);
        assert_in_range(1000 * made("pgft:2;4,8;1,2;1,1", 0, 1, matrices[i]), 1000, 1350);
        assert_in_range(1000 * made("torus:4x4,2", 0, 1, matrices[i]), 1000, 1500);
    }
}

static void ranks_of_a_host_share_its_cable(void **state)
{
    assert_in_range(1000 * made("kary:4,2", 0, 4, "random:1"), 1000, 1300);
    assert_in_range(1000 * made("kary:4,2", 0, 3, "spread:1000:5"), 1000, 1300);
    assert_in_range(1000 * made("kary:4,2", 2, 1, "random:1"), 1000, 1001);
    assert_in_range(1000 * made("kary:4,2", 1, 4, "random:1"), 1000, 1001);
    assert_in_range(1000 * made("kary:4,2", 1, 1, "random:1"), 1000, 1001);
}

static void a_search_keeps_to_its_memory(void **state)
{
    struct ibshift_fabric *f;
    struct ibshift_error err;
    struct ibshift_weighted_job job;
    struct ibshift_weighted found;

    assert_int_equal(ibshift_synth_fabric("kary:4,2", &f, &err), 0);
    job = job_on(f, f->host_count, 4, "random:1");
    job.memory = 1000;
    assert_int_equal(ibshift_weighted_make(&job, &found), -E2BIG);
    job.memory = (size_t)job.ranks * job.ranks * 24 + 4096;
    assert_int_equal(ibshift_weighted_make(&job, &found), -E2BIG);
    assert_null(found.to);
    ibshift_paths_free((struct ibshift_paths *)(uintptr_t)job.paths);
    ibshift_fabric_free(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_even_is_at_the_bound),
        cmocka_unit_test(what_differs_is_near_it),
        cmocka_unit_test(ranks_of_a_host_share_its_cable),
        cmocka_unit_test(a_search_keeps_to_its_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

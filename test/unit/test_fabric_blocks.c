/* Tables of blocks of hosts: memory that is kept to, several LIDs, and no try that cannot differ. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "fabric/paths/contend.h"
#include "fabric/read/synth.h"
#include "fabric/table/packing.h"
#include "fabric/table/schedule.h"
#include "unit.h"

enum { RANKS_MAX = 512 };
#define MEMORY ((size_t)256 << 20)
#define SMALL  ((size_t)96 << 10) /* what grows with the ranks alone */

static size_t used, peak;
static uint32_t packings; /* one for each table that is begun */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
void __real_free(void *at);
int __real_ibshift_packing_open(struct ibshift_packing *packing, const struct ibshift_paths *paths,
                                uint32_t ranks, const uint32_t *member_of, bool cables,
                                const float cost[2]);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
void __wrap_free(void *at);
int __wrap_ibshift_packing_open(struct ibshift_packing *packing, const struct ibshift_paths *paths,
                                uint32_t ranks, const uint32_t *member_of, bool cables,
                                const float cost[2]);

static void *count_in(void *at)
{
    used += malloc_usable_size(at);
    peak = used > peak ? used : peak;
    return at;
}

void *__wrap_malloc(size_t size)
{
    return count_in(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return count_in(__real_calloc(count, size));
}

void *__wrap_realloc(void *at, size_t size)
{
    used -= malloc_usable_size(at);
    return count_in(__real_realloc(at, size));
}

void __wrap_free(void *at)
{
    used -= malloc_usable_size(at);
    __real_free(at);
}

int __wrap_ibshift_packing_open(struct ibshift_packing *packing, const struct ibshift_paths *paths,
                                uint32_t ranks, const uint32_t *member_of, bool cables,
                                const float cost[2])
{
    packings++;
    return __real_ibshift_packing_open(packing, paths, ranks, member_of, cables, cost);
}

struct job {
    struct ibshift_fabric *f;
    struct ibshift_paths *p;
    uint32_t ranks, each[RANKS_MAX];
    double bound;
};

/* A rank on each of the first hosts. */
static struct job job_open(const char *fabric, uint32_t ranks)
{
    struct ibshift_error err = {""};
    struct job job = {.ranks = ranks};
    uint32_t link;

    for (uint32_t r = 0; r < ranks; r++) {
        job.each[r] = r;
    }
    assert_int_equal(ibshift_synth_fabric(fabric, &job.f, &err), 0);
    assert_true(ranks <= job.f->host_count && ranks <= RANKS_MAX);
    assert_int_equal(ibshift_paths_build(job.f, job.each, ranks, &job.p, &err), 0);
    assert_int_equal(ibshift_alltoall_bound(job.p, ranks, job.each, &job.bound, &link), 0);
    return job;
}

static void job_close(struct job *job)
{
    ibshift_paths_free(job->p);
    ibshift_fabric_free(job->f);
}

static int of_blocks(const struct job *job, uint32_t length, size_t memory,
                     struct ibshift_schedule *s)
{
    const struct ibshift_schedule_job blocks = {.paths = job->p,
                                                .ranks = job->ranks,
                                                .member_of = job->each,
                                                .sequence = job->each,
                                                .memory = memory,
                                                .block = length};

    return ibshift_schedule_make(&blocks, s);
}

/* With the least memory that is not refused, no more than that is taken. */
static void memory_is_kept_to(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t ranks, length;
    } cases[] = {{"kary:8,3", 512, 8}, {"kary:8,3", 512, 2}, {"kary:6,3/lmc=1", 216, 6}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_open(cases[i].fabric, cases[i].ranks);
        size_t least = 0, enough = MEMORY, before;
        struct ibshift_schedule s;

        while (enough - least > 1024) {
            size_t tried = least + (enough - least) / 2;
            int status = of_blocks(&job, cases[i].length, tried, &s);

            if (status == 0) {
                ibshift_schedule_free(&s);
                enough = tried;
            } else {
                least = tried;
            }
        }
        before = peak = used;
        assert_int_equal(of_blocks(&job, cases[i].length, enough, &s), 0);
        print_message("%s in %u: %zu of %zu bytes\n", cases[i].fabric, cases[i].length,
                      peak - before, enough);
        assert_true(peak - before <= enough + SMALL);
        ibshift_schedule_free(&s);
        assert_int_equal(used, before);
        job_close(&job);
    }
}

static void several_lids(void **state)
{
    struct job job = job_open("kary:4,3/lmc=1", 64);
    struct ibshift_stage_source source;
    struct ibshift_contention c = {0};
    struct ibshift_schedule s;
    char why[200] = "";

    assert_int_equal(of_blocks(&job, 4, MEMORY, &s), 0);
    assert_non_null(s.lid_offsets);
    if (ibshift_stages_check(&s.table, job.ranks, why, sizeof(why)) != 0) {
        fail_msg("%s", why);
    }
    source = ibshift_source_table(&s.table, job.ranks, s.lid_offsets, job.each);
    assert_int_equal(ibshift_contend(job.p, &source, 1, 1, &c), 0);
    print_message("%g of %g\n", c.sum, job.bound);
    assert_true(c.sum <= IBSHIFT_REPAIR_ENOUGH * job.bound + 1e-6);
    ibshift_contention_free(&c);
    ibshift_schedule_free(&s);
    job_close(&job);
}

/* First fit places all pairs of these blocks, and the routes do not repeat with them: another seed
 * finds the same. */
static void tried_once(void **state)
{
    static const struct {
        const char *fabric;
        uint32_t ranks, length;
    } cases[] = {{"torus:4x4,1", 16, 8}, {"torus:8x8,1", 64, 32}, {"kary:6,2", 36, 18}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job job = job_open(cases[i].fabric, cases[i].ranks);
        struct ibshift_schedule s;

        packings = 0;
        assert_int_equal(of_blocks(&job, cases[i].length, MEMORY, &s), -EDOM);
        assert_in_range(packings, 1, 2);
        job_close(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_kept_to),
        cmocka_unit_test(several_lids),
        cmocka_unit_test(tried_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Collectives of the executor over virtual time: against closed forms, with all bytes looked at. */
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include "fabric/graph/random.h"
#include "fabric/paths/route.h"
#include "fabric/read/synth.h"
#include "sim/job.h"
#include "unit.h"

enum { FLIGHT = 7000, ROUTING = 90000, MTU = 1000, RANKS_MAX = 64 };
#define PACKET 250000u /* ps of 1,000 bytes at 32 Gb/s */

struct bench {
    struct ibshift_fabric *graph;
    uint32_t host_of[RANKS_MAX];
    struct ibshift_plan plan;
    struct sim_job_params params;
    struct sim_run_params world;
    struct sim_run run;
};

static void set_up(struct bench *b, const char *fabric, uint32_t ranks, const char *alg)
{
    struct ibshift_error err;

    memset(b, 0, sizeof(*b));
    assert_int_equal(ibshift_synth_fabric(fabric, &b->graph, &err), 0);
    for (uint32_t r = 0; r < ranks; r++) {
        b->host_of[r] = r;
    }
    b->plan = (struct ibshift_plan){.ranks = ranks, .radix = 1, .segments = 1};
    b->params = (struct sim_job_params){.host_of = b->host_of,
                                        .ranks = ranks,
                                        .alg = ibshift_alg_find(IBSHIFT_ALLTOALL, alg),
                                        .plan = &b->plan,
                                        .bytes = 20 * MTU,
                                        .window = 1,
                                        .verify = true};
    b->world = (struct sim_run_params){.graph = b->graph,
                                       .fabric = {.mtu = MTU,
                                                  .buffer = 50000,
                                                  .lanes = 1,
                                                  .reads = 3,
                                                  .flight = FLIGHT,
                                                  .routing = ROUTING,
                                                  .rate = 32000},
                                       .net = {.max_eager = SIZE_MAX, .copy_rate = 80000}};
    assert_non_null(b->params.alg);
}

static void run(struct bench *b)
{
    struct ibshift_error err;

    assert_int_equal(sim_run_open(&b->run, &b->world, &b->params, 1, &err), 0);
    sim_run_go(&b->run);
}

static void tear_down(struct bench *b)
{
    sim_run_close(&b->run);
    ibshift_fabric_free(b->graph);
}

/* One switch, window 1: a stage is a message's way and the acknowledgement's way back. */
#define STAGE (FLIGHT + ROUTING + 20 * PACKET + FLIGHT + 2 * (FLIGHT + ROUTING))

static void eager_shift(void **state)
{
    struct bench b;

    set_up(&b, "kary:4,1", 4, "shift");
    run(&b);
    assert_int_equal(b.run.status, 0);
    assert_int_equal(b.run.job[0].time, 3 * STAGE);
    assert_int_equal(b.run.net->known, 0);
    tear_down(&b);
}

/* Each grant of a stage leaves when its receiver is done with the message before, and a sender has
 * its acknowledgement later than that: by what the grant takes longer, a stage grows. */
static void granted_shift(void **state)
{
    const uint64_t back = 2 * (FLIGHT + ROUTING);
    struct bench b;

    set_up(&b, "kary:4,1", 4, "shift");
    b.world.net.max_eager = 1000;
    b.world.net.control = back + 50000;
    run(&b);
    assert_int_equal(b.run.status, 0);
    assert_int_equal(b.run.job[0].time, b.world.net.control + STAGE + 2 * (STAGE + 50000));
    tear_down(&b);
}

/* Two ranks of a host copy to each other at once; their host's memory may have less than both. */
static void copies_share_memory(void **state)
{
    const uint64_t copy = UINT64_C(20) * MTU * 8000000 / 80000;
    struct bench b;

    for (uint32_t memory = 0; memory <= 80000; memory += 80000) {
        set_up(&b, "kary:4,1", 2, "shift");
        b.host_of[1] = 0;
        b.world.net.memory_rate = memory;
        b.world.net.copy_flight = 5000;
        run(&b);
        assert_int_equal(b.run.status, 0);
        assert_int_equal(b.run.job[0].time, (memory > 0 ? 2 * copy : copy) + 5000);
        tear_down(&b);
    }
}

/* A rank copies to one other after the other, however many it has posted. */
static void a_rank_copies_one_at_a_time(void **state)
{
    const uint64_t copy = UINT64_C(20) * MTU * 8000000 / 80000;
    struct bench b;

    set_up(&b, "kary:4,1", 4, "linear");
    b.params.window = 8;
    for (uint32_t r = 0; r < 4; r++) {
        b.host_of[r] = 0;
    }
    run(&b);
    assert_int_equal(b.run.status, 0);
    assert_int_equal(b.run.job[0].time, 3 * copy);
    tear_down(&b);
}

static void overheads(void **state)
{
    struct bench b;

    set_up(&b, "kary:4,1", 2, "shift");
    b.world.net.overhead = 10000;
    run(&b);
    /* a post before the message leaves; at the end the acknowledgement's, when receive and its end
     * are long over */
    assert_int_equal(b.run.job[0].time, 10000 + STAGE + 10000);
    tear_down(&b);
}

static void bound_is_the_busiest_cable(void **state)
{
    struct bench b;
    uint32_t link;

    set_up(&b, "kary:4,2", 16, "shift");
    run(&b);
    assert_int_equal(b.run.status, 0);
    assert_int_equal(sim_run_bound(&b.run, &link), 15 * 20 * PACKET);
    tear_down(&b);
}

/* Each message to the LID that its pair has: what each cable carries is what the tables say. */
static void lids_of_pairs(void **state)
{
    enum { RANKS = 16, LIDS = 4 };
    uint8_t offsets[RANKS * RANKS];
    uint64_t seed = 7, *loads;
    struct bench b;

    set_up(&b, "kary:4,2/cut=3/lmc=2", RANKS, "shift");
    loads = calloc(b.graph->port_count, sizeof(*loads));
    for (uint32_t at = 0; at < RANKS * RANKS; at++) {
        uint32_t from = at / RANKS, to = at % RANKS, links[64];
        int count, walked;

        offsets[at] = (uint8_t)ibshift_random_below(&seed, LIDS);
        count = from == to
                    ? 0
                    : ibshift_route_walk(b.graph, from, ibshift_host_lid(b.graph, to) + offsets[at],
                                         links, 64, &walked);
        assert_true(count >= 0);
        for (int i = 0; i < count; i++) {
            loads[links[i]] += 20 * PACKET;
        }
    }
    b.params.lid_offsets = offsets;
    run(&b);
    assert_int_equal(b.run.status, 0);
    for (uint32_t i = 0; i < b.graph->port_count; i++) {
        assert_int_equal(b.run.fabric->ports[i].busy[false], loads[i]);
    }
    free(loads);
    tear_down(&b);
}

/* Two jobs of two hosts each, at these places of the fabric; the second begins later. */
static void run_pair(struct bench *b, const char *fabric, const uint32_t (*hosts)[2],
                     uint64_t start, uint32_t calls, uint64_t *times)
{
    struct sim_job_params jobs[2];
    struct ibshift_error err;

    set_up(b, fabric, 2, "shift");
    for (int j = 0; j < 2; j++) {
        jobs[j] = b->params;
        jobs[j].host_of = hosts[j];
    }
    jobs[1].start = start;
    jobs[1].calls = calls;
    assert_int_equal(sim_run_open(&b->run, &b->world, jobs, 2, &err), 0);
    sim_run_go(&b->run);
    assert_int_equal(b->run.status, 0);
    times[0] = b->run.job[0].time;
    times[1] = b->run.job[1].time;
    tear_down(b);
}

/* On cables of their own they take what they take alone, each from its own start on; over one
 * cable they share it, however late the second begins: the first goes on until it has ended. */
static void jobs_beside_each_other(void **state)
{
    static const uint32_t apart[][2] = {{0, 1}, {2, 3}}, across[][2] = {{0, 2}, {1, 3}};
    const uint64_t far = STAGE + 4 * (FLIGHT + ROUTING) + 2 * (FLIGHT + ROUTING);
    struct bench b;
    uint64_t times[2];

    run_pair(&b, "kary:2,2", apart, 12345, 3, times);
    assert_int_equal(times[0], STAGE);
    assert_int_equal(times[1], 3 * STAGE);
    for (uint64_t start = 0; start < 20 * STAGE; start += 7 * STAGE) {
        run_pair(&b, "pgft:2;2,2;1,1;1,1", across, start, 1, times);
        assert_in_range(times[0], far - 20 * PACKET, 2 * far);
        assert_in_range(times[1], far + 10 * PACKET, 2 * far);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_shift),
        cmocka_unit_test(granted_shift),
        cmocka_unit_test(overheads),
        cmocka_unit_test(bound_is_the_busiest_cable),
        cmocka_unit_test(copies_share_memory),
        cmocka_unit_test(a_rank_copies_one_at_a_time),
        cmocka_unit_test(jobs_beside_each_other),
        cmocka_unit_test(lids_of_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

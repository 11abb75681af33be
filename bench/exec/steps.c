/*
 * All ranks of a collective in one thread over the loop, so that a profiler can count what the
 * executor costs. Prints the number of steps; bench/exec/run divides by it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/engine.h"
#include "net_loop.h"

enum { UNIT = 8 };

struct job {
    const struct ibshift_alg *alg;
    struct ibshift_plan plan;
    uint32_t window;
    size_t size;
    uint32_t runs;
    struct ibshift_loop *loop;
    struct ibshift_engine **engines;
    struct ibshift_op *ops;
};

static void die(const char *what)
{
    fprintf(stderr, "steps: %s\n", what);
    exit(2);
}

static void *need(void *memory)
{
    if (memory == NULL) {
        die("out of memory");
    }
    return memory;
}

static void add(void *context, const void *in, void *inout, size_t elements)
{
    const uint64_t *from = in;
    uint64_t *to = inout;

    (void)context;
    for (size_t i = 0; i < elements; i++) {
        to[i] += from[i];
    }
}

static void prepare(struct job *job, uint32_t rank)
{
    struct ibshift_op *op = &job->ops[rank];
    struct ibshift_op_params *params = &op->params;
    uint32_t pieces = ibshift_alg_pieces(job->alg, &job->plan);
    struct ibshift_blocks block = {.layout = IBSHIFT_UNIFORM, .unit = job->size};
    size_t length;

    if (job->alg->pieces != NULL) {
        block = (struct ibshift_blocks){
            .layout = IBSHIFT_PIECES, .unit = UNIT, .elements = job->size / UNIT, .pieces = pieces};
    }
    length = (job->size + UNIT) * (job->plan.ranks + pieces);
    params->alg = job->alg;
    params->plan = job->plan;
    params->rank = rank;
    params->window = job->window;
    params->element = UNIT;
    params->reduce = add;
    for (int i = 0; i < IBSHIFT_TMP; i++) {
        params->blocks[i] = block;
        params->blocks[i].base = need(calloc(1, length));
    }
    length = ibshift_tmp_offsets(job->alg, &job->plan, rank, &block) + 1;
    length = ibshift_tmp_layout(job->alg, &job->plan, rank, &block,
                                need(calloc(length, sizeof(size_t))), &params->blocks[IBSHIFT_TMP]);
    params->blocks[IBSHIFT_TMP].base = need(calloc(1, length + 1));
    ibshift_op_init(op);
    if (ibshift_engine_attach(job->engines[rank], op) != 0) {
        die("out of memory");
    }
}

/* What is profiled: nothing but the executor's calls. */
__attribute__((noinline)) static void run_all(struct job *job)
{
    for (uint32_t run = 0; run < job->runs; run++) {
        bool is_done = false;

        for (uint32_t rank = 0; rank < job->plan.ranks; rank++) {
            ibshift_engine_start(job->engines[rank], &job->ops[rank], run);
        }
        while (!is_done) {
            is_done = true;
            for (uint32_t rank = 0; rank < job->plan.ranks; rank++) {
                if (!ibshift_op_is_done(&job->ops[rank])) {
                    ibshift_engine_progress(job->engines[rank]);
                    is_done = false;
                }
            }
        }
    }
}

static uint64_t steps_of(const struct job *job)
{
    struct ibshift_step steps[IBSHIFT_ROUND_STEPS];
    uint64_t count = 0;

    for (uint32_t rank = 0; rank < job->plan.ranks; rank++) {
        for (uint32_t round = 0; round < job->alg->rounds(&job->plan, rank); round++) {
            count += (uint64_t)job->alg->emit(&job->plan, rank, round, steps);
        }
    }
    return count * job->runs;
}

static uint32_t number(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value == 0 || value > 1 << 24) {
        die("a number is out of range");
    }
    return (uint32_t)value;
}

int main(int argc, char **argv)
{
    struct job job = {0};
    struct ibshift_loop_options loop = {.max_eager = 4096, .room = 64, .depth = 64, .tick = 1};
    struct ibshift_engine_options engine = {0};
    char why[200];

    if (argc != 7) {
        die("usage: steps COLLECTIVE ALGORITHM RANKS BYTES WINDOW RUNS");
    }
    job.alg = ibshift_alg_find(ibshift_collective_find(argv[1]), argv[2]);
    if (job.alg == NULL) {
        die("no such algorithm");
    }
    loop.peers = number(argv[3]);
    job.plan =
        (struct ibshift_plan){.ranks = loop.peers, .radix = 1, .segments = 1, .commutative = true};
    job.size = number(argv[4]);
    job.window = number(argv[5]);
    job.runs = number(argv[6]);
    if (ibshift_alg_check(job.alg, &job.plan, why, sizeof(why)) != 0) {
        die(why);
    }
    job.loop = need(ibshift_loop_create(&loop));
    job.engines = need(calloc(loop.peers, sizeof(struct ibshift_engine *)));
    job.ops = need(calloc(loop.peers, sizeof(struct ibshift_op)));
    for (uint32_t rank = 0; rank < loop.peers; rank++) {
        job.engines[rank] = need(ibshift_engine_create(ibshift_loop_net(job.loop, rank), &engine));
        prepare(&job, rank);
    }
    run_all(&job);
    printf("steps %llu\n", (unsigned long long)steps_of(&job));
    return 0;
}

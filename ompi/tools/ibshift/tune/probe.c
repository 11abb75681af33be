#include "tune/probe.h"

#include <math.h>
#include <string.h>

static uint32_t post_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    (void)rank;
    return plan->segments;
}

/* need of a receive: the round of the empty message. */
static uint32_t emit_message(uint32_t rank, uint32_t round, uint32_t count, uint32_t need,
                             struct ibshift_step *out)
{
    memset(out, 0, sizeof(*out));
    out->kind = rank == 0 ? IBSHIFT_STEP_SEND : IBSHIFT_STEP_RECV;
    out->buf = rank == 0 ? IBSHIFT_SEND : IBSHIFT_RECV;
    out->count = count;
    out->peer = 1 - rank;
    out->tag = round;
    out->need = rank == 0 ? 0 : need;
    return 1;
}

static uint32_t post_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                          struct ibshift_step *out)
{
    (void)plan;
    return emit_message(rank, round, 1, 0, out);
}

/* The radix says whether an empty message comes first. */
static uint32_t stream_rounds(const struct ibshift_plan *plan, uint32_t rank)
{
    (void)rank;
    return plan->radix + plan->segments + 1;
}

static uint32_t stream_emit(const struct ibshift_plan *plan, uint32_t rank, uint32_t round,
                            struct ibshift_step *out)
{
    if (round < plan->radix + plan->segments) {
        return emit_message(rank, round, round >= plan->radix, round > 0 ? plan->radix : 0, out);
    }
    emit_message(1 - rank, round, 0, 0, out);
    out->peer = 1 - rank;
    out->need = rank == 1 ? round : 0;
    return 1;
}

/* Blocks of one size, as those of a scatter. */
static const struct ibshift_alg post = {
    .collective = IBSHIFT_SCATTER, .name = "post", .rounds = post_rounds, .emit = post_emit};
static const struct ibshift_alg stream = {
    .collective = IBSHIFT_SCATTER, .name = "stream", .rounds = stream_rounds, .emit = stream_emit};

const struct ibshift_alg *tune_alg(const struct tune_probe *probe)
{
    return probe->kind == TUNE_STREAM ? &stream : &post;
}

struct ibshift_plan tune_plan(const struct tune_probe *probe, uint64_t eager)
{
    return (struct ibshift_plan){.ranks = 2,
                                 .segments = probe->count,
                                 .radix = probe->kind == TUNE_STREAM && probe->bytes > eager};
}

/* Rows as long as the executor's usual window, so that a gap shows behind what processors do; 4 KiB
 * and more are for the bytes. */
int tune_probes(uint64_t eager, struct tune_probe *probes)
{
    static const uint32_t rows[] = {1, 2, 4, 8, 16, 32};
    static const struct tune_probe streams[] = {
        {TUNE_STREAM, 1, TUNE_SHORT},  {TUNE_STREAM, 2, TUNE_SHORT},
        {TUNE_STREAM, 4, TUNE_SHORT},  {TUNE_STREAM, 8, TUNE_SHORT},
        {TUNE_STREAM, 16, TUNE_SHORT}, {TUNE_STREAM, TUNE_COUNT_MAX, TUNE_SHORT},
        {TUNE_STREAM, 1, 1024},        {TUNE_STREAM, TUNE_COUNT_MAX, 1024},
        {TUNE_STREAM, 1, 4096},        {TUNE_STREAM, 8, 4096},
        {TUNE_STREAM, 1, 32768},       {TUNE_STREAM, 8, 32768},
        {TUNE_STREAM, 1, 262144},
    };
    int count = 0;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        probes[count++] = (struct tune_probe){TUNE_POST, rows[i], TUNE_SHORT};
        probes[count++] = (struct tune_probe){TUNE_TAKE, rows[i], TUNE_SHORT};
    }
    probes[count++] = (struct tune_probe){TUNE_POST, 4, 4096 < eager ? 4096 : eager};
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        probes[count++] = streams[i];
    }
    return count;
}

double tune_price(const struct tune_probe *probe, const struct ibshift_model *model)
{
    struct ibshift_plan plan = tune_plan(probe, (uint64_t)model->at_once);
    struct ibshift_price_request request = {
        .alg = tune_alg(probe), .plan = &plan, .model = model, .bytes = probe->bytes};
    struct ibshift_price price;
    double n = probe->count;

    if (probe->kind == TUNE_POST) {
        return n * (ibshift_model_send_overhead(model, (int)n) +
                    (double)probe->bytes * (model->send_byte + model->eager_byte));
    }
    if (probe->kind == TUNE_TAKE) {
        return n * ibshift_model_recv_overhead(model, (int)n);
    }
    return ibshift_price(&request, &price) == 0 ? price.last : -1;
}

double tune_turn(const struct ibshift_model *model, double us)
{
    static const struct tune_probe one = {TUNE_STREAM, 1, TUNE_SHORT};
    static const uint32_t same[2] = {0, 0}, processors[2] = {1, 1};
    const struct ibshift_crowd crowd = {.hosts = 1,
                                        .ports = 1,
                                        .host_of = same,
                                        .port_of = same,
                                        .processors = processors,
                                        .is_crowded = true};
    struct ibshift_plan plan = tune_plan(&one, (uint64_t)model->at_once);
    struct ibshift_model still = *model;
    struct ibshift_price_request request = {
        .alg = tune_alg(&one), .plan = &plan, .model = &still, .bytes = one.bytes, .crowd = &crowd};
    struct ibshift_price price;

    still.wake = still.latency =
        0; /* while a message flies the other rank works: processors alone count */
    return ibshift_price(&request, &price) == 0 ? fmax(us - price.last, 0) / price.hops : 0;
}

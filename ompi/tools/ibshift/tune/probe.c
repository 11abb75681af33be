#include "tune/tune.h"

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

/* ---- the fit ---- */

enum { FITTED = 6, SWEEPS = 1000, LONG = 32768 };

static const double first_step = 0.5, next_step = 0.1, last_step = 2e-5, exact = 2e-3, tiny = 0.01,
                    little = 1e-9;

struct fit {
    const struct tune_point *points;
    int count;
    struct ibshift_model model;
    double error; /* of model */
    bool is_moved;
    bool has_rows; /* also those of messages of a few KiB */
};

static double *fitted(struct ibshift_model *model, int which)
{
    double *const all[FITTED] = {&model->latency, &model->gap,       &model->gap_byte,
                                 &model->granted, &model->send_byte, &model->eager_byte};

    return all[which];
}

/* NULL: there is no such point. */
static const struct tune_point *find(const struct fit *fit, enum tune_kind kind, uint32_t count,
                                     uint64_t bytes)
{
    for (int i = 0; i < fit->count; i++) {
        const struct tune_probe *p = &fit->points[i].probe;

        if (p->kind == kind && p->count == count && p->bytes == bytes) {
            return &fit->points[i];
        }
    }
    return NULL;
}

/* Rows of messages of a few KiB are left as a check: the model adds the gap to the time of the bytes,
 * a port may let the two overlap. Where processors move all bytes there is no such port. */
static bool is_fitted(const struct fit *fit, const struct tune_probe *probe)
{
    return probe->kind == TUNE_STREAM && (fit->has_rows || probe->bytes == TUNE_SHORT ||
                                          probe->count == 1 || probe->bytes >= LONG);
}

/* The root of the mean square of (priced - measured) / measured, each by its weight. */
static double error_of(const struct fit *fit, const struct ibshift_model *model)
{
    double sum = 0, weights = 0;

    for (int i = 0; i < fit->count; i++) {
        const struct tune_point *point = &fit->points[i];

        if (is_fitted(fit, &point->probe)) {
            double off = tune_price(&point->probe, model) / point->us - 1;

            sum += point->weight * off * off;
            weights += point->weight;
        }
    }
    return sqrt(sum / weights);
}

/* The line a + b n through times of n short messages, each weighed by its inverse square: b is what
 * each of many costs, a + b what one costs. */
static bool fit_overhead(const struct fit *fit, enum tune_kind kind, double *max, double *min)
{
    double w = 0, wn = 0, wnn = 0, wt = 0, wnt = 0, split;

    for (int i = 0; i < fit->count; i++) {
        const struct tune_point *p = &fit->points[i];

        if (p->probe.kind == kind && p->probe.bytes == TUNE_SHORT) {
            double n = p->probe.count, weight = 1 / (p->us * p->us);

            w += weight;
            wn += weight * n;
            wnn += weight * n * n;
            wt += weight * p->us;
            wnt += weight * n * p->us;
        }
    }
    split = w * wnn - wn * wn;
    if (!(split > 0)) {
        return false;
    }
    *min = fmax((w * wnt - wn * wt) / split, 0);
    *max = fmax((wnn * wt - wn * wnt) / split + *min, *min);
    return true;
}

/* Where the search starts: what the probes say that show a parameter most. */
static bool begin(struct fit *fit)
{
    struct ibshift_model *m = &fit->model;
    const struct tune_point *one = find(fit, TUNE_STREAM, 1, TUNE_SHORT);
    const struct tune_point *many = find(fit, TUNE_STREAM, TUNE_COUNT_MAX, TUNE_SHORT);
    const struct tune_point *small = NULL, *large = NULL, *filled = NULL;
    double posted, per_byte;

    for (int i = 0; i < fit->count; i++) {
        const struct tune_point *p = &fit->points[i];

        filled = p->probe.kind == TUNE_POST && p->probe.bytes > TUNE_SHORT ? p : filled;
        if (p->probe.kind == TUNE_STREAM && p->probe.count == 1) {
            large = large == NULL || p->probe.bytes > large->probe.bytes ? p : large;
            small = small == NULL || p->probe.bytes < small->probe.bytes ? p : small;
        }
    }
    if (!fit_overhead(fit, TUNE_POST, &m->send_max, &m->send_min) ||
        !fit_overhead(fit, TUNE_TAKE, &m->recv_max, &m->recv_min) || one == NULL || many == NULL ||
        large == small || filled == NULL) {
        return false;
    }
    posted = filled->probe.count * ibshift_model_send_overhead(m, (int)filled->probe.count);
    m->latency = fmax(one->us / 2 - m->send_max - m->recv_max, one->us / 100);
    m->gap = fmax((many->us - one->us) / (many->probe.count - 1), one->us / 1e4);
    m->granted = one->us / 100;
    m->gap_byte =
        fmax((large->us - small->us) / (double)(large->probe.bytes - small->probe.bytes), little);
    per_byte = (filled->us - posted) / ((double)filled->probe.bytes * filled->probe.count);
    per_byte = fmax(per_byte, little);
    m->send_byte = fit->is_moved ? fmin(per_byte, m->gap_byte) : 0;
    m->gap_byte = fmax(m->gap_byte - m->send_byte, little);
    m->eager_byte = fmax(per_byte - m->send_byte, little);
    return true;
}

/* Whether another value of one parameter is better; then it is kept. */
static bool try_value(struct fit *fit, int which, double value)
{
    struct ibshift_model model = fit->model;
    double error;

    *fitted(&model, which) = value;
    error = error_of(fit, &model);
    if (!(error < fit->error)) {
        return false;
    }
    fit->model = model;
    fit->error = error;
    return true;
}

/* Each parameter a step up or down in proportion, or nothing at all, with finer and finer steps: the
 * price has corners, where derivatives say nothing. */
static void search(struct fit *fit, double step)
{
    fit->error = error_of(fit, &fit->model);
    for (int sweep = 0; sweep < SWEEPS && step > last_step; sweep++) {
        bool is_better = false;

        for (int which = 0; which < FITTED; which++) {
            double value = *fitted(&fit->model, which);

            is_better |= try_value(fit, which, value * (1 + step)) ||
                         try_value(fit, which, value / (1 + step));
        }
        step = is_better ? step : step / 2;
    }
}

/* The gap hides behind the overheads, or a row of messages goes free of it: simpler wins unless
 * more explains clearly more. */
static void search_free(struct fit *fit)
{
    struct fit best = *fit;

    for (int f = 2; f <= 64 && best.error > exact; f *= 2) {
        struct fit other = *fit;

        other.model.free_messages = f;
        search(&other, next_step);
        if (other.error < 0.9 * best.error && best.error - other.error > 0.003) {
            best = other;
        }
    }
    *fit = best;
}

/*
 * Where messages go round in less than their overheads, which were taken from posting and taking
 * alone, cold: both are smaller in a stream, as much as explains it best.
 */
static void search_warm(struct fit *fit)
{
    const struct ibshift_model own = fit->model;
    bool is_better = own.latency < tiny * (own.send_max + own.recv_max);

    for (double part = 0.95; is_better && part > 0.2; part -= 0.05) {
        struct fit other = *fit;

        other.model.send_max = own.send_max * part;
        other.model.send_min = own.send_min * part;
        other.model.recv_max = own.recv_max * part;
        other.model.recv_min = own.recv_min * part;
        other.model.latency = (own.send_max + own.recv_max) * (1 - part) / 2;
        search(&other, next_step);
        is_better = other.error < 0.97 * fit->error;
        *fit = is_better ? other : *fit;
    }
}

double tune_fit(const struct tune_point *points, int count, bool is_moved,
                struct ibshift_model *model)
{
    struct fit fit = {.points = points, .count = count, .is_moved = is_moved, .model = *model};

    for (int i = 0; i < count; i++) {
        if (!(points[i].us > 0 && isfinite(points[i].us) && points[i].weight > 0)) {
            return -1;
        }
    }
    fit.model.free_messages = 1;
    if (!begin(&fit)) {
        return -1;
    }
    search(&fit, first_step);
    search_warm(&fit);
    search_free(&fit);
    if (fit.model.gap_byte < tiny * fit.model.send_byte) {
        fit.has_rows = true;
        search(&fit, next_step);
    }
    *model = fit.model;
    return fit.error;
}

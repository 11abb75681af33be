#include "nbcbench.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST_TRIES = 4 };
#define LATE_SHARE 0.05

typedef void (*sample_fn)(struct bench *b, const struct collective *c);

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Samples become their maxima over the ranks, sorted; the same on every rank. */
static void reduce_samples(double *samples, int count, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, samples, count, MPI_DOUBLE, MPI_MAX, comm);
    qsort(samples, (size_t)count, sizeof(double), compare_doubles);
}

static double median(const double *sorted, int count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double microseconds(double since)
{
    return (bench_now() - since) * 1e6;
}

/* Times of one sample in us, the maxima over the ranks. */
struct sample {
    double time;
    double late; /* behind the common start */
};

static bool is_together(const struct sample *s)
{
    return s->late <= LATE_SHARE * s->time;
}

static int compare_lateness(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    double first = x->late / x->time, second = y->late / y->time;

    return compare_doubles(&first, &second);
}

static void take_samples(struct bench *b, const struct collective *c, sample_fn run, int count,
                         struct sample *samples)
{
    for (int i = 0; i < count; i++) {
        double start;

        samples[i].late = together_leave(b);
        start = bench_now();
        run(b, c);
        samples[i].time = microseconds(start);
    }
    MPI_Allreduce(MPI_IN_PLACE, samples, 2 * count, MPI_DOUBLE, MPI_MAX, b->comm);
}

/* So many sorted times. Where a busy machine keeps ranks from starting, there are more samples, of
 * which those count that were together best. */
static void measure_alone(struct bench *b, const struct collective *c, const struct options *o,
                          sample_fn run, double *times)
{
    struct sample *samples = (struct sample *)(void *)(times + o->repetitions);
    int count = 0, good = 0;

    take_samples(b, c, run, o->warmups, samples);
    while (good < o->repetitions && count < MOST_TRIES * o->repetitions) {
        take_samples(b, c, run, o->repetitions, samples + count);
        for (int i = 0; i < o->repetitions; i++) {
            good += is_together(&samples[count++]);
        }
    }
    qsort(samples, (size_t)count, sizeof(*samples), compare_lateness);
    for (int i = 0; i < o->repetitions; i++) {
        times[i] = samples[i].time;
    }
    qsort(times, (size_t)o->repetitions, sizeof(double), compare_doubles);
}

static void run_blocking(struct bench *b, const struct collective *c)
{
    c->blocking(b);
}

static void run_nonblocking(struct bench *b, const struct collective *c)
{
    MPI_Request request;

    c->start(b, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void measure_blocking(struct bench *b, const struct collective *c, const struct options *o,
                             double *times, struct result *result)
{
    measure_alone(b, c, o, run_blocking, times);
    result->blocking = median(times, o->repetitions);
    result->blocking_p10 = times[o->repetitions / 10];
    result->blocking_p90 = times[o->repetitions - 1 - o->repetitions / 10];
}

static void measure_nonblocking(struct bench *b, const struct collective *c,
                                const struct options *o, double *times, struct result *result)
{
    measure_alone(b, c, o, run_nonblocking, times);
    result->nonblocking = median(times, o->repetitions);
}

/* How much the counter grows by so many operations, and by what brings the ranks together around
 * them: nobody may start before the first rank has looked, nor before the last one is done. */
static double count_growth(struct bench *b, const struct collective *c, const char *counter,
                           int operations)
{
    double before = 0, after = 0;

    if (b->rank == 0) {
        before = counter_read(counter);
    }
    (void)together_leave(b);
    for (int i = 0; i < operations; i++) {
        c->blocking(b);
    }
    (void)together_leave(b);
    if (b->rank == 0) {
        after = counter_read(counter);
    }
    together_leave(b);
    return after - before;
}

/* Twice as many operations less the single ones: what surrounds them cancels out. */
static double count_operation(struct bench *b, const struct collective *c, const struct options *o)
{
    double once = count_growth(b, c, o->counter, o->repetitions);
    double twice = count_growth(b, c, o->counter, 2 * o->repetitions);

    return (twice - once) / o->repetitions;
}

/* Computes for so many microseconds. The clock is the work: it yields to nobody and touches no
 * memory. */
static void compute(double duration)
{
    double start = bench_now();

    while (microseconds(start) < duration) {
    }
}

/* One sample: start, computation as long as the operation alone, cut by tests, wait. */
static void overlap_once(struct bench *b, const struct collective *c, const struct options *o,
                         const struct result *result, double parts[5])
{
    int tests = 1 + (int)(b->size / (size_t)o->test_bytes);
    double piece = result->nonblocking / tests;
    MPI_Request request;
    double start, mark;
    int done = 0;

    (void)together_leave(b);
    start = mark = bench_now();
    c->start(b, &request);
    parts[1] = microseconds(mark);
    parts[2] = parts[4] = 0;
    for (int i = 0; i < tests; i++) {
        mark = bench_now();
        compute(piece);
        parts[4] += microseconds(mark);
        mark = bench_now();
        if (!done) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        parts[2] += microseconds(mark);
    }
    mark = bench_now();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    parts[3] = microseconds(mark);
    parts[0] = microseconds(start);
}

static void measure_overlap(struct bench *b, const struct collective *c, const struct options *o,
                            double *samples, struct result *result)
{
    double *const medians[5] = {&result->overlapped, &result->start, &result->test, &result->wait,
                                &result->compute};
    double shorter, hidden;

    for (int i = -o->warmups; i < o->repetitions; i++) {
        double parts[5];

        overlap_once(b, c, o, result, parts);
        for (int k = 0; k < 5; k++) {
            samples[k * o->repetitions + (i < 0 ? 0 : i)] = parts[k];
        }
    }
    for (int k = 0; k < 5; k++) {
        reduce_samples(samples + k * o->repetitions, o->repetitions, b->comm);
        *medians[k] = median(samples + k * o->repetitions, o->repetitions);
    }
    shorter = result->nonblocking < result->compute ? result->nonblocking : result->compute;
    hidden = (result->nonblocking + result->compute - result->overlapped) / shorter;
    result->overlap_percent = 100 * (hidden < 0 ? 0 : hidden > 1 ? 1 : hidden);
}

static int verify_result(struct bench *b, const struct collective *c)
{
    int right = c->is_right == NULL || c->is_right(b);

    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, b->comm);
    return right ? 0 : -EILSEQ;
}

static int verify(struct bench *b, const struct collective *c, bool nonblocking)
{
    MPI_Request request;
    int status;

    bench_fill(b, c);
    c->blocking(b);
    status = verify_result(b, c);
    if (status == 0 && nonblocking) {
        bench_fill(b, c);
        c->start(b, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        status = verify_result(b, c);
    }
    return status;
}

int measure(struct bench *b, const struct collective *c, const struct options *options,
            struct result *result)
{
    size_t room =
        (size_t)options->repetitions * (1 + 2 * MOST_TRIES) + 2 * (size_t)options->warmups;
    double *samples = calloc(room, sizeof(double));

    if (samples == NULL) {
        return -ENOMEM;
    }
    *result = (struct result){0};
    together_open(b);
    bench_fill(b, c);
    measure_blocking(b, c, options, samples, result);
    if (options->nonblocking) {
        measure_nonblocking(b, c, options, samples, result);
        measure_overlap(b, c, options, samples, result);
    }
    if (options->counter != NULL) {
        result->counted = count_operation(b, c, options);
    }
    free(samples);
    return options->verify ? verify(b, c, options->nonblocking) : 0;
}

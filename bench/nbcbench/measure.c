#include "nbcbench.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_TRIES = 4 };
#define LATE_SHARE 0.05

/* ---- when samples start ---- */

enum { PINGS = 30 };

static const double least_margin = 50e-6, most_margin = 0.1; /* s */

/* s, the same for all processes of a host; MPI_Wtime() may count from another moment in each. */
static double now_of(clockid_t which)
{
    struct timespec t;

    (void)clock_gettime(which, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double bench_now(void)
{
    return now_of(CLOCK_MONOTONIC);
}

static bool is_one_host(const struct bench *b)
{
    MPI_Comm host;
    int size;

    MPI_Comm_split_type(b->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &size);
    MPI_Comm_free(&host);
    return size == b->ranks;
}

/* Rank 0's clock less ours: as the quickest of some round trips has it. */
static double ask_offset(const struct bench *b)
{
    double best = INFINITY, offset = 0;

    for (int i = 0; i < PINGS; i++) {
        double before = bench_now(), theirs, after;

        MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, 1, &theirs, 1, MPI_DOUBLE, 0, 1, b->comm,
                     MPI_STATUS_IGNORE);
        after = bench_now();
        if (after - before < best) {
            best = after - before;
            offset = theirs - (before + after) / 2;
        }
    }
    return offset;
}

static void answer(const struct bench *b, int rank)
{
    for (int i = 0; i < PINGS; i++) {
        double now;

        MPI_Recv(NULL, 0, MPI_BYTE, rank, 1, b->comm, MPI_STATUS_IGNORE);
        now = bench_now();
        MPI_Send(&now, 1, MPI_DOUBLE, rank, 1, b->comm);
    }
}

/* Ranks leave together by the clock. A barrier, which other benchmarks use, is worse: its last comer
 * leaves first, up to two latencies before the others. */
static void together_open(struct bench *b)
{
    b->offset = 0;
    b->margin = least_margin;
    if (b->options->barrier || is_one_host(b)) {
        return;
    }
    for (int rank = 1; rank < b->ranks; rank++) {
        if (b->rank == 0) {
            answer(b, rank);
        } else if (b->rank == rank) {
            b->offset = ask_offset(b);
        }
    }
}

/* Returns on all ranks at the same time, as near as their clocks agree: by how many us this rank is
 * late all the same. The margin is what the slowest rank needed last time to hear of the start. */
static double together_leave(struct bench *b)
{
    double mine[2] = {bench_now() + b->offset, b->margin}, all[2], start, needed;

    if (b->options->barrier) {
        MPI_Barrier(b->comm);
        return 0;
    }
    MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, b->comm);
    needed = bench_now() + b->offset - all[0];
    b->margin = fmin(fmax(1.5 * needed, least_margin), most_margin);
    start = all[0] + all[1] - b->offset;
    while (bench_now() < start) { /* not asleep: a sleeper comes back milliseconds late */
        (void)sched_yield();
    }
    return (bench_now() - start) * 1e6;
}

/* ---- a file whose number grows with each packet ---- */

/* A file that holds one number: 0 or -EINVAL. */
static int read_number(const char *path, double *number)
{
    FILE *file = fopen(path, "r");
    int found = 0;

    if (file != NULL) {
        found = fscanf(file, "%lf", number);
        fclose(file);
    }
    return found == 1 ? 0 : -EINVAL;
}

int counter_check(const char *path)
{
    double number;

    return read_number(path, &number);
}

/* The kernel reads a device's counters once in a tick at most, whatever "lifespan" says: only after
 * the next tick is what it shows not from before the last operation. 0 when it cannot be read any
 * more: the growth shows that. */
static double counter_read(const char *path)
{
    double number = 0, tick = now_of(CLOCK_MONOTONIC_COARSE);

    while (now_of(CLOCK_MONOTONIC_COARSE) == tick) {
        (void)sched_yield();
    }
    return read_number(path, &number) == 0 ? number : 0;
}

/* ---- samples ---- */

typedef void (*run_fn)(struct bench *b);

/* Times of one sample in us. */
struct sample {
    double time; /* the maximum over the ranks */
    double late; /* behind the common start, the maximum too */
    double own;  /* of this rank */
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(const double *sorted, int count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

static double median_over_ranks(double *samples, int count, MPI_Comm comm)
{
    MPI_Allreduce(MPI_IN_PLACE, samples, count, MPI_DOUBLE, MPI_MAX, comm);
    qsort(samples, (size_t)count, sizeof(double), compare_doubles);
    return median(samples, count);
}

static double microseconds(double since)
{
    return (bench_now() - since) * 1e6;
}

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

static void take_samples(struct bench *b, run_fn run, int count, struct sample *samples,
                         double *maxima)
{
    for (int i = 0; i < count; i++) {
        double start;

        bench_next(b);
        maxima[2 * i] = together_leave(b);
        start = bench_now();
        run(b);
        maxima[2 * i + 1] = samples[i].own = microseconds(start);
    }
    MPI_Allreduce(MPI_IN_PLACE, maxima, 2 * count, MPI_DOUBLE, MPI_MAX, b->comm);
    for (int i = 0; i < count; i++) {
        samples[i].late = maxima[2 * i];
        samples[i].time = maxima[2 * i + 1];
    }
}

static void summarize_ranks(struct bench *b, const struct sample *samples, int count,
                            struct timing *t)
{
    double own = 0;

    for (int i = 0; i < count; i++) {
        own += samples[i].own / count;
    }
    MPI_Allreduce(&own, &t->least, 1, MPI_DOUBLE, MPI_MIN, b->comm);
    MPI_Allreduce(&own, &t->most, 1, MPI_DOUBLE, MPI_MAX, b->comm);
    MPI_Allreduce(&own, &t->average, 1, MPI_DOUBLE, MPI_SUM, b->comm);
    t->average /= b->ranks;
}

static void summarize(struct bench *b, const double *sorted, struct timing *t)
{
    const struct options *o = b->options;
    int n = o->repetitions;
    /* Order statistics: that many samples of n on either side of the median are beyond it by
     * chance in one case of twenty. */
    int beyond = (int)fmax(floor((n - 1.96 * sqrt(n)) / 2), 0);

    t->median = median(sorted, n);
    t->p10 = sorted[n / 10];
    t->p90 = sorted[n - 1 - n / 10];
    t->low = sorted[beyond];
    t->high = sorted[n - 1 - beyond];
    t->is_noisy = t->is_noisy || (n >= 10 && t->high - t->low > 0.2 * t->median);
    for (int i = 0; i < o->tail_count; i++) {
        int place = (int)ceil(n * o->tails[i] / 100.0) - 1;

        t->tails[i] = sorted[place < 0 ? 0 : place];
    }
}

/* Where a busy machine keeps ranks from starting, there are more samples, of which those count that
 * were together best. */
static void measure_alone(struct bench *b, run_fn run, struct sample *samples, double *times,
                          struct timing *t)
{
    const struct options *o = b->options;
    int count = 0, good = 0;

    take_samples(b, run, o->warmups, samples, times);
    while (good < o->repetitions && count < MOST_TRIES * o->repetitions) {
        take_samples(b, run, o->repetitions, samples + count, times);
        for (int i = 0; i < o->repetitions; i++) {
            good += is_together(&samples[count++]);
        }
    }
    qsort(samples, (size_t)count, sizeof(*samples), compare_lateness);
    summarize_ranks(b, samples, o->repetitions, t);
    t->is_noisy = good < o->repetitions;
    for (int i = 0; i < o->repetitions; i++) {
        times[i] = samples[i].time;
    }
    qsort(times, (size_t)o->repetitions, sizeof(double), compare_doubles);
    summarize(b, times, t);
}

static void run_blocking(struct bench *b)
{
    b->what->blocking(b);
}

static void run_persistent(struct bench *b)
{
    MPI_Start(&b->persistent[b->turn]);
    MPI_Wait(&b->persistent[b->turn], MPI_STATUS_IGNORE);
}

/* Without waiting. */
static void begin(struct bench *b, MPI_Request *request)
{
    if (b->options->persistent) {
        *request = b->persistent[b->turn];
        MPI_Start(request);
    } else {
        b->what->start(b, request);
    }
}

static void run_nonblocking(struct bench *b)
{
    MPI_Request request;

    begin(b, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* How much the counter grows by so many operations, and by what brings the ranks together around
 * them: nobody may start before the first rank has looked, nor before the last one is done. */
static double count_growth(struct bench *b, run_fn run, int operations)
{
    double before = 0, after = 0;

    if (b->rank == 0) {
        before = counter_read(b->options->counter);
    }
    (void)together_leave(b);
    for (int i = 0; i < operations; i++) {
        bench_next(b);
        run(b);
    }
    (void)together_leave(b);
    if (b->rank == 0) {
        after = counter_read(b->options->counter);
    }
    together_leave(b);
    return after - before;
}

/* Twice as many operations less the single ones: what surrounds them cancels out. */
static double count_operation(struct bench *b, run_fn run)
{
    int operations = b->options->repetitions;
    double once = count_growth(b, run, operations);
    double twice = count_growth(b, run, 2 * operations);

    return (twice - once) / operations;
}

/* Computes for so many microseconds. The clock is the work: it yields to nobody and touches no
 * memory. Idle, it leaves the processor to the other ranks, as if each had its own. */
static void compute(const struct bench *b, double duration)
{
    double start = bench_now();

    if (b->options->idle) {
        long nanoseconds = (long)(duration * 1000);

        (void)nanosleep(&(struct timespec){nanoseconds / 1000000000, nanoseconds % 1000000000},
                        NULL);
        return;
    }
    while (microseconds(start) < duration) {
    }
}

/* One sample: start, computation as long as the operation alone, cut by tests, wait. */
static void overlap_once(struct bench *b, const struct result *result, double parts[5])
{
    int tests = 1 + (int)(b->size / (size_t)b->options->test_bytes);
    double piece = result->nonblocking.median / tests;
    MPI_Request request;
    double start, mark;
    int done = 0;

    bench_next(b);
    (void)together_leave(b);
    start = mark = bench_now();
    begin(b, &request);
    parts[1] = microseconds(mark);
    parts[2] = parts[4] = 0;
    for (int i = 0; i < tests; i++) {
        mark = bench_now();
        compute(b, piece);
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

static void measure_overlap(struct bench *b, double *samples, struct result *result)
{
    double *const medians[5] = {&result->overlapped, &result->start, &result->test, &result->wait,
                                &result->compute};
    const struct options *o = b->options;
    double alone = result->nonblocking.median, hidden;

    for (int i = -o->warmups; i < o->repetitions; i++) {
        double parts[5];

        overlap_once(b, result, parts);
        for (int k = 0; k < 5; k++) {
            samples[k * o->repetitions + (i < 0 ? 0 : i)] = parts[k];
        }
    }
    for (int k = 0; k < 5; k++) {
        *medians[k] = median_over_ranks(samples + k * o->repetitions, o->repetitions, b->comm);
    }
    hidden = (alone + result->compute - result->overlapped) / fmin(alone, result->compute);
    result->overlap_percent = 100 * fmin(fmax(hidden, 0), 1);
}

static bool is_run_right(struct bench *b, run_fn run)
{
    int right;

    bench_fill(b);
    bench_next(b);
    run(b);
    right = b->what->is_right == NULL || b->what->is_right(b);
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, b->comm);
    return right != 0;
}

int measure(struct bench *b, struct result *result)
{
    const struct options *o = b->options;
    run_fn run = o->persistent ? run_persistent : run_blocking;
    size_t most = (size_t)(o->repetitions > o->warmups ? o->repetitions : o->warmups);
    struct sample *samples = calloc(MOST_TRIES * most, sizeof(*samples));
    double *times = calloc(5 * most, sizeof(*times));

    *result = (struct result){0};
    if (samples == NULL || times == NULL) {
        free(samples);
        free(times);
        return -ENOMEM;
    }
    together_open(b);
    bench_fill(b);
    measure_alone(b, run, samples, times, &result->blocking);
    if (o->nonblocking) {
        measure_alone(b, run_nonblocking, samples, times, &result->nonblocking);
        measure_overlap(b, times, result);
    }
    if (o->counter != NULL) {
        result->counted = count_operation(b, run);
    }
    result->is_wrong = o->verify && (!is_run_right(b, run) ||
                                     (o->nonblocking && !is_run_right(b, run_nonblocking)));
    free(samples);
    free(times);
    return 0;
}

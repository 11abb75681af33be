#include "report.h"

#include <string.h>

#include "output.h"

/* From this load per processor on, before our own ranks began, other work takes a share that shows. */
#define BUSY_LOAD 0.3

static const struct options *options;
static struct output csv; /* beside the output */
static const struct collective *last_collective;
static int last_ranks;
static int results, noisy;

static void table_open(FILE *file, const struct options *o)
{
    fprintf(file,
            "# times in us: median of %d samples, each the maximum over the ranks; size: bytes of "
            "one block\n",
            o->repetitions);
    fprintf(file, "%-25s %5s %9s %11s", "collective", "ranks", "size", "t_MPI");
    if (o->full) {
        fprintf(file, " %11s %11s %11s %11s %11s", "t_low", "t_high", "min", "avg", "max");
    }
    for (int i = 0; i < o->tail_count; i++) {
        fprintf(file, " %9sP%02d", "", o->tails[i]);
    }
    if (o->nonblocking) {
        fprintf(file, " %11s %11s %9s %9s %9s %11s %8s", "t_NBC", "t_comp", "t_init", "t_test",
                "t_wait", "t_ovl", "overlap");
    }
    if (o->counter != NULL) {
        fprintf(file, " %11s", "counted");
    }
    if (o->plans) {
        fputs("  plan: who, algorithm, radix, segments, modelled us", file);
    }
    fputc('\n', file);
}

static void table_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct timing *t = &r->blocking;

    fprintf(file, "%-25s %5d %9zu %11.2f", b->what->name, b->ranks, b->size, t->median);
    if (b->options->full) {
        fprintf(file, " %11.2f %11.2f %11.2f %11.2f %11.2f", t->low, t->high, t->least, t->average,
                t->most);
    }
    for (int i = 0; i < b->options->tail_count; i++) {
        fprintf(file, " %12.2f", t->tails[i]);
    }
    if (b->options->nonblocking) {
        fprintf(file, " %11.2f %11.2f %9.2f %9.2f %9.2f %11.2f %7.1f%%", r->nonblocking.median,
                r->compute, r->start, r->test, r->wait, r->overlapped, r->overlap_percent);
    }
    if (b->options->counter != NULL) {
        fprintf(file, " %11.2f", r->counted);
    }
    if (b->options->plans) {
        fprintf(file, "  %s", b->options->label);
    }
    fputc('\n', file);
}

static void csv_open(FILE *file, const struct options *o)
{
    fputs("label,collective,ranks,size,t_mpi,t_mpi_p10,t_mpi_p90,t_nbc,t_comp,t_ovl,t_init,t_test,"
          "t_wait,overlap,counted,t_low,t_high,t_min,t_avg,t_max",
          file);
    for (int i = 0; i < o->tail_count; i++) {
        fprintf(file, ",t_mpi_tail%d", o->tails[i]);
    }
    fputc('\n', file);
}

static void csv_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct timing *t = &r->blocking;

    fprintf(file, "%s,%s,%d,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f,%.2f",
            b->options->label, b->what->name, b->ranks, b->size, t->median, t->p10, t->p90,
            r->nonblocking.median, r->compute, r->overlapped, r->start, r->test, r->wait,
            r->overlap_percent, r->counted);
    fprintf(file, ",%.3f,%.3f,%.3f,%.3f,%.3f", t->low, t->high, t->least, t->average, t->most);
    for (int i = 0; i < b->options->tail_count; i++) {
        fprintf(file, ",%.3f", t->tails[i]);
    }
    fputc('\n', file);
}

static const struct format_functions format_table = {table_open, NULL, table_row, NULL};
static const struct format_functions format_csv = {csv_open, NULL, csv_row, NULL};

static const struct format_functions *format_of(const struct options *o)
{
    switch (o->format) {
    case FORMAT_OSU:
        return &format_osu;
    case FORMAT_IMB:
        return &format_imb;
    case FORMAT_CSV:
        return &format_csv;
    case FORMAT_JSON:
        return &format_json;
    default:
        return o->csv != NULL && strcmp(o->csv, "-") == 0 ? &format_csv : &format_table;
    }
}

static int cannot_write(int rc)
{
    fprintf(stderr, "nbcbench: cannot write %s: %s\n", options->csv, strerror(-rc));
    return rc;
}

int report_open(const struct options *o, int argc, char **argv)
{
    options = o;
    metadata_collect(o, argc, argv);
    if (o->csv != NULL && strcmp(o->csv, "-") != 0) {
        int rc = output_open_rows(&csv, o->csv);

        if (rc != 0) {
            return cannot_write(rc);
        }
        csv_open(csv.file, o);
    }
    if (o->metadata && o->format != FORMAT_JSON) {
        metadata_write(stdout, NULL);
    }
    if (format_of(o)->open != NULL) {
        format_of(o)->open(stdout, o);
    }
    return 0;
}

void report_row(const struct bench *b, const struct result *r)
{
    const struct format_functions *format = format_of(b->options);

    results++;
    noisy += r->blocking.is_noisy || r->nonblocking.is_noisy;
    if (csv.file != NULL) {
        csv_row(csv.file, b, r);
        fflush(csv.file);
    }
    if (format->begin != NULL && (b->what != last_collective || b->ranks != last_ranks)) {
        format->begin(stdout, b);
    }
    last_collective = b->what;
    last_ranks = b->ranks;
    format->row(stdout, b, r);
    fflush(stdout);
}

/* To stderr, because the output is for other programs. */
static void warn(void)
{
    if (metadata_crowd() > 1) {
        fprintf(
            stderr,
            "nbcbench: warning: %.1f ranks for each processor of this host: the times are those "
            "of the scheduler; start fewer ranks, or more hosts\n",
            metadata_crowd());
    }
    if (metadata_load() > BUSY_LOAD) {
        fprintf(
            stderr,
            "nbcbench: warning: a load of %.1f for each processor before the ranks began: other "
            "work runs here; wait for its end and measure again\n",
            metadata_load());
    }
    if (noisy > results / 10) {
        fprintf(stderr,
                "nbcbench: warning: %d of %d results are noisy (ranks that started late, or a "
                "confidence interval wider than a fifth of the median): do not believe them; use a "
                "quiet machine or more repetitions (-r)\n",
                noisy, results);
    }
}

int report_close(void)
{
    int rc = 0;

    if (format_of(options)->close != NULL) {
        format_of(options)->close(stdout);
    }
    fflush(stdout);
    if (csv.file != NULL) {
        rc = output_close(&csv, true);
    }
    warn();
    return rc == 0 ? 0 : cannot_write(rc);
}

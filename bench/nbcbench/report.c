#include "nbcbench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "output.h"

/* From this load per processor on, before our own ranks began, other work takes a share that shows. */
#define BUSY_LOAD 0.3

static const struct options *options;
static struct output csv; /* beside the output */
static const struct collective *last_collective;
static int last_ranks;
static int results, noisy;
static struct host_load host; /* before the first rank began */

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

static struct json json;

static void open_object(FILE *file, const struct options *o)
{
    json_begin(&json, file);
    json_open(&json, "metadata", '{');
    metadata_write(file, &json, o);
    json_close(&json, '}');
    json_open(&json, "results", '[');
}

static void microseconds(const char *name, double value)
{
    json_value(&json, name, "%.3f", value);
}

static void write_timing(const char *name, const struct timing *t, const struct options *o)
{
    char tail[16];

    json_open(&json, name, '{');
    microseconds("median", t->median);
    microseconds("low", t->low);
    microseconds("high", t->high);
    microseconds("p10", t->p10);
    microseconds("p90", t->p90);
    microseconds("min", t->least);
    microseconds("avg", t->average);
    microseconds("max", t->most);
    json_bool(&json, "noisy", t->is_noisy);
    for (int i = 0; i < o->tail_count; i++) {
        snprintf(tail, sizeof(tail), "tail%d", o->tails[i]);
        microseconds(tail, t->tails[i]);
    }
    json_close(&json, '}');
}

static void write_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct options *o = b->options;

    (void)file;
    json_open(&json, NULL, '{');
    json_text(&json, "collective", b->what->name);
    json_value(&json, "ranks", "%d", b->ranks);
    json_value(&json, "size", "%zu", b->size);
    write_timing(o->persistent ? "persistent" : "blocking", &r->blocking, o);
    if (o->nonblocking) {
        write_timing("nonblocking", &r->nonblocking, o);
        microseconds("compute", r->compute);
        microseconds("overlapped", r->overlapped);
        microseconds("start", r->start);
        microseconds("test", r->test);
        microseconds("wait", r->wait);
        json_value(&json, "overlap_percent", "%.1f", r->overlap_percent);
    }
    if (o->counter != NULL) {
        json_value(&json, "counted", "%.2f", r->counted);
    }
    if (o->verify) {
        json_bool(&json, "right", !r->is_wrong);
    }
    json_close(&json, '}');
}

static void close_object(FILE *file)
{
    (void)file;
    json_close(&json, ']');
    json_end(&json);
}

static const struct format_functions format_json = {open_object, NULL, write_row, close_object};

static const struct format_functions format_table = {table_open, NULL, table_row, NULL};
static const struct format_functions format_csv = {csv_open, NULL, csv_row, NULL};

static const struct format_functions *format_of(const struct options *o)
{
    static const struct format_functions *const all[] = {[FORMAT_TABLE] = &format_table,
                                                         [FORMAT_OSU] = &format_osu,
                                                         [FORMAT_IMB] = &format_imb,
                                                         [FORMAT_CSV] = &format_csv,
                                                         [FORMAT_JSON] = &format_json};
    bool is_csv = o->format == FORMAT_TABLE && o->csv != NULL && strcmp(o->csv, "-") == 0;

    return is_csv ? &format_csv : all[o->format];
}

static int cannot_write(int rc)
{
    fprintf(stderr, "nbcbench: cannot write %s: %s\n", options->csv, strerror(-rc));
    return rc;
}

int report_open(const struct options *o)
{
    options = o;
    host = metadata_load();
    if (o->csv != NULL && strcmp(o->csv, "-") != 0) {
        int rc = output_open_rows(&csv, o->csv);

        if (rc != 0) {
            return cannot_write(rc);
        }
        csv_open(csv.file, o);
    }
    if (o->metadata && o->format != FORMAT_JSON) {
        metadata_write(stdout, NULL, o);
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
    double load = host.load / (double)host.processors;

    if (host.crowd > 1) {
        fprintf(
            stderr,
            "nbcbench: warning: %.1f ranks for each processor of this host: the times are those "
            "of the scheduler; start fewer ranks, or more hosts\n",
            host.crowd);
    }
    if (load > BUSY_LOAD) {
        fprintf(
            stderr,
            "nbcbench: warning: a load of %.1f for each processor before the ranks began: other "
            "work runs here; wait for its end and measure again\n",
            load);
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

/* The columns of OSU's micro-benchmarks 7 and of the Intel MPI Benchmarks, for what reads their outputs. */
#include "nbcbench.h"

#include <ctype.h>
#include <string.h>

enum {
    OSU_SIZE = 10,
    OSU_FIELD = 18,
    OSU_ALONE = 17,
    OSU_ALONE_NBC = 13,
    OSU_COUNT = 12,
    IMB_FIELD = 13
};

/* Both give the whole vector where it is cut into as many blocks as there are ranks; IMB not for the block form. */
static size_t shown_size(const struct bench *b, bool blocks_too)
{
    bool is_whole = strcmp(b->what->name, "MPI_Reduce_scatter") == 0 ||
                    (blocks_too && strcmp(b->what->name, "MPI_Reduce_scatter_block") == 0);

    return is_whole ? b->size * (size_t)b->ranks : b->size;
}

static void osu_tail_titles(FILE *file, const struct options *o)
{
    for (int i = 0; i < o->tail_count; i++) {
        char title[32];

        snprintf(title, sizeof(title), "P%d Tail Lat(us)", o->tails[i]);
        fprintf(file, "%*s", OSU_FIELD, title);
    }
}

static void osu_titles(FILE *file, const struct options *o, bool sized)
{
    static const char *const nonblocking[] = {"Compute(us)",  "Coll. Init(us)", "MPI_Test(us)",
                                              "MPI_Wait(us)", "Pure Comm.(us)", "Min Comm.(us)",
                                              "Max Comm.(us)"};

    if (sized) {
        fprintf(file, "%-*s%*s", OSU_SIZE, "# Size", OSU_FIELD,
                o->nonblocking ? "Overall(us)" : "Avg Latency(us)");
    } else {
        fprintf(file, "# %s", o->nonblocking ? "Overall(us)" : "Avg Latency(us)");
    }
    for (size_t i = 0; o->nonblocking && i < sizeof(nonblocking) / sizeof(nonblocking[0]); i++) {
        if (o->full || i == 0 || i == 4) {
            fprintf(file, "%*s", OSU_FIELD, nonblocking[i]);
        }
    }
    if (o->nonblocking) {
        fprintf(file, "%*s", OSU_FIELD, "Overlap(%)");
    } else if (o->full) {
        fprintf(file, "%*s%*s%*s", OSU_FIELD, "Min Latency(us)", OSU_FIELD, "Max Latency(us)",
                OSU_COUNT, "Iterations");
    }
    if (o->verify) {
        fprintf(file, "%*s", OSU_FIELD, "Validation");
    }
    osu_tail_titles(file, o);
    fputc('\n', file);
}

static const char *osu_type(const struct bench *b)
{
    static const char *const names[ELEMENTS] = {"MPI_CHAR", "MPI_INT", "MPI_INT64_T", "MPI_FLOAT",
                                                "MPI_DOUBLE"};

    return names[b->element];
}

static void osu_begin(FILE *file, const struct bench *b)
{
    const struct options *o = b->options;

    fprintf(file, "\n# OSU MPI %s%s%s Latency Test, format of v7.5, by nbcbench %s\n",
            o->nonblocking ? "Non-blocking " : "", b->what->osu, o->persistent ? " Persistent" : "",
            PACKAGE_VERSION);
    if (o->nonblocking) {
        fputs("# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n\n", file);
    }
    if (b->what->sized) {
        fprintf(file, "# Datatype: %s.\n", osu_type(b));
    }
    osu_titles(file, o, b->what->sized);
}

static void osu_nonblocking(FILE *file, const struct bench *b, const struct result *r)
{
    const double all[] = {
        r->compute,           r->start,           r->test, r->wait, r->nonblocking.average,
        r->nonblocking.least, r->nonblocking.most};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (b->options->full || i == 0 || i == 4) {
            fprintf(file, "%*.2f", OSU_FIELD, all[i]);
        }
    }
    fprintf(file, "%*.2f", OSU_FIELD, r->overlap_percent);
}

static void osu_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct options *o = b->options;
    const struct timing *t = o->nonblocking ? &r->nonblocking : &r->blocking;
    int width = o->nonblocking ? OSU_ALONE_NBC : OSU_ALONE;

    if (b->what->sized) {
        fprintf(file, "%-*zu", OSU_SIZE, shown_size(b, true));
        width = OSU_FIELD;
    }
    fprintf(file, "%*.2f", width, o->nonblocking ? r->overlapped : t->average);
    if (o->nonblocking) {
        osu_nonblocking(file, b, r);
    } else if (o->full) {
        fprintf(file, "%*.2f%*.2f%*d", OSU_FIELD, t->least, OSU_FIELD, t->most, OSU_COUNT,
                o->repetitions);
    }
    if (o->verify) {
        fprintf(file, "%*s", OSU_FIELD, r->is_wrong ? "Fail" : "Pass");
    }
    for (int i = 0; i < o->tail_count; i++) {
        fprintf(file, "%*.2f", OSU_FIELD, t->tails[i]);
    }
    fputc('\n', file);
}

static void imb_rule(FILE *file, int fields)
{
    fputc('#', file);
    for (int i = 1; i < fields * IMB_FIELD; i++) {
        fputc('-', file);
    }
    fputc('\n', file);
}

/* IMB counts the fields of its rules without the empty ones around them. */
static void imb_begin(FILE *file, const struct bench *b)
{
    bool nonblocking = b->options->nonblocking, sized = b->what->sized;
    const char *name = b->what->name + strlen("MPI_");
    int world, fields = (sized ? 5 : 4) + nonblocking;

    MPI_Comm_size(MPI_COMM_WORLD, &world);
    fputc('\n', file);
    imb_rule(file, fields);
    fprintf(file, "# Benchmarking %s%c%s \n# #processes = %d \n", nonblocking ? "I" : "",
            nonblocking ? tolower(name[0]) : name[0], name + 1, b->ranks);
    if (world > b->ranks) {
        fprintf(file, "# ( %d additional process%s waiting in MPI_Barrier)\n", world - b->ranks,
                world - b->ranks > 1 ? "es" : "");
    }
    imb_rule(file, fields);
    if (sized) {
        fprintf(file, "%*s", IMB_FIELD, "#bytes");
    }
    fprintf(file, "%*s", IMB_FIELD, "#repetitions");
    if (nonblocking) {
        fprintf(file, "%*s%*s%*s%*s", IMB_FIELD, "t_ovrl[usec]", IMB_FIELD, "t_pure[usec]",
                IMB_FIELD, "t_CPU[usec]", IMB_FIELD, " overlap[%]");
    } else {
        fprintf(file, "%*s%*s%*s", IMB_FIELD, "t_min[usec]", IMB_FIELD, "t_max[usec]", IMB_FIELD,
                "t_avg[usec]");
    }
    fputc('\n', file);
}

static void imb_row(FILE *file, const struct bench *b, const struct result *r)
{
    const struct timing *t = &r->blocking;

    if (b->what->sized) {
        fprintf(file, "%*zu", IMB_FIELD, shown_size(b, false));
    }
    fprintf(file, "%*d", IMB_FIELD, b->options->repetitions);
    if (b->options->nonblocking) {
        fprintf(file, "%*.2f%*.2f%*.2f%*.2f\n", IMB_FIELD, r->overlapped, IMB_FIELD,
                r->nonblocking.most, IMB_FIELD, r->compute, IMB_FIELD, r->overlap_percent);
    } else {
        fprintf(file, "%*.2f%*.2f%*.2f\n", IMB_FIELD, t->least, IMB_FIELD, t->most, IMB_FIELD,
                t->average);
    }
}

const struct format_functions format_osu = {NULL, osu_begin, osu_row, NULL};
const struct format_functions format_imb = {NULL, imb_begin, imb_row, NULL};

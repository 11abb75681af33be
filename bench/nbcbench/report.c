#include "nbcbench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static FILE *csv;

int report_open(const struct options *o)
{
    if (o->csv == NULL) {
        return 0;
    }
    csv = strcmp(o->csv, "-") == 0 ? stdout : fopen(o->csv, "w");
    if (csv == NULL) {
        fprintf(stderr, "nbcbench: cannot write %s: %s\n", o->csv, strerror(errno));
        return -errno;
    }
    fputs("label,collective,ranks,size,t_mpi,t_mpi_p10,t_mpi_p90,t_nbc,t_comp,t_ovl,t_init,t_test,"
          "t_wait,"
          "overlap,counted\n",
          csv);
    return 0;
}

void report_close(void)
{
    if (csv != NULL && csv != stdout) {
        fclose(csv);
    }
}

void report_header(const struct options *o)
{
    if (csv == stdout) {
        return;
    }
    printf("# times in us: median of %d samples, each the maximum over the ranks; size: bytes of "
           "one block\n",
           o->repetitions);
    printf("%-25s %5s %9s %11s", "collective", "ranks", "size", "t_MPI");
    if (o->nonblocking) {
        printf(" %11s %11s %9s %9s %9s %11s %8s", "t_NBC", "t_comp", "t_init", "t_test", "t_wait",
               "t_ovl", "overlap");
    }
    if (o->counter != NULL) {
        printf(" %11s", "counted");
    }
    putchar('\n');
}

void report_row(const struct options *o, const struct bench *b, const struct collective *c,
                const struct result *r)
{
    if (csv != NULL) {
        fprintf(csv, "%s,%s,%d,%zu,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,%.1f,%.2f\n",
                o->label, c->name, b->ranks, b->size, r->blocking, r->blocking_p10, r->blocking_p90,
                r->nonblocking, r->compute, r->overlapped, r->start, r->test, r->wait,
                r->overlap_percent, r->counted);
        fflush(csv);
    }
    if (csv == stdout) {
        return;
    }
    printf("%-25s %5d %9zu %11.2f", c->name, b->ranks, b->size, r->blocking);
    if (o->nonblocking) {
        printf(" %11.2f %11.2f %9.2f %9.2f %9.2f %11.2f %7.1f%%", r->nonblocking, r->compute,
               r->start, r->test, r->wait, r->overlapped, r->overlap_percent);
    }
    if (o->counter != NULL) {
        printf(" %11.2f", r->counted);
    }
    putchar('\n');
    fflush(stdout);
}

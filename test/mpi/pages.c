/*
 * The scratch of long reductions is there again in the next call: its pages are not new each time. The
 * C library gives what is above a MiB back to the system here, whatever was freed before.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "check.h"

enum { BYTES = 6 << 20, CALLS = 8, BEFORE = 3, PAGE = 4096 };

static long faults(void)
{
    struct rusage usage;

    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "no getrusage");
    return usage.ru_minflt;
}

/* On any rank: which of them has scratch, and who touches its pages first, is not the program's to know. */
static void check(enum form form)
{
    int *from = malloc(BYTES), *to = malloc(BYTES);
    struct run run;
    long before = 0, took;

    CHECK(from != NULL && to != NULL, "no memory");
    memset(from, 1, BYTES);
    memset(to, 1, BYTES);
    for (int i = 0; i < CALLS; i++) {
        before = i == BEFORE ? faults() : before;
        run = run_begin(form);
        CHECK(run_next(&run), "no round");
        RUN(&run, Scan, scan, from, to, BYTES / (int)sizeof(int), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    took = faults() - before;
    CHECK(took < BYTES / PAGE, "%s: %ld faults in %d calls", form_names[form], took,
          CALLS - BEFORE);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    MPI_Init(&argc, &argv);
    check(FORM_BLOCKING);
    check(FORM_NONBLOCKING);
    MPI_Finalize();
    return 0;
}

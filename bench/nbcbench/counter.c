#include "nbcbench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

static int read_number(const char *path, double *number)
{
    FILE *file = fopen(path, "r");
    int found;

    if (file == NULL) {
        return -errno;
    }
    found = fscanf(file, "%lf", number);
    fclose(file);
    return found == 1 ? 0 : -EINVAL;
}

static long tick(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_nsec;
}

/* The kernel reads a device's counters once in a tick at most, whatever "lifespan" says: only after
 * the next tick is what it shows not from before the last operation. */
static void wait_for_tick(void)
{
    long now = tick();

    while (tick() == now) {
        (void)sched_yield();
    }
}

int counter_check(const char *path, int rank)
{
    double number;

    if (read_number(path, &number) == 0) {
        return 0;
    }
    if (rank == 0) {
        fprintf(stderr, "nbcbench: -k '%s': expected a file that holds one number\n", path);
    }
    return -EINVAL;
}

/* 0 when it cannot be read any more: the growth shows that. */
double counter_read(const char *path)
{
    double number = 0;

    wait_for_tick();
    return read_number(path, &number) == 0 ? number : 0;
}

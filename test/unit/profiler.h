#ifndef TEST_UNIT_PROFILER_H
#define TEST_UNIT_PROFILER_H

/* A profiler's signals, on a kernel whose posix_fallocate() they end: one comes in each call. */
void profiler_start(void);

/* How many have come. */
int profiler_stop(void);

#endif

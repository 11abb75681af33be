/* The probes of a level, run by rank 0 and its partner. */
#ifndef IBSHIFT_TUNE_MEASURE_H
#define IBSHIFT_TUNE_MEASURE_H

#include "tune/probe.h"
#include "tune/wires.h"

enum { TUNE_PASSES = 5 };

/* Of each probe the median time of each pass. */
struct tune_points {
    int count;
    struct tune_probe probes[TUNE_PROBES];
    double us[TUNE_PASSES][TUNE_PROBES];
    bool is_shared;             /* both ranks were put on one processor: */
    double shared[TUNE_PASSES]; /* us of a short message and its answer there */
};

/*
 * Rank 0 and the partner call it, about so many seconds long; points are rank 0's. heard() is told
 * of each pass that is over. 0 or -ENOMEM; a message that fails ends the job with a line.
 */
int tune_measure(struct tune_wires *wires, enum tune_level level, int partner, double seconds,
                 void (*heard)(enum tune_level level, int pass), struct tune_points *points);

/* us per byte. */
double tune_copy_rate(void);

#endif

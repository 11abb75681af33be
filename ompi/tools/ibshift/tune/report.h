/* What was found, as the text of a parameter file, and where it goes. */
#ifndef IBSHIFT_TUNE_REPORT_H
#define IBSHIFT_TUNE_REPORT_H

#include "tune/measure.h"

struct tune_level_found {
    bool is_there;
    bool is_moved;       /* processors may move the bytes */
    char how[TUNE_TEXT]; /* "ranks 0 and 1 of host a" */
    uint64_t eager;
    struct tune_points points;
    struct ibshift_model model, low, high; /* of all passes together; of each alone */
    double error;                          /* of the fit, in proportion */
    double noise;                          /* see tune_found() */
};

struct tune_found {
    struct tune_level_found level[TUNE_LEVELS];
    struct ibshift_made made;
    char rates[2 * TUNE_TEXT]; /* local work, in words */
};

/* Fits the level's points: model has S, copy and reduce. False: they make no sense. The noise is how
 * far the median of the passes is above the least, in the mean of the probes that stream. */
bool tune_found(struct tune_level_found *level, const struct ibshift_model *model);

/* The file's text, for free(); NULL: no memory. */
char *tune_report(const struct tune_found *found);

#endif

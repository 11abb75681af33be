/* The parameters of the model that explain measured probes best, by least squares. */
#ifndef IBSHIFT_TUNE_FIT_H
#define IBSHIFT_TUNE_FIT_H

#include "tune/probe.h"

/*
 * Overheads come straight from the probes that post and take, L, g, f, G, R, O and E from those that
 * stream: the weighted mean of the squares of (priced - measured) / measured is the least. is_moved:
 * processors may move the bytes; otherwise O is 0, for streams alone do not tell it from G. S, copy
 * and reduce stay what they are in *model. Returns the root of the mean, or -1 when points are
 * missing or no numbers above 0.
 */
double tune_fit(const struct tune_point *points, int count, bool is_moved,
                struct ibshift_model *model);

#endif

/* A picture of what was measured and of what the model says of it. */
#ifndef IBSHIFT_TUNE_PLOT_H
#define IBSHIFT_TUNE_PLOT_H

#include "tune/report.h"

/* Of each level that was measured: FILE.svg has the first, FILE-node.svg the second. CLI_OK or CLI_USAGE. */
int tune_plot(const char *path, const struct tune_found *found);

#endif

/* Whether the stages of an all-to-all take what a fabric file's routes say. */
#ifndef IBSHIFT_TUNE_STAGES_H
#define IBSHIFT_TUNE_STAGES_H

#include <stddef.h>

/* All ranks call it, one on each host. CLI_OK: they do; CLI_FAILED: they do not, and what is named
 * is printed. */
int tune_stages(const char *file, size_t bytes);

#endif

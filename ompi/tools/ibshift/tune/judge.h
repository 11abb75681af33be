/* Whether what was found may be believed, and where it is written then. */
#ifndef IBSHIFT_TUNE_JUDGE_H
#define IBSHIFT_TUNE_JUDGE_H

#include "tune/report.h"

enum tune_install { TUNE_INSTALL_NOT, TUNE_INSTALL_USER, TUNE_INSTALL_SYSTEM };

/* Neither a file nor a place to install it: standard output. */
struct tune_target {
    const char *output;
    const char *plot; /* NULL: no picture */
    int install;      /* enum tune_install */
    bool is_forced;   /* a noisy one too */
};

extern const char *const tune_level_names[];

/* Before the measurement: is there a place to install what will be found? CLI_OK or CLI_USAGE. */
int tune_check_place(const struct tune_target *to, const struct ibshift_made *made);

/* Fits what was measured and writes it; local has the copy and reduce rates. An enum cli_exit, with
 * a line for each reason. */
int tune_judge(const struct tune_target *to, struct tune_found *found, struct ibshift_model *local);

#endif

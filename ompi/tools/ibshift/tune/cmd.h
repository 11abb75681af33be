/* `ibshift tune`: starts the program ibshift-tune, which needs Open MPI. Both read what is asked for: a
 * word that is wrong is one line then, not a job that fails. */
#ifndef IBSHIFT_TUNE_CMD_H
#define IBSHIFT_TUNE_CMD_H

#include <stdbool.h>
#include <stdint.h>

enum tune_install { TUNE_INSTALL_NOT, TUNE_INSTALL_USER, TUNE_INSTALL_SYSTEM };

/* Neither a file nor a place to install it: standard output. */
struct tune_target {
    const char *output;
    int install;    /* enum tune_install */
    bool is_forced; /* a noisy one too */
};

struct tune_request {
    double seconds;
    struct tune_target target;
    bool is_quiet;
};

/* An enum cli_exit; is_writer: the process that will write the files; helped: the help was asked for
 * and has been printed. */
int tune_parse(int argc, char **argv, bool is_writer, struct tune_request *request, bool *helped);

int cmd_tune(int argc, char **argv);

#endif

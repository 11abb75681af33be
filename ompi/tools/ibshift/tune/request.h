/* What `ibshift tune` is asked for. Read by the program that starts it as well, before it starts
 * anything: a word that is wrong is one line then, not a job that fails. */
#ifndef IBSHIFT_TUNE_REQUEST_H
#define IBSHIFT_TUNE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "tune/judge.h"

struct tune_request {
    double seconds;
    struct tune_target target;
    const char *fabric; /* NULL: parameters are measured; else whether its routes are those there */
    uint32_t bytes;
    bool is_quiet;
};

/* An enum cli_exit; is_writer: the process that will write the files; helped: the help was asked for
 * and has been printed. */
int tune_parse(int argc, char **argv, bool is_writer, struct tune_request *request, bool *helped);

#endif

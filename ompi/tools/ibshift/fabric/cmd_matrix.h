/* `ibshift fabric schedule --matrix`: stages of an all-to-all whose blocks differ. */
#ifndef IBSHIFT_FABRIC_CMD_MATRIX_H
#define IBSHIFT_FABRIC_CMD_MATRIX_H

#include "fabric/cmd_job.h"

struct fabric_matrix {
    const char *text; /* of fabric/matrix.h; NULL: all blocks are alike */
    uint64_t bytes;
    const char *certificate; /* a file to write, or NULL */
};

#define FABRIC_MATRIX_OPTIONS(matrix)                                                              \
    {"--matrix", 0, CLI_TEXT, "MATRIX", MATRIX_HELP, .where = &(matrix).text},                     \
        {"--bytes",                                                                                \
         'm',                                                                                      \
         CLI_LONG,                                                                                 \
         "N",                                                                                      \
         "bytes of a block of a --matrix that is made, in the mean; of spread and builder the "    \
         "longest (default: 65536)",                                                               \
         .where = &(matrix).bytes,                                                                 \
         .low = 1,                                                                                 \
         .high = 1 << 30},                                                                         \
    {                                                                                              \
        "--certificate", 0, CLI_OUTPUT, "FILE",                                                    \
            "write the link that sets the bound of a --matrix and all blocks that cross it",       \
            .where = &(matrix).certificate                                                         \
    }

/* Prints what was found; output: the table's file, or NULL. */
int fabric_schedule_matrix(const struct cli_args *args, struct fabric_job *job,
                           const struct fabric_matrix *matrix, const char *output, bool is_json);

#endif

/* What the subcommands of `ibshift fabric` share. */
#ifndef IBSHIFT_FABRIC_CMD_H
#define IBSHIFT_FABRIC_CMD_H

#include <stdbool.h>

#include "cli.h"
#include "fabric/read/read.h"
#include "json.h"

#define FABRIC_POSITIONALS 3

/* One row an option, of usage() and of the parser alike. */
struct fabric_option {
    const char *name;     /* "--json" */
    const char *argument; /* "FILE", or NULL: a flag */
    const char *help;
    bool *flag;
    const char **value;
};

struct fabric_args {
    const char *command;                 /* "fabric show", for messages */
    const char *usage;                   /* "FABRIC [LFTS]" */
    const struct fabric_option *options; /* ends with name NULL */
    unsigned least, most;                /* positional arguments */
    const char *positional[FABRIC_POSITIONALS];
    unsigned count;
    bool helped;           /* --help was printed: nothing else to do */
    void (*preface)(void); /* prints what stands before the options instead of the usage line */
};

/* CLI_OK, or CLI_USAGE with the message printed. Options may stand anywhere. */
int fabric_args_parse(struct fabric_args *args, int argc, char **argv);

/* Loads positional 0 (fabric) and 1 (tables, if given); prints notes and errors; CLI_OK or
 * CLI_USAGE. */
int fabric_args_load(const struct fabric_args *args, struct ibshift_fabric **fabric);

/* The reason in err, printed as this command's message; CLI_USAGE. */
int fabric_args_fail(const struct fabric_args *args, const struct ibshift_error *err);

/* Writes the compiled form with the routing order and says so; CLI_OK or CLI_USAGE. */
int fabric_compile(const struct fabric_args *args, const struct ibshift_fabric *f,
                   const char *path);

int cmd_fabric(int argc, char **argv);
int cmd_fabric_show(int argc, char **argv);
int cmd_fabric_order(int argc, char **argv);
int cmd_fabric_check(int argc, char **argv);
int cmd_fabric_compile(int argc, char **argv);
int cmd_fabric_discover(int argc, char **argv);
int cmd_fabric_contend(int argc, char **argv);
int cmd_fabric_schedule(int argc, char **argv);
int cmd_fabric_draw(int argc, char **argv);
int cmd_fabric_export(int argc, char **argv);

#endif

/* What the subcommands of `ibshift fabric` share. */
#ifndef IBSHIFT_FABRIC_CMD_H
#define IBSHIFT_FABRIC_CMD_H

#include "fabric/read/read.h"
#include "json.h"
#include "options.h"

/* Of a command that takes a fabric and its tables. */
static inline struct cli_args fabric_args(const char *command, const struct cli_option *options,
                                          void *context)
{
    return (struct cli_args){.command = command,
                             .usage = "FABRIC [LFTS]",
                             .options = options,
                             .least = 1,
                             .most = 2,
                             .context = context};
}

/* The parse, load, run, free of a command that looks at one fabric; the second without the parse.
 * Returns what run() does, or what went wrong before it. */
typedef int fabric_run_t(const struct cli_args *args, struct ibshift_fabric *f);
int fabric_command(struct cli_args *args, int argc, char **argv, fabric_run_t *run);
int fabric_with(const struct cli_args *args, fabric_run_t *run);

/* The reason in err, printed as this command's message; CLI_USAGE. */
int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err);

int cmd_fabric(int argc, char **argv);
int cmd_fabric_order(int argc, char **argv);
int cmd_fabric_compile(int argc, char **argv);
int cmd_fabric_discover(int argc, char **argv);
int cmd_fabric_export(int argc, char **argv);
int cmd_fabric_audit(int argc, char **argv);
int cmd_fabric_publish(int argc, char **argv);
int cmd_fabric_contend(int argc, char **argv);
int cmd_fabric_schedule(int argc, char **argv);
int cmd_fabric_draw(int argc, char **argv);

#endif

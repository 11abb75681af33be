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

/* Positional 0 (fabric) and 1 (tables, if given). */
struct ibshift_fabric *fabric_args_load(const struct cli_args *args);

/* The reason in err, printed as this command's message; CLI_USAGE. */
int fabric_args_fail(const struct cli_args *args, const struct ibshift_error *err);
void fabric_args_warn(const struct cli_args *args, const struct ibshift_warnings *warnings);

/* Where something went wrong the command ends here, with its message: nothing has been written yet. */
void fabric_must(const struct cli_args *args, int rc, const struct ibshift_error *err);
/* The same of a fabric without tables. */
void fabric_must_have_tables(const struct cli_args *args, const struct ibshift_fabric *f);

#define FABRIC_COUNTS_TABLES "the tables are counted, which packets need not follow"
/* A line on stderr where the file says that switches choose the routes: what that means here. */
void fabric_args_tell_adaptive(const struct cli_args *args, const struct ibshift_fabric *f,
                               const char *meaning);

/* The routing order, with place keepers or without; the caller frees it. */
uint32_t *fabric_find_order(const struct cli_args *args, const struct ibshift_fabric *f,
                            bool keepers, uint32_t *count);
/* When a file was published, how long that holds, and who manages the subnet, in words. */
void fabric_imprint_print(const struct ibshift_imprint *imprint, FILE *out);

/* How many hosts are within three switches of a host, itself among them: 0 where no switch has hosts. */
void fabric_hosts_near(const struct ibshift_fabric *f, uint32_t *least, uint32_t *most);

int cmd_fabric(int argc, char **argv);
int cmd_fabric_order(int argc, char **argv);
int cmd_fabric_export(int argc, char **argv);
int cmd_fabric_audit(int argc, char **argv);
int cmd_fabric_place(int argc, char **argv);
int cmd_fabric_publish(int argc, char **argv);
int cmd_fabric_contend(int argc, char **argv);
int cmd_fabric_modes(int argc, char **argv);
int cmd_fabric_schedule(int argc, char **argv);
int cmd_fabric_bound(int argc, char **argv);

#endif

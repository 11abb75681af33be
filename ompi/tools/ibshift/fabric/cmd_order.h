/* The order of hosts, and the checks that come before a file of it is written. */
#ifndef IBSHIFT_FABRIC_CMD_ORDER_H
#define IBSHIFT_FABRIC_CMD_ORDER_H

#include "fabric/cmd.h"

/* The routing order, with place keepers or without; CLI_OK or CLI_USAGE with a message. */
int fabric_find_order(const struct cli_args *args, const struct ibshift_fabric *f, bool keepers,
                      uint32_t **order, uint32_t *count);
/* Writes the compiled form, of so many bytes; CLI_OK or CLI_USAGE with a message. */
int fabric_write(const struct cli_args *args, const char *path, const struct ibshift_fabric *f,
                 const uint32_t *order, uint32_t count, int64_t *bytes);
/* Refuses tables that lead in circles or to other hosts, tells of gaps; CLI_OK or CLI_USAGE. */
int fabric_check_routes(const struct cli_args *args, const struct ibshift_fabric *f);
/* Sets has_loop; says so where no service levels are known. */
int fabric_find_loop(const struct cli_args *args, struct ibshift_fabric *f);

#endif

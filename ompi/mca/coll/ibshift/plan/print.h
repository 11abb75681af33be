/* The text of a step: what the printer shows and what the executor traces, byte for byte.
 *
 *   rank 2 round 1: recv RECV[0] <- 1 tag 1
 *   rank 2 round 1: send RECV[1] -> 3 tag 1 need 1
 *   rank 2 round 2: send TMP[0..3] -> 0 tag 2.1 need 2 drain 1
 *   rank 2 round 2: send nothing -> 0 tag 2                        (barrier)
 *   rank 2 round 3: copy RECV[0..1] = TMP[4..5] need 3
 *   rank 2 round 3: copy RECV[0..5] = TMP[5, runs of 1 by -1]      (a strided source)
 *   rank 2 round 3: reduce RECV[0] = TMP[0] op RECV[0] need 3
 *
 * Blocks are first..last, both included; tag is tag.part when the part is not 0; need and drain are
 * left out when they are 0. */
#ifndef IBSHIFT_PLAN_PRINT_H
#define IBSHIFT_PLAN_PRINT_H

#include <stddef.h>
#include <stdio.h>

#include "plan/alg.h"

/* No line of a step is longer, the zero byte included. */
#define IBSHIFT_STEP_TEXT 192

/* The line without a newline; returns its length as snprintf does. Neither allocates nor locks. */
int ibshift_step_format(const struct ibshift_step *step, uint32_t rank, uint32_t round, char *text,
                        size_t size);

/* "SEND", "RECV" or "TMP"; "recv", "send", "copy" or "reduce". */
const char *ibshift_buffer_name(enum ibshift_buffer buffer);
const char *ibshift_kind_name(enum ibshift_kind kind);

/* The command of `ibshift` that prints the rank's steps of the plan. A rank has its own row of a
 * table of stages: the rows of all ranks make the file that the command names. */
void ibshift_plan_put_command(FILE *out, const struct ibshift_alg *alg,
                              const struct ibshift_plan *plan, uint32_t rank);

#endif

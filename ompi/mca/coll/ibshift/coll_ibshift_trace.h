#ifndef IBSHIFT_COLL_TRACE_H
#define IBSHIFT_COLL_TRACE_H

#include "exec/engine.h"

/*
 * coll_ibshift_trace: each step as it starts, in the printer's words. A file has the bare lines,
 * and before those of another collective than the last line's one that begins with '#': its key
 * (communicator and number, the same on all ranks), what MPI calls it, and the command that prints
 * its plan. On standard error the key stands before every line.
 */

/* The engine's option trace, or NULL: nobody asked, or the file does not open (which is said). */
void (*ibshift_trace_open(void))(void *context, const struct ibshift_op *op, const char *line);
void ibshift_trace_close(void);

#endif

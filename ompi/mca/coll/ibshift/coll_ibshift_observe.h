#ifndef IBSHIFT_COLL_OBSERVE_H
#define IBSHIFT_COLL_OBSERVE_H

#include "coll_ibshift_transport.h"

/*
 * coll_ibshift_trace: each step as it starts, in the printer's words. A file has the bare lines,
 * and before those of another collective than the last line's one that begins with '#': its key
 * (communicator and number, the same on all ranks), what MPI calls it, and the command that prints
 * its plan. On standard error the key stands before every line.
 *
 * NULL: nobody asked, or the file does not open (which is said). Close it when the endpoint has
 * gone.
 */
ibshift_trace_t *ibshift_trace_open(void);
void ibshift_trace_close(void);

/* The performance variables of MPI_T: counters of the process, and what a communicator's
 * collectives last ran. Once, with the component's parameters. */
void ibshift_pvars_register(void);

#endif

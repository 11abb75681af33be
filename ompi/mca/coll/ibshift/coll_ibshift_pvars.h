#ifndef IBSHIFT_COLL_PVARS_H
#define IBSHIFT_COLL_PVARS_H

/* The performance variables of MPI_T: counters of the process, and what a communicator's
 * collectives last ran. Once, with the component's parameters. */
void ibshift_pvars_register(void);

#endif

#ifndef IBSHIFT_REPLAY_OMPI_H
#define IBSHIFT_REPLAY_OMPI_H

/*
 * Open MPI, as one rank's copy of the component sees it. Real are its datatypes, convertors, operators
 * and objects (its libraries, one for all ranks: these keep nothing of a rank's); what a process has
 * of its own is here: communicators, the parameters, the exchange of cards, progress, the cache of
 * registrations.
 */

#include "ompi_config.h"

#include "coll_ibshift.h"

/* From the component's registration to its end. */
void ompi_begin(void);
void ompi_end(void);

/* The world is there from ompi_begin() on. make(): number is the same on all members, which are
 * ranks of the world; NULL: no memory. free(): requests may hold it longer. */
struct ompi_communicator_t *ompi_world(void);
struct ompi_communicator_t *ompi_comm_create_of(uint32_t number, const int *members, int size);
void ompi_comm_let_go(struct ompi_communicator_t *comm);
uint32_t ompi_comm_members(const struct ompi_communicator_t *comm); /* a bit each */
bool ompi_comm_is_native(const struct ompi_communicator_t *comm);

/* What the component has registered for it, without a pause. */
int ompi_progress_once(void);

/* Calls that the component has left to those beneath, which do nothing here. */
uint64_t ompi_fallbacks(void);

/* A collective has failed with this peer; later ones on the communicator do by that. */
void ompi_failed(const struct ompi_communicator_t *comm, int status, int peer);
void ompi_failed_before(
    const struct ompi_communicator_t *comm); /* its parent has, as it was made */
bool ompi_has_failed(const struct ompi_communicator_t *comm);
void ompi_expect_failures(void); /* here, from now on: calls do not match */
bool ompi_has_any_failed(void);
extern int ompi_item; /* what the program does now */

/* The program is about to unmap this memory. */
void ompi_memory_goes(void *base, size_t size);

#endif

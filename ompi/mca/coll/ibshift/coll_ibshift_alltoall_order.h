/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#ifndef IBSHIFT_COLL_ALLTOALL_ORDER_H
#define IBSHIFT_COLL_ALLTOALL_ORDER_H

/*
 * The fabric file of coll_ibshift_fabric, or the administrator's: one a process, read when the
 * component opens, if at all. Each process puts the file's identity on its card, so that all know,
 * without a message, whether all have the same.
 *
 * In which order a communicator's collectives go along the fabric, in two steps, each at the same
 * call on all ranks (enum ibshift_order_state):
 *
 *     located   at the first collective that an order serves, by every rank alone, from the cards
 *               and the file: all-to-alls are a shift in routing order, or in rank order where
 *               that is cheaper; rings and trees go along the routing order
 *     found     at the first all-to-all that may wait (blocking, or the making of a persistent
 *               one) and by which the search pays: rank 0 searches for the cheapest and tells the
 *               others, who keep their own part of it. Kept for the next communicator of the same processes
 *
 * What a call has taken stays valid until the communicator goes.
 */

#include "coll_ibshift.h"
#include "coll_ibshift_job.h"

/* Set by open() and close(). */
extern struct ibshift_fabric_file ibshift_fabric_file;

/* A file that is wrong, of another subnet or old is reported; then there is none. */
void ibshift_fabric_file_open(const struct ibshift_verbs *verbs); /* NULL: there is no adapter */
void ibshift_fabric_file_close(void);

/* Whether switches choose the routes themselves: the file's word, unless the user knows better. */
static inline bool ibshift_fabric_is_adaptive(void)
{
    return ibshift_params.adaptive >= 0
               ? ibshift_params.adaptive > 0
               : NULL != ibshift_fabric_file.fabric && ibshift_fabric_file.fabric->is_adaptive;
}

/* What the net asks (net/verbs/verbs.h). Which LID of a process's port data goes to, as what is
 * added to its LID; and the service level of a pair in the file, -1: it has none. */
unsigned ibshift_fabric_path(void *context, uint32_t peer);
int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path);

/* OMPI codes. Without a fabric file nothing happens. */
int ibshift_comm_order_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                            const struct ibshift_job *job, enum ibshift_form form);
void ibshift_comm_order_free(struct ibshift_comm_order *order);

/* Whether all-to-alls go in an order: all ranks have found that they have the same file. */
static inline bool ibshift_comm_order_is_agreed(const mca_coll_ibshift_module_t *module)
{
    return NULL != module->order.order || NULL != module->order.stages;
}

/* Whether a shift takes its distances in sequence under that pace; steps that were searched
 * stay. */
static inline bool ibshift_comm_order_in_sequence(const mca_coll_ibshift_module_t *module,
                                                  const struct ibshift_pace *pace)
{
    return ibshift_pace_is_single(pace) && IBSHIFT_ARRANGE_STEPS != module->order.kind;
}

/* Which order the row takes of the plan's, for explain: "in routing order". NULL: none. */
const char *ibshift_comm_order_words(const mca_coll_ibshift_module_t *module,
                                     const struct ibshift_plan *plan,
                                     const struct ibshift_alg *alg);

/* Whether the row runs along the line for this job: the same on all ranks. */
bool ibshift_comm_order_renames(const mca_coll_ibshift_module_t *module,
                                const struct ibshift_job *job, const struct ibshift_alg *alg);

#endif

#ifndef IBSHIFT_GROUP_ORDER_H
#define IBSHIFT_GROUP_ORDER_H

/*
 * The fabric file of the parameter "fabric", or the administrator's: one a process, read when the
 * endpoint opens, if at all. Each process puts the file's identity on its card, so that all know,
 * without a message, whether all have the same.
 *
 * In which order a group's collectives go along the fabric, in two steps, each at the same
 * call on all ranks (enum ibshift_order_state):
 *
 *     located   at the first collective, by every rank alone, from the cards
 *               and the file: all-to-alls are a shift in routing order, or in rank order where
 *               that is cheaper; rings and trees go along the routing order. Of up to
 *               IBSHIFT_FIRST_HOSTS hosts the routes are kept: links that are shared have a price
 *     found     at the first all-to-all that may wait (blocking, or the making of a persistent
 *               one) and by which the search pays: rank 0 searches for the cheapest and tells the
 *               others, who keep their own part of it. Kept for the next group of the same processes
 *
 * What a call has taken stays valid until the group goes.
 */

#include "group/group.h"
#include "job/fabric_file.h"
#include "net/verbs/verbs.h"

/* Set by open() and close(). */
extern struct ibshift_fabric_file ibshift_fabric_file;

/* A file that is wrong, of another subnet or old is reported; then there is none. */
void ibshift_fabric_file_open(const struct ibshift_verbs *verbs, /* NULL: there is no adapter */
                              uint32_t processes);
void ibshift_fabric_file_close(void);

/* Whether switches choose the routes themselves: the file's word, unless the user knows better. */
static inline bool ibshift_fabric_is_adaptive(void)
{
    return ibshift_params.adaptive >= 0
               ? ibshift_params.adaptive > 0
               : ibshift_fabric_file.fabric != NULL && ibshift_fabric_file.fabric->is_adaptive;
}

/* What the net asks (net/verbs/verbs.h). Which LID of a process's port data goes to, as what is
 * added to its LID; and the service level of a pair in the file, -1: it has none. */
unsigned ibshift_fabric_path(void *context, uint32_t peer);
int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path);

/* Once, before the first neighborhood collective; 0 or as ibshift_neighborhood_make(). */
int ibshift_group_set_neighbors(struct ibshift_group *group,
                                const struct ibshift_neighbor_lists *lists);

/* 0 or a negative errno. Without a fabric file nothing happens. */
int ibshift_group_order_find(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                             const struct ibshift_together *together);
void ibshift_group_order_free(struct ibshift_group_order *order);

/* What links add to the price of such a call: its paths are NULL where that is not known. */
struct ibshift_distance ibshift_group_distance(const struct ibshift_group *group,
                                               const struct ibshift_wanted *wanted);

/* Whether all-to-alls go in an order: all ranks have found that they have the same file. */
static inline bool ibshift_group_order_is_agreed(const struct ibshift_group *group)
{
    return group->order.order != NULL || group->order.stages != NULL;
}

/* Whether a shift takes its distances in sequence under that pace; steps that were searched
 * stay. */
static inline bool ibshift_group_order_in_sequence(const struct ibshift_group *group,
                                                   const struct ibshift_pace *pace)
{
    return ibshift_pace_is_single(pace) && group->order.kind != IBSHIFT_ARRANGE_STEPS;
}

/* Which order the row takes of the plan's, for explain: "in routing order". NULL: none. */
const char *ibshift_group_order_words(const struct ibshift_group *group,
                                      const struct ibshift_plan *plan,
                                      const struct ibshift_alg *alg);

/* Whether the row runs along the line for this job: the same on all ranks. */
bool ibshift_group_order_renames(const struct ibshift_group *group,
                                 const struct ibshift_wanted *wanted,
                                 const struct ibshift_alg *alg);

#endif

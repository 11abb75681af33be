#include "group/order.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "choose/digest.h"
#include "fabric/table/arrange.h"
#include "job/say.h"

/*
 * The search takes about half a microsecond a pair of ranks. It is begun when a
 * group's all-to-alls have taken as long: at 10 GB/s, after so many bytes from each rank to
 * each, a rank.
 */
enum { SEARCH_BYTES = 5000, UNKNOWN_BYTES = 8192 };

struct ibshift_fabric_file ibshift_fabric_file;

/* A path a process of the job; made at the first that is set. Readers take no lock. */
static _Atomic(_Atomic(uint8_t) *) paths;
static uint32_t processes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the making of paths */

/* A table of stages that was asked for is made of forwarding tables. */
static void say_adaptive(const char *path)
{
    if (ibshift_fabric_file.fabric != NULL && ibshift_fabric_is_adaptive() &&
        ibshift_fabric_file.wish == IBSHIFT_ORDER_SCHEDULE) {
        ibshift_help_once_a_job("adaptive-fabric", path);
    }
}

void ibshift_fabric_file_open(const struct ibshift_verbs *verbs, uint32_t peers)
{
    struct ibshift_subnet subnet = {.host = ibshift_teller_host()};
    struct ibshift_error err = {""};
    char path[PATH_MAX];
    int rc;

    processes = peers;
    if (verbs != NULL) {
        subnet.prefix = ibshift_verbs_subnet(verbs).prefix;
        subnet.sm_lid = ibshift_verbs_subnet(verbs).sm_lid;
    }
    rc = ibshift_fabric_file_find(&ibshift_params, verbs != NULL ? &subnet : NULL,
                                  &ibshift_fabric_file, path, &err);
    if (rc == -ESTALE) {
        ibshift_help_once_a_job("old-fabric", err.text);
    } else if (rc != 0) {
        ibshift_help_once_a_job("bad-fabric", err.text);
    } else {
        say_adaptive(path);
    }
}

void ibshift_fabric_file_close(void)
{
    ibshift_found_forget();
    ibshift_fabric_file_free(&ibshift_fabric_file);
    free(atomic_exchange(&paths, NULL));
}

unsigned ibshift_fabric_path(void *context, uint32_t peer)
{
    _Atomic(uint8_t) *path = atomic_load(&paths);

    return path == NULL || peer >= processes ? 0 : path[peer];
}

/* Without memory for them, all go to the first LID. */
static void set_path(uint32_t peer, uint32_t path)
{
    _Atomic(uint8_t) *all;

    pthread_mutex_lock(&lock);
    all = atomic_load(&paths);
    if (all == NULL) {
        all = calloc(processes, sizeof(*all));
        atomic_store(&paths, all);
    }
    pthread_mutex_unlock(&lock);
    if (all != NULL && peer < processes) {
        all[peer] = (uint8_t)path;
    }
}

int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path)
{
    return ibshift_fabric_file_level(&ibshift_fabric_file, from, to, path);
}

static struct ibshift_members members_of(const struct ibshift_group *group)
{
    const struct ibshift_fabric_file *file = &ibshift_fabric_file;

    return (struct ibshift_members){.rank = group->rank,
                                    .size = group->size,
                                    .peers = group->peers,
                                    .host_of = group->order.host_of,
                                    .fabric = file->fabric,
                                    .order = file->order,
                                    .order_count = file->order_count};
}

static int find_places(const struct ibshift_group *group, struct ibshift_group_order *order,
                       struct ibshift_error *err)
{
    struct ibshift_members members;
    int rc;

    order->host_of = malloc(group->size * sizeof(*order->host_of));
    if (order->host_of == NULL) {
        return -ENOMEM;
    }
    rc = ibshift_fabric_file_hosts(&ibshift_fabric_file, group->peers, group->size, order->host_of,
                                   err);
    members = members_of(group);
    rc = rc == 0 ? ibshift_found_first(&members,
                                       ibshift_fabric_file.wish == IBSHIFT_ORDER_AUTO &&
                                           !ibshift_fabric_is_adaptive(),
                                       !ibshift_fabric_is_adaptive(), &order->place, err)
                 : rc;
    if (rc != 0) {
        return rc;
    }
    order->located = order->place->shift;
    order->kind = order->place->kind;
    return ibshift_rank_map_make(&members, &order->map, err);
}

static int find_distance(const struct ibshift_group *group, struct ibshift_group_order *order)
{
    const struct ibshift_placement *placed = order->place->placement;
    uint32_t size = group->size;

    if (placed->paths == NULL) {
        return 0;
    }
    order->places = malloc(size * sizeof(*order->places));
    if (order->places == NULL) {
        return -ENOMEM;
    }
    for (uint32_t place = 0; place < size; place++) {
        order->places[place] = placed->member_of[order->map.order.rank_at[place]];
    }
    order->distance = (struct ibshift_distance){
        .paths = placed->paths->links > 0 ? placed->paths : NULL,
        .member_of = placed->member_of,
        .digest = ibshift_digest(
            ibshift_digest(IBSHIFT_DIGEST, order->host_of, size * sizeof(*order->host_of)),
            &ibshift_fabric_file.identity, sizeof(ibshift_fabric_file.identity))};
    return 0;
}

/* A file or cluster that does not fit is no error: all ranks find the same, rank order it is. */
static int locate(struct ibshift_group *group)
{
    static bool is_told;
    struct ibshift_group_order *order = &group->order;
    struct ibshift_error err = {""};
    int rc = find_places(group, order, &err);

    rc = rc == 0 ? find_distance(group, order) : rc;
    order->may_deadlock = rc == 0 && ibshift_fabric_file.fabric->has_loop &&
                          !ibshift_fabric_is_adaptive() && ibshift_fabric_file.fabric->sl == NULL &&
                          ibshift_params.service_level < 0;
    if (rc == 0) {
        order->order = &order->located;
        order->state = IBSHIFT_ORDER_LOCATED;
    } else if (rc == -ENOENT) {
        if (err.text[0] != '\0' && !is_told) {
            is_told = true;
            ibshift_help_once_a_job("other-fabric", err.text, group->name);
        }
        order->state = IBSHIFT_ORDER_BY_RANK;
        return 0;
    } else {
        ibshift_group_order_free(order);
        *order = (struct ibshift_group_order){.state = IBSHIFT_ORDER_UNKNOWN};
    }
    return rc;
}

static unsigned kinds_wished(void)
{
    switch (ibshift_fabric_file.wish) {
    case IBSHIFT_ORDER_SCHEDULE:
        return 1u << IBSHIFT_ARRANGE_TABLE;
    case IBSHIFT_ORDER_AUTO:
        return IBSHIFT_ARRANGE_ALL;
    default:
        return 1u << IBSHIFT_ARRANGE_ROUTING;
    }
}

static void explain(const struct ibshift_group *group, const struct ibshift_found_words *words)
{
    ibshift_say("ibshift: %s, %u ranks on %u hosts: all-to-all: %s%s\n", group->name, group->size,
                words->hosts,
                ibshift_fabric_file.wish == IBSHIFT_ORDER_FILE
                    ? "in the order of coll_ibshift_order: "
                    : "",
                words->text);
}

/* The second step, by all ranks together. */
static int search_together(struct ibshift_group *group, const struct ibshift_together *shell)
{
    struct ibshift_together together = *shell;
    const struct ibshift_members members = members_of(group);
    struct ibshift_group_order *order = &group->order;
    struct ibshift_found_words words;
    int rc;

    together.set_path = set_path;
    rc = ibshift_found_search(&members, kinds_wished(), &together, &words, &order->found);

    if (ibshift_params.explain && words.text[0] != '\0') {
        explain(group, &words);
    }
    if (rc == 0) {
        order->order = order->found->order != NULL ? order->found->order : order->order;
        order->kind = order->found->kind;
        order->share = order->found->share;
        order->has_circle = order->found->has_circle;
        order->stages = order->found->stages;
        order->state = IBSHIFT_ORDER_FOUND;
    }
    return rc;
}

/* Counts the call; the same on all ranks. A nonblocking one must not wait for others, and a
 * persistent one runs often. Where switches choose the routes, none of a table would be kept. */
static bool does_search_pay(const struct ibshift_group *group, struct ibshift_group_order *order,
                            const struct ibshift_wanted *wanted)
{
    order->moved += ibshift_needs_any_size(wanted->needs) ? UNKNOWN_BYTES : wanted->bytes;
    return (wanted->is_blocking || wanted->is_again) && !ibshift_fabric_is_adaptive() &&
           (wanted->is_again || ibshift_fabric_file.wish != IBSHIFT_ORDER_AUTO ||
            order->moved >= (uint64_t)SEARCH_BYTES * group->size);
}

/* A reduction along the line has its operands in an order that depends on the hosts of the job. */
static bool may_rename(const struct ibshift_wanted *wanted)
{
    switch (wanted->collective) {
    case IBSHIFT_BCAST:
        return true;
    case IBSHIFT_ALLGATHER:
        return !wanted->is_counted;
    case IBSHIFT_REDUCE:
    case IBSHIFT_ALLREDUCE:
        return ibshift_params.order_reductions && wanted->commutes;
    default:
        return false;
    }
}

int ibshift_group_order_find(struct ibshift_group *group, const struct ibshift_wanted *wanted,
                             const struct ibshift_together *together)
{
    struct ibshift_group_order *order = &group->order;
    int rc = 0;

    if (ibshift_fabric_file.identity == 0 || wanted->collective == IBSHIFT_BARRIER) {
        return 0;
    }
    if (order->state == IBSHIFT_ORDER_UNKNOWN) {
        rc = locate(group);
    }
    if (rc == 0 && wanted->collective == IBSHIFT_ALLTOALL &&
        order->state == IBSHIFT_ORDER_LOCATED && does_search_pay(group, order, wanted)) {
        rc = search_together(group, together);
        if (order->state == IBSHIFT_ORDER_FOUND) { /* there are other plans now */
            ibshift_choices_forget(&group->choices, IBSHIFT_ALLTOALL);
        }
    }
    return rc;
}

int ibshift_group_set_neighbors(struct ibshift_group *group,
                                const struct ibshift_neighbor_lists *lists)
{
    const struct ibshift_wanted any = {.collective = IBSHIFT_NEIGHBOR_ALLTOALL};
    const struct ibshift_order *located = &group->order.located;
    int rc = ibshift_group_order_find(group, &any, NULL);

    group->neighbors = (struct ibshift_neighbors){group->rank, 1, &group->neighborhood};
    return rc != 0 ? rc
                   : ibshift_neighborhood_make(lists, group->rank, group->size,
                                               located->places == 0 ? NULL : located,
                                               &group->neighborhood);
}

void ibshift_group_order_free(struct ibshift_group_order *order)
{
    ibshift_found_leave(order->place);
    ibshift_rank_map_free(&order->map);
    ibshift_found_release(order->found);
    free(order->places);
    free(order->host_of);
}

const char *ibshift_group_order_words(const struct ibshift_group *group,
                                      const struct ibshift_plan *plan,
                                      const struct ibshift_alg *alg)
{
    if (plan->order == NULL || alg->collective != IBSHIFT_ALLTOALL ||
        (alg->flags & IBSHIFT_ALG_ORDER) == 0) {
        return NULL;
    }
    if (ibshift_fabric_file.wish == IBSHIFT_ORDER_FILE) {
        return "in the order of coll_ibshift_order";
    }
    return ibshift_fabric_is_adaptive()                   ? "host by host along the fabric"
           : group->order.kind == IBSHIFT_ARRANGE_RANK    ? "in rank order"
           : group->order.kind == IBSHIFT_ARRANGE_KEEPERS ? "in routing order with place keepers"
                                                          : "in routing order";
}

bool ibshift_group_order_renames(const struct ibshift_group *group,
                                 const struct ibshift_wanted *wanted, const struct ibshift_alg *alg)
{
    return group->order.map.order.places != 0 && may_rename(wanted) && ibshift_alg_may_rename(alg);
}

struct ibshift_distance ibshift_group_distance(const struct ibshift_group *group,
                                               const struct ibshift_wanted *wanted)
{
    struct ibshift_distance distance = group->order.distance;

    distance.renamed = may_rename(wanted) ? group->order.places : NULL;
    return distance;
}

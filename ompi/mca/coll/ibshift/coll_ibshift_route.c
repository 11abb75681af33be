#include "coll_ibshift.h"
#include "coll_ibshift_choose.h"
#include "coll_ibshift_fabric.h"
#include "coll_ibshift_settle.h"

#include "ompi/communicator/communicator.h"
#include "ompi/op/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * The search for a way takes about half a microsecond a pair of ranks. It is begun when a
 * communicator's all-to-alls have taken as long: at 10 GB/s, after so many bytes from each rank to
 * each, a rank.
 */
enum { SEARCH_BYTES = 5000, UNKNOWN_BYTES = 8192 };

static int code_of(int rc)
{
    return 0 == rc ? OMPI_SUCCESS : -ENOMEM == rc ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
}

static bool is_first_told(void)
{
    static bool is_told;
    bool first = !is_told;

    is_told = true;
    return first;
}

struct ibshift_placement *ibshift_route_place(const mca_coll_ibshift_module_t *module, char *why,
                                              size_t size, int *rc)
{
    uint32_t *host_of = malloc(module->size * sizeof(*host_of));
    struct ibshift_placement *placement = NULL;
    struct ibshift_error err;

    *rc = NULL == host_of
              ? -ENOMEM
              : ibshift_fabric_find_hosts(module->peers, module->size, host_of, why, size);
    if (0 == *rc) {
        *rc =
            ibshift_placement_open(ibshift_fabric_file(), host_of, module->size, &placement, &err);
    }
    free(host_of);
    return placement;
}

int ibshift_route_seat(const struct ibshift_placement *placement, enum ibshift_way way,
                       struct ibshift_seats *seats, struct ibshift_error *err)
{
    uint32_t count;
    const uint32_t *order = ibshift_fabric_order(&count);

    return IBSHIFT_WAY_RANK == way ? ibshift_seats_by_rank(placement, seats, err)
                                   : ibshift_seats_along(placement, order, count,
                                                         IBSHIFT_WAY_KEEPERS == way, seats, err);
}

static void free_line(struct ibshift_line *line)
{
    free(line->rank_at);
    free(line->place_of);
    free(line->peers);
    free(line->ones);
    *line = (struct ibshift_line){NULL};
}

/* Rank order is for all-to-alls alone: rings and trees go along the routing order anyway. */
static int draw_line(const mca_coll_ibshift_module_t *module,
                     const struct ibshift_placement *placement, struct ibshift_line *line)
{
    size_t size = module->size;
    uint32_t place = 0;
    struct ibshift_seats seats;
    struct ibshift_error err;
    const struct ibshift_order *order = &seats.order;
    int rc = ibshift_route_seat(placement, IBSHIFT_WAY_ROUTING, &seats, &err);

    if (0 != rc) {
        return rc;
    }

    *line = (struct ibshift_line){.rank_at = malloc(size * sizeof(*line->rank_at)),
                                  .place_of = malloc(size * sizeof(*line->place_of)),
                                  .peers = malloc(size * sizeof(*line->peers)),
                                  .ones = malloc(size * sizeof(*line->ones))};
    if (NULL == line->rank_at || NULL == line->place_of || NULL == line->peers ||
        NULL == line->ones) {
        free_line(line);
        ibshift_seats_free(&seats);
        return -ENOMEM;
    }
    for (uint32_t seat = 0; seat < order->places * order->slots; seat++) {
        uint32_t rank = order->rank_at[seat];

        if (IBSHIFT_NO_RANK != rank) {
            line->rank_at[place] = rank;
            line->place_of[rank] = place;
            line->peers[place] = module->peers[rank];
            line->ones[place++] = 1;
        }
    }
    ibshift_seats_free(&seats);
    return 0;
}

/* What was asked for is taken; otherwise the better one of two that cost no search. */
static int seat_first(struct ibshift_placement *placement, struct ibshift_seats *seats,
                      enum ibshift_way *way, struct ibshift_error *err)
{
    uint32_t count;
    const uint32_t *order = ibshift_fabric_order(&count);

    *way = IBSHIFT_WAY_ROUTING;
    return IBSHIFT_ORDER_AUTO == ibshift_fabric_wish()
               ? ibshift_arrange_first(placement, order, count, seats, way, err)
               : ibshift_route_seat(placement, IBSHIFT_WAY_ROUTING, seats, err);
}

/* A file or cluster that does not fit is no error: all ranks find the same, rank order it is. */
static int locate(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_route *route = &module->route;
    char why[256] = "";
    struct ibshift_error err = {""};
    int rc;
    struct ibshift_placement *placement = ibshift_route_place(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = seat_first(placement, &route->located, &route->way, &err);
    }
    if (0 == rc) {
        rc = draw_line(module, placement, &route->line);
    }
    ibshift_placement_close(placement);
    if (-ENOENT == rc) {
        if (is_first_told()) {
            ibshift_help_once_a_job("other-fabric", '\0' != why[0] ? why : err.text, comm->c_name);
        }
        route->is_settled = route->is_located = true;
        return OMPI_SUCCESS;
    }
    if (0 == rc) {
        route->order = &route->located.order;
        route->is_located = true;
    } else {
        ibshift_seats_free(&route->located);
    }
    return code_of(rc);
}

static int settle(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_route *route = &module->route;
    int rc = ibshift_settle(module, comm, &route->settled);

    if (OMPI_SUCCESS == rc) {
        route->order = NULL != route->settled->order ? route->settled->order : route->order;
        route->way = route->settled->way;
        route->stages = route->settled->stages;
        route->is_settled = true;
        ibshift_choices_forget(&module->choices, IBSHIFT_ALLTOALL);
    }
    return rc;
}

/* Counts the call; the same on all ranks. */
static bool does_search_pay(const mca_coll_ibshift_module_t *module, struct ibshift_route *route,
                            const struct ibshift_job *job, enum ibshift_patience patience)
{
    route->moved += IBSHIFT_ALG_SIZES == job->needs ? UNKNOWN_BYTES : job->bytes;
    return IBSHIFT_PATIENCE_NONE != patience &&
           (IBSHIFT_PATIENCE_LONG == patience || IBSHIFT_ORDER_AUTO != ibshift_fabric_wish() ||
            route->moved >= (uint64_t)SEARCH_BYTES * module->size);
}

/* A reduction along the line has its operands in an order that depends on the hosts of the job. */
static bool may_rename(const struct ibshift_job *job)
{
    switch (job->collective) {
    case IBSHIFT_BCAST:
        return true;
    case IBSHIFT_ALLGATHER:
        return IBSHIFT_SIDE_BLOCKS == job->recv.shape;
    case IBSHIFT_REDUCE:
    case IBSHIFT_ALLREDUCE:
        return ibshift_params.order_reductions && ompi_op_is_commute(job->op);
    default:
        return false;
    }
}

int ibshift_route_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const struct ibshift_job *job, enum ibshift_patience patience)
{
    struct ibshift_route *route = &module->route;
    bool is_alltoall = IBSHIFT_ALLTOALL == job->collective;
    int rc = OMPI_SUCCESS;

    if (0 == ibshift_fabric_file_id() || (!is_alltoall && !may_rename(job))) {
        return OMPI_SUCCESS;
    }
    if (!route->is_located) {
        rc = locate(module, comm);
    }
    if (OMPI_SUCCESS == rc && is_alltoall && !route->is_settled &&
        does_search_pay(module, route, job, patience)) {
        rc = settle(module, comm);
    }
    return rc;
}

void ibshift_route_free(struct ibshift_route *route)
{
    ibshift_seats_free(&route->located);
    free_line(&route->line);
    ibshift_settled_release(route->settled);
}

const char *ibshift_route_order(const mca_coll_ibshift_module_t *module,
                                const struct ibshift_plan *plan, const struct ibshift_alg *alg)
{
    if (NULL == plan->order || IBSHIFT_ALLTOALL != alg->collective ||
        0 == (alg->flags & IBSHIFT_ALG_ORDER)) {
        return NULL;
    }
    if (IBSHIFT_ORDER_FILE == ibshift_fabric_wish()) {
        return "in the order of coll_ibshift_order";
    }
    return IBSHIFT_WAY_RANK == module->route.way      ? "in rank order"
           : IBSHIFT_WAY_KEEPERS == module->route.way ? "in routing order with place keepers"
                                                      : "in routing order";
}

bool ibshift_route_renames(const mca_coll_ibshift_module_t *module, const struct ibshift_job *job,
                           const struct ibshift_alg *alg)
{
    return NULL != module->route.line.rank_at && may_rename(job) &&
           (IBSHIFT_ALLGATHER != job->collective || 0 != (alg->flags & IBSHIFT_ALG_SINGLE));
}

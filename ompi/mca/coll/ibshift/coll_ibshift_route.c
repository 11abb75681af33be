#include "coll_ibshift.h"
#include "coll_ibshift_fabric.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/arrange.h"

#define INTEGERS MPI_INT

/* What rank 0 tells the others. */
enum { TOLD_RC, TOLD_WAY, TOLD_STAGES, TOLD_SIZE };

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

static ibshift_placement_t *place(const mca_coll_ibshift_module_t *module, char *why, size_t size,
                                  int *rc)
{
    uint32_t *host_of = malloc(module->size * sizeof(*host_of));
    ibshift_placement_t *placement = NULL;
    ibshift_error_t err;

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

static int seat(const ibshift_placement_t *placement, enum ibshift_way way, ibshift_seats_t *seats,
                ibshift_error_t *err)
{
    uint32_t count;
    const uint32_t *order = ibshift_fabric_order(&count);

    return IBSHIFT_WAY_RANK == way ? ibshift_seats_by_rank(placement, seats, err)
                                   : ibshift_seats_along(placement, order, count,
                                                         IBSHIFT_WAY_KEEPERS == way, seats, err);
}

/* A file or cluster that does not fit is no error: all ranks find the same, rank order it is. */
static int locate(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_route *route = &module->route;
    char why[256] = "";
    ibshift_error_t err = {""};
    int rc;
    ibshift_placement_t *placement = place(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = seat(placement, IBSHIFT_WAY_ROUTING, &route->located, &err);
    }
    ibshift_placement_close(placement);
    if (-ENOENT == rc) {
        if (is_first_told()) {
            ibshift_help_once_a_job("other-fabric", '\0' != why[0] ? why : err.text, comm->c_name);
        }
        route->is_settled = true;
        rc = 0;
    } else if (0 == rc) {
        route->order = &route->located.order;
    }
    route->is_located = 0 == rc;
    return code_of(rc);
}

static unsigned ways_wished(void)
{
    switch (ibshift_fabric_wish()) {
    case IBSHIFT_ORDER_SCHEDULE:
        return 1u << IBSHIFT_WAY_TABLE;
    case IBSHIFT_ORDER_AUTO:
        return IBSHIFT_WAYS_ALL;
    default:
        return 1u << IBSHIFT_WAY_ROUTING;
    }
}

static void explain(const struct ompi_communicator_t *comm, const ibshift_placement_t *placement,
                    const ibshift_arrangement_t *a, int rc, const char *error)
{
    if (!ibshift_params.explain) {
        return;
    }
    fprintf(stderr, "ibshift: %s, %u ranks on %u hosts: all-to-all: ", comm->c_name,
            placement->ranks, placement->hosts);
    if (0 == rc) {
        fprintf(stderr, "%s; %u stages, at worst %.3g flows a link, %.3g on average, bound %.6g\n",
                a->reason, a->stages, a->worst, a->stages > 0 ? a->cost / a->stages : 0, a->bound);
    } else {
        fprintf(stderr, "%s, goes by a shift in routing order\n", error);
    }
}

/* Rank 0: the way, and the arrangement if it is a table. What fails leaves the routing order. */
static void arrange(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    ibshift_arrangement_t *a, int *told)
{
    uint32_t count;
    const uint32_t *order = ibshift_fabric_order(&count);
    ibshift_error_t err = {""};
    char why[256];
    int rc;
    ibshift_placement_t *placement = place(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = ibshift_placement_routes(placement, false, &err);
        if (0 == rc) {
            rc = ibshift_arrange(placement, order, count, ways_wished(), a, &err);
        }
        explain(comm, placement, a, rc, err.text);
    }
    told[TOLD_WAY] = 0 == rc ? (int)a->way : IBSHIFT_WAY_ROUTING;
    told[TOLD_STAGES] = 0 == rc ? (int)a->schedule.table.stages : 0;
    ibshift_placement_close(placement);
}

/* Rows as rank r gets them: where it sends, then where it receives from. */
static int *rows_of(const ibshift_arrangement_t *a, uint32_t ranks)
{
    size_t stages = a->schedule.table.stages;
    int *rows = malloc(2 * stages * ranks * sizeof(*rows) + 1);

    for (uint32_t r = 0; NULL != rows && r < ranks; r++) {
        memcpy(rows + 2 * stages * r, a->schedule.to + stages * r, stages * sizeof(*rows));
        memcpy(rows + 2 * stages * r + stages, a->schedule.from + stages * r,
               stages * sizeof(*rows));
    }
    return rows;
}

static int share_table(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const ibshift_arrangement_t *a, const int *rows, uint32_t stages)
{
    struct ibshift_route *route = &module->route;
    int rc;

    route->row = malloc(2 * (size_t)stages * sizeof(*route->row) + 1);
    if (NULL == route->row) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = comm->c_coll->coll_scatter((void *)(uintptr_t)rows, (int)(2 * stages), INTEGERS,
                                    route->row, (int)(2 * stages), INTEGERS, 0, comm,
                                    comm->c_coll->coll_scatter_module);
    if (OMPI_SUCCESS == rc) {
        route->table = (struct ibshift_stages){.stages = stages,
                                               .first = module->rank,
                                               .rows = 1,
                                               .to = route->row,
                                               .from = route->row + stages};
        route->stages = &route->table;
    }
    return rc;
}

static int take_shift(mca_coll_ibshift_module_t *module, enum ibshift_way way)
{
    struct ibshift_route *route = &module->route;
    ibshift_placement_t *placement;
    ibshift_error_t err;
    char why[256];
    int rc;

    if (IBSHIFT_WAY_ROUTING == way) {
        return OMPI_SUCCESS;
    }
    placement = place(module, why, sizeof(why), &rc);
    if (0 == rc) {
        rc = seat(placement, way, &route->settled, &err);
    }
    if (0 == rc) {
        route->order = &route->settled.order;
    }
    ibshift_placement_close(placement);
    return code_of(rc);
}

static int settle(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    int told[TOLD_SIZE] = {OMPI_SUCCESS, IBSHIFT_WAY_ROUTING, 0};
    ibshift_arrangement_t a = {.way = IBSHIFT_WAY_ROUTING};
    int *rows = NULL, rc;

    if (0 == module->rank) {
        arrange(module, comm, &a, told);
        rows = IBSHIFT_WAY_TABLE == told[TOLD_WAY] ? rows_of(&a, module->size) : NULL;
        if (NULL == rows && IBSHIFT_WAY_TABLE == told[TOLD_WAY]) {
            told[TOLD_RC] = OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    rc = comm->c_coll->coll_bcast(told, TOLD_SIZE, INTEGERS, 0, comm,
                                  comm->c_coll->coll_bcast_module);
    rc = OMPI_SUCCESS == rc ? told[TOLD_RC] : rc;
    if (OMPI_SUCCESS == rc) {
        rc = IBSHIFT_WAY_TABLE == told[TOLD_WAY]
                 ? share_table(module, comm, &a, rows, (uint32_t)told[TOLD_STAGES])
                 : take_shift(module, (enum ibshift_way)told[TOLD_WAY]);
    }
    free(rows);
    ibshift_arrangement_free(&a);
    module->route.is_settled = OMPI_SUCCESS == rc;
    return rc;
}

int ibshift_route_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       enum ibshift_collective collective, bool may_wait)
{
    struct ibshift_route *route = &module->route;
    int rc = OMPI_SUCCESS;

    if (IBSHIFT_ALLTOALL != collective || route->is_settled || 0 == ibshift_fabric_file_id()) {
        return OMPI_SUCCESS;
    }
    if (!route->is_located) {
        rc = locate(module, comm);
    }
    if (OMPI_SUCCESS == rc && !route->is_settled && may_wait) {
        rc = settle(module, comm);
        ibshift_choices_forget(&module->choices, IBSHIFT_ALLTOALL);
    }
    return rc;
}

void ibshift_route_free(struct ibshift_route *route)
{
    ibshift_seats_free(&route->located);
    ibshift_seats_free(&route->settled);
    free(route->row);
}

bool ibshift_route_allows(const struct ibshift_plan *plan, const struct ibshift_alg *alg)
{
    if (IBSHIFT_ALLTOALL != alg->collective || 0 == (alg->flags & IBSHIFT_ALG_SIZES)) {
        return true;
    }
    if (NULL != plan->stages) {
        return 0 != (alg->flags & IBSHIFT_ALG_STAGES);
    }
    return NULL == plan->order || 0 != (alg->flags & IBSHIFT_ALG_ORDER);
}

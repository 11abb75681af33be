#include "coll_ibshift.h"
#include "coll_ibshift_fabric.h"
#include "coll_ibshift_settle.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/table/arrange.h"

#define INTEGERS MPI_INT

enum { KEPT = 8 }; /* settled sets without a communicator */

/* What rank 0 tells the others. */
enum { TOLD_RC, TOLD_KNOWN, TOLD_WAY, TOLD_STAGES, TOLD_PARTS, TOLD_SIZE };
/* What a rank has of a set of processes; the least of all counts. */
enum { NO_MEMORY, NEW, KNOWN };
/* Parts of a rank's row of a table. */
enum { PART_TO, PART_FROM, PART_LID_OFFSETS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers known and users */
static struct ibshift_settled *known;                    /* the latest first */

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

static void explain(const struct ompi_communicator_t *comm,
                    const struct ibshift_placement *placement, const struct ibshift_arrangement *a,
                    int rc, const char *error)
{
    if (!ibshift_params.explain) {
        return;
    }
    fprintf(stderr, "ibshift: %s, %u ranks on %u hosts: all-to-all: ", comm->c_name,
            placement->ranks, placement->hosts);
    if (0 == rc) {
        fprintf(stderr,
                "%s%s; %u stages, at worst %.3g flows a link, %.3g on average, bound %.6g\n",
                IBSHIFT_ORDER_FILE == ibshift_fabric_wish() ? "in the order of coll_ibshift_order: "
                                                            : "",
                a->reason, a->stages, a->worst, a->stages > 0 ? a->cost / a->stages : 0, a->bound);
    } else {
        fprintf(stderr, "%s, goes by a shift in routing order\n", error);
    }
}

/* Rank 0: the way, and the arrangement if it is a table. What fails leaves the routing order. */
static void arrange(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    struct ibshift_arrangement *a, int *told)
{
    uint32_t count;
    const uint32_t *order = ibshift_fabric_order(&count);
    struct ibshift_error err = {""};
    char why[256];
    int rc;
    struct ibshift_placement *placement = ibshift_route_place(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = ibshift_placement_routes(placement, true, &err);
        if (0 == rc) {
            rc = ibshift_arrange(placement, order, count, ways_wished(), a, &err);
        }
        explain(comm, placement, a, rc, err.text);
    }
    told[TOLD_WAY] = 0 == rc ? (int)a->way : IBSHIFT_WAY_ROUTING;
    told[TOLD_STAGES] = 0 == rc ? (int)a->schedule.table.stages : 0;
    told[TOLD_PARTS] = NULL != a->schedule.lid_offsets ? PART_LID_OFFSETS + 1 : PART_LID_OFFSETS;
    ibshift_placement_close(placement);
}

/* The rows as the ranks get them, part by part. */
static int *rows_of(const struct ibshift_arrangement *a, uint32_t ranks, size_t parts)
{
    const struct ibshift_schedule *t = &a->schedule;
    size_t stages = t->table.stages;
    int *rows = malloc(parts * stages * ranks * sizeof(*rows) + 1), *at = rows;

    for (uint32_t r = 0; NULL != rows && r < ranks; r++, at += parts * stages) {
        memcpy(at + PART_TO * stages, t->to + stages * r, stages * sizeof(*at));
        memcpy(at + PART_FROM * stages, t->from + stages * r, stages * sizeof(*at));
        for (size_t s = 0; parts > PART_LID_OFFSETS && s < stages; s++) {
            at[PART_LID_OFFSETS * stages + s] = t->lid_offsets[stages * r + s];
        }
    }
    return rows;
}

/* Connections that are not made yet will send to these LIDs. */
static void choose_paths(const struct ibshift_settled *settled)
{
    const struct ibshift_stages *t = &settled->table;

    for (uint32_t s = 0; s < t->stages; s++) {
        if (IBSHIFT_NO_RANK != t->to[s]) {
            ibshift_fabric_set_path(settled->peers[t->to[s]],
                                    settled->row[PART_LID_OFFSETS * (size_t)t->stages + s]);
        }
    }
}

static int share_table(const mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const int *rows, const int *told, struct ibshift_settled *settled)
{
    size_t stages = (size_t)told[TOLD_STAGES], cells = stages * (size_t)told[TOLD_PARTS];
    int rc;

    settled->row = malloc(cells * sizeof(*settled->row) + 1);
    if (NULL == settled->row) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = comm->c_coll->coll_scatter((void *)(uintptr_t)rows, (int)cells, INTEGERS, settled->row,
                                    (int)cells, INTEGERS, 0, comm,
                                    comm->c_coll->coll_scatter_module);
    if (OMPI_SUCCESS == rc) {
        settled->table = (struct ibshift_stages){.stages = (uint32_t)stages,
                                                 .first = module->rank,
                                                 .rows = 1,
                                                 .to = settled->row + PART_TO * stages,
                                                 .from = settled->row + PART_FROM * stages};
        settled->stages = &settled->table;
        if (told[TOLD_PARTS] > PART_LID_OFFSETS) {
            choose_paths(settled);
        }
    }
    return rc;
}

static int take_shift(const mca_coll_ibshift_module_t *module, enum ibshift_way way,
                      struct ibshift_settled *settled)
{
    struct ibshift_placement *placement;
    struct ibshift_error err;
    char why[256];
    int rc;

    placement = ibshift_route_place(module, why, sizeof(why), &rc);
    if (0 == rc) {
        rc = ibshift_route_seat(placement, way, &settled->seats, &err);
    }
    if (0 == rc) {
        settled->order = &settled->seats.order;
    }
    ibshift_placement_close(placement);
    return 0 == rc ? OMPI_SUCCESS : -ENOMEM == rc ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
}

/* Rank 0. */
static int *prepare(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    struct ibshift_arrangement *a, int *told)
{
    int *rows = NULL;

    arrange(module, comm, a, told);
    if (IBSHIFT_WAY_TABLE == told[TOLD_WAY]) {
        rows = rows_of(a, module->size, (size_t)told[TOLD_PARTS]);
        told[TOLD_RC] = NULL == rows ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
    }
    return rows;
}

/*
 * Ranks forget at different times: what one of them has forgotten is found again by all; and what
 * one of them has no memory for fails on all. Along trees to and from rank 0, which leave most
 * pairs without a connection: those are still to get their LIDs.
 */
static int find_way(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm, int mine,
                    struct ibshift_settled *fresh, bool *is_known)
{
    int told[TOLD_SIZE] = {OMPI_SUCCESS, NEW, IBSHIFT_WAY_ROUTING, 0, PART_LID_OFFSETS};
    struct ibshift_arrangement a = {.way = IBSHIFT_WAY_ROUTING};
    int *rows = NULL, least = NO_MEMORY, rc, other;

    rc = comm->c_coll->coll_reduce(&mine, &least, 1, INTEGERS, MPI_MIN, 0, comm,
                                   comm->c_coll->coll_reduce_module);
    if (0 == module->rank) {
        told[TOLD_RC] = OMPI_SUCCESS != rc   ? rc
                        : NO_MEMORY == least ? OMPI_ERR_OUT_OF_RESOURCE
                                             : OMPI_SUCCESS;
        told[TOLD_KNOWN] = least;
        if (OMPI_SUCCESS == told[TOLD_RC] && NEW == least) {
            rows = prepare(module, comm, &a, told);
        }
    }
    other = comm->c_coll->coll_bcast(told, TOLD_SIZE, INTEGERS, 0, comm,
                                     comm->c_coll->coll_bcast_module);
    rc = OMPI_SUCCESS != rc ? rc : OMPI_SUCCESS != other ? other : told[TOLD_RC];
    *is_known = KNOWN == told[TOLD_KNOWN];
    if (NULL != fresh) {
        fresh->way = (enum ibshift_way)told[TOLD_WAY];
    }
    if (OMPI_SUCCESS == rc && !*is_known) {
        rc = IBSHIFT_WAY_TABLE == told[TOLD_WAY]
                 ? share_table(module, comm, rows, told, fresh)
                 : take_shift(module, (enum ibshift_way)told[TOLD_WAY], fresh);
    }
    free(rows);
    ibshift_arrangement_free(&a);
    return rc;
}

static void drop(struct ibshift_settled *settled)
{
    ibshift_seats_free(&settled->seats);
    free(settled->row);
    free(settled->peers);
    free(settled);
}

/* Of those that nobody uses, the latest stay. Under the lock. */
static void drop_old(unsigned kept)
{
    for (struct ibshift_settled **at = &known; NULL != *at;) {
        struct ibshift_settled *settled = *at;

        if (0 == settled->users && 0 == kept) {
            *at = settled->next;
            drop(settled);
        } else {
            kept -= 0 == settled->users;
            at = &settled->next;
        }
    }
}

static struct ibshift_settled *find_known(const mca_coll_ibshift_module_t *module)
{
    struct ibshift_settled *at;

    pthread_mutex_lock(&lock);
    for (at = known; NULL != at; at = at->next) {
        if (at->size == module->size &&
            0 == memcmp(at->peers, module->peers, module->size * sizeof(*at->peers))) {
            at->users++;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return at;
}

static struct ibshift_settled *make(const mca_coll_ibshift_module_t *module)
{
    struct ibshift_settled *settled = calloc(1, sizeof(*settled));

    if (NULL != settled) {
        settled->users = 1;
        settled->size = module->size;
        settled->peers = malloc((size_t)module->size * sizeof(*settled->peers));
        if (NULL == settled->peers) {
            free(settled);
            return NULL;
        }
        memcpy(settled->peers, module->peers, module->size * sizeof(*settled->peers));
    }
    return settled;
}

static void remember(struct ibshift_settled *settled)
{
    pthread_mutex_lock(&lock);
    settled->next = known;
    known = settled;
    drop_old(KEPT);
    pthread_mutex_unlock(&lock);
}

void ibshift_settled_release(struct ibshift_settled *settled)
{
    if (NULL != settled) {
        pthread_mutex_lock(&lock);
        settled->users--;
        drop_old(KEPT);
        pthread_mutex_unlock(&lock);
    }
}

void ibshift_settled_forget(void)
{
    pthread_mutex_lock(&lock);
    drop_old(0);
    pthread_mutex_unlock(&lock);
}

int ibshift_settle(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                   struct ibshift_settled **settled)
{
    struct ibshift_settled *before = find_known(module), *fresh = make(module);
    int mine = NULL == fresh ? NO_MEMORY : NULL == before ? NEW : KNOWN;
    bool is_known;
    int rc = find_way(module, comm, mine, fresh, &is_known);

    if (OMPI_SUCCESS == rc && !is_known) {
        remember(fresh);
        *settled = fresh;
    } else if (NULL != fresh) {
        drop(fresh);
    }
    if (OMPI_SUCCESS == rc && is_known) {
        *settled = before;
    } else {
        ibshift_settled_release(before);
    }
    return rc;
}

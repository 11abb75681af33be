#include "coll_ibshift_alltoall_order.h"
#include "coll_ibshift_fabric_file.h"
#include "coll_ibshift_params.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INTEGERS MPI_INT

/*
 * The search takes about half a microsecond a pair of ranks. It is begun when a
 * communicator's all-to-alls have taken as long: at 10 GB/s, after so many bytes from each rank to
 * each, a rank.
 */
enum { SEARCH_BYTES = 5000, UNKNOWN_BYTES = 8192 };

enum { KEPT = 8 };                    /* orders whose processes have no communicator any more */
#define WHOLE_KEPT ((size_t)32 << 20) /* of the last whole table */

/* What rank 0 tells the others. */
enum { TOLD_RC, TOLD_KNOWN, TOLD_KIND, TOLD_STEP, TOLD_STAGES, TOLD_PARTS, TOLD_SHARE, TOLD_SIZE };
/* What a rank has of a set of processes; the least of all counts. */
enum { NO_MEMORY, NEW, KNOWN };
/* Parts of a rank's row of a table. */
enum { PART_TO, PART_FROM, PART_LID_OFFSETS };

/* The order of the all-to-alls of a set of processes. Shared by the communicators of the same
 * processes; read-only. */
struct ibshift_found_order {
    unsigned users; /* under the lock */
    unsigned share; /* as in the communicator's order */
    uint32_t size;
    uint32_t *peers;            /* in the order of their ranks: what it is for */
    struct ibshift_order shift; /* unless it is a table */
    enum ibshift_arrange_kind kind;
    uint32_t *row; /* of this rank in a table: to, from, and LIDs where there are several */
    struct ibshift_stages table;
    const struct ibshift_order *order;   /* NULL: stages */
    const struct ibshift_stages *stages; /* NULL: a shift */
    struct ibshift_found_order *next;
};

/* All rows of a table, on the rank 0 that had them made. The next one among the same processes, in
 * another order or without a few, is made from it. */
struct whole_table {
    uint32_t size;
    uint32_t *peers;
    struct ibshift_schedule schedule;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers known and users, and last */
static struct ibshift_found_order *known;                /* the latest first */
static struct whole_table last;                          /* size 0: none, or in use */

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

static struct ibshift_placement *place_ranks(const mca_coll_ibshift_module_t *module, char *why,
                                             size_t size, int *rc)
{
    uint32_t *host_of = malloc(module->size * sizeof(*host_of));
    struct ibshift_placement *placement = NULL;
    struct ibshift_error err;

    *rc = NULL == host_of
              ? -ENOMEM
              : ibshift_fabric_find_hosts(module->peers, module->size, host_of, why, size);
    if (0 == *rc) {
        *rc = ibshift_placement_open(ibshift_fabric_file.fabric, host_of, module->size, &placement,
                                     &err);
    }
    free(host_of);
    return placement;
}

static int place_along(const struct ibshift_placement *placement, enum ibshift_arrange_kind kind,
                       struct ibshift_order *shift, struct ibshift_error *err)
{
    const struct ibshift_fabric_file *file = &ibshift_fabric_file;

    return IBSHIFT_ARRANGE_RANK == kind
               ? ibshift_placement_by_rank(placement, shift, err)
               : ibshift_placement_along(placement, file->order, file->order_count,
                                         IBSHIFT_ARRANGE_KEEPERS == kind, shift, err);
}

static void free_map(struct ibshift_rank_map *map)
{
    ibshift_order_free(&map->order);
    free(map->peers);
    free(map->ones);
    *map = (struct ibshift_rank_map){.peers = NULL};
}

/* Rank order is for all-to-alls alone: rings and trees go along the routing order anyway. */
static int make_map(const mca_coll_ibshift_module_t *module,
                    const struct ibshift_placement *placement, struct ibshift_rank_map *map)
{
    uint32_t size = (uint32_t)module->size, place = 0;
    struct ibshift_order shift;
    struct ibshift_error err;
    int rc = place_along(placement, IBSHIFT_ARRANGE_ROUTING, &shift, &err);

    if (0 != rc) {
        return rc;
    }

    *map = (struct ibshift_rank_map){.peers = malloc(size * sizeof(*map->peers)),
                                     .ones = malloc(size * sizeof(*map->ones))};
    rc = ibshift_order_open(&map->order, size, 1, size);
    if (0 != rc || NULL == map->peers || NULL == map->ones) {
        free_map(map);
        ibshift_order_free(&shift);
        return -ENOMEM;
    }
    for (uint32_t slot = 0; slot < shift.places * shift.slots; slot++) {
        uint32_t rank = shift.rank_at[slot];

        if (IBSHIFT_NO_RANK != rank) {
            map->order.rank_at[place] = rank;
            map->order.slot_of[rank] = place;
            map->peers[place] = module->peers[rank];
            map->ones[place++] = 1;
        }
    }
    ibshift_order_free(&shift);
    return 0;
}

/* What was asked for is taken; otherwise the better one of two that cost no search. */
static int place_first(struct ibshift_placement *placement, struct ibshift_order *shift,
                       enum ibshift_arrange_kind *kind, struct ibshift_error *err)
{
    const struct ibshift_fabric_file *file = &ibshift_fabric_file;

    *kind = IBSHIFT_ARRANGE_ROUTING;
    return IBSHIFT_ORDER_AUTO == ibshift_fabric_file.wish
               ? ibshift_arrange_first(placement, file->order, file->order_count, shift, kind, err)
               : place_along(placement, IBSHIFT_ARRANGE_ROUTING, shift, err);
}

/* A file or cluster that does not fit is no error: all ranks find the same, rank order it is. */
static int locate(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_comm_order *order = &module->order;
    char why[256] = "";
    struct ibshift_error err = {""};
    int rc;
    struct ibshift_placement *placement = place_ranks(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = place_first(placement, &order->located, &order->kind, &err);
    }
    if (0 == rc) {
        rc = make_map(module, placement, &order->map);
    }
    ibshift_placement_close(placement);
    order->may_deadlock = 0 == rc && ibshift_fabric_file.fabric->has_loop &&
                          NULL == ibshift_fabric_file.fabric->sl &&
                          ibshift_params.service_level < 0;
    if (-ENOENT == rc) {
        const char *text = '\0' != why[0] ? why : err.text;

        if ('\0' != text[0] && is_first_told()) {
            ibshift_help_once_a_job("other-fabric", text, comm->c_name);
        }
        order->state = IBSHIFT_ORDER_BY_RANK;
        return OMPI_SUCCESS;
    }
    if (0 == rc) {
        order->order = &order->located;
        order->state = IBSHIFT_ORDER_LOCATED;
    } else {
        ibshift_order_free(&order->located);
    }
    return code_of(rc);
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
        fprintf(
            stderr, "%s%s; %u stages, at worst %.3g flows per link, %.3g on average, bound %.6g\n",
            IBSHIFT_ORDER_FILE == ibshift_fabric_file.wish ? "in the order of coll_ibshift_order: "
                                                           : "",
            a->reason, a->stages, a->worst, a->stages > 0 ? a->cost / a->stages : 0, a->bound);
    } else {
        fprintf(stderr, "%s, goes by a shift in routing order\n", error);
    }
}

static void drop_whole(struct whole_table *whole)
{
    ibshift_schedule_free(&whole->schedule);
    free(whole->peers);
    *whole = (struct whole_table){0};
}

/* In place of the one that is there. */
static void exchange_last(struct whole_table *whole)
{
    struct whole_table before;

    pthread_mutex_lock(&lock);
    before = last;
    last = *whole;
    pthread_mutex_unlock(&lock);
    *whole = before;
}

/* The table's ranks in the communicator; NULL: there is no table, no memory, or one of the
 * communicator's processes has no part in it. */
static uint32_t *ranks_now(const mca_coll_ibshift_module_t *module, const struct whole_table *whole)
{
    uint32_t *now = whole->size < module->size ? NULL : malloc(whole->size * sizeof(*now));
    uint32_t at = 0, found = 0;

    for (uint32_t r = 0; NULL != now && r < whole->size; r++) {
        uint32_t tried = 0;

        now[r] = IBSHIFT_NO_RANK;
        while (tried < module->size && module->peers[at] != whole->peers[r]) {
            at = at + 1 < module->size ? at + 1 : 0; /* most have kept their order */
            tried++;
        }
        if (tried < module->size) {
            now[r] = at;
            found++;
        }
    }
    if (NULL != now && found < module->size) {
        free(now);
        now = NULL;
    }
    return now;
}

static bool is_larger_kept(uint32_t size)
{
    bool is_larger;

    pthread_mutex_lock(&lock);
    is_larger = last.size > size;
    pthread_mutex_unlock(&lock);
    return is_larger;
}

/* Takes the arrangement's table, of which the rows are copies. One that was repaired does not replace
 * the table of more ranks that it came from: others can be made from that, and not the other way
 * round. One that was searched for does, since a table that was no help now would only keep it out. */
static void keep_whole(const mca_coll_ibshift_module_t *module, struct ibshift_arrangement *a)
{
    struct whole_table whole = {.size = module->size, .schedule = a->schedule};
    size_t cells = (size_t)module->size * a->schedule.table.stages;

    if (cells * sizeof(*a->schedule.to) > WHOLE_KEPT ||
        (a->is_repaired && is_larger_kept(whole.size))) {
        return;
    }
    whole.peers = malloc(module->size * sizeof(*whole.peers));
    if (NULL == whole.peers) {
        return;
    }
    memcpy(whole.peers, module->peers, module->size * sizeof(*whole.peers));
    free(whole.schedule.from); /* nobody asks for it */
    whole.schedule.from = NULL;
    whole.schedule.table.from = NULL;
    a->schedule = (struct ibshift_schedule){0};
    exchange_last(&whole);
    drop_whole(&whole);
}

/* The table that is made from another takes its place: the other one is put back where none is. */
static int arrange_from_last(const mca_coll_ibshift_module_t *module,
                             const struct ibshift_placement *placement,
                             struct ibshift_arrangement *a, struct ibshift_error *err)
{
    const struct ibshift_fabric_file *file = &ibshift_fabric_file;
    struct whole_table whole = {0};
    struct ibshift_earlier earlier = {NULL, NULL};
    uint32_t *now;
    int rc;

    exchange_last(&whole);
    now = ranks_now(module, &whole);
    if (NULL != now) {
        earlier = (struct ibshift_earlier){&whole.schedule, now};
    }
    rc = ibshift_arrange_again(placement, file->order, file->order_count, kinds_wished(), earlier,
                               a, err);
    free(now);
    exchange_last(&whole);
    drop_whole(&whole); /* another thread's, which has come meanwhile */
    return rc;
}

/* Rank 0: the kind of order, and the arrangement if it is a table. After an error the routing order
 * stays. */
static void arrange(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    struct ibshift_arrangement *a, int *told)
{
    struct ibshift_error err = {""};
    char why[256];
    int rc;
    struct ibshift_placement *placement = place_ranks(module, why, sizeof(why), &rc);

    if (0 == rc) {
        rc = ibshift_placement_routes(placement, true, &err);
        if (0 == rc) {
            rc = arrange_from_last(module, placement, a, &err);
        }
        explain(comm, placement, a, rc, err.text);
    }
    told[TOLD_KIND] = 0 == rc ? (int)a->kind : IBSHIFT_ARRANGE_ROUTING;
    told[TOLD_STEP] = 0 == rc ? (int)a->shift.step : 0;
    told[TOLD_STAGES] = 0 == rc ? (int)a->schedule.table.stages : 0;
    told[TOLD_SHARE] = 0 == rc ? (int)(1000 * a->share) : 0;
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
static void choose_paths(const struct ibshift_found_order *found)
{
    const struct ibshift_stages *t = &found->table;

    for (uint32_t s = 0; s < t->stages; s++) {
        if (IBSHIFT_NO_RANK != t->to[s]) {
            ibshift_fabric_set_path(found->peers[t->to[s]],
                                    found->row[PART_LID_OFFSETS * (size_t)t->stages + s]);
        }
    }
}

static int share_table(const mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                       const int *rows, const int *told, struct ibshift_found_order *found)
{
    size_t stages = (size_t)told[TOLD_STAGES], cells = stages * (size_t)told[TOLD_PARTS];
    int rc;

    found->row = malloc(cells * sizeof(*found->row) + 1);
    if (NULL == found->row) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = comm->c_coll->coll_scatter((void *)(uintptr_t)rows, (int)cells, INTEGERS, found->row,
                                    (int)cells, INTEGERS, 0, comm,
                                    comm->c_coll->coll_scatter_module);
    if (OMPI_SUCCESS == rc) {
        found->table = (struct ibshift_stages){.stages = (uint32_t)stages,
                                               .first = module->rank,
                                               .rows = 1,
                                               .to = found->row + PART_TO * stages,
                                               .from = found->row + PART_FROM * stages};
        found->stages = &found->table;
        if (told[TOLD_PARTS] > PART_LID_OFFSETS) {
            choose_paths(found);
        }
    }
    return rc;
}

/* step 0: the order's own. */
static int take_shift(const mca_coll_ibshift_module_t *module, enum ibshift_arrange_kind kind,
                      uint32_t step, struct ibshift_found_order *found)
{
    struct ibshift_placement *placement;
    struct ibshift_error err;
    char why[256];
    int rc;

    placement = place_ranks(module, why, sizeof(why), &rc);
    if (0 == rc) {
        rc = place_along(placement, kind, &found->shift, &err);
    }
    if (0 == rc) {
        found->shift.step = step > 0 ? step : found->shift.step;
        found->order = &found->shift;
    }
    ibshift_placement_close(placement);
    return code_of(rc);
}

/* Rank 0. */
static int *prepare(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                    struct ibshift_arrangement *a, int *told)
{
    int *rows = NULL;

    arrange(module, comm, a, told);
    if (IBSHIFT_ARRANGE_TABLE == told[TOLD_KIND]) {
        rows = rows_of(a, module->size, (size_t)told[TOLD_PARTS]);
        told[TOLD_RC] = NULL == rows ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS;
        keep_whole(module, a);
    }
    return rows;
}

/*
 * Ranks forget at different times: what one of them has forgotten is found again by all; and what
 * one of them has no memory for fails on all. Along trees to and from rank 0, which leave most
 * pairs without a connection: those are still to get their LIDs.
 */
static int find_order(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm, int mine,
                      struct ibshift_found_order *fresh, bool *is_known)
{
    int told[TOLD_SIZE] = {OMPI_SUCCESS, NEW, IBSHIFT_ARRANGE_ROUTING, 0, 0, PART_LID_OFFSETS, 0};
    struct ibshift_arrangement a = {.kind = IBSHIFT_ARRANGE_ROUTING};
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
        fresh->kind = (enum ibshift_arrange_kind)told[TOLD_KIND];
        fresh->share = (unsigned)told[TOLD_SHARE];
    }
    if (OMPI_SUCCESS == rc && !*is_known) {
        rc = IBSHIFT_ARRANGE_TABLE == told[TOLD_KIND]
                 ? share_table(module, comm, rows, told, fresh)
                 : take_shift(module, (enum ibshift_arrange_kind)told[TOLD_KIND],
                              (uint32_t)told[TOLD_STEP], fresh);
    }
    free(rows);
    ibshift_arrangement_free(&a);
    return rc;
}

static void drop(struct ibshift_found_order *found)
{
    ibshift_order_free(&found->shift);
    free(found->row);
    free(found->peers);
    free(found);
}

/* Of those that nobody uses, the latest stay. Under the lock. */
static void drop_old(unsigned kept)
{
    for (struct ibshift_found_order **at = &known; NULL != *at;) {
        struct ibshift_found_order *found = *at;

        if (0 == found->users && 0 == kept) {
            *at = found->next;
            drop(found);
        } else {
            kept -= 0 == found->users;
            at = &found->next;
        }
    }
}

static struct ibshift_found_order *find_known(const mca_coll_ibshift_module_t *module)
{
    struct ibshift_found_order *at;

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

static struct ibshift_found_order *make(const mca_coll_ibshift_module_t *module)
{
    struct ibshift_found_order *found = calloc(1, sizeof(*found));

    if (NULL != found) {
        found->users = 1;
        found->size = module->size;
        found->peers = malloc((size_t)module->size * sizeof(*found->peers));
        if (NULL == found->peers) {
            free(found);
            return NULL;
        }
        memcpy(found->peers, module->peers, module->size * sizeof(*found->peers));
    }
    return found;
}

static void remember(struct ibshift_found_order *found)
{
    pthread_mutex_lock(&lock);
    found->next = known;
    known = found;
    drop_old(KEPT);
    pthread_mutex_unlock(&lock);
}

static void release(struct ibshift_found_order *found)
{
    if (NULL != found) {
        pthread_mutex_lock(&lock);
        found->users--;
        drop_old(KEPT);
        pthread_mutex_unlock(&lock);
    }
}

void ibshift_comm_order_forget(void)
{
    struct whole_table whole = {0};

    exchange_last(&whole);
    drop_whole(&whole);
    pthread_mutex_lock(&lock);
    drop_old(0);
    pthread_mutex_unlock(&lock);
}

/* The second step, by all ranks together. */
static int search_together(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    struct ibshift_comm_order *order = &module->order;
    struct ibshift_found_order *before = find_known(module), *fresh = make(module);
    int mine = NULL == fresh ? NO_MEMORY : NULL == before ? NEW : KNOWN;
    bool is_known;
    int rc = find_order(module, comm, mine, fresh, &is_known);

    if (OMPI_SUCCESS == rc && !is_known) {
        remember(fresh);
    } else if (NULL != fresh) {
        drop(fresh);
    }
    if (OMPI_SUCCESS != rc || !is_known) {
        release(before);
    }
    if (OMPI_SUCCESS == rc) {
        order->found = is_known ? before : fresh;
        order->order = NULL != order->found->order ? order->found->order : order->order;
        order->kind = order->found->kind;
        order->share = order->found->share;
        order->stages = order->found->stages;
        order->state = IBSHIFT_ORDER_FOUND;
    }
    return rc;
}

/* Counts the call; the same on all ranks. */
static bool does_search_pay(const mca_coll_ibshift_module_t *module,
                            struct ibshift_comm_order *order, const struct ibshift_job *job,
                            enum ibshift_patience patience)
{
    order->moved += ibshift_job_is_any_size(job) ? UNKNOWN_BYTES : job->bytes;
    return IBSHIFT_PATIENCE_NONE != patience &&
           (IBSHIFT_PATIENCE_LONG == patience || IBSHIFT_ORDER_AUTO != ibshift_fabric_file.wish ||
            order->moved >= (uint64_t)SEARCH_BYTES * module->size);
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

int ibshift_comm_order_find(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                            const struct ibshift_job *job, enum ibshift_patience patience)
{
    struct ibshift_comm_order *order = &module->order;
    int rc = OMPI_SUCCESS;

    if (0 == ibshift_fabric_file.identity ||
        (IBSHIFT_ALLTOALL != job->collective && !may_rename(job))) {
        return OMPI_SUCCESS;
    }
    if (IBSHIFT_ORDER_UNKNOWN == order->state) {
        rc = locate(module, comm);
    }
    if (OMPI_SUCCESS == rc && IBSHIFT_ALLTOALL == job->collective &&
        IBSHIFT_ORDER_LOCATED == order->state && does_search_pay(module, order, job, patience)) {
        rc = search_together(module, comm);
    }
    return rc;
}

void ibshift_comm_order_free(struct ibshift_comm_order *order)
{
    ibshift_order_free(&order->located);
    free_map(&order->map);
    release(order->found);
}

const char *ibshift_comm_order_words(const mca_coll_ibshift_module_t *module,
                                     const struct ibshift_plan *plan, const struct ibshift_alg *alg)
{
    if (NULL == plan->order || IBSHIFT_ALLTOALL != alg->collective ||
        0 == (alg->flags & IBSHIFT_ALG_ORDER)) {
        return NULL;
    }
    if (IBSHIFT_ORDER_FILE == ibshift_fabric_file.wish) {
        return "in the order of coll_ibshift_order";
    }
    return IBSHIFT_ARRANGE_RANK == module->order.kind      ? "in rank order"
           : IBSHIFT_ARRANGE_KEEPERS == module->order.kind ? "in routing order with place keepers"
                                                           : "in routing order";
}

bool ibshift_comm_order_renames(const mca_coll_ibshift_module_t *module,
                                const struct ibshift_job *job, const struct ibshift_alg *alg)
{
    return 0 != module->order.map.order.places && may_rename(job) &&
           0 == (alg->flags & IBSHIFT_ALG_NODES) &&
           (IBSHIFT_ALLGATHER != job->collective || 0 != (alg->flags & IBSHIFT_ALG_SINGLE));
}

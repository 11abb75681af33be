/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_alltoall_order.h"

#include "ompi/communicator/communicator.h"
#include "ompi/op/op.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
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

struct ibshift_fabric_file ibshift_fabric_file;

/* A path a process of the job; made at the first that is set. Readers take no lock. */
static _Atomic(_Atomic(uint8_t) *) paths;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers the making of paths */

/* A table of stages that was asked for is made of forwarding tables. */
static void say_adaptive(const char *path)
{
    if (NULL != ibshift_fabric_file.fabric && ibshift_fabric_is_adaptive() &&
        IBSHIFT_ORDER_SCHEDULE == ibshift_fabric_file.wish) {
        ibshift_help_once_a_job("adaptive-fabric", path);
    }
}

void ibshift_fabric_file_open(const struct ibshift_verbs *verbs)
{
    struct ibshift_subnet subnet = {.host = ompi_process_info.nodename};
    struct ibshift_error err = {""};
    char path[PATH_MAX];
    int rc;

    if (NULL != verbs) {
        subnet.prefix = ibshift_verbs_subnet(verbs).prefix;
        subnet.sm_lid = ibshift_verbs_subnet(verbs).sm_lid;
    }
    rc = ibshift_fabric_file_find(&ibshift_params, NULL != verbs ? &subnet : NULL,
                                  &ibshift_fabric_file, path, &err);
    if (-ESTALE == rc) {
        ibshift_help_once_a_job("old-fabric", err.text);
    } else if (0 != rc) {
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

    return NULL == path || peer >= ompi_process_info.num_procs ? 0 : path[peer];
}

/* Without memory for them, all go to the first LID. */
static void set_path(uint32_t peer, uint32_t path)
{
    _Atomic(uint8_t) *all;

    pthread_mutex_lock(&lock);
    all = atomic_load(&paths);
    if (NULL == all) {
        all = calloc(ompi_process_info.num_procs, sizeof(*all));
        atomic_store(&paths, all);
    }
    pthread_mutex_unlock(&lock);
    if (NULL != all && peer < ompi_process_info.num_procs) {
        all[peer] = (uint8_t)path;
    }
}

int ibshift_fabric_service_level(void *context, const struct ibshift_verbs_address *from,
                                 const struct ibshift_verbs_address *to, unsigned path)
{
    return ibshift_fabric_file_level(&ibshift_fabric_file, from, to, path);
}

static int code_of(int rc)
{
    return 0 == rc ? OMPI_SUCCESS : -ENOMEM == rc ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_ERROR;
}

static struct ibshift_members members_of(const mca_coll_ibshift_module_t *module)
{
    const struct ibshift_fabric_file *file = &ibshift_fabric_file;

    return (struct ibshift_members){.rank = module->rank,
                                    .size = module->size,
                                    .peers = module->peers,
                                    .host_of = module->order.host_of,
                                    .fabric = file->fabric,
                                    .order = file->order,
                                    .order_count = file->order_count};
}

static int find_places(const mca_coll_ibshift_module_t *module, struct ibshift_comm_order *order,
                       struct ibshift_error *err)
{
    struct ibshift_members members;
    int rc;

    order->host_of = malloc(module->size * sizeof(*order->host_of));
    if (NULL == order->host_of) {
        return -ENOMEM;
    }
    rc = ibshift_fabric_file_hosts(&ibshift_fabric_file, module->peers, module->size,
                                   order->host_of, err);
    members = members_of(module);
    rc = 0 == rc ? ibshift_found_first(&members,
                                       IBSHIFT_ORDER_AUTO == ibshift_fabric_file.wish &&
                                           !ibshift_fabric_is_adaptive(),
                                       &order->located, &order->kind, err)
                 : rc;
    return 0 == rc ? ibshift_rank_map_make(&members, &order->map, err) : rc;
}

/* A file or cluster that does not fit is no error: all ranks find the same, rank order it is. */
static int locate(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    static bool is_told;
    struct ibshift_comm_order *order = &module->order;
    struct ibshift_error err = {""};
    int rc = find_places(module, order, &err);

    order->may_deadlock = 0 == rc && ibshift_fabric_file.fabric->has_loop &&
                          !ibshift_fabric_is_adaptive() && NULL == ibshift_fabric_file.fabric->sl &&
                          ibshift_params.service_level < 0;
    if (0 == rc) {
        order->order = &order->located;
        order->state = IBSHIFT_ORDER_LOCATED;
    } else if (-ENOENT == rc) {
        if ('\0' != err.text[0] && !is_told) {
            is_told = true;
            ibshift_help_once_a_job("other-fabric", err.text, comm->c_name);
        }
        order->state = IBSHIFT_ORDER_BY_RANK;
        return OMPI_SUCCESS;
    } else {
        ibshift_comm_order_free(order);
        *order = (struct ibshift_comm_order){.state = IBSHIFT_ORDER_UNKNOWN};
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

/* The collectives by which ranks tell each other, for all ranks of the communicator as the
 * context. */
static int least(void *context, int mine, int *least_one)
{
    struct ompi_communicator_t *comm = context;

    return OMPI_SUCCESS == comm->c_coll->coll_reduce(&mine, least_one, 1, INTEGERS, MPI_MIN, 0,
                                                     comm, comm->c_coll->coll_reduce_module)
               ? 0
               : -EIO;
}

static int tell(void *context, int *words, int count)
{
    struct ompi_communicator_t *comm = context;

    return OMPI_SUCCESS == comm->c_coll->coll_bcast(words, count, INTEGERS, 0, comm,
                                                    comm->c_coll->coll_bcast_module)
               ? 0
               : -EIO;
}

static int deal(void *context, const int *rows, int *row, int count)
{
    struct ompi_communicator_t *comm = context;

    return OMPI_SUCCESS == comm->c_coll->coll_scatter((void *)(uintptr_t)rows, count, INTEGERS, row,
                                                      count, INTEGERS, 0, comm,
                                                      comm->c_coll->coll_scatter_module)
               ? 0
               : -EIO;
}

static void explain(const mca_coll_ibshift_module_t *module, const struct ompi_communicator_t *comm,
                    const struct ibshift_found_words *words)
{
    fprintf(stderr, "ibshift: %s, %u ranks on %u hosts: all-to-all: %s%s\n", comm->c_name,
            module->size, words->hosts,
            IBSHIFT_ORDER_FILE == ibshift_fabric_file.wish ? "in the order of coll_ibshift_order: "
                                                           : "",
            words->text);
}

/* The second step, by all ranks together. */
static int search_together(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm)
{
    const struct ibshift_together together = {comm, least, tell, deal, set_path};
    const struct ibshift_members members = members_of(module);
    struct ibshift_comm_order *order = &module->order;
    struct ibshift_found_words words;
    int rc = ibshift_found_search(&members, kinds_wished(), &together, &words, &order->found);

    if (ibshift_params.explain && '\0' != words.text[0]) {
        explain(module, comm, &words);
    }
    if (0 == rc) {
        order->order = NULL != order->found->order ? order->found->order : order->order;
        order->kind = order->found->kind;
        order->share = order->found->share;
        order->stages = order->found->stages;
        order->state = IBSHIFT_ORDER_FOUND;
    }
    return code_of(rc);
}

/* Counts the call; the same on all ranks. A nonblocking one must not wait for others, and a
 * persistent one runs often. Where switches choose the routes, none of a table would be kept. */
static bool does_search_pay(const mca_coll_ibshift_module_t *module,
                            struct ibshift_comm_order *order, const struct ibshift_job *job,
                            enum ibshift_form form)
{
    order->moved += ibshift_job_is_any_size(job) ? UNKNOWN_BYTES : job->bytes;
    return IBSHIFT_NONBLOCKING != form && !ibshift_fabric_is_adaptive() &&
           (IBSHIFT_PERSISTENT == form || IBSHIFT_ORDER_AUTO != ibshift_fabric_file.wish ||
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
                            const struct ibshift_job *job, enum ibshift_form form)
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
        IBSHIFT_ORDER_LOCATED == order->state && does_search_pay(module, order, job, form)) {
        rc = search_together(module, comm);
    }
    return rc;
}

void ibshift_comm_order_free(struct ibshift_comm_order *order)
{
    ibshift_order_free(&order->located);
    ibshift_rank_map_free(&order->map);
    ibshift_found_release(order->found);
    free(order->host_of);
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
    return ibshift_fabric_is_adaptive()                    ? "host by host along the fabric"
           : IBSHIFT_ARRANGE_RANK == module->order.kind    ? "in rank order"
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

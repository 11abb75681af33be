/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_job.h"

#include "ompi/op/op.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A block for each of n ranks, as MPI's arguments say. Without a neighbour on that side they say nothing: arrays may be
 * NULL. */
static struct ibshift_side blocks(const void *user, ibshift_count_t count, ibshift_array_t counts,
                                  ibshift_array_t displs, struct ompi_datatype_t *type,
                                  struct ompi_datatype_t *const *types, uint32_t n)
{
    return (struct ibshift_side){
        .shape = 0 == n                       ? IBSHIFT_SIDE_ABSENT
                 : NULL != types              ? IBSHIFT_SIDE_TYPES
                 : IBSHIFT_NO_ARRAY != counts ? IBSHIFT_SIDE_COUNTS
                                              : IBSHIFT_SIDE_BLOCKS,
        .user = (char *)(uintptr_t)user,
        .count = (size_t)count,
        .counts = counts,
        .displs = displs,
        .type = type,
        .types = types,
        .blocks = n,
        .is_apart = NULL == types && IBSHIFT_NO_ARRAY != counts && IBSHIFT_NO_ARRAY != displs &&
                    ibshift_array_width(counts) != ibshift_array_width(displs)};
}

/* One of the blocks as a side of its own. */
static struct ibshift_side block_of(const struct ibshift_side *all, uint32_t rank)
{
    bool is_counted = IBSHIFT_NO_ARRAY != all->counts;
    ptrdiff_t at =
        is_counted ? ibshift_array_at(all->displs, rank) : (ptrdiff_t)rank * (ptrdiff_t)all->count;

    return (struct ibshift_side){.shape = IBSHIFT_SIDE_BLOCKS,
                                 .user = all->user + at * ibshift_type_extent(all->type),
                                 .count = is_counted ? (size_t)ibshift_array_at(all->counts, rank)
                                                     : all->count,
                                 .type = all->type,
                                 .blocks = 1};
}

/* What all ranks know: the size of a block, or with counts for all the mean. */
static uint64_t bytes_of(const struct ibshift_side *side)
{
    uint64_t elements = IBSHIFT_NO_ARRAY != side->counts ? 0 : side->count;

    if (IBSHIFT_NO_ARRAY != side->counts) {
        for (uint32_t i = 0; i < side->blocks; i++) {
            elements += (uint64_t)ibshift_array_at(side->counts, i);
        }
        return elements * ibshift_type_size(side->type) / side->blocks;
    }
    return elements * ibshift_type_size(side->type);
}

/* gather, scatter, allgather, alltoall, with counts or without: a rank has blocks of all ranks
 * on one side or both, with a root the root alone has. */
static void describe_blocks(const mca_coll_ibshift_module_t *module, const struct ibshift_raw *raw,
                            struct ibshift_job *job)
{
    bool is_rooted = IBSHIFT_GATHER == job->collective || IBSHIFT_SCATTER == job->collective;
    bool has_all = !is_rooted || module->group.rank == job->root;
    bool sends_all = IBSHIFT_SCATTER == job->collective || IBSHIFT_ALLTOALL == job->collective;
    bool gets_all = IBSHIFT_SCATTER != job->collective;
    struct ibshift_side send = blocks(raw->sbuf, raw->scount, raw->scounts, raw->sdispls,
                                      raw->stype, raw->stypes, sends_all ? module->group.size : 1);
    struct ibshift_side recv = blocks(raw->rbuf, raw->rcount, raw->rcounts, raw->rdispls,
                                      raw->rtype, raw->rtypes, gets_all ? module->group.size : 1);

    send.loads = recv.stores = true;
    job->in_place = has_all && gets_all && MPI_IN_PLACE == raw->sbuf;
    if (job->in_place) {
        send = sends_all ? recv : block_of(&recv, module->group.rank);
        send.loads = true;
        send.stores = false;
    } else if (has_all && !gets_all && MPI_IN_PLACE == raw->rbuf) {
        recv = block_of(&send, module->group.rank); /* the plan's own block goes nowhere */
        recv.user = NULL;
        recv.is_apart = true;
    }
    if (sends_all && !has_all) {
        send = (struct ibshift_side){.shape = IBSHIFT_SIDE_ABSENT};
    } else if (gets_all && !has_all) {
        recv = (struct ibshift_side){.shape = IBSHIFT_SIDE_ABSENT};
    }
    if (0 != (raw->form & IBSHIFT_RAW_VECTOR)) {
        job->needs =
            IBSHIFT_ALG_SIZES | (IBSHIFT_ALLGATHER == job->collective  ? IBSHIFT_ALG_SIZES_ALL
                                 : 0 != (raw->form & IBSHIFT_RAW_LONG) ? 0
                                                                       : IBSHIFT_ALG_SIZES_NODE);
    }
    if (!ibshift_needs_any_size(job->needs)) {
        job->bytes =
            bytes_of(IBSHIFT_SIDE_ABSENT == recv.shape || (has_all && !gets_all) ? &send : &recv);
    }
    job->send = send;
    job->recv = recv;
}

/* Some ranks may be of another part of the graph, and know nothing of the others' sizes. */
static int describe_neighbors(const mca_coll_ibshift_module_t *module,
                              const struct ibshift_raw *raw, struct ibshift_job *job)
{
    const struct ibshift_neighborhood *own = &module->group.neighborhood;
    bool gathers = IBSHIFT_NEIGHBOR_ALLGATHER == job->collective;
    bool has_places = 0 != (raw->form & IBSHIFT_RAW_PLACES);

    if (0 != (raw->form & IBSHIFT_RAW_IN_PLACE)) {
        return OMPI_ERR_BAD_PARAM;
    }
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    job->send = blocks(raw->sbuf, raw->scount, raw->scounts, raw->sdispls, raw->stype, raw->stypes,
                       gathers ? 1 : own->destinations);
    job->recv = blocks(raw->rbuf, raw->rcount, raw->rcounts, raw->rdispls, raw->rtype, raw->rtypes,
                       own->sources);
    job->send.loads = job->recv.stores = true;
    job->send.has_places = job->recv.has_places = has_places;
    job->recv.there = own->has_source;
    job->send.there = gathers ? NULL : own->has_destination;
    return OMPI_SUCCESS;
}

/* Operands of a reduction lie one behind the other, whatever gaps they have inside. */
static bool is_separate(const struct ompi_datatype_t *type)
{
    ptrdiff_t lower, true_extent;

    ompi_datatype_get_true_extent(type, &lower, &true_extent);
    return true_extent <= ibshift_type_extent(type);
}

/* The operands of a side: a vector; of reduce_scatter as many as each rank gets, one rank's
 * behind the other's. */
static struct ibshift_side operands(const void *user, const struct ibshift_raw *raw)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_VECTOR,
                                 .user = (char *)(uintptr_t)user,
                                 .count = (size_t)raw->rcount,
                                 .type = raw->rtype,
                                 .is_operand = true};
}

static void describe_scattered(const mca_coll_ibshift_module_t *module,
                               const struct ibshift_raw *raw, struct ibshift_job *job)
{
    job->send.shape = job->recv.shape = IBSHIFT_SIDE_BLOCKS;
    job->send.blocks = module->group.size;
    job->recv.blocks = 1;
    if (IBSHIFT_NO_ARRAY != raw->rcounts) {
        job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL;
        job->send.shape = IBSHIFT_SIDE_RUNS;
        job->send.counts = raw->rcounts;
        job->recv.count = (size_t)ibshift_array_at(raw->rcounts, module->group.rank);
        job->bytes = bytes_of(&job->send);
    }
}

static int describe_reduction(const mca_coll_ibshift_module_t *module,
                              const struct ibshift_raw *raw, struct ibshift_job *job)
{
    if (!is_separate(raw->rtype)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    job->op = raw->op;
    job->bytes = (uint64_t)raw->rcount * ibshift_type_size(raw->rtype);
    job->in_place = MPI_IN_PLACE == raw->sbuf;
    job->send = operands(job->in_place ? raw->rbuf : raw->sbuf, raw);
    job->send.loads = true;
    job->recv = operands(raw->rbuf, raw);
    job->recv.stores =
        IBSHIFT_EXSCAN != job->collective || 0 != module->group.rank; /* 0 gets nothing */
    if (IBSHIFT_REDUCE_SCATTER == job->collective) {
        describe_scattered(module, raw, job);
    } else if (IBSHIFT_REDUCE == job->collective && module->group.rank != job->root) {
        job->recv = (struct ibshift_side){.shape = IBSHIFT_SIDE_ABSENT};
    }
    return OMPI_SUCCESS;
}

static void describe_bcast(const mca_coll_ibshift_module_t *module, const struct ibshift_raw *raw,
                           struct ibshift_job *job)
{
    job->recv = operands(raw->rbuf, raw);
    job->recv.is_operand = false;
    job->recv.loads = module->group.rank == job->root;
    job->recv.stores = !job->recv.loads;
    job->bytes = bytes_of(&job->recv);
}

static int describe(const mca_coll_ibshift_module_t *module, const struct ibshift_called *called,
                    struct ibshift_job *job)
{
    const struct ibshift_raw *raw = &called->raw;

    *job = (struct ibshift_job){.collective = called->collective,
                                .name = called->name,
                                .root = (uint32_t)raw->root,
                                .raw_form = raw->form};
    switch (called->collective) {
    case IBSHIFT_BARRIER:
        break;
    case IBSHIFT_BCAST:
        describe_bcast(module, raw, job);
        break;
    case IBSHIFT_SCATTER:
    case IBSHIFT_GATHER:
    case IBSHIFT_ALLGATHER:
    case IBSHIFT_ALLTOALL:
        describe_blocks(module, raw, job);
        break;
    case IBSHIFT_NEIGHBOR_ALLGATHER:
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        return describe_neighbors(module, raw, job);
    default:
        return describe_reduction(module, raw, job);
    }
    return OMPI_SUCCESS;
}

/* No memory has 2^63 bytes, but counts times sizes may come to that. Blocks that are alike are looked at once. */
static bool is_countable(const struct ibshift_side *side)
{
    bool is_counted = IBSHIFT_NO_ARRAY != side->counts;
    uint32_t blocks = IBSHIFT_SIDE_VECTOR == side->shape ? 1 : side->blocks;
    uint32_t alike = is_counted || NULL != side->types || NULL != side->there ? 1 : blocks;
    double sum = 0;

    for (uint32_t i = 0; IBSHIFT_SIDE_ABSENT != side->shape && i < blocks; i += alike) {
        size_t count = is_counted ? (size_t)ibshift_array_at(side->counts, i) : side->count;

        if (NULL == side->there || side->there[i]) {
            sum += (double)count * alike *
                   ibshift_type_size(NULL != side->types ? side->types[i] : side->type);
        }
    }
    return sum < 0x1p63;
}

int ibshift_job_describe(const mca_coll_ibshift_module_t *module,
                         const struct ibshift_called *called, struct ibshift_job *job)
{
    int rc = describe(module, called, job);

    if (OMPI_SUCCESS == rc && !(is_countable(&job->send) && is_countable(&job->recv))) {
        ibshift_help("too-many-bytes", called->name, module->group.name, module->group.rank,
                     ompi_process_info.nodename);
        return MPI_ERR_COUNT;
    }
    return rc;
}

struct ibshift_wanted ibshift_job_wanted(const struct ibshift_job *job, enum ibshift_form form)
{
    return (struct ibshift_wanted){
        .collective = job->collective,
        .name = job->name,
        .needs = job->needs,
        .bytes = job->bytes,
        .is_counted = 0 != (job->raw_form & IBSHIFT_RAW_VECTOR),
        .commutes = NULL != job->op && ompi_op_is_commute(job->op),
        .is_blocking = IBSHIFT_BLOCKING == form,
        .is_again = IBSHIFT_PERSISTENT == form,
    };
}

#define INTEGERS MPI_INT

int ibshift_errno(int code)
{
    return OMPI_SUCCESS == code                   ? 0
           : OMPI_ERR_OUT_OF_RESOURCE == code     ? -ENOMEM
           : ibshift_compat_peer_failed() == code ? -ECONNABORTED
                                                  : -EIO;
}

static int least(void *context, int mine, int *least_one)
{
    struct ompi_communicator_t *comm = context;

    return ibshift_errno(comm->c_coll->coll_reduce(&mine, least_one, 1, INTEGERS, MPI_MIN, 0, comm,
                                                   comm->c_coll->coll_reduce_module));
}

static int tell(void *context, int *words, int count)
{
    struct ompi_communicator_t *comm = context;

    return ibshift_errno(
        comm->c_coll->coll_bcast(words, count, INTEGERS, 0, comm, comm->c_coll->coll_bcast_module));
}

static int deal(void *context, const int *rows, int *row, int count)
{
    struct ompi_communicator_t *comm = context;

    return ibshift_errno(comm->c_coll->coll_scatter((void *)(uintptr_t)rows, count, INTEGERS, row,
                                                    count, INTEGERS, 0, comm,
                                                    comm->c_coll->coll_scatter_module));
}

struct ibshift_together ibshift_job_together(struct ompi_communicator_t *comm)
{
    return (struct ibshift_together){.comm = comm, .least = least, .tell = tell, .deal = deal};
}

/* Open MPI's own operators have functions for each of its own types. */
static int function_of(struct ompi_op_t *op, const struct ompi_datatype_t *type)
{
    return ompi_op_is_intrinsic(op) && ompi_datatype_is_predefined(type) ? ompi_op_ddt_map[type->id]
                                                                         : -1;
}

/* Whether the functions for types can be called at once. */
static bool is_simple(const struct ibshift_operator *reducer)
{
    return reducer->function >= 0 && 0 == reducer->lower_bound;
}

/* Of a simple operator; right is target, or apart and there is a function of three. */
static inline void reduce_simply(struct ibshift_operator *reducer, void *left, void *right,
                                 void *target, size_t elements)
{
    struct ompi_op_t *op = reducer->op;
    int count = (int)elements, function = reducer->function;

    if (target == right) {
        op->o_func.intrinsic.fns[function](left, target, &count, &reducer->type,
                                           op->o_func.intrinsic.modules[function]);
    } else {
        op->o_3buff_intrinsic.fns[function](left, right, target, &count, &reducer->type,
                                            op->o_3buff_intrinsic.modules[function]);
    }
}

static void reduce_few(void *context, const void *left, void *right, void *target, size_t elements)
{
    struct ibshift_operator *reducer = context;

    if (target != right && !reducer->takes_three) {
        right = memmove(target, right, elements * reducer->extent);
    }
    reduce_simply(reducer, (void *)(uintptr_t)left, right, target, elements);
}

void ibshift_operator_reduce(void *context, const void *left, void *right, void *target,
                             size_t elements)
{
    struct ibshift_operator *reducer = context;
    ptrdiff_t at = 0;

    if (target != right && !reducer->takes_three) {
        right = memmove(target, right, elements * reducer->extent);
    }
    for (size_t left_over = elements, n; left_over > 0; left_over -= n) {
        char *from = (char *)(uintptr_t)left + at, *to = (char *)target + at;

        n = left_over < INT_MAX ? left_over : INT_MAX;
        if (is_simple(reducer)) {
            reduce_simply(reducer, from, (char *)right + at, to, n);
        } else {
            ompi_op_reduce(reducer->op, from - reducer->lower_bound, to - reducer->lower_bound, n,
                           reducer->type);
        }
        at += (ptrdiff_t)(n * reducer->extent);
    }
}

ibshift_reduce_fn ibshift_operator_short(const struct ibshift_operator *reducer)
{
    return is_simple(reducer) ? reduce_few : ibshift_operator_reduce;
}

struct ibshift_operator ibshift_job_operator(const struct ibshift_job *job)
{
    struct ibshift_operator reducer = {.op = job->op,
                                       .type = job->send.type,
                                       .function = function_of(job->op, job->send.type),
                                       .lower_bound = ibshift_type_lower_bound(job->send.type),
                                       .extent = (size_t)ibshift_type_extent(job->send.type)};

    /* In place, the result of a reduce_scatter may lie across the rank's own operand. */
    reducer.takes_three = is_simple(&reducer) &&
                          NULL != job->op->o_3buff_intrinsic.fns[reducer.function] &&
                          !(job->in_place && IBSHIFT_REDUCE_SCATTER == job->collective);
    return reducer;
}

uint64_t ibshift_job_elements(const struct ibshift_job *job, uint32_t ranks)
{
    size_t size = NULL == job->op ? 0 : ibshift_type_size(job->send.type);
    uint64_t elements = 0 == size ? 0 : job->bytes / size;

    switch (job->collective) {
    case IBSHIFT_ALLREDUCE:
        return elements;
    case IBSHIFT_REDUCE_SCATTER: /* with counts, a rank that gets nothing may end first */
        return 0 == (job->raw_form & IBSHIFT_RAW_VECTOR) ? elements * ranks : 0;
    default:
        return 0;
    }
}

/* What the program has made has no number that all ranks know. */
static uint64_t number_of_operator(const struct ibshift_job *job)
{
    const struct ompi_datatype_t *type = job->send.type;

    return NULL == job->op || !ompi_op_is_intrinsic(job->op) || NULL == type ||
                   !ompi_datatype_is_predefined(type)
               ? 0
               : (uint64_t)job->op->o_f_to_c_index << 32 | type->super.id;
}

uint32_t ibshift_job_badge(const struct ibshift_job *job, const struct ibshift_alg *alg,
                           const struct ibshift_plan *plan)
{
    bool is_even = 0 == (job->raw_form & (IBSHIFT_RAW_VECTOR | IBSHIFT_RAW_PADDED));
    bool is_typed = 0 != (job->raw_form & IBSHIFT_RAW_TYPES);
    enum ibshift_badge_variant variant = is_even    ? IBSHIFT_BADGE_EVEN
                                         : is_typed ? IBSHIFT_BADGE_TYPED
                                                    : IBSHIFT_BADGE_COUNTED;

    return ibshift_badge(variant, number_of_operator(job), alg, plan, job->root);
}

/* How a failed collective ends for MPI. */
int ibshift_code(int status)
{
    switch (status) {
    case 0:
        return OMPI_SUCCESS;
    case -ENOMEM:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case -ENOTSUP:
        return OMPI_ERR_NOT_SUPPORTED;
    case -EMSGSIZE:
        return MPI_ERR_TRUNCATE;
    case -ECONNABORTED:
    case -ECONNRESET:
    case -EHOSTUNREACH:
    case -ETIME:
    case -ETIMEDOUT:
        return ibshift_compat_peer_failed();
    default: /* nobody's death */
        return MPI_ERR_OTHER;
    }
}

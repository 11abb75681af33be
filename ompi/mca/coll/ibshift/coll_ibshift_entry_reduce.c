/* reduce, allreduce, scan, exscan, reduce_scatter, reduce_scatter_block. */

#include "coll_ibshift_entry.h"

static struct ibshift_side operand(const void *user, size_t count, struct ompi_datatype_t *type)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_VECTOR,
                                 .user = (char *)(uintptr_t)user,
                                 .count = count,
                                 .type = type,
                                 .is_operand = true};
}

/* A vector on both sides. */
static int describe_vector(enum ibshift_collective collective, const void *sbuf, void *rbuf,
                           int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                           struct ibshift_job *job)
{
    if (!ibshift_type_is_separate(type)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    job->collective = collective;
    job->bytes = (uint64_t)count * ibshift_type_size(type);
    job->op = op;
    job->in_place = MPI_IN_PLACE == sbuf;
    job->send = operand(job->in_place ? rbuf : sbuf, (size_t)count, type);
    job->send.loads = true;
    job->recv = operand(rbuf, (size_t)count, type);
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

static int describe_reduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                           struct ompi_op_t *op, int root, const mca_coll_ibshift_module_t *module,
                           struct ibshift_job *job)
{
    int rc = describe_vector(IBSHIFT_REDUCE, sbuf, rbuf, count, type, op, job);

    job->root = (uint32_t)root;
    if (module->rank != job->root) {
        job->recv = (struct ibshift_side){.shape = IBSHIFT_SIDE_ABSENT};
    }
    return rc;
}

static int describe_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                              struct ompi_op_t *op, const mca_coll_ibshift_module_t *module,
                              struct ibshift_job *job)
{
    return describe_vector(IBSHIFT_ALLREDUCE, sbuf, rbuf, count, type, op, job);
}

static int describe_scan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                         struct ompi_op_t *op, const mca_coll_ibshift_module_t *module,
                         struct ibshift_job *job)
{
    return describe_vector(IBSHIFT_SCAN, sbuf, rbuf, count, type, op, job);
}

static int describe_exscan(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                           struct ompi_op_t *op, const mca_coll_ibshift_module_t *module,
                           struct ibshift_job *job)
{
    int rc = describe_vector(IBSHIFT_EXSCAN, sbuf, rbuf, count, type, op, job);

    job->recv.stores = module->rank != 0; /* rank 0 gets nothing */
    return rc;
}

static int describe_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
                                   struct ompi_datatype_t *type, struct ompi_op_t *op,
                                   const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < module->size; i++) {
        sum += (size_t)rcounts[i];
    }
    if (!ibshift_type_is_separate(type)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    job->collective = IBSHIFT_REDUCE_SCATTER;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL;
    job->bytes = sum * ibshift_type_size(type) / module->size;
    job->op = op;
    job->in_place = MPI_IN_PLACE == sbuf;
    job->send = operand(job->in_place ? rbuf : sbuf, 0, type);
    job->send.shape = IBSHIFT_SIDE_RUNS;
    job->send.counts = rcounts;
    job->send.blocks = module->size;
    job->send.loads = true;
    job->recv = operand(rbuf, (size_t)rcounts[module->rank], type);
    job->recv.shape = IBSHIFT_SIDE_BLOCKS;
    job->recv.blocks = 1;
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

static int describe_reduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
                                         struct ompi_datatype_t *type, struct ompi_op_t *op,
                                         const mca_coll_ibshift_module_t *module,
                                         struct ibshift_job *job)
{
    if (!ibshift_type_is_separate(type)) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    job->collective = IBSHIFT_REDUCE_SCATTER;
    job->bytes = (uint64_t)rcount * ibshift_type_size(type);
    job->op = op;
    job->in_place = MPI_IN_PLACE == sbuf;
    job->recv = operand(rbuf, (size_t)rcount, type);
    job->recv.shape = IBSHIFT_SIDE_BLOCKS;
    job->recv.blocks = 1;
    job->recv.stores = true;
    job->send = job->recv;
    job->send.user = job->in_place ? rbuf : (char *)(uintptr_t)sbuf;
    job->send.blocks = module->size;
    job->send.loads = true;
    job->send.stores = false;
    return OMPI_SUCCESS;
}

static struct ibshift_raw raw_vector(const void *sbuf, void *rbuf, int count,
                                     struct ompi_datatype_t *type, struct ompi_op_t *op)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, count, type, rbuf, count, type, 0);

    raw.op = op;
    return raw;
}

static struct ibshift_raw raw_reduce(const void *sbuf, void *rbuf, int count,
                                     struct ompi_datatype_t *type, struct ompi_op_t *op, int root,
                                     const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = raw_vector(sbuf, rbuf, count, type, op);

    raw.root = root;
    return raw;
}

static struct ibshift_raw raw_allreduce(const void *sbuf, void *rbuf, int count,
                                        struct ompi_datatype_t *type, struct ompi_op_t *op,
                                        const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

static struct ibshift_raw raw_scan(const void *sbuf, void *rbuf, int count,
                                   struct ompi_datatype_t *type, struct ompi_op_t *op,
                                   const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

static struct ibshift_raw raw_exscan(const void *sbuf, void *rbuf, int count,
                                     struct ompi_datatype_t *type, struct ompi_op_t *op,
                                     const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

static struct ibshift_raw raw_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
                                             struct ompi_datatype_t *type, struct ompi_op_t *op,
                                             const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = raw_vector(sbuf, rbuf, 0, type, op);

    raw.is_vector = true;
    raw.scounts = rcounts;
    return raw;
}

static struct ibshift_raw raw_reduce_scatter_block(const void *sbuf, void *rbuf, int count,
                                                   struct ompi_datatype_t *type,
                                                   struct ompi_op_t *op,
                                                   const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

#define OPERANDS                                                                                   \
    (const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type, struct ompi_op_t *op, )

IBSHIFT_ENTRIES(reduce, IBSHIFT_REDUCE,
                (const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *type,
                 struct ompi_op_t *op, int root, ),
                (sbuf, rbuf, count, type, op, root, ))
IBSHIFT_ENTRIES(allreduce, IBSHIFT_ALLREDUCE, OPERANDS, (sbuf, rbuf, count, type, op, ))
IBSHIFT_ENTRIES(scan, IBSHIFT_SCAN, OPERANDS, (sbuf, rbuf, count, type, op, ))
IBSHIFT_ENTRIES(exscan, IBSHIFT_EXSCAN, OPERANDS, (sbuf, rbuf, count, type, op, ))
IBSHIFT_ENTRIES(reduce_scatter, IBSHIFT_REDUCE_SCATTER,
                (const void *sbuf, void *rbuf, const int *rcounts, struct ompi_datatype_t *type,
                 struct ompi_op_t *op, ),
                (sbuf, rbuf, rcounts, type, op, ))
IBSHIFT_ENTRIES(reduce_scatter_block, IBSHIFT_REDUCE_SCATTER, OPERANDS,
                (sbuf, rbuf, count, type, op, ))

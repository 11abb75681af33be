/* What each collective asks for, and what its calls are remembered by. */

#include "coll_ibshift_entry.h"

/* Of what a call is remembered by only numbers in registers are wanted, as a rule. */
#define IN_LINE __attribute__((always_inline)) static inline

static struct ibshift_side blocks(const void *user, size_t count, struct ompi_datatype_t *type,
                                  uint32_t n)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_BLOCKS,
                                 .user = (char *)(uintptr_t)user,
                                 .count = count,
                                 .type = type,
                                 .blocks = n};
}

static char *block_at(void *user, uint32_t block, int count, struct ompi_datatype_t *type)
{
    return (char *)user + (ptrdiff_t)block * count * ibshift_type_extent(type);
}

static uint64_t bytes_of(int count, const struct ompi_datatype_t *type)
{
    return (uint64_t)count * ibshift_type_size(type);
}

static int describe_barrier(const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_BARRIER;
    return OMPI_SUCCESS;
}

static int describe_bcast(void *buffer, int count, struct ompi_datatype_t *type, int root,
                          const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    bool is_root = module->rank == (uint32_t)root;

    job->collective = IBSHIFT_BCAST;
    job->root = (uint32_t)root;
    job->bytes = bytes_of(count, type);
    job->recv = (struct ibshift_side){.shape = IBSHIFT_SIDE_VECTOR,
                                      .user = buffer,
                                      .count = (size_t)count,
                                      .type = type,
                                      .loads = is_root,
                                      .stores = !is_root};
    return OMPI_SUCCESS;
}

static int describe_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                           int rcount, struct ompi_datatype_t *rtype, int root,
                           const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    bool is_root = module->rank == (uint32_t)root;

    job->collective = IBSHIFT_GATHER;
    job->root = (uint32_t)root;
    job->bytes = is_root ? bytes_of(rcount, rtype) : bytes_of(scount, stype);
    job->in_place = is_root && MPI_IN_PLACE == sbuf;
    job->send = job->in_place
                    ? blocks(block_at(rbuf, module->rank, rcount, rtype), (size_t)rcount, rtype, 1)
                    : blocks(sbuf, (size_t)scount, stype, 1);
    job->send.loads = true;
    if (is_root) {
        job->recv = blocks(rbuf, (size_t)rcount, rtype, module->size);
        job->recv.stores = true;
    }
    return OMPI_SUCCESS;
}

static int describe_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                            int rcount, struct ompi_datatype_t *rtype, int root,
                            const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    bool is_root = module->rank == (uint32_t)root, in_place = is_root && MPI_IN_PLACE == rbuf;

    job->collective = IBSHIFT_SCATTER;
    job->root = (uint32_t)root;
    job->bytes = is_root ? bytes_of(scount, stype) : bytes_of(rcount, rtype);
    if (is_root) {
        job->send = blocks(sbuf, (size_t)scount, stype, module->size);
        job->send.loads = true;
    }
    if (in_place) { /* the plan's own block goes nowhere */
        job->recv = blocks(NULL, (size_t)scount, stype, 1);
        job->recv.is_apart = true;
    } else {
        job->recv = blocks(rbuf, (size_t)rcount, rtype, 1);
        job->recv.stores = true;
    }
    return OMPI_SUCCESS;
}

static int describe_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                              void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                              const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_ALLGATHER;
    job->bytes = bytes_of(rcount, rtype);
    job->in_place = MPI_IN_PLACE == sbuf;
    job->send = job->in_place
                    ? blocks(block_at(rbuf, module->rank, rcount, rtype), (size_t)rcount, rtype, 1)
                    : blocks(sbuf, (size_t)scount, stype, 1);
    job->send.loads = true;
    job->recv = blocks(rbuf, (size_t)rcount, rtype, module->size);
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

static int describe_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                             void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                             const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_ALLTOALL;
    job->bytes = bytes_of(rcount, rtype);
    job->in_place = MPI_IN_PLACE == sbuf;
    job->recv = blocks(rbuf, (size_t)rcount, rtype, module->size);
    job->send = job->in_place ? job->recv : blocks(sbuf, (size_t)scount, stype, module->size);
    job->send.loads = true;
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

IN_LINE struct ibshift_raw raw_barrier(const mca_coll_ibshift_module_t *module)
{
    return (struct ibshift_raw){.root = 0};
}

IN_LINE struct ibshift_raw raw_bcast(void *buffer, int count, struct ompi_datatype_t *type,
                                     int root, const mca_coll_ibshift_module_t *module)
{
    return ibshift_raw_of(NULL, 0, NULL, buffer, count, type, root);
}

IN_LINE struct ibshift_raw raw_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                      void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                      int root, const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;

    return ibshift_raw_of(sbuf, scount, stype, rbuf, is_root ? rcount : 0, is_root ? rtype : NULL,
                          root);
}

IN_LINE struct ibshift_raw raw_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                       void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                       int root, const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;

    return ibshift_raw_of(sbuf, is_root ? scount : 0, is_root ? stype : NULL, rbuf, rcount, rtype,
                          root);
}

IN_LINE struct ibshift_raw raw_allgather(const void *sbuf, int scount,
                                         struct ompi_datatype_t *stype, void *rbuf, int rcount,
                                         struct ompi_datatype_t *rtype,
                                         const mca_coll_ibshift_module_t *module)
{
    return ibshift_raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0);
}

IN_LINE struct ibshift_raw raw_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                        void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                        const mca_coll_ibshift_module_t *module)
{
    return ibshift_raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0);
}

IBSHIFT_ENTRIES(barrier, IBSHIFT_BARRIER, (), ())
IBSHIFT_ENTRIES(bcast, IBSHIFT_BCAST,
                (void *buffer, int count, struct ompi_datatype_t *type, int root, ),
                (buffer, count, type, root, ))
IBSHIFT_ENTRIES(gather, IBSHIFT_GATHER,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 int rcount, struct ompi_datatype_t *rtype, int root, ),
                (sbuf, scount, stype, rbuf, rcount, rtype, root, ))
IBSHIFT_ENTRIES(scatter, IBSHIFT_SCATTER,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 int rcount, struct ompi_datatype_t *rtype, int root, ),
                (sbuf, scount, stype, rbuf, rcount, rtype, root, ))
IBSHIFT_ENTRIES(allgather, IBSHIFT_ALLGATHER,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 int rcount, struct ompi_datatype_t *rtype, ),
                (sbuf, scount, stype, rbuf, rcount, rtype, ))
IBSHIFT_ENTRIES(alltoall, IBSHIFT_ALLTOALL,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 int rcount, struct ompi_datatype_t *rtype, ),
                (sbuf, scount, stype, rbuf, rcount, rtype, ))

/* gatherv, scatterv, allgatherv, alltoallv, alltoallw: blocks of different sizes. */

static struct ibshift_side one_block(const void *user, int count, struct ompi_datatype_t *type)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_BLOCKS,
                                 .user = (char *)(uintptr_t)user,
                                 .count = (size_t)count,
                                 .type = type,
                                 .blocks = 1};
}

static struct ibshift_side counted(const void *user, const int *counts, const int *displs,
                                   struct ompi_datatype_t *type, uint32_t n)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_COUNTS,
                                 .user = (char *)(uintptr_t)user,
                                 .counts = counts,
                                 .displs = displs,
                                 .type = type,
                                 .blocks = n};
}

/* One of the blocks as a side of its own. */
static struct ibshift_side block_of(void *user, const int *counts, const int *displs,
                                    struct ompi_datatype_t *type, uint32_t block)
{
    return one_block((char *)user + displs[block] * ibshift_type_extent(type), counts[block], type);
}

static int describe_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                            const int *rcounts, const int *displs, struct ompi_datatype_t *rtype,
                            int root, const mca_coll_ibshift_module_t *module,
                            struct ibshift_job *job)
{
    bool is_root = module->rank == (uint32_t)root;

    job->collective = IBSHIFT_GATHER;
    job->root = (uint32_t)root;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    job->in_place = is_root && MPI_IN_PLACE == sbuf;
    job->send = job->in_place ? block_of(rbuf, rcounts, displs, rtype, module->rank)
                              : one_block(sbuf, scount, stype);
    job->send.loads = true;
    if (is_root) {
        job->recv = counted(rbuf, rcounts, displs, rtype, module->size);
        job->recv.stores = true;
    }
    return OMPI_SUCCESS;
}

static int describe_scatterv(const void *sbuf, const int *scounts, const int *displs,
                             struct ompi_datatype_t *stype, void *rbuf, int rcount,
                             struct ompi_datatype_t *rtype, int root,
                             const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    bool is_root = module->rank == (uint32_t)root, in_place = is_root && MPI_IN_PLACE == rbuf;

    job->collective = IBSHIFT_SCATTER;
    job->root = (uint32_t)root;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    if (is_root) {
        job->send = counted(sbuf, scounts, displs, stype, module->size);
        job->send.loads = true;
    }
    if (in_place) { /* the plan's own block goes nowhere */
        job->recv = one_block(NULL, scounts[module->rank], stype);
        job->recv.is_apart = true;
    } else {
        job->recv = one_block(rbuf, rcount, rtype);
        job->recv.stores = true;
    }
    return OMPI_SUCCESS;
}

static uint64_t mean_bytes(const int *counts, const struct ompi_datatype_t *type, uint32_t n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += (uint64_t)counts[i];
    }
    return sum * ibshift_type_size(type) / n;
}

static int describe_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                               void *rbuf, const int *rcounts, const int *displs,
                               struct ompi_datatype_t *rtype,
                               const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_ALLGATHER;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL;
    job->bytes = mean_bytes(rcounts, rtype, module->size);
    job->in_place = MPI_IN_PLACE == sbuf;
    job->send = job->in_place ? block_of(rbuf, rcounts, displs, rtype, module->rank)
                              : one_block(sbuf, scount, stype);
    job->send.loads = true;
    job->recv = counted(rbuf, rcounts, displs, rtype, module->size);
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

static int describe_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
                              struct ompi_datatype_t *stype, void *rbuf, const int *rcounts,
                              const int *rdispls, struct ompi_datatype_t *rtype,
                              const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_ALLTOALL;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    job->in_place = MPI_IN_PLACE == sbuf;
    job->recv = counted(rbuf, rcounts, rdispls, rtype, module->size);
    job->send = job->in_place ? job->recv : counted(sbuf, scounts, sdispls, stype, module->size);
    job->send.loads = true;
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

static int describe_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
                              struct ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,
                              const int *rdispls, struct ompi_datatype_t *const *rtypes,
                              const mca_coll_ibshift_module_t *module, struct ibshift_job *job)
{
    job->collective = IBSHIFT_ALLTOALL;
    job->needs = IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_NODE;
    job->in_place = MPI_IN_PLACE == sbuf;
    job->recv = counted(rbuf, rcounts, rdispls, NULL, module->size);
    job->recv.shape = IBSHIFT_SIDE_TYPES;
    job->recv.types = rtypes;
    job->send = job->recv;
    if (!job->in_place) {
        job->send = counted(sbuf, scounts, sdispls, NULL, module->size);
        job->send.shape = IBSHIFT_SIDE_TYPES;
        job->send.types = stypes;
    }
    job->send.loads = true;
    job->recv.stores = true;
    return OMPI_SUCCESS;
}

IN_LINE struct ibshift_raw raw_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                       void *rbuf, const int *rcounts, const int *displs,
                                       struct ompi_datatype_t *rtype, int root,
                                       const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;
    struct ibshift_raw raw =
        ibshift_raw_of(sbuf, scount, stype, rbuf, 0, is_root ? rtype : NULL, root);

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.rcounts = is_root ? rcounts : NULL;
    raw.rdispls = is_root ? displs : NULL;
    return raw;
}

IN_LINE struct ibshift_raw raw_scatterv(const void *sbuf, const int *scounts, const int *displs,
                                        struct ompi_datatype_t *stype, void *rbuf, int rcount,
                                        struct ompi_datatype_t *rtype, int root,
                                        const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;
    struct ibshift_raw raw =
        ibshift_raw_of(sbuf, 0, is_root ? stype : NULL, rbuf, rcount, rtype, root);

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.scounts = is_root ? scounts : NULL;
    raw.sdispls = is_root ? displs : NULL;
    return raw;
}

IN_LINE struct ibshift_raw raw_allgatherv(const void *sbuf, int scount,
                                          struct ompi_datatype_t *stype, void *rbuf,
                                          const int *rcounts, const int *displs,
                                          struct ompi_datatype_t *rtype,
                                          const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, scount, stype, rbuf, 0, rtype, 0);

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.rcounts = rcounts;
    raw.rdispls = displs;
    return raw;
}

IN_LINE struct ibshift_raw raw_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
                                         struct ompi_datatype_t *stype, void *rbuf,
                                         const int *rcounts, const int *rdispls,
                                         struct ompi_datatype_t *rtype,
                                         const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, 0, stype, rbuf, 0, rtype, 0);

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.scounts = scounts;
    raw.sdispls = sdispls;
    raw.rcounts = rcounts;
    raw.rdispls = rdispls;
    return raw;
}

IN_LINE struct ibshift_raw raw_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
                                         struct ompi_datatype_t *const *stypes, void *rbuf,
                                         const int *rcounts, const int *rdispls,
                                         struct ompi_datatype_t *const *rtypes,
                                         const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw =
        raw_alltoallv(sbuf, scounts, sdispls, NULL, rbuf, rcounts, rdispls, NULL, module);

    raw.form |= IBSHIFT_RAW_TYPES;
    raw.stypes = stypes;
    raw.rtypes = rtypes;
    return raw;
}

IBSHIFT_ENTRIES(gatherv, IBSHIFT_GATHER,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 const int *rcounts, const int *displs, struct ompi_datatype_t *rtype, int root, ),
                (sbuf, scount, stype, rbuf, rcounts, displs, rtype, root, ))
IBSHIFT_ENTRIES(scatterv, IBSHIFT_SCATTER,
                (const void *sbuf, const int *scounts, const int *displs,
                 struct ompi_datatype_t *stype, void *rbuf, int rcount,
                 struct ompi_datatype_t *rtype, int root, ),
                (sbuf, scounts, displs, stype, rbuf, rcount, rtype, root, ))
IBSHIFT_ENTRIES(allgatherv, IBSHIFT_ALLGATHER,
                (const void *sbuf, int scount, struct ompi_datatype_t *stype, void *rbuf,
                 const int *rcounts, const int *displs, struct ompi_datatype_t *rtype, ),
                (sbuf, scount, stype, rbuf, rcounts, displs, rtype, ))
IBSHIFT_ENTRIES(alltoallv, IBSHIFT_ALLTOALL,
                (const void *sbuf, const int *scounts, const int *sdispls,
                 struct ompi_datatype_t *stype, void *rbuf, const int *rcounts, const int *rdispls,
                 struct ompi_datatype_t *rtype, ),
                (sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype, ))
IBSHIFT_ENTRIES(alltoallw, IBSHIFT_ALLTOALL,
                (const void *sbuf, const int *scounts, const int *sdispls,
                 struct ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,
                 const int *rdispls, struct ompi_datatype_t *const *rtypes, ),
                (sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes, ))

/* reduce, allreduce, scan, exscan, reduce_scatter, reduce_scatter_block. */

static struct ibshift_side operand(const void *user, size_t count, struct ompi_datatype_t *type)
{
    return (struct ibshift_side){.shape = IBSHIFT_SIDE_VECTOR,
                                 .user = (char *)(uintptr_t)user,
                                 .count = count,
                                 .type = type,
                                 .is_operand = true};
}

/* Operands of a reduction lie one behind the other, whatever gaps they have inside. */
static bool type_is_separate(const struct ompi_datatype_t *type)
{
    ptrdiff_t lower, true_extent;

    ompi_datatype_get_true_extent(type, &lower, &true_extent);
    return true_extent <= ibshift_type_extent(type);
}

/* A vector on both sides. */
static int describe_vector(enum ibshift_collective collective, const void *sbuf, void *rbuf,
                           int count, struct ompi_datatype_t *type, struct ompi_op_t *op,
                           struct ibshift_job *job)
{
    if (!type_is_separate(type)) {
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
    if (!type_is_separate(type)) {
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
    if (!type_is_separate(type)) {
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

IN_LINE struct ibshift_raw raw_vector(const void *sbuf, void *rbuf, int count,
                                      struct ompi_datatype_t *type, struct ompi_op_t *op)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, count, type, rbuf, count, type, 0);

    raw.op = op;
    return raw;
}

IN_LINE struct ibshift_raw raw_reduce(const void *sbuf, void *rbuf, int count,
                                      struct ompi_datatype_t *type, struct ompi_op_t *op, int root,
                                      const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = raw_vector(sbuf, rbuf, count, type, op);

    raw.root = root;
    return raw;
}

IN_LINE struct ibshift_raw raw_allreduce(const void *sbuf, void *rbuf, int count,
                                         struct ompi_datatype_t *type, struct ompi_op_t *op,
                                         const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

IN_LINE struct ibshift_raw raw_scan(const void *sbuf, void *rbuf, int count,
                                    struct ompi_datatype_t *type, struct ompi_op_t *op,
                                    const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

IN_LINE struct ibshift_raw raw_exscan(const void *sbuf, void *rbuf, int count,
                                      struct ompi_datatype_t *type, struct ompi_op_t *op,
                                      const mca_coll_ibshift_module_t *module)
{
    return raw_vector(sbuf, rbuf, count, type, op);
}

IN_LINE struct ibshift_raw raw_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
                                              struct ompi_datatype_t *type, struct ompi_op_t *op,
                                              const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = raw_vector(sbuf, rbuf, 0, type, op);

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.scounts = rcounts;
    return raw;
}

IN_LINE struct ibshift_raw raw_reduce_scatter_block(const void *sbuf, void *rbuf, int count,
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

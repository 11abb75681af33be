/* barrier, bcast, gather, scatter, allgather, alltoall. */

#include "coll_ibshift_entry.h"

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

static struct ibshift_raw raw_barrier(const mca_coll_ibshift_module_t *module)
{
    return (struct ibshift_raw){.root = 0};
}

static struct ibshift_raw raw_bcast(void *buffer, int count, struct ompi_datatype_t *type, int root,
                                    const mca_coll_ibshift_module_t *module)
{
    return ibshift_raw_of(NULL, 0, NULL, buffer, count, type, root);
}

static struct ibshift_raw raw_gather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                     void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                     int root, const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;

    return ibshift_raw_of(sbuf, scount, stype, rbuf, is_root ? rcount : 0, is_root ? rtype : NULL,
                          root);
}

static struct ibshift_raw raw_scatter(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                      void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                      int root, const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;

    return ibshift_raw_of(sbuf, is_root ? scount : 0, is_root ? stype : NULL, rbuf, rcount, rtype,
                          root);
}

static struct ibshift_raw raw_allgather(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                        void *rbuf, int rcount, struct ompi_datatype_t *rtype,
                                        const mca_coll_ibshift_module_t *module)
{
    return ibshift_raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0);
}

static struct ibshift_raw raw_alltoall(const void *sbuf, int scount, struct ompi_datatype_t *stype,
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

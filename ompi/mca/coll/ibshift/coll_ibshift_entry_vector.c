/* gatherv, scatterv, allgatherv, alltoallv, alltoallw: blocks of different sizes. */

#include "coll_ibshift_entry.h"

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
    job->needs = IBSHIFT_ALG_SIZES;
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
    job->needs = IBSHIFT_ALG_SIZES;
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
    job->needs = IBSHIFT_ALG_SIZES;
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
    job->needs = IBSHIFT_ALG_SIZES;
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

static struct ibshift_raw raw_gatherv(const void *sbuf, int scount, struct ompi_datatype_t *stype,
                                      void *rbuf, const int *rcounts, const int *displs,
                                      struct ompi_datatype_t *rtype, int root,
                                      const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;
    struct ibshift_raw raw =
        ibshift_raw_of(sbuf, scount, stype, rbuf, 0, is_root ? rtype : NULL, root);

    raw.is_vector = true;
    raw.rcounts = is_root ? rcounts : NULL;
    raw.rdispls = is_root ? displs : NULL;
    return raw;
}

static struct ibshift_raw raw_scatterv(const void *sbuf, const int *scounts, const int *displs,
                                       struct ompi_datatype_t *stype, void *rbuf, int rcount,
                                       struct ompi_datatype_t *rtype, int root,
                                       const mca_coll_ibshift_module_t *module)
{
    bool is_root = module->rank == (uint32_t)root;
    struct ibshift_raw raw =
        ibshift_raw_of(sbuf, 0, is_root ? stype : NULL, rbuf, rcount, rtype, root);

    raw.is_vector = true;
    raw.scounts = is_root ? scounts : NULL;
    raw.sdispls = is_root ? displs : NULL;
    return raw;
}

static struct ibshift_raw raw_allgatherv(const void *sbuf, int scount,
                                         struct ompi_datatype_t *stype, void *rbuf,
                                         const int *rcounts, const int *displs,
                                         struct ompi_datatype_t *rtype,
                                         const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, scount, stype, rbuf, 0, rtype, 0);

    raw.is_vector = true;
    raw.rcounts = rcounts;
    raw.rdispls = displs;
    return raw;
}

static struct ibshift_raw raw_alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
                                        struct ompi_datatype_t *stype, void *rbuf,
                                        const int *rcounts, const int *rdispls,
                                        struct ompi_datatype_t *rtype,
                                        const mca_coll_ibshift_module_t *module)
{
    struct ibshift_raw raw = ibshift_raw_of(sbuf, 0, stype, rbuf, 0, rtype, 0);

    raw.is_vector = true;
    raw.scounts = scounts;
    raw.sdispls = sdispls;
    raw.rcounts = rcounts;
    raw.rdispls = rdispls;
    return raw;
}

/* A type for each rank: staged in any case. */
static struct ibshift_raw raw_alltoallw(const void *sbuf, const int *scounts, const int *sdispls,
                                        struct ompi_datatype_t *const *stypes, void *rbuf,
                                        const int *rcounts, const int *rdispls,
                                        struct ompi_datatype_t *const *rtypes,
                                        const mca_coll_ibshift_module_t *module)
{
    return (struct ibshift_raw){.is_unfit = true};
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

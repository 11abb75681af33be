/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
/* The entry functions: each collective's arguments as one struct ibshift_raw, in three forms. */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_call.h"
#include "coll_ibshift_tapes.h"

/* Of what a call is remembered by only numbers in registers are wanted, as a rule. */
#define IN_LINE __attribute__((always_inline)) static inline

/* A side that has no meaning on this rank: 0, NULL. */
IN_LINE struct ibshift_raw raw_of(const void *sbuf, ibshift_count_t scount,
                                  struct ompi_datatype_t *stype, void *rbuf, ibshift_count_t rcount,
                                  struct ompi_datatype_t *rtype, int root)
{
    bool in_place = MPI_IN_PLACE == sbuf;

    return (struct ibshift_raw){.sbuf = sbuf,
                                .rbuf = rbuf,
                                .stype = in_place ? NULL : stype,
                                .scount = in_place ? 0 : scount,
                                .rtype = rtype,
                                .rcount = rcount,
                                .root = root,
                                .form =
                                    in_place || MPI_IN_PLACE == rbuf ? IBSHIFT_RAW_IN_PLACE : 0};
}

/* A vector on both sides. */
IN_LINE struct ibshift_raw raw_operands(const void *sbuf, void *rbuf, ibshift_count_t count,
                                        struct ompi_datatype_t *type, struct ompi_op_t *op,
                                        int root)
{
    struct ibshift_raw raw = raw_of(sbuf, count, type, rbuf, count, type, root);

    raw.op = op;
    return raw;
}

/* Blocks with a count each; in place the send side's are not looked at. */
IN_LINE struct ibshift_raw with_counts(struct ibshift_raw raw, ibshift_array_t scounts,
                                       ibshift_array_t sdispls, ibshift_array_t rcounts,
                                       ibshift_array_t rdispls)
{
    bool in_place = MPI_IN_PLACE == raw.sbuf;

    raw.form |= IBSHIFT_RAW_VECTOR;
    raw.scounts = in_place ? 0 : scounts;
    raw.sdispls = in_place ? 0 : sdispls;
    raw.rcounts = rcounts;
    raw.rdispls = rdispls;
    return raw;
}

/* Displacements in bytes, as wide as an address. */
IN_LINE struct ibshift_raw with_places(struct ibshift_raw raw, ibshift_places_t sdispls,
                                       ibshift_places_t rdispls)
{
    raw.form |= IBSHIFT_RAW_PLACES;
    raw.sdispls = (ibshift_array_t)sdispls;
    raw.rdispls = (ibshift_array_t)rdispls;
    return raw;
}

IN_LINE struct ibshift_raw with_types(struct ibshift_raw raw, struct ompi_datatype_t *const *stypes,
                                      struct ompi_datatype_t *const *rtypes)
{
    raw.form |= IBSHIFT_RAW_TYPES;
    raw.stypes = MPI_IN_PLACE == raw.sbuf ? NULL : stypes;
    raw.rtypes = rtypes;
    return raw;
}

IN_LINE int call_blocking(mca_coll_ibshift_module_t *module, struct ompi_communicator_t *comm,
                          const struct ibshift_called *called, struct ibshift_tape_run *run)
{
    return IBSHIFT_ALLTOALL == called->collective && 0 != (called->raw.form & IBSHIFT_RAW_VECTOR)
               ? ibshift_padded_call(module, comm, called, run)
               : ibshift_call(module, comm, called, run, NULL);
}

/* Of what a call came back with: the fallback has to run it, which tools hear of. */
static bool is_refused(const mca_coll_ibshift_module_t *module, const struct ibshift_called *called,
                       int rc)
{
    if (OMPI_ERR_NOT_SUPPORTED != rc) {
        return false;
    }
    ibshift_raise(IBSHIFT_EVENT_FALLBACK,
                  (struct ibshift_event){.group = module->group.id,
                                         .collective = (int32_t)called->collective});
    return true;
}

#define AT_ROOT(value, otherwise) (module->group.rank == (uint32_t)root ? (value) : (otherwise))

#define STRING_OF(a)    #a
#define STRING(a)       STRING_OF(a)
#define JOINED(a, b, c) a##b##c
#define JOIN(a, b, c)   JOINED(a, b, c)
#define THE(a, b)       JOIN(a, b, )

#define NAME        barrier
#define KIND        IBSHIFT_BARRIER
#define PARAMS(...) __VA_ARGS__
#define ARGS(...)   __VA_ARGS__
#define RAW         ((struct ibshift_raw){.root = 0})
#include "coll_ibshift_forms.h"

#define NAME bcast
#define KIND IBSHIFT_BCAST
#define PARAMS(...)                                                                                \
    void *buf, ibshift_count_t count, struct ompi_datatype_t *type, int root, __VA_ARGS__
#define ARGS(...) buf, count, type, root, __VA_ARGS__
#define RAW       raw_of(NULL, 0, NULL, buf, count, type, root)
#include "coll_ibshift_forms.h"

#define BLOCK_PARAMS                                                                               \
    const void *sbuf, ibshift_count_t scount, struct ompi_datatype_t *stype, void *rbuf,           \
        ibshift_count_t rcount, struct ompi_datatype_t *rtype
#define BLOCK_ARGS sbuf, scount, stype, rbuf, rcount, rtype

#define NAME        gather
#define KIND        IBSHIFT_GATHER
#define PARAMS(...) BLOCK_PARAMS, int root, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, root, __VA_ARGS__
#define RAW         raw_of(sbuf, scount, stype, rbuf, AT_ROOT(rcount, 0), AT_ROOT(rtype, NULL), root)
#include "coll_ibshift_forms.h"

#define NAME        scatter
#define KIND        IBSHIFT_SCATTER
#define PARAMS(...) BLOCK_PARAMS, int root, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, root, __VA_ARGS__
#define RAW         raw_of(sbuf, AT_ROOT(scount, 0), AT_ROOT(stype, NULL), rbuf, rcount, rtype, root)
#include "coll_ibshift_forms.h"

#define NAME        allgather
#define KIND        IBSHIFT_ALLGATHER
#define PARAMS(...) BLOCK_PARAMS, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, __VA_ARGS__
#define RAW         raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0)
#include "coll_ibshift_forms.h"

#define NAME        neighbor_allgather
#define KIND        IBSHIFT_NEIGHBOR_ALLGATHER
#define PARAMS(...) BLOCK_PARAMS, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, __VA_ARGS__
#define RAW         raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0)
#include "coll_ibshift_forms.h"

#define NAME        alltoall
#define KIND        IBSHIFT_ALLTOALL
#define PARAMS(...) BLOCK_PARAMS, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, __VA_ARGS__
#define RAW         raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0)
#include "coll_ibshift_forms.h"

#define NAME        neighbor_alltoall
#define KIND        IBSHIFT_NEIGHBOR_ALLTOALL
#define PARAMS(...) BLOCK_PARAMS, __VA_ARGS__
#define ARGS(...)   BLOCK_ARGS, __VA_ARGS__
#define RAW         raw_of(sbuf, scount, stype, rbuf, rcount, rtype, 0)
#include "coll_ibshift_forms.h"

#define NAME gatherv
#define KIND IBSHIFT_GATHER
#define PARAMS(...)                                                                                \
    const void *sbuf, ibshift_count_t scount, struct ompi_datatype_t *stype, void *rbuf,           \
        ibshift_array_t rcounts, ibshift_array_t displs, struct ompi_datatype_t *rtype, int root,  \
        __VA_ARGS__
#define ARGS(...) sbuf, scount, stype, rbuf, rcounts, displs, rtype, root, __VA_ARGS__
#define RAW                                                                                        \
    with_counts(raw_of(sbuf, scount, stype, rbuf, 0, AT_ROOT(rtype, NULL), root), 0, 0,            \
                AT_ROOT(rcounts, 0), AT_ROOT(displs, 0))
#include "coll_ibshift_forms.h"

#define NAME scatterv
#define KIND IBSHIFT_SCATTER
#define PARAMS(...)                                                                                \
    const void *sbuf, ibshift_array_t scounts, ibshift_array_t displs,                             \
        struct ompi_datatype_t *stype, void *rbuf, ibshift_count_t rcount,                         \
        struct ompi_datatype_t *rtype, int root, __VA_ARGS__
#define ARGS(...) sbuf, scounts, displs, stype, rbuf, rcount, rtype, root, __VA_ARGS__
#define RAW                                                                                        \
    with_counts(raw_of(sbuf, 0, AT_ROOT(stype, NULL), rbuf, rcount, rtype, root),                  \
                AT_ROOT(scounts, 0), AT_ROOT(displs, 0), 0, 0)
#include "coll_ibshift_forms.h"

#define GATHERED_PARAMS                                                                            \
    const void *sbuf, ibshift_count_t scount, struct ompi_datatype_t *stype, void *rbuf,           \
        ibshift_array_t rcounts, ibshift_array_t displs, struct ompi_datatype_t *rtype
#define GATHERED_ARGS sbuf, scount, stype, rbuf, rcounts, displs, rtype
#define GATHERED_RAW                                                                               \
    with_counts(raw_of(sbuf, scount, stype, rbuf, 0, rtype, 0), 0, 0, rcounts, displs)

#define COUNTED_PARAMS                                                                             \
    const void *sbuf, ibshift_array_t scounts, ibshift_array_t sdispls,                            \
        struct ompi_datatype_t *stype, void *rbuf, ibshift_array_t rcounts,                        \
        ibshift_array_t rdispls, struct ompi_datatype_t *rtype
#define COUNTED_ARGS sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype
#define COUNTED_RAW                                                                                \
    with_counts(raw_of(sbuf, 0, stype, rbuf, 0, rtype, 0), scounts, sdispls, rcounts, rdispls)

#define TYPED_PARAMS(displs_t)                                                                     \
    const void *sbuf, ibshift_array_t scounts, displs_t sdispls,                                   \
        struct ompi_datatype_t *const *stypes, void *rbuf, ibshift_array_t rcounts,                \
        displs_t rdispls, struct ompi_datatype_t *const *rtypes
#define TYPED_ARGS sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes
#define TYPED_RAW(sdispls, rdispls)                                                                \
    with_types(                                                                                    \
        with_counts(raw_of(sbuf, 0, NULL, rbuf, 0, NULL, 0), scounts, sdispls, rcounts, rdispls),  \
        stypes, rtypes)

#define NAME        allgatherv
#define KIND        IBSHIFT_ALLGATHER
#define PARAMS(...) GATHERED_PARAMS, __VA_ARGS__
#define ARGS(...)   GATHERED_ARGS, __VA_ARGS__
#define RAW         GATHERED_RAW
#include "coll_ibshift_forms.h"

#define NAME        neighbor_allgatherv
#define KIND        IBSHIFT_NEIGHBOR_ALLGATHER
#define PARAMS(...) GATHERED_PARAMS, __VA_ARGS__
#define ARGS(...)   GATHERED_ARGS, __VA_ARGS__
#define RAW         GATHERED_RAW
#include "coll_ibshift_forms.h"

#define NAME        alltoallv
#define KIND        IBSHIFT_ALLTOALL
#define PARAMS(...) COUNTED_PARAMS, __VA_ARGS__
#define ARGS(...)   COUNTED_ARGS, __VA_ARGS__
#define RAW         COUNTED_RAW
#include "coll_ibshift_forms.h"

#define NAME        neighbor_alltoallv
#define KIND        IBSHIFT_NEIGHBOR_ALLTOALL
#define PARAMS(...) COUNTED_PARAMS, __VA_ARGS__
#define ARGS(...)   COUNTED_ARGS, __VA_ARGS__
#define RAW         COUNTED_RAW
#include "coll_ibshift_forms.h"

#define NAME        alltoallw
#define KIND        IBSHIFT_ALLTOALL
#define PARAMS(...) TYPED_PARAMS(ibshift_array_t), __VA_ARGS__
#define ARGS(...)   TYPED_ARGS, __VA_ARGS__
#define RAW         TYPED_RAW(sdispls, rdispls)
#include "coll_ibshift_forms.h"

#define NAME        neighbor_alltoallw
#define KIND        IBSHIFT_NEIGHBOR_ALLTOALL
#define PARAMS(...) TYPED_PARAMS(ibshift_places_t), __VA_ARGS__
#define ARGS(...)   TYPED_ARGS, __VA_ARGS__
#define RAW         with_places(TYPED_RAW(0, 0), sdispls, rdispls)
#include "coll_ibshift_forms.h"

#define NAME reduce
#define KIND IBSHIFT_REDUCE
#define PARAMS(...)                                                                                \
    const void *sbuf, void *rbuf, ibshift_count_t count, struct ompi_datatype_t *type,             \
        struct ompi_op_t *op, int root, __VA_ARGS__
#define ARGS(...) sbuf, rbuf, count, type, op, root, __VA_ARGS__
#define RAW       raw_operands(sbuf, rbuf, count, type, op, root)
#include "coll_ibshift_forms.h"

#define VECTOR_PARAMS                                                                              \
    const void *sbuf, void *rbuf, ibshift_count_t count, struct ompi_datatype_t *type,             \
        struct ompi_op_t *op
#define VECTOR_ARGS sbuf, rbuf, count, type, op

#define NAME        allreduce
#define KIND        IBSHIFT_ALLREDUCE
#define PARAMS(...) VECTOR_PARAMS, __VA_ARGS__
#define ARGS(...)   VECTOR_ARGS, __VA_ARGS__
#define RAW         raw_operands(sbuf, rbuf, count, type, op, 0)
#include "coll_ibshift_forms.h"

#define NAME        scan
#define KIND        IBSHIFT_SCAN
#define PARAMS(...) VECTOR_PARAMS, __VA_ARGS__
#define ARGS(...)   VECTOR_ARGS, __VA_ARGS__
#define RAW         raw_operands(sbuf, rbuf, count, type, op, 0)
#include "coll_ibshift_forms.h"

#define NAME        exscan
#define KIND        IBSHIFT_EXSCAN
#define PARAMS(...) VECTOR_PARAMS, __VA_ARGS__
#define ARGS(...)   VECTOR_ARGS, __VA_ARGS__
#define RAW         raw_operands(sbuf, rbuf, count, type, op, 0)
#include "coll_ibshift_forms.h"

#define NAME        reduce_scatter_block
#define KIND        IBSHIFT_REDUCE_SCATTER
#define PARAMS(...) VECTOR_PARAMS, __VA_ARGS__
#define ARGS(...)   VECTOR_ARGS, __VA_ARGS__
#define RAW         raw_operands(sbuf, rbuf, count, type, op, 0)
#include "coll_ibshift_forms.h"

#define NAME reduce_scatter
#define KIND IBSHIFT_REDUCE_SCATTER
#define PARAMS(...)                                                                                \
    const void *sbuf, void *rbuf, ibshift_array_t rcounts, struct ompi_datatype_t *type,           \
        struct ompi_op_t *op, __VA_ARGS__
#define ARGS(...) sbuf, rbuf, rcounts, type, op, __VA_ARGS__
#define RAW       with_counts(raw_operands(sbuf, rbuf, 0, type, op, 0), 0, 0, rcounts, 0)
#include "coll_ibshift_forms.h"

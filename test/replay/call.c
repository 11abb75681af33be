#include "call.h"

#include <stdlib.h>
#include <string.h>

#include "kinds.h"
#include "scheduler.h"

enum { TO_ALL = 255 };

static uint64_t draw(const struct call *call, uint64_t what, uint64_t a, uint64_t b)
{
    uint64_t state = call->seed ^ (what << 48 | a << 24 | b) * 0xd1342543de82ef95u;

    return program_random(&state);
}

static bool is_reduction(const struct call *call)
{
    return call->collective >= PROGRAM_REDUCE;
}

static bool has_counts(const struct call *call)
{
    return call->collective >= PROGRAM_GATHERV && call->collective <= PROGRAM_ALLTOALLW;
}

static bool is_like(const struct call *call, enum program_collective plain,
                    enum program_collective counted)
{
    return call->collective == plain || call->collective == counted;
}

static bool is_alltoall(const struct call *call)
{
    return is_like(call, PROGRAM_ALLTOALL, PROGRAM_ALLTOALLV) ||
           call->collective == PROGRAM_ALLTOALLW;
}

static bool is_to_all(const struct call *call)
{
    return call->collective == PROGRAM_BCAST ||
           is_like(call, PROGRAM_ALLGATHER, PROGRAM_ALLGATHERV);
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    a = (a ^ b) * 0x9e3779b97f4a7c15u;
    return a ^ a >> 29;
}

/* What rank `from` has for rank `to`. */
static void generate(const struct call *call, uint64_t run, uint32_t from, uint32_t to, char *data,
                     size_t bytes)
{
    uint64_t word = mixed(mixed(call->seed + run, from + 1),
                          (is_to_all(call) || is_reduction(call)) ? TO_ALL : to + 1);

    size_t i = 0;

    for (; i + 8 <= bytes; i += 8, word += 0x0301020104030201u) {
        memcpy(data + i, &word, 8);
    }
    memcpy(data + i, &word, bytes - i);
}

/* Bytes that go from one rank to another. */
static size_t length_of(const struct call *call, uint32_t from, uint32_t to)
{
    size_t unit = call->is_mixed ? KIND_UNIT : kinds[call->shape].size;
    uint64_t a = 0, b = 0;

    if (is_like(call, PROGRAM_ALLTOALLV, PROGRAM_ALLTOALLW)) {
        bool is_turned = call->in_place && from > to; /* in place both directions have one length */

        a = is_turned ? to + 1 : from + 1;
        b = is_turned ? from + 1 : to + 1;
    } else if (call->collective == PROGRAM_GATHERV || call->collective == PROGRAM_ALLGATHERV) {
        a = from + 1;
    } else if (call->collective == PROGRAM_SCATTERV || call->collective == PROGRAM_REDUCE_SCATTER) {
        a = to + 1;
    }
    return draw(call, 1, a, b) % (call->most / unit + 1) * unit;
}

static uint32_t shape_of(const struct call *call, bool is_send, uint32_t peer)
{
    static const uint32_t mixed_kinds[] = {KIND_INT, KIND_THREE, KIND_GAP, KIND_LATE};
    uint32_t which = call->collective == PROGRAM_ALLTOALLW ? peer + 1 : 0;

    return call->is_mixed ? mixed_kinds[draw(call, 2 + is_send, call->rank, which) % 4]
                          : call->shape;
}

static size_t length_at(const struct call *call, bool is_send, const struct side *side,
                        uint32_t block)
{
    uint32_t peer = side->blocks > 1 || is_alltoall(call) ? block : call->root;

    return is_send ? length_of(call, call->rank, peer)
                   : length_of(call, side->blocks > 1 ? block : peer, call->rank);
}

static void lay_out(struct call *call, struct side *side, bool is_send, int blocks)
{
    uint32_t first = has_counts(call) && blocks > 0
                         ? (uint32_t)(draw(call, 4, call->rank, is_send) % (uint64_t)blocks)
                         : 0;
    size_t at = 0;

    side->blocks = blocks;
    for (int i = 0; i < blocks; i++) {
        uint32_t block = ((uint32_t)i + first) % (uint32_t)blocks;
        uint32_t shape = side->shape[block] = shape_of(call, is_send, block);
        size_t extent = kinds[shape].extent;

        if (has_counts(call) && blocks > 1) { /* gaps */
            at += extent * (draw(call, 5, call->rank, block) % 3);
            at = call->collective == PROGRAM_ALLTOALLW ? (at + 15) & ~(size_t)15 : at;
        }
        side->counts[block] = (int)(length_at(call, is_send, side, block) / kinds[shape].size);
        side->at[block] = at;
        side->displs[block] = (int)(call->collective == PROGRAM_ALLTOALLW ? at : at / extent);
        at += (size_t)side->counts[block] * extent;
        if (i == 0 || call->collective == PROGRAM_ALLTOALLW) {
            side->types[block] = kind_type(shape);
        }
    }
    for (int i = 0; i < blocks; i++) {
        side->types[i] = side->types[i] != NULL ? side->types[i] : side->types[first];
    }
    side->bytes = at;
}

/* A vector; of reduce_scatter its parts. */
static size_t lay_out_vector(struct call *call, struct side *side)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < call->ranks; i++) {
        size_t part = length_of(call, 0, i);

        side->counts[i] = (int)(part / kinds[call->shape].size);
        side->shape[i] = call->shape;
        bytes += part;
    }
    side->blocks = (int)call->ranks;
    if (call->collective != PROGRAM_REDUCE_SCATTER &&
        call->collective != PROGRAM_REDUCE_SCATTER_BLOCK) {
        side->blocks = 1;
        bytes = length_of(call, 0, 0);
    }
    side->types[0] = kind_type(call->shape);
    side->bytes = bytes / kinds[call->shape].size * kinds[call->shape].extent;
    return bytes;
}

static void lay_out_blocks(struct call *call)
{
    bool is_root = call->rank == call->root;
    int all = (int)call->ranks;

    switch (call->collective) {
    case PROGRAM_BARRIER:
        break;
    case PROGRAM_BCAST:
        lay_out(call, &call->recv, false, 1);
        break;
    case PROGRAM_GATHER:
    case PROGRAM_GATHERV:
        lay_out(call, &call->send, true, 1);
        lay_out(call, &call->recv, false, is_root ? all : 0);
        break;
    case PROGRAM_SCATTER:
    case PROGRAM_SCATTERV:
        lay_out(call, &call->send, true, is_root ? all : 0);
        lay_out(call, &call->recv, false, 1);
        break;
    case PROGRAM_ALLGATHER:
    case PROGRAM_ALLGATHERV:
        lay_out(call, &call->send, true, 1);
        lay_out(call, &call->recv, false, all);
        break;
    default:
        lay_out(call, &call->send, true, all);
        lay_out(call, &call->recv, false, all);
    }
}

void call_make(struct call *call, struct ompi_communicator_t *comm,
               enum program_collective collective, enum call_form form, uint64_t seed)
{
    static const size_t most[] = {8, 64, 1000, 9000, 8, 64, 1000, 70000};
    static const uint32_t plain[] = {KIND_BYTE,  KIND_INT, KIND_LONG,
                                     KIND_THREE, KIND_GAP, KIND_LATE};

    *call = (struct call){.collective = collective,
                          .seed = seed,
                          .comm = comm,
                          .form = form,
                          .members = ompi_comm_members(comm),
                          .ranks = (uint32_t)ompi_comm_size(comm),
                          .rank = (uint32_t)ompi_comm_rank(comm)};
    call->root = (uint32_t)(draw(call, 6, 0, 0) % call->ranks);
    call->most = most[draw(call, 7, 0, 0) % 8];
    if (call->most > 20000 && is_alltoall(call)) {
        call->most = 40000 / call->ranks;
    }
    call->in_place = collective != PROGRAM_BARRIER && collective != PROGRAM_BCAST &&
                     draw(call, 8, 0, 0) % 4 == 0;
    call->is_taken_back = form != CALL_BLOCKING && draw(call, 9, 0, 0) % 2 == 0;
    if (is_reduction(call)) {
        call->reduction = (uint32_t)(draw(call, 10, 0, 0) % REDUCTIONS);
        call->shape = reduction_kind(call->reduction);
        call->op = reduction_op(call->reduction);
        lay_out_vector(call, &call->send);
        lay_out_vector(call, &call->recv);
    } else {
        call->is_mixed = draw(call, 11, 0, 0) % 3 == 0;
        call->shape = plain[draw(call, 12, 0, 0) % 6];
        lay_out_blocks(call);
    }
    call_take_memory(&call->send, draw(call, 13, call->rank, 0));
    call_take_memory(&call->recv, draw(call, 13, call->rank, 1));
}

static void put(const struct call *call, uint64_t run, uint32_t from, uint32_t to, char *at,
                uint32_t shape, size_t bytes)
{
    char small[1024], *piece = bytes <= sizeof(small) ? small : malloc(bytes);

    generate(call, run, from, to, piece, bytes);
    kind_move(shape, at, piece, bytes, true);
    if (piece != small) {
        free(piece);
    }
}

/* What this rank has at the beginning, or what must be there at the end. */
static void put_block(const struct call *call, const struct side *side, int block, bool is_own,
                      char *user)
{
    uint32_t other = side->blocks > 1 || is_alltoall(call) ? (uint32_t)block : call->root;

    put(call, call->run, is_own ? call->rank : other, is_own ? other : call->rank,
        user + side->at[block], side->shape[block],
        (size_t)side->counts[block] * kinds[side->shape[block]].size);
}

static size_t vector_bytes(const struct side *side, uint32_t shape)
{
    return side->bytes / kinds[shape].extent * kinds[shape].size;
}

static bool is_in_place_here(const struct call *call)
{
    bool is_rooted = call->collective == PROGRAM_REDUCE ||
                     is_like(call, PROGRAM_GATHER, PROGRAM_GATHERV) ||
                     is_like(call, PROGRAM_SCATTER, PROGRAM_SCATTERV);

    return call->in_place && (!is_rooted || call->rank == call->root);
}

static void fill_in_place(struct call *call)
{
    if (is_alltoall(call)) {
        for (int i = 0; i < call->recv.blocks; i++) {
            put_block(call, &call->recv, i, true, call->recv.user);
        }
    } else if (is_reduction(call)) {
        put(call, call->run, call->rank, 0, call->recv.user, call->shape,
            vector_bytes(&call->recv, call->shape));
    } else if (!is_like(call, PROGRAM_SCATTER, PROGRAM_SCATTERV)) {
        put_block(call, &call->recv, (int)call->rank, false, call->recv.user);
    }
}

void call_fill(struct call *call, uint64_t run)
{
    call->run = run;
    memset(call->recv.user - GUARD, PATTERN, call->recv.bytes + 2 * GUARD);
    if (is_reduction(call)) {
        put(call, run, call->rank, 0, call->send.user, call->shape,
            vector_bytes(&call->send, call->shape));
    } else {
        for (int i = 0; i < call->send.blocks; i++) {
            put_block(call, &call->send, i, true, call->send.user);
        }
    }
    if (call->collective == PROGRAM_BCAST && call->rank == call->root) {
        put_block(call, &call->recv, 0, false, call->recv.user);
    }
    if (is_in_place_here(call)) {
        fill_in_place(call);
    }
}

#define FORM(name, ...)                                                                            \
    call->form == CALL_BLOCKING ? coll->coll_##name(__VA_ARGS__ comm, coll->coll_##name##_module)  \
    : call->form == CALL_NONBLOCKING                                                               \
        ? coll->coll_i##name(__VA_ARGS__ comm, request, coll->coll_i##name##_module)               \
        : coll->coll_##name##_init(__VA_ARGS__ comm, info, request,                                \
                                   coll->coll_##name##_init_module)

static int begin_reduction(struct call *call, const void *in, void *out, ompi_request_t **request)
{
    struct ompi_communicator_t *comm = call->comm;
    mca_coll_base_comm_coll_t *coll = comm->c_coll;
    struct ompi_datatype_t *type = call->send.types[0];
    int count = (int)(vector_bytes(&call->send, call->shape) / kinds[call->shape].size),
        root = (int)call->root;
    struct ompi_info_t *info = NULL;
    ompi_op_t *op = call->op;

    switch (call->collective) {
    case PROGRAM_REDUCE:
        return FORM(reduce, in, out, count, type, op, root, );
    case PROGRAM_ALLREDUCE:
        return FORM(allreduce, in, out, count, type, op, );
    case PROGRAM_SCAN:
        return FORM(scan, in, out, count, type, op, );
    case PROGRAM_EXSCAN:
        return FORM(exscan, in, out, count, type, op, );
    case PROGRAM_REDUCE_SCATTER_BLOCK:
        return FORM(reduce_scatter_block, in, out, call->recv.counts[0], type, op, );
    default:
        return FORM(reduce_scatter, in, out, call->recv.counts, type, op, );
    }
}

static int begin_blocks(struct call *call, const void *in, void *out, ompi_request_t **request)
{
    struct ompi_communicator_t *comm = call->comm;
    mca_coll_base_comm_coll_t *coll = comm->c_coll;
    const struct side *send = &call->send, *recv = &call->recv;
    const int *scounts = send->counts, *sdispls = send->displs, *rcounts = recv->counts,
              *rdispls = recv->displs;
    struct ompi_datatype_t *stype = send->types[0], *rtype = recv->types[0];
    struct ompi_info_t *info = NULL;
    int root = (int)call->root;

    switch (call->collective) {
    case PROGRAM_BCAST:
        return FORM(bcast, out, rcounts[0], rtype, root, );
    case PROGRAM_GATHER:
        return FORM(gather, in, scounts[0], stype, out, rcounts[0], rtype, root, );
    case PROGRAM_SCATTER:
        return FORM(scatter, in, scounts[0], stype, out, rcounts[0], rtype, root, );
    case PROGRAM_ALLGATHER:
        return FORM(allgather, in, scounts[0], stype, out, rcounts[0], rtype, );
    case PROGRAM_ALLTOALL:
        return FORM(alltoall, in, scounts[0], stype, out, rcounts[0], rtype, );
    case PROGRAM_GATHERV:
        return FORM(gatherv, in, scounts[0], stype, out, rcounts, rdispls, rtype, root, );
    case PROGRAM_SCATTERV:
        return FORM(scatterv, in, scounts, sdispls, stype, out, rcounts[0], rtype, root, );
    case PROGRAM_ALLGATHERV:
        return FORM(allgatherv, in, scounts[0], stype, out, rcounts, rdispls, rtype, );
    case PROGRAM_ALLTOALLV:
        return FORM(alltoallv, in, scounts, sdispls, stype, out, rcounts, rdispls, rtype, );
    default:
        return FORM(alltoallw, in, scounts, sdispls, send->types, out, rcounts, rdispls,
                    recv->types, );
    }
}

int call_begin(struct call *call)
{
    bool is_in_place = is_in_place_here(call);
    bool is_scatter = is_like(call, PROGRAM_SCATTER, PROGRAM_SCATTERV);
    const void *in = is_in_place && !is_scatter ? MPI_IN_PLACE : call->send.user;
    void *out = is_in_place && is_scatter ? MPI_IN_PLACE : call->recv.user;
    ompi_request_t **request = &call->request;
    struct ompi_communicator_t *comm = call->comm;
    mca_coll_base_comm_coll_t *coll = comm->c_coll;
    struct ompi_info_t *info = NULL;

    if (call->collective == PROGRAM_BARRIER) {
        return FORM(barrier, );
    }
    return is_reduction(call) ? begin_reduction(call, in, out, request)
                              : begin_blocks(call, in, out, request);
}

static void free_types(struct side *side)
{
    for (int i = 0; i < PROGRAM_RANKS; i++) {
        struct ompi_datatype_t *type = side->types[i];

        for (int j = i; type != NULL && j < PROGRAM_RANKS; j++) {
            side->types[j] = side->types[j] == type ? NULL : side->types[j];
        }
        if (type != NULL && !ompi_datatype_is_predefined(type)) {
            ompi_datatype_destroy(&type);
        }
    }
}

void call_take_back(struct call *call)
{
    free_types(&call->send);
    free_types(&call->recv);
    if (call->op != NULL && !ompi_op_is_intrinsic(call->op)) {
        OBJ_RELEASE(call->op);
    }
    call->op = NULL;
}

/* All ranks' up to the last, in their order. */
static void fold(const struct call *call, uint32_t last, char *out, size_t bytes)
{
    char *next = malloc(bytes + 8);

    generate(call, call->run, 0, 0, out, bytes);
    for (uint32_t i = 1; i <= last; i++) {
        generate(call, call->run, i, 0, next, bytes);
        reduction_combine(call->reduction, out, next, out, bytes);
    }
    free(next);
}

/* The vector as the user's memory has it; returns how much of it there is to see. */
static size_t expect_vector(const struct call *call, char *user)
{
    size_t bytes = vector_bytes(&call->recv, call->shape), from = 0, length = bytes;
    bool is_prefix = call->collective == PROGRAM_SCAN || call->collective == PROGRAM_EXSCAN;
    uint32_t last = is_prefix ? call->rank : call->ranks - 1;
    char *piece;

    if ((call->collective == PROGRAM_REDUCE && call->rank != call->root) ||
        (call->collective == PROGRAM_EXSCAN && call->rank == 0)) {
        return call->collective == PROGRAM_EXSCAN && call->in_place ? 0 : call->recv.bytes;
    }
    if (call->collective >= PROGRAM_REDUCE_SCATTER_BLOCK) {
        length = (size_t)call->recv.counts[call->rank] * kinds[call->shape].size;
        for (uint32_t i = 0; i < call->rank; i++) {
            from += (size_t)call->recv.counts[i] * kinds[call->shape].size;
        }
    }
    piece = malloc(bytes + 8);
    fold(call, call->collective == PROGRAM_EXSCAN ? last - 1 : last, piece, bytes);
    kind_move(call->shape, user, piece + from, length, true);
    free(piece);
    return call->collective >= PROGRAM_REDUCE_SCATTER_BLOCK && call->in_place
               ? length / kinds[call->shape].size * kinds[call->shape].extent
               : call->recv.bytes;
}

/* Byte for byte, with what lies between and around. */
bool call_is_right(struct call *call)
{
    const struct side *recv = &call->recv;
    size_t all = recv->bytes + 2 * GUARD, seen = recv->bytes;
    char *image = malloc(all), *user = image + GUARD;
    bool is_scatter = is_like(call, PROGRAM_SCATTER, PROGRAM_SCATTERV), is_right;

    memset(image, PATTERN, all);
    if (is_reduction(call)) {
        seen = expect_vector(call, user);
    } else if (!(is_scatter && is_in_place_here(call))) {
        for (int i = 0; i < recv->blocks; i++) {
            put_block(call, recv, i, false, user);
        }
    }
    is_right = memcmp(user, recv->user, seen) == 0 &&
               memcmp(image, recv->user - GUARD, GUARD) == 0 &&
               memcmp(user + recv->bytes, recv->user + recv->bytes, GUARD) == 0;
    free(image);
    return is_right;
}

void call_free(struct call *call)
{
    call_take_back(call);
    call_give_memory(&call->send);
    call_give_memory(&call->recv);
}

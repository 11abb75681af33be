#include "lib/work.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const struct ibshift_lib_form forms[] = {
    [IBS_BARRIER] = {IBSHIFT_BARRIER, "barrier", NOTHING, NOTHING},
    [IBS_BCAST] = {IBSHIFT_BCAST, "bcast", NOTHING, VECTOR},
    [IBS_SCATTER] = {IBSHIFT_SCATTER, "scatter", BLOCKS, BLOCK, .root_sends = true},
    [IBS_GATHER] = {IBSHIFT_GATHER, "gather", BLOCK, BLOCKS, .root_receives = true},
    [IBS_ALLGATHER] = {IBSHIFT_ALLGATHER, "allgather", BLOCK, BLOCKS, .is_counted = true},
    [IBS_ALLTOALL] = {IBSHIFT_ALLTOALL, "alltoall", BLOCKS, BLOCKS, .is_counted = true},
    [IBS_REDUCE] = {IBSHIFT_REDUCE, "reduce", VECTOR, VECTOR, .root_receives = true},
    [IBS_ALLREDUCE] = {IBSHIFT_ALLREDUCE, "allreduce", VECTOR, VECTOR},
    [IBS_REDUCE_SCATTER] = {IBSHIFT_REDUCE_SCATTER, "reduce_scatter", BLOCKS, BLOCK},
    [IBS_SCAN] = {IBSHIFT_SCAN, "scan", VECTOR, VECTOR},
    [IBS_EXSCAN] = {IBSHIFT_EXSCAN, "exscan", VECTOR, VECTOR},
};

static size_t blocks_of(enum ibshift_lib_side side, uint32_t ranks)
{
    return side == NOTHING ? 0 : side == BLOCKS ? ranks : 1;
}

/* The elements of all ranks' blocks; false: more than there is memory. */
static bool add_counts(const size_t *counts, uint32_t ranks, size_t element, size_t *bytes)
{
    size_t sum = 0;

    for (uint32_t i = 0; i < ranks; i++) {
        if (__builtin_add_overflow(sum, counts[i], &sum)) {
            return false;
        }
    }
    return !__builtin_mul_overflow(sum, element, bytes) && *bytes <= PTRDIFF_MAX;
}

static bool lie_together(const size_t *counts, const ptrdiff_t *places, uint32_t ranks)
{
    for (uint32_t i = 1; i < ranks; i++) {
        if (places[i] != places[i - 1] + (ptrdiff_t)counts[i - 1]) {
            return false;
        }
    }
    return true;
}

static int check_counts(struct ibshift_lib_work *work)
{
    const struct ibs_call *call = work->call;
    bool is_alltoall = work->collective == IBSHIFT_ALLTOALL;
    size_t sent = 0, received = 0;

    if (!work->form->is_counted || call->recv_counts == NULL || call->recv_places == NULL ||
        (is_alltoall && call->send != NULL &&
         (call->send_counts == NULL || call->send_places == NULL))) {
        return -EINVAL;
    }
    if (!add_counts(call->recv_counts, work->ranks, work->element, &received) ||
        (is_alltoall && call->send != NULL &&
         !add_counts(call->send_counts, work->ranks, work->element, &sent))) {
        return -EINVAL;
    }
    if (!is_alltoall && !lie_together(call->recv_counts, call->recv_places, work->ranks)) {
        return -EINVAL;
    }
    work->bytes = received / work->ranks;
    return call->recv == NULL && received > 0 ? -EINVAL : 0;
}

int ibshift_lib_check(const struct ibshift_group *group, const struct ibs_call *call,
                      struct ibshift_lib_work *work)
{
    size_t all;

    if (call == NULL || (unsigned)call->collective > IBS_EXSCAN || call->root >= group->size) {
        return -EINVAL;
    }
    *work = (struct ibshift_lib_work){.call = call,
                                      .form = &forms[call->collective],
                                      .collective = forms[call->collective].collective,
                                      .rank = group->rank,
                                      .ranks = group->size,
                                      .element = call->element == 0 ? 1 : call->element};
    work->is_counted = call->recv_counts != NULL || call->send_counts != NULL;
    work->sends =
        work->form->send != NOTHING && (!work->form->root_sends || work->rank == call->root);
    work->receives =
        work->form->recv != NOTHING && (!work->form->root_receives || work->rank == call->root);
    work->is_in_place =
        work->sends && work->receives && call->send == NULL && work->collective != IBSHIFT_SCATTER;
    if (__builtin_mul_overflow(call->count, work->element, &work->bytes) ||
        __builtin_mul_overflow(work->bytes, work->ranks, &all) || all > PTRDIFF_MAX ||
        (work->collective >= IBSHIFT_REDUCE && call->reduce == NULL)) {
        return -EINVAL;
    }
    if (work->is_counted) {
        return check_counts(work);
    }
    return work->bytes > 0 && ((work->receives && call->recv == NULL) ||
                               (work->sends && !work->is_in_place && call->send == NULL))
               ? -EINVAL
               : 0;
}

struct ibshift_wanted ibshift_lib_wanted(const struct ibshift_lib_work *work, bool is_blocking)
{
    return (struct ibshift_wanted){
        .collective = work->collective,
        .name = work->form->name,
        .needs = !work->is_counted                      ? 0
                 : work->collective == IBSHIFT_ALLTOALL ? IBSHIFT_ALG_SIZES
                                                        : IBSHIFT_ALG_SIZES | IBSHIFT_ALG_SIZES_ALL,
        .bytes = work->collective == IBSHIFT_ALLTOALL && work->is_counted ? 0 : work->bytes,
        .is_counted = work->is_counted,
        .commutes = work->collective >= IBSHIFT_REDUCE && work->call->is_commutative,
        .is_blocking = is_blocking};
}

/* The blocks of a side with counts are described by copies, as the caller may change his. */
static void set_side(const struct ibshift_lib_work *work, enum ibshift_lib_side side,
                     const void *base, size_t **copies, const size_t *counts,
                     const ptrdiff_t *places, struct ibshift_blocks *blocks)
{
    *blocks = (struct ibshift_blocks){.base = (char *)(uintptr_t)base, .unit = work->bytes};
    if (side == VECTOR) {
        blocks->layout = IBSHIFT_PIECES;
        blocks->pieces = 1;
        blocks->unit = work->element;
        blocks->elements = work->call->count;
    } else if (side == BLOCKS && work->is_counted) {
        memcpy(*copies, counts, work->ranks * sizeof(**copies));
        memcpy(*copies + work->ranks, places, work->ranks * sizeof(*places));
        blocks->layout = IBSHIFT_SIZE_COUNTS;
        blocks->unit = work->element;
        blocks->size_counts = *copies;
        blocks->size_displs = (ptrdiff_t *)(*copies + work->ranks);
        *copies += 2 * (size_t)work->ranks;
    } else if (work->is_counted) { /* the own block of an allgather */
        blocks->unit = counts[work->rank] * work->element;
    }
}

/* What a side that is in place takes up, from the lowest byte on. */
size_t ibshift_lib_span(const struct ibshift_lib_work *work, const struct ibshift_blocks *send,
                        const char **from)
{
    const struct ibs_call *call = work->call;
    ptrdiff_t low = 0, high = 0;
    bool is_first = true;

    *from = send->base;
    if (work->is_counted && work->form->send == BLOCK) {
        return call->recv_counts[work->rank] * work->element;
    }
    if (!work->is_counted) {
        return blocks_of(work->form->send, work->ranks) * work->bytes;
    }
    for (uint32_t i = 0; i < work->ranks; i++) {
        ptrdiff_t begin = call->recv_places[i], end = begin + (ptrdiff_t)call->recv_counts[i];

        low = is_first || begin < low ? begin : low;
        high = is_first || end > high ? end : high;
        is_first = false;
    }
    *from += low * (ptrdiff_t)work->element;
    return (size_t)(high - low) * work->element;
}

void ibshift_lib_blocks(const struct ibshift_lib_work *work, size_t *copies,
                        struct ibshift_blocks blocks[IBSHIFT_BUFFERS])
{
    const struct ibs_call *call = work->call;
    bool is_own = work->form->send == BLOCK && work->form->recv == BLOCKS;
    const char *send = work->is_in_place ? call->recv : call->send;

    if (work->is_in_place && is_own) { /* it lies where it is received */
        send += work->is_counted ? call->recv_places[work->rank] * (ptrdiff_t)work->element
                                 : (ptrdiff_t)(work->rank * work->bytes);
    }
    if (work->sends) {
        bool is_as_recv = work->is_in_place || is_own;

        set_side(work, work->form->send, send, &copies,
                 is_as_recv ? call->recv_counts : call->send_counts,
                 is_as_recv ? call->recv_places : call->send_places, &blocks[IBSHIFT_SEND]);
    }
    if (work->receives) {
        set_side(work, work->form->recv, call->recv, &copies, call->recv_counts, call->recv_places,
                 &blocks[IBSHIFT_RECV]);
    }
}

/* What one rank has of itself. */
void ibshift_lib_alone(const struct ibshift_lib_work *work)
{
    const struct ibs_call *call = work->call;
    const char *send = call->send;
    char *recv = call->recv;
    size_t bytes = work->bytes;

    if (send == NULL || work->collective == IBSHIFT_BCAST || work->collective == IBSHIFT_EXSCAN) {
        return;
    }
    if (work->is_counted) {
        recv += call->recv_places[0] * (ptrdiff_t)work->element;
        send += call->send_places != NULL ? call->send_places[0] * (ptrdiff_t)work->element : 0;
    }
    if (bytes > 0) {
        memmove(recv, send, bytes);
    }
}

#include "work_impl.h"

static bool is_pattern(const char *base, uint32_t seq, uint32_t i, uint32_t j, size_t length)
{
    for (size_t k = 0; k < length; k += ELEMENT) {
        uint64_t word = pattern(seq, i, j, k / ELEMENT);

        if (memcmp(base + k, &word, length - k < ELEMENT ? length - k : ELEMENT) != 0) {
            return false;
        }
    }
    return true;
}

static struct affine element(uint32_t seq, uint32_t rank, size_t index)
{
    uint64_t word = pattern(seq, rank, 0, index);
    struct affine value;

    memcpy(&value, &word, ELEMENT);
    return value;
}

/* Elements start.. of the reduction over ranks 0..last. */
static bool is_reduced(const struct work *work, const char *base, uint32_t seq, uint32_t last,
                       size_t start, size_t elements)
{
    for (size_t i = 0; i < elements; i++) {
        struct affine expected = element(seq, 0, start + i), got;

        for (uint32_t rank = 1; rank <= last; rank++) {
            struct affine next = element(seq, rank, start + i);

            expected =
                work->options.plan.commutative ? add(expected, next) : compose(expected, next);
        }
        memcpy(&got, base + i * ELEMENT, ELEMENT);
        if (got.a != expected.a || got.b != expected.b) {
            return false;
        }
    }
    return true;
}

/* Where nobody is, nothing has changed. */
static bool is_from_neighbors(const struct work *work, uint32_t rank, const char *recv,
                              uint32_t seq)
{
    for (uint32_t i = 0; i < blocks_of(work, rank, IBSHIFT_RECV); i++) {
        size_t at = column_of(work, rank)[i], size = column_of(work, rank)[i + 1] - at;
        uint32_t from, block;
        bool is_right = true;

        if (graph_source(&work->options.plan, rank, i, &from, &block)) {
            is_right = is_pattern(recv + at, seq, from, gathers_neighbors(work) ? 0 : block, size);
        } else {
            for (size_t k = 0; k < size; k++) {
                is_right &= (unsigned char)recv[at + k] == UNTOUCHED;
            }
        }
        if (!is_right) {
            return false;
        }
    }
    return true;
}

bool work_is_right(struct work *work, uint32_t rank)
{
    const struct ibshift_op *op = &work->ops[rank];
    uint32_t seq = op->seq, root = work->options.plan.root, ranks = work->ranks;
    const char *recv = op->params.blocks[IBSHIFT_RECV].base;
    bool is_right = op->status == 0;

    switch (work->options.alg->collective) {
    case IBSHIFT_BCAST:
        return is_right && is_pattern(recv, seq, root, 0, vector_bytes(work));
    case IBSHIFT_SCATTER:
        return is_right && is_pattern(recv, seq, root, rank, size_of(work, root, rank));
    case IBSHIFT_GATHER:
    case IBSHIFT_ALLGATHER:
        if (work->rank[rank].length[IBSHIFT_RECV] == 0) {
            return is_right;
        }
        for (uint32_t i = 0; i < ranks && is_right; i++) {
            is_right = is_pattern(recv + column_of(work, 0)[i], seq, i, 0, size_of(work, i, 0));
        }
        return is_right;
    case IBSHIFT_ALLTOALL:
        for (uint32_t i = 0; i < ranks && is_right; i++) {
            is_right =
                is_pattern(recv + column_of(work, rank)[i], seq, i, rank, size_of(work, i, rank));
        }
        return is_right;
    case IBSHIFT_NEIGHBOR_ALLGATHER:
    case IBSHIFT_NEIGHBOR_ALLTOALL:
        return is_right && is_from_neighbors(work, rank, recv, seq);
    case IBSHIFT_REDUCE:
        return is_right &&
               (rank != root || is_reduced(work, recv, seq, ranks - 1, 0, work->options.size));
    case IBSHIFT_ALLREDUCE:
        return is_right && is_reduced(work, recv, seq, ranks - 1, 0, work->options.size);
    case IBSHIFT_SCAN:
        return is_right && is_reduced(work, recv, seq, rank, 0, work->options.size);
    case IBSHIFT_EXSCAN:
        return is_right &&
               (rank == 0 || is_reduced(work, recv, seq, rank - 1, 0, work->options.size));
    case IBSHIFT_REDUCE_SCATTER:
        return is_right && is_reduced(work, recv, seq, ranks - 1, row_of(work, 0)[rank] / ELEMENT,
                                      size_of(work, 0, rank) / ELEMENT);
    default:
        return is_right;
    }
}

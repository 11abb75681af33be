#include "exec/blocks.h"

#include <errno.h>
#include <string.h>

static void piece_range(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                        uint64_t *start, uint64_t *units)
{
    uint64_t last, last_length;

    ibshift_piece(blocks->elements, blocks->pieces, first, start, units);
    if (count > 1) {
        ibshift_piece(blocks->elements, blocks->pieces, first + count - 1, &last, &last_length);
        *units = last + last_length - *start;
    }
}

static void counted_block(const struct ibshift_blocks *blocks, uint32_t index, ptrdiff_t *start,
                          size_t *units)
{
    if (blocks->layout == IBSHIFT_INT_COUNTS) {
        *start = blocks->displs[index];
        *units = (size_t)blocks->counts[index];
    } else {
        *start = blocks->size_displs[index];
        *units = blocks->size_counts[index];
    }
}

/* Of those blocks, how many lie in one piece; where it begins and its units. */
static uint32_t counted_piece(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                              ptrdiff_t *start, size_t *total)
{
    ptrdiff_t next;
    size_t units;

    counted_block(blocks, first, start, total);
    for (uint32_t i = 1; i < count; i++) {
        counted_block(blocks, first + i, &next, &units);
        if (*total == 0) {
            *start = next;
        }
        if (units > 0 && next != *start + (ptrdiff_t)*total) {
            return i;
        }
        *total += units;
    }
    return count;
}

static int counted_range(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                         char **address, size_t *length)
{
    ptrdiff_t start;
    size_t total;

    if (counted_piece(blocks, first, count, &start, &total) < count) {
        return -EINVAL;
    }
    *address = total == 0 ? blocks->base : blocks->base + start * (ptrdiff_t)blocks->unit;
    *length = total * blocks->unit;
    return 0;
}

int ibshift_blocks_range(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count,
                         char **address, size_t *length)
{
    uint64_t start = first, units = count;

    if (count == 0) {
        *address = blocks->base;
        *length = 0;
        return 0;
    }
    switch (blocks->layout) {
    case IBSHIFT_UNIFORM:
        break;
    case IBSHIFT_PIECES:
        piece_range(blocks, first, count, &start, &units);
        break;
    case IBSHIFT_OFFSETS:
        start = blocks->offsets[first];
        units = blocks->offsets[first + count] - start;
        break;
    case IBSHIFT_INT_COUNTS:
    case IBSHIFT_SIZE_COUNTS:
        return counted_range(blocks, first, count, address, length);
    }
    *length = units * blocks->unit;
    *address = *length == 0 ? blocks->base : blocks->base + start * blocks->unit;
    return 0;
}

static uint32_t in_one_piece(const struct ibshift_blocks *blocks, uint32_t first, uint32_t count)
{
    ptrdiff_t start;
    size_t total;

    return count == 0 || blocks->layout < IBSHIFT_INT_COUNTS
               ? count
               : counted_piece(blocks, first, count, &start, &total);
}

int ibshift_blocks_piece(const struct ibshift_blocks blocks[IBSHIFT_BUFFERS],
                         const struct ibshift_step *step, uint32_t *i, struct ibshift_piece *piece)
{
    const struct ibshift_blocks *target = &blocks[step->buf], *source = &blocks[step->src];
    uint32_t first, from, count = ibshift_step_run(step, *i, &first, &from);
    size_t length = 0;
    int rc;

    if (step->kind == IBSHIFT_STEP_COPY) {
        count = in_one_piece(target, first, count);
        count = in_one_piece(source, from, count);
    }
    *i += count;
    rc = ibshift_blocks_range(target, first, count, &piece->to, &piece->length);
    rc = rc == 0 ? ibshift_blocks_range(source, from, count, &piece->from, &length) : rc;
    if (step->kind != IBSHIFT_STEP_COPY && rc == 0 && length == piece->length) {
        rc = ibshift_blocks_range(&blocks[step->with], step->beside, count, &piece->with, &length);
    }
    return rc == 0 && length != piece->length ? -EMSGSIZE : rc;
}

static bool is_uniform(const struct ibshift_blocks *sizes)
{
    return sizes->layout == IBSHIFT_UNIFORM ||
           (sizes->layout == IBSHIFT_PIECES && sizes->elements % sizes->pieces == 0);
}

static size_t units_of(const struct ibshift_blocks *sizes, uint32_t block)
{
    uint64_t start, units;
    ptrdiff_t at;
    size_t count;

    switch (sizes->layout) {
    case IBSHIFT_UNIFORM:
        return 1;
    case IBSHIFT_PIECES:
        ibshift_piece(sizes->elements, sizes->pieces, block, &start, &units);
        return units;
    case IBSHIFT_OFFSETS:
        return sizes->offsets[block + 1] - sizes->offsets[block];
    case IBSHIFT_INT_COUNTS:
    case IBSHIFT_SIZE_COUNTS:
        counted_block(sizes, block, &at, &count);
        return count;
    }
    return 0;
}

size_t ibshift_tmp_offsets(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                           uint32_t rank, const struct ibshift_blocks *sizes)
{
    uint32_t slots = ibshift_alg_blocks(alg, plan, rank, IBSHIFT_TMP);

    return slots == 0 || is_uniform(sizes) ? 0 : (size_t)slots + 1;
}

size_t ibshift_tmp_layout(const struct ibshift_alg *alg, const struct ibshift_plan *plan,
                          uint32_t rank, const struct ibshift_blocks *sizes, size_t *offsets,
                          struct ibshift_blocks *tmp)
{
    uint32_t slots = ibshift_alg_blocks(alg, plan, rank, IBSHIFT_TMP);

    memset(tmp, 0, sizeof(*tmp));
    tmp->unit = sizes->unit;
    if (is_uniform(sizes)) {
        if (slots > 0) {
            tmp->unit *= units_of(sizes, 0);
        }
        return slots * tmp->unit;
    }
    if (slots == 0) {
        return 0;
    }
    tmp->layout = IBSHIFT_OFFSETS;
    tmp->offsets = offsets;
    offsets[0] = 0;
    for (uint32_t i = 0; i < slots; i++) {
        offsets[i + 1] = offsets[i] + units_of(sizes, ibshift_alg_tmp_block(alg, plan, rank, i));
    }
    return offsets[slots] * tmp->unit;
}

#include "kinds.h"

#include <string.h>

const struct kind kinds[KINDS] = {
    [KIND_BYTE] = {1, 1, {{0, 1}}},         [KIND_INT] = {4, 4, {{0, 4}}},
    [KIND_LONG] = {8, 8, {{0, 8}}},         [KIND_THREE] = {12, 12, {{0, 12}}},
    [KIND_GAP] = {8, 16, {{0, 4}, {8, 4}}}, [KIND_LATE] = {4, 12, {{4, 4}}},
};

enum operation { SUM, SUM_LONG, XOR, ADD, TURN };
static const struct {
    enum operation operation;
    uint32_t kind;
} reductions[REDUCTIONS] = {{SUM, KIND_INT},   {SUM_LONG, KIND_LONG}, {XOR, KIND_BYTE},
                            {TURN, KIND_LONG}, {TURN, KIND_GAP},      {ADD, KIND_THREE},
                            {ADD, KIND_LATE},  {ADD, KIND_GAP}};

uint32_t reduction_kind(uint32_t reduction)
{
    return reductions[reduction].kind;
}

enum { INTEGER = 4 };

void kind_move(uint32_t which, char *user, char *piece, size_t bytes, bool is_out)
{
    const struct kind *kind = &kinds[which];
    size_t n = bytes / kind->size;

    if (kind->size == kind->extent) {
        memcpy(is_out ? user : piece, is_out ? piece : user, bytes);
        return;
    }
    for (size_t i = 0; i < n; i++, user += kind->extent) {
        for (int k = 0; k < 2 && kind->part[k].bytes == INTEGER; k++, piece += INTEGER) {
            char *at = user + kind->part[k].at;

            memcpy(is_out ? at : piece, is_out ? piece : at, INTEGER);
        }
    }
}

/* The lower rank's operand first. */
static uint64_t combine_word(enum operation operation, uint64_t low, uint64_t high)
{
    uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32), c = (uint32_t)high,
             d = (uint32_t)(high >> 32);

    switch (operation) {
    case XOR:
        return low ^ high;
    case SUM_LONG:
        return low + high;
    case TURN: /* one map after the other: not commutative */
        return (uint32_t)(a * c) | (uint64_t)(uint32_t)(a * d + b) << 32;
    default:
        return (uint32_t)(a + c) | (uint64_t)(uint32_t)(b + d) << 32;
    }
}

static void combine(enum operation operation, const char *low, const char *high, char *out,
                    size_t bytes)
{
    uint64_t a = 0, b = 0;
    size_t i = 0;

    for (; i + 8 <= bytes; i += 8) {
        memcpy(&a, low + i, 8);
        memcpy(&b, high + i, 8);
        a = combine_word(operation, a, b);
        memcpy(out + i, &a, 8);
    }
    memcpy(&a, low + i, bytes - i);
    memcpy(&b, high + i, bytes - i);
    a = combine_word(operation, a, b);
    memcpy(out + i, &a, bytes - i);
}

void reduction_combine(uint32_t reduction, const char *low, const char *high, char *out,
                       size_t bytes)
{
    combine(reductions[reduction].operation, low, high, out, bytes);
}

static void reduce_by(enum operation operation, char *in, char *inout, const int *count,
                      struct ompi_datatype_t *type)
{
    ptrdiff_t extent, lower, true_extent;
    uint32_t which = KIND_LONG;
    char low[16], high[16];

    ompi_datatype_type_extent(type, &extent);
    ompi_datatype_get_true_extent(type, &lower, &true_extent);
    for (uint32_t i = KIND_THREE; i < KINDS; i++) {
        which = kinds[i].extent == extent && kinds[i].part[0].at == lower ? i : which;
    }
    for (int i = 0; i < *count; i++) {
        kind_move(which, in + i * extent, low, kinds[which].size, false);
        kind_move(which, inout + i * extent, high, kinds[which].size, false);
        combine(operation, low, high, high, kinds[which].size);
        kind_move(which, inout + i * extent, high, kinds[which].size, true);
    }
}

static void add(void *in, void *inout, int *count, struct ompi_datatype_t **type)
{
    reduce_by(ADD, in, inout, count, *type);
}

static void turn(void *in, void *inout, int *count, struct ompi_datatype_t **type)
{
    reduce_by(TURN, in, inout, count, *type);
}

ompi_op_t *reduction_op(uint32_t reduction)
{
    switch (reductions[reduction].operation) {
    case ADD:
        return ompi_op_create_user(true, (ompi_op_fortran_handler_fn_t *)(uintptr_t)add);
    case TURN:
        return ompi_op_create_user(false, (ompi_op_fortran_handler_fn_t *)(uintptr_t)turn);
    case XOR:
        return &ompi_mpi_op_bxor.op;
    default:
        return &ompi_mpi_op_sum.op;
    }
}

struct ompi_datatype_t *kind_type(uint32_t kind)
{
    static const int ones[] = {1, 1};
    static const ptrdiff_t gap[] = {0, 8}, late[] = {4};
    struct ompi_datatype_t *type = NULL, *base = NULL;

    switch (kind) {
    case KIND_BYTE:
        return &ompi_mpi_byte.dt;
    case KIND_INT:
        return &ompi_mpi_int.dt;
    case KIND_LONG:
        return &ompi_mpi_uint64_t.dt;
    case KIND_THREE:
        ompi_datatype_create_contiguous(3, &ompi_mpi_int.dt, &type);
        break;
    case KIND_GAP:
        ompi_datatype_create_hindexed(2, ones, gap, &ompi_mpi_int.dt, &base);
        break;
    default:
        ompi_datatype_create_hindexed(1, ones, late, &ompi_mpi_int.dt, &base);
    }
    if (base != NULL) {
        ompi_datatype_create_resized(base, 0, kinds[kind].extent, &type);
        ompi_datatype_destroy(&base);
    }
    ompi_datatype_commit(&type);
    return type;
}

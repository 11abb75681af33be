/* Copyright (c) 2026 The ibshift developers
 * $COPYRIGHT$
 * $HEADER$ */
#include "ompi_config.h"

#include "coll_ibshift.h"
#include "coll_ibshift_buffers.h"

#include "opal/datatype/opal_convertor.h"

#include <stdlib.h>
#include <string.h>

/* n elements lie in one piece of n times their size. */
static bool is_one_piece(const struct ompi_datatype_t *type, size_t n)
{
    return 0 == n || ompi_datatype_is_contiguous_memory_layout(type, n > 1 ? 2 : 1);
}

static bool is_there(const struct ibshift_side *side, uint32_t block)
{
    return NULL == side->there || side->there[block];
}

static size_t count_of(const struct ibshift_side *side, uint32_t block)
{
    if (!is_there(side, block)) {
        return 0;
    }
    return IBSHIFT_NO_ARRAY == side->counts ? side->count
                                            : (size_t)ibshift_array_at(side->counts, block);
}

static ptrdiff_t displ_of(const struct ibshift_side *side, uint32_t block)
{
    return IBSHIFT_NO_ARRAY == side->displs
               ? (ptrdiff_t)(block * side->count)
               : ibshift_displs_at(side->displs, block, side->has_places);
}

static size_t elements(const struct ibshift_side *side)
{
    size_t sum = 0;

    switch (side->shape) {
    case IBSHIFT_SIDE_BLOCKS:
        return side->count * side->blocks;
    case IBSHIFT_SIDE_VECTOR:
        return side->count;
    case IBSHIFT_SIDE_RUNS:
        for (uint32_t i = 0; i < side->blocks; i++) {
            sum += count_of(side, i);
        }
        return sum;
    default:
        return 0;
    }
}

/* Bytes of an element as the plan sees it. */
static size_t unit_of(const struct ibshift_side *side)
{
    return side->is_operand ? (size_t)ibshift_type_extent(side->type)
                            : ibshift_type_size(side->type);
}

static bool has_displs(const struct ibshift_side *side)
{
    return IBSHIFT_SIDE_COUNTS == side->shape || IBSHIFT_SIDE_TYPES == side->shape;
}

static struct ompi_datatype_t *type_of(const struct ibshift_side *side, uint32_t block)
{
    return IBSHIFT_SIDE_TYPES == side->shape ? side->types[block] : side->type;
}

static uint32_t distinct_types(const struct ibshift_side *side)
{
    if (IBSHIFT_SIDE_TYPES == side->shape) {
        return side->blocks;
    }
    return NULL == side->type ? 0 : 1;
}

enum { KEPT_WIDTH = 8 }; /* of an element of the arrays, at most */
_Static_assert(sizeof(struct ompi_datatype_t *) <= KEPT_WIDTH, "as it says");

size_t ibshift_side_keep_bytes(const struct ibshift_side *side)
{
    return IBSHIFT_NO_ARRAY == side->counts ? 0 : 3 * KEPT_WIDTH * (size_t)side->blocks;
}

static ibshift_array_t copied(ibshift_array_t array, uint32_t count, bool are_places, char *to)
{
    if (IBSHIFT_NO_ARRAY == array) {
        return array;
    }
    memcpy(to, ibshift_array_elements(array), count * ibshift_displs_width(array, are_places));
    return ibshift_array_of(to, ibshift_array_width(array));
}

char *ibshift_side_keep(struct ibshift_side *side, char *memory)
{
    size_t most = KEPT_WIDTH * (size_t)side->blocks;
    char *end = memory + ibshift_side_keep_bytes(side);

    if (IBSHIFT_NO_ARRAY != side->counts) {
        side->counts = copied(side->counts, side->blocks, false, memory);
        side->displs = copied(side->displs, side->blocks, side->has_places, memory + most);
    }
    if (NULL != side->types) {
        side->types = memcpy(memory + 2 * most, side->types, side->blocks * sizeof(*side->types));
    }
    for (uint32_t i = 0; i < distinct_types(side); i++) {
        struct ompi_datatype_t *type = type_of(side, i);

        if (!ompi_datatype_is_predefined(type)) {
            OBJ_RETAIN(type);
        }
    }
    return end;
}

void ibshift_side_let_go(struct ibshift_side *side)
{
    for (uint32_t i = 0; i < distinct_types(side); i++) {
        struct ompi_datatype_t *type = type_of(side, i);

        if (!ompi_datatype_is_predefined(type)) {
            OBJ_RELEASE(type);
        }
    }
}

size_t ibshift_side_block_bytes(const struct ibshift_side *side, uint32_t block)
{
    return count_of(side, block) * ibshift_type_size(type_of(side, block));
}

bool ibshift_side_is_dense(const struct ibshift_side *side)
{
    ptrdiff_t next = 0;
    bool is_first = true;

    for (uint32_t i = 0; has_displs(side) && i < side->blocks; i++) {
        if (0 == count_of(side, i)) {
            continue;
        }
        if (!is_first && displ_of(side, i) != next) {
            return false;
        }
        is_first = false;
        next = displ_of(side, i) + (ptrdiff_t)count_of(side, i);
    }
    return true;
}

/* Types of the program come back as others at the same address. */
static bool are_known_and_whole(const struct ibshift_side *side)
{
    for (uint32_t i = 0; i < side->blocks; i++) {
        if (!ompi_datatype_is_predefined(side->types[i]) || !is_one_piece(side->types[i], 2)) {
            return false;
        }
    }
    return true;
}

bool ibshift_side_is_whole(const struct ibshift_side *side)
{
    return IBSHIFT_SIDE_ABSENT == side->shape ||
           (!side->is_apart && (IBSHIFT_SIDE_TYPES == side->shape ? are_known_and_whole(side)
                                                                  : is_one_piece(side->type, 2)));
}

/* Each block lies in one piece, whatever its type. */
static bool has_whole_types(const struct ibshift_side *side)
{
    for (uint32_t i = 0; i < side->blocks; i++) {
        if (!is_one_piece(side->types[i], count_of(side, i))) {
            return false;
        }
    }
    return true;
}

/* The first byte that the user gave, from MPI_BOTTOM too; NULL: there is none. */
static const char *first_byte(const struct ibshift_side *side)
{
    uint32_t block = 0;

    if (0 == side->bytes) {
        return NULL;
    }
    if (!has_displs(side)) {
        return side->user + ibshift_type_lower_bound(side->type);
    }
    while (0 == ibshift_side_block_bytes(side, block)) {
        block++;
    }
    return side->user +
           displ_of(side, block) *
               (IBSHIFT_SIDE_TYPES == side->shape ? 1 : ibshift_type_extent(side->type)) +
           ibshift_type_lower_bound(type_of(side, block));
}

static void find_where(struct ibshift_side *side)
{
    side->is_device = NULL != ibshift_device && !side->is_host && (side->loads || side->stores) &&
                      ibshift_device_is(first_byte(side));
    side->is_staged |= side->is_device;
}

void ibshift_side_prepare(struct ibshift_side *side)
{
    if (IBSHIFT_SIDE_ABSENT == side->shape) {
        return;
    }
    if (has_displs(side)) {
        for (uint32_t i = 0; i < side->blocks; i++) {
            side->bytes += ibshift_side_block_bytes(side, i);
        }
        side->is_staged =
            side->is_apart || (IBSHIFT_SIDE_TYPES == side->shape ? !has_whole_types(side)
                                                                 : !is_one_piece(side->type, 2));
    } else {
        size_t n = elements(side);

        side->bytes = n * unit_of(side);
        side->is_staged = side->is_apart || !is_one_piece(side->type, side->is_operand ? 2 : n);
    }
    find_where(side);
}

size_t ibshift_side_offsets(const struct ibshift_side *side)
{
    bool needs_offsets = IBSHIFT_SIDE_RUNS == side->shape || (side->is_staged && has_displs(side));

    if (IBSHIFT_SIDE_TYPES == side->shape && !side->is_staged) {
        return (size_t)side->blocks * 2; /* places and lengths */
    }
    return needs_offsets ? (size_t)side->blocks + 1 : 0;
}

static char *base_of(const struct ibshift_side *side)
{
    if (side->is_staged) {
        return side->scratch;
    }
    return 0 == side->bytes || IBSHIFT_SIDE_TYPES == side->shape
               ? side->user
               : side->user + ibshift_type_lower_bound(side->type);
}

static void run_blocks(const struct ibshift_side *side, struct ibshift_blocks *blocks)
{
    side->offsets[0] = 0;
    for (uint32_t i = 0; i < side->blocks; i++) {
        side->offsets[i + 1] = side->offsets[i] + count_of(side, i);
    }
    blocks->layout = IBSHIFT_OFFSETS;
    blocks->unit = unit_of(side);
    blocks->offsets = side->offsets;
}

/* Where they are, in bytes: each type has its own lower bound. */
static void typed_blocks(const struct ibshift_side *side, struct ibshift_blocks *blocks)
{
    size_t *lengths = side->offsets;
    ptrdiff_t *places = (ptrdiff_t *)(side->offsets + side->blocks);

    for (uint32_t i = 0; i < side->blocks; i++) {
        lengths[i] = ibshift_side_block_bytes(side, i);
        places[i] =
            0 == lengths[i] ? 0 : displ_of(side, i) + ibshift_type_lower_bound(side->types[i]);
    }
    blocks->layout = IBSHIFT_SIZE_COUNTS;
    blocks->size_counts = lengths;
    blocks->size_displs = places;
}

static void counted_blocks(const struct ibshift_side *side, struct ibshift_blocks *blocks)
{
    if (!side->is_staged) {
        bool is_wide = sizeof(int) != ibshift_array_width(side->counts);

        blocks->layout = is_wide ? IBSHIFT_SIZE_COUNTS : IBSHIFT_INT_COUNTS;
        blocks->unit = ibshift_type_size(side->type);
        blocks->counts = ibshift_array_elements(side->counts); /* or their wide namesakes */
        blocks->displs = ibshift_array_elements(side->displs);
        return;
    }
    side->offsets[0] = 0;
    for (uint32_t i = 0; i < side->blocks; i++) {
        side->offsets[i + 1] = side->offsets[i] + ibshift_side_block_bytes(side, i);
    }
    blocks->layout = IBSHIFT_OFFSETS;
    blocks->offsets = side->offsets;
}

void ibshift_side_blocks(const struct ibshift_side *side, uint32_t pieces,
                         struct ibshift_blocks *blocks)
{
    *blocks = (struct ibshift_blocks){.base = base_of(side), .unit = 1};
    switch (side->shape) {
    case IBSHIFT_SIDE_ABSENT:
        blocks->unit = 0;
        break;
    case IBSHIFT_SIDE_BLOCKS:
        blocks->unit = side->count * unit_of(side);
        break;
    case IBSHIFT_SIDE_VECTOR:
        blocks->layout = IBSHIFT_PIECES;
        blocks->pieces = pieces;
        blocks->unit = side->is_operand ? unit_of(side) : 1;
        blocks->elements = side->is_operand ? side->count : side->bytes;
        break;
    case IBSHIFT_SIDE_RUNS:
        run_blocks(side, blocks);
        break;
    default:
        if (IBSHIFT_SIDE_TYPES == side->shape && !side->is_staged) {
            typed_blocks(side, blocks);
        } else {
            counted_blocks(side, blocks);
        }
    }
}

void ibshift_side_places(const struct ibshift_side *side, size_t *lengths, ptrdiff_t *places)
{
    struct ibshift_blocks blocks;
    char *address;

    ibshift_side_blocks(side, 1, &blocks);
    for (uint32_t i = 0; i < side->blocks; i++) {
        (void)ibshift_blocks_range(&blocks, i, 1, &address, &lengths[i]);
        places[i] = address - blocks.base;
    }
}

/* Nobody could go on: others wait for these data. */
static void copy_device(void *to, const void *from, size_t bytes)
{
    if (0 != ibshift_device->copy(to, from, bytes)) {
        ibshift_help("device-copy", ompi_process_info.nodename, bytes, ibshift_device->name);
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
    }
}

/* What elements touch, counted from their address. */
struct reach {
    ptrdiff_t lower;
    size_t bytes;
};

static struct reach reach_of(const struct ompi_datatype_t *type, size_t count)
{
    ptrdiff_t lower, size, extent = ibshift_type_extent(type), last;

    ompi_datatype_get_true_extent(type, &lower, &size);
    last = (ptrdiff_t)(count - 1) * extent;
    return last < 0 ? (struct reach){lower + last, (size_t)(size - last)}
                    : (struct reach){lower, (size_t)(size + last)};
}

/* The device's elements in memory of the host, with the gaps between them. */
static char *bring(const char *user, const struct reach *reach)
{
    char *image = malloc(reach->bytes);

    if (NULL == image) {
        ibshift_help("device-copy", ompi_process_info.nodename, reach->bytes, "malloc");
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
        return NULL;
    }
    copy_device(image, user + reach->lower, reach->bytes);
    return image;
}

static void convert_host(char *user, struct ompi_datatype_t *type, size_t count, char *packed,
                         bool pack)
{
    struct iovec piece = {.iov_base = packed};
    uint32_t pieces = 1;
    size_t bytes = count * ibshift_type_size(type);
    opal_convertor_t convertor;

    if (0 == bytes) {
        return;
    }
    piece.iov_len = bytes;
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    if (pack) {
        opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count,
                                                 user, 0, &convertor);
        opal_convertor_pack(&convertor, &piece, &pieces, &bytes);
    } else {
        opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
                                                 user, 0, &convertor);
        opal_convertor_unpack(&convertor, &piece, &pieces, &bytes);
    }
    OBJ_DESTRUCT(&convertor);
}

static void convert(const struct ibshift_side *side, char *user, struct ompi_datatype_t *type,
                    size_t count, char *packed, bool pack)
{
    struct reach reach;
    char *image;

    if (!side->is_device || 0 == count * ibshift_type_size(type)) {
        convert_host(user, type, count, packed, pack);
        return;
    }
    reach = reach_of(type, count);
    if (is_one_piece(type, count)) {
        user += reach.lower;
        copy_device(pack ? packed : user, pack ? user : packed, reach.bytes);
        return;
    }
    image = bring(user, &reach);
    convert_host(image - reach.lower, type, count, packed, pack);
    if (!pack) {
        copy_device(user + reach.lower, image, reach.bytes);
    }
    free(image);
}

/* Gaps stay as they are on both sides. */
static void copy_operands(const struct ibshift_side *side, bool pack)
{
    char *origin = side->scratch - ibshift_type_lower_bound(side->type), *user = side->user;
    struct reach reach = reach_of(side->type, elements(side));
    char *image = NULL;

    if (side->is_device) {
        image = bring(user, &reach);
        user = image - reach.lower;
    }
    ompi_datatype_copy_content_same_ddt(side->type, elements(side), pack ? origin : user,
                                        pack ? user : origin);
    if (side->is_device && !pack) {
        copy_device(side->user + reach.lower, image, reach.bytes);
    }
    free(image);
}

void ibshift_side_move_block(const struct ibshift_side *side, uint32_t block, char *packed,
                             bool pack)
{
    struct ompi_datatype_t *type = type_of(side, block);
    ptrdiff_t unit = IBSHIFT_SIDE_TYPES == side->shape ? 1 : ibshift_type_extent(type);
    char *user = side->user + displ_of(side, block) * unit;
    size_t count = count_of(side, block);

    if (0 == count * ibshift_type_size(type)) { /* the program may have no memory for it */
        return;
    }
    if (side->is_device || !is_one_piece(type, count)) {
        convert(side, user, type, count, packed, pack);
        return;
    }
    user += ibshift_type_lower_bound(type);
    memcpy(pack ? packed : user, pack ? user : packed, count * ibshift_type_size(type));
}

bool ibshift_side_is_simple(const struct ibshift_side *side, struct ibshift_side_units *units)
{
    if (IBSHIFT_SIDE_COUNTS != side->shape || side->is_device || !is_one_piece(side->type, 2)) {
        return false;
    }
    *units =
        (struct ibshift_side_units){side->user + ibshift_type_lower_bound(side->type),
                                    ibshift_type_size(side->type), ibshift_type_extent(side->type)};
    return true;
}

void ibshift_side_move(const struct ibshift_side *side, bool pack)
{
    if (!side->is_staged || side->is_late || 0 == side->bytes ||
        !(pack ? side->loads : side->stores)) {
        return;
    }
    for (uint32_t i = 0; (has_displs(side) || NULL != side->there) && i < side->blocks; i++) {
        size_t at = has_displs(side) ? side->offsets[i] : i * side->count * unit_of(side);

        ibshift_side_move_block(side, i, side->scratch + at, pack);
    }
    if (side->is_operand) {
        copy_operands(side, pack);
    } else if (!has_displs(side) && NULL == side->there) {
        convert(side, side->user, side->type, elements(side), side->scratch, pack);
    }
}

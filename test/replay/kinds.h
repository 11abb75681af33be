#ifndef IBSHIFT_REPLAY_KINDS_H
#define IBSHIFT_REPLAY_KINDS_H

/* Types and operators of the calls, and what they do. */

#include "ompi_config.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"

/* How an element lies in memory: up to two runs of bytes. INT, THREE, GAP and LATE are of the same integers. */
enum { KIND_BYTE, KIND_INT, KIND_LONG, KIND_THREE, KIND_GAP, KIND_LATE, KINDS };
enum { KIND_UNIT = 24 }; /* bytes that those divide */
struct kind {
    uint32_t size, extent;
    struct {
        uint32_t at, bytes;
    } part[2];
};
extern const struct kind kinds[KINDS];

struct ompi_datatype_t *kind_type(uint32_t kind);
/* Elements between the user's memory and one piece. */
void kind_move(uint32_t kind, char *user, char *piece, size_t bytes, bool is_out);

/* Operators with their types. */
enum { REDUCTIONS = 8 };
uint32_t reduction_kind(uint32_t reduction);
ompi_op_t *reduction_op(uint32_t reduction);
/* out: of both operands, the lower rank's first. */
void reduction_combine(uint32_t reduction, const char *low, const char *high, char *out,
                       size_t bytes);

#endif

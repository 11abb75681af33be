/*
 * The compiled form: graph, tables, service levels and routing order in one file. It is read whole and then
 * checked: a mapping would change with the file, and end the process where the file was cut short.
 * Written for the machine at hand (byte order and version are checked, not converted).
 */
#ifndef IBSHIFT_FABRIC_READ_COMPILED_H
#define IBSHIFT_FABRIC_READ_COMPILED_H

#include <stdio.h>

#include "fabric/graph/fabric.h"

#define IBSHIFT_COMPILED_MAGIC   "ibshift\x1a"
#define IBSHIFT_COMPILED_VERSION 4

/* Flags; others are refused. */
#define IBSHIFT_COMPILED_ADAPTIVE 1u /* the fabric's is_adaptive */
#define IBSHIFT_COMPILED_LOOP     2u /* its has_loop */
#define IBSHIFT_COMPILED_FLAGS    (IBSHIFT_COMPILED_ADAPTIVE | IBSHIFT_COMPILED_LOOP)

enum ibshift_section {
    IBSHIFT_SECTION_NODES,
    IBSHIFT_SECTION_PORTS,
    IBSHIFT_SECTION_NAMES,
    IBSHIFT_SECTION_HOSTS,
    IBSHIFT_SECTION_SWITCHES,
    IBSHIFT_SECTION_LFT,
    IBSHIFT_SECTION_ORDER,
    IBSHIFT_SECTION_SL,
    IBSHIFT_SECTION_SL_ROW,
    IBSHIFT_SECTION_COUNT
};

struct ibshift_compiled_header {
    char magic[8];
    uint32_t version, byte_order, header_size;
    uint32_t count[IBSHIFT_SECTION_COUNT]; /* elements */
    uint64_t file_size, checksum;          /* of what follows the header */
    uint64_t guid_sum, tables_sum;
    uint64_t offset[IBSHIFT_SECTION_COUNT];
    uint32_t lft_stride, flags; /* IBSHIFT_COMPILED_FLAGS */
    struct ibshift_imprint imprint;
};

_Static_assert(sizeof(struct ibshift_compiled_header) == 208,
               "changes of the layout need a new version");

/* order (with keepers) may be NULL. The bytes of the file, or a negative errno. */
int64_t ibshift_compiled_write(FILE *file, const struct ibshift_fabric *f, const uint32_t *order,
                               uint32_t order_count);

/* What the head of the file says, without reading the rest: for a file that may be of another
 * fabric, or old. The checksum is not looked at. */
int ibshift_compiled_imprint(const char *path, struct ibshift_imprint *imprint,
                             struct ibshift_error *err);

/* Checks everything: sizes, checksum, every index. */
int ibshift_compiled_read(const char *path, struct ibshift_fabric **fabric,
                          struct ibshift_error *err);

#endif

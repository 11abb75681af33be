/* One text through one reader; whatever it says, nothing may leak, hang or read beside its memory.
 */
#ifndef IBSHIFT_FUZZ_FABRIC_H
#define IBSHIFT_FUZZ_FABRIC_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/shape/order.h"
#include "fabric/read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int fuzz_reader(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings);

static inline int fuzz_text(fuzz_reader *read, struct ibshift_fabric *f, const uint8_t *data,
                            size_t size)
{
    struct ibshift_warnings warnings = {.count = 0};
    struct ibshift_error err;
    struct ibshift_lines *lines = ibshift_lines_from(
        size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r"), "fuzz", &err);
    int rc;

    if (lines == NULL) {
        return -1;
    }
    rc = read(lines, f, &warnings);
    ibshift_lines_close(lines);
    return rc;
}

/* What every user of a fabric does next. */
static inline void fuzz_use(struct ibshift_fabric *f)
{
    struct ibshift_shape shape;
    struct ibshift_error err;
    uint32_t *order, count;

    if (ibshift_fabric_finish(f, &err) != 0 || ibshift_shape_find(f, &shape, &err) != 0) {
        return;
    }
    if (ibshift_order_keepers(f, &shape, &order, &count, &err) == 0) {
        free(order);
    }
    ibshift_shape_free(&shape);
}

#endif

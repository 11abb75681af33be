/* A compiled fabric as a file. */
#ifndef IBSHIFT_TEST_COMPILED_H
#define IBSHIFT_TEST_COMPILED_H

#include <stdio.h>
#include <sys/stat.h>

#include "fabric/read/compiled.h"
#include "unit.h"

static inline void write_compiled(const char *path, const struct ibshift_fabric *f,
                                  const uint32_t *order, uint32_t count)
{
    FILE *file = fopen(path, "wb");
    struct stat info;
    int64_t bytes;

    assert_non_null(file);
    bytes = ibshift_compiled_write(file, f, order, count);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, bytes);
}

#endif

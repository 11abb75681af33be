#include <string.h>

#include "fabric/matrix.h"
#include "fuzz_fabric.h"
#include "sim/job.h"

enum { RANKS = 8 };

/* The file of `ibshift sim --sizes`. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t bytes[RANKS * RANKS] = {0};
    struct sim_sizes *sizes;
    struct ibshift_error err;
    FILE *file = size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r");

    if (file == NULL) {
        return 0;
    }
    sizes = sim_sizes_create(RANKS);
    if (matrix_read(bytes, RANKS, file, "fuzz", &err) == 0 && sim_sizes_take(sizes, bytes) != 0) {
        abort(); /* a file has nothing that is too long */
    }
    sim_sizes_free(sizes);
    fclose(file);
    return 0;
}

#include <stdlib.h>

#include "fuzz_fabric.h"
#include "sim/job.h"

/* The file of `ibshift sim --sizes`, of eight ranks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sim_sizes *sizes;
    struct ibshift_error err;
    FILE *file = size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r");

    if (file == NULL) {
        return 0;
    }
    sizes = sim_sizes_create(8);
    if (sim_sizes_read(sizes, file, "fuzz", &err) == 0) {
        (void)sim_sizes_most(sizes);
    }
    sim_sizes_free(sizes);
    fclose(file);
    return 0;
}

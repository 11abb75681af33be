#include "fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ibshift_fabric *f = ibshift_fabric_new();

    if (fuzz_text(ibshift_read_ufm, f, data, size) == 0) {
        fuzz_use(f);
    }
    ibshift_fabric_free(f);
    return 0;
}

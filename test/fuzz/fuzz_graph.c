#include "fuzz_fabric.h"

/* READER: one of those that make a graph of a text (test/lanes/fuzz). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ibshift_fabric *f = ibshift_fabric_new();

    if (fuzz_text(READER, f, data, size) == 0) {
        fuzz_use(f);
    }
    ibshift_fabric_free(f);
    return 0;
}

#include "fabric/read/synth.h"
#include "fuzz_fabric.h"

/* Tables for the fabric of the corpus: kary:2,2, its LIDs known or not as the first byte says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    if (size < 2 || ibshift_synth_fabric("kary:2,2", &f, &err) != 0) {
        return 0;
    }
    for (uint32_t p = 0; data[0] % 2 == 0 && p < f->port_count; p++) {
        f->ports[p].lid = 0;
    }
    if (fuzz_text(ibshift_read_tables, f, data + 1, size - 1) == 0) {
        ibshift_fabric_tables_finish(f);
        fuzz_use(f);
    }
    ibshift_fabric_free(f);
    return 0;
}

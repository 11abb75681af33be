#include "fabric/synth.h"
#include "fuzz_fabric.h"

static int read_order(ibshift_lines_t *lines, ibshift_fabric_t *f, ibshift_notes_t *notes,
                      ibshift_error_t *err)
{
    uint32_t *order, count;
    int rc = ibshift_read_order(lines, f, true, &order, &count, err);

    (void)notes;
    if (rc == 0) {
        free(order);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ibshift_fabric_t *f;
    ibshift_error_t err;

    if (f == NULL && ibshift_synth_fabric("kary:2,2", &f, &err) != 0) {
        abort();
    }
    fuzz_text(read_order, f, data, size);
    return 0;
}

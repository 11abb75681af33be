#include "fabric/read/synth.h"
#include "fuzz_fabric.h"

static bool has_dummies;

static int read_order(struct ibshift_lines *lines, struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings)
{
    uint32_t *order, count;
    int rc = ibshift_read_order(lines, f, has_dummies, &order, &count);

    (void)warnings;
    if (rc == 0) {
        free(order);
    }
    return rc;
}

/* As an order, and as a job's hosts or a placement, where a host may be named once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ibshift_fabric *f;
    struct ibshift_error err;

    if (f == NULL && ibshift_synth_fabric("kary:2,2", &f, &err) != 0) {
        abort();
    }
    has_dummies = true;
    fuzz_text(read_order, f, data, size);
    has_dummies = false;
    fuzz_text(read_order, f, data, size);
    return 0;
}

#include "fabric/read/synth.h"
#include "fuzz_fabric.h"

static int read_sl(struct ibshift_lines *lines, struct ibshift_fabric *f,
                   struct ibshift_warnings *warnings)
{
    (void)warnings;
    return ibshift_read_sl(lines, f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ibshift_fabric *f;
    struct ibshift_error err;

    if (f == NULL && ibshift_synth_fabric("kary:2,1", &f, &err) != 0) {
        abort();
    }
    fuzz_text(read_sl, f, data, size);
    return 0;
}

#include "fabric/partitions.h"
#include "fuzz_fabric.h"
#include "fabric/read/synth.h"

/* The rules or the tables of keys, and what they mean for the hosts of a small fabric. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ibshift_fabric *f;
    const struct fabric_facts facts = {.sm_lid = 1};
    struct fabric_partitions p = {.members = NULL};
    struct fabric_apart apart;
    struct ibshift_error err;
    struct ibshift_lines *lines;

    if (size == 0) {
        return 0;
    }
    lines = ibshift_lines_from(fmemopen((void *)(uintptr_t)data, size, "r"), "fuzz", &err);
    if (lines == NULL || (f == NULL && ibshift_synth_fabric("kary:2,2", &f, &err) != 0)) {
        return -1;
    }
    if (fabric_partitions_read(&p, lines, &err) == 0) {
        fabric_partitions_check(&p, f, &facts, &apart, &err);
    }
    fabric_partitions_free(&p);
    ibshift_lines_close(lines);
    return 0;
}

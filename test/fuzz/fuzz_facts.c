/* What sminfo prints and ibdiagnet's .db_csv, told apart as `ibshift fabric publish` does. */
#include <stdint.h>
#include <stdio.h>

#include "fabric/facts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fabric_facts facts = {.sm_lid = 0};
    struct ibshift_error err;
    enum fabric_facts_kind kind = fabric_facts_kind((const char *)data, size);
    FILE *file = size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r");

    if (file != NULL && kind != FABRIC_FACTS_NONE) {
        (void)fabric_facts_read(file, "fuzz", kind, &facts, &err);
    }
    if (file != NULL) {
        fclose(file);
    }
    return 0;
}

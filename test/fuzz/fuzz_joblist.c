/* Lists of jobs for `ibshift fabric audit`; the first 1000 nodes of each are taken. */
#include <stdint.h>
#include <stdio.h>

#include "fabric/joblist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int job(void *context, const char *name, double seconds)
{
    *(unsigned *)context = 0;
    return name[0] == '\0' && seconds < 0;
}

static int node(void *context, const char *name)
{
    return name == NULL || ++*(unsigned *)context > 1000;
}

static int end(void *context)
{
    return *(unsigned *)context > 1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned nodes;
    struct ibshift_error err;
    FILE *file = size == 0 ? NULL : fmemopen((void *)(uintptr_t)data, size, "r");

    if (file != NULL) {
        (void)fabric_joblist_read(file, "fuzz", &(struct fabric_joblist){&nodes, job, node, end},
                                  &err);
        fclose(file);
    }
    return 0;
}

/* Lists of jobs for `ibshift fabric audit`; the first 1000 nodes of each are taken. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/joblist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int job(void *context, const char *where, const char *name, double seconds)
{
    *(unsigned *)context = 0;
    return where[0] == '\0' || (name[0] == '\0' && seconds < 0);
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
    char path[32];
    int file = memfd_create("jobs", MFD_CLOEXEC);

    if (file >= 0 && write(file, data, size) == (ssize_t)size) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        (void)fabric_joblist_load(path, &(struct fabric_joblist){&nodes, job, node, end}, &err);
    }
    close(file);
    return 0;
}

/* Lists of jobs for `ibshift fabric audit`. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/joblist.h"
#include "fabric/read/synth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int job(void *context, const struct fabric_listed *listed)
{
    return context != NULL || listed->where[0] == '\0' || listed->count > 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ibshift_fabric *fabric;
    struct ibshift_error err;
    char path[32];
    int file = memfd_create("jobs", MFD_CLOEXEC);

    if (fabric == NULL && ibshift_synth_fabric("kary:4,2", &fabric, &err) != 0) {
        return -1;
    }
    if (file >= 0 && write(file, data, size) == (ssize_t)size) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        (void)fabric_joblist_load(path, &(struct fabric_joblist){fabric, job, NULL}, &err);
    }
    close(file);
    return 0;
}

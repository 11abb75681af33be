#include <sys/mman.h>
#include <unistd.h>

#include "fabric/read/synth.h"
#include "fabric/sl2vl.h"
#include "fuzz_fabric.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ibshift_fabric *f;
    struct fabric_sl2vl table;
    struct ibshift_error err;
    char path[64];
    unsigned vls;
    int fd = memfd_create("fuzz", 0);

    if (f == NULL && ibshift_synth_fabric("kary:2,1", &f, &err) != 0) {
        abort();
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size &&
        fabric_sl2vl_load(path, f, &table, &vls, &err) == 0) {
        fabric_sl2vl_free(&table);
    }
    close(fd);
    return 0;
}

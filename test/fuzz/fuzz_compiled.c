#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fabric/read/compiled.h"
#include "fuzz_fabric.h"

/* The file as it is: most of the work is the header's, for nothing mends the checksum.
 * fuzz_routes.c does, and goes on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("fuzz", 0);
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size && ibshift_compiled_read(path, &f, &err) == 0) {
        struct ibshift_shape shape;

        if (ibshift_shape_find(f, &shape, &err) == 0) {
            ibshift_shape_free(&shape);
        }
        ibshift_fabric_free(f);
    }
    close(fd);
    return 0;
}

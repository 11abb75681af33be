#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/cmd.h"
#include "fuzz_fabric.h"

/* The file of `ibshift plan --stages`, of as many ranks as the first byte says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    struct plan_args args = {.command = "fuzz", .stages_path = path};
    int fd = memfd_create("fuzz", 0);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (size > 1 && write(fd, data + 1, size - 1) == (ssize_t)size - 1) {
        args.plan.ranks = data[0] % 16 + 1u;
        (void)plan_args_stages(&args);
    }
    free(args.stages_memory);
    close(fd);
    return 0;
}

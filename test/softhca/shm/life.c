#include "shm/life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/layout.h"

/* What /proc says behind the name, which may hold anything, from the state on. NULL: there is no such
   process; "": it cannot be told, for want of descriptors. */
static const char *read_stat(int32_t pid, char *text, size_t size)
{
    char path[64];
    const char *end;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? NULL : "";
    }
    n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    end = strrchr(text, ')');
    return end && end[1] ? end + 2 : "";
}

static uint64_t start_time(const char *stat)
{
    for (int i = 0; stat && i < 19; i++) {
        stat = strchr(stat, ' ');
        stat = stat ? stat + 1 : NULL;
    }
    return stat ? strtoull(stat, NULL, 10) : 0;
}

uint64_t life_start_time(int32_t pid)
{
    char text[1024];

    return start_time(read_stat(pid, text, sizeof(text)));
}

/* The process that had this number and started then. */
static bool is_alive(int32_t pid, uint64_t started)
{
    char text[1024];
    const char *stat = read_stat(pid, text, sizeof(text));
    uint64_t now = start_time(stat);

    return stat && stat[0] != 'Z' && stat[0] != 'X' && (now == 0 || started == 0 || now == started);
}

bool proc_is_alive(uint32_t proc)
{
    int32_t pid = atomic_load(&shm.procs[proc].pid);

    return pid > 0 && is_alive(pid, shm.procs[proc].start_time);
}

bool proc_is_left(uint32_t proc)
{
    int32_t pid = atomic_load(&shm.procs[proc].pid);

    return pid < 0 ? !is_alive(-pid, 0) : pid > 0 && !is_alive(pid, shm.procs[proc].start_time);
}

#include "shm/life.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm/layout.h"

uint64_t life_start_time(int32_t pid)
{
    char path[64], text[1024];
    int fd;
    ssize_t n;
    const char *field;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    field = strrchr(text, ')'); /* the name may hold anything */
    for (int i = 0; field && i < 20; i++) {
        field = strchr(field + 1, ' ');
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

static bool is_zombie(int32_t pid)
{
    char path[64], text[512];
    int fd;
    ssize_t n;
    const char *state;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT; /* else it cannot be told, for want of descriptors: it lives */
    }
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    state = strrchr(text, ')');
    return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}

/* The process that had this number and started then. */
static bool is_alive(int32_t pid, uint64_t start_time)
{
    uint64_t now;

    if ((kill(pid, 0) != 0 && errno == ESRCH) || is_zombie(pid)) {
        return false;
    }
    now = life_start_time(pid);
    return now == 0 || start_time == 0 || now == start_time;
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

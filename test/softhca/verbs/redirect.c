/*
 * librdmacm talks to a device file of the kernel's: rdmacm.c stands for it. UCX looks for device files and sysfs files under fixed names: shows it the run's own. And a modelled
 * host has booted by itself, so that only its own processes take each other for neighbours.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs/hca.h"
#include "verbs/cm.h"

static bool has_other_hosts(void)
{
    return proc_self != SHM_NONE && shm.head->conf.hosts > 1;
}

static const char *moved(const char *path, char *buffer)
{
    const char *dir;

    static const struct {
        const char *prefix, *place;

    } moves[] = {
        {"/dev/infiniband/uverbs", "dev/uverbs"},
        {"/sys/class/infiniband/softhca", "class/infiniband/softhca"},
    };
    dir = path ? getenv("SOFTHCA_DIR") : NULL;
    if (dir && has_other_hosts() && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) {
        snprintf(buffer, PATH_MAX, "%s/boot_id.%u", dir, shm.procs[proc_self].host);
        return buffer;
    }
    for (size_t i = 0; dir && i < sizeof(moves) / sizeof(moves[0]); i++) {
        size_t n = strlen(moves[i].prefix);

        if (strncmp(path, moves[i].prefix, n) != 0) {
            continue;
        }
        if (proc_self != SHM_NONE && strstr(path, "/device/net")) { /* each host has its own */
            snprintf(buffer, PATH_MAX, "%s/host%u/softhca%s", dir, shm.procs[proc_self].host,
                     path + n);
        } else {
            snprintf(buffer, PATH_MAX, "%s/%s%s", dir, moves[i].place, path + n);
        }
        return buffer;
    }
    return path;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A device file must look like one, and like one that can be opened. */
static bool is_device(const char *path)
{
    return path && getenv("SOFTHCA_DIR") &&
           strncmp(path, "/dev/infiniband/uverbs", strlen("/dev/infiniband/uverbs")) == 0;
}

HCA_EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    char buffer[PATH_MAX];
    int err = NEXT(stat)(moved(path, buffer), st);

    if (err == 0 && is_device(path)) {
        st->st_mode = S_IFCHR | 0666;
    }
    return err;
}

/* librdmacm compares it with what the kernel says of its device, where there is one. */
HCA_EXPORT int fstat(int fd, struct stat *st)
{
    struct stat real;
    int err = NEXT(fstat)(fd, st);

    if (err == 0 && cm_is_channel(fd)) {
        st->st_mode = S_IFCHR | 0666;
        st->st_rdev = NEXT(stat)(CM_PATH, &real) == 0 ? real.st_rdev : 0;
    }
    return err;
}

HCA_EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
    static __typeof__(&write) next;

    if (cm_is_channel(fd)) {
        return cm_write(fd, bytes, count);
    }
    if (!next) {
        next = NEXT(write);
    }
    return next(fd, bytes, count);
}

HCA_EXPORT int close(int fd)
{
    static __typeof__(&close) next;

    if (cm_is_channel(fd)) {
        cm_close(fd);
    }
    if (!next) {
        next = NEXT(close);
    }
    return next(fd);
}

/* The ports' network interfaces have an address, and nothing else of one. */
HCA_EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    void *argument;

    va_start(args, request);
    argument = va_arg(args, void *);
    va_end(args);
    if (request == SIOCGIFADDR && argument) {
        struct ifreq *asked = argument;
        uint32_t address = cm_address_of(asked->ifr_name);

        if (address) {
            *(struct sockaddr_in *)(void *)&asked->ifr_addr =
                (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = address};
            return 0;
        }
    }
    return NEXT(ioctl)(fd, request, argument);
}

HCA_EXPORT int access(const char *path, int mode)
{
    char buffer[PATH_MAX];

    return NEXT(access)(moved(path, buffer), mode);
}

HCA_EXPORT DIR *opendir(const char *path)
{
    DIR *(*next)(const char *) = NEXT(opendir);
    char buffer[PATH_MAX];

    return next(moved(path, buffer));
}

/* GIDs of InfiniBand have no interface, and the kernel answers a read with EINVAL: as it does to a read of this. */
static int no_interface(int fd, const char *path)
{
    if (fd < 0 || proc_self == SHM_NONE || shm.head->conf.link != IBV_LINK_LAYER_INFINIBAND ||
        !strstr(path, "/gid_attrs/ndevs/")) {
        return fd;
    }
    NEXT(close)(fd);
    return epoll_create1(EPOLL_CLOEXEC);
}

HCA_EXPORT int open(const char *path, int flags, ...)
{
    char buffer[PATH_MAX];
    va_list args;
    mode_t mode;

    if (proc_self != SHM_NONE && strcmp(path, CM_PATH) == 0) {
        return cm_open(flags);
    }
    va_start(args, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return no_interface(NEXT(open)(moved(path, buffer), flags, mode), path);
}

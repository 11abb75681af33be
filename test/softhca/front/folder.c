#include "front/front.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/shm.h"
#include "wire/wire.h"

#define PREFIX   "softhca-"
#define SHARED   "shm"
#define UNLOCKED "shm.new" /* until it has its lock and its magic: no sweeper looks for it */

enum { REMOVALS = 50, LONGEST = 70, OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* Folders are held open, and all that is in them is named from there: a name that is exchanged
   for another while it is looked at leads nowhere else. */
static int base_fd = -1, self_fd = -1;
static const char *self_name;

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void empty(int folder);

static void remove_entry(int folder, const char *name)
{
    int inner;

    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) {
        return;
    }
    inner = openat(folder, name, OPEN_FOLDER);
    if (inner >= 0) {
        empty(inner);
        close(inner);
        unlinkat(folder, name, AT_REMOVEDIR);
    }
}

/* All but the shared file: by that a sweeper knows what is still to be removed. */
static void empty(int folder)
{
    int listed = openat(folder, ".", OPEN_FOLDER);
    DIR *d = listed < 0 ? NULL : fdopendir(listed);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        if (!is_dots(e->d_name) && strcmp(e->d_name, SHARED) != 0) {
            remove_entry(folder, e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}

static void remove_folder(int base, int folder, const char *name)
{
    for (int i = 0; i < REMOVALS; i++) {
        empty(folder);
        unlinkat(folder, SHARED, 0);
        if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY) {
            return;
        }
        usleep(
            10000); /* processes of the run that still end make and remove entries of their own */
    }
}

static bool is_own_run(int folder, int file)
{
    struct stat of_folder, of_file;
    uint64_t magic = 0;

    return fstat(folder, &of_folder) == 0 && of_folder.st_uid == geteuid() &&
           fstat(file, &of_file) == 0 && of_file.st_uid == geteuid() && S_ISREG(of_file.st_mode) &&
           pread(file, &magic, sizeof(magic), offsetof(struct shm_head, magic)) == sizeof(magic) &&
           magic == SHM_MAGIC;
}

/* The runner, or its guard, holds the lock to its end. */
static void sweep(const char *name)
{
    int folder = openat(base_fd, name, OPEN_FOLDER);
    int file =
        folder < 0 ? -1 : openat(folder, SHARED, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (file >= 0 && is_own_run(folder, file) && flock(file, LOCK_EX | LOCK_NB) == 0) {
        remove_folder(base_fd, folder, name);
    }
    if (file >= 0) {
        close(file);
    }
    if (folder >= 0) {
        close(folder);
    }
}

static void sweep_all(void)
{
    int listed = openat(base_fd, ".", OPEN_FOLDER);
    DIR *d = listed < 0 ? NULL : fdopendir(listed);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0) {
            sweep(e->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* The descriptor with the lock stays open until the end of this process, and of the guard. */
static int make_file(const char *dir, uint32_t gib)
{
    int fd = openat(self_fd, UNLOCKED, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int err = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0
                  ? -errno
                  : shm_map(dir, fd, gib, sizeof(*shm.wire));

    return err ? err : renameat(self_fd, UNLOCKED, self_fd, SHARED) != 0 ? -errno : 0;
}

static int open_folder(const char *base, char *dir)
{
    base_fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base_fd < 0) {
        return -errno;
    }
    sweep_all();
    if (strlen(base) + sizeof("/" PREFIX "XXXXXX") > LONGEST) {
        return -ENAMETOOLONG;
    }
    sprintf(dir, "%s/" PREFIX "XXXXXX", base);
    if (!mkdtemp(dir)) {
        return -errno;
    }
    self_name = strrchr(dir, '/') + 1;
    self_fd = openat(base_fd, self_name, OPEN_FOLDER);
    return self_fd < 0 ? -errno : 0;
}

int folder_make(const char *base, uint32_t gib)
{
    static char dir[LONGEST];
    int err = open_folder(base, dir);

    if (err) {
        return front_refuse(-1, "cannot make a folder in %s: %s; name another with --dir", base,
                            strerror(-err));
    }
    err = make_file(dir, gib);
    if (err) {
        folder_remove();
        return front_refuse(-1, "cannot make %s/" SHARED ": %s; %s", dir, strerror(-err),
                            shm_advice(err, "name another folder with --dir"));
    }
    snprintf(shm.head->dir, sizeof(shm.head->dir), "%s", dir);
    return 0;
}

void folder_remove(void)
{
    if (self_fd >= 0) {
        remove_folder(base_fd, self_fd, self_name);
    }
}

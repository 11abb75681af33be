#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "/dev/stdout" is standard output too; but what a program says may go to the same terminal, or nowhere. */
static bool is_standard(const char *path)
{
    struct stat named, standard;

    return strcmp(path, "-") == 0 ||
           (stat(path, &named) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
            !S_ISCHR(named.st_mode) && named.st_dev == standard.st_dev &&
            named.st_ino == standard.st_ino);
}

/* Another descriptor of standard output, whose place standard error has taken. */
static int take_standard(void)
{
    static int taken = -1;

    if (taken < 0) {
        (void)fflush(stdout);
        taken = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (taken < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
            return -errno;
        }
    }
    return taken;
}

/* The folder of a path, with its slash; empty: the current one. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : (int)(slash + 1 - path);
}

static mode_t new_mode(void)
{
    mode_t mask = umask(0);

    (void)umask(mask);
    return 0666 & ~mask;
}

/* A file without a name, of which nothing is left however the program ends; -1: this file system has none. */
static int open_unnamed(const char *target)
{
    char folder[PATH_MAX], self[32];
    int fd;

    (void)snprintf(folder, sizeof(folder), "%.*s.", folder_length(target), target);
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (fd >= 0 && access(self, F_OK) != 0) { /* without /proc it could get no name */
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static int give_name(struct output *out)
{
    char self[32];
    int rc = -EEXIST;

    (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fileno(out->file));
    for (int i = 0; rc == -EEXIST && i < 1000; i++) {
        if (asprintf(&out->beside, "%.*s.ibshift-%d-%d", folder_length(out->target), out->target,
                     (int)getpid(), i) < 0) {
            out->beside = NULL;
            return -ENOMEM;
        }
        rc = linkat(AT_FDCWD, self, AT_FDCWD, out->beside, AT_SYMLINK_FOLLOW) != 0 ? -errno : 0;
        if (rc != 0) {
            free(out->beside);
            out->beside = NULL;
        }
    }
    return rc;
}

static int open_named(struct output *out)
{
    int fd;

    if (asprintf(&out->beside, "%.*s.ibshift-XXXXXX", folder_length(out->target), out->target) <
        0) {
        out->beside = NULL;
        return -ENOMEM;
    }
    fd = mkostemp(out->beside, O_CLOEXEC);
    if (fd < 0) {
        fd = -errno;
        free(out->beside);
        out->beside = NULL;
    }
    return fd;
}

/* A descriptor; there: the file whose place it will take, or NULL. */
static int open_beside(struct output *out, const struct stat *there)
{
    int fd;

    /* It would be replaced for all that. */
    if (there != NULL && access(out->target, W_OK) != 0) {
        return -errno;
    }
    fd = open_unnamed(out->target);
    fd = fd < 0 ? open_named(out) : fd;
    if (fd >= 0 && there == NULL) {
        (void)fchmod(fd, new_mode());
    } else if (fd >= 0) {
        (void)!fchown(fd, there->st_uid, there->st_gid); /* root's right */
        (void)fchmod(fd, there->st_mode & 0777);
    }
    return fd;
}

static int open_in_place(const char *path, int flags)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | flags, 0666);

    return fd < 0 ? -errno : fd;
}

static int open_target(struct output *out, const char *path, bool is_rows)
{
    struct stat info, link;
    bool is_there = stat(path, &info) == 0;
    int rc;

    /* What stands there is not known, as behind a stranger's link in a folder for all. */
    if (!is_there && errno != ENOENT) {
        return -errno;
    }
    if (!is_there && (path[0] == '\0' || lstat(path, &link) == 0)) { /* a link to nothing yet */
        return open_in_place(path, O_CREAT);
    }
    if (is_there && S_ISDIR(info.st_mode)) {
        return -EISDIR;
    }
    if (is_rows || (is_there && !S_ISREG(info.st_mode))) {
        return open_in_place(path, is_rows ? O_CREAT | O_TRUNC : 0);
    }
    out->target = is_there ? realpath(path, NULL) : strdup(path);
    rc = out->target != NULL ? open_beside(out, is_there ? &info : NULL) : -errno;
    /* A file that may be written in a folder that may not. */
    if (is_there && (rc == -EACCES || rc == -EPERM || rc == -EROFS)) {
        free(out->target);
        out->target = NULL;
        rc = open_in_place(path, O_TRUNC);
    }
    return rc;
}

static void drop(struct output *out)
{
    if (out->beside != NULL) {
        (void)unlink(out->beside);
    }
    free(out->beside);
    free(out->target);
    *out = (struct output){.file = NULL};
}

static int open_any(struct output *out, const char *path, bool is_rows)
{
    int fd;

    *out = (struct output){.file = NULL};
    if (is_standard(path)) {
        fd = take_standard();
        fd = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        fd = fd == -1 ? -errno : fd;
    } else {
        fd = open_target(out, path, is_rows);
    }
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (out->file == NULL) {
        int rc = fd < 0 ? fd : -errno;

        if (fd >= 0) {
            (void)close(fd);
        }
        drop(out);
        return rc;
    }
    return 0;
}

int output_open(struct output *out, const char *path)
{
    return open_any(out, path, false);
}

int output_open_rows(struct output *out, const char *path)
{
    return open_any(out, path, true);
}

int output_close(struct output *out, bool is_whole)
{
    bool is_lost = ferror(out->file) != 0;
    int rc = 0;

    /* A disk that has no room may say so late. */
    if (fflush(out->file) != 0 ||
        (is_whole && out->target != NULL && fsync(fileno(out->file)) != 0)) {
        rc = -errno;
    }
    if (rc == 0 && is_lost) { /* the reason was that write's: a write more asks for it */
        rc = fputc('\n', out->file) == EOF || fflush(out->file) != 0 ? -errno : -EIO;
    }
    if (rc == 0 && is_whole && out->target != NULL && out->beside == NULL) {
        rc = give_name(out);
    }
    if (fclose(out->file) != 0 && rc == 0) {
        rc = -errno;
    }
    if (rc == 0 && is_whole && out->target != NULL) {
        rc = rename(out->beside, out->target) != 0 ? -errno : 0;
        if (rc == 0) {
            free(out->beside);
            out->beside = NULL;
        }
    }
    drop(out);
    return rc;
}

int output_check(const char *path)
{
    struct output out;
    struct stat info;
    int rc;

    if (is_standard(path)) {
        rc = take_standard(); /* for what is said before the output is opened */
        return rc < 0 ? rc : 0;
    }
    if (stat(path, &info) == 0) {
        /* To open a pipe is to tell its reader that there is a writer; a file may lose its content. */
        return S_ISDIR(info.st_mode) ? -EISDIR : access(path, W_OK) != 0 ? -errno : 0;
    }
    if (lstat(path, &info) == 0) {
        return 0; /* a link to nothing: to open it is to make a file */
    }
    rc = output_open(&out, path);
    if (rc == 0) {
        (void)output_close(&out, false);
    }
    return rc;
}

/* Of what is not there realpath() leaves the name that is missing, behind all links. */
static void resolve(const char *path, char *name)
{
    if (is_standard(path)) {
        (void)strcpy(name, "-");
    } else if (realpath(path, name) == NULL && errno != ENOENT) {
        name[0] = '\0';
    }
}

bool output_is_same(const char *path, const char *other)
{
    char names[2][PATH_MAX] = {"", ""};

    resolve(path, names[0]);
    resolve(other, names[1]);
    return strcmp(path, other) == 0 || (names[0][0] != '\0' && strcmp(names[0], names[1]) == 0);
}

bool output_replaces(const char *path, const char *read)
{
    struct stat info;

    return stat(read, &info) == 0 && S_ISREG(info.st_mode) && output_is_same(path, read);
}

#include "job/process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/digest.h"

enum { STARTED = 22 }; /* the field of /proc/PID/stat, counted from 1; the third is the state */

/* 0, -ENOENT: there is no such process any more, or another errno. */
static int read_stat(uint64_t pid, char *state, uint64_t *started)
{
    char path[64], text[1024] = "", *at;
    unsigned long long ticks;
    FILE *file;
    int field = 2;

    snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
    file = fopen(path, "r");
    if (file == NULL) {
        return -errno;
    }
    at = fgets(text, sizeof(text), file); /* NULL: it ends right now, and is gone the next time */
    fclose(file);
    if (at == NULL) {
        return -EIO;
    }
    at = strrchr(text, ')'); /* the end of its name, which may hold anything */
    for (; at != NULL && field < STARTED; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
        if (at != NULL && 2 == field) {
            *state = *at;
        }
    }
    if (at == NULL || 1 != sscanf(at, "%llu", &ticks)) {
        return -EIO;
    }
    *started = ticks;
    return 0;
}

/* Of the kernel that runs now and this process's namespace of process numbers; 0: not known. */
static uint64_t space_of_numbers(void)
{
    char boot[64] = "";
    struct stat numbers;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    uint64_t id;

    if (file == NULL) {
        return 0;
    }
    if (NULL == fgets(boot, sizeof(boot), file) || 0 != stat("/proc/self/ns/pid", &numbers)) {
        boot[0] = '\0';
    }
    fclose(file);
    if ('\0' == boot[0]) {
        return 0;
    }
    id = ibshift_digest(IBSHIFT_DIGEST, boot, strlen(boot));
    return ibshift_digest(id, &numbers.st_ino, sizeof(numbers.st_ino));
}

struct ibshift_process ibshift_process_self(void)
{
    struct ibshift_process self = {.space = space_of_numbers(), .pid = (uint64_t)getpid()};
    char state;

    if (0 != read_stat(self.pid, &state, &self.started)) {
        self.space = 0;
    }
    return self;
}

const char *ibshift_process_has_ended(const struct ibshift_process *self,
                                      const struct ibshift_process *process)
{
    uint64_t started;
    char state = 0;
    int rc;

    if (process->space == 0 || process->space != self->space) {
        return NULL;
    }
    rc = read_stat(process->pid, &state, &started);
    if (rc == -ENOENT || (rc == 0 && started != process->started)) {
        return "there is no such process on this host any more";
    }
    return rc == 0 && (state == 'Z' || state == 'X') ? "it has ended, as this host's kernel says"
                                                     : NULL;
}

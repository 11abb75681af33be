#include "run/copy.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/agent.h"
#include "shm/proc.h"
#include "shm/shm.h"

enum { CHUNK_MAX = 4096, CHUNKS_MAX = 16 };

static int explain(int error)
{
    static bool said;
    if (error == EPERM && !said) {
        said = true;
        fprintf(stderr,
                "softhca: the system refuses process_vm_readv/writev between processes: allow "
                "ptrace (container: --cap-add SYS_PTRACE or a seccomp profile that has both "
                "calls), or start with softhca-run --bounce\n");
    }
    return error == ESRCH ? -ESRCH : error == EPERM ? -EPERM : -EFAULT;
}

int copy_whole(const struct pieces *from, const struct pieces *to)
{
    if (shm.head->conf.bounce) {
        return agent_copy(from, to);
    }
    bool is_push = from->proc == SHM_NONE || from->proc == proc_self;
    uint32_t other = is_push ? to->proc : from->proc;
    pid_t pid =
        other == SHM_NONE || other == proc_self ? getpid() : atomic_load(&shm.procs[other].pid);
    if (pid <= 0) {
        return -ESRCH;
    }
    ssize_t n = is_push ? process_vm_writev(pid, from->iov, from->n, to->iov, to->n, 0)
                        : process_vm_readv(pid, to->iov, to->n, from->iov, from->n, 0);
    if (n == (ssize_t)from->bytes) {
        return 0;
    }
    return explain(n < 0 ? errno : EFAULT);
}

int copy_range(const struct pieces *from, const struct pieces *to, uint64_t at, uint64_t bytes)
{
    struct pieces f, t;
    pieces_slice(from, at, bytes, &f);
    pieces_slice(to, at, bytes, &t);
    return copy_whole(&f, &t);
}

/* Adversarial mode: the tail lands first, in chunks of random size. */
static int copy_tail_first(const struct pieces *from, const struct pieces *to)
{
    uint64_t end = from->bytes;
    for (int i = 0; end > 0; i++) {
        uint64_t bytes = i < CHUNKS_MAX ? 1 + shm_random(CHUNK_MAX) : end;
        bytes = bytes < end ? bytes : end;
        int err = copy_range(from, to, end - bytes, bytes);
        if (err) {
            return err;
        }
        end -= bytes;
        if (shm_random(4) == 0) {
            sched_yield();
        }
    }
    return 0;
}

int copy_pieces(const struct pieces *from, const struct pieces *to)
{
    const uint64_t most = 1u << 30; /* the system moves less than 2 GiB at once */
    if (from->bytes == 0) {
        return 0;
    }
    if (shm.head->conf.adversarial) {
        return copy_tail_first(from, to);
    }
    if (from->bytes <= most && to->bytes == from->bytes) {
        return copy_whole(from, to);
    }
    for (uint64_t at = 0; at < from->bytes; at += most) {
        uint64_t bytes = from->bytes - at < most ? from->bytes - at : most;
        int err = copy_range(from, to, at, bytes);
        if (err) {
            return err;
        }
    }
    return 0;
}

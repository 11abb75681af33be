#include "run/copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fault/adverse.h"
#include "run/agent.h"
#include "shm/proc.h"
#include "shm/shm.h"

void pieces_add(struct pieces *p, void *addr, uint64_t length)
{
    if (length) {
        p->iov[p->n++] = (struct iovec){addr, length};
        p->bytes += length;
    }
}

void pieces_cut(struct pieces *p, uint64_t bytes)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        if (seen + p->iov[i].iov_len >= bytes) {
            p->iov[i].iov_len = bytes - seen;
            p->n = bytes > seen ? i + 1 : i;
            break;
        }
        seen += p->iov[i].iov_len;
    }
    p->bytes = bytes;
}

void pieces_slice(const struct pieces *p, uint64_t from, uint64_t bytes, struct pieces *out)
{
    uint64_t seen = 0;
    pieces_clear(out, p->proc);
    for (uint32_t i = 0; i < p->n && out->bytes < bytes; i++) {
        uint64_t length = p->iov[i].iov_len;
        if (from < seen + length) {
            uint64_t skip = from > seen ? from - seen : 0;
            uint64_t take = length - skip;
            take = take < bytes - out->bytes ? take : bytes - out->bytes;
            pieces_add(out, (char *)p->iov[i].iov_base + skip, take);
        }
        seen += length;
    }
}

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

int copy_pieces(const struct pieces *from, const struct pieces *to)
{
    const uint64_t most = 1u << 30; /* the system moves less than 2 GiB at once */
    if (from->bytes == 0) {
        return 0;
    }
    if (shm.head->conf.adversarial) {
        return adverse_copy(from, to);
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

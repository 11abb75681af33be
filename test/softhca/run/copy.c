#include "run/copy.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { CHUNK_MAX = 4096, CHUNKS_MAX = 16 };

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

uint64_t pieces_word(const struct pieces *p, uint64_t at)
{
    uint64_t past = ((uintptr_t)p->iov[0].iov_base + at) % sizeof(uint32_t);

    return past < at ? at - past : 0;
}

static int explain(int error)
{
    static bool said;

    if (error == EPERM && !said) {
        said = true;
        fprintf(stderr,
                "softhca: the system refuses process_vm_readv/writev between processes: allow "
                "ptrace (container: --cap-add SYS_PTRACE or a seccomp profile that has both "
                "calls)\n");
    }
    return error == ESRCH ? -ESRCH : error == EPERM ? -EPERM : -EFAULT;
}

static int copy_whole(const struct pieces *from, const struct pieces *to)
{
    bool is_push;
    uint32_t other;
    pid_t pid;
    ssize_t n;

    is_push = from->proc == SHM_NONE || from->proc == proc_self;
    other = is_push ? to->proc : from->proc;
    pid = other == SHM_NONE || other == proc_self ? getpid() : atomic_load(&shm.procs[other].pid);
    if (pid <= 0) {
        return -ESRCH;
    }
    n = is_push ? process_vm_writev(pid, from->iov, from->n, to->iov, to->n, 0)
                : process_vm_readv(pid, to->iov, to->n, from->iov, from->n, 0);
    if (n == (ssize_t)from->bytes) {
        return 0;
    }
    return explain(n < 0 ? errno : EFAULT);
}

static int copy_range(const struct pieces *from, const struct pieces *to, uint64_t at,
                      uint64_t bytes)
{
    struct pieces f, t;

    pieces_slice(from, at, bytes, &f);
    pieces_slice(to, at, bytes, &t);
    return copy_whole(&f, &t);
}

/* Adversarial mode: the tail lands first, in chunks of random size, and a reader may look in between. */
static int copy_tail_first(const struct pieces *from, const struct pieces *to)
{
    int err = 0;

    for (uint64_t end = from->bytes, i = 0; end > 0 && !err; i++) {
        uint64_t bytes = i < CHUNKS_MAX ? 1 + shm_random(CHUNK_MAX) : end;

        bytes = bytes < end ? bytes : end;
        bytes = end - pieces_word(to, end - bytes);
        end -= bytes;
        err = copy_range(from, to, end, bytes);
        if (shm_random(4) == 0) {
            sched_yield();
        }
    }
    return err;
}

int copy_pieces(const struct pieces *from, const struct pieces *to)
{
    const uint64_t most = 1u << 30; /* the system moves less than 2 GiB at once */
    int err = 0;

    if (shm.head->conf.adversarial) {
        return copy_tail_first(from, to);
    }
    if (from->bytes <= most && to->bytes == from->bytes) {
        return from->bytes ? copy_whole(from, to) : 0;
    }
    for (uint64_t at = 0; at < from->bytes && !err; at += most) {
        err = copy_range(from, to, at, from->bytes - at < most ? from->bytes - at : most);
    }
    return err;
}

/* Moving bytes between the memories of two processes, without the help of either. */
#ifndef SOFTHCA_COPY_H
#define SOFTHCA_COPY_H

#include <sys/uio.h>

#include "shm/shm.h"

enum { COPY_MAX_SGE = 64 }; /* of one copy */

/* Pieces of one process's memory; `proc` SHM_NONE: addresses of the process that executes. */
struct pieces {
    uint32_t proc, n;
    uint64_t bytes;
    struct iovec iov[COPY_MAX_SGE];
};

static inline void pieces_clear(struct pieces *p, uint32_t proc)
{
    p->proc = proc;
    p->n = 0;
    p->bytes = 0;
}

void pieces_add(struct pieces *p, void *addr, uint64_t length);
/* Leaves only the first `bytes`. */
void pieces_cut(struct pieces *p, uint64_t bytes);

/* The part [from, from + bytes). */
void pieces_slice(const struct pieces *p, uint64_t from, uint64_t bytes, struct pieces *out);

/* Where the word begins that has byte `at` of the first piece, or 0. No reader sees a part of a word: PCI Express
   writes whole ones. */
uint64_t pieces_word(const struct pieces *p, uint64_t at);

/* Copies from->bytes bytes; `to` has room for them. 0, -EFAULT (memory that is not mapped as it was
   registered), or -ESRCH (the other process is gone). */
int copy_pieces(const struct pieces *from, const struct pieces *to);
#endif

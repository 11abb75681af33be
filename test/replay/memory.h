#ifndef IBSHIFT_REPLAY_MEMORY_H
#define IBSHIFT_REPLAY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

/* Blocks that a rank has not freed, each said. */
int memory_leaks(int rank);
/* Whether anybody has written outside of what was given. */
void memory_check(void);
bool memory_is_of(int rank, const void *at, size_t size);
/* As process_vm_readv() does, but all of it or nothing; `owner`, or -1: whose memory another rank writes. */
ssize_t memory_copy(int owner, const struct iovec *to, unsigned long tos, const struct iovec *from,
                    unsigned long froms);
/* A signal says that memory is not there: while it is copied, the copy fails; else it returns. */
void memory_escape(void);

#endif

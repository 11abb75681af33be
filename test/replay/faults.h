#ifndef IBSHIFT_REPLAY_FAULTS_H
#define IBSHIFT_REPLAY_FAULTS_H

#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "scheduler.h"

void faults_begin(const struct program *program, const char *folder);
/* What is left in the folder of shared memory. */
void faults_end(const struct program *program);
/* What is done to a rank at a branch, and how many branches are left until then. */
void faults_at_branch(int rank, uint64_t branches);
uint64_t faults_left(int rank, uint64_t branches);
/* Whether the process is there; else errno. */
bool faults_may_touch(pid_t pid);
/* What an adapter has copied for the sender. */
void faults_spoil(int sender, const struct iovec *to, unsigned long n, ssize_t bytes);

/* What the product calls in place of the kernel's (build.mk). */
int replay_clock(clockid_t clock, struct timespec *t);
void *replay_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int replay_openat(int at, const char *path, int flags, ...);
int replay_munmap(void *at, size_t size);
int replay_poll(struct pollfd *all, nfds_t count, int ms);
ssize_t replay_vm_readv(pid_t pid, const struct iovec *here, unsigned long n,
                        const struct iovec *there, unsigned long m, unsigned long flags);
ssize_t replay_vm_writev(pid_t pid, const struct iovec *here, unsigned long n,
                         const struct iovec *there, unsigned long m, unsigned long flags);

#endif

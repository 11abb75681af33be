/*
 * The ranks' allocations: each known until it is freed, with a fence on both sides, and refused when the program says
 * so. What was freed is kept for a while and looked at again: a peer or an adapter may still write there.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "causes.h"
#include "memory.h"
#include "scheduler.h"

enum { PLACES = 1 << 14, SAID = 8, FENCE = 16, KEPT = 512, KEPT_BYTES = 1 << 18, LOOKED_AT = 4096 };
enum { FENCE_BYTE = 0xfc, NEW_BYTE = 0xa5, FREED_BYTE = 0xdd };

static struct block {
    char *at;
    size_t size, lead; /* bytes before it */
    void *by;          /* whose code it was */
    int rank;
} blocks[PLACES], kept[KEPT];
static uint32_t freed, released; /* ever */
static size_t kept_bytes;

static size_t place_of(const void *at)
{
    return (size_t)((uintptr_t)at * 0x9e3779b97f4a7c15u >> 50);
}

static bool is_filled(const char *at, size_t size, int byte)
{
    return size == 0 || ((uint8_t)at[0] == byte && memcmp(at, at + 1, size - 1) == 0);
}

static size_t looked_at(const struct block *block)
{
    return block->size < LOOKED_AT ? block->size : LOOKED_AT;
}

/* Memory that nobody has written yet is not zero. */
static void *note(char *base, size_t size, size_t lead, bool is_zero, void *by)
{
    size_t i;

    if (base == NULL) {
        return NULL;
    }
    i = place_of(base + lead);
    while (blocks[i].at != NULL) {
        i = (i + 1) % PLACES;
    }
    blocks[i] = (struct block){base + lead, size, lead, by, replay_self()};
    memset(base + lead - FENCE, FENCE_BYTE, FENCE);
    memset(base + lead + size, FENCE_BYTE, FENCE);
    if (!is_zero) {
        memset(base + lead, NEW_BYTE, looked_at(&blocks[i]));
    }
    return base + lead;
}

static void *take(size_t size, bool is_zero, void *by)
{
    if (replay_self() < 0) {
        return is_zero ? calloc(1, size) : malloc(size);
    }
    return note(is_zero ? calloc(1, size + 2 * FENCE) : malloc(size + 2 * FENCE), size, FENCE,
                is_zero, by);
}

static void check_fence(const struct block *block)
{
    if (!is_filled(block->at - FENCE, FENCE, FENCE_BYTE) ||
        !is_filled(block->at + block->size, FENCE, FENCE_BYTE)) {
        replay_fail("rank %d: somebody has written beyond %zu bytes, taken at %#zx of rank.so",
                    block->rank, block->size, replay_place(block->rank, block->by));
    }
}

static void release(struct block *block)
{
    if (block->at == NULL) {
        return;
    }
    if (!is_filled(block->at, looked_at(block), FREED_BYTE)) {
        replay_fail(
            "rank %d: somebody has written to %zu bytes that were freed, taken at %#zx of rank.so",
            block->rank, block->size, replay_place(block->rank, block->by));
    }
    kept_bytes -= block->size;
    free(block->at - block->lead);
    block->at = NULL;
}

static struct block *find(void *at)
{
    size_t i = place_of(at);

    while (blocks[i].at != NULL && blocks[i].at != at) {
        i = (i + 1) % PLACES;
    }
    return &blocks[i];
}

/* Closes the gap: what follows may have been pushed on over it. */
static struct block forget(void *at)
{
    size_t i = (size_t)(find(at) - blocks), hole;
    struct block block;

    if (blocks[i].at == NULL) {
        return (struct block){0}; /* the C library's own, as of open_memstream() */
    }
    block = blocks[i];
    hole = i;
    for (i = (i + 1) % PLACES; blocks[i].at != NULL; i = (i + 1) % PLACES) {
        size_t home = place_of(blocks[i].at);

        if ((i - home) % PLACES >= (i - hole) % PLACES) {
            blocks[hole] = blocks[i];
            hole = i;
        }
    }
    blocks[hole].at = NULL;
    return block;
}

static void give(void *at)
{
    struct block block = at != NULL ? forget(at) : (struct block){0};

    if (block.at == NULL) {
        free(at);
        return;
    }
    check_fence(&block);
    memset(block.at, FREED_BYTE, looked_at(&block));
    kept_bytes += block.size;
    while (freed - released == KEPT || (kept_bytes > KEPT_BYTES && freed != released)) {
        release(&kept[released++ % KEPT]);
    }
    kept[freed++ % KEPT] = block;
}

static void *resize(void *at, size_t size, void *by)
{
    struct block *block;
    void *moved;

    if (replay_self() < 0) {
        return realloc(at, size);
    }
    moved = take(size, false, by);
    if (at != NULL && moved != NULL) {
        block = find(at);
        memcpy(moved, at, block->size < size ? block->size : size);
        give(at);
    }
    return moved;
}

static bool is_refused(void *by)
{
    if (replay_self() >= 0 && replay_strikes(FAULT_NO_MEMORY)) {
        replay_say("none for %#zx of rank.so", replay_place(replay_self(), by));
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL
                                                   : take(size, false, __builtin_return_address(0));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused(__builtin_return_address(0))
               ? NULL
               : take(count * size, true, __builtin_return_address(0));
}

void *__wrap_realloc(void *at, size_t size)
{
    return is_refused(__builtin_return_address(0)) ? NULL
                                                   : resize(at, size, __builtin_return_address(0));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    size_t lead = alignment > FENCE ? alignment : FENCE;

    return is_refused(__builtin_return_address(0))
               ? NULL
               : note(aligned_alloc(alignment, lead + size + FENCE), size, lead, false,
                      __builtin_return_address(0));
}

int __wrap_posix_memalign(void **at, size_t alignment, size_t size)
{
    void *block = __wrap_aligned_alloc(alignment, size);

    *at = block != NULL ? block : *at;
    return block != NULL ? 0 : ENOMEM;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = is_refused(__builtin_return_address(0))
                     ? NULL
                     : take(size, false, __builtin_return_address(0));

    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void __wrap_free(void *at)
{
    give(at);
}

/* The program's own buffers: fenced, and never refused. */
void *user_malloc(size_t size);
void *user_calloc(size_t count, size_t size);
void user_free(void *at);

void *user_malloc(size_t size)
{
    return take(size, false, __builtin_return_address(0));
}

void *user_calloc(size_t count, size_t size)
{
    return take(count * size, true, __builtin_return_address(0));
}

void user_free(void *at)
{
    give(at);
}

bool memory_is_of(int rank, const void *at, size_t size)
{
    for (size_t i = 0; i < PLACES; i++) {
        size_t into = (size_t)((const char *)at - blocks[i].at);

        if (blocks[i].at != NULL && blocks[i].rank == rank && into < blocks[i].size &&
            size <= blocks[i].size - into) {
            return true;
        }
    }
    return false;
}

/* A hostile rank may grant what lies beside its buffer, in a page that is registered: that is its own memory, but here the
   ranks share a heap. */
static bool is_beside(int owner, const void *at, size_t size)
{
    return owner >= 0 && causes_has(owner, CAUSE_HOSTILE) && at < sbrk(0) &&
           !memory_is_of(owner, at, size);
}

static __attribute__((noinline)) ssize_t copy_all(int owner, const struct iovec *to,
                                                  unsigned long tos, const struct iovec *from,
                                                  unsigned long froms)
{
    size_t into = 0, out = 0;
    ssize_t bytes = 0;

    while (tos > 0 && froms > 0) {
        size_t room = to->iov_len - into, left = from->iov_len - out, n = room < left ? room : left;

        if (!is_beside(owner, (char *)to->iov_base + into, n)) {
            memmove((char *)to->iov_base + into, (const char *)from->iov_base + out, n);
        }
        bytes += (ssize_t)n;
        into = n == room ? 0 : into + n;
        out = n == left ? 0 : out + n;
        to += n == room;
        tos -= n == room;
        from += n == left;
        froms -= n == left;
    }
    return bytes;
}

static sigjmp_buf outside;
static bool is_copying;

ssize_t memory_copy(int owner, const struct iovec *to, unsigned long tos, const struct iovec *from,
                    unsigned long froms)
{
    ssize_t bytes;

    is_copying = true;
    if (sigsetjmp(outside, 0) != 0) {
        errno = EFAULT;
        return -1;
    }
    bytes = copy_all(owner, to, tos, from, froms);
    is_copying = false;
    return bytes;
}

void memory_escape(void)
{
    if (is_copying) {
        is_copying = false;
        siglongjmp(outside, 1);
    }
}

void memory_check(void)
{
    for (size_t i = 0; i < PLACES; i++) {
        if (blocks[i].at != NULL) {
            check_fence(&blocks[i]);
        }
    }
    while (freed != released) {
        release(&kept[released++ % KEPT]);
    }
}

int memory_leaks(int rank)
{
    int count = 0;

    for (size_t i = 0; i < PLACES; i++) {
        if (blocks[i].at != NULL && blocks[i].rank == rank && count++ < SAID) {
            replay_say("rank %d has not freed %zu bytes, taken at %#zx of rank.so", rank,
                       blocks[i].size, replay_place(rank, blocks[i].by));
        }
    }
    return count;
}

/* The adapter's. */
void *plain_malloc(size_t size);
void *plain_calloc(size_t count, size_t size);
void *plain_realloc(void *at, size_t size);
char *plain_strdup(const char *text);
void plain_free(void *at);

void *plain_malloc(size_t size)
{
    return malloc(size);
}

void *plain_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *plain_realloc(void *at, size_t size)
{
    return realloc(at, size);
}

char *plain_strdup(const char *text)
{
    return strdup(text);
}

void plain_free(void *at)
{
    free(at);
}

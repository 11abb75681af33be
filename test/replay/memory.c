/* The ranks' allocations: each known until it is freed, and refused when the program says so. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wrap.h"
#include "scheduler.h"

enum { PLACES = 1 << 16, SAID = 8 };

static struct block {
    void *at;
    size_t size;
    void *by; /* whose code it was */
    int rank;
} blocks[PLACES];

static size_t place_of(const void *at)
{
    return (size_t)((uintptr_t)at * 0x9e3779b97f4a7c15u >> 48);
}

static void *note(void *at, size_t size, void *by)
{
    size_t i = place_of(at);

    if (at == NULL || replay_self() < 0) {
        return at;
    }
    while (blocks[i].at != NULL) {
        i = (i + 1) % PLACES;
    }
    blocks[i] = (struct block){at, size, by, replay_self()};
    return at;
}

/* Closes the gap: what follows may have been pushed on over it. */
static void forget(void *at)
{
    size_t i = place_of(at), hole;

    while (blocks[i].at != NULL && blocks[i].at != at) {
        i = (i + 1) % PLACES;
    }
    if (blocks[i].at == NULL) {
        return; /* the C library's own, as of open_memstream() */
    }
    hole = i;
    for (i = (i + 1) % PLACES; blocks[i].at != NULL; i = (i + 1) % PLACES) {
        size_t home = place_of(blocks[i].at);

        if ((i - home) % PLACES >= (i - hole) % PLACES) {
            blocks[hole] = blocks[i];
            hole = i;
        }
    }
    blocks[hole].at = NULL;
}

static bool is_refused(void)
{
    if (replay_self() >= 0 && replay_strikes(FAULT_NO_MEMORY)) {
        errno = ENOMEM;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : note(malloc(size), size, __builtin_return_address(0));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL
                        : note(calloc(count, size), count * size, __builtin_return_address(0));
}

void *__wrap_realloc(void *at, size_t size)
{
    void *moved;

    if (is_refused()) {
        return NULL;
    }
    if (at != NULL) {
        forget(at);
    }
    moved = realloc(at, size);
    if (moved == NULL) {
        abort(); /* the machine's own memory is at its end */
    }
    return note(moved, size, __builtin_return_address(0));
}

int __wrap_posix_memalign(void **at, size_t alignment, size_t size)
{
    int rc = is_refused() ? ENOMEM : posix_memalign(at, alignment, size);

    if (rc == 0) {
        note(*at, size, __builtin_return_address(0));
    }
    return rc;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return is_refused() ? NULL
                        : note(aligned_alloc(alignment, size), size, __builtin_return_address(0));
}

char *__wrap_strdup(const char *text)
{
    return is_refused() ? NULL : note(strdup(text), strlen(text) + 1, __builtin_return_address(0));
}

void __wrap_free(void *at)
{
    if (at != NULL) {
        forget(at);
        free(at);
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

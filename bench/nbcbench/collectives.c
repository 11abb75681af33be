/* One row a collective; adding one is adding a row. */
#include "nbcbench.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Byte i of the block that rank `from` has for rank `to`; bcast and the like use to = 0. */
static unsigned char pattern(int from, int to, size_t i)
{
    return (unsigned char)(31 * from + 7 * to + (int)(i % 251) + 1);
}

static void barrier(struct bench *b)
{
    MPI_Barrier(b->comm);
}

static void ibarrier(struct bench *b, MPI_Request *r)
{
    MPI_Ibarrier(b->comm, r);
}

static void bcast(struct bench *b)
{
    MPI_Bcast(b->send, b->count, MPI_BYTE, 0, b->comm);
}

static void ibcast(struct bench *b, MPI_Request *r)
{
    MPI_Ibcast(b->send, b->count, MPI_BYTE, 0, b->comm, r);
}

static void scatter(struct bench *b)
{
    MPI_Scatter(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm);
}

static void iscatter(struct bench *b, MPI_Request *r)
{
    MPI_Iscatter(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm, r);
}

static void gather(struct bench *b)
{
    MPI_Gather(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm);
}

static void igather(struct bench *b, MPI_Request *r)
{
    MPI_Igather(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, 0, b->comm, r);
}

static void allgather(struct bench *b)
{
    MPI_Allgather(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, b->comm);
}

static void iallgather(struct bench *b, MPI_Request *r)
{
    MPI_Iallgather(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, b->comm, r);
}

static void alltoall(struct bench *b)
{
    MPI_Alltoall(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, b->comm);
}

static void ialltoall(struct bench *b, MPI_Request *r)
{
    MPI_Ialltoall(b->send, b->count, MPI_BYTE, b->recv, b->count, MPI_BYTE, b->comm, r);
}

static void reduce(struct bench *b)
{
    MPI_Reduce(b->send, b->recv, b->count, MPI_INT, MPI_SUM, 0, b->comm);
}

static void ireduce(struct bench *b, MPI_Request *r)
{
    MPI_Ireduce(b->send, b->recv, b->count, MPI_INT, MPI_SUM, 0, b->comm, r);
}

static void allreduce(struct bench *b)
{
    MPI_Allreduce(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm);
}

static void iallreduce(struct bench *b, MPI_Request *r)
{
    MPI_Iallreduce(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm, r);
}

static void reduce_scatter_block(struct bench *b)
{
    MPI_Reduce_scatter_block(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm);
}

static void ireduce_scatter_block(struct bench *b, MPI_Request *r)
{
    MPI_Ireduce_scatter_block(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm, r);
}

static void scan(struct bench *b)
{
    MPI_Scan(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm);
}

static void iscan(struct bench *b, MPI_Request *r)
{
    MPI_Iscan(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm, r);
}

static void exscan(struct bench *b)
{
    MPI_Exscan(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm);
}

static void iexscan(struct bench *b, MPI_Request *r)
{
    MPI_Iexscan(b->send, b->recv, b->count, MPI_INT, MPI_SUM, b->comm, r);
}

static bool block_is(const char *block, size_t size, int from, int to)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)block[i] != pattern(from, to, i)) {
            return false;
        }
    }
    return true;
}

static bool bcast_is_right(const struct bench *b)
{
    return block_is(b->send, b->size, 0, 0);
}

bool scatter_is_right(const struct bench *b)
{
    return block_is(b->recv, b->size, 0, b->rank);
}

/* Block k came from rank k, which had it for rank `to`. */
static bool all_blocks_are(const struct bench *b, int to)
{
    for (int from = 0; from < b->ranks; from++) {
        if (!block_is(b->recv + (size_t)from * b->size, b->size, from, to)) {
            return false;
        }
    }
    return true;
}

bool gather_is_right(const struct bench *b)
{
    return b->rank != 0 || all_blocks_are(b, 0);
}

bool allgather_is_right(const struct bench *b)
{
    return all_blocks_are(b, 0);
}

bool alltoall_is_right(const struct bench *b)
{
    return all_blocks_are(b, b->rank);
}

/* Reductions: rank r gives r + element index (of the whole vector); sums over ranks low..high-1 are
 * known. */
static bool sums_are(const struct bench *b, int low, int high, size_t first_element)
{
    const int *got = (const int *)(const void *)b->recv;

    for (int i = 0; i < b->count; i++) {
        long index = (long)((first_element + (size_t)i) % 1000);
        long ranks_sum = (long)high * (high - 1) / 2 - (long)low * (low - 1) / 2;

        if (got[i] != (int)(ranks_sum + (high - low) * index)) {
            return false;
        }
    }
    return true;
}

static bool reduce_is_right(const struct bench *b)
{
    return b->rank != 0 || sums_are(b, 0, b->ranks, 0);
}

static bool allreduce_is_right(const struct bench *b)
{
    return sums_are(b, 0, b->ranks, 0);
}

bool reduce_scatter_is_right(const struct bench *b)
{
    return sums_are(b, 0, b->ranks, (size_t)b->rank * (size_t)b->count);
}

static bool scan_is_right(const struct bench *b)
{
    return sums_are(b, 0, b->rank + 1, 0);
}

static bool exscan_is_right(const struct bench *b)
{
    return b->rank == 0 || sums_are(b, 0, b->rank, 0);
}

#define INTS sizeof(int)
static const struct collective collectives[] = {
    {"MPI_Barrier", 1, false, false, false, barrier, ibarrier, NULL},
    {"MPI_Bcast", 1, true, false, false, bcast, ibcast, bcast_is_right},
    {"MPI_Scatter", 1, true, true, false, scatter, iscatter, scatter_is_right},
    {"MPI_Gather", 1, true, false, true, gather, igather, gather_is_right},
    {"MPI_Allgather", 1, true, false, true, allgather, iallgather, allgather_is_right},
    {"MPI_Alltoall", 1, true, true, true, alltoall, ialltoall, alltoall_is_right},
    {"MPI_Reduce", INTS, true, false, false, reduce, ireduce, reduce_is_right},
    {"MPI_Allreduce", INTS, true, false, false, allreduce, iallreduce, allreduce_is_right},
    {"MPI_Reduce_scatter_block", INTS, true, true, false, reduce_scatter_block,
     ireduce_scatter_block, reduce_scatter_is_right},
    {"MPI_Scan", INTS, true, false, false, scan, iscan, scan_is_right},
    {"MPI_Exscan", INTS, true, false, false, exscan, iexscan, exscan_is_right},
};

const struct collective *collective_at(size_t place)
{
    const size_t count = sizeof(collectives) / sizeof(collectives[0]);

    return place < count                        ? &collectives[place]
           : place < count + COLLECTIVES_VECTOR ? &collectives_vector[place - count]
                                                : NULL;
}

const struct collective *collective_find(const char *name, size_t length)
{
    const struct collective *c;

    for (size_t i = 0; (c = collective_at(i)) != NULL; i++) {
        if (strlen(c->name) == length && strncmp(c->name, name, length) == 0) {
            return c;
        }
    }
    return NULL;
}

/* counts, places and types in one piece of memory. */
static int open_vectors(struct bench *b, size_t element)
{
    size_t ranks = (size_t)b->ranks;

    b->types = malloc(ranks * (sizeof(MPI_Datatype) + 2 * sizeof(int)));
    if (b->types == NULL) {
        return -ENOMEM;
    }
    b->counts = (int *)(void *)(b->types + ranks);
    b->places = b->counts + ranks;
    for (int i = 0; i < b->ranks; i++) {
        b->types[i] = element == 1 ? MPI_BYTE : MPI_INT;
        b->counts[i] = b->count;
        b->places[i] = i * b->count;
    }
    return 0;
}

int bench_open(struct bench *b, const struct collective *c, MPI_Comm comm, size_t size)
{
    size_t elements = c->sized ? (size + c->element - 1) / c->element : 0;

    *b = (struct bench){.comm = comm, .size = elements * c->element, .count = (int)elements};
    MPI_Comm_rank(comm, &b->rank);
    MPI_Comm_size(comm, &b->ranks);
    b->send_bytes = b->size * (c->sends_all ? (size_t)b->ranks : 1);
    b->recv_bytes = b->size * (c->receives_all ? (size_t)b->ranks : 1);
    b->send = malloc(b->send_bytes + 1);
    b->recv = malloc(b->recv_bytes + 1);
    if (b->send == NULL || b->recv == NULL || open_vectors(b, c->element) != 0) {
        bench_close(b);
        return -ENOMEM;
    }
    return 0;
}

void bench_fill(struct bench *b, const struct collective *c)
{
    memset(b->recv, 0, b->recv_bytes);
    if (c->element == INTS) {
        int *values = (int *)(void *)b->send;

        for (size_t i = 0; i < b->send_bytes / INTS; i++) {
            values[i] = b->rank + (int)(i % 1000);
        }
        return;
    }
    for (size_t i = 0; i < b->send_bytes; i++) {
        b->send[i] = (char)pattern(b->rank, b->size > 0 ? (int)(i / b->size) : 0, i % b->size);
    }
}

void bench_close(struct bench *b)
{
    free(b->send);
    free(b->recv);
    free(b->types);
}

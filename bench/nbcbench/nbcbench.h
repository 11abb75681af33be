/*
 * A benchmark of MPI collectives in NBCBench's manner: every rank times the operation, the maximum
 * over the ranks is one sample, the median of the samples is the result; nonblocking operations are
 * timed without and with computation that tests every so many bytes.
 */
#ifndef NBCBENCH_H
#define NBCBENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { BENCH_SIZES = 64 };

struct options {
    const char *tests; /* comma-separated names, or "all" */
    int ranks_min, ranks_max;
    size_t sizes[BENCH_SIZES];
    int size_count;
    int repetitions;
    int warmups;
    int test_bytes; /* MPI_Test once for so many bytes of the message */
    bool nonblocking;
    bool verify;
    const char *counter; /* file with a number that grows with each packet, or NULL */
    const char *csv;     /* file, "-" for stdout, or NULL */
    const char *label;
};

/* Fills *options; prints what is wrong on rank 0. Returns 0, 1 after --help, or -EINVAL. */
int options_parse(int argc, char **argv, int rank, struct options *options);

/* One collective on buffers of its own. "size" is the bytes of one block: what one rank gives to
 * one other. */
struct bench {
    MPI_Comm comm;
    int rank, ranks;
    size_t size;
    int count; /* of elements of the collective's datatype in one block */
    char *send, *recv;
    size_t send_bytes, recv_bytes;
    int *counts, *places; /* of the collectives that want them for every rank */
    MPI_Datatype *types;
    double offset, margin; /* together.c */
};

struct collective {
    const char *name;
    size_t element;               /* sizes are rounded down to it, at least one */
    bool sized;                   /* false: the barrier */
    bool sends_all, receives_all; /* a block for every rank in the buffer, else one */
    void (*blocking)(struct bench *b);
    void (*start)(struct bench *b, MPI_Request *request);
    /* The byte (or double) that a correct result holds at block k, for verification; NULL: nothing
     * to see. */
    bool (*is_right)(const struct bench *b);
};

enum { COLLECTIVES_VECTOR = 6 };
extern const struct collective collectives_vector[COLLECTIVES_VECTOR];

/* What both tables check by. */
bool scatter_is_right(const struct bench *b);
bool gather_is_right(const struct bench *b);
bool allgather_is_right(const struct bench *b);
bool alltoall_is_right(const struct bench *b);
bool reduce_scatter_is_right(const struct bench *b);

/* The rows of all tables; NULL behind the last. */
const struct collective *collective_at(size_t place);
const struct collective *collective_find(const char *name, size_t length);
int bench_open(struct bench *b, const struct collective *c, MPI_Comm comm, size_t size);
void bench_fill(struct bench *b, const struct collective *c);
void bench_close(struct bench *b);

/* A file that holds one number. counter_check: 0, or -EINVAL after printing what is wrong on rank
 * 0. */
int counter_check(const char *path, int rank);
double counter_read(const char *path);

double bench_now(void); /* s, the same for all processes of a host */

/* together_leave() returns on all ranks at the same time, as near as their clocks agree; its result
 * is by how many us this rank is late all the same. */
void together_open(struct bench *b);
double together_leave(struct bench *b);

/* Medians over the samples, in microseconds; the same numbers on every rank. */
struct result {
    double blocking, blocking_p10, blocking_p90;
    double nonblocking; /* start and wait, nothing between */
    double compute;     /* the computation alone */
    double overlapped;  /* start, compute with tests, wait */
    double start, test, wait;
    double overlap_percent;
    double counted; /* growth of the counter by one operation; not rounded */
};

/* 0, or -EILSEQ when the data was wrong on some rank. */
int measure(struct bench *b, const struct collective *c, const struct options *options,
            struct result *result);

void report_header(const struct options *options);
void report_row(const struct options *options, const struct bench *b, const struct collective *c,
                const struct result *r);
int report_open(const struct options *options);
void report_close(void);

#endif

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
#include <stdint.h>
#include <stdio.h>

enum { BENCH_SIZES = 64, BENCH_TAILS = 8, ROOT_ROTATES = -1, GRID_MOST = 8 };

enum format { FORMAT_TABLE, FORMAT_OSU, FORMAT_IMB, FORMAT_CSV, FORMAT_JSON };
enum derived { DERIVED_NONE = -1, DERIVED_CONTIGUOUS, DERIVED_VECTOR, DERIVED_INDEXED };

/* What the elements are. The names are in data.c. */
enum element { ELEMENT_BYTE, ELEMENT_INT, ELEMENT_INT64, ELEMENT_FLOAT, ELEMENT_DOUBLE, ELEMENTS };

struct options {
    const char *tests; /* comma-separated names, or "all" */
    int ranks_min, ranks_max;
    size_t sizes[BENCH_SIZES];
    int size_count;
    int repetitions;
    int warmups;
    int test_bytes; /* MPI_Test once for so many bytes of the message */
    bool nonblocking, idle, persistent, in_place;
    int root;
    int element; /* enum element; -1: bytes, and integers in reductions */
    int derived; /* enum derived */
    int buffers; /* pairs of buffers, taken in turn */
    int grid;    /* dimensions of the neighborhoods' communicator: a ring, or more */
    int barrier; /* 1: samples start behind a barrier, not by the clock */
    bool verify;
    const char *counter; /* file with a number that grows with each packet, or NULL */
    int format;          /* enum format */
    bool full, metadata;
    int tails[BENCH_TAILS], tail_count; /* percentiles */
    const char *csv;                    /* file, "-" for stdout, or NULL */
    const char *label;
    const char *matrix; /* of the blocks of MPI_Alltoallv, or NULL: all alike */
    bool plans;         /* those of plans_read(), each in turn; its description is the label */
    int argc;           /* all of the command */
    char **argv;
};

struct collective;

/* Fills *options; rank 0 prints what is wrong. Returns 0, 1 after --help, or -EINVAL. */
int options_parse(int argc, char **argv, int rank, struct options *options);
bool options_want(const struct options *o, const struct collective *c);

/* Which rank may pass MPI_IN_PLACE, and for which argument. */
enum in_place { PLACE_NONE, PLACE_SEND, PLACE_SEND_AT_ROOT, PLACE_RECV_AT_ROOT };

/* One collective on buffers of its own. "size" is the bytes of one block: what one rank gives to
 * one other, or the longest one. */
struct bench {
    const struct collective *what;
    const struct options *options;
    MPI_Comm comm;
    int rank, ranks, root;
    int partners; /* all ranks, or a neighborhood's */
    size_t size;
    enum element element;
    MPI_Datatype type;
    int count;          /* of "type" in one block */
    size_t block_space; /* memory of a block; with derived types more than its size */
    void *from, *to;    /* what this call passes: a buffer, or MPI_IN_PLACE */
    char *send, *recv;  /* the first pair of buffers */
    size_t send_space, recv_space;
    int turn;
    char *scratch;     /* a block without gaps */
    uint64_t *lengths; /* bytes of the blocks sent, then received; NULL: all alike */
    int *given_counts; /* of the blocks received */
    int *counts, *places, *byte_places; /* of the collectives that want them for every partner */
    MPI_Datatype *types;
    MPI_Request *persistent; /* for each pair of buffers, where they are wanted */
    double offset, margin;   /* s: of rank 0's clock from ours; until all have heard of a start */
};

struct collective {
    const char *name;
    const char *osu;              /* as the title of OSU's test has it */
    bool sized;                   /* false: the barrier */
    bool reduces;                 /* operates on its elements */
    bool sends_all, receives_all; /* a block for every partner in the buffer, else one */
    enum in_place in_place;
    void (*blocking)(struct bench *b);
    void (*start)(struct bench *b, MPI_Request *request);
    void (*init)(struct bench *b, MPI_Request *request); /* persistent */
    bool (*is_right)(struct bench *b);                   /* NULL: nothing to see */
};

/* NULL behind the last. */
const struct collective *collective_at(size_t place);
const struct collective *collective_find(const char *name, size_t length);

/* data.c: buffers and what is in them. */
extern const char *const element_names[]; /* ends with NULL */
/* The bytes of a block that is measured where "size" is asked for: whole elements. */
size_t block_size(const struct options *o, const struct collective *c, size_t size);
/* It runs on a periodic grid, where each rank has two neighbours for each dimension. */
bool collective_is_of_neighbors(const struct collective *c);
/* 0, or -ENOMEM, after which nothing can be closed. */
int bench_open(struct bench *b, const struct collective *c, const struct options *o, MPI_Comm comm,
               size_t size);
void bench_fill(struct bench *b);
void bench_close(struct bench *b);
/* Before each operation: the next buffers, the next root. */
void bench_next(struct bench *b);
/* The block at "buffer" is what rank "from" has for rank "to" (0 where all get the same). */
bool block_is(struct bench *b, const char *buffer, int from, int to);
/* Element i of the block is the sum over ranks low to high - 1 of element first + i of theirs. */
bool sums_are(struct bench *b, const char *buffer, int low, int high, size_t first);

/* 0, or -EINVAL: no file that holds one number. */
int counter_check(const char *path);

/* Of one form of an operation, in microseconds; the same numbers on every rank. */
struct timing {
    double median, p10, p90;     /* of the samples, each the maximum over the ranks */
    double low, high;            /* the median is between them with 95 % confidence */
    double tails[BENCH_TAILS];   /* the percentiles that were asked for */
    double least, average, most; /* over the ranks, of the means of their own times */
    bool is_noisy;
};

struct result {
    struct timing blocking;    /* or persistent */
    struct timing nonblocking; /* start and wait, nothing between */
    double compute;            /* the computation alone */
    double overlapped;         /* start, compute with tests, wait */
    double start, test, wait;
    double overlap_percent;
    double counted; /* growth of the counter by one operation; not rounded */
    bool is_wrong;
};

/* 0, or -ENOMEM. */
int measure(struct bench *b, struct result *result);

/* plans.c. CLI_OK, or CLI_USAGE after rank 0 has said what is wrong; plans_measure: a row for each plan of
 * the collective. */
int plans_read(const char *path);
int plans_measure(struct bench *b, struct options *o, struct result *result);

/* How results are written; NULL: not at all. */
struct format_functions {
    void (*open)(FILE *file, const struct options *o);
    /* Before the first size of a collective with so many ranks. */
    void (*begin)(FILE *file, const struct bench *b);
    void (*row)(FILE *file, const struct bench *b, const struct result *r);
    void (*close)(FILE *file);
};

extern const struct format_functions format_osu, format_imb;

/* What is known of the run, as lines behind "# " or, where json is given, as members of the open
 * object. */
struct json;
void metadata_write(FILE *file, struct json *json, const struct options *o);

/* Of this host: its load, and its ranks for each processor. */
struct host_load {
    long processors;
    double load, crowd;
};
struct host_load metadata_load(void);

/* Rank 0 alone calls these. */
int report_open(const struct options *o);
void report_row(const struct bench *b, const struct result *r);
int report_close(void);

#endif

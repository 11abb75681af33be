/*
 * What a line of memory costs that two processors use in turn: nanoseconds a line (64 bytes), of the one that
 * writes it and of the one that reads it, by what the reader has done with it the time before. The first figure is
 * how long a word takes from one to the other: 25 ns where they share a cache, 150 where they do not.
 *   lines [--one-way] [PROCESSOR PROCESSOR]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LINE = 64,
    PART = 8192,
    BYTES = 256 * 1024,
    TURNS = 200,
    BLOCKS = 40,
    COPIES = 25,
    POLLS = 2000
};

/* What the reader does with the bytes of the writer. */
enum what { NOTHING, READS, WRITES_AFTER, WHATS };

static const char *const names[] = {"nothing", "reads them",
                                    "reads 8 KiB, then writes a byte of each line, and so on"};

static _Atomic int word __attribute__((aligned(128)));
static char *source, *shared, *target;
static int processors[2] = {0, 1};
static double took[2][COPIES]; /* by the writer, and the reader */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wait_for(int value)
{
    for (int i = 0; atomic_load_explicit(&word, memory_order_acquire) != value; i++) {
        if (i > POLLS) {
            sched_yield();
        }
    }
}

static void tell(int value)
{
    atomic_store_explicit(&word, value, memory_order_release);
}

static void bind_to(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) {
        fprintf(stderr, "lines: processor %d: not available to this process\n", processor);
        exit(2);
    }
}

static void read_lines(enum what what)
{
    for (size_t at = 0; what != NOTHING && at < BYTES; at += PART) {
        memcpy(target + at, shared + at, PART);
        for (size_t i = 0; what == WRITES_AFTER && i < PART; i += LINE) {
            ((volatile char *)shared)[at + i] = 0;
        }
    }
}

static void *reader(void *unused)
{
    bind_to(processors[1]);
    for (int i = 0; i < TURNS * BLOCKS; i++) {
        wait_for(1);
        tell(0);
    }
    for (int i = 0; i < WHATS * COPIES; i++) {
        double begin;

        wait_for(1);
        begin = now();
        read_lines((enum what)(i / COPIES));
        took[1][i % COPIES] = now() - begin;
        tell(0);
    }
    return unused;
}

/* The least of some blocks: others may have had a processor in between. */
static double one_way(void)
{
    double least = 1e18;

    for (int block = 0; block < BLOCKS; block++) {
        double begin = now();

        for (int i = 0; i < TURNS; i++) {
            tell(1);
            wait_for(0);
        }
        begin = (now() - begin) / TURNS / 2;
        least = begin < least ? begin : least;
    }
    return least;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double per_line(double *times)
{
    qsort(times, COPIES, sizeof(*times), compare);
    return times[COPIES / 2] / (BYTES / LINE);
}

int main(int argc, char **argv)
{
    int first = argc > 1 && strcmp(argv[1], "--one-way") == 0 ? 2 : 1;
    pthread_t thread;

    if (argc == first + 2) {
        processors[0] = atoi(argv[first]);
        processors[1] = atoi(argv[first + 1]);
    } else if (argc != first) {
        fprintf(stderr, "usage: lines [--one-way] [PROCESSOR PROCESSOR]\n");
        return 2;
    }
    source = aligned_alloc(4096, 3 * BYTES);
    if (source == NULL || pthread_create(&thread, NULL, reader, NULL) != 0) {
        fprintf(stderr, "lines: no memory, or no second thread\n");
        return 1;
    }
    shared = source + BYTES;
    target = shared + BYTES;
    memset(source, 1, 3 * BYTES);
    bind_to(processors[0]);
    if (first == 2) {
        printf("%.0f\n", one_way());
        return 0;
    }
    printf("a word from one to the other: %.0f ns\n\n| the reader | writing a line | reading it "
           "|\n|---|--:|--:|\n",
           one_way());
    for (int what = 0; what < WHATS; what++) {
        for (int i = 0; i < COPIES; i++) {
            double begin = now();

            memcpy(shared, source, BYTES);
            took[0][i] = now() - begin;
            tell(1);
            wait_for(0);
        }
        printf("| %s | %.1f ns | %.1f ns |\n", names[what], per_line(took[0]), per_line(took[1]));
    }
    pthread_join(thread, NULL);
    return 0;
}

#ifndef IBSHIFT_REPLAY_PROGRAM_H
#define IBSHIFT_REPLAY_PROGRAM_H

/* What the ranks do and what is done to them: a function of the seed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/alg.h"

/* Ranks: up to 16, and a stranger. */
enum { PROGRAM_RANKS = 17, PROGRAM_ITEMS = 64, PROGRAM_COMMS = 8, PROGRAM_FAULTS = 8 };

enum program_kind {
    PROGRAM_CALL,    /* a blocking collective, so many times */
    PROGRAM_BEGIN,   /* a nonblocking one, which is waited for later */
    PROGRAM_PERSIST, /* a persistent one, started so many times, the last time waited for later */
    PROGRAM_WAIT,    /* for all that has begun */
    PROGRAM_MAKE,    /* a communicator, out of its parent */
    PROGRAM_FREE,    /* it goes, and its number with it when its calls have ended */
    PROGRAM_UNMAP,   /* memory of calls is unmapped and mapped again */
    PROGRAM_UNLIKE,  /* a call in which one rank calls something else, or nothing */
};

enum program_collective {
    PROGRAM_BARRIER,
    PROGRAM_BCAST,
    PROGRAM_GATHER,
    PROGRAM_SCATTER,
    PROGRAM_ALLGATHER,
    PROGRAM_ALLTOALL,
    PROGRAM_GATHERV, /* from here on, with counts */
    PROGRAM_SCATTERV,
    PROGRAM_ALLGATHERV,
    PROGRAM_ALLTOALLV,
    PROGRAM_ALLTOALLW,
    PROGRAM_REDUCE, /* from here on, reductions */
    PROGRAM_ALLREDUCE,
    PROGRAM_SCAN,
    PROGRAM_EXSCAN,
    PROGRAM_REDUCE_SCATTER_BLOCK,
    PROGRAM_REDUCE_SCATTER,
    PROGRAM_COLLECTIVES
};

struct program_item {
    enum program_kind kind;
    uint32_t comm, parent; /* below PROGRAM_COMMS; 0: the world */
    enum program_collective collective;
    uint32_t alg;     /* from 1 on, among the collective's */
    uint32_t repeats; /* at least 1 */
    uint64_t seed;    /* of all the rest */
    bool is_dropped;  /* by whoever shrinks the program */
};

enum program_fault {
    FAULT_OF_ADAPTER,  /* text: of the software HCA */
    FAULT_RANK_DIES,   /* at its branch number `at` */
    FAULT_RANK_STOPS,  /* there, for so long */
    FAULT_NO_MEMORY,   /* an allocation, from the one with number `at` on, `count` times */
    FAULT_NO_ROOM,     /* in the folder of shared memory */
    FAULT_NO_COPY,     /* the kernel does not copy between processes */
    FAULT_NO_FILE,     /* no file is opened or mapped: no descriptor is left, or no address space */
    FAULT_NO_VERB,     /* the adapter refuses a call */
    FAULT_CLOCK_JUMPS, /* of its host, at its branch number `at` */
    FAULT_HOSTILE,     /* from there on what others see of it is garbage, one time of `count` */
    PROGRAM_FAULT_KINDS
};

struct program_act {
    enum program_fault fault;
    int rank;
    uint64_t at, count;
    uint64_t time; /* ns */
    char text[80];
    bool is_lasting; /* of an adapter: the port of host number `rank` stays away from `time` on */
    bool is_dropped;
};

struct program {
    uint64_t seed;
    int ranks, hosts;
    bool knows_ends;              /* the launcher says whose process has ended */
    bool has_stranger, has_stale; /* a process that is not of the job; files that others left */
    bool has_node;                /* ranks of a host use shared memory */
    uint32_t calls;               /* of the engine until it reads the clock */
    uint32_t rings, queue;        /* from here on: options of the nets */
    bool has_paths, has_cache;
    bool has_multicast;
    bool has_threads;     /* the program may have some: locks are taken */
    int processors;       /* of a host */
    size_t locked;        /* bytes, as ulimit -l */
    char parameters[400]; /* name=value, of the component */
    int odd_rank;         /* has odd as parameters before those; -1: no rank */
    char odd[64];
    char adapter[160]; /* options of softhca-run */
    int items;
    struct program_item item[PROGRAM_ITEMS];
    int acts;
    struct program_act act[PROGRAM_FAULTS];
};

uint64_t program_random(uint64_t *state);
void program_make(struct program *program, uint64_t seed);
void program_print(const struct program *program);
int program_host_of(const struct program *program, int rank);
const char *program_collective_name(enum program_collective collective);
/* What the product calls it. */
enum ibshift_collective program_collective_kind(enum program_collective collective);

#endif

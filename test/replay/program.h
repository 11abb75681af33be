#ifndef IBSHIFT_REPLAY_PROGRAM_H
#define IBSHIFT_REPLAY_PROGRAM_H

/* What the ranks do and what is done to them: a function of the seed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROGRAM_RANKS = 8, PROGRAM_ITEMS = 64, PROGRAM_COMMS = 8, PROGRAM_FAULTS = 8 };

enum program_kind {
    PROGRAM_CALL,   /* a collective, waited for */
    PROGRAM_BEGIN,  /* one that is waited for with the next ones that are not PROGRAM_BEGIN */
    PROGRAM_TAPE,   /* one that is repeated, by its tape */
    PROGRAM_FREE,   /* the communicator goes, and its number with it */
    PROGRAM_UNLIKE, /* one rank calls something else than the others */
};

struct program_item {
    enum program_kind kind;
    uint32_t comm;    /* below PROGRAM_COMMS */
    uint32_t alg;     /* row of the table */
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
    int ports;                    /* from here on: options of the verbs net */
    uint32_t rings, queue, connections;
    bool is_adaptive, has_paths;
    uint32_t eager;
    size_t memory, locked; /* bytes; locked: as ulimit -l */
    char adapter[160];     /* options of softhca-run */
    int items;
    struct program_item item[PROGRAM_ITEMS];
    int acts;
    struct program_act act[PROGRAM_FAULTS];
};

uint64_t program_random(uint64_t *state);
void program_make(struct program *program, uint64_t seed);
void program_print(const struct program *program);
/* The ranks of communicator number comm: the first so many. */
int program_comm_ranks(const struct program *program, uint32_t comm);
/* Whether this rank calls something else there than the others. */
bool program_is_odd(const struct program *program, int item, int rank);
int program_host_of(const struct program *program, int rank);

#endif

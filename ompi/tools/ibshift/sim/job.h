/* Collectives among the ranks of jobs, run by the executor on the simulated net. */
#ifndef IBSHIFT_SIM_JOB_H
#define IBSHIFT_SIM_JOB_H

#include <stdio.h>

#include "exec/engine.h"
#include "sim/net.h"

enum { SIM_CIRCLE_MAX = 64 };

/* ---- sizes.c: what each rank has for each other, where that is not the same: an alltoallv ---- */

enum { SIM_SIZES_RANKS_MAX = 4096 };

struct sim_sizes {
    uint32_t ranks;
    int *sent;     /* [from * ranks + to], bytes; 0 to itself */
    int *received; /* [to * ranks + from], the same */
    int *places;   /* [rank]: 0, for nobody looks at the bytes */
};

/* All sizes 0; of at most SIM_SIZES_RANKS_MAX ranks. */
struct sim_sizes *sim_sizes_create(uint32_t ranks);
void sim_sizes_free(struct sim_sizes *sizes);

/* bytes[from * ranks + to]. 0, or -ERANGE: more than fabric/matrix.h allows. */
int sim_sizes_take(struct sim_sizes *sizes, const uint64_t *bytes);

/* The largest. */
uint32_t sim_sizes_most(const struct sim_sizes *sizes);

/* ---- a job, one of those that run ---- */

struct sim_job_params {
    const uint32_t *host_of; /* [rank] */
    uint32_t ranks;
    const struct ibshift_alg *alg; /* has passed ibshift_alg_check() with the plan */
    const struct ibshift_plan *plan;
    size_t bytes;                  /* of a block; of the vector, where the collective has one */
    const struct sim_sizes *sizes; /* NULL: all are `bytes`; an all-to-all only */
    uint32_t window;               /* of the executor */
    size_t piece;                  /* of long messages, as in net.h */
    size_t eager;                  /* bytes that wait for no grant; 0: as the net has it */
    bool verify;                   /* all-to-all and allgather: move real bytes and look at them */
    /* Which LID of its destination's host a message goes to: [from * ranks + to], or where NULL the
     * same for all. */
    const uint8_t *lid_offsets;
    uint32_t lid_offset;
    uint64_t start; /* ps: its ranks begin then, or later by their skew */
    uint32_t calls; /* that each rank makes, one after the other; 0: 1 */
};

struct sim_run;

struct sim_job_rank {
    struct sim_job *job;
    struct ibshift_engine *engine;
    bool is_due;    /* its next call begins in its next turn */
    uint32_t begun; /* calls */
    struct ibshift_op op;
};

struct sim_job {
    struct sim_job_params params;
    struct sim_run *run;
    uint32_t first; /* the number of its rank 0 among the ranks of all jobs */
    struct sim_job_rank *rank;
    struct sim_job_memory *memory;
    uint32_t running; /* ranks that have calls to make */
    uint64_t time;    /* ps from its start to the end of its last rank's calls */
};

/* Of a run: its ranks on the run's net, and their memory. 0, or -EINVAL with the reason. */
int sim_job_open(struct sim_job *job, struct ibshift_error *err);
void sim_job_close(struct sim_job *job);
/* The turn of one of its ranks. */
void sim_job_turn(struct sim_job *job, uint32_t rank);

/* ---- memory.c: where the ranks have their bytes ---- */

/* Sets the blocks of all ranks' ops. */
void sim_memory_create(struct sim_job *job);
void sim_memory_free(struct sim_job_memory *memory);
/* The first rank whose received bytes are wrong, or `ranks`. */
uint32_t sim_memory_check(const struct sim_job *job);

/* ---- run.c: jobs that run on a fabric ---- */

struct sim_run_params {
    const struct ibshift_fabric *graph; /* with tables that lead from each host to each other */
    struct sim_fabric_options fabric;
    struct sim_net_options net;
    uint64_t limit;                                /* ps: give up then */
    void (*progress)(void *context, double share); /* now and then; NULL: nobody looks */
    void *progress_context;
};

struct sim_run {
    struct sim_run_params params;
    struct sim_queue queue;
    struct sim_net *net;
    struct sim_fabric *fabric;
    struct ibshift_pages *pages; /* shared by all ranks: one is turned at a time */
    struct sim_job *job;
    uint32_t jobs;
    uint32_t *job_of; /* [rank of all]; NULL: there is one job */
    uint32_t running; /* jobs that have calls to make */
    /*
     * 0; -EDEADLK: packets wait in a circle; -EDOM: the ranks wait for each other; -ETIMEDOUT: the
     * limit; -EBADMSG: a rank has wrong bytes.
     */
    int status;
    uint32_t failed_job, failed_rank;
    uint32_t circle[SIM_CIRCLE_MAX]; /* links */
    int circle_length;
};

/*
 * No host is in two jobs. A job whose ranks have made their calls goes on as long as another one has
 * calls to make: each is measured beside all others. 0, or -EINVAL or -E2BIG with the reason;
 * sim_run_close() in every case.
 */
int sim_run_open(struct sim_run *run, const struct sim_run_params *params,
                 const struct sim_job_params *jobs, uint32_t count, struct ibshift_error *err);
/* Until all jobs have ended, or nothing can go on; see status. */
void sim_run_go(struct sim_run *run);
void sim_run_close(struct sim_run *run);

/* The busiest cable's time with the jobs' messages: no order takes less. */
uint64_t sim_run_bound(const struct sim_run *run, uint32_t *link);

#endif

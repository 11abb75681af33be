/* One collective among the ranks of a job, run by the executor on the simulated net. */
#ifndef IBSHIFT_SIM_JOB_H
#define IBSHIFT_SIM_JOB_H

#include <stdio.h>

#include "exec/engine.h"
#include "exec/pace/pace.h"
#include "sim/net.h"
#include "sim/traffic.h"

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

/* Sizes from `most` down to most / ratio, evenly spread by their logarithm. Of an event builder,
 * the first half of the ranks has them for the second half, and there is nothing else. */
void sim_sizes_draw(struct sim_sizes *sizes, uint32_t most, double ratio, uint64_t seed,
                    bool is_builder);

/* Lines "FROM TO BYTES"; '#' begins a comment. 0, or -EINVAL with file and line. */
int sim_sizes_read(struct sim_sizes *sizes, FILE *file, const char *name,
                   struct ibshift_error *err);

/* The largest. */
uint32_t sim_sizes_most(const struct sim_sizes *sizes);

/* ---- the job ---- */

struct sim_job_params {
    const struct ibshift_fabric *graph; /* with tables that lead from each host to each other */
    const uint32_t *host_of;            /* [rank] */
    uint32_t ranks;
    const struct ibshift_alg *alg; /* has passed ibshift_alg_check() with the plan */
    const struct ibshift_plan *plan;
    size_t bytes;                  /* of a block; of the vector, where the collective has one */
    const struct sim_sizes *sizes; /* NULL: all are `bytes`; an all-to-all only */
    uint32_t window;               /* of the executor */
    size_t piece;                  /* of long messages, as in net.h */
    /* NULL: none. Every rank gets a copy; its clock is true, unless the pace says sync. */
    const struct ibshift_pace *pace;
    bool verify;    /* all-to-all and allgather: move real bytes and look at them */
    uint64_t limit; /* ps: give up then */
    struct sim_fabric_options fabric;
    struct sim_net_options net;
    struct sim_traffic_options background; /* load 0: none */
    const uint32_t *others;                /* the hosts that make it */
    uint32_t other_count;
    void (*progress)(void *context, double share); /* now and then; NULL: nobody looks */
    void *progress_context;
};

struct sim_job {
    struct sim_job_params params;
    struct sim_queue queue;
    struct sim_net *net;
    struct sim_fabric *fabric;
    struct sim_traffic *traffic; /* NULL: none */
    struct sim_job_rank *rank;
    struct ibshift_pages *pages; /* shared by all ranks: one is turned at a time */
    struct sim_job_memory *memory;
    uint32_t running;
    uint64_t time; /* ps from the first rank's entry to the last one's end */
    /*
     * 0; -EDEADLK: packets wait in a circle; -EDOM: the ranks wait for each other; -ETIMEDOUT: the
     * limit; -EBADMSG: `failed_rank` has wrong bytes.
     */
    int status;
    uint32_t failed_rank;
    uint32_t circle[SIM_CIRCLE_MAX]; /* links */
    int circle_length;
};

/* 0, or -EINVAL or -E2BIG with the reason; sim_job_close() in every case. */
int sim_job_open(struct sim_job *job, const struct sim_job_params *params,
                 struct ibshift_error *err);
/* Until all ranks have ended, or nothing can go on; see status. */
void sim_job_run(struct sim_job *job);
void sim_job_close(struct sim_job *job);

struct sim_job_pacing {
    uint64_t left;  /* sends that missed their slots and were made up */
    uint64_t jumps; /* ranks that gave their clock up */
    uint64_t
        clock_error; /* ns: the worst of the ranks' common times against the truth, at the end */
    uint64_t clock_told; /* ns: the worst error that a rank's comparison allows for */
};

struct sim_job_pacing sim_job_pacing(const struct sim_job *job);

/* The busiest cable's time with the job's messages: no order takes less. */
uint64_t sim_job_bound(const struct sim_job *job, uint32_t *link);

#endif

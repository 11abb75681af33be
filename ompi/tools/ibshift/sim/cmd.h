/* What the files of `ibshift sim` share. */
#ifndef IBSHIFT_SIM_CMD_H
#define IBSHIFT_SIM_CMD_H

#include "choose/pace.h"
#include "fabric/cmd_job.h"
#include "sim/job.h"
#include "sim/traffic.h"

enum {
    SIM_WINDOW = 32, /* of coll_ibshift_expert, if not set */
    SIM_JOBS_MAX = 1000,
};

struct sim_command {
    /* ---- as given ---- */
    struct cli_args args;
    struct fabric_job job;
    const char *order, *plan, *pace, *svg, *load, *sizes, *as, *place, *sl, *sl2vl; /* or NULL */
    bool schedule, verify, json, quiet, torus_lanes, unattended;
    int pattern; /* enum sim_pattern, or -1: a collective runs */
    bool is_steady;
    struct sim_fabric_options fabric;
    struct sim_net_options net; /* but for what comes in units */
    double packets, size, eager, seed, until;
    double jitter, skew, control;                 /* in times of a message */
    double rare, rare_length;                     /* share of messages, times of a message */
    uint32_t flight, routing, overhead, lag, gap; /* ns */
    uint32_t window;                              /* 0: as a job has it */
    const char *jobs_text;                        /* as given, or NULL */
    const char *jobs_file;                        /* NULL: there is none, and jobs are dealt */
    uint32_t jobs, job_hosts;
    double fragment, fragment_deviation; /* hosts */
    double warm, span;                   /* us */
    double start;                        /* us */
    uint32_t calls;

    /* ---- as chosen ---- */
    const char *title; /* of the order or plan */
    struct ibshift_arrangement found;
    struct ibshift_order shift;
    const struct ibshift_alg *alg;
    struct ibshift_plan what;
    uint32_t *host_of;         /* [rank] */
    uint8_t *lid_offsets;      /* [from * ranks + to], of a table that has them; or NULL */
    uint32_t *members;         /* likewise, of the placement; NULL: in the ranks' own order */
    struct sim_sizes *unequal; /* NULL: all messages are alike */
    uint8_t *lane_table;
    struct fabric_sl2vl sl2vl_tables; /* the switches' own; none: vl is NULL */
    char peer_text[80], plan_text[80];
    struct ibshift_pace paced;
    char pace_text[32];
    uint64_t unit; /* ps: a message alone, on the fastest host's cable */
    struct sim_job_params task;
    struct sim_run_params world;
    struct sim_run run;
    uint64_t ideal;   /* ps */
    uint32_t busiest; /* link that sets it */
};

/* By enum sim_chooser and sim_pattern; end with NULL. */
extern const char *const sim_chooser_names[], *const sim_pattern_names[];

/* Options of all ways to simulate; argc and argv as in main(). CLI_OK with args.helped, or not. */
int sim_options_parse(struct sim_command *c, int argc, char **argv);

/* Likewise a line of the same options, of those that a job has, for one of several jobs; what it does not say is
 * as in the command itself. The line must stay, and its words become strings. */
int sim_options_line(struct sim_command *c, const char *name, char *line);

/* The hosts of `--jobs N`, job after job: *hosts, the caller's to free in every case. CLI_OK or CLI_USAGE. */
int sim_deal(struct sim_command *c, uint32_t **hosts, uint32_t *count);

/* `--jobs` without `--traffic`: the whole of it. */
int sim_crowd(struct sim_command *c);

/* `--sizes`, once the ranks are placed: sets unequal, and size to the largest. CLI_OK or
 * CLI_USAGE. */
int sim_take_sizes(struct sim_command *c);

/* `--sl`, `--sl2vl`, `--torus-lanes`: the VLs that packets take; CLI_OK or CLI_USAGE. */
int sim_lanes_take(struct sim_command *c);

/* `--as` and `--place`: whether they make sense, before anything is loaded; CLI_OK or CLI_USAGE. */
int sim_peer_check(const struct sim_command *c);
/* Sets what runs, on which hosts, and its title; CLI_OK or CLI_USAGE. */
int sim_choose(struct sim_command *c);
void sim_choice_free(struct sim_command *c);

/* Sets unit, task and world; CLI_OK or CLI_USAGE. */
int sim_prepare(struct sim_command *c);
const char *sim_word_of(int status);
/* Why the run did not end as it should, if it did not: a line on stderr, and its circle. */
void sim_failure_print(const struct sim_command *c);

/* The bar on a terminal. */
void sim_progress_show(void *context, double share);
void sim_progress_clear(const struct sim_command *c);

/* Sets ideal and busiest, after the run; CLI_OK or CLI_USAGE. */
int sim_ideal_find(struct sim_command *c);

/* `--traffic`: the whole of it. CLI_OK or CLI_USAGE. */
int sim_traffic_curve(struct sim_command *c);

/* The use of the links over time; CLI_OK or CLI_USAGE. */
int sim_draw_use(const struct sim_command *c, const char *path);

int cmd_sim(int argc, char **argv);

#endif

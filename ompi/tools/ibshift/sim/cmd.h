/* What the files of `ibshift sim` share. */
#ifndef IBSHIFT_SIM_CMD_H
#define IBSHIFT_SIM_CMD_H

#include "fabric/cmd_job.h"
#include "sim/job.h"
#include "sim/traffic.h"

/* Numbers that options give, with their defaults in the table of cmd_sim_options.c. */
struct sim_numbers {
    double mtu, buffer, lanes, reads, flight, routing, rate; /* bytes, ns, Mb/s */
    double intake;                                           /* Mb/s; 0: as the cable */
    double packets, size;
    double piece;                                /* bytes; 0: whole messages */
    double jitter, skew, control;                /* in times of a message */
    double overhead, grant_bytes, window, eager; /* ns, bytes */
    double copy_rate, memory_rate, copy_flight;  /* Mb/s, ns */
    double rare, rare_length;                    /* share of messages, times of a message */
    double clock_offset, clock_drift;            /* ns, ppm */
    double seed;
    double jobs, job_hosts, fragment, fragment_deviation; /* hosts */
    double warm, span;                                    /* us */
    double background_load, background_bytes;
    double slow_hosts, slow_by;
    double until; /* us */
};

struct sim_command {
    struct cli_args args;
    struct fabric_job job;
    const char *order, *plan, *pace; /* as given, or NULL */
    const char *rare, *clock, *svg;
    const char *traffic, *load, *background, *fragments;
    const char *sizes, *slow, *burst, *arbiter, *piece, *as, *place, *sl, *sl2vl;
    bool schedule, verify, json, csv, quiet, torus_lanes, adaptive, keeps_ways, steady, compare;
    bool unattended;
    struct sim_numbers number;

    const char *title; /* of the order or plan */
    struct ibshift_arrangement found;
    struct ibshift_order shift;
    const struct ibshift_alg *alg;
    struct ibshift_plan what;
    uint32_t *host_of;         /* [rank] */
    uint32_t *members;         /* likewise, of the placement; NULL: in the ranks' own order */
    struct sim_sizes *unequal; /* NULL: all messages are alike */
    uint8_t *lane_table;
    struct fabric_sl2vl lanes; /* the switches' own tables; none: vl is NULL */
    char peer_text[80], plan_text[80];
    uint32_t burst_packets;
    bool knows_burst;
    enum sim_arbiter switches;
    uint32_t *others; /* hosts that are not the job's */
    struct ibshift_pace paced;
    char pace_text[32];
    uint64_t unit; /* ps: a message alone, on the fastest host's cable */
    double cost;   /* static: the order's, in units; 0: a plan's, not known */
    struct sim_job run;
    uint64_t ideal;   /* ps */
    uint32_t busiest; /* link that sets it */
};

extern const char *const sim_arbiter_names[]; /* by enum sim_arbiter */

/* Options of all ways to simulate; argc and argv as in main(). CLI_OK with args.helped, or not. */
int sim_options_parse(struct sim_command *c, int argc, char **argv);
void sim_options_fabric(const struct sim_command *c, struct sim_fabric_options *options);
/* Times of a message come in units of c->unit. */
void sim_options_net(const struct sim_command *c, struct sim_net_options *options);

/* `--sizes`, once the ranks are placed: sets unequal, and number.size to the largest. CLI_OK or
 * CLI_USAGE. */
int sim_sizes_take(struct sim_command *c);

/* `--as` and `--place`: whether they make sense, before anything is loaded; CLI_OK or CLI_USAGE. */
int sim_peer_check(const struct sim_command *c);
/* Sets the plan and the window of that library, and the title. */
void sim_peer_choose(struct sim_command *c);

/* `--traffic`: the whole of it. CLI_OK or CLI_USAGE. */
int sim_traffic_curve(struct sim_command *c);

/* The use of the links over time; CLI_OK or CLI_USAGE. */
int sim_draw_use(const struct sim_command *c, const char *path);

int cmd_sim(int argc, char **argv);

#endif

/* `ibshift plan`: what its commands share. */
#ifndef IBSHIFT_PLAN_CMD_H
#define IBSHIFT_PLAN_CMD_H

#include "plan/alg.h"
#include "choose/choose.h"
#include "fabric/traffic.h"
#include "json.h"
#include "options.h"
#include "plan/nodes.h"
#include "plan/order.h"

enum { PLAN_SIZES_MAX = 64 };

enum plan_model { PLAN_COMBINED, PLAN_LOGGP, PLAN_LOGFP, PLAN_MODELS };

struct plan_command;

/* So many ranks each, with a port and --processors. */
struct plan_hosts {
    struct ibshift_nodes nodes;
    struct ibshift_crowd crowd;
    uint32_t *processors;
};

/* Whose links count in prices (fabric.c). */
struct plan_fabric;

struct plan_args {
    const char *command; /* "plan print": for messages */
    const struct plan_command *row;
    int collective; /* -1: none named */
    const struct ibshift_alg *alg;
    struct ibshift_plan plan;
    const char *order_text;
    struct ibshift_order order;
    const char *stages_path;
    struct ibshift_stages stages;
    uint32_t ranks_last; /* compare: of a range; else the same as plan.ranks */
    long rank;           /* -1: all */
    bool has_radix, has_ranks, has_segments, has_sizes;
    int split; /* 1: optimal, not half */
    uint64_t sizes[PLAN_SIZES_MAX];
    int size_count;
    uint32_t element;
    uint32_t window;
    uint32_t piece;      /* price, compare: bytes; 0: whole messages */
    uint32_t per_host;   /* ranks of a host; 0: each has its own */
    uint32_t processors; /* of a host */
    bool is_dealt;       /* to the hosts in turn, not in rank order */
    const char *nodes_text;
    bool has_leaders, is_one_level;
    const char *fabric_text, *hosts_text; /* NULL: not given */
    struct plan_fabric *fabric;           /* NULL: no link is shared */
    struct plan_hosts hosts;              /* of plan.ranks, with per_host or nodes_text */
    struct ibshift_model near;            /* between ranks of a host, unless is_one_level */
    bool in_place, is_goal, is_msccl;
    const char *file; /* the plan is in there; NULL: not given */
    struct ibshift_listed *listed;
    bool is_non_commutative, is_json;
    struct ibshift_model model; /* as read */
    const char *model_source;
    int which; /* enum plan_model, -1: not said */
    const char *output;
    struct output out;
    uint32_t *order_memory;
    uint32_t *stages_memory;
    uint32_t *split_memory;
};

struct plan_command {
    const char *name;
    const char *operands; /* "", "C" or "CA": how many must be named; lower case: may be */
    const char *options;  /* letters of those it takes */
    const char *summary;
    int (*run)(struct plan_args *args);
};

/* All ranks' steps in the language of LogGOPSim. */
void plan_goal(const struct plan_args *args, FILE *out);
/* As XML of MSCCL; of one of its collectives. */
int plan_msccl(const struct plan_args *args, FILE *out);

/* The plan of --file: its collective, row and ranks. */
int plan_file_open(struct plan_args *args);
void plan_file_close(struct plan_args *args);

/* The entry of the program's table. */
int cmd_plan(int argc, char **argv);

/* CLI_OK, or CLI_USAGE with a message. plan_args_end() in every case. */
int plan_args_parse(struct plan_args *args, const struct plan_command *command, int argc,
                    char **argv, bool *is_helped);
void plan_args_end(struct plan_args *args);

/* What the options of these names say of args->plan, whose ranks are known: CLI_OK, or a message and CLI_USAGE. */
int plan_args_stages(struct plan_args *args);
int plan_args_order(struct plan_args *args);
int plan_args_split(struct plan_args *args);
int plan_args_hosts(struct plan_args *args);

/* The split that LogGP calls optimal, for free(); NULL: no memory. */
uint32_t *plan_split(const struct ibshift_model *model, uint64_t bytes, uint32_t ranks);

/* The hosts of so many ranks; CLI_OK, or a message and another code. To be freed in either case. */
int plan_hosts_make(const struct plan_args *args, uint32_t ranks, struct plan_hosts *hosts);
void plan_hosts_free(struct plan_hosts *hosts);
/* Those of args->plan; NULL: each rank has its own. */
const struct plan_hosts *plan_hosts_of(const struct plan_args *args);

/* The price that is asked for, without a limit, where ranks share such hosts. */
struct ibshift_price_request plan_request(const struct plan_args *args,
                                          const struct plan_hosts *hosts);

/* The fabric of --fabric, and as many ranks as it has. What is wrong there ends the program, with a message. */
int plan_fabric_open(struct plan_args *args);
void plan_fabric_close(struct plan_fabric *fabric);
/* A line that names it and the hosts, if there is one. */
void plan_fabric_title(const struct plan_args *args, FILE *out);
/* Adds what its links take, if there is one; 0 or -ENOMEM. */
int plan_fabric_add(const struct plan_args *args, const struct ibshift_price_request *request,
                    struct ibshift_price *price);
/* Blocks, or vectors, of the plan by tiers of cables. */
struct fabric_traffic plan_fabric_traffic(const struct plan_args *args,
                                          const struct ibshift_alg *alg,
                                          const struct ibshift_plan *plan);

/* The model of args->model that is asked for. */
struct ibshift_model plan_model_of(const struct plan_args *args, enum plan_model which);
const char *plan_model_name(enum plan_model which);
/* That of --model, or all of it. */
static inline enum plan_model plan_which(const struct plan_args *args)
{
    return args->which < 0 ? PLAN_COMBINED : (enum plan_model)args->which;
}

/* "scatter binomial, 9 ranks, root 0, radix 2", as far as the algorithm knows them. */
void plan_title(const struct plan_args *args, char *text, size_t size);

/* "64 B", "4 KiB"; text has room for 24. */
void plan_size_text(uint64_t bytes, char *text);

/* args->output, or stdout; NULL with a message. plan_close() is the end of it, as cli_output_close(). */
FILE *plan_open(struct plan_args *args);
int plan_close(struct plan_args *args, int status);

/* The JSON of a command that prints a list: an object around it. */
void plan_json_begin(struct json *j, FILE *out, const char *list);
void plan_json_end(struct json *j);

/* A job chooses by the longest message of a class of sizes. */
static inline uint64_t plan_class_bytes(uint64_t bytes)
{
    return bytes == 0 ? 0 : ibshift_class_size(ibshift_size_class(bytes));
}

/* As many as are given, or as a job takes; 0: these bytes do not go by multicast so. */
static inline uint32_t plan_cast_segments(const struct plan_args *args,
                                          const struct ibshift_alg *alg, uint64_t bytes)
{
    uint32_t least = ibshift_cast_segments(alg, &args->plan, plan_class_bytes(bytes));

    return !args->has_segments || least == 0 ? least
           : args->plan.segments < least     ? 0
                                             : args->plan.segments;
}

int plan_price(struct plan_args *args);
int plan_compare(struct plan_args *args);
int plan_rules(struct plan_args *args);

#endif

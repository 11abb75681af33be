/* The job that `ibshift fabric contend`, `schedule` and `sim` look at: which hosts, how many ranks.
 */
#ifndef IBSHIFT_FABRIC_CMD_JOB_H
#define IBSHIFT_FABRIC_CMD_JOB_H

#include "fabric/cmd.h"
#include "plan/alg.h"
#include "plan/nodes.h"
#include "pool.h"
#include "fabric/table/arrange.h"

struct fabric_job {
    struct pool pool;
    const char *hosts;       /* as given, or NULL */
    uint32_t ranks_per_host; /* 0: not given */
    struct ibshift_fabric *fabric;
    struct ibshift_placement *placement;
    uint32_t *order, order_count; /* the fabric's hosts in routing order, with place keepers */
    uint32_t per_host;
    struct ibshift_nodes nodes; /* of a plan's ranks; nodes 0: there is none */
    uint32_t leaders;           /* of a plan by node; 0: not given */
    uint32_t segments;          /* of a plan's vector; 0: not given */
    uint32_t lid_offset;        /* of all messages in an order that is given */
    bool has_rails;             /* on all adapters of its nodes */
    uint32_t rails;             /* so many each; 0: it is not */
    uint32_t *node_of;          /* [host]: the first host of its node */
    bool is_beside;             /* fabric and order are another job's */
};

/* The rows of all commands that look at a job. */
#define FABRIC_HOSTS_OPTIONS(job)                                                                  \
    {"--hosts",                                                                                    \
     0,                                                                                            \
     CLI_TEXT,                                                                                     \
     "HOSTS",                                                                                      \
     "FILE, nodes:LIST, random:K:SEED or fragments:K:LENGTH:SEED (default: all)",                  \
     .where = &(job).hosts},                                                                       \
    {                                                                                              \
        "--ranks-per-host", 0, CLI_WHOLE, "N",                                                     \
            "ranks on each host, numbered host by host (default: 1)",                              \
            .where = &(job).ranks_per_host, .low = 1, .high = 1024                                 \
    }
/* The bound knows of no node whose ranks share memory. */
#define FABRIC_JOB_OPTIONS(job)                                                                    \
    FABRIC_HOSTS_OPTIONS(job),                                                                     \
    {                                                                                              \
        "--rails", 0, CLI_FLAG, NULL,                                                              \
            "the job is on all adapters of these hosts' nodes, its ranks node by node",            \
            .where = &(job).has_rails                                                              \
    }
#define FABRIC_JOB_LEADERS_OPTION(job)                                                             \
    {                                                                                              \
        "--leaders", 0, CLI_WHOLE, "N",                                                            \
            "--plan by_node: ranks of a host that send to others (default: 1)",                    \
            .where = &(job).leaders, .low = 1, .high = IBSHIFT_LEADERS_MAX                         \
    }
#define FABRIC_JOB_SEGMENTS_OPTION(job, usual)                                                     \
    {                                                                                              \
        "--segments", 0, CLI_WHOLE, "N",                                                           \
            "--plan: segments of a pipelined vector (default: " usual ")",                         \
            .where = &(job).segments, .low = 1, .high = IBSHIFT_SEGMENTS_MAX                       \
    }
#define FABRIC_JOB_ORDER_OPTION(order)                                                             \
    {                                                                                              \
        "--order", 0, CLI_TEXT, "ORDER", "rank, routing, keepers, random:SEED or a FILE of hosts", \
            .where = &(order)                                                                      \
    }

#define FABRIC_JOB_LID_OPTION(job)                                                                 \
    {                                                                                              \
        "--lid-offset", 0, CLI_WHOLE, "N",                                                         \
            "--order: all messages go to this one of their host's LIDs (default: 0)",              \
            .where = &(job).lid_offset, .low = 0, .high = 127                                      \
    }

/* Loads the fabric and places the ranks. This and what follows ends the command where something is wrong. */
void fabric_job_open(const struct cli_args *args, struct fabric_job *job);
/* Another job on the fabric of the first one, which outlives it: on these hosts, or where hosts is NULL on
 * those that its own options say. */
void fabric_job_beside(const struct cli_args *args, struct fabric_job *job,
                       const struct fabric_job *first, const uint32_t *hosts, uint32_t count);
void fabric_job_close(struct fabric_job *job);

/* What --hosts says, in the order of the job's ranks, several times where a file says so; and with --rails all
 * adapters of their nodes, once node_of is there. Of the job's pool. */
uint32_t *fabric_job_hosts(const struct cli_args *args, struct fabric_job *job, uint32_t *count);
uint32_t *fabric_job_rails(const struct cli_args *args, struct fabric_job *job,
                           const uint32_t *hosts, uint32_t *count);

/* "64 ranks on 16 hosts", with which what is printed for people begins. */
void fabric_job_print(const struct fabric_job *job);

/* "random:7" and the like: numbers behind the word and a colon, `count` of them; false: another
 * word. *status: CLI_USAGE where they are not there. */
bool fabric_job_numbers(const struct cli_args *args, const char *text, const char *word,
                        unsigned count, uint64_t *numbers, int *status);

/*
 * The ranks' shift in the order asked for: rank, routing, keepers, random:SEED or a file of hosts;
 * NULL: rank. *title: what that is, for people.
 */
void fabric_job_shift(const struct cli_args *args, const struct fabric_job *job, const char *order,
                      struct ibshift_order *shift, const char **title);
/* The member of the job's placement that each rank of a plan in that order sits on; the job's. */
uint32_t *fabric_job_members(struct fabric_job *job, const struct ibshift_order *shift);
/* --leaders and --segments want a plan, and --lid-offset hosts that have such a LID. The first two before
 * the fabric is loaded. */
void fabric_job_check(const struct cli_args *args, const struct fabric_job *job, const char *plan);
void fabric_job_check_lid(const struct cli_args *args, const struct fabric_job *job);
/* The plan of "alltoall/bruck" or "alltoall/bruck:3" (radix) among ranks on these members, which are
 * its nodes, in one segment if none are given. */
const struct ibshift_alg *fabric_job_plan(const struct cli_args *args, struct fabric_job *job,
                                          const char *text, const uint32_t *members,
                                          struct ibshift_plan *plan);

/* `ibshift fabric contend --matrix`: an all-to-all whose blocks differ. */
struct fabric_matrix {
    const char *text;        /* of fabric/matrix.h; NULL: all blocks are alike */
    uint32_t bytes;          /* 0: not given */
    const char *certificate; /* a file to write, or NULL */
};

#define FABRIC_MATRIX_OPTIONS(matrix)                                                              \
    {"--matrix", 0, CLI_TEXT, "MATRIX", MATRIX_HELP, .where = &(matrix).text},                     \
        {"--bytes",                                                                                \
         'm',                                                                                      \
         CLI_WHOLE,                                                                                \
         "BYTES",                                                                                  \
         "bytes of a block of a --matrix that is made, in the mean; of spread and builder the "    \
         "longest (default: 65536)",                                                               \
         .where = &(matrix).bytes,                                                                 \
         .low = 1,                                                                                 \
         .high = 1 << 30},                                                                         \
    {                                                                                              \
        "--certificate", 0, CLI_OUTPUT, "FILE",                                                    \
            "write the link that sets the bound of a --matrix and all blocks that cross it",       \
            .where = &(matrix).certificate                                                         \
    }

int fabric_contend_matrix(const struct cli_args *args, struct fabric_job *job,
                          const struct fabric_matrix *matrix, bool is_json);

#endif

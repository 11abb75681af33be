/*
 * What the user can set, as Open MPI's parameters coll_ibshift_<name>: the values, and the table
 * that they are registered, checked, described and compared by.
 */
#ifndef IBSHIFT_JOB_PARAMS_H
#define IBSHIFT_JOB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "choose/choose.h"

/* The values, also of the names in coll_ibshift_expert; the tables are in job/params_table.c. */
struct ibshift_params {
    int priority;
    bool native;
    const char *device;
    int ports;
    int gid_index;
    int service_level;
    int adaptive; /* 1 or 0; -1: what the fabric file says */
    bool adaptive_data;
    int traffic_class;
    int pkey;
    size_t memory;
    bool node;
    size_t node_memory;
    size_t leader_memory;
    bool linger;
    size_t eager_limit;
    int timeout, retry;
    int deadline; /* seconds */
    int window;
    bool tapes;
    bool multicast;
    const char *model;
    const char *rules;
    const char *plan;
    const char *fabric;
    const char *site;
    const char *order;
    bool order_reductions;
    const char *pace;
    bool explain;
    const char *trace;
    const char *expert;
    /* By collective; 0: chosen. algorithm: 1 + place among the collective's rows. */
    int algorithm[IBSHIFT_COLLECTIVES];
    int radix[IBSHIFT_COLLECTIVES];
    size_t segment[IBSHIFT_COLLECTIVES]; /* bytes */
};

extern struct ibshift_params ibshift_params;

enum ibshift_param_type {
    IBSHIFT_PARAM_INT,
    IBSHIFT_PARAM_BOOL,
    IBSHIFT_PARAM_SIZE,
    IBSHIFT_PARAM_CHOICE,
    IBSHIFT_PARAM_STRING
};

/*
 * One row is one parameter: registration, ompi_info, the manual page and the words of an error
 * message come from it, and so does what ranks compare before they talk (ibshift_params_agreed()).
 * Bounds are for numbers, choices for IBSHIFT_PARAM_CHOICE (the index is the value).
 */
struct ibshift_param {
    const char *name;
    enum ibshift_param_type type;
    void *value;
    long long initial;
    const char *initial_text; /* IBSHIFT_PARAM_STRING */
    long long min, max;
    const char *const *choices; /* up to NULL */
    int level;                  /* for whom, as Open MPI counts: 1 for all to 9 for developers */
    bool is_settable;           /* by the tools interface of MPI, while the job runs */
    bool all_ranks;             /* it decides what is sent to whom: unlike values must not meet */
    bool is_mpi;                /* it does nothing without MPI, so libibshift refuses it */
    bool is_expert;             /* a name in coll_ibshift_expert: a number, in a row that stays */
    const char *help;
};

/* All rows. Those of a collective are not there any more when visit() has returned. */
enum { IBSHIFT_PARAM_NAME = 64 };
void ibshift_params_visit(void (*visit)(void *context, const struct ibshift_param *row),
                          void *context);

/* Names of values: 0 is `nothing`, and 1 + place the collective's rows. Until the next call. */
const char *const *ibshift_param_choices(enum ibshift_collective collective, const char *nothing);

enum { IBSHIFT_PARAM_NUMBER = 32 };
/* The row's value, or its default. */
const char *ibshift_param_text(const struct ibshift_param *row, bool initial,
                               char number[IBSHIFT_PARAM_NUMBER]);
void ibshift_param_set_initial(const struct ibshift_param *row);
/* Whether the text is a value of the row's kind, and whether the row's value is within its
 * bounds. */
bool ibshift_param_takes(const struct ibshift_param *row, const char *text);
bool ibshift_param_is_bounded(const struct ibshift_param *row);
/* For free(); NULL: no memory. */
char *ibshift_param_help(const struct ibshift_param *row);

/* Of a value that the row does not take. */
void ibshift_param_tell(const struct ibshift_param *row, const char *given);

/*
 * All rows to what "name=value;name=value" says, expert ones too, or to their defaults. Texts are pointed to
 * from then on. 0, or -EINVAL: why is the first thing wrong.
 */
int ibshift_params_set(char *settings, char *why, size_t size);

/* Once coll_ibshift_expert has been read. */
void ibshift_params_read_expert(void);
/* Tells what does not go together or has no effect, and of names in the environment, behind the
 * prefix, that are no parameters; prefix NULL: there are none. */
void ibshift_params_check(const char *prefix);

/*
 * What all ranks must have alike, as text: "name=value;" of each such row that has not its default,
 * as far as there is room. Returns a digest of all such rows, and of the algorithms that there are.
 */
uint64_t ibshift_params_agreed(char *text, size_t size);

/* The first row that differs between two such texts, in words; false: none that they tell. */
bool ibshift_params_differ(const char *theirs, const char *ours, char *words, size_t size);

/* What the parameters of a collective ask for. */
struct ibshift_wish ibshift_params_wish(enum ibshift_collective collective);
static inline struct ibshift_named ibshift_params_named(enum ibshift_collective collective)
{
    return (struct ibshift_named){ibshift_params.algorithm[collective],
                                  ibshift_params.radix[collective],
                                  ibshift_params.segment[collective]};
}

#endif

/*
 * `ibshift tune`: rank 0 and a partner run plans of their own by the executor, over the component's
 * nets; the parameters of the model that chooses algorithms are made of their times. So what is found
 * means what it means there.
 */
#ifndef IBSHIFT_TUNE_TUNE_H
#define IBSHIFT_TUNE_TUNE_H

#include "choose/param.h"
#include "choose/price.h"
#include "exec/engine.h"
#include "net/node/node.h"
#include "net/verbs/verbs.h"
#include "tune/cmd.h"

/* ---- wires.c: the component's own nets between the ranks of a job, beside its own ---- */

enum tune_level { TUNE_FABRIC, TUNE_NODE, TUNE_LEVELS };
enum { TUNE_TEXT = 256, TUNE_ADDRESS = 512 };

/* What a rank tells all others about itself. */
struct tune_card {
    uint32_t address_size; /* of the adapter; 0: there is none */
    uint8_t address[TUNE_ADDRESS];
    struct ibshift_node_card node; /* magic 0: it shares no memory */
    uint64_t host, port;           /* identities of the adapter's */
    int machine;                   /* the first rank of those that it could share memory with */
    char device[IBSHIFT_MADE_TEXT], firmware[IBSHIFT_MADE_TEXT];
    char hostname[IBSHIFT_MADE_TEXT];
    uint32_t mbps;
};

struct tune_wires {
    int rank, ranks;
    struct tune_card *cards; /* by rank */
    struct ibshift_verbs *verbs;
    struct ibshift_net *net[TUNE_LEVELS];
    struct ibshift_engine *engine[TUNE_LEVELS]; /* NULL: why[] says it */
    char why[TUNE_LEVELS][TUNE_TEXT];
    bool is_crowded; /* this host has more ranks than processors */
};

/* All ranks call it. 0 or -ENOMEM; a level that is not there says why. */
int tune_wires_open(struct tune_wires *wires);
void tune_wires_close(struct tune_wires *wires);

/* The waits of this rank are those of a rank that shares its processor, or not. */
void tune_wires_crowd(struct tune_wires *wires, bool is_crowded);

/* The longest message that the level sends at once. */
uint64_t tune_wires_eager(const struct tune_wires *wires, enum tune_level level);

/* The rank that rank 0 measures the level with, or -1: why has a line. The same on all ranks. */
int tune_wires_partner(const struct tune_wires *wires, enum tune_level level, char *why,
                       size_t size);

/* ---- probe.c: what is measured, and the parameters that explain it best ---- */

enum tune_kind {
    TUNE_POST,   /* rank 0's time to send count messages, which nobody answers */
    TUNE_TAKE,   /* rank 1's time to receive them once all of them have arrived */
    TUNE_STREAM, /* rank 0's time to send count messages and to hear that all have come */
};

struct tune_probe {
    enum tune_kind kind;
    uint32_t count; /* messages in a row, at most TUNE_COUNT_MAX */
    uint64_t bytes; /* of each */
};

struct tune_point {
    struct tune_probe probe;
    double us;
    double weight; /* above 0: how much it is believed */
};

/* One byte: the model adds the time of the others to the gap. */
enum { TUNE_COUNT_MAX = 32, TUNE_SHORT = 1, TUNE_PROBES = 48 };

/* The probes for messages that are sent at once up to `eager` bytes; how many, at most TUNE_PROBES.
 */
int tune_probes(uint64_t eager, struct tune_probe *probes);

/* The plan that runs. A message above the eager limit is only received once an empty one has said
 * that rank 0 has begun: its grant is then part of the time. */
const struct ibshift_alg *tune_alg(const struct tune_probe *probe);
struct ibshift_plan tune_plan(const struct tune_probe *probe, uint64_t eager);

/* The w with which the model prices a short message and its answer on one processor so. */
double tune_turn(const struct ibshift_model *model, double us);

/* What the model says, in us; negative: it has no price. */
double tune_price(const struct tune_probe *probe, const struct ibshift_model *model);

/*
 * Overheads come straight from the probes that post and take, L, g, f, G, R, O and E from those that
 * stream: the weighted mean of the squares of (priced - measured) / measured is the least. is_moved:
 * processors may move the bytes; otherwise O is 0, for streams alone do not tell it from G. S, copy
 * and reduce stay what they are in *model. Returns the root of the mean, or -1 when points are
 * missing or no numbers above 0.
 */
double tune_fit(const struct tune_point *points, int count, bool is_moved,
                struct ibshift_model *model);

/* ---- measure.c: the probes of a level, run by rank 0 and its partner ---- */

enum { TUNE_PASSES = 5 };

/* Of each probe the median time of each pass. */
struct tune_points {
    int count;
    struct tune_probe probes[TUNE_PROBES];
    double us[TUNE_PASSES][TUNE_PROBES];
    bool is_shared;             /* both ranks were put on one processor: */
    double shared[TUNE_PASSES]; /* us of a short message and its answer there */
};

/*
 * Rank 0 and the partner call it, about so many seconds long; points are rank 0's. heard() is told
 * of each pass that is over. 0 or -ENOMEM; a message that fails ends the job with a line.
 */
int tune_measure(struct tune_wires *wires, enum tune_level level, int partner, double seconds,
                 void (*heard)(enum tune_level level, int pass), struct tune_points *points);

/* us per byte. */
double tune_copy_rate(void);

/* ---- report.c: whether it may be believed, as the text of a parameter file, and where it goes ---- */

struct tune_level_found {
    bool is_there;
    bool is_moved;       /* processors may move the bytes */
    char how[TUNE_TEXT]; /* "ranks 0 and 1 of host a" */
    uint64_t eager;
    struct tune_points points;
    struct ibshift_model model; /* of all passes together */
    double error;               /* of the fit, in proportion */
    double noise;               /* see tune_found() */
};

struct tune_found {
    struct tune_level_found level[TUNE_LEVELS];
    struct ibshift_made made;
};

/* For qsort(): doubles. */
int tune_by_value(const void *a, const void *b);
/* Fits the level's points: model has S, copy and reduce. False: they make no sense. The noise is how
 * far the median of the passes is above the least, in the mean of the probes that stream. */
bool tune_found(struct tune_level_found *level, const struct ibshift_model *model);

/* The file's text, for free(); NULL: no memory. */
char *tune_report(const struct tune_found *found);

extern const char *const tune_level_names[];

/* Before the measurement: is there a place to install what will be found? CLI_OK or CLI_USAGE. */
int tune_check_place(const struct tune_target *to, const struct ibshift_made *made);

/* Fits what was measured and writes it; local has the copy and reduce rates. An enum cli_exit, with
 * a line for each reason. */
int tune_judge(const struct tune_target *to, struct tune_found *found, struct ibshift_model *local);

#endif

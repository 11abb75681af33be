/* The component's own nets between the ranks of a job, beside those of the component itself. */
#ifndef IBSHIFT_TUNE_WIRES_H
#define IBSHIFT_TUNE_WIRES_H

#include "choose/param.h"
#include "exec/engine.h"
#include "net/node/node.h"
#include "net/verbs/verbs.h"

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

#endif

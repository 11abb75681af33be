#include "job/params.h"

#include <stdio.h>

#include "choose/size.h"

struct ibshift_params ibshift_params;

#define PARAM(kind, field)                                                                         \
    .name = #field, .type = IBSHIFT_PARAM_##kind, .value = &ibshift_params.field
#define EXPERT(kind, field) PARAM(kind, field), .is_expert = true

static const struct ibshift_param table[] = {
    {PARAM(INT, priority), .is_mpi = true, .initial = -1, .min = -1, .max = 100, .level = 6,
     .all_ranks = true,
     .help = "Rank among the collective components, 0 to 100; the highest one that offers a "
             "function runs it (tuned has 30, sync 50, self 75). -1: 45 when the parameter coll "
             "names ibshift, otherwise ibshift is not used"},
    {PARAM(BOOL, native), .initial = true, .level = 6, .is_settable = true,
     .help = "Use the InfiniBand device. 0: no device is opened, every collective runs in the "
             "components beneath. Set later (MPI_T), on all ranks alike, it holds for the "
             "communicators made from then on"},
    {PARAM(STRING, device), .initial_text = "", .level = 4,
     .help =
         "Devices and ports to use, as name[:port],... ; empty: the ones nearest to the process. A "
         "port that is named twice has two queue pairs for each peer, which a bond of cables needs "
         "for the rate of both (coll_ibshift_ports 2)"},
    {PARAM(INT, ports), .initial = 1, .min = 1, .max = 4, .level = 5,
     .help = "How many ports a process uses at most"},
    {PARAM(INT, gid_index), .initial = -1, .min = -1, .max = 255, .level = 5,
     .help = "Index of the port's GID. -1: on Ethernet RoCE v2 before v1 and routable addresses "
             "before link-local ones, on InfiniBand the first"},
    {PARAM(INT, service_level), .initial = -1, .min = -1, .max = 15, .level = 5,
     .help = "Service level of all connections. -1: that of each pair in the fabric file, 0 where "
             "the file has none. Where the file lacks the levels that its tables need, all ranks "
             "must name one (which may differ) or none"},
    {PARAM(INT, pkey), .initial = 0, .min = 0, .max = 0xffff, .level = 5,
     .help = "Partition key of all connections on InfiniBand, such as 0x8001 (the upper bit, the "
             "membership, may be left out). 0: one with full membership, the default partition's "
             "before others, then the lowest"},
    {PARAM(INT, traffic_class), .initial = 0, .min = 0, .max = 255, .level = 5,
     .help = "Traffic class of all connections, where there is a global header (RoCE)"},
    {PARAM(SIZE, memory), .initial = 8 << 20, .min = 1 << 20, .max = 1LL << 32, .level = 5,
     .help = "Bytes of memory that a process registers for short messages, however many peers it "
             "talks to"},
    {PARAM(BOOL, node), .initial = 1, .level = 4,
     .help = "Ranks of one host communicate through shared memory. 0: over the adapter, as ranks "
             "of different hosts do"},
    {PARAM(SIZE, eager_limit), .initial = 16384, .min = 64, .max = 65536, .level = 5,
     .all_ranks = true,
     .help = "Longest message in bytes that is sent to another host without waiting for the "
             "receiver's grant. Within a host it is measured"},
    {PARAM(INT, deadline), .initial = 3600, .min = 0, .max = 86400, .level = 1,
     .help = "Seconds without a message after which a collective fails, counted while it is waited "
             "for. Dead peers and broken links are found within seconds by themselves; this is for "
             "ranks that look like one that computes for long: one that is stopped, or whose death "
             "was not noticed. 0: never"},
    {PARAM(BOOL, tapes), .is_mpi = true, .initial = true, .level = 5, .is_settable = true,
     .help = "Short collectives that are repeated run a list of resolved steps instead of walking "
             "their plan again. Results and messages are the same"},
    {PARAM(BOOL, multicast), .initial = false, .level = 5, .all_ranks = true,
     .help =
         "Send short messages of bcast, allreduce and allgather by multicast where the cost model "
         "prefers it: the first blocking one of them in a communicator of three ranks or more "
         "has the subnet manager make a group (by /dev/infiniband/rdma_cm, as any user may). "
         "Subnets have few groups, and joining takes milliseconds: off unless asked for"},
    {PARAM(STRING, model), .initial_text = "", .level = 5,
     .help =
         "File with the parameters of the cost model that chooses algorithms; empty: what "
         "\"ibshift tune --install\" has measured with this device, speed and Open MPI, from "
         "~/.ibshift or the folder of coll_ibshift_site, where all ranks have the same; or else "
         "values typical for a device in hardware, or in software. The files of all ranks must "
         "say the same"},
    {PARAM(STRING, rules), .initial_text = "", .level = 5,
     .help =
         "File of rules that choose algorithms by communicator and message size in the model's "
         "place: the dynamic rules of Open MPI's component tuned, as text or JSON, or what "
         "\"ibshift plan rules\" writes. A parameter that names an algorithm takes precedence. The "
         "files of all ranks must say the same"},
    {PARAM(STRING, plan), .initial_text = "", .level = 5,
     .help =
         "File with a plan as XML of MSCCL: calls of its collective among as many ranks as it has "
         "run it, if \"ibshift plan check --file\" finds it right. A parameter that names an "
         "algorithm takes precedence. The files of all ranks must say the same"},
    {PARAM(STRING, fabric), .initial_text = "", .level = 1,
     .help = "File of the fabric and its forwarding tables, as \"ibshift fabric publish\" "
             "writes it: all-to-alls go in an order made for the routes. Empty: the file fabric in "
             "the folder of coll_ibshift_site; without it, rank order"},
    {PARAM(STRING, site), .initial_text = "/etc/ibshift", .level = 9,
     .help = "Folder of the administrator: the file fabric in it is used where "
             "coll_ibshift_fabric is empty, and while it has a file off, ibshift leaves all "
             "collectives to other components. Empty: there is no such folder"},
    {PARAM(STRING, order), .initial_text = "auto", .level = 5,
     .help =
         "Order of an all-to-all on that fabric. auto: a shift in routing order, or in rank order "
         "where the routes make that cheaper (up to 512 hosts and 2048 ranks), and the "
         "cheapest order on its routes once enough data has been exchanged to repay the search; "
         "rank: as without a fabric; routing: a shift in routing order; schedule: a table of "
         "stages; anything else is a file of host names. Rings and trees of broadcasts and "
         "allgathers go along the same order"},
    {PARAM(STRING, pace), .initial_text = "auto", .level = 5, .all_ranks = true,
     .help = "How many long messages of an all-to-all go at once. auto: chosen for each "
             "case; none: each rank sends as fast as it can; window:W: W messages at once in each "
             "direction, 1 to 256; window:W/BYTES: in pieces of so many bytes, 256 to 1048576, one "
             "of each message at a time"},
    {PARAM(BOOL, explain), .initial = false, .level = 1,
     .help = "Print what was chosen, for each communicator, collective and size, and why"},
    {PARAM(STRING, trace), .is_mpi = true, .initial_text = "", .level = 3,
     .help = "Write each step of each collective as it starts, in the format of \"ibshift plan "
             "print\". A path: one file per process, with a dot and its rank appended; stderr: "
             "standard error. Empty: no trace"},
    {PARAM(STRING, expert), .is_mpi = true, .initial_text = "", .level = 9,
     .help = "What few have a reason to set, as name=value,name=value"},
};

enum { PARAM_COUNT = sizeof(table) / sizeof(table[0]) };

/* What coll_ibshift_expert may hold. */
static const struct ibshift_param expert_table[] = {
    {EXPERT(INT, adaptive), .initial = -1, .min = -1, .max = 1, .all_ranks = true,
     .help = "whether switches choose the routes: 1: they do; 0: not on the service level that is "
             "used; -1: as the fabric file says"},
    {EXPERT(BOOL, adaptive_data), .max = 1,
     .help = "where switches route adaptively, 1 lets all data of a long message leave the static "
             "route; what ends it is sent separately afterwards"},
    {EXPERT(SIZE, leader_memory), .initial = 32 << 20, .min = 1, .max = 1LL << 32,
     .all_ranks = true,
     .help = "bytes that a rank holds at most for others of its host in an all-to-all, gatherv or "
             "scatterv by node: longer blocks go from rank to rank; and scratch that it keeps for "
             "later calls"},
    {EXPERT(BOOL, linger), .is_mpi = true, .initial = true, .max = 1,
     .help =
         "0: no start of a nonblocking or persistent call waits a moment for its peers' grants"},
    {EXPERT(SIZE, node_memory), .initial = 4 << 20, .min = 1 << 16, .max = 1LL << 32,
     .help = "bytes of shared memory that a process takes at most for messages from the other "
             "ranks of its host"},
    {EXPERT(BOOL, order_reductions), .max = 1, .all_ranks = true,
     .help = "1 lets rings and trees of commutative reductions follow the order of all-to-alls "
             "too; the last digits of floating-point results then depend on the job's hosts"},
    {EXPERT(INT, retry), .initial = 6, .max = 7,
     .help = "how often a packet is sent again before its connection breaks (Soft-RoCE takes 7 as "
             "unlimited)"},
    {EXPERT(INT, timeout), .initial = 14, .min = 1, .max = 31,
     .help = "a packet that is not acknowledged is sent again after 4.096 us times two to the "
             "power of this"},
    {EXPERT(INT, window), .initial = 32, .min = 1, .max = 256, .all_ranks = true,
     .help = "most sends, and most receives, that a collective has in flight"},
};

enum { EXPERT_COUNT = sizeof(expert_table) / sizeof(expert_table[0]) };

/* The same for each collective, all of them for all ranks; its name and an underscore come before.
 */
enum { ALGORITHM, RADIX, SEGMENT, COLLECTIVE_PARAMS };
static const struct ibshift_param collective_table[COLLECTIVE_PARAMS] = {
    [ALGORITHM] = {.name = "algorithm",
                   .type = IBSHIFT_PARAM_CHOICE,
                   .level = 5,
                   .help = "Algorithm; auto: the one that the cost model prefers"},
    [RADIX] = {.name = "radix",
               .type = IBSHIFT_PARAM_INT,
               .max = IBSHIFT_RADIX_MAX,
               .level = 5,
               .help = "Messages that a rank sends in one round, where the algorithm has a choice. "
                       "0: the cost model's"},
    [SEGMENT] = {.name = "segment",
                 .type = IBSHIFT_PARAM_SIZE,
                 .max = 1ll << 40,
                 .level = 5,
                 .help = "Bytes of a segment, where the algorithm cuts the vector into segments. "
                         "0: the cost model's"},
};

const char *const *ibshift_param_choices(enum ibshift_collective collective, const char *nothing)
{
    enum { MOST = 32 };
    static const char *choices[MOST];
    int count = 0;

    choices[count++] = nothing;
    for (size_t i = 0; i < ibshift_alg_count && count < MOST - 1; i++) {
        if (ibshift_alg_table[i]->collective == collective) {
            choices[count++] = ibshift_alg_table[i]->name;
        }
    }
    choices[count] = NULL;
    return choices;
}

/* Row i of a collective; name is where its name goes. False: the collective has no such row. */
static bool make_row(enum ibshift_collective collective, int i, struct ibshift_param *p,
                     char name[IBSHIFT_PARAM_NAME])
{
    void *const values[COLLECTIVE_PARAMS] = {[ALGORITHM] = &ibshift_params.algorithm[collective],
                                             [RADIX] = &ibshift_params.radix[collective],
                                             [SEGMENT] = &ibshift_params.segment[collective]};

    *p = collective_table[i];
    snprintf(name, IBSHIFT_PARAM_NAME, "%s_%s", ibshift_collective_name(collective), p->name);
    p->name = name;
    p->value = values[i];
    p->is_settable = true;
    p->all_ranks = true;
    if (i == ALGORITHM) {
        p->choices = ibshift_param_choices(collective, "auto");
    }
    return i != SEGMENT || ibshift_collective_has_vector(collective);
}

void ibshift_params_visit(void (*visit)(void *context, const struct ibshift_param *row),
                          void *context)
{
    struct ibshift_param p;
    char name[IBSHIFT_PARAM_NAME];

    for (int i = 0; i < PARAM_COUNT; i++) {
        visit(context, &table[i]);
    }
    for (int i = 0; i < EXPERT_COUNT; i++) {
        visit(context, &expert_table[i]);
    }
    for (int c = 0; c < IBSHIFT_COLLECTIVES; c++) {
        for (int i = 0; i < COLLECTIVE_PARAMS; i++) {
            if (make_row((enum ibshift_collective)c, i, &p, name)) {
                visit(context, &p);
            }
        }
    }
}

struct ibshift_wish ibshift_params_wish(enum ibshift_collective collective)
{
    struct ibshift_wish wish = {.radix = (uint32_t)ibshift_params.radix[collective],
                                .segment = ibshift_params.segment[collective]};
    int place = ibshift_params.algorithm[collective];

    for (size_t i = 0; place > 0 && i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == collective && --place == 0) {
            wish.alg = ibshift_alg_table[i];
        }
    }
    return wish;
}

#include "coll_ibshift.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"

#include "choose/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum param_type { PARAM_INT, PARAM_BOOL, PARAM_SIZE, PARAM_CHOICE, PARAM_STRING };

/*
 * One row is one parameter: registration, ompi_info, the manual page and the words of an error
 * message come from it, and so does what ranks compare before they talk (ibshift_params_agreed()).
 * Bounds are for numbers, choices for PARAM_CHOICE (the index is the value).
 */
struct param {
    const char *name;
    enum param_type type;
    void *value;
    long long initial;
    const char *initial_text; /* PARAM_STRING */
    long long min, max;
    const mca_base_var_enum_value_t *choices;
    mca_base_var_info_lvl_t level;
    bool is_settable; /* by the tools interface of MPI, while the job runs */
    bool all_ranks;   /* it decides what is sent to whom: unlike values must not meet */
    const char *help;
};

struct ibshift_params ibshift_params;

static const struct param table[] = {
    {.name = "priority",
     .type = PARAM_INT,
     .value = &ibshift_params.priority,
     .initial = -1,
     .min = -1,
     .max = 100,
     .level = OPAL_INFO_LVL_6,
     .all_ranks = true,
     .help = "Rank among the collective components, 0 to 100; the highest one that offers a "
             "function runs it (tuned has 30, sync 50, self 75). -1: 45 when the parameter coll "
             "names ibshift, otherwise ibshift is not used"},
    {.name = "native",
     .type = PARAM_BOOL,
     .value = &ibshift_params.native,
     .initial = true,
     .level = OPAL_INFO_LVL_6,
     .is_settable = true,
     .help = "Use the InfiniBand device. 0: no device is opened, every collective runs in the "
             "components beneath. Set later (MPI_T), on all ranks alike, it holds for the "
             "communicators made from then on"},
    {.name = "device",
     .type = PARAM_STRING,
     .value = &ibshift_params.device,
     .initial_text = "",
     .level = OPAL_INFO_LVL_4,
     .help =
         "Devices and ports to use, as name[:port],... ; empty: the ones nearest to the process"},
    {.name = "ports",
     .type = PARAM_INT,
     .value = &ibshift_params.ports,
     .initial = 1,
     .min = 1,
     .max = 4,
     .level = OPAL_INFO_LVL_5,
     .help = "How many ports a process uses at most"},
    {.name = "gid_index",
     .type = PARAM_INT,
     .value = &ibshift_params.gid_index,
     .initial = -1,
     .min = -1,
     .max = 255,
     .level = OPAL_INFO_LVL_5,
     .help = "Index of the port's GID. -1: on Ethernet RoCE v2 before v1 and routable addresses "
             "before link-local ones, on InfiniBand the first"},
    {.name = "service_level",
     .type = PARAM_INT,
     .value = &ibshift_params.service_level,
     .initial = 0,
     .min = 0,
     .max = 15,
     .level = OPAL_INFO_LVL_5,
     .help = "Service level of all connections"},
    {.name = "traffic_class",
     .type = PARAM_INT,
     .value = &ibshift_params.traffic_class,
     .initial = 0,
     .min = 0,
     .max = 255,
     .level = OPAL_INFO_LVL_5,
     .help = "Traffic class of all connections, where there is a global header (RoCE)"},
    {.name = "memory",
     .type = PARAM_SIZE,
     .value = &ibshift_params.memory,
     .initial = 8 << 20,
     .min = 1 << 20,
     .max = 1LL << 32,
     .level = OPAL_INFO_LVL_5,
     .help = "Bytes of memory that a process registers for short messages, however many peers it "
             "talks to"},
    {.name = "node",
     .type = PARAM_BOOL,
     .value = &ibshift_params.node,
     .initial = 1,
     .level = OPAL_INFO_LVL_4,
     .help = "Ranks of one host talk through shared memory. 0: over the adapter, as those of "
             "different hosts"},
    {.name = "node_memory",
     .type = PARAM_SIZE,
     .value = &ibshift_params.node_memory,
     .initial = 4 << 20,
     .min = 1 << 16,
     .max = 1LL << 32,
     .level = OPAL_INFO_LVL_5,
     .help = "Bytes of shared memory that a process takes for messages from the others of its "
             "host, at the most"},
    {.name = "eager_limit",
     .type = PARAM_SIZE,
     .value = &ibshift_params.eager_limit,
     .initial = 4096,
     .min = 64,
     .max = 65536,
     .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help = "Longest message in bytes that is sent before its receiver is known to wait for it"},
    {.name = "timeout",
     .type = PARAM_INT,
     .value = &ibshift_params.timeout,
     .initial = 14,
     .min = 1,
     .max = 31,
     .level = OPAL_INFO_LVL_5,
     .help = "A packet that is not acknowledged is sent again after 4.096 us times two to the "
             "power of this"},
    {.name = "retry",
     .type = PARAM_INT,
     .value = &ibshift_params.retry,
     .initial = 6,
     .min = 0,
     .max = 7,
     .level = OPAL_INFO_LVL_5,
     .help = "How often a packet is sent again before its connection breaks (Soft-RoCE takes 7 as "
             "without end)"},
    {.name = "deadline",
     .type = PARAM_INT,
     .value = &ibshift_params.deadline,
     .initial = 3600,
     .min = 0,
     .max = 86400,
     .level = OPAL_INFO_LVL_1,
     .help = "Seconds without a message after which a collective fails, counted while it is waited "
             "for. Dead peers and broken links are found within seconds by themselves; this is for "
             "what cannot be told from a rank that computes for long: one that is stopped, or that "
             "died before it was connected. 0: never"},
    {.name = "window",
     .type = PARAM_INT,
     .value = &ibshift_params.window,
     .initial = 32,
     .min = 1,
     .max = 256,
     .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help = "Sends, and receives, that a collective has in flight at most"},
    {.name = "model",
     .type = PARAM_STRING,
     .value = &ibshift_params.model,
     .initial_text = "",
     .level = OPAL_INFO_LVL_5,
     .help = "File with the parameters of the cost model that chooses algorithms; empty: typical "
             "values of a device in hardware, or in software, not measured here. The files of all "
             "ranks must say the same"},
    {.name = "fabric",
     .type = PARAM_STRING,
     .value = &ibshift_params.fabric,
     .initial_text = "",
     .level = OPAL_INFO_LVL_1,
     .help = "File of the fabric and its forwarding tables, as \"ibshift fabric compile\" writes "
             "it: all-to-alls go in an order that suits the routes. Empty: in rank order"},
    {.name = "order",
     .type = PARAM_STRING,
     .value = &ibshift_params.order,
     .initial_text = "auto",
     .level = OPAL_INFO_LVL_5,
     .help =
         "Order of an all-to-all on that fabric. auto: a shift in routing order, or in rank order "
         "where the routes make that cheaper, and the "
         "cheapest order on its routes once enough data has been exchanged to repay the search; "
         "rank: as without a fabric; routing: a shift in routing order; schedule: a table of "
         "stages; anything else is a file of host names. Rings and trees of broadcasts and "
         "allgathers go along the same order"},
    {.name = "order_reductions",
     .type = PARAM_BOOL,
     .value = &ibshift_params.order_reductions,
     .initial = false,
     .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help = "Rings and trees of reduce and allreduce too, if the operator is commutative: the "
             "last digits of floating-point results then depend on the hosts that the job got"},
    {.name = "pace",
     .type = PARAM_STRING,
     .value = &ibshift_params.pace,
     .initial_text = "auto",
     .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help =
         "How all-to-alls of long messages keep their stages together. auto: what suits; none: "
         "each rank goes as fast as it can; window:W: W messages at once each way, 1 to 256; "
         "window:W/BYTES: in pieces of so many bytes, 256 to 1048576, of which the adapter has one "
         "of each message at a time; grants:W: "
         "a barrier first, then a receiver lets W messages come at once, 1 to 16; clk: stages "
         "have their times; rate:W or rate:W/N: W messages at once, each at an Nth of the link's "
         "rate"},
    {.name = "explain",
     .type = PARAM_BOOL,
     .value = &ibshift_params.explain,
     .initial = false,
     .level = OPAL_INFO_LVL_1,
     .help = "Print what was chosen, for each communicator, collective and size, and why"},
    {.name = "trace",
     .type = PARAM_STRING,
     .value = &ibshift_params.trace,
     .initial_text = "",
     .level = OPAL_INFO_LVL_3,
     .help = "Write each step of each collective as it starts, in the words of \"ibshift plan "
             "print\". A path: a file for each process, with its rank behind a dot; stderr: there. "
             "Empty: nowhere"},
};

enum { PARAM_COUNT = sizeof(table) / sizeof(table[0]) };

/* The same for each collective, all of them for all ranks; its name and an underscore come before.
 */
enum { ALGORITHM, RADIX, SEGMENT, COLLECTIVE_PARAMS };
static const struct param collective_table[COLLECTIVE_PARAMS] = {
    [ALGORITHM] = {.name = "algorithm",
                   .type = PARAM_CHOICE,
                   .level = OPAL_INFO_LVL_5,
                   .help = "Algorithm; auto: the one that the cost model prefers"},
    [RADIX] = {.name = "radix",
               .type = PARAM_INT,
               .max = IBSHIFT_RADIX_MAX,
               .level = OPAL_INFO_LVL_5,
               .help = "Messages that a rank sends in one round, where the algorithm has a choice. "
                       "0: the cost model's"},
    [SEGMENT] = {.name = "segment",
                 .type = PARAM_SIZE,
                 .max = 1ll << 40,
                 .level = OPAL_INFO_LVL_5,
                 .help =
                     "Bytes of a piece, where the algorithm cuts the vector into pieces. 0: the "
                     "cost model's"},
};

static mca_base_var_type_t var_type(enum param_type type)
{
    switch (type) {
    case PARAM_BOOL:
        return MCA_BASE_VAR_TYPE_BOOL;
    case PARAM_SIZE:
        return MCA_BASE_VAR_TYPE_SIZE_T;
    case PARAM_STRING:
        return MCA_BASE_VAR_TYPE_STRING;
    default:
        return MCA_BASE_VAR_TYPE_INT;
    }
}

static void set_initial(const struct param *p)
{
    switch (p->type) {
    case PARAM_BOOL:
        *(bool *)p->value = p->initial != 0;
        break;
    case PARAM_SIZE:
        *(size_t *)p->value = (size_t)p->initial;
        break;
    case PARAM_STRING:
        *(const char **)p->value = p->initial_text;
        break;
    default:
        *(int *)p->value = (int)p->initial;
    }
}

static void report(const struct param *p, const char *given, const char *accepted)
{
    char initial[32];

    snprintf(initial, sizeof(initial), "%lld", p->initial);
    ibshift_help_once_a_job("bad-value", p->name, given, accepted,
                            p->choices != NULL ? p->choices[p->initial].string : initial);
}

static void report_number(const struct param *p, const char *given)
{
    char accepted[64];

    snprintf(accepted, sizeof(accepted), "%lld to %lld", p->min, p->max);
    report(p, given, accepted);
}

/* As Open MPI reads numbers: decimal or 0x, and k, m, g or t for a power of 1024. */
static bool is_number(const char *text)
{
    char *end;

    (void)strtoll(text, &end, 0);
    return end != text && ('\0' == *end || (NULL != strchr("kmgtKMGT", *end) && '\0' == end[1]));
}

static bool is_choice(const struct param *p, const char *text)
{
    char *end;
    long number = strtol(text, &end, 0);
    bool is_place = end != text && '\0' == *end;

    for (int i = 0; NULL != p->choices[i].string; i++) {
        if (is_place ? number == p->choices[i].value : 0 == strcmp(text, p->choices[i].string)) {
            return true;
        }
    }
    return false;
}

static void report_choice(const struct param *p, const char *given)
{
    char accepted[512] = "";
    size_t length = 0;

    for (int i = 0; NULL != p->choices[i].string && length < sizeof(accepted); i++) {
        length += (size_t)snprintf(accepted + length, sizeof(accepted) - length, "%s%s",
                                   i > 0 ? ", " : "", p->choices[i].string);
    }
    report(p, given, accepted);
}

/*
 * What mpirun was given. Open MPI takes what is no number for 0, or for its first digits, and its
 * message about a choice that is none may be lost (coll_ibshift.h); so it does not get to see them.
 */
static void check_text(const struct param *p)
{
    bool is_numeric = p->type == PARAM_INT || p->type == PARAM_SIZE;
    char name[96];
    const char *text;

    snprintf(name, sizeof(name), "OMPI_MCA_coll_ibshift_%s", p->name);
    text = getenv(name);
    if (NULL == text) {
        return;
    }
    if (is_numeric && !is_number(text)) {
        report_number(p, text);
        (void)unsetenv(name);
    } else if (p->type == PARAM_CHOICE && !is_choice(p, text)) {
        report_choice(p, text);
        (void)unsetenv(name);
    }
}

static void check_bounds(const struct param *p)
{
    char given[32];
    long long value;

    if (p->type == PARAM_INT) {
        value = *(int *)p->value;
    } else if (p->type == PARAM_SIZE) {
        value = (long long)*(size_t *)p->value;
    } else {
        return;
    }
    if (value < p->min || value > p->max) {
        snprintf(given, sizeof(given), "%lld", value);
        report_number(p, given);
        set_initial(p);
    }
}

/* Open MPI makes a null pointer of an empty text, and frees at the end what it finds there. */
static void check_empty(const struct param *p)
{
    if (p->type == PARAM_STRING && NULL == *(char **)p->value) {
        *(char **)p->value = strdup(p->initial_text);
    }
}

static void register_one(const struct param *p)
{
    mca_base_var_enum_t *choices = NULL;
    char name[64], help[1024];

    set_initial(p);
    check_text(p);
    snprintf(help, sizeof(help), "%s%s", p->help, p->all_ranks ? ". The same on all ranks" : "");
    if (p->choices != NULL) {
        snprintf(name, sizeof(name), "coll_ibshift_%s", p->name);
        (void)mca_base_var_enum_create(name, p->choices, &choices);
    }
    (void)mca_base_component_var_register(
        &mca_coll_ibshift_component.collm_version, p->name, help, var_type(p->type), choices, 0,
        p->is_settable ? MCA_BASE_VAR_FLAG_SETTABLE : 0, p->level,
        p->is_settable ? MCA_BASE_VAR_SCOPE_ALL_EQ : MCA_BASE_VAR_SCOPE_READONLY, p->value);
    if (choices != NULL) {
        OBJ_RELEASE(choices);
    }
    check_empty(p);
    check_bounds(p);
}

const mca_base_var_enum_value_t *ibshift_param_choices(enum ibshift_collective collective,
                                                       const char *nothing)
{
    enum { MOST = 32 };
    static mca_base_var_enum_value_t choice[MOST]; /* whoever makes an enumeration copies them */
    int count = 0;

    choice[count++] = (mca_base_var_enum_value_t){0, nothing};
    for (size_t i = 0; i < ibshift_alg_count && count < MOST - 1; i++) {
        if (ibshift_alg_table[i]->collective == collective) {
            choice[count] = (mca_base_var_enum_value_t){count, ibshift_alg_table[i]->name};
            count++;
        }
    }
    choice[count] = (mca_base_var_enum_value_t){0, NULL};
    return choice;
}

/* Row i of a collective; name is where its name goes. False: the collective has no such row. */
static bool make_row(enum ibshift_collective collective, int i, struct param *p, char *name,
                     size_t size)
{
    void *const values[COLLECTIVE_PARAMS] = {[ALGORITHM] = &ibshift_params.algorithm[collective],
                                             [RADIX] = &ibshift_params.radix[collective],
                                             [SEGMENT] = &ibshift_params.segment[collective]};

    *p = collective_table[i];
    snprintf(name, size, "%s_%s", ibshift_collective_name(collective), p->name);
    p->name = name;
    p->value = values[i];
    p->is_settable = true;
    p->all_ranks = true;
    if (i == ALGORITHM) {
        p->choices = ibshift_param_choices(collective, "auto");
    }
    return i != SEGMENT || ibshift_collective_has_vector(collective);
}

static void visit_rows(void (*visit)(void *context, const struct param *p), void *context)
{
    struct param p;
    char name[64];

    for (int i = 0; i < PARAM_COUNT; i++) {
        visit(context, &table[i]);
    }
    for (int c = 0; c < IBSHIFT_COLLECTIVES; c++) {
        for (int i = 0; i < COLLECTIVE_PARAMS; i++) {
            if (make_row((enum ibshift_collective)c, i, &p, name, sizeof(name))) {
                visit(context, &p);
            }
        }
    }
}

static void register_row(void *context, const struct param *p)
{
    register_one(p);
}

void ibshift_params_register(void)
{
    visit_rows(register_row, NULL);
}

struct visitor {
    void (*visit)(void *context, const struct ibshift_param_text *row);
    void *context;
};

static const char *number_text(const struct param *p, long long value, char *text, size_t size)
{
    if (p->type == PARAM_CHOICE) {
        return p->choices[value].string;
    }
    snprintf(text, size, "%lld", value);
    return text;
}

static long long number_of(const struct param *p)
{
    switch (p->type) {
    case PARAM_BOOL:
        return *(bool *)p->value;
    case PARAM_SIZE:
        return (long long)*(size_t *)p->value;
    default:
        return *(int *)p->value;
    }
}

static void visit_text(void *context, const struct param *p)
{
    const struct visitor *visitor = context;
    struct ibshift_param_text row = {.name = p->name, .all_ranks = p->all_ranks};
    char value[32], initial[32];

    if (p->type == PARAM_STRING) {
        row.value = *(const char **)p->value;
        row.initial = p->initial_text;
    } else {
        row.value = number_text(p, number_of(p), value, sizeof(value));
        row.initial = number_text(p, p->initial, initial, sizeof(initial));
    }
    visitor->visit(visitor->context, &row);
}

void ibshift_params_visit(void (*visit)(void *context, const struct ibshift_param_text *row),
                          void *context)
{
    struct visitor visitor = {.visit = visit, .context = context};

    visit_rows(visit_text, &visitor);
}

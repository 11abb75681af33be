#include "coll_ibshift_params.h"
#include "coll_ibshift.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "choose/digest.h"
#include "choose/size.h"
#include "choose/text.h"

#define PREFIX "OMPI_MCA_coll_ibshift_"

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

#define PARAM(kind, field) .name = #field, .type = PARAM_##kind, .value = &ibshift_params.field

static const struct param table[] = {
    {PARAM(INT, priority), .initial = -1, .min = -1, .max = 100, .level = OPAL_INFO_LVL_6,
     .all_ranks = true,
     .help = "Rank among the collective components, 0 to 100; the highest one that offers a "
             "function runs it (tuned has 30, sync 50, self 75). -1: 45 when the parameter coll "
             "names ibshift, otherwise ibshift is not used"},
    {PARAM(BOOL, native), .initial = true, .level = OPAL_INFO_LVL_6, .is_settable = true,
     .help = "Use the InfiniBand device. 0: no device is opened, every collective runs in the "
             "components beneath. Set later (MPI_T), on all ranks alike, it holds for the "
             "communicators made from then on"},
    {PARAM(STRING, device), .initial_text = "", .level = OPAL_INFO_LVL_4,
     .help =
         "Devices and ports to use, as name[:port],... ; empty: the ones nearest to the process. A "
         "port that is named twice has two queue pairs for each peer, which a bond of cables needs "
         "for the rate of both (coll_ibshift_ports 2)"},
    {PARAM(INT, ports), .initial = 1, .min = 1, .max = 4, .level = OPAL_INFO_LVL_5,
     .help = "How many ports a process uses at most"},
    {PARAM(INT, gid_index), .initial = -1, .min = -1, .max = 255, .level = OPAL_INFO_LVL_5,
     .help = "Index of the port's GID. -1: on Ethernet RoCE v2 before v1 and routable addresses "
             "before link-local ones, on InfiniBand the first"},
    {PARAM(INT, service_level), .initial = -1, .min = -1, .max = 15, .level = OPAL_INFO_LVL_5,
     .help = "Service level of all connections. -1: that of each pair in the fabric file, 0 where "
             "the file has none. Where the file lacks the levels that its tables need, all ranks "
             "must name one (which may differ) or none"},
    {PARAM(BOOL, adaptive_data), .initial = false, .level = OPAL_INFO_LVL_6,
     .help = "Where switches route adaptively, all data of a long message may leave the static "
             "route: the immediate data that ends it is sent separately afterwards. 0: the last "
             "write has "
             "both and keeps the static route, as switches treat immediate data"},
    {PARAM(INT, pkey), .initial = 0, .min = 0, .max = 0xffff, .level = OPAL_INFO_LVL_5,
     .help = "Partition key of all connections on InfiniBand, such as 0x8001 (the upper bit, the "
             "membership, may be left out). 0: one with full membership, the default partition's "
             "before others, then the lowest"},
    {PARAM(INT, traffic_class), .initial = 0, .min = 0, .max = 255, .level = OPAL_INFO_LVL_5,
     .help = "Traffic class of all connections, where there is a global header (RoCE)"},
    {PARAM(SIZE, memory), .initial = 8 << 20, .min = 1 << 20, .max = 1LL << 32,
     .level = OPAL_INFO_LVL_5,
     .help = "Bytes of memory that a process registers for short messages, however many peers it "
             "talks to"},
    {PARAM(INT, connections), .initial = 0, .min = 0, .max = 1 << 20, .level = OPAL_INFO_LVL_5,
     .help = "Connections above which a process closes those that neither side has used for long; "
             "the next message opens them again. 0: all are kept"},
    {PARAM(BOOL, node), .initial = 1, .level = OPAL_INFO_LVL_4,
     .help = "Ranks of one host communicate through shared memory. 0: over the adapter, as ranks "
             "of different hosts do"},
    {PARAM(SIZE, node_memory), .initial = 4 << 20, .min = 1 << 16, .max = 1LL << 32,
     .level = OPAL_INFO_LVL_5,
     .help = "Bytes of shared memory that a process takes at most for messages from the other "
             "ranks of its host"},
    {PARAM(SIZE, eager_limit), .initial = 16384, .min = 64, .max = 65536, .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help = "Longest message in bytes that is sent without waiting for the receiver's grant"},
    {PARAM(INT, timeout), .initial = 14, .min = 1, .max = 31, .level = OPAL_INFO_LVL_5,
     .help = "A packet that is not acknowledged is sent again after 4.096 us times two to the "
             "power of this"},
    {PARAM(INT, retry), .initial = 6, .min = 0, .max = 7, .level = OPAL_INFO_LVL_5,
     .help = "How often a packet is sent again before its connection breaks (Soft-RoCE takes 7 as "
             "unlimited)"},
    {PARAM(INT, deadline), .initial = 3600, .min = 0, .max = 86400, .level = OPAL_INFO_LVL_1,
     .help = "Seconds without a message after which a collective fails, counted while it is waited "
             "for. Dead peers and broken links are found within seconds by themselves; this is for "
             "ranks that look like one that computes for long: one that is stopped, or whose death "
             "was not noticed. 0: never"},
    {PARAM(INT, window), .initial = 32, .min = 1, .max = 256, .level = OPAL_INFO_LVL_5,
     .all_ranks = true, .help = "Most sends, and most receives, that a collective has in flight"},
    {PARAM(BOOL, tapes), .initial = true, .level = OPAL_INFO_LVL_5, .is_settable = true,
     .help = "Short collectives that are repeated run a list of resolved steps instead of walking "
             "their plan again. Results and messages are the same"},
    {PARAM(INT, correct), .initial = 0, .max = 1 << 20, .level = OPAL_INFO_LVL_5, .all_ranks = true,
     .help = "One in so many blocking calls of a collective and size runs a plan other than the "
             "chosen one, and the faster one is kept; the ranks agree on it in collectives where "
             "all ranks wait for all. 0: the cost model's choices are kept"},
    {PARAM(STRING, model), .initial_text = "", .level = OPAL_INFO_LVL_5,
     .help =
         "File with the parameters of the cost model that chooses algorithms; empty: what "
         "\"ibshift tune --install\" has measured with this device, speed and Open MPI, from "
         "~/.ibshift or the folder of coll_ibshift_site, where all ranks have the same; or else "
         "values typical for a device in hardware, or in software. The files of all ranks must "
         "say the same"},
    {PARAM(STRING, rules), .initial_text = "", .level = OPAL_INFO_LVL_5,
     .help =
         "File of rules that choose algorithms by communicator and message size in the model's "
         "place: the dynamic rules of Open MPI's component tuned, as text or JSON, or what "
         "\"ibshift plan rules\" writes. A parameter that names an algorithm takes precedence. The "
         "files of all ranks must say the same"},
    {PARAM(STRING, fabric), .initial_text = "", .level = OPAL_INFO_LVL_1,
     .help = "File of the fabric and its forwarding tables, as \"ibshift fabric publish\" or "
             "\"compile\" writes it: all-to-alls go in an order made for the routes. Empty: the "
             "file fabric in the folder of coll_ibshift_site; without it, rank order"},
    {PARAM(STRING, site), .initial_text = "/etc/ibshift", .level = OPAL_INFO_LVL_9,
     .help = "Folder of the administrator: the file fabric in it is used where "
             "coll_ibshift_fabric is empty, and while it has a file off, ibshift leaves all "
             "collectives to other components. Empty: there is no such folder"},
    {PARAM(STRING, order), .initial_text = "auto", .level = OPAL_INFO_LVL_5,
     .help =
         "Order of an all-to-all on that fabric. auto: a shift in routing order, or in rank order "
         "where the routes make that cheaper (up to 512 hosts and 2048 ranks), and the "
         "cheapest order on its routes once enough data has been exchanged to repay the search; "
         "rank: as without a fabric; routing: a shift in routing order; schedule: a table of "
         "stages; anything else is a file of host names. Rings and trees of broadcasts and "
         "allgathers go along the same order"},
    {PARAM(BOOL, order_reductions), .initial = false, .level = OPAL_INFO_LVL_5, .all_ranks = true,
     .help =
         "Rings and trees of reduce and allreduce follow that order too, if the operator is "
         "commutative: the last digits of floating-point results then depend on the job's hosts"},
    {PARAM(STRING, pace), .initial_text = "auto", .level = OPAL_INFO_LVL_5, .all_ranks = true,
     .help = "How all-to-alls of long messages keep their stages together. auto: chosen for each "
             "case; none: each rank sends as fast as it can; window:W: W messages at once in each "
             "direction, 1 to 256; "
             "window:W/BYTES: in pieces of so many bytes, 256 to 1048576, one of each message at a "
             "time; clk: each stage has its time on a common clock"},
    {PARAM(SIZE, burst), .initial = 0, .min = 0, .max = 1 << 30, .level = OPAL_INFO_LVL_5,
     .all_ranks = true,
     .help = "Bytes of one message that an adapter sends before it sends from another queue pair, "
             "the most of all adapters of the cluster, as \"ibshift doctor --peer\" measures them. "
             "Up to 2048, "
             "the pace auto sends long messages whole instead of in pieces. 0: not known"},
    {PARAM(BOOL, explain), .initial = false, .level = OPAL_INFO_LVL_1,
     .help = "Print what was chosen, for each communicator, collective and size, and why"},
    {PARAM(STRING, trace), .initial_text = "", .level = OPAL_INFO_LVL_3,
     .help = "Write each step of each collective as it starts, in the format of \"ibshift plan "
             "print\". A path: one file per process, with a dot and its rank appended; stderr: "
             "standard error. Empty: no trace"},
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
                 .help = "Bytes of a segment, where the algorithm cuts the vector into segments. "
                         "0: the cost model's"},
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

    snprintf(name, sizeof(name), PREFIX "%s", p->name);
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

/* A row's value and default as text. */
struct text {
    const char *value, *initial;
    char numbers[2][32];
};

static void read_text(const struct param *p, struct text *text)
{
    if (p->type == PARAM_STRING) {
        text->value = *(const char **)p->value;
        text->initial = p->initial_text;
    } else {
        text->value = number_text(p, number_of(p), text->numbers[0], sizeof(text->numbers[0]));
        text->initial = number_text(p, p->initial, text->numbers[1], sizeof(text->numbers[1]));
    }
}

struct agreed {
    uint64_t sum;
    char *text;
    size_t size, length;
};

static void add_agreed(void *context, const struct param *p)
{
    struct agreed *agreed = context;
    size_t room = agreed->size - agreed->length;
    struct text text;
    int length;

    if (!p->all_ranks) {
        return;
    }
    read_text(p, &text);
    agreed->sum = ibshift_digest(agreed->sum, p->name, strlen(p->name) + 1);
    agreed->sum = ibshift_digest(agreed->sum, text.value, strlen(text.value) + 1);
    if (0 != strcmp(text.value, text.initial)) {
        length = snprintf(agreed->text + agreed->length, room, "%s=%s;", p->name, text.value);
        agreed->length += length < 0 || (size_t)length >= room ? 0 : (size_t)length;
        agreed->text[agreed->length] = '\0';
    }
}

uint64_t ibshift_params_agreed(char *text, size_t size)
{
    struct agreed agreed = {.sum = IBSHIFT_DIGEST, .text = text, .size = size};

    text[0] = '\0';
    visit_rows(add_agreed, &agreed);
    for (size_t i = 0; i < ibshift_alg_count; i++) {
        const char *name = ibshift_alg_table[i]->name;

        agreed.sum = ibshift_digest(agreed.sum, name, strlen(name) + 1);
    }
    return agreed.sum;
}

struct difference {
    const char *theirs, *ours;
    char *words;
    size_t size;
    bool is_found;
};

/* What an agreed text says of the row; it is silent about a default. */
static const char *value_in(const char *text, const char *name, const char *initial, int *length)
{
    size_t name_length = strlen(name);

    while ('\0' != *text) {
        size_t entry = strcspn(text, ";");

        if (0 == strncmp(text, name, name_length) && '=' == text[name_length]) {
            *length = (int)(entry - name_length - 1);
            return text + name_length + 1;
        }
        text += entry + (';' == text[entry]);
    }
    *length = (int)strlen(initial);
    return initial;
}

static void find_difference(void *context, const struct param *p)
{
    struct difference *difference = context;
    const char *theirs, *ours;
    int length, our_length;
    struct text text;

    if (!p->all_ranks || difference->is_found) {
        return;
    }
    read_text(p, &text);
    theirs = value_in(difference->theirs, p->name, text.initial, &length);
    ours = value_in(difference->ours, p->name, text.initial, &our_length);
    if (length != our_length || 0 != strncmp(theirs, ours, (size_t)length)) {
        snprintf(difference->words, difference->size, "its coll_ibshift_%s is %.*s, here %.*s",
                 p->name, length, theirs, our_length, ours);
        difference->is_found = true;
    }
}

bool ibshift_params_differ(const char *theirs, const char *ours, char *words, size_t size)
{
    struct difference difference = {.theirs = theirs, .ours = ours, .words = words, .size = size};

    visit_rows(find_difference, &difference);
    return difference.is_found;
}

static void compare(void *context, const struct param *p)
{
    ibshift_nearest_compare(context, p->name);
}

/* mpirun hands over whatever it was given; Open MPI is silent about names that nobody registers. */
static void check_names(void)
{
    for (char **entry = environ; NULL != *entry; entry++) {
        char word[64];
        struct ibshift_nearest nearest = {.word = word};

        if (0 != strncmp(*entry, PREFIX, sizeof(PREFIX) - 1)) {
            continue;
        }
        snprintf(word, sizeof(word), "%s", *entry + sizeof(PREFIX) - 1);
        word[strcspn(word, "=")] = '\0';
        visit_rows(compare, &nearest);
        if (!nearest.is_known) {
            ibshift_help_once_a_job("unknown-parameter", word, nearest.name);
        }
    }
}

struct ibshift_wish ibshift_params_wish(enum ibshift_collective collective)
{
    struct ibshift_wish wish = {.radix = (uint32_t)ibshift_params.radix[collective],
                                .segment = ibshift_params.segment[collective]};
    int place = ibshift_params.algorithm[collective];

    for (size_t i = 0; place > 0 && i < ibshift_alg_count; i++) {
        if (ibshift_alg_table[i]->collective == collective && 0 == --place) {
            wish.alg = ibshift_alg_table[i];
        }
    }
    return wish;
}

static void contradiction(const char *which)
{
    ibshift_help_once_a_job("contradiction", which, "without it");
}

static void check_collective(enum ibshift_collective collective)
{
    const struct ibshift_alg *forced = ibshift_params_wish(collective).alg;
    const char *name = ibshift_collective_name(collective);
    char which[256];

    if (NULL == forced) {
        return;
    }
    if (ibshift_params.radix[collective] > 0 && 0 == forced->radix_max) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_radix = %d: coll_ibshift_%s_algorithm = %s has no radix", name,
                 ibshift_params.radix[collective], name, forced->name);
        contradiction(which);
    }
    if (ibshift_params.segment[collective] > 0 && 0 == (forced->flags & IBSHIFT_ALG_SEGMENTS)) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_%s_segment = %zu: coll_ibshift_%s_algorithm = %s has no segments",
                 name, ibshift_params.segment[collective], name, forced->name);
        contradiction(which);
    }
}

void ibshift_params_check(void)
{
    char which[256], path[PATH_MAX];

    check_names();
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        check_collective((enum ibshift_collective)i);
    }
    if ('\0' == ibshift_params.fabric[0] &&
        !ibshift_params_site_file("fabric", path, sizeof(path)) &&
        0 != strcmp(ibshift_params.order, "auto") && 0 != strcmp(ibshift_params.order, "rank")) {
        snprintf(which, sizeof(which),
                 "coll_ibshift_order = %.100s: there is no coll_ibshift_fabric to order",
                 ibshift_params.order);
        contradiction(which);
    }
}

bool ibshift_params_site_file(const char *name, char *path, size_t size)
{
    return '\0' != ibshift_params.site[0] &&
           (size_t)snprintf(path, size, "%s/%s", ibshift_params.site, name) < size &&
           0 == access(path, F_OK);
}

bool ibshift_params_may_open(const char *path, char *why, size_t size)
{
    struct stat info;

    if (0 != stat(path, &info) || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        return true;
    }
    snprintf(why, size, "%.200s: not a file, but a pipe or a device", path);
    return false;
}

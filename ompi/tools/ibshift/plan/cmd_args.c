/* The command line of `ibshift plan`: words, options, and what must fit together once all are read. */
#include "plan/cmd.h"

#include <stdlib.h>
#include <string.h>

static int take_collective(struct plan_args *args, const char *text)
{
    const char *names[IBSHIFT_COLLECTIVES];

    args->collective = ibshift_collective_find(text);
    if (args->collective >= 0) {
        return CLI_OK;
    }
    for (int i = 0; i < IBSHIFT_COLLECTIVES; i++) {
        names[i] = ibshift_collective_name((enum ibshift_collective)i);
    }
    return cli_unknown(args->command, "unknown collective", text, names, IBSHIFT_COLLECTIVES,
                       "ibshift plan list shows them");
}

static int take_algorithm(struct plan_args *args, const char *text)
{
    enum ibshift_collective collective = (enum ibshift_collective)args->collective;
    const char *names[128];
    char list[64];
    size_t count = 0;

    args->alg = ibshift_alg_find(collective, text);
    if (args->alg != NULL) {
        return CLI_OK;
    }
    for (size_t i = 0; i < ibshift_alg_count && count < 128; i++) {
        if (ibshift_alg_table[i]->collective == collective) {
            names[count++] = ibshift_alg_table[i]->name;
        }
    }
    snprintf(list, sizeof(list), "ibshift plan list %s shows them",
             ibshift_collective_name(collective));
    return cli_unknown(args->command, "unknown algorithm", text, names, count, list);
}

/* A word that is no option; context: the arguments. */
static int plan_args_operand(void *context, const char *text)
{
    struct plan_args *args = context;
    const struct plan_command *command = args->row;

    if (args->collective < 0 && command->operands[0] != '\0') {
        return take_collective(args, text);
    }
    if (args->collective >= 0 && args->alg == NULL && strlen(command->operands) == 2) {
        return take_algorithm(args, text);
    }
    return cli_error(args->command, "unexpected word '%.40s'; ibshift %s --help", text,
                     args->command);
}

/* An option that the algorithm does not read would be believed to have worked. */
static int check_unread(const struct plan_args *args)
{
    uint32_t flags = args->alg->flags;
    const char *unread =
        args->has_radix && args->alg->radix_max == 0                       ? "radix"
        : args->plan.segments > 1 && (flags & IBSHIFT_ALG_SEGMENTS) == 0   ? "segments"
        : args->plan.multicast > 0 && (flags & IBSHIFT_ALG_MULTICAST) == 0 ? "multicast"
        : args->has_leaders && (flags & IBSHIFT_ALG_LEADERS) == 0          ? "leaders"
        : args->nodes_text != NULL && (flags & IBSHIFT_ALG_NODES) == 0 &&
                strchr(args->row->options, 'C') == NULL
            ? "nodes"
        : args->per_host > 0 && (flags & IBSHIFT_ALG_NODES) == 0 &&
                strchr(args->row->options, 'C') == NULL
            ? "per-host"
        : args->piece > 0 && (flags & IBSHIFT_ALG_FREE) == 0             ? "piece"
        : args->order_text != NULL && (flags & IBSHIFT_ALG_ORDER) == 0   ? "order"
        : args->stages_path != NULL && (flags & IBSHIFT_ALG_STAGES) == 0 ? "stages"
        : args->split != 0 && (flags & IBSHIFT_ALG_SPLIT) == 0           ? "split"
                                                                         : NULL;

    if (unread != NULL) {
        return cli_error(args->command, "%s %s takes no --%s",
                         ibshift_collective_name(args->alg->collective), args->alg->name, unread);
    }
    if (args->ranks_last != args->plan.ranks) {
        return cli_error(args->command, "--ranks %u..%u: only compare takes a range",
                         args->plan.ranks, args->ranks_last);
    }
    return CLI_OK;
}

static int plan_args_finish(struct plan_args *args)
{
    const struct plan_command *command = args->row;

    if (command->operands[0] == 'C' && args->collective < 0) {
        return cli_error(args->command, "name a collective; ibshift plan list shows them");
    }
    if (command->operands[0] == 'C' && command->operands[1] == 'A' && args->alg == NULL) {
        return cli_error(args->command, "name an algorithm; ibshift plan list %s shows them",
                         ibshift_collective_name((enum ibshift_collective)args->collective));
    }
    if (args->rank >= (long)args->plan.ranks) {
        return cli_error(args->command, "rank %ld of %u ranks: must be 0 to %u", args->rank,
                         args->plan.ranks, args->plan.ranks - 1);
    }
    if ((args->alg != NULL && check_unread(args) != CLI_OK) || plan_args_hosts(args) != CLI_OK ||
        (args->split != 0 && plan_args_split(args) != CLI_OK) ||
        (args->stages_path != NULL && plan_args_stages(args) != CLI_OK)) {
        return CLI_USAGE;
    }
    return args->order_text != NULL ? plan_args_order(args) : CLI_OK;
}

static int take_ranks(const struct plan_args *args, const char *text, uint32_t low, uint32_t high,
                      uint32_t *value)
{
    char wanted[64];
    long number;

    if (cli_parse_long(text, low, high, &number) != 0) {
        snprintf(wanted, sizeof(wanted), "a whole number from %u to %u", low, high);
        return cli_bad_value(args->command, "--ranks", text, wanted);
    }
    *value = (uint32_t)number;
    return CLI_OK;
}

static int set_ranks(void *where, const char *text)
{
    struct plan_args *args = where;
    uint32_t *first = &args->plan.ranks, *last = &args->ranks_last;
    const char *dots = strstr(text, "..");
    char start[32];
    int rc;

    args->has_ranks = true;
    snprintf(start, sizeof(start), "%.*s",
             (int)(dots != NULL ? dots - text : (ptrdiff_t)strlen(text)), text);
    rc = take_ranks(args, start, 1, IBSHIFT_RANKS_MAX, first);
    *last = *first;
    return rc != CLI_OK || dots == NULL ? rc
                                        : take_ranks(args, dots + 2, *first, *first + 4095, last);
}

static int set_rank(void *where, const char *text)
{
    struct plan_args *args = where;

    if (strcmp(text, "all") == 0) {
        args->rank = -1;
        return CLI_OK;
    }
    return cli_parse_long(text, 0, IBSHIFT_RANKS_MAX - 1, &args->rank) == 0
               ? CLI_OK
               : cli_bad_value(args->command, "--rank", text, "a rank or 'all'");
}

static int add_size(struct plan_args *args, uint64_t size)
{
    if (args->size_count == PLAN_SIZES_MAX) {
        return cli_error(args->command, "--bytes: more than %d sizes", PLAN_SIZES_MAX);
    }
    args->sizes[args->size_count++] = size;
    return CLI_OK;
}

static int set_sizes(void *where, const char *text)
{
    struct plan_args *args = where;
    static const char wanted[] =
        "sizes up to 1024G: '8', '8,4K,1M' or '8..1M' (doubling), suffixes K, M, G";

    args->has_sizes = true;
    args->size_count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const char *dots = memmem(at, length, "..", 2);
        uint64_t first, last;
        int rc = CLI_OK;

        if (cli_parse_bytes(at, dots != NULL ? (size_t)(dots - at) : length, &first) != 0) {
            return cli_bad_value(args->command, "--bytes", text, wanted);
        }
        last = first;
        if (dots != NULL &&
            (cli_parse_bytes(dots + 2, length - (size_t)(dots + 2 - at), &last) != 0 ||
             last < first || first == 0)) {
            return cli_bad_value(args->command, "--bytes", text, wanted);
        }
        do {
            rc = add_size(args, first);
            first *= 2;
        } while (rc == CLI_OK && first <= last && first > 0);
        at += length;
        if (rc != CLI_OK || *at == '\0') {
            return rc;
        }
    }
}

static const struct named_model {
    const char *name, *source;
    const struct ibshift_model *model;
} named_models[] = {
    {"typical", "typical values, not measured", &ibshift_model_typical},
    {"software", "typical values of a device in software, not measured", &ibshift_model_software},
    {"example", "a published example, not measured", &ibshift_model_example},
};

static int set_params(void *where, const char *text)
{
    struct plan_args *args = where;
    char error[IBSHIFT_TEXT_ERROR];

    for (size_t i = 0; i < sizeof(named_models) / sizeof(named_models[0]); i++) {
        if (strcmp(named_models[i].name, text) == 0) {
            args->model = *named_models[i].model;
            args->model_source = named_models[i].source;
            return CLI_OK;
        }
    }
    if (ibshift_model_read(text, &args->model, error) != 0) {
        return cli_error(args->command, "%s", error);
    }
    args->model_source = text;
    return CLI_OK;
}

static int set_node_params(void *where, const char *text)
{
    struct plan_args *args = where;
    char error[IBSHIFT_TEXT_ERROR];
    struct ibshift_costs costs;

    args->is_one_level = strcmp(text, "none") == 0;
    if (args->is_one_level || strcmp(text, "typical") == 0) {
        args->near = ibshift_model_node;
        return CLI_OK;
    }
    if (ibshift_costs_read(text, &costs, error) != 0) {
        return cli_error(args->command, "%s", error);
    }
    args->near = costs.has_near ? costs.near : costs.far;
    return CLI_OK;
}

static const char *const model_words[] = {"combined", "loggp", "logfp", NULL};
static const char *const split_words[] = {"half", "optimal", NULL};

enum { ROWS_MOST = 40 };

/* What the plan is. */
static size_t plan_rows(struct plan_args *args, struct cli_option *to)
{
    const struct cli_option rows[] = {
        {"--ranks", 'P', CLI_TAKEN, "N",
         "number of ranks; compare, rules: also a range, 2..64 (default: 8)", .where = args,
         .take = set_ranks},
        {"--rank", 'r', CLI_TAKEN, "RANK", "the steps of this rank only (default: all)",
         .where = args, .take = set_rank},
        {"--root", 'R', CLI_WHOLE, "RANK", "the root of a rooted collective (default: 0)",
         .where = &args->plan.root, .low = 0, .high = IBSHIFT_RANKS_MAX - 1},
        {"--radix", 'k', CLI_WHOLE, "K",
         "messages a rank sends in one round; trees have base K + 1 (default: 1)",
         .where = &args->plan.radix, .low = 1, .high = IBSHIFT_RADIX_MAX},
        {"--segments", 'S', CLI_WHOLE, "N",
         "segments of a pipelined vector (default: 1; compare: the best)",
         .where = &args->plan.segments, .low = 1, .high = IBSHIFT_SEGMENTS_MAX},
        {"--non-commutative", 'c', CLI_FLAG, NULL, "the reduction's operator does not commute",
         .where = &args->is_non_commutative},
        {"--order", 'O', CLI_TEXT, "LIST",
         "ranks along the routing order, '-' keeps a place: 4,1,0,-,2,3",
         .where = &args->order_text},
        {"--slots", 'l', CLI_WHOLE, "N", "ranks per node in --order (default: 1)",
         .where = &args->order.slots, .low = 1, .high = 1024},
        {"--step", 'b', CLI_WHOLE, "N", "stage s of --order goes s * N nodes on (default: 1)",
         .where = &args->order.step, .low = 1, .high = IBSHIFT_RANKS_MAX},
        {"--stages", 'T', CLI_TEXT, "FILE",
         "one line per rank: the rank it sends to in each stage, '-' for none",
         .where = &args->stages_path},
        {"--per-host", 'H', CLI_WHOLE, "N", "ranks that share a host (default: 1)",
         .where = &args->per_host, .low = 1, .high = IBSHIFT_RANKS_MAX},
        {"--dealt", 'D', CLI_FLAG, NULL, "ranks are dealt to the hosts in turn, not in rank order",
         .where = &args->is_dealt},
        {"--nodes", 'N', CLI_TEXT, "LIST", "the host of each rank, by number: 0,1,0,1",
         .where = &args->nodes_text},
        {"--leaders", 'L', CLI_WHOLE, "N", "ranks of a host that send to other hosts (default: 1)",
         .where = &args->plan.leaders, .low = 1, .high = IBSHIFT_LEADERS_MAX},
        {"--multicast", 'G', CLI_WHOLE, "BYTES",
         "the ranks have a multicast group whose datagrams carry so many bytes (default: 0: none)",
         .where = &args->plan.multicast, .high = 4096},
        {"--fabric", 'f', CLI_TEXT, "FABRIC",
         "a rank on each of its hosts, or --per-host: what they share of its links takes time",
         .where = &args->fabric_text},
        {"--hosts", 'A', CLI_TEXT, "HOSTS", "--fabric: on these hosts, as in ibshift-fabric(1)",
         .where = &args->hosts_text},
        {"--split", 'x', CLI_CHOICE, "NAME",
         "how 'split' cuts: half, or optimal under LogGP for --bytes and --params (default: half)",
         .where = &args->split, .words = split_words},
    };

    memcpy(to, rows, sizeof(rows));
    return sizeof(rows) / sizeof(rows[0]);
}

/* What it moves, and what is done with it. */
static size_t use_rows(struct plan_args *args, struct cli_option *to)
{
    const struct cli_option rows[] = {
        {"--bytes", 'm', CLI_TAKEN, "SIZES",
         "bytes of a block (of the vector for bcast and reductions): 8,4K or 8..1M", .where = args,
         .take = set_sizes},
        {"--element", 'e', CLI_WHOLE, "BYTES",
         "bytes of an element: vectors are cut at whole ones (default: 1)", .where = &args->element,
         .low = 1, .high = 1 << 20},
        {"--window", 'w', CLI_WHOLE, "N",
         "messages in flight per rank and direction (default: 32, as in a job)",
         .where = &args->window, .low = 1, .high = 256},
        {"--piece", 'z', CLI_WHOLE, "BYTES",
         "cut long messages into pieces, as coll_ibshift_pace does (compare: of an all-to-all "
         "whose steps do not wait for others)",
         .where = &args->piece, .low = 256, .high = 1 << 20},
        {"--processors", 'C', CLI_WHOLE, "N", "processors of a host (default: 1)",
         .where = &args->processors, .low = 1, .high = 65536},
        {"--goal", 'g', CLI_FLAG, NULL,
         "as GOAL, which LogGOPSim reads, with the bytes of --bytes and the local steps' times",
         .where = &args->is_goal},
        {"--msccl", 'X', CLI_FLAG, NULL, "as XML of MSCCL", .where = &args->is_msccl},
        {"--file", 'F', CLI_TEXT, "FILE",
         "the plan of this XML of MSCCL ('-': stdin), in place of names", .where = &args->file},
        {"--in-place", 'i', CLI_FLAG, NULL, "check as for MPI_IN_PLACE", .where = &args->in_place},
        {"--params", 'p', CLI_TAKEN, "FILE",
         "the model's parameters, or typical, software or example (default: typical)",
         .where = args, .take = set_params},
        {"--node-params", 'n', CLI_TAKEN, "FILE",
         "the same for ranks of one host, or typical, or none: as between hosts (default: typical)",
         .where = args, .take = set_node_params},
        {"--model", 'M', CLI_CHOICE, "NAME", "combined, loggp or logfp", .where = &args->which,
         .words = model_words},
        cli_json_option(&args->is_json),
        cli_output_option(&args->output, "the file to write (default: the terminal)"),
    };

    memcpy(to, rows, sizeof(rows));
    return sizeof(rows) / sizeof(rows[0]);
}

/* All rows, then those that the command takes. */
static void fill_rows(struct plan_args *args, struct cli_option rows[ROWS_MOST])
{
    size_t count = plan_rows(args, rows), kept = 0;

    count += use_rows(args, rows + count);
    for (size_t i = 0; i < count; i++) {
        if (strchr(args->row->options, rows[i].letter) != NULL) {
            rows[kept++] = rows[i];
        }
    }
    rows[kept] = (struct cli_option){.name = NULL};
}

static const char print_reads[] =
    "--bytes and --params go with --goal or --split optimal, --element with --goal";

static void print_epilogue(void)
{
    putchar('\n');
    cli_print_help(stdout, "", 0, print_reads);
}

/* print and check need no sizes and no costs but for these two; a cut is for one size. */
static int check_sizes(const struct plan_args *args)
{
    bool is_print = strchr(args->row->options, 'g') != NULL, is_optimal = args->split != 0;
    bool is_unread =
        (is_print || strchr(args->row->options, 's') != NULL) && !args->is_goal &&
        ((!is_optimal && (args->has_sizes || args->model_source != NULL)) || args->element > 0);

    if (is_unread) {
        return cli_error(args->command, "%s",
                         is_print ? print_reads : "--bytes and --params go with --split optimal");
    }
    return (args->is_goal || is_optimal) && args->size_count > 1
               ? cli_error(args->command, "%s: one size, not %d",
                           args->is_goal ? "--goal" : "--split optimal", args->size_count)
               : CLI_OK;
}

/* What was not given, and what follows from what was. */
static int complete(struct plan_args *args)
{
    int rc = check_sizes(args);

    if (rc == CLI_OK && args->model_source == NULL) {
        rc = set_params(args, "typical");
    }
    args->element = args->element > 0 ? args->element : 1;
    args->has_radix = args->plan.radix > 0;
    args->plan.radix = args->has_radix ? args->plan.radix : 1;
    args->has_segments = args->plan.segments > 0;
    args->plan.segments = args->has_segments ? args->plan.segments : 1;
    args->has_leaders = args->plan.leaders > 0;
    args->plan.leaders = args->has_leaders ? args->plan.leaders : 1;
    args->plan.commutative = !args->is_non_commutative;
    rc = rc == CLI_OK ? plan_fabric_open(args) : rc;
    rc = rc == CLI_OK ? plan_file_open(args) : rc;
    return rc == CLI_OK ? plan_args_finish(args) : rc;
}

int plan_args_parse(struct plan_args *args, const struct plan_command *command, int argc,
                    char **argv, bool *is_helped)
{
    static char title[32];
    static const char *const operands[] = {"[COLLECTIVE]", "COLLECTIVE", "COLLECTIVE ALGORITHM"};
    struct cli_option rows[ROWS_MOST];
    struct cli_args cli = {
        .command = title,
        .usage = operands[command->operands[0] == 'c' ? 0 : strlen(command->operands)],
        .summary = command->summary,
        .options = rows,
        .word = plan_args_operand,
        .epilogue = strchr(command->options, 'g') != NULL ? print_epilogue : NULL,
        .context = args};
    int rc;

    snprintf(title, sizeof(title), "plan %s", command->name);
    *args = (struct plan_args){
        .command = title,
        .row = command,
        .collective = -1,
        .plan = {.ranks = 8},
        .order = {.slots = 1, .step = 1},
        .ranks_last = 8,
        .rank = -1,
        .sizes = {8},
        .size_count = 1,
        .window = 32,
        .processors = 1,
        .near = ibshift_model_node,
        .which = -1,
    };
    fill_rows(args, rows);
    rc = cli_parse(&cli, argc, argv);
    *is_helped = cli.helped;
    return rc != CLI_OK || cli.helped ? rc : complete(args);
}

void plan_args_end(struct plan_args *args)
{
    plan_hosts_free(&args->hosts);
    plan_fabric_close(args->fabric);
    plan_file_close(args);
    free(args->order_memory);
    free(args->stages_memory);
    free(args->split_memory);
}

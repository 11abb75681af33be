/* The options of `ibshift plan`: one table is parser, help and, by test/lint/man, the man page. */
#include "plan/cmd.h"

#include <stdlib.h>
#include <string.h>

struct option_row {
    char letter;
    const char *name;
    const char *value; /* placeholder, NULL: takes none */
    const char *help;
    int (*set)(struct plan_args *args, const char *value);
};

static int bad(const struct plan_args *args, const char *option, const char *value,
               const char *wanted)
{
    return cli_error(args->command, "%s '%.40s': must be %s", option, value, wanted);
}

static int set_u32(struct plan_args *args, const char *option, const char *text, long low,
                   long high, uint32_t *value)
{
    char wanted[64];
    long number;

    if (cli_parse_long(text, low, high, &number) != 0) {
        snprintf(wanted, sizeof(wanted), "a whole number from %ld to %ld", low, high);
        return bad(args, option, text, wanted);
    }
    *value = (uint32_t)number;
    return CLI_OK;
}

static int set_ranks(struct plan_args *args, const char *text)
{
    const char *dots = strstr(text, "..");
    char first[32];
    int rc;

    args->has_ranks = true;
    if (dots == NULL) {
        rc = set_u32(args, "--ranks", text, 1, IBSHIFT_RANKS_MAX, &args->plan.ranks);
        args->ranks_last = args->plan.ranks;
        return rc;
    }
    snprintf(first, sizeof(first), "%.*s", (int)(dots - text), text);
    rc = set_u32(args, "--ranks", first, 1, IBSHIFT_RANKS_MAX, &args->plan.ranks);
    return rc != CLI_OK ? rc
                        : set_u32(args, "--ranks", dots + 2, (long)args->plan.ranks,
                                  (long)args->plan.ranks + 4095, &args->ranks_last);
}

static int set_rank(struct plan_args *args, const char *text)
{
    if (strcmp(text, "all") == 0) {
        args->rank = -1;
        return CLI_OK;
    }
    return cli_parse_long(text, 0, IBSHIFT_RANKS_MAX - 1, &args->rank) == 0
               ? CLI_OK
               : bad(args, "--rank", text, "a rank or 'all'");
}

static int set_root(struct plan_args *args, const char *text)
{
    return set_u32(args, "--root", text, 0, IBSHIFT_RANKS_MAX - 1, &args->plan.root);
}

static int set_radix(struct plan_args *args, const char *text)
{
    args->has_radix = true;
    return set_u32(args, "--radix", text, 1, IBSHIFT_RADIX_MAX, &args->plan.radix);
}

static int set_segments(struct plan_args *args, const char *text)
{
    return set_u32(args, "--segments", text, 1, IBSHIFT_SEGMENTS_MAX, &args->plan.segments);
}

static int set_non_commutative(struct plan_args *args, const char *text)
{
    (void)text;
    args->plan.commutative = false;
    return CLI_OK;
}

static int parse_size(const char *text, size_t length, uint64_t *size)
{
    char *end;
    unsigned long long number;
    unsigned shift;

    if (length == 0 || text[0] < '0' || text[0] > '9') {
        return -1;
    }
    number = strtoull(text, &end, 10);
    shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift > 0;
    if (end != text + length || number > (UINT64_C(1) << 40) >> shift) {
        return -1;
    }
    *size = (uint64_t)number << shift;
    return 0;
}

static int add_size(struct plan_args *args, uint64_t size)
{
    if (args->size_count == PLAN_SIZES_MAX) {
        return cli_error(args->command, "--bytes: more than %d sizes", PLAN_SIZES_MAX);
    }
    args->sizes[args->size_count++] = size;
    return CLI_OK;
}

static int set_sizes(struct plan_args *args, const char *text)
{
    static const char wanted[] =
        "sizes up to 1024G: '8', '8,4K,1M' or '8..1M' (doubling), suffixes K, M, G";

    args->size_count = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        const char *dots = memmem(at, length, "..", 2);
        uint64_t first, last;
        int rc = CLI_OK;

        if (parse_size(at, dots != NULL ? (size_t)(dots - at) : length, &first) != 0) {
            return bad(args, "--bytes", text, wanted);
        }
        last = first;
        if (dots != NULL && (parse_size(dots + 2, length - (size_t)(dots + 2 - at), &last) != 0 ||
                             last < first || first == 0)) {
            return bad(args, "--bytes", text, wanted);
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

static int set_element(struct plan_args *args, const char *text)
{
    return set_u32(args, "--element", text, 1, 1 << 20, &args->element);
}

static int set_window(struct plan_args *args, const char *text)
{
    return set_u32(args, "--window", text, 1, 256, &args->window);
}

static int set_per_host(struct plan_args *args, const char *text)
{
    return set_u32(args, "--per-host", text, 1, IBSHIFT_RANKS_MAX, &args->per_host);
}

static int set_processors(struct plan_args *args, const char *text)
{
    return set_u32(args, "--processors", text, 1, 65536, &args->processors);
}

static int set_in_place(struct plan_args *args, const char *text)
{
    (void)text;
    args->in_place = true;
    return CLI_OK;
}

static int set_seed(struct plan_args *args, const char *text)
{
    uint32_t seed = 0;
    int rc = set_u32(args, "--seed", text, 1, INT32_MAX, &seed);

    args->seed = seed;
    return rc;
}

static const struct named_model {
    const char *name, *source;
    const struct ibshift_model *model;
} named_models[] = {
    {"typical", "typical values, not measured", &ibshift_model_typical},
    {"software", "typical values of a device in software, not measured", &ibshift_model_software},
    {"example", "a published example, not measured", &ibshift_model_example},
};

static int set_params(struct plan_args *args, const char *text)
{
    char error[IBSHIFT_MODEL_ERROR_SIZE];

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

static int choose(struct plan_args *args, const char *option, const char *text,
                  const char *const *names, int count, int *value)
{
    char wanted[80] = "one of:";

    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], text) == 0) {
            *value = i;
            return CLI_OK;
        }
        snprintf(wanted + strlen(wanted), sizeof(wanted) - strlen(wanted), "%s %s",
                 i > 0 ? "," : "", names[i]);
    }
    return bad(args, option, text, wanted);
}

static int set_model(struct plan_args *args, const char *text)
{
    static const char *const names[] = {"combined", "loggp", "logfp"};

    return choose(args, "--model", text, names, PLAN_MODELS, &args->which);
}

static int set_picture(struct plan_args *args, const char *text)
{
    static const char *const names[] = {"data", "time", "tree"};
    int value = args->picture;
    int rc = choose(args, "--picture", text, names, 3, &value);

    args->picture = (enum plan_picture)value;
    return rc;
}

static int set_format(struct plan_args *args, const char *text)
{
    static const char *const names[] = {"text", "svg", "dot"};

    return choose(args, "--format", text, names, 3, &args->format);
}

static int set_split(struct plan_args *args, const char *text)
{
    static const char *const names[] = {"half", "optimal"};
    int value = 0;
    int rc = choose(args, "--split", text, names, 2, &value);

    args->is_split_optimal = value == 1;
    return rc;
}

static int set_json(struct plan_args *args, const char *text)
{
    (void)text;
    args->format = PLAN_JSON;
    return CLI_OK;
}

static int set_table(struct plan_args *args, const char *text)
{
    (void)text;
    args->has_table = true;
    return CLI_OK;
}

static int set_output(struct plan_args *args, const char *text)
{
    args->output = text;
    return CLI_OK;
}

static int set_slots(struct plan_args *args, const char *text)
{
    return set_u32(args, "--slots", text, 1, 1024, &args->order.slots);
}

static int set_order(struct plan_args *args, const char *text)
{
    args->order_text = text;
    return CLI_OK;
}

static int set_stages(struct plan_args *args, const char *text)
{
    args->stages_path = text;
    return CLI_OK;
}

static const struct option_row rows[] = {
    {'P', "ranks", "N", "number of ranks (8); compare: also a range, 2..64", set_ranks},
    {'r', "rank", "RANK", "the steps of this rank only ('all')", set_rank},
    {'R', "root", "RANK", "the root of a rooted collective (0)", set_root},
    {'k', "radix", "K", "messages a rank sends in one round (1); trees have base K + 1", set_radix},
    {'S', "segments", "N", "pieces of a pipelined vector (1)", set_segments},
    {'c', "non-commutative", NULL, "the reduction's operator does not commute",
     set_non_commutative},
    {'O', "order", "LIST", "ranks along the routing order, '-' keeps a place: 4,1,0,-,2,3",
     set_order},
    {'l', "slots", "N", "ranks a node in --order (1)", set_slots},
    {'T', "stages", "FILE", "a line a rank: whom it sends to in each stage, '-' for nobody",
     set_stages},
    {'x', "split", "NAME", "how 'split' cuts: half, or optimal under LogGP for these bytes (half)",
     set_split},
    {'m', "bytes", "SIZES",
     "bytes of a block (of the vector for bcast and reductions): 8,4K or 8..1M", set_sizes},
    {'e', "element", "N", "bytes of an element: vectors are cut at whole ones (1)", set_element},
    {'w', "window", "N",
     "messages in flight a rank and direction (32 as in a job; 256 with --table)", set_window},
    {'H', "per-host", "N", "ranks that share a host and its port, in rank order (each has its own)",
     set_per_host},
    {'C', "processors", "N", "processors of a host (1)", set_processors},
    {'i', "in-place", NULL, "check as for MPI_IN_PLACE", set_in_place},
    {'s', "seed", "N", "check in a random legal order instead of the deciding one", set_seed},
    {'p', "params", "FILE",
     "parameters of the model, or typical (the component's), software or example (--table)",
     set_params},
    {'M', "model", "NAME", "combined, loggp or logfp", set_model},
    {'t', "table", NULL,
     "the published closed formulas beside the simulation, for the -P, -k and -M given or all of "
     "the publication (compare: dots in the picture)",
     set_table},
    {'d', "picture", "NAME", "data (what each rank holds), time (space-time diagram) or tree",
     set_picture},
    {'f', "format", "NAME", "text, svg or dot", set_format},
    {'j', "json", NULL, "machine-readable", set_json},
    {'o', "output", "FILE", "write there instead of the terminal", set_output},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

void plan_usage_options(FILE *out, const struct plan_command *command)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct option_row *row = &rows[i];

        if (strchr(command->options, row->letter) != NULL) {
            char left[40];

            snprintf(left, sizeof(left), "  -%c, --%s %s", row->letter, row->name,
                     row->value != NULL ? row->value : "");
            cli_print_help(out, left, 25, row->help);
        }
    }
    cli_print_help(out, "  -h, --help", 25, "this text");
}

static const struct option_row *find_row(const struct plan_command *command, const char *text,
                                         size_t length)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        bool is_long = strncmp(text, "--", 2) == 0 && strlen(rows[i].name) == length - 2 &&
                       strncmp(rows[i].name, text + 2, length - 2) == 0;
        bool is_short = length == 2 && text[1] == rows[i].letter;

        if ((is_long || is_short) && strchr(command->options, rows[i].letter) != NULL) {
            return &rows[i];
        }
    }
    return NULL;
}

static int unknown_option(const struct plan_args *args, const struct plan_command *command,
                          const char *text, size_t length)
{
    const char *names[ROW_COUNT], *nearest;
    char name[40];
    size_t count = 0;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strchr(command->options, rows[i].letter) != NULL) {
            names[count++] = rows[i].name;
        }
    }
    snprintf(name, sizeof(name), "%.*s", (int)length, text);
    nearest = cli_nearest(name + strspn(name, "-"), names, count);
    return nearest != NULL
               ? cli_error(args->command, "unknown option '%s': did you mean '--%s'?", name,
                           nearest)
               : cli_error(args->command, "unknown option '%s'; --help lists them", name);
}

/* Takes one option; *at is its place and then that of its value. */
static int take_option(struct plan_args *args, const struct plan_command *command, int argc,
                       char **argv, int *at)
{
    const char *text = argv[*at], *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
    const struct option_row *row = find_row(command, text, length);

    if (row == NULL) {
        return unknown_option(args, command, text, length);
    }
    if (row->value == NULL) {
        return equals == NULL ? row->set(args, NULL)
                              : cli_error(args->command, "--%s takes no value", row->name);
    }
    if (equals != NULL) {
        return row->set(args, equals + 1);
    }
    if (*at + 1 == argc) {
        return cli_error(args->command, "--%s needs a value: %s", row->name, row->help);
    }
    return row->set(args, argv[++*at]);
}

int plan_args_parse(struct plan_args *args, const struct plan_command *command, int argc,
                    char **argv)
{
    static char title[32];
    int rc = CLI_OK;

    snprintf(title, sizeof(title), "plan %s", command->name);
    *args = (struct plan_args){
        .command = title,
        .collective = -1,
        .plan = {.ranks = 8, .radix = 1, .segments = 1, .commutative = true},
        .order = {.slots = 1},
        .ranks_last = 8,
        .rank = -1,
        .sizes = {8},
        .size_count = 1,
        .element = 1,
        .processors = 1,
        .which = -1,
        .format = -1,
    };
    for (int i = 1; i < argc && rc == CLI_OK; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return -1;
        }
        rc = argv[i][0] == '-' && argv[i][1] != '\0' ? take_option(args, command, argc, argv, &i)
                                                     : plan_args_operand(args, command, argv[i]);
    }
    if (rc == CLI_OK && args->model_source == NULL) {
        rc = set_params(args, args->has_table ? "example" : "typical");
    }
    if (args->window == 0) { /* the formulas know none */
        args->window = args->has_table ? 256 : 32;
    }
    return rc == CLI_OK ? plan_args_finish(args, command) : rc;
}

void plan_args_end(struct plan_args *args)
{
    free(args->order_memory);
    free(args->stages_memory);
    free(args->split_memory);
}

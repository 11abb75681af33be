/* Options of `ibshift sim`. */
#include "sim/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/matrix.h"

enum {
    EAGER = 16384,       /* as the component does */
    OTHERS_EAGER = 8192, /* UCX and openib send about so many without asking */
    WORDS_MAX = 64,      /* of a line of --jobs */
};

const char *const sim_chooser_names[] = {"queues", "credits", "chance", NULL};
const char *const sim_pattern_names[] = {"random", "shift", "reversal", "transpose", NULL};

/* What the options below are read into. */
static struct sim_command given = {
    .pattern = -1,
    .seed = 1,
    .control = 0.1,
    .fabric = {.mtu = 2048, .buffer = 51200, .lanes = 1, .reads = 3},
    .net = {.copy_rate = 80000, .memory_rate = 400000, .copy_flight = 120000},
    .flight = 25,
    .routing = 100,
    .calls = 1,
    .jobs = 1,
    .fragment = 36,
    .fragment_deviation = 10,
    .warm = 100,
    .span = 200};
static const char *rare, *fragments, *burst;

/* Which job, what it does, how it is told: what each line of --jobs FILE may say. */
static const struct cli_option job_options[] = {
    FABRIC_JOB_OPTIONS(given.job),
    FABRIC_JOB_ORDER_OPTION(given.order),
    {"--schedule", 0, CLI_FLAG, NULL,
     "a table of stages (default: the order or table that costs least)", .where = &given.schedule},
    {"--plan", 0, CLI_TEXT, "NAME", "COLLECTIVE/ALGORITHM[:RADIX] instead of an all-to-all",
     .where = &given.plan},
    FABRIC_JOB_LEADERS_OPTION(given.job),
    FABRIC_JOB_SEGMENTS_OPTION(given.job, "what a job would choose"),
    FABRIC_JOB_LID_OPTION(given.job),
    {"--as", 0, CLI_TEXT, "PEER",
     "what a library does: ompi, mpich, ucc, linear, pairwise or scattered:W", .where = &given.as},
    {"--place", 0, CLI_TEXT, "ORDER",
     "--as: the order in which ranks sit on the hosts, as of --order (default: rank)",
     .where = &given.place},
    {"--pace", 0, CLI_TEXT, "PACE",
     "none, auto or window:W[/BYTES] (default: auto, as in a job; with --window: none)",
     .where = &given.pace},
    {"--sizes", 0, CLI_TEXT, "SIZES", MATRIX_HELP, .where = &given.sizes},
    {"--unattended", 0, CLI_FLAG, NULL,
     "--pace auto chooses as for a nonblocking call: completions are not polled all the time",
     .where = &given.unattended},
    {"--calls", 0, CLI_WHOLE, "N", "that each rank makes, one after the other (default: 1)",
     .where = &given.calls, .low = 1, .high = 1e6},
    {"--verify", 0, CLI_FLAG, NULL, "move the bytes and check them (small jobs)",
     .where = &given.verify},
    {"--packets", 0, CLI_WHOLE_REAL, "N", "full packets of each message (default: 64)",
     .where = &given.packets, .low = 1, .high = 1e6},
    {"--size", 0, CLI_WHOLE_REAL, "BYTES", "bytes of each message, in place of --packets",
     .where = &given.size, .low = 1, .high = 1 << 30},
    {"--window", 0, CLI_WHOLE, "W", "sends and receives in flight (default: 32, as in a job)",
     .where = &given.window, .low = 1, .high = 256},
    {"--start", 0, CLI_REAL, "US", "when its ranks begin (default: 0)", .where = &given.start,
     .low = 0, .high = 1e9},
};

/* The hosts, the fabric, and what is told of them. */
static const struct cli_option other_options[] = {
    {"--rare", 0, CLI_TEXT, "SHARE:U",
     "before this share of messages the host pauses for the time of U messages", .where = &rare},
    {"--burst", 0, CLI_TEXT, "N",
     "packets, or bytes as in 16KiB, of one message that a host sends in its turn (default: 1)",
     .where = &burst},
    {"--svg", 0, CLI_OUTPUT, "FILE", "draw the links' use over time", .where = &given.svg},
    {"--until", 0, CLI_REAL, "US", "--svg: end of the time axis, unless the run ends later",
     .where = &given.until, .low = 0, .high = 1e12},
    {"--json", 'j', CLI_FLAG, NULL, "the same as a JSON object", .where = &given.json},
    {"--quiet", 0, CLI_FLAG, NULL, "no progress bar", .where = &given.quiet},
    /* Lanes, and how switches choose. */
    {"--adaptive", 0, CLI_FLAG, NULL,
     "switches choose among shortest routes, packet by packet, by the length of queues",
     .where = &given.fabric.is_adaptive},
    {"--adaptive-messages", 0, CLI_FLAG, NULL,
     "as --adaptive, but once per message: its packets all take one route",
     .where = &given.fabric.keeps_ways},
    {"--adaptive-by", 0, CLI_CHOICE, "NAME",
     "--adaptive: queues (fewest packets that wait), credits (most room behind the cable) or "
     "chance "
     "(default: queues)",
     .where = &given.fabric.chooser, .words = sim_chooser_names},
    {"--adaptive-lag", 0, CLI_WHOLE, "NS",
     "--adaptive: interval at which a switch learns the state of its ports (default: 0, at once)",
     .where = &given.lag, .low = 0, .high = 1e9},
    {"--adaptive-gap", 0, CLI_WHOLE, "NS",
     "--adaptive: a pair's packets keep their way until none has come for this long (default: 0)",
     .where = &given.gap, .low = 0, .high = 1e9},
    {"--adaptive-above", 0, CLI_FLAG, NULL,
     "--adaptive: above the leaves alone; what comes from a host goes by the tables",
     .where = &given.fabric.is_above_leaves},
    {"--torus-lanes", 0, CLI_FLAG, NULL, "two virtual lanes that keep a torus free of deadlock",
     .where = &given.torus_lanes},
    {"--sl", 0, CLI_TEXT, "FILE",
     "service level of each pair of hosts: path records, as ibshift fabric publish takes",
     .where = &given.sl},
    {"--sl2vl", 0, CLI_TEXT, "FILE",
     "SL-to-VL tables of the switches, opensm-sl2vl.dump (default: SL N uses VL N)",
     .where = &given.sl2vl},
    /* Numbers of the messages, the hosts and the fabric. */
    {"--seed", 0, CLI_WHOLE_REAL, "S", "seed of everything random (default: 1)",
     .where = &given.seed, .low = 0, .high = 9e15},
    {"--eager", 0, CLI_WHOLE_REAL, "BYTES",
     "messages up to this size wait for no grant (default: 16384; --as: 8192)",
     .where = &given.eager, .low = 256, .high = 1e12},
    {"--jitter", 0, CLI_REAL, "F", "a message leaves 0 .. 2F of its time late (default: 0)",
     .where = &given.jitter, .low = 0, .high = 1e3},
    {"--skew", 0, CLI_REAL, "U", "ranks begin within the time of U messages (default: 0)",
     .where = &given.skew, .low = 0, .high = 1e6},
    {"--control", 0, CLI_REAL, "U", "a grant takes the time of U messages (default: 0.1)",
     .where = &given.control, .low = 0, .high = 1e3},
    {"--grant-bytes", 0, CLI_WHOLE, "BYTES",
     "grants are packets on VL 1 (default: 0, beside the fabric)", .where = &given.net.grant_bytes,
     .low = 0, .high = 4096},
    {"--overhead", 0, CLI_WHOLE, "NS", "a processor's time for a post or a completion (default: 0)",
     .where = &given.overhead, .low = 0, .high = 1e9},
    {"--mtu", 0, CLI_WHOLE, "BYTES", "bytes of a full packet with its headers (default: 2048)",
     .where = &given.fabric.mtu, .low = 1, .high = SIM_MTU_MAX},
    {"--buffer", 0, CLI_WHOLE, "BYTES", "buffer of an input port (default: 51200)",
     .where = &given.fabric.buffer, .low = 0, .high = SIM_BUFFER_MAX},
    {"--lanes", 0, CLI_WHOLE, "N", "virtual lanes that share it (default: 1)",
     .where = &given.fabric.lanes, .low = 1, .high = SIM_LANES_MAX},
    {"--reads", 0, CLI_WHOLE, "N", "packets that leave an input at once (default: 3)",
     .where = &given.fabric.reads, .low = 1, .high = 255},
    {"--flight", 0, CLI_WHOLE, "NS", "time on a cable (default: 25)", .where = &given.flight,
     .low = 0, .high = 1e6},
    {"--routing", 0, CLI_WHOLE, "NS", "time in a switch (default: 100)", .where = &given.routing,
     .low = 0, .high = 1e6},
    {"--rate", 0, CLI_WHOLE, "MBPS", "Mb/s of data on all cables (default: of each cable)",
     .where = &given.fabric.rate, .low = 0, .high = 4e9},
    /* What goes with --traffic. */
    {"--traffic", 0, CLI_CHOICE, "PATTERN", "no collective: random, shift, reversal or transpose",
     .where = &given.pattern, .words = sim_pattern_names},
    {"--load", 0, CLI_TEXT, "L,L...", "--traffic: shares of the hosts' cables",
     .where = &given.load},
    {"--fragments", 0, CLI_TEXT, "MEAN:DEV",
     "--jobs N: runs of hosts that jobs are on (default: 36:10)", .where = &fragments},
    {"--steady", 0, CLI_FLAG, NULL, "--traffic: hosts send all the time, from time 0 on",
     .where = &given.is_steady},
    {"--jobs", 0, CLI_TEXT, "JOBS",
     "several at once, each beside its own run alone: N of them, or a FILE of lines like --hosts "
     "HOSTS --plan NAME",
     .where = &given.jobs_text},
    {"--job-hosts", 0, CLI_WHOLE, "N",
     "--jobs N: hosts of each job (default: all hosts, dealt out)", .where = &given.job_hosts,
     .low = 2, .high = 1e6},
    {"--warm", 0, CLI_REAL, "US", "--traffic: time before anything counts (default: 100)",
     .where = &given.warm, .low = 0, .high = 1e9},
    {"--span", 0, CLI_REAL, "US", "--traffic: time that counts (default: 200)",
     .where = &given.span, .low = 1, .high = 1e9},
};

/* Packets, or with a unit bytes. A burst beyond the message would be another model, that of whole messages in turn,
 * unnoticed. */
static int take_burst(struct sim_command *c)
{
    double most = ceil(c->size / c->fabric.mtu);
    uint64_t packets = 1;
    bool is_number = burst == NULL || cli_parse_bytes(burst, strlen(burst), &packets) == 0;

    if (burst != NULL && burst[strspn(burst, "0123456789")] != '\0') {
        packets = (packets + c->fabric.mtu - 1) / c->fabric.mtu;
    }
    if (!is_number || packets < 1 || (double)packets > most) {
        return cli_error(c->args.command,
                         "--burst %.40s: wants packets, 1 to the message's %.0f, or bytes like "
                         "16KiB",
                         burst, most);
    }
    c->fabric.burst = (uint32_t)packets;
    return CLI_OK;
}

/* "0.002:3" */
static int take_pairs(struct sim_command *c)
{
    const struct {
        const char *name, *text;
        double high[2], *to[2];
    } pairs[] = {
        {"--rare", rare, {1, 1e6}, {&c->rare, &c->rare_length}},
        {"--fragments", fragments, {1e6, 1e6}, {&c->fragment, &c->fragment_deviation}},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        const double *high = pairs[i].high;
        double first, second;
        int end = 0;

        if (pairs[i].text == NULL) {
            continue;
        }
        if (sscanf(pairs[i].text, "%lf:%lf%n", &first, &second, &end) != 2 ||
            pairs[i].text[end] != '\0' || !(first >= 0 && first <= high[0]) ||
            !(second >= 0 && second <= high[1])) {
            return cli_error(c->args.command,
                             "%s %.40s: wants two numbers with a colon between them, at most %g "
                             "and %g",
                             pairs[i].name, pairs[i].text, high[0], high[1]);
        }
        *pairs[i].to[0] = first;
        *pairs[i].to[1] = second;
    }
    return CLI_OK;
}

/* Rank order and a random one know nothing of the forwarding tables: they serve as controls. */
static bool is_for_tables(const char *order)
{
    return order != NULL && strcmp(order, "rank") != 0 && strncmp(order, "random:", 7) != 0;
}

/* An order or table is made for the forwarding tables. */
static int take_adaptive(struct sim_command *c)
{
    bool is_ordered = c->schedule || is_for_tables(c->order);
    bool has_more =
        c->fabric.chooser != SIM_BY_QUEUES || c->lag > 0 || c->gap > 0 || c->fabric.is_above_leaves;

    c->fabric.is_adaptive |= c->fabric.keeps_ways;
    if (!c->fabric.is_adaptive) {
        return has_more ? cli_error(c->args.command,
                                    "--adaptive-by, -lag, -gap and -above go with --adaptive")
                        : CLI_OK;
    }
    if (c->torus_lanes) {
        return cli_error(c->args.command,
                         "--adaptive and --torus-lanes: such VLs keep the tables' routes free of "
                         "deadlock, not those that switches choose");
    }
    if (is_ordered && c->as == NULL) { /* --as takes no order */
        fprintf(stderr,
                "ibshift sim: adaptive switches do not follow the tables that %s was made for\n",
                c->schedule ? "--schedule" : "--order");
    }
    if (c->order == NULL && !c->schedule && c->as == NULL && c->plan == NULL && c->pattern < 0) {
        c->order = "routing"; /* host by host, as a job goes: nothing is to be searched */
    }
    return CLI_OK;
}

static int take_size(struct sim_command *c)
{
    if (c->eager == 0) {
        c->eager = c->as != NULL ? OTHERS_EAGER : EAGER;
    }
    if (c->packets > 0 && c->size > 0) {
        return cli_error(c->args.command, "--packets or --size, not both");
    }
    if (c->size == 0) {
        c->size = (c->packets > 0 ? c->packets : 64) * c->fabric.mtu;
    }
    return CLI_OK;
}

/* "12" or a file. */
static int take_jobs(struct sim_command *c)
{
    long count;

    if (c->jobs_text == NULL) {
        return c->job_hosts > 0 || fragments != NULL
                   ? cli_error(c->args.command, "--fragments and --job-hosts go with --jobs N")
                   : CLI_OK;
    }
    if (c->jobs_text[strspn(c->jobs_text, "0123456789")] != '\0') {
        c->jobs_file = c->jobs_text;
        return CLI_OK;
    }
    if (cli_parse_long(c->jobs_text, 1, SIM_JOBS_MAX, &count) != 0) {
        return cli_error(c->args.command, "--jobs %.40s: wants 1 to %d, or a file", c->jobs_text,
                         SIM_JOBS_MAX);
    }
    c->jobs = (uint32_t)count;
    return CLI_OK;
}

/* What follows from the options that were read into `given`. */
static int finish(struct sim_command *c, const struct cli_args *args)
{
    int status;

    *c = given;
    c->args = *args;
    c->fabric.flight = c->flight * 1000ull;
    c->fabric.routing = c->routing * 1000ull;
    c->fabric.lag = c->lag * 1000ull;
    c->fabric.gap = c->gap * 1000ull;
    c->fabric.seed = (uint64_t)c->seed;
    c->net.overhead = c->overhead * 1000ull;
    c->net.seed = (uint64_t)c->seed;
    status = take_size(c);
    status = status == CLI_OK ? take_burst(c) : status;
    status = status == CLI_OK ? take_adaptive(c) : status;
    return status == CLI_OK ? take_pairs(c) : status;
}

int sim_options_parse(struct sim_command *c, int argc, char **argv)
{
    static struct cli_option all[sizeof(job_options) / sizeof(job_options[0]) +
                                 sizeof(other_options) / sizeof(other_options[0]) + 1];
    struct cli_args args = {
        .command = "sim", .usage = "FABRIC [LFTS]", .options = all, .least = 1, .most = 2};
    int status;

    memcpy(all, job_options, sizeof(job_options));
    memcpy(all + sizeof(job_options) / sizeof(job_options[0]), other_options,
           sizeof(other_options));
    status = cli_parse(&args, argc, argv);
    c->args = args;
    if (status != CLI_OK || args.helped) {
        return status;
    }
    status = finish(c, &args);
    return status == CLI_OK ? take_jobs(c) : status;
}

int sim_options_line(struct sim_command *c, const char *name, char *line)
{
    static const struct cli_option end = {.name = NULL};
    struct cli_option rows[sizeof(job_options) / sizeof(job_options[0]) + 1];
    const struct sim_command before = given;
    struct cli_args args = {.command = name, .usage = "", .options = rows};
    char *words[WORDS_MAX] = {NULL}, *rest = NULL;
    int count = 1, status;

    memcpy(rows, job_options, sizeof(job_options));
    rows[sizeof(job_options) / sizeof(job_options[0])] = end;
    for (char *word = strtok_r(line, " \t\r\n", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r\n", &rest)) {
        if (count == WORDS_MAX) {
            return cli_error(name, "more than %d words", WORDS_MAX - 1);
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            return cli_error(name, "%s: wants a job's options, as --hosts nodes:node[001-016]",
                             word);
        }
        words[count++] = word;
    }
    given.job.hosts = NULL;
    given.size = given.packets = 0;
    status = cli_parse(&args, count, words);
    if (given.size == 0 && given.packets == 0) {
        given.size = before.size;
        given.packets = before.packets;
    }
    if (status == CLI_OK && given.job.hosts == NULL) {
        status = cli_error(name, "a job among others wants --hosts");
    }
    status = status == CLI_OK ? finish(c, &args) : status;
    given = before;
    return status;
}

/* `ibshift sim --sizes`: messages that differ in length. */

static int fill(struct sim_command *c)
{
    uint32_t ranks = c->job.placement->ranks;
    uint64_t *bytes = sim_zeroed((size_t)ranks * ranks, sizeof(*bytes));
    struct ibshift_error err;
    int rc = matrix_fill(bytes, ranks, c->sizes, (uint64_t)c->size, &err);

    rc = rc == 0 ? matrix_check(bytes, ranks, c->sizes, &err) : rc;
    if (rc == 0 && sim_sizes_take(c->unequal, bytes) != 0) {
        rc = ibshift_fail(&err, -EINVAL, "%.60s: blocks of more than %d bytes", c->sizes,
                          MATRIX_MOST);
    }
    free(bytes);
    return rc == 0 ? CLI_OK : fabric_args_fail(&c->args, &err);
}

int sim_take_sizes(struct sim_command *c)
{
    uint32_t ranks = c->job.placement->ranks;
    int status;

    if (c->sizes == NULL) {
        return CLI_OK;
    }
    if (c->plan != NULL || c->verify || c->schedule) {
        return cli_error(c->args.command,
                         "--sizes takes neither --plan nor --verify, and no --schedule, whose "
                         "table is for blocks that are alike");
    }
    if (ranks > SIM_SIZES_RANKS_MAX) {
        return cli_error(c->args.command, "--sizes: at most %d ranks, there are %u",
                         SIM_SIZES_RANKS_MAX, ranks);
    }
    c->unequal = sim_sizes_create(ranks);
    status = fill(c);
    c->size = status == CLI_OK ? sim_sizes_most(c->unequal) : c->size;
    return status;
}

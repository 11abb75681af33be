/* Options of `ibshift sim`. */
#include "sim/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTIONS_MOST = 64,
    EAGER = 16384,       /* as the component does */
    OTHERS_EAGER = 8192, /* UCX and openib send about so many without asking */
};

/* Ends with a row without a name. */
struct option_list {
    struct cli_option row[OPTIONS_MOST + 1];
    size_t count;
};

const char *const sim_arbiter_names[] = {"rr", "islip", "fifo"};

static void add(struct option_list *to, const struct cli_option *rows, size_t count)
{
    if (to->count + count > OPTIONS_MOST) {
        fputs("ibshift sim has more options than OPTIONS_MOST\n", stderr);
        abort();
    }
    memcpy(to->row + to->count, rows, count * sizeof(*rows));
    to->count += count;
}

/* The whole text is a number within the bounds. */
static bool scan(const char *text, double low, double high, double *value)
{
    char *end;
    double scanned = strtod(text, &end);

    if (end == text || *end != '\0' || !(scanned >= low && scanned <= high)) {
        return false;
    }
    *value = scanned;
    return true;
}

/* "8", "16KiB" or "2048B"; has_unit: it is a number of bytes. */
static bool scan_bytes(const char *text, double *value, bool *has_unit)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}};
    char *end;
    double number = strtod(text, &end);

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && end != text; i++) {
        if (strcmp(end, units[i].name) == 0) {
            *value = number * units[i].bytes;
            *has_unit = i > 0;
            return *value >= 0 && *value <= 1e9 && *value == floor(*value);
        }
    }
    return false;
}

/* A burst beyond the message would be another model, that of whole messages in turn, unnoticed. */
static int take_burst(struct sim_command *c)
{
    double packets = ceil(c->number.size / c->number.mtu), burst = 1;
    bool is_bytes = false, is_number = true;

    if (c->burst != NULL) {
        is_number = scan_bytes(c->burst, &burst, &is_bytes);
        burst = is_bytes ? ceil(burst / c->number.mtu) : burst;
    }
    if (!is_number || burst < 1 || burst > packets) {
        return cli_error(c->args.command,
                         "--burst %.40s: wants packets, 1 to the message's %.0f, or bytes like "
                         "16KiB",
                         c->burst, packets);
    }
    c->burst_packets = (uint32_t)burst;
    return CLI_OK;
}

/* Less than a packet would be another packet size. */
static int take_piece(struct sim_command *c)
{
    bool has_unit;

    if (c->piece == NULL) {
        return CLI_OK;
    }
    if (c->traffic != NULL) {
        return cli_error(c->args.command, "--traffic takes no --piece");
    }
    if (!scan_bytes(c->piece, &c->number.piece, &has_unit) || c->number.piece < c->number.mtu ||
        c->number.piece > c->number.size) {
        return cli_error(c->args.command,
                         "--piece %.40s: wants bytes, or like 4KiB, from a packet's %.0f to the "
                         "message's %.0f",
                         c->piece, c->number.mtu, c->number.size);
    }
    return CLI_OK;
}

static int take_arbiter(struct sim_command *c)
{
    for (int i = SIM_ROUND_ROBIN; c->arbiter != NULL && i <= SIM_FIFO; i++) {
        if (strcmp(c->arbiter, sim_arbiter_names[i]) == 0) {
            c->switches = (enum sim_arbiter)i;
            return CLI_OK;
        }
    }
    return c->arbiter == NULL
               ? CLI_OK
               : cli_error(c->args.command, "--arbiter %.40s: wants %s, %s or %s", c->arbiter,
                           sim_arbiter_names[0], sim_arbiter_names[1], sim_arbiter_names[2]);
}

/* "0.002:3" */
static int take_pair(struct sim_command *c, const char *name, const char *text, const double *high,
                     double *first, double *second)
{
    char copy[64], *colon;

    if (text == NULL) {
        return CLI_OK;
    }
    snprintf(copy, sizeof(copy), "%s", text);
    colon = strchr(copy, ':');
    if (colon != NULL) {
        *colon = '\0';
    }
    return colon != NULL && strlen(text) < sizeof(copy) && scan(copy, 0, high[0], first) &&
                   scan(colon + 1, 0, high[1], second)
               ? CLI_OK
               : cli_error(c->args.command,
                           "%s %.40s: wants two numbers with a colon between them, at most %g "
                           "and %g",
                           name, text, high[0], high[1]);
}

/* Powers of two: then the slow rate has the code on the wire that the fast one has. */
static int take_slow(struct sim_command *c, const double *high)
{
    int status = take_pair(c, "--slow", c->slow, high, &c->number.slow_hosts, &c->number.slow_by);
    uint32_t by = (uint32_t)c->number.slow_by;

    if (status != CLI_OK || c->slow == NULL) {
        return status;
    }
    if (by < 2 || by != c->number.slow_by || (by & (by - 1)) != 0 ||
        c->number.slow_hosts != floor(c->number.slow_hosts)) {
        return cli_error(c->args.command,
                         "--slow %.40s: wants hosts:factor, the factor 2, 4, 8 "
                         "or 16",
                         c->slow);
    }
    c->job.slow_hosts = (uint32_t)c->number.slow_hosts;
    c->job.slow_by = by;
    return CLI_OK;
}

static int take_pairs(struct sim_command *c)
{
    static const double rare[] = {1, 1e6}, clock[] = {1e15, 1e5}, fragments[] = {1e6, 1e6},
                        background[] = {1, 1e9}, slow[] = {1e6, 16};
    int status = take_pair(c, "--rare", c->rare, rare, &c->number.rare, &c->number.rare_length);

    c->number.fragment = 36;
    c->number.fragment_deviation = 10;
    status = status == CLI_OK ? take_pair(c, "--fragments", c->fragments, fragments,
                                          &c->number.fragment, &c->number.fragment_deviation)
                              : status;
    status = status == CLI_OK ? take_pair(c, "--background", c->background, background,
                                          &c->number.background_load, &c->number.background_bytes)
                              : status;
    status = status == CLI_OK ? take_slow(c, slow) : status;
    return status != CLI_OK ? status
                            : take_pair(c, "--clock", c->clock, clock, &c->number.clock_offset,
                                        &c->number.clock_drift);
}

/* Which job, what it does, how it is told. */
static void job_rows(struct sim_command *c, struct option_list *to)
{
    const struct cli_option rows[] = {
        FABRIC_JOB_OPTIONS(c->job),
        FABRIC_JOB_ORDER_OPTION(c->order),
        {"--schedule", 0, CLI_FLAG, NULL,
         "a table of stages (default: the order or table that costs least)", .where = &c->schedule},
        {"--plan", 0, CLI_TEXT, "NAME", "COLLECTIVE/ALGORITHM[:RADIX] instead of an all-to-all",
         .where = &c->plan},
        FABRIC_JOB_LEADERS_OPTION(c->job),
        FABRIC_JOB_SEGMENTS_OPTION(c->job, "what a job would choose"),
        {"--as", 0, CLI_TEXT, "PEER",
         "what a library does: ompi, mpich, ucc, linear, pairwise or scattered:W", .where = &c->as},
        {"--place", 0, CLI_TEXT, "ORDER",
         "--as: the order in which ranks sit on the hosts, as of --order (default: rank)",
         .where = &c->place},
        {"--pace", 0, CLI_TEXT, "PACE",
         "none, auto, window:W[/BYTES] or clk (default: auto, as in a job; with --window: none)",
         .where = &c->pace},
        {"--rare", 0, CLI_TEXT, "SHARE:U",
         "before this share of messages the host pauses for the time of U messages",
         .where = &c->rare},
        {"--slow", 0, CLI_TEXT, "N:F",
         "cables of the first N ranks' hosts run at 1/F: 2, 4, 8 or 16", .where = &c->slow},
        {"--sizes", 0, CLI_TEXT, "SIZES", "spread:RATIO:SEED, builder:RATIO:SEED or a FILE",
         .where = &c->sizes},
        {"--burst", 0, CLI_TEXT, "N",
         "packets, or bytes as in 16KiB, of one message that a host sends in its turn (default: 1)",
         .where = &c->burst},
        {"--known-burst", 0, CLI_FLAG, NULL,
         "--pace auto knows the burst, as from coll_ibshift_burst", .where = &c->knows_burst},
        {"--unattended", 0, CLI_FLAG, NULL,
         "--pace auto chooses as for a nonblocking call: completions are not polled all the time",
         .where = &c->unattended},
        {"--piece", 0, CLI_TEXT, "BYTES",
         "post messages in pieces of so many bytes (also as in 4KiB), the next when the last one "
         "has completed",
         .where = &c->piece},
        {"--clock", 0, CLI_TEXT, "NS:PPM",
         "the hosts' clocks differ by up to NS and run fast or slow by up to PPM",
         .where = &c->clock},
        {"--compare-clocks", 0, CLI_FLAG, NULL,
         "ranks do not know the clocks' differences and measure them first", .where = &c->compare},
        {"--verify", 0, CLI_FLAG, NULL, "move the bytes and check them (small jobs)",
         .where = &c->verify},
        {"--background", 0, CLI_TEXT, "LOAD:BYTES",
         "all other hosts send messages at random, at this load", .where = &c->background},
        {"--svg", 0, CLI_OUTPUT, "FILE", "draw the links' use over time; the curve of --traffic",
         .where = &c->svg, .words = cli_svg_only},
        {"--until", 0, CLI_REAL, "US", "--svg: end of the time axis, unless the run ends later",
         .where = &c->number.until, .low = 0, .high = 1e12},
        {"--csv", 0, CLI_FLAG, NULL, "the result as two lines of CSV", .where = &c->csv},
        cli_json_option(&c->json),
        cli_quiet_option(&c->quiet),
    };

    add(to, rows, sizeof(rows) / sizeof(rows[0]));
}

static void lane_rows(struct sim_command *c, struct option_list *to)
{
    const struct cli_option rows[] = {
        {"--arbiter", 0, CLI_TEXT, "NAME",
         "of switches: rr (outputs in turn), islip (matching in slots) or fifo (one queue per "
         "input) (default: rr)",
         .where = &c->arbiter},
        {"--adaptive", 0, CLI_FLAG, NULL,
         "switches choose among shortest routes, packet by packet, by the length of queues",
         .where = &c->adaptive},
        {"--adaptive-messages", 0, CLI_FLAG, NULL,
         "the same, but once per message: its packets all take one route", .where = &c->keeps_ways},
        {"--torus-lanes", 0, CLI_FLAG, NULL, "two virtual lanes that keep a torus free of deadlock",
         .where = &c->torus_lanes},
        {"--sl", 0, CLI_TEXT, "FILE",
         "service level of each pair of hosts: path records, as ibshift fabric compile --sl takes",
         .where = &c->sl},
        {"--sl2vl", 0, CLI_TEXT, "FILE",
         "SL-to-VL tables of the switches, opensm-sl2vl.dump (default: SL N uses VL N)",
         .where = &c->sl2vl},
    };

    add(to, rows, sizeof(rows) / sizeof(rows[0]));
}

static void traffic_rows(struct sim_command *c, struct option_list *to)
{
    struct sim_numbers *n = &c->number;
    const struct cli_option rows[] = {
        {"--traffic", 0, CLI_TEXT, "PATTERN", "no collective: random, shift, reversal or transpose",
         .where = &c->traffic},
        {"--load", 0, CLI_TEXT, "L,L...", "--traffic: shares of the hosts' cables",
         .where = &c->load},
        {"--fragments", 0, CLI_TEXT, "MEAN:DEV",
         "--traffic: runs of hosts that jobs are on (default: 36:10)", .where = &c->fragments},
        {"--steady", 0, CLI_FLAG, NULL, "--traffic: hosts send all the time, from time 0 on",
         .where = &c->steady},
        {"--jobs", 0, CLI_WHOLE_REAL, "N", "--traffic: jobs that share the hosts (default: 1)",
         .where = &n->jobs, .low = 1, .high = 1e6},
        {"--job-hosts", 0, CLI_WHOLE_REAL, "N",
         "--traffic: hosts of each job (default: all hosts, dealt out)", .where = &n->job_hosts,
         .low = 2, .high = 1e6},
        {"--warm", 0, CLI_REAL, "US", "--traffic: time before anything counts (default: 100)",
         .where = &n->warm, .low = 0, .high = 1e9},
        {"--span", 0, CLI_REAL, "US", "--traffic: time that counts (default: 200)",
         .where = &n->span, .low = 1, .high = 1e9},
    };

    add(to, rows, sizeof(rows) / sizeof(rows[0]));
}

static void number_rows(struct sim_numbers *n, struct option_list *to)
{
    const struct cli_option rows[] = {
        {"--packets", 0, CLI_WHOLE_REAL, "N", "full packets of each message (default: 64)",
         .where = &n->packets, .low = 1, .high = 1e6},
        {"--size", 0, CLI_WHOLE_REAL, "BYTES", "bytes of each message, in place of --packets",
         .where = &n->size, .low = 1, .high = 1e9},
        {"--seed", 0, CLI_WHOLE_REAL, "S", "seed of everything random (default: 1)",
         .where = &n->seed, .low = 0, .high = 9e15},
        {"--window", 0, CLI_WHOLE_REAL, "W",
         "sends and receives in flight (default: 32, as in a job)", .where = &n->window, .low = 1,
         .high = 256},
        {"--eager", 0, CLI_WHOLE_REAL, "BYTES",
         "messages up to this size wait for no grant (default: 16384; --as: 8192)",
         .where = &n->eager, .low = 256, .high = 1e12},
        {"--jitter", 0, CLI_REAL, "F", "a message leaves 0 .. 2F of its time late (default: 0)",
         .where = &n->jitter, .low = 0, .high = 1e3},
        {"--skew", 0, CLI_REAL, "U", "ranks begin within the time of U messages (default: 0)",
         .where = &n->skew, .low = 0, .high = 1e6},
        {"--control", 0, CLI_REAL, "U", "a grant takes the time of U messages (default: 0.1)",
         .where = &n->control, .low = 0, .high = 1e3},
        {"--grant-bytes", 0, CLI_WHOLE_REAL, "N",
         "grants are packets on VL 1 (default: 0, beside the fabric)", .where = &n->grant_bytes,
         .low = 0, .high = 4096},
        {"--overhead", 0, CLI_WHOLE_REAL, "NS",
         "a processor's time for a post or a completion (default: 0)", .where = &n->overhead,
         .low = 0, .high = 1e9},
        {"--mtu", 0, CLI_WHOLE_REAL, "BYTES",
         "bytes of a full packet with its headers (default: 2048)", .where = &n->mtu, .low = 1,
         .high = SIM_MTU_MAX},
        {"--buffer", 0, CLI_WHOLE_REAL, "BYTES", "buffer of an input port (default: 51200)",
         .where = &n->buffer, .low = 0, .high = SIM_BUFFER_MAX},
        {"--lanes", 0, CLI_WHOLE_REAL, "N", "virtual lanes that share it (default: 1)",
         .where = &n->lanes, .low = 1, .high = SIM_LANES_MAX},
        {"--reads", 0, CLI_WHOLE_REAL, "N", "packets that leave an input at once (default: 3)",
         .where = &n->reads, .low = 1, .high = 255},
        {"--flight", 0, CLI_WHOLE_REAL, "NS", "time on a cable (default: 25)", .where = &n->flight,
         .low = 0, .high = 1e6},
        {"--routing", 0, CLI_WHOLE_REAL, "NS", "time in a switch (default: 100)",
         .where = &n->routing, .low = 0, .high = 1e6},
        {"--rate", 0, CLI_WHOLE_REAL, "MBPS", "Mb/s of data on all cables (default: of each cable)",
         .where = &n->rate, .low = 0, .high = 4e9},
        {"--receive-rate", 0, CLI_WHOLE_REAL, "MBPS",
         "Mb/s at which a host takes in what arrives (default: as its cable brings it)",
         .where = &n->intake, .low = 0, .high = 4e9},
        {"--copy-rate", 0, CLI_WHOLE_REAL, "MBPS",
         "Mb/s of a rank's copy within its host (default: 80000)", .where = &n->copy_rate, .low = 1,
         .high = 4e9},
        {"--memory-rate", 0, CLI_WHOLE_REAL, "MBPS",
         "Mb/s of all copies of a host together (0: no limit) (default: 400000)",
         .where = &n->memory_rate, .low = 0, .high = 4e9},
        {"--copy-flight", 0, CLI_WHOLE_REAL, "NS",
         "from the end of a copy until others see it (default: 120)", .where = &n->copy_flight,
         .low = 0, .high = 1e6},
    };

    add(to, rows, sizeof(rows) / sizeof(rows[0]));
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
    bool is_left = c->as != NULL || c->plan != NULL || c->traffic != NULL;

    c->adaptive |= c->keeps_ways;
    if (!c->adaptive) {
        return CLI_OK;
    }
    if (c->torus_lanes) {
        return cli_error(c->args.command,
                         "--adaptive and --torus-lanes: such VLs keep the tables' routes free of "
                         "deadlock, not those that switches choose");
    }
    if (is_ordered && c->as == NULL) { /* --as takes no order */
        fprintf(stderr,
                "ibshift sim: adaptive switches do not follow the tables that %s was made "
                "for: %s\n",
                c->schedule ? "--schedule" : "--order",
                is_left ? "it is kept all the same" : "everything at once in rank order");
    }
    if (is_ordered && !is_left) { /* a narrow pace, or clk, is for stages that share no cable */
        c->pace = NULL;
        c->number.window = 0;
    }
    if (!is_left) {
        c->order = c->order == NULL || is_ordered ? "rank" : c->order;
        c->schedule = false;
    }
    return CLI_OK;
}

static int take_size(struct sim_command *c)
{
    struct sim_numbers *n = &c->number;

    if (n->eager == 0) {
        n->eager = c->as != NULL ? OTHERS_EAGER : EAGER;
    }
    if (n->packets > 0 && n->size > 0) {
        return cli_error(c->args.command, "--packets or --size, not both");
    }
    if (n->size == 0) {
        n->size = (n->packets > 0 ? n->packets : 64) * n->mtu;
    }
    return CLI_OK;
}

int sim_options_parse(struct sim_command *c, int argc, char **argv)
{
    struct option_list options = {.count = 0};
    int status;

    c->number = (struct sim_numbers){.seed = 1,
                                     .control = 0.1,
                                     .mtu = 2048,
                                     .buffer = 51200,
                                     .lanes = 1,
                                     .reads = 3,
                                     .flight = 25,
                                     .copy_rate = 80000,
                                     .memory_rate = 400000,
                                     .copy_flight = 120,
                                     .routing = 100,
                                     .jobs = 1,
                                     .warm = 100,
                                     .span = 200};
    job_rows(c, &options);
    lane_rows(c, &options);
    number_rows(&c->number, &options);
    traffic_rows(c, &options);
    c->args = (struct cli_args){
        .command = "sim", .usage = "FABRIC [LFTS]", .options = options.row, .least = 1, .most = 2};
    status = cli_parse(&c->args, argc, argv);
    c->args.options = NULL;
    if (status != CLI_OK || c->args.helped) {
        return status;
    }
    status = take_size(c);
    status = status == CLI_OK ? take_burst(c) : status;
    status = status == CLI_OK ? take_piece(c) : status;
    status = status == CLI_OK ? take_arbiter(c) : status;
    status = status == CLI_OK ? take_adaptive(c) : status;
    return status == CLI_OK ? take_pairs(c) : status;
}

/* `ibshift sim --sizes`: messages that differ in length. */

enum { RATIO_MAX = 1000000 };

static int read_sizes(struct sim_command *c)
{
    FILE *file = fopen(c->sizes, "r");
    struct ibshift_error err;
    int rc;

    if (file == NULL) {
        return cli_error(c->args.command,
                         "--sizes %.200s: %s (or spread:RATIO:SEED, "
                         "builder:RATIO:SEED)",
                         c->sizes, strerror(errno));
    }
    rc = sim_sizes_read(c->unequal, file, c->sizes, &err);
    fclose(file);
    return rc == 0 ? CLI_OK : fabric_args_fail(&c->args, &err);
}

static int draw_sizes(struct sim_command *c, const uint64_t *numbers, bool is_builder)
{
    if (numbers[0] < 1 || numbers[0] > RATIO_MAX) {
        return cli_error(c->args.command, "--sizes %.40s: wants a ratio from 1 to %d", c->sizes,
                         RATIO_MAX);
    }
    sim_sizes_draw(c->unequal, (uint32_t)c->number.size, (double)numbers[0], numbers[1],
                   is_builder);
    return CLI_OK;
}

static int fill(struct sim_command *c)
{
    uint64_t numbers[2];
    int status;

    if (fabric_job_numbers(&c->args, c->sizes, "spread", 2, numbers, &status)) {
        return status != CLI_OK ? status : draw_sizes(c, numbers, false);
    }
    if (fabric_job_numbers(&c->args, c->sizes, "builder", 2, numbers, &status)) {
        return status != CLI_OK ? status : draw_sizes(c, numbers, true);
    }
    return read_sizes(c);
}

int sim_sizes_take(struct sim_command *c)
{
    int rc, status;

    if (c->sizes == NULL) {
        return CLI_OK;
    }
    if (c->plan != NULL || c->verify) {
        return cli_error(c->args.command, "--sizes takes neither --plan nor --verify");
    }
    rc = sim_sizes_create(c->job.placement->ranks, &c->unequal);
    if (rc != 0) {
        return rc == -E2BIG ? cli_error(c->args.command, "--sizes: at most %d ranks, there are %u",
                                        SIM_SIZES_RANKS_MAX, c->job.placement->ranks)
                            : cli_error(c->args.command, "no memory");
    }
    status = fill(c);
    if (status == CLI_OK && sim_sizes_most(c->unequal) == 0) {
        status = cli_error(c->args.command, "--sizes %.200s: nobody has anything for another rank",
                           c->sizes);
    }
    if (status == CLI_OK) {
        c->number.size = sim_sizes_most(c->unequal);
    }
    return status;
}

void sim_options_fabric(const struct sim_command *c, struct sim_fabric_options *options)
{
    const struct sim_numbers *n = &c->number;

    *options = (struct sim_fabric_options){.mtu = (uint32_t)n->mtu,
                                           .buffer = (uint32_t)n->buffer,
                                           .lanes = (uint32_t)n->lanes,
                                           .reads = (uint32_t)n->reads,
                                           .burst = c->burst_packets,
                                           .arbiter = c->switches,
                                           .is_adaptive = c->adaptive,
                                           .keeps_ways = c->keeps_ways,
                                           .flight = (uint64_t)(n->flight * 1000),
                                           .routing = (uint64_t)(n->routing * 1000),
                                           .rate = (uint32_t)n->rate,
                                           .intake = (uint32_t)n->intake,
                                           .lane_table = c->lane_table,
                                           .sl2vl = c->lanes.vl != NULL ? &c->lanes : NULL};
}

void sim_options_net(const struct sim_command *c, struct sim_net_options *options)
{
    const struct sim_numbers *n = &c->number;
    double unit = (double)c->unit;

    *options = (struct sim_net_options){.overhead = (uint64_t)(n->overhead * 1000),
                                        .control = (uint64_t)(n->control * unit),
                                        .grant_bytes = (uint32_t)n->grant_bytes,
                                        .jitter = (uint64_t)(n->jitter * unit),
                                        .pause_share = n->rare,
                                        .pause = (uint64_t)(n->rare_length * unit),
                                        .skew = (uint64_t)(n->skew * unit),
                                        .clock_offset = (uint64_t)n->clock_offset,
                                        .clock_drift = n->clock_drift * 1e-6,
                                        .copy_rate = (uint32_t)n->copy_rate,
                                        .memory_rate = (uint32_t)n->memory_rate,
                                        .copy_flight = (uint64_t)(n->copy_flight * 1000),
                                        .seed = (uint64_t)n->seed};
}

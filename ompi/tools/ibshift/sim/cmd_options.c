/* Options of `ibshift sim`. */
#include "sim/cmd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct number_option {
    const char *name, *argument, *help;
    size_t at; /* in struct sim_numbers */
    double low, high, usual;
};

#define NUMBER(member) offsetof(struct sim_numbers, member)

static const struct number_option numbers[] = {
    {"--packets", "N", "full packets of each message; 64 if not given", NUMBER(packets), 1, 1e6, 0},
    {"--size", "BYTES", "of each message, instead", NUMBER(size), 1, 1e9, 0},
    {"--seed", "S", "of everything random; 1 if not given", NUMBER(seed), 0, 9e15, 1},
    {"--window", "W", "sends and receives in flight; 32, as in a job", NUMBER(window), 1, 256, 0},
    {"--eager", "BYTES", "messages up to this wait for no grant; 4096", NUMBER(eager), 256, 1e12,
     4096},
    {"--jitter", "F", "a message leaves 0 .. 2F of its time late; 0", NUMBER(jitter), 0, 1e3, 0},
    {"--skew", "U", "ranks begin within U times of a message; 0", NUMBER(skew), 0, 1e6, 0},
    {"--control", "U", "a grant takes U times of a message; 0.1", NUMBER(control), 0, 1e3, 0.1},
    {"--grant-bytes", "N", "grants are packets on lane 1; 0: beside the fabric",
     NUMBER(grant_bytes), 0, 4096, 0},
    {"--overhead", "NS", "a processor's time for a post or an end; 0", NUMBER(overhead), 0, 1e9, 0},
    {"--mtu", "BYTES", "a packet on the wire; 2048", NUMBER(mtu), 1, SIM_MTU_MAX, 2048},
    {"--buffer", "BYTES", "of an input port; 51200", NUMBER(buffer), 0, SIM_BUFFER_MAX, 51200},
    {"--lanes", "N", "virtual lanes that share it; 1", NUMBER(lanes), 1, SIM_LANES_MAX, 1},
    {"--reads", "N", "packets that leave an input at once; 3", NUMBER(reads), 1, 255, 3},
    {"--flight", "NS", "on a cable; 25", NUMBER(flight), 0, 1e6, 25},
    {"--routing", "NS", "in a switch; 100", NUMBER(routing), 0, 1e6, 100},
    {"--jobs", "N", "--traffic: jobs that share the hosts; 1", NUMBER(jobs), 1, 1e6, 1},
    {"--job-hosts", "N", "--traffic: hosts of each; else all, dealt out", NUMBER(job_hosts), 2, 1e6,
     0},
    {"--warm", "US", "--traffic: time before anything counts; 100", NUMBER(warm), 0, 1e9, 100},
    {"--span", "US", "--traffic: time that counts; 200", NUMBER(span), 1, 1e9, 200},
    {"--rate", "MB", "Mb/s of data on all cables; else each cable's own", NUMBER(rate), 0, 4e9, 0},
};

const char *const sim_arbiter_names[] = {"rr", "islip", "fifo"};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static double *number_at(struct sim_command *c, const struct number_option *o)
{
    void *at = (char *)&c->number + o->at;

    return at;
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

static int take_numbers(struct sim_command *c, const char *const *texts)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct number_option *o = &numbers[i];
        double *value = number_at(c, o);
        bool is_whole = o->argument[0] != 'F' && o->argument[0] != 'U';

        *value = o->usual;
        if (texts[i] != NULL &&
            (!scan(texts[i], o->low, o->high, value) || (is_whole && *value != floor(*value)))) {
            return cli_error(c->args.command, "%s %.40s: wants %s number from %.15g to %.15g",
                             o->name, texts[i], is_whole ? "a whole" : "a", o->low, o->high);
        }
    }
    if (c->number.packets > 0 && c->number.size > 0) {
        return cli_error(c->args.command, "--packets or --size, not both");
    }
    if (c->number.size == 0) {
        c->number.size = (c->number.packets > 0 ? c->number.packets : 64) * c->number.mtu;
    }
    return CLI_OK;
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

int sim_options_parse(struct sim_command *c, int argc, char **argv)
{
    const char *texts[NUMBERS] = {NULL};
    const struct fabric_option words[] = {
        {"--hosts", "HOSTS", FABRIC_JOB_HOSTS_HELP, NULL, &c->job.hosts},
        {"--ranks-per-host", "N", FABRIC_JOB_PER_HOST_HELP, NULL, &c->job.ranks_per_host},
        {"--order", "ORDER", "rank, routing, keepers, random:SEED or a FILE of hosts", NULL,
         &c->order},
        {"--schedule", NULL, "a table of stages; without either, what costs least", &c->schedule,
         NULL},
        {"--plan", "NAME", "COLLECTIVE/ALGORITHM[:RADIX] instead of an all-to-all", NULL, &c->plan},
        {"--pace", "PACE",
         "none, auto, window:W, grants:W, barrier:B, clk or rate:W; auto, as in a job, or none "
         "behind --window",
         NULL, &c->pace},
        {"--rare", "SHARE:U", "this share of messages pauses its host for U times", NULL, &c->rare},
        {"--slow", "N:F", "cables of the first N ranks' hosts run at 1/F: 2, 4, 8 or 16", NULL,
         &c->slow},
        {"--sizes", "SIZES", "spread:RATIO:SEED, builder:RATIO:SEED or a FILE", NULL, &c->sizes},
        {"--burst", "N",
         "packets, or bytes like 16KiB, of a message that a host sends in a turn; 1", NULL,
         &c->burst},
        {"--arbiter", "NAME",
         "of switches: rr (outputs in turn), islip (matching in slots) or fifo (one queue an "
         "input); rr",
         NULL, &c->arbiter},
        {"--clock", "NS:PPM", "hosts' clocks differ by so much and run so wrong", NULL, &c->clock},
        {"--compare-clocks", NULL, "ranks do not know them: they compare them first", &c->compare,
         NULL},
        {"--verify", NULL, "move the bytes and look at them (small jobs)", &c->verify, NULL},
        {"--background", "LOAD:BYTES", "all other hosts send messages at random, at this load",
         NULL, &c->background},
        {"--torus-lanes", NULL, "two lanes that keep a torus free of deadlock", &c->torus_lanes,
         NULL},
        {"--svg", "FILE", "draw the links' use over time; the curve of --traffic", NULL, &c->svg},
        {"--traffic", "PATTERN", "no collective: random, shift, reversal or transpose", NULL,
         &c->traffic},
        {"--load", "L,L...", "--traffic: shares of the hosts' cables", NULL, &c->load},
        {"--fragments", "MEAN:DEV", "--traffic: runs of hosts that jobs are on; 36:10", NULL,
         &c->fragments},
        {"--steady", NULL, "--traffic: hosts send all the time, from time 0 on", &c->steady, NULL},
        {"--csv", NULL, "the result as two lines of CSV", &c->csv, NULL},
        {"--json", NULL, "the result as a JSON object", &c->json, NULL},
        {"--quiet", NULL, "no progress bar", &c->quiet, NULL},
    };
    struct fabric_option options[sizeof(words) / sizeof(words[0]) + NUMBERS + 1];
    size_t count = 0;
    int status;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        options[count++] = words[i];
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        options[count++] = (struct fabric_option){numbers[i].name, numbers[i].argument,
                                                  numbers[i].help, NULL, &texts[i]};
    }
    options[count] = (struct fabric_option){NULL, NULL, NULL, NULL, NULL};
    c->args = (struct fabric_args){
        .command = "sim", .usage = "FABRIC [LFTS]", .options = options, .least = 1, .most = 2};
    status = fabric_args_parse(&c->args, argc, argv);
    c->args.options = NULL;
    if (status != CLI_OK || c->args.helped) {
        return status;
    }
    status = take_numbers(c, texts);
    status = status == CLI_OK ? take_burst(c) : status;
    status = status == CLI_OK ? take_arbiter(c) : status;
    return status == CLI_OK ? take_pairs(c) : status;
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
                                           .flight = (uint64_t)(n->flight * 1000),
                                           .routing = (uint64_t)(n->routing * 1000),
                                           .rate = (uint32_t)n->rate,
                                           .lane_table = c->lane_table};
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
                                        .local_rate = 80000,
                                        .seed = (uint64_t)n->seed};
}

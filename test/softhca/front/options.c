#include "front/front.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault/faultspec.h"
#include "wire/wire_net.h"

enum option_kind {
    KIND_FLAG,
    KIND_U32,
    KIND_U64,
    KIND_WORD, /* one of the argument's words: the first is `least`, the next one more */
    KIND_TEXT,
    KIND_FAULT,
    KIND_BURST,
    KIND_PERSONALITY,
    KIND_PKEYS,
};

struct row {
    const char *name, *argument;
    enum option_kind kind;
    size_t offset;
    uint64_t initial, least, most;
    const char *help;
};

#define FIELD(field) offsetof(struct options, field)
#define FLAG(field)  KIND_FLAG, FIELD(field), 0, 0, 1
#define TEXT(field)  KIND_TEXT, FIELD(field), 0, 0, 0

static const struct row rows[] = {
    {"hosts", "N", KIND_U32, FIELD(conf.hosts), 0, 0, 8192,
     "modelled hosts; processes see their host's HCAs (0: one, or all hosts of --fabric)"},
    {"per-host", "N", KIND_U32, FIELD(conf.per_host), 0, 0, 1024,
     "most processes per host (0: any number; with --fabric: one)"},
    {"hcas", "N", KIND_U32, FIELD(conf.hcas), 1, 1, 8, "HCAs per host: softhca0, softhca1, ..."},
    {"ports", "N", KIND_U32, FIELD(conf.ports), 1, 1, 2, "ports per HCA"},
    {"link", "ib|eth", KIND_WORD, FIELD(conf.link), IBV_LINK_LAYER_INFINIBAND,
     IBV_LINK_LAYER_INFINIBAND, 0, "link layer"},
    {"lmc", "L", KIND_U32, FIELD(conf.lmc), 0, 0, 7, "2^L LIDs per port"},
    {"mtu", "256|512|1024|2048|4096", KIND_WORD, FIELD(conf.mtu), IBV_MTU_4096, IBV_MTU_256, 0,
     "active MTU"},
    {"defer", "US", KIND_U32, FIELD(conf.defer_us), 0, 0, 1000000,
     "deferred mode: requests run after a random delay of up to US microseconds, and buffers that "
     "change before their completion was polled are reported"},
    {"adversarial", NULL, FLAG(conf.adversarial),
     "a tail of the data lands early, completions come late and reordered across queue pairs"},
    {"arm-waiting", NULL, FLAG(conf.arm_waiting),
     "arming a completion queue in which completions wait raises an event at once, as Mellanox's "
     "HCAs do; without, only a new one does"},
    {"seed", "N", KIND_U64, FIELD(conf.seed), 0, 0, UINT64_MAX,
     "seed of all random choices (0: choose and print)"},
    {"max-qp-wr", "N", KIND_U32, FIELD(conf.max_qp_wr), 16384, 1, 1 << 20, "requests per queue"},
    {"max-sge", "N", KIND_U32, FIELD(conf.max_sge), 30, 1, 32, "pieces per request"},
    {"max-inline", "BYTES", KIND_U32, FIELD(conf.max_inline), 512, 0, 4096,
     "inline data per request"},
    {"max-cqe", "N", KIND_U32, FIELD(conf.max_cqe), 1 << 22, 1, 1 << 24, "completions per queue"},
    {"max-srq-wr", "N", KIND_U32, FIELD(conf.max_srq_wr), 32767, 1, 1 << 20,
     "receives per shared queue"},
    {"max-mr", "N", KIND_U32, FIELD(conf.max_mr), SHM_MRS, 0, SHM_MRS,
     "memory regions per process"},
    {"max-mr-size", "BYTES", KIND_U64, FIELD(conf.max_mr_size), 1ull << 40, 4096, 1ull << 47,
     "bytes per memory region"},
    {"max-locked", "BYTES", KIND_U64, FIELD(conf.max_locked), 0, 0, UINT64_MAX,
     "bytes a process may register, as a locked-memory limit (0: any)"},
    {"max-rd-atomic", "N", KIND_U32, FIELD(conf.max_rd_atomic), 16, 0, 128,
     "outstanding reads and atomics per queue pair"},
    {"wire", "PROFILE", TEXT(wire),
     "modelled time for every message: sdr, qdr, fdr, edr, hdr, ndr-like, or none (default: none, "
     "edr with --fabric)"},
    {"scale", "S", KIND_U32, FIELD(scale), 1, 1, 1000000,
     "stretch modelled time, so that few CPUs keep up with the wire"},
    {"burst", "N", KIND_BURST, FIELD(burst), 0, 1, 1 << 20,
     "packets of 2 KiB, or bytes as in 16KiB, that a modelled HCA sends of one message before it "
     "sends from another queue pair (default: all flow at once)"},
    {"bond", NULL, FLAG(bond),
     "with --wire, a port is two cables in a bond: each queue pair gets the rate of one"},
    {"fabric", "FILE", TEXT(fabric),
     "netlist, compiled or synthetic fabric (pgft:2;4,4;1,4;1,1) in place of one switch"},
    {"lfts", "FILE", TEXT(lfts), "the fabric's forwarding tables (opensm-lfts.dump)"},
    {"place", "HOW", TEXT(place),
     "which of the fabric's hosts are host 0, 1, ...: order (of routing), random:SEED, or a FILE "
     "with one name per line"},
    {"wire-report", "FILE", TEXT(report),
     "write at the end the bytes and the most flows at once of each link (-: standard output)"},
    {"wire-timeline", "FILE", TEXT(timeline),
     "write at the end the bytes of each link in the last 8192 slices of time"},
    {"wire-slice", "US", KIND_U32, FIELD(slice_us), 10, 1, 1000000,
     "microseconds of modelled time in a slice of --wire-timeline"},
    {"personality", "NAME,...", KIND_PERSONALITY, 0, 0, 0, 0,
     "behave as certain adapters do, see below: sets the options named there, each of which can be "
     "given alone too"},
    {"no-srq", NULL, FLAG(conf.no_srq), "no shared receive queues"},
    {"no-ah", NULL, FLAG(conf.no_ah), "no address handles: datagrams reach nobody"},
    {"inline-errno", "N", KIND_U32, FIELD(conf.inline_errno), EINVAL, 1, 133,
     "the error for more inline data than --max-inline"},
    {"inline-step", "BYTES", KIND_U32, FIELD(conf.inline_step), 1, 1, 4096,
     "requested inline sizes are rounded up to a multiple of this"},
    {"count-queues", NULL, FLAG(conf.count_queues),
     "the memory of queues counts against --max-locked"},
    {"swap", NULL, FLAG(conf.swap),
     "writes of one queue pair land whole in any order, unless one waits for a completion between "
     "them"},
    {"scatter", NULL, FLAG(conf.scatter),
     "packets of one queue pair's writes land in any order, but for writes with immediate data, "
     "which keep the route"},
    {"in-order", NULL, FLAG(conf.in_order),
     "ibv_query_qp_data_in_order says that the bytes of a write land in order"},
    {"stalls", NULL, FLAG(conf.stalls),
     "report the longest time in which all processes polled and none posted, counting a poll as 1 "
     "us"},
    {"relaxed-only", NULL, FLAG(conf.relaxed_only),
     "memory can be registered with relaxed ordering only"},
    {"ece", "BITS", KIND_U32, FIELD(conf.ece), 0, 0, UINT32_MAX,
     "options of enhanced connection establishment; HCAs of hosts 1, 3, ... lack the lowest, and "
     "messages between queue pairs with different options are lost"},
    {"grh", "none|all|odd", KIND_WORD, FIELD(conf.grh), PORTS_NONE, PORTS_NONE, 0,
     "InfiniBand ports that require a global header, as virtual functions do: all, or those of "
     "hosts 1, 3, ..."},
    {"pkeys", "KEYS[/KEYS]", KIND_PKEYS, FIELD(conf.pkeys), 0xffff, 1, 0xffff,
     "the ports' partition keys by index, as in 7fff,8001 (the upper bit: full member); after the "
     "slash those of hosts 1, 3, ... (default: ffff)"},
    {"dir", "DIR", TEXT(dir), "where the shared file lives (default: /dev/shm)"},
    {"memory", "GIB", KIND_U32, FIELD(gib), SHM_GIB, 1, 1024,
     "address space of the shared file, which bounds the queues of all processes together"},
    {"fault", "FAULT", KIND_FAULT, 0, 0, 0, 0, "inject a fault, see below; repeatable"},
    {"control", "SOCKET", TEXT(control), "accept faults on this socket during the run"},
    {"tell", "SOCKET", TEXT(tell), "send the faults that follow to the run with that --control"},
    {"quiet", NULL, FLAG(quiet), "no banner"},
};

enum { OPTIONS = sizeof(rows) / sizeof(rows[0]), FIRST_ROW = 256 };

/* What real adapters and fabrics do: docs/hardware.md has the sources. */
static const struct personality {
    const char *name, *settings, *help;
} personalities[] = {
    {"bond-roce", "link=eth bond=1", "RoCE over two bonded cables, each queue pair on one of them"},
    {"cx5-ib", "in-order=1", "static routes: the device promises that data lands in order"},
    {"cx7-ar", "scatter=1", "adaptive routing: packets of writes land in any order"},
    {"cx8-ddp", "swap=1", "out-of-order placement: two writes of a queue pair may swap"},
    {"docker-8M", "max-locked=8388608 count-queues=1",
     "a container's limit of 8 MiB locked memory, in which queues count"},
    {"no-ah", "no-ah=1", "erdma, mana, siw: no address handles"},
    {"no-srq", "no-srq=1", "erdma, mana, efa, ionic: no shared receive queues"},
    {"pkeys-limited", "pkeys=7fff,8001/8001,7fff",
     "the default partition has limited members only, another key is full, not always at the same "
     "index"},
    {"small-inline", "max-inline=28 inline-errno=12 inline-step=28",
     "little inline data, refused with ENOMEM, and more granted than requested"},
    {"strict-refused", "relaxed-only=1 scatter=1",
     "memory keys with relaxed ordering only: data lands in any order"},
    {"vf-grh", "grh=all", "virtual functions, ports beyond a router: a global header is required"},
};

/* The text in lines of at most 80 columns beside its option. */
static void print_beside(const char *left, const char *text)
{
    enum { INDENT = 25, WIDTH = 80 };
    int column = printf("  %-22s", left);

    for (const char *word = text; *word; word += strspn(word, " ")) {
        int length = (int)strcspn(word, " ");

        if (column > INDENT && column + 1 + length > WIDTH) {
            column = printf("\n%*s", INDENT - 1, "") - 1;
        }
        column += printf(" %.*s", length, word);
        word += length;
    }
    printf("\n");
}

static void print_help(void)
{
    printf("Usage: softhca-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
           "       softhca-run --tell SOCKET FAULT...\n"
           "Runs COMMAND, and all that it starts, on software HCAs in place of InfiniBand\n"
           "hardware.\n\n");
    for (int i = 0; i < OPTIONS; i++) {
        const struct row *o = &rows[i];
        char left[64], initial[32] = "", text[256];

        snprintf(left, sizeof(left), "--%s%s%s", o->name, o->argument ? " " : "",
                 o->argument ? o->argument : "");
        if (o->kind == KIND_U32 || o->kind == KIND_U64) {
            snprintf(initial, sizeof(initial), " (default: %llu)", (unsigned long long)o->initial);
        }
        snprintf(text, sizeof(text), "%s%s", o->help, initial);
        print_beside(left, text);
    }
    printf("  -h, --help             this text\n  -V, --version\n");
    printf("\nPersonalities:\n");
    for (size_t i = 0; i < COUNT_OF(personalities); i++) {
        const struct personality *p = &personalities[i];
        char text[256];

        snprintf(text, sizeof(text), "%s [%s]", p->help, p->settings);
        print_beside(p->name, text);
    }
    fault_print_help();
    printf("\nExit code: the command's; 2 for wrong options; 3 when it was 0 but wrong uses of\n"
           "verbs were reported.\n");
}

static void put(struct options *o, const struct row *opt, uint64_t value)
{
    void *field = (char *)o + opt->offset;

    if (opt->kind == KIND_PKEYS) {
        o->conf.pkeys[0][0] = o->conf.pkeys[1][0] = (uint16_t)value;
    } else if (opt->kind == KIND_U64) {
        *(uint64_t *)field = value;
    } else if (opt->kind != KIND_TEXT && opt->kind != KIND_FAULT) {
        *(uint32_t *)field = (uint32_t)value;
    }
}

/* One line, whatever bytes the arguments have. */
static void say(const char *format, va_list args, const char *end)
{
    char text[768];

    vsnprintf(text, sizeof(text), format, args);
    for (char *c = text; *c; c++) {
        *c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
    }
    fprintf(stderr, "softhca-run: %s%s\n", text, end);
}

int front_refuse(int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args, "");
    va_end(args);
    return err;
}

__attribute__((format(printf, 1, 2))) static int complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args, "; softhca-run --help lists the options");
    va_end(args);
    return -EINVAL;
}

static int put_word(struct options *o, const struct row *opt, const char *text)
{
    uint64_t value = opt->least;

    for (const char *word = opt->argument; word; value++) {
        size_t length = strcspn(word, "|");

        if (strlen(text) == length && strncmp(word, text, length) == 0) {
            put(o, opt, value);
            return 0;
        }
        word = word[length] ? word + length + 1 : NULL;
    }
    return complain("--%s wants %s, not '%s'", opt->name, opt->argument, text);
}

/* One or two lists of hexadecimal keys; hosts 1, 3, ... have the first when there is one. */
static int put_pkeys(struct options *o, const struct row *opt, const char *text)
{
    uint16_t keys[2][SHM_PKEYS] = {{0}};
    int list = 0, n = 0;

    for (const char *at = text;; at++) {
        char *end;
        unsigned long key = strtoul(at, &end, 16);

        if (!isxdigit((unsigned char)*at) || key < opt->least || key > opt->most ||
            n == SHM_PKEYS || (*end && *end != ',' && (*end != '/' || list == 1))) {
            return complain(
                "--%s wants up to four keys from 1 to ffff, as in 7fff,8001, and after a "
                "slash up to four of hosts 1, 3, ..., not '%s'",
                opt->name, text);
        }
        keys[list][n++] = (uint16_t)key;
        at = end;
        if (!*at) {
            break;
        }
        if (*at == '/') {
            list = 1;
            n = 0;
        }
    }
    memcpy(o->conf.pkeys[0], keys[0], sizeof(keys[0]));
    memcpy(o->conf.pkeys[1], keys[list], sizeof(keys[0]));
    return 0;
}

static int put_number(struct options *o, const struct row *opt, const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if (*text < '0' || *text > '9' || *end || errno || value < opt->least || value > opt->most) {
        return complain("--%s wants a number from %llu to %llu, not '%s'", opt->name,
                        (unsigned long long)opt->least, (unsigned long long)opt->most, text);
    }
    put(o, opt, value);
    return 0;
}

/* A number of packets, or of bytes when it has a unit. */
static int put_burst(struct options *o, const struct row *opt, const char *text)
{
    static const struct {
        const char *name;
        uint64_t bytes;
    } units[] = {{"", WIRE_PACKET}, {"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}};
    char *end;
    unsigned long long value;

    value = strtoull(text, &end, 10);
    for (size_t i = 0; i < COUNT_OF(units) && isdigit((unsigned char)*text); i++) {
        uint64_t packets = value <= UINT32_MAX ? value * units[i].bytes / WIRE_PACKET : 0;

        if (strcmp(end, units[i].name) == 0 && packets >= opt->least && packets <= opt->most &&
            packets * WIRE_PACKET == value * units[i].bytes) {
            put(o, opt, packets);
            return 0;
        }
    }
    return complain("--burst wants from %llu to %llu packets of %d bytes, or as many bytes as in "
                    "16KiB, not '%s'",
                    (unsigned long long)opt->least, (unsigned long long)opt->most, WIRE_PACKET,
                    text);
}

/* Its text alone: it is read when the hosts are known. */
static int put_fault(struct options *o, const char *text)
{
    if (o->faults == COUNT_OF(o->fault) || strlen(text) >= FAULT_TEXT) {
        return complain("--fault '%.32s'%s", text,
                        o->faults == COUNT_OF(o->fault) ? " is one too many" : " is too long");
    }
    snprintf(o->fault[o->faults++].text, FAULT_TEXT, "%s", text);
    return 0;
}

int options_faults(struct options *o)
{
    for (uint32_t i = 0; i < o->faults; i++) {
        char text[FAULT_TEXT], why[256] = "show is for --tell";

        memcpy(text, o->fault[i].text, sizeof(text));
        if (fault_parse(text, &o->conf, &o->fault[i], why, sizeof(why)) != 0 ||
            o->fault[i].kind == FAULT_SHOW) {
            return complain("--fault '%s': %s", text, why);
        }
    }
    return 0;
}

static const struct row *find_option(const char *name, size_t length)
{
    for (int i = 0; i < OPTIONS; i++) {
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static int put_text(struct options *o, const struct row *opt, const char *text);

/* Applies "name=value ..."; *set has the options that a personality before has set. */
static int put_settings(struct options *o, const struct personality *p, uint64_t *set)
{
    for (const char *at = p->settings; *at;) {
        size_t length = strcspn(at, " "), name = strcspn(at, "=");
        const struct row *opt = find_option(at, name);
        char value[64];
        int err;

        snprintf(value, sizeof(value), "%.*s", (int)(length - name - 1), at + name + 1);
        if (*set & 1ull << (opt - rows)) {
            return complain("--personality: %s excludes another there: both set --%s", p->name,
                            opt->name);
        }
        *set |= 1ull << (opt - rows);
        err = put_text(o, opt, value);
        if (err) {
            return err;
        }
        at += length + (at[length] == ' ');
    }
    return 0;
}

static int put_personalities(struct options *o, const char *text)
{
    uint64_t set = 0;

    for (const char *at = text;; at++) {
        char name[32];
        const char *hint;
        size_t length = strcspn(at, ",");
        int row, err;

        snprintf(name, sizeof(name), "%.*s", length < sizeof(name) ? (int)length : 31, at);
        row = name_find(personalities, COUNT_OF(personalities), sizeof(personalities[0]), name,
                        &hint);
        if (row < 0) {
            return complain("--personality: there is no '%s'%s", name, hint);
        }
        err = put_settings(o, &personalities[row], &set);
        at += length;
        if (err || !*at) {
            return err;
        }
    }
}

static int put_text(struct options *o, const struct row *opt, const char *text)
{
    switch (opt->kind) {
    case KIND_FAULT:
        return put_fault(o, text);
    case KIND_TEXT:
        *(const char **)(void *)((char *)o + opt->offset) = text;
        return 0;
    case KIND_WORD:
        return put_word(o, opt, text);
    case KIND_PKEYS:
        return put_pkeys(o, opt, text);
    case KIND_PERSONALITY:
        return put_personalities(o, text);
    case KIND_BURST:
        return put_burst(o, opt, text);
    default:
        return put_number(o, opt, text);
    }
}

static int check_together(const struct options *o)
{
    uint64_t ports = (uint64_t)(o->conf.hosts ? o->conf.hosts : 1) * o->conf.hcas * o->conf.ports;

    if ((ports << o->conf.lmc) + SHM_FIRST_LID > SHM_LIDS - 1024) {
        return complain("--hosts, --hcas, --ports and --lmc give more ports than there are LIDs");
    }
    if (o->bond && o->fabric) {
        return complain("--bond excludes --fabric: its cables are those of the fabric");
    }
    if (o->conf.in_order && (o->conf.swap || o->conf.scatter || o->conf.adversarial)) {
        return complain("--in-order excludes --swap, --scatter and --adversarial: the data of a "
                        "write lands in order or not");
    }
    return 0;
}

int options_parse(int argc, char **argv, struct options *o, int *command)
{
    struct option longs[OPTIONS + 3] = {[OPTIONS] = {"help", no_argument, NULL, 'h'},
                                        {"version", no_argument, NULL, 'V'}};
    int c, err = 0;

    memset(o, 0, sizeof(*o));
    for (int i = 0; i < OPTIONS; i++) {
        put(o, &rows[i], rows[i].initial);
        longs[i] = (struct option){rows[i].name,
                                   rows[i].kind == KIND_FLAG ? no_argument : required_argument,
                                   NULL, FIRST_ROW + i};
    }
    opterr = optind = 0; /* messages are ours; a fuzzer calls more than once */
    while (!err && (c = getopt_long(argc, argv, "+:hV", longs, NULL)) != -1) {
        if (c == 'h') {
            print_help();
            return 1;
        }
        if (c == 'V') {
            puts("ibshift " PACKAGE_VERSION);
            return 1;
        }
        err = c == ':'        ? complain("%s wants a value", argv[optind - 1])
              : c < FIRST_ROW ? complain("unknown option '%s'", argv[optind - 1])
                              : put_text(o, &rows[c - FIRST_ROW], optarg ? optarg : "1");
    }
    *command = optind;
    return err ? err : optind >= argc ? complain("no command to run") : check_together(o);
}

#include "front/front.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault/faultspec.h"
#include "options.h"
#include "wire/wire_net.h"

static const struct options initial = {.conf = {.hcas = 1,
                                                .ports = 1,
                                                .link = IBV_LINK_LAYER_INFINIBAND,
                                                .mtu = IBV_MTU_4096,
                                                .max_qp_wr = 16384,
                                                .max_sge = 30,
                                                .max_inline = 512,
                                                .max_cqe = 1 << 22,
                                                .max_srq_wr = 32767,
                                                .max_mr = SHM_MRS,
                                                .max_mr_size = 1ull << 40,
                                                .max_rd_atomic = 16,
                                                .pkeys = {{0xffff}, {0xffff}},
                                                .inline_errno = EINVAL,
                                                .inline_step = 1,
                                                .max_groups = SHM_GROUPS,
                                                .grh = PORTS_NONE},
                                       .gib = SHM_GIB,
                                       .scale = 1};
static struct options given; /* what the options are read into */
static bool wants_version;

static int take_burst(void *where, const char *text);
static int take_pkeys(void *where, const char *text);
static int take_fault(void *where, const char *text);
static int take_personalities(void *where, const char *text);

static const char *const links[] = {"ib", "eth", NULL};
static const char *const mtus[] = {"256", "512", "1024", "2048", "4096", NULL};
static const char *const headers[] = {"none", "all", "odd", NULL};

static const struct cli_option rows[] = {
    {"--hosts", 0, CLI_WHOLE, "N",
     "modelled hosts; processes see their host's HCAs (default: 0: one, or all hosts of --fabric)",
     .where = &given.conf.hosts, .high = 8192},
    {"--per-host", 0, CLI_WHOLE, "N",
     "most processes per host (default: 0: any number; with --fabric one)",
     .where = &given.conf.per_host, .high = 1024},
    {"--hcas", 0, CLI_WHOLE, "N", "HCAs per host: softhca0, softhca1, ... (default: 1)",
     .where = &given.conf.hcas, .low = 1, .high = 8},
    {"--ports", 0, CLI_WHOLE, "N", "ports per HCA (default: 1)", .where = &given.conf.ports,
     .low = 1, .high = 2},
    {"--link", 0, CLI_CHOICE, "ib|eth", "link layer", .where = &given.conf.link,
     .low = IBV_LINK_LAYER_INFINIBAND, .words = links},
    {"--lmc", 0, CLI_WHOLE, "L", "2^L LIDs per port (default: 0)", .where = &given.conf.lmc,
     .high = 7},
    {"--mtu", 0, CLI_CHOICE, "256|512|1024|2048|4096", "active MTU", .where = &given.conf.mtu,
     .low = IBV_MTU_256, .words = mtus},
    {"--defer", 0, CLI_WHOLE, "US",
     "deferred mode: requests run after a random delay of up to US microseconds, and buffers that "
     "change before their completion was polled are reported (default: 0)",
     .where = &given.conf.defer_us, .high = 1000000},
    {"--adversarial", 0, CLI_FLAG, NULL,
     "a tail of the data lands early, completions come late and reordered across queue pairs",
     .where = &given.conf.adversarial},
    {"--arm-waiting", 0, CLI_FLAG, NULL,
     "arming a completion queue in which completions wait raises an event at once, as Mellanox's "
     "HCAs do; without, only a new one does",
     .where = &given.conf.arm_waiting},
    {"--seed", 0, CLI_LONG, "N", "seed of all random choices (default: 0: choose and print)",
     .where = &given.conf.seed, .high = 0x1p64},
    {"--max-qp-wr", 0, CLI_WHOLE, "N", "requests per queue (default: 16384)",
     .where = &given.conf.max_qp_wr, .low = 1, .high = 1 << 20},
    {"--max-sge", 0, CLI_WHOLE, "N", "pieces per request (default: 30)",
     .where = &given.conf.max_sge, .low = 1, .high = 32},
    {"--max-inline", 0, CLI_WHOLE, "BYTES", "inline data per request (default: 512)",
     .where = &given.conf.max_inline, .high = 4096},
    {"--max-cqe", 0, CLI_WHOLE, "N", "completions per queue (default: 4194304)",
     .where = &given.conf.max_cqe, .low = 1, .high = 1 << 24},
    {"--max-srq-wr", 0, CLI_WHOLE, "N", "receives per shared queue (default: 32767)",
     .where = &given.conf.max_srq_wr, .low = 1, .high = 1 << 20},
    {"--max-mr", 0, CLI_WHOLE, "N", "memory regions per process (default: 1048576)",
     .where = &given.conf.max_mr, .high = SHM_MRS},
    {"--max-mr-size", 0, CLI_LONG, "BYTES", "bytes per memory region (default: 1099511627776)",
     .where = &given.conf.max_mr_size, .low = 4096, .high = 1ull << 47},
    {"--max-locked", 0, CLI_LONG, "BYTES",
     "bytes a process may register, as a locked-memory limit (default: 0: any)",
     .where = &given.conf.max_locked, .high = 0x1p64},
    {"--max-rd-atomic", 0, CLI_WHOLE, "N",
     "outstanding reads and atomics per queue pair (default: 16)",
     .where = &given.conf.max_rd_atomic, .high = 128},
    {"--wire", 0, CLI_TEXT, "PROFILE",
     "modelled time for every message: sdr, qdr, fdr, edr, hdr, ndr-like, or none (default: none, "
     "edr with --fabric)",
     .where = &given.wire},
    {"--scale", 0, CLI_WHOLE, "S",
     "stretch modelled time, so that few CPUs keep up with the wire (default: 1)",
     .where = &given.scale, .low = 1, .high = 1000000},
    {"--burst", 0, CLI_TAKEN, "N",
     "packets of 2 KiB, or bytes as in 16K, that a modelled HCA sends of one message before it "
     "sends from another queue pair (default: all flow at once)",
     .take = take_burst},
    {"--bond", 0, CLI_FLAG, NULL,
     "with --wire, a port is two cables in a bond: each queue pair gets the rate of one",
     .where = &given.bond},
    {"--fabric", 0, CLI_TEXT, "FILE",
     "netlist, compiled or synthetic fabric (pgft:2;4,4;1,4;1,1) in place of one switch",
     .where = &given.fabric},
    {"--lfts", 0, CLI_TEXT, "FILE", "the fabric's forwarding tables (opensm-lfts.dump)",
     .where = &given.lfts},
    {"--place", 0, CLI_TEXT, "HOW",
     "which of the fabric's hosts are host 0, 1, ...: order (of routing), random:SEED, or a FILE "
     "with one name per line",
     .where = &given.place},
    {"--wire-report", 0, CLI_TEXT, "FILE",
     "write at the end the bytes and the most flows at once of each link (-: standard output)",
     .where = &given.report},
    {"--personality", 0, CLI_TAKEN, "NAME,...",
     "behave as certain adapters do, see below: sets the options named there, each of which can be "
     "given alone too",
     .take = take_personalities},
    {"--no-srq", 0, CLI_FLAG, NULL, "no shared receive queues", .where = &given.conf.no_srq},
    {"--no-ah", 0, CLI_FLAG, NULL, "no address handles: datagrams reach nobody",
     .where = &given.conf.no_ah},
    {"--max-groups", 0, CLI_WHOLE, "N",
     "multicast groups that the subnet administrator makes, in all (default: 1024)",
     .where = &given.conf.max_groups, .high = SHM_GROUPS},
    {"--inline-errno", 0, CLI_WHOLE, "N",
     "the error for more inline data than --max-inline (default: 22)",
     .where = &given.conf.inline_errno, .low = 1, .high = 133},
    {"--inline-step", 0, CLI_WHOLE, "BYTES",
     "requested inline sizes are rounded up to a multiple of this (default: 1)",
     .where = &given.conf.inline_step, .low = 1, .high = 4096},
    {"--count-queues", 0, CLI_FLAG, NULL, "the memory of queues counts against --max-locked",
     .where = &given.conf.count_queues},
    {"--swap", 0, CLI_FLAG, NULL,
     "writes of one queue pair land whole in any order, unless one waits for a completion between "
     "them",
     .where = &given.conf.swap},
    {"--scatter", 0, CLI_FLAG, NULL,
     "packets of one queue pair's writes land in any order, but for writes with immediate data, "
     "which keep the route",
     .where = &given.conf.scatter},
    {"--in-order", 0, CLI_FLAG, NULL,
     "ibv_query_qp_data_in_order says that the bytes of a write land in order",
     .where = &given.conf.in_order},
    {"--stalls", 0, CLI_FLAG, NULL,
     "report the longest time in which all processes polled and none posted, counting a poll as 1 "
     "us",
     .where = &given.conf.stalls},
    {"--relaxed-only", 0, CLI_FLAG, NULL, "memory can be registered with relaxed ordering only",
     .where = &given.conf.relaxed_only},
    {"--ece", 0, CLI_WHOLE, "BITS",
     "options of enhanced connection establishment; HCAs of hosts 1, 3, ... lack the lowest, and "
     "messages between queue pairs with different options are lost (default: 0)",
     .where = &given.conf.ece, .high = UINT32_MAX},
    {"--grh", 0, CLI_CHOICE, "none|all|odd",
     "InfiniBand ports that require a global header, as virtual functions do: all, or those of "
     "hosts 1, 3, ...",
     .where = &given.conf.grh, .low = PORTS_NONE, .words = headers},
    {"--pkeys", 0, CLI_TAKEN, "KEYS[/KEYS]",
     "the ports' partition keys by index, as in 7fff,8001 (the upper bit: full member); after the "
     "slash those of hosts 1, 3, ... (default: ffff)",
     .take = take_pkeys},
    {"--dir", 0, CLI_TEXT, "DIR", "where the shared file lives (default: /dev/shm)",
     .where = &given.dir},
    {"--memory", 0, CLI_WHOLE, "GIB",
     "address space of the shared file, which bounds the queues of all processes together "
     "(default: 32)",
     .where = &given.gib, .low = 1, .high = 1024},
    {"--fault", 0, CLI_TAKEN, "FAULT", "inject a fault, see below; repeatable", .take = take_fault},
    {"--control", 0, CLI_TEXT, "SOCKET", "accept faults on this socket during the run",
     .where = &given.control},
    {"--tell", 0, CLI_TEXT, "SOCKET", "send the faults that follow to the run with that --control",
     .where = &given.tell},
    {"--quiet", 0, CLI_FLAG, NULL, "no banner", .where = &given.quiet},
    {"--version", 'V', CLI_FLAG, NULL, "which softhca-run this is", .where = &wants_version},
    {.name = NULL},
};

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

static void print_rest(void)
{
    printf("\nPersonalities:\n");
    for (size_t i = 0; i < COUNT_OF(personalities); i++) {
        const struct personality *p = &personalities[i];
        char left[64], text[256];

        snprintf(left, sizeof(left), "  %s", p->name);
        snprintf(text, sizeof(text), "%s [%s]", p->help, p->settings);
        cli_print_help(stdout, left, 25, text);
    }
    fault_print_help();
    printf("\nExit code: the command's; 2 for wrong options; 3 when it was 0 but wrong uses of\n"
           "verbs were reported.\n");
}

static struct cli_args args = {.usage = "[--] COMMAND [ARGUMENT...]",
                               .summary = "Runs COMMAND, and all that it starts, on software HCAs "
                                          "in place of InfiniBand hardware; or "
                                          "softhca-run --tell SOCKET FAULT...",
                               .options = rows,
                               .epilogue = print_rest,
                               .is_before = true};

int front_refuse(int err, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    cli_say(NULL, format, list);
    va_end(list);
    return err;
}

/* One or two lists of hexadecimal keys; hosts 1, 3, ... have the first when there is one. */
static int take_pkeys(void *where, const char *text)
{
    uint16_t keys[2][SHM_PKEYS] = {{0}};
    int list = 0, n = 0;

    (void)where;
    for (const char *at = text;; at++) {
        char *end;
        unsigned long key = strtoul(at, &end, 16);

        if (!isxdigit((unsigned char)*at) || key < 1 || key > 0xffff || n == SHM_PKEYS ||
            (*end && *end != ',' && (*end != '/' || list == 1))) {
            return cli_bad_value(NULL, "--pkeys", text,
                                 "up to four keys from 1 to ffff, as in 7fff,8001, and after a "
                                 "slash up to four of hosts 1, 3, ...");
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
    memcpy(given.conf.pkeys[0], keys[0], sizeof(keys[0]));
    memcpy(given.conf.pkeys[1], keys[list], sizeof(keys[0]));
    return CLI_OK;
}

/* A number of packets, or of bytes when it has a unit. */
static int take_burst(void *where, const char *text)
{
    enum { MOST = 1 << 20 };
    uint64_t value, packet = strspn(text, "0123456789") == strlen(text) ? 1 : WIRE_PACKET;
    char wanted[96];

    (void)where;
    if (cli_parse_bytes(text, strlen(text), &value) == 0 && value % packet == 0 &&
        value >= packet && value / packet <= MOST) {
        given.burst = (uint32_t)(value / packet);
        return CLI_OK;
    }
    snprintf(wanted, sizeof(wanted), "from 1 to %d packets of %d bytes, or as many bytes as in 16K",
             MOST, WIRE_PACKET);
    return cli_bad_value(NULL, "--burst", text, wanted);
}

/* Its text alone: it is read when the hosts are known. */
static int take_fault(void *where, const char *text)
{
    bool is_full = given.faults == COUNT_OF(given.fault);

    (void)where;
    if (is_full || strlen(text) >= FAULT_TEXT) {
        return cli_error(NULL, "--fault '%.32s'%s", text,
                         is_full ? " is one too many" : " is too long");
    }
    snprintf(given.fault[given.faults++].text, FAULT_TEXT, "%s", text);
    return CLI_OK;
}

int options_faults(struct options *o)
{
    for (uint32_t i = 0; i < o->faults; i++) {
        char text[FAULT_TEXT], why[256] = "show is for --tell";

        memcpy(text, o->fault[i].text, sizeof(text));
        if (fault_parse(text, &o->conf, &o->fault[i], why, sizeof(why)) != 0 ||
            o->fault[i].kind == FAULT_SHOW) {
            return front_refuse(-EINVAL, "--fault '%s': %s", text, why);
        }
    }
    return 0;
}

/* Applies "name=value ..."; *set has the options that a personality before has set. */
static int take_settings(const struct personality *p, uint64_t *set)
{
    for (const char *at = p->settings; *at;) {
        size_t length = strcspn(at, " ");
        const char *equals = memchr(at, '=', length);
        char name[32], value[64];
        const struct cli_option *o;

        snprintf(name, sizeof(name), "--%.*s", (int)(equals - at), at);
        snprintf(value, sizeof(value), "%.*s", (int)(at + length - equals - 1), equals + 1);
        o = cli_find(&args, name, strlen(name));
        if (*set & 1ull << (o - rows)) {
            return cli_error(NULL, "--personality: %s excludes another there: both set %s", p->name,
                             name);
        }
        *set |= 1ull << (o - rows);
        if (cli_take(&args, o, value) != CLI_OK) {
            return CLI_USAGE;
        }
        at += length + (at[length] == ' ');
    }
    return CLI_OK;
}

static int take_personalities(void *where, const char *text)
{
    uint64_t set = 0;

    (void)where;
    for (const char *at = text;; at++) {
        char name[32];
        const char *hint;
        size_t length = strcspn(at, ",");
        int row;

        snprintf(name, sizeof(name), "%.*s", length < sizeof(name) ? (int)length : 31, at);
        row = name_find(personalities, COUNT_OF(personalities), sizeof(personalities[0]), name,
                        &hint);
        if (row < 0) {
            return cli_error(NULL, "--personality: there is no '%s'%s", name, hint);
        }
        if (take_settings(&personalities[row], &set) != CLI_OK) {
            return CLI_USAGE;
        }
        at += length;
        if (!*at) {
            return CLI_OK;
        }
    }
}

static int check_together(const struct options *o)
{
    uint64_t ports = (uint64_t)(o->conf.hosts ? o->conf.hosts : 1) * o->conf.hcas * o->conf.ports;

    if ((ports << o->conf.lmc) + SHM_FIRST_LID > SHM_LIDS - 1024) {
        return cli_error(NULL,
                         "--hosts, --hcas, --ports and --lmc give more ports than there are LIDs");
    }
    if (o->bond && o->fabric) {
        return cli_error(NULL, "--bond excludes --fabric: its cables are those of the fabric");
    }
    if (o->conf.in_order && (o->conf.swap || o->conf.scatter || o->conf.adversarial)) {
        return cli_error(NULL,
                         "--in-order excludes --swap, --scatter and --adversarial: the data of a "
                         "write lands in order or not");
    }
    return 0;
}

int options_parse(int argc, char **argv, struct options *o, int *command)
{
    int status;

    given = initial;
    wants_version = args.helped = false;
    cli_program = "softhca-run";
    status = cli_parse(&args, argc, argv);
    if (status == CLI_OK && wants_version) {
        puts("ibshift " PACKAGE_VERSION);
    }
    if (status != CLI_OK || args.helped || wants_version) {
        return status != CLI_OK ? -EINVAL : 1;
    }
    *o = given;
    *command = args.rest;
    if (args.rest >= argc) {
        return front_refuse(-EINVAL, "no command to run; softhca-run --help lists the options");
    }
    return check_together(o) == CLI_OK ? 0 : -EINVAL;
}

/*
 * `ibshift fabric publish`: the file that jobs read, from what other tools left about a fabric, or from the
 * fabric that this machine is on; it says which subnet that was and when. Nothing but that file is written.
 */
#include "fabric/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabric/live.h"
#include "fabric/read/compiled.h"
#include "fabric/sources.h"
#include "proof/compare.h"
#include "route/verify.h"

/* The compiled form; CLI_OK or CLI_USAGE with a message. */
static int write_compiled(const struct cli_args *args, const char *path,
                          const struct ibshift_fabric *f, const uint32_t *order, uint32_t count,
                          int64_t *bytes)
{
    struct output out;
    int rc;

    (void)umask(022); /* all users' jobs read it, whoever writes it */
    rc = cli_output_open(args->command, path, &out);
    if (rc != CLI_OK) {
        return rc;
    }
    *bytes = ibshift_compiled_write(out.file, f, order, count);
    return cli_output_close(args->command, path, &out, rc);
}

/* The same with the routing order. */
static int write_ordered(const struct cli_args *args, const char *path,
                         const struct ibshift_fabric *f, int64_t *bytes)
{
    uint32_t count, *order = fabric_find_order(args, f, true, &count);
    int rc = write_compiled(args, path, f, order, count, bytes);

    free(order);
    return rc;
}

/* A job must not find out that its tables lead nowhere; and it must know whether packets on one service level may wait
 * in a circle. */
static int check_tables(const struct cli_args *args, struct ibshift_fabric *f)
{
    struct route_proof proof;

    route_verify_tables(f, &proof);
    if (proof.circles + proof.strays != 0) {
        return cli_error(args->command, "%" PRIu64 " of %" PRIu64 " routes do not arrive: %s",
                         proof.circles + proof.strays, proof.routes, proof.broken);
    }
    if (proof.lost > proof.routes / 2) { /* not hosts that are down */
        return cli_error(args->command,
                         "%" PRIu64 " of %" PRIu64
                         " routes have no next hop: the tables are not complete: %s",
                         proof.lost, proof.routes, proof.broken);
    }
    if (proof.lost != 0) {
        fprintf(stderr,
                "ibshift %s: warning: %" PRIu64 " of %" PRIu64
                " routes have no next hop; jobs that need them are refused: %s\n",
                args->command, proof.lost, proof.routes, proof.broken);
    }
    f->has_loop = proof.cycle_length != 0;
    if (f->has_loop && f->sl == NULL) {
        fprintf(stderr,
                "ibshift %s: warning: on one virtual lane these tables may deadlock: without the "
                "service levels of all pairs (path records of the subnet manager) jobs leave long "
                "all-to-alls to other components\n",
                args->command);
    }
    return CLI_OK;
}

#define PLACE "/etc/ibshift/fabric"

enum { HOUR = 3600, YEAR = 366 * 24 * HOUR };

struct publish {
    const struct cli_args *args;
    const char *output;
    struct fabric_live live;
    bool is_adaptive, is_json, is_checking;
    uint32_t valid; /* seconds; 0: for ever */
    struct fabric_sources sources;
    struct ibshift_fabric *fabric, *old; /* old: what the file has now, or NULL */
    char changed[512];                   /* the first thing; empty: nothing */
};

/* ---- what there is ---- */

#ifdef HAVE_IBNETDISC

static int load_live(struct publish *p, struct ibshift_error *err)
{
    int rc = fabric_live_read(&p->live, &p->fabric, err);

    if (rc == 0) {
        fabric_live_facts(&p->live, &p->sources.facts);
    }
    return rc;
}

#else

static int load_live(struct publish *p, struct ibshift_error *err)
{
    (void)p;
    return ibshift_fail(err, -ENODEV, "built without libibnetdisc: name files or a folder");
}

#endif

static int load_files(struct publish *p, struct ibshift_error *err)
{
    const struct fabric_sources *s = &p->sources;
    struct ibshift_warnings warnings = {.count = 0};
    int rc;

    if (s->graph == NULL) {
        return ibshift_fail(err, -ENOENT,
                            "nothing says what the cables are: wants ibnetdiscover's output, "
                            "opensm-subnet.lst, ibdiagnet's .lst");
    }
    rc = ibshift_fabric_load(s->graph, s->tables, &p->fabric, &warnings, err);
    fabric_args_warn(p->args, &warnings);
    if (rc == 0 && p->fabric->lft == NULL) {
        return ibshift_fail(err, -ENODATA,
                            "%s has no forwarding tables, and no other file has: wants dump_fts' "
                            "output, opensm-lfts.dump or an .fdbs file",
                            s->graph);
    }
    if (rc == 0 && s->sl != NULL && p->fabric->image != NULL) {
        return ibshift_fail(err, -EINVAL, "%s is compiled: name what it was compiled from",
                            s->graph);
    }
    return rc == 0 && s->sl != NULL ? ibshift_sl_load(s->sl, p->fabric, err) : rc;
}

/* Or what SOURCE_DATE_EPOCH says, for files that are the same whenever they are made. */
static uint64_t time_now(void)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    long value;

    return epoch != NULL && cli_parse_long(epoch, 1, LONG_MAX, &value) == 0 ? (uint64_t)value
                                                                            : (uint64_t)time(NULL);
}

static void set_imprint(struct publish *p)
{
    const struct fabric_facts *facts = &p->sources.facts;
    struct ibshift_fabric *f = p->fabric;
    uint64_t now = time_now();
    bool has_lid = facts->sm_lid != 0 && facts->sm_lid <= IBSHIFT_LID_MAX;
    uint32_t port = has_lid ? f->lid_port[facts->sm_lid] : IBSHIFT_NO_PORT;

    f->imprint = (struct ibshift_imprint){.subnet_prefix = facts->subnet_prefix,
                                          .sm_guid = facts->sm_guid,
                                          .time = now,
                                          .expires = p->valid == 0 ? 0 : now + p->valid,
                                          .activity = facts->activity,
                                          .sm_lid = facts->sm_lid};
    if (f->imprint.sm_guid == 0 && port != IBSHIFT_NO_PORT) {
        f->imprint.sm_guid = f->ports[port].guid;
    }
    f->is_adaptive |= p->is_adaptive || facts->adaptive_switches != 0;
}

/* ---- what it is worth ---- */

/* Sets old where there is a file that says something about this fabric. */
static void look_at_old(struct publish *p)
{
    struct ibshift_error err;

    if (ibshift_compiled_read(p->output, &p->old, &err) != 0) {
        snprintf(p->changed, sizeof(p->changed), "%s",
                 access(p->output, F_OK) != 0 ? "there was no file" : err.text);
        return;
    }
    /* Few sources tell it: a check does not ask for --adaptive again. */
    p->fabric->is_adaptive |= p->is_checking && p->old->is_adaptive;
    if (p->old->lft == NULL) {
        snprintf(p->changed, sizeof(p->changed), "the file has no tables");
    } else if (fabric_compare(p->old, p->fabric, !p->is_checking, &err) != 0) {
        snprintf(p->changed, sizeof(p->changed), "%s", err.text);
    }
}

/* What jobs hold against a file whose cables and routes are right. */
static void look_at_imprint(struct publish *p)
{
    const struct ibshift_imprint *old = &p->old->imprint, *now = &p->fabric->imprint;
    char *text = p->changed;
    size_t size = sizeof(p->changed);

    if (old->expires != 0 && old->expires < now->time) {
        snprintf(text, size, "it was valid for %" PRIu64 " s, which are over",
                 old->expires - old->time);
    } else if (now->subnet_prefix != 0 && old->subnet_prefix != 0 &&
               old->subnet_prefix != now->subnet_prefix) {
        snprintf(text, size, "subnet prefix %016" PRIx64 ", and %016" PRIx64 " before",
                 now->subnet_prefix, old->subnet_prefix);
    } else if (now->sm_lid != 0 && old->sm_lid != 0 && old->sm_lid != now->sm_lid) {
        snprintf(text, size, "the subnet manager is at LID %u, and was at LID %u", now->sm_lid,
                 old->sm_lid);
    }
}

static int write_new(struct publish *p)
{
    int64_t bytes;
    int rc = check_tables(p->args, p->fabric);

    return rc == CLI_OK ? write_ordered(p->args, p->output, p->fabric, &bytes) : rc;
}

static int write_again(struct publish *p)
{
    int64_t bytes;

    p->old->imprint = p->fabric->imprint;
    return write_compiled(p->args, p->output, p->old, p->old->order, p->old->order_count, &bytes);
}

/* ---- what is said ---- */

static void report_json(const struct publish *p)
{
    const struct ibshift_fabric *f = p->fabric;
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "file", p->output);
    json_value(&j, "hosts", "%u", f->host_count);
    json_value(&j, "switches", "%u", f->switch_count);
    json_value(&j, "graph", "\"%016" PRIx64 "\"", f->guid_sum);
    json_value(&j, "tables", "\"%016" PRIx64 "\"", f->tables_sum);
    json_value(&j, "subnet_prefix", "\"%016" PRIx64 "\"", f->imprint.subnet_prefix);
    json_value(&j, "sm_guid", "\"%016" PRIx64 "\"", f->imprint.sm_guid);
    json_value(&j, "sm_lid", "%u", f->imprint.sm_lid);
    json_value(&j, "activity", "%u", f->imprint.activity);
    json_value(&j, "time", "%" PRIu64, f->imprint.time);
    json_value(&j, "expires", "%" PRIu64, f->imprint.expires);
    json_bool(&j, "adaptive", f->is_adaptive);
    json_text(&j, "changed", p->changed);
    json_end(&j);
}

static void report(const struct publish *p)
{
    const struct ibshift_fabric *f = p->fabric;
    bool is_new = p->changed[0] != '\0';

    printf("%s: %u hosts, %u switches\n", p->output, f->host_count, f->switch_count);
    if (p->is_checking && p->old == NULL) {
        printf("such a file cannot be used: %s\n", p->changed);
    } else {
        if (p->is_checking && is_new) {
            printf("stale: %s; from ", p->changed);
        } else {
            fputs(is_new ? "published: " : p->is_checking ? "holds: " : "confirmed: ", stdout);
        }
        fabric_imprint_print(&f->imprint, stdout);
        putchar('\n');
    }
    if (is_new && !p->is_checking) {
        printf("changed: %s\n", p->changed);
    }
    if (f->is_adaptive) {
        printf("marked as routed adaptively: jobs go host by host\n");
    }
}

/* What would be published, and nothing is written: what is new is said before it is found wrong. */
static int compare(struct publish *p)
{
    bool is_new = p->changed[0] != '\0';
    int rc;

    if (!is_new) {
        look_at_imprint(p);
    }
    if (p->old != NULL) {
        p->fabric->imprint = p->old->imprint;
    }
    (p->is_json ? report_json : report)(p);
    (void)fflush(stdout);
    rc = is_new ? check_tables(p->args, p->fabric) : CLI_OK;
    return rc == CLI_OK && p->changed[0] != '\0' ? CLI_FAILED : rc;
}

/* Words in the wrong order must not cost the cables. A damaged file may be replaced. */
static int check_replaced(const struct publish *p)
{
    char head[sizeof(IBSHIFT_COMPILED_MAGIC) - 1] = "";
    struct stat info;
    FILE *file = stat(p->output, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0
                     ? fopen(p->output, "r")
                     : NULL;
    bool is_other = file != NULL && (fread(head, sizeof(head), 1, file) != 1 ||
                                     memcmp(head, IBSHIFT_COMPILED_MAGIC, sizeof(head)) != 0);

    if (file != NULL) {
        (void)fclose(file);
    }
    return is_other ? cli_error(p->args->command,
                                "%s is there and no compiled fabric: not replaced", p->output)
                    : CLI_OK;
}

static int publish(struct publish *p)
{
    struct ibshift_error err;
    int rc = p->is_checking ? CLI_OK : cli_check_output(p->args->command, p->output);

    rc = rc == CLI_OK && !p->is_checking ? check_replaced(p) : rc;
    if (rc != CLI_OK) {
        return rc;
    }
    for (unsigned i = 0; i < p->args->count; i++) {
        fabric_must(p->args, fabric_sources_add(&p->sources, p->args->positional[i], &err), &err);
    }
    rc = p->args->count == 0 ? load_live(p, &err) : load_files(p, &err);
    if (rc != 0) {
        fabric_args_fail(p->args, &err);
        return rc == -ENODEV ? CLI_UNFIT : CLI_USAGE;
    }
    set_imprint(p);
    look_at_old(p);
    if (p->is_checking) {
        return compare(p);
    }
    rc = p->changed[0] == '\0' ? write_again(p) : write_new(p);
    if (rc == CLI_OK) {
        (p->is_json ? report_json : report)(p);
    }
    return rc;
}

int cmd_fabric_publish(int argc, char **argv)
{
    struct publish p = {.output = PLACE, .valid = 0};
    bool is_quiet = false;
    const struct cli_option options[] = {
        /* --check reads it: nothing need be writable. */
        {"--output", 'o', CLI_TEXT, "FILE", "the file to write (default: " PLACE ")",
         .where = &p.output},
        {"--valid", 0, CLI_WHOLE, "SECONDS",
         "jobs call the file old so many seconds after it was written (default: never)",
         .where = &p.valid, .low = 60, .high = YEAR},
        {"--adaptive", 0, CLI_FLAG, NULL,
         "the fabric routes adaptively: jobs go host by host, and make no order of its tables",
         .where = &p.is_adaptive},
        {"--check", 0, CLI_FLAG, NULL,
         "write nothing, compare the file with the fabric; exit code 1 where they differ",
         .where = &p.is_checking},
        {"--device", 0, CLI_TEXT, "NAME",
         "without SOURCE: the HCA to ask through (default: the first with an active port)",
         .where = &p.live.device},
        {"--port", 0, CLI_WHOLE, "N", "its port (default: the first active one)",
         .where = &p.live.port, .low = 0, .high = 254},
        cli_json_option(&p.is_json),
        cli_quiet_option(&is_quiet),
        {.name = NULL},
    };
    struct cli_args args = {
        .command = "fabric publish",
        .usage = "[SOURCE...]",
        .summary = "SOURCE: files of OpenSM, ibdiagnet, ibnetdiscover, dump_fts, sminfo and "
                   "saquery, or a folder of them. Without any the fabric itself is asked.",
        .options = options,
        .most = CLI_POSITIONALS};
    int rc = cli_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    p.args = &args;
    p.live.has_progress = !is_quiet && isatty(STDERR_FILENO);
    rc = publish(&p);
    ibshift_fabric_free(p.fabric);
    ibshift_fabric_free(p.old);
    fabric_sources_free(&p.sources);
    return rc;
}

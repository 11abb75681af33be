/* `ibshift route`: one engine's tables for a fabric, proven, in the form that OpenSM loads. */
#include "route/route.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/cmd.h"
#include "fabric/joblist.h"
#include "fabric/names.h"
#include "route/verify.h"

/* --jobs: which job each host has, from lines as `squeue -h -t R -o '%i|%N'` prints them. */

struct reader {
    struct route *r;
    char stranger[64]; /* the first node that the fabric lacks */
    bool has_two;      /* hosts, or more, has some job */
    struct ibshift_error *err;
};

/* A job on nodes that the fabric lacks is left out. */
static int job_read(void *context, const struct fabric_listed *job)
{
    struct reader *reader = context;
    struct route *r = reader->r;

    if (job->stranger != NULL) {
        if (r->unknown_jobs++ == 0) {
            snprintf(reader->stranger, sizeof(reader->stranger), "%.63s", job->stranger);
        }
        return 0;
    }
    r->jobs++;
    reader->has_two |= job->count > 1;
    for (uint32_t i = 0; i < job->count; i++) {
        if (r->job_of[job->hosts[i]] != 0) {
            const char *name = ibshift_host_name(r->fabric, job->hosts[i]);

            return ibshift_fail(reader->err, -EEXIST,
                                "%s: '%.*s' is that of another job, too: a host has one job",
                                job->where, (int)strcspn(name, " \t"), name);
        }
        r->job_of[job->hosts[i]] = r->jobs;
    }
    return 0;
}

static int read_jobs(struct route *r, const char *path, struct ibshift_error *err)
{
    struct reader reader = {.r = r, .err = err};
    const struct fabric_joblist to = {r->fabric, job_read, &reader};
    struct pool pool = {NULL};
    uint32_t *first;
    int rc;

    r->job_of = pool_new(&r->pool, r->fabric->host_count, sizeof(*r->job_of));
    rc = fabric_joblist_load(path, &to, err);
    if (rc == 0 && r->jobs == 0) {
        rc = r->unknown_jobs == 0
                 ? ibshift_fail(err, -EINVAL, "--jobs %.200s: no line with a job", path)
                 : ibshift_fail(err, -ENOENT,
                                "--jobs %.200s: no job is on this fabric alone, which has no '%s'",
                                path, reader.stranger);
    }
    if (rc == 0 && !reader.has_two) {
        rc = ibshift_fail(err, -EINVAL, "--jobs %.200s: no job on 2 hosts or more", path);
    }
    first = fabric_nodes_of(r->fabric, &pool);
    for (uint32_t h = 0; h < r->fabric->host_count; h++) {
        r->job_of[h] = r->job_of[first[h]]; /* all adapters of a node */
    }
    pool_free(&pool);
    return rc;
}

/* What OpenSM loads: `opensm -R file -U FILE`. */

static void put_hex(char *at, uint64_t value, unsigned digits)
{
    for (; digits-- > 0; value >>= 4) {
        at[digits] = "0123456789abcdef"[value & 15];
    }
}

/* OpenSM wants the colon. By hand: a large fabric has 10^8 rows. */
static void put_row(FILE *out, unsigned lid, unsigned port, uint64_t guid)
{
    char row[] = "0x.... ... # portguid 0x................:\n";

    put_hex(row + 2, lid, 4);
    row[7] = (char)('0' + port / 100);
    row[8] = (char)('0' + port / 10 % 10);
    row[9] = (char)('0' + port % 10);
    put_hex(row + 24, guid, 16);
    (void)fwrite(row, 1, sizeof(row) - 1, out);
}

/* By LID: the port GUID of a host's port, the node GUID of a switch, 0. */
static uint64_t guid_of(const struct ibshift_fabric *f, const uint32_t *switch_at, unsigned lid)
{
    if (f->lid_port[lid] != IBSHIFT_NO_PORT) {
        return f->ports[f->lid_port[lid]].guid;
    }
    return switch_at[lid] != 0 ? f->nodes[switch_at[lid] - 1].guid : 0;
}

static void write_table(const struct ibshift_fabric *f, const uint32_t *switch_at, uint32_t sw,
                        FILE *out)
{
    const struct ibshift_node *node = &f->nodes[f->switches[sw]];

    fprintf(out, "Unicast lids [0-%u] of switch Lid %u guid 0x%016" PRIx64 " ('%s'):\n",
            f->lft_stride - 1, node->lid, node->guid, ibshift_node_name(f, f->switches[sw]));
    for (unsigned lid = 1; lid < f->lft_stride && !ferror(out); lid++) {
        unsigned port = ibshift_lft_get(f, sw, lid);

        if (port != 0 || lid == node->lid) {
            put_row(out, lid, port, guid_of(f, switch_at, lid));
        }
    }
}

/* The tables as `opensm -R file -U` reads them; rows carry the port GUID, by which OpenSM finds
 * its own LID. */
static void write_tables(const struct route *r, FILE *out)
{
    static uint32_t switch_at[IBSHIFT_LID_MAX + 1]; /* node + 1 */
    const struct ibshift_fabric *f = r->fabric;

    for (uint32_t s = 0; s < f->switch_count; s++) {
        switch_at[f->nodes[f->switches[s]].lid] = f->switches[s] + 1;
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        write_table(f, switch_at, s, out);
    }
}

static void write_order(const struct route *r, FILE *out)
{
    fabric_order_write(r->fabric, r->order, r->order_count, out);
}

/* Service levels as OpenSM's plug-in for path records has them, by the LID of the destination. */
static void write_levels(const struct route *r, uint32_t host, FILE *out)
{
    const struct ibshift_fabric *f = r->fabric;
    const struct ibshift_port *port = &f->ports[f->hosts[host]];
    uint32_t leaf = ibshift_switch_behind(f, f->hosts[host]);

    fprintf(out,
            "Channel Adapter 0x%016" PRIx64 ", base LID %u, \"%s\", port %u\n"
            "# LID  : SL : MTU : RATE\n",
            port->guid, port->lid, ibshift_host_name(f, host), port->number);
    for (uint32_t to = 0; to < f->host_count; to++) {
        for (unsigned i = 0; i < ibshift_host_lid_count(f, to); i++) {
            unsigned lid = ibshift_host_lid(f, to) + i;
            unsigned level = r->sl == NULL || leaf == IBSHIFT_NO_SWITCH
                                 ? 0
                                 : r->sl[(size_t)leaf * f->lft_stride + lid];

            fprintf(out, "0x%04X : %-2u : 0   : 0   \n", lid, level); /* 0: not known here */
        }
    }
    fputc('\n', out);
}

static void write_sl(const struct route *r, FILE *out)
{
    for (uint32_t host = 0; host < r->fabric->host_count; host++) {
        write_levels(r, host, out);
    }
}

static void write_sl2vl(const struct route *r, FILE *out)
{
    fabric_sl2vl_write(r->fabric, &r->lanes, out);
}

#define ENGINES_MOST 32
#define LMC_KEPT     UINT32_MAX /* as in the fabric */

struct route_run {
    const struct cli_args *args;
    const struct route_engine *engine;
    bool json, no_verify, force;
    const char *tables, *order, *sl, *sl2vl, *jobs; /* files; NULL: none */
    uint32_t lmc, vls, seed;                        /* LMC_KEPT */
    double seconds, cpu; /* of the engine: by the clock, of all its threads */
};

static void help(void)
{
    printf("engines:\n");
    for (const struct route_engine *e = route_engines; e->name != NULL; e++) {
        char left[32], text[256];

        snprintf(left, sizeof(left), "  %s", e->name);
        snprintf(text, sizeof(text), "%s; needs %s", e->help, e->needs);
        cli_print_help(stdout, left, 12, text);
    }
    printf("\noptions:\n");
}

static int find_engine(struct route_run *run)
{
    const char *names[ENGINES_MOST], *name = run->args->positional[0];
    size_t count = 0;

    run->engine = route_engine_find(name);
    if (run->engine != NULL) {
        return CLI_OK;
    }
    for (; count < ENGINES_MOST && route_engines[count].name != NULL; count++) {
        names[count] = route_engines[count].name;
    }
    return cli_unknown("route", "no engine", name, names, count, "ibshift route --help lists them");
}

static int write_files(const struct route_run *run, const struct route *r)
{
    const struct {
        const char *path;
        void (*write)(const struct route *r, FILE *out);
    } files[] = {{run->tables, write_tables},
                 {run->order, write_order},
                 {run->sl, write_sl},
                 {run->sl2vl, write_sl2vl}};
    struct output out;
    int rc = CLI_OK;

    for (size_t i = 0; rc == CLI_OK && i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i].path == NULL) {
            continue;
        }
        rc = cli_output_open("route", files[i].path, &out);
        if (rc == CLI_OK) {
            files[i].write(r, out.file);
            rc = cli_output_close("route", files[i].path, &out, rc);
        }
    }
    return rc;
}

static void print(const struct route_run *run, const struct route *r,
                  const struct route_proof *proof, FILE *out)
{
    const struct ibshift_fabric *f = r->fabric;

    if (run->json) {
        struct json j;

        json_begin(&j, out);
        json_text(&j, "engine", run->engine->name);
        json_value(&j, "hosts", "%u", f->host_count);
        json_value(&j, "switches", "%u", f->switch_count);
        json_value(&j, "seconds", "%.6f", run->seconds);
        json_value(&j, "cpu", "%.6f", run->cpu);
        json_value(&j, "vls", "%u", r->vls_used);
        if (r->job_of != NULL) {
            json_value(&j, "jobs", "%u", r->jobs);
            json_value(&j, "unknown", "%u", r->unknown_jobs);
            json_value(&j, "fullest", "%.0f", r->fullest);
            json_value(&j, "fullest_before", "%.0f", r->fullest_before);
        }
        if (proof != NULL) {
            route_proof_json(proof, &j);
        }
        json_end(&j);
        return;
    }
    fprintf(out, "%s: tables of %u switch%s for %u host%s\n", run->engine->name, f->switch_count,
            f->switch_count == 1 ? "" : "es", f->host_count, f->host_count == 1 ? "" : "s");
    if (r->job_of != NULL) {
        fprintf(out, "jobs: %u", r->jobs);
        if (r->unknown_jobs > 0) {
            fprintf(out, " (left out: %u on nodes that are not in the fabric)", r->unknown_jobs);
        }
        fprintf(out,
                "; if each calls once, the fullest cable up carries %.0f messages, by "
                "tables for no jobs %.0f\n",
                r->fullest, r->fullest_before);
    }
    if (proof != NULL) {
        route_proof_print(r->fabric, r->vls_used, proof, out);
    }
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int refuse(int rc, const struct ibshift_error *err)
{
    cli_error("route", "%s", err->text);
    return rc == -ENOTSUP ? CLI_UNFIT : CLI_FAILED;
}

static int build_tables(struct route_run *run, struct route *r)
{
    struct ibshift_error err = {""};
    double start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    int rc = run->engine->build(r, &err);

    if (rc == 0) {
        route_to_switches(r);
    }
    run->seconds = now(CLOCK_MONOTONIC) - start;
    run->cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    return rc == 0 ? CLI_OK : refuse(rc, &err);
}

/* The file has no SLs: all packets of whoever loads it with nothing else share one VL. */
static int check_without_lanes(const struct route_run *run, const struct route *r)
{
    struct route bare = *r;
    struct route_proof proof;
    char name[256];

    if (run->tables == NULL || r->sl == NULL) {
        return CLI_OK;
    }
    bare.sl = NULL;
    bare.lanes.vl = NULL;
    bare.vls_used = 1;
    route_verify(&bare, run->seed, &proof);
    if (proof.cycle_length == 0) {
        return CLI_OK;
    }
    ibshift_link_name(r->fabric, proof.cycle[0].link, name, sizeof(name));
    cli_error("route",
              "%s: a file of tables has no SLs; on one VL, as opensm -R file loads it, these have "
              "a credit loop (%u channels, one is %s)%s",
              run->tables, proof.cycle_length, name,
              run->force
                  ? ": written all the same"
                  : ": not written; engines updn and flexible need one VL, --force writes them");
    return run->force ? CLI_OK : CLI_FAILED;
}

/* Nothing is written of tables that are not proven. */
static int finish(const struct route_run *run, const struct route *r)
{
    struct route_proof proof;
    int rc;

    if (!run->no_verify) {
        route_verify(r, run->seed, &proof);
    }
    print(run, r, run->no_verify ? NULL : &proof, stdout);
    if (!run->no_verify && !route_is_proven(&proof)) {
        cli_error("route", "the tables are not right: nothing is written");
        return CLI_FAILED;
    }
    rc = check_without_lanes(run, r);
    return rc == CLI_OK ? write_files(run, r) : rc;
}

static int route(const struct cli_args *args, struct ibshift_fabric *source)
{
    struct route_run *run = args->context;
    struct ibshift_error err = {""};
    struct route r;
    int rc = route_open(source, run->lmc == LMC_KEPT ? -1 : (int)run->lmc, &r, &err);

    if (rc != 0) {
        return refuse(rc, &err);
    }
    r.vls = run->vls;
    rc = run->jobs != NULL ? read_jobs(&r, run->jobs, &err) : 0;
    if (rc == 0) {
        rc = build_tables(run, &r);
    } else {
        rc = cli_error("route", "%s", err.text);
    }
    if (rc == CLI_OK) {
        rc = finish(run, &r);
    }
    route_close(&r);
    return rc;
}

int cmd_route(int argc, char **argv)
{
    struct route_run run = {.lmc = LMC_KEPT, .vls = 8, .seed = 1};
    const struct cli_option options[] = {
        cli_output_option(
            &run.tables,
            "write the tables there, as opensm -R file -U reads them; -: standard output"),
        {"--order", 0, CLI_OUTPUT, "FILE", "write the order whose shift the tables are made for",
         .where = &run.order},
        {"--sl", 0, CLI_OUTPUT, "FILE",
         "write the service level of each pair, as ibshift fabric publish reads it",
         .where = &run.sl},
        {"--sl2vl", 0, CLI_OUTPUT, "FILE",
         "write the SL-to-VL tables of the switches, as opensm-sl2vl.dump has them",
         .where = &run.sl2vl},
        {"--jobs", 0, CLI_TEXT, "FILE",
         "engines pgft and qft: tables that let these jobs share cables evenly; lines of ID|NODES",
         .where = &run.jobs},
        {"--lmc", 0, CLI_WHOLE, "N",
         "2^N LIDs per host, on different routes (default: as in the fabric)", .where = &run.lmc,
         .low = 0, .high = IBSHIFT_LMC_MAX},
        {"--vls", 0, CLI_WHOLE, "N", "data VLs that all ports have (default: 8)", .where = &run.vls,
         .low = 1, .high = ROUTE_VLS_MOST},
        {"--no-verify", 0, CLI_FLAG, NULL, "do not prove the tables free of deadlock and complete",
         .where = &run.no_verify},
        {"--force", 0, CLI_FLAG, NULL,
         "write tables that have a credit loop without the engine's SLs", .where = &run.force},
        {"--seed", 0, CLI_WHOLE, "N",
         "seed of the shifts that are counted where not all are (default: 1)", .where = &run.seed,
         .low = 1, .high = INT32_MAX},
        cli_json_option(&run.json),
        {.name = NULL},
    };
    struct cli_args args = {.command = "route",
                            .usage = "ENGINE FABRIC",
                            .preface = help,
                            .options = options,
                            .least = 2,
                            .most = 2,
                            .context = &run};
    int rc = cli_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    run.args = &args;
    rc = find_engine(&run);
    if (rc == CLI_OK && run.jobs != NULL && run.engine->build != route_pgft &&
        run.engine->build != route_qft) {
        rc = cli_error(args.command,
                       "--jobs goes with the engines pgft and qft, whose hosts may change places");
    }
    args.positional[0] = args.positional[1];
    args.positional[1] = NULL;
    return rc == CLI_OK ? fabric_with(&args, route) : rc;
}

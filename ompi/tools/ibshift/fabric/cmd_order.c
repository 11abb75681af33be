/* `ibshift fabric order`, `compile` and `discover`: the order of hosts, and the files that have it. */
#include "fabric/cmd_order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/live.h"
#include "fabric/names.h"
#include "fabric/paths/route.h"
#include "fabric/read/compiled.h"
#include "fabric/shape/order.h"
#include "route/verify.h"

int fabric_find_order(const struct cli_args *args, const struct ibshift_fabric *f, bool keepers,
                      uint32_t **order, uint32_t *count)
{
    struct ibshift_shape shape;
    struct ibshift_error err;
    int rc = ibshift_shape_find(f, &shape, &err);

    if (rc == 0) {
        *count = f->host_count;
        rc = keepers ? ibshift_order_keepers(f, &shape, order, count, &err)
                     : ibshift_order_routing(f, &shape, order, &err);
        ibshift_shape_free(&shape);
    }
    return rc == 0 ? CLI_OK : fabric_args_fail(args, &err);
}

static void print_order(const struct fabric_names *names, const uint32_t *order, uint32_t count)
{
    char name[FABRIC_NAME_SIZE];

    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == IBSHIFT_NO_HOST) {
            puts("0xFFFF\tDUMMY");
        } else {
            printf("0x%04x\t%s\n", ibshift_host_lid(names->fabric, order[i]),
                   fabric_names_get(names, order[i], name, sizeof(name)));
        }
    }
}

static void print_order_json(const struct fabric_names *names, const uint32_t *order,
                             uint32_t count)
{
    char name[FABRIC_NAME_SIZE];
    struct json j;

    json_begin(&j, stdout);
    json_open(&j, "order", '[');
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == IBSHIFT_NO_HOST) {
            json_value(&j, NULL, "null");
            continue;
        }
        json_open(&j, NULL, '{');
        json_value(&j, "lid", "%u", ibshift_host_lid(names->fabric, order[i]));
        json_text(&j, "host", fabric_names_get(names, order[i], name, sizeof(name)));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
}

struct order_options {
    bool json, keepers;
};

static int order(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct order_options *o = args->context;
    struct fabric_names names;
    uint32_t *hosts = NULL, count = 0;
    int rc = fabric_find_order(args, f, o->keepers, &hosts, &count);

    if (rc == CLI_OK && fabric_names_open(f, &names) != 0) {
        rc = cli_error(args->command, "no memory for the names of %u hosts", f->host_count);
    } else if (rc == CLI_OK) {
        (o->json ? print_order_json : print_order)(&names, hosts, count);
        fabric_names_close(&names);
    }
    free(hosts);
    return rc;
}

int cmd_fabric_order(int argc, char **argv)
{
    struct order_options o = {.json = false};
    const struct cli_option options[] = {
        {"--keepers", 0, CLI_FLAG, NULL, "with place keepers (DUMMY) for hosts that are missing",
         .where = &o.keepers},
        cli_json_option(&o.json),
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric order", options, &o);

    return fabric_command(&args, argc, argv, order);
}

int fabric_write(const struct cli_args *args, const char *path, const struct ibshift_fabric *f,
                 const uint32_t *order, uint32_t count, int64_t *bytes)
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

/* Writes the compiled form with the routing order and says so; CLI_OK or CLI_USAGE. */
static int fabric_compile(const struct cli_args *args, const struct ibshift_fabric *f,
                          const char *path)
{
    uint32_t *order = NULL, count = 0;
    int64_t bytes = 0;
    int rc = fabric_find_order(args, f, true, &order, &count);

    rc = rc == CLI_OK ? fabric_write(args, path, f, order, count, &bytes) : rc;
    free(order);
    if (rc == CLI_OK) {
        printf("%s: %u host%s, %u switch%s, %lld KiB\n", path, f->host_count,
               f->host_count == 1 ? "" : "s", f->switch_count, f->switch_count == 1 ? "" : "es",
               ((long long)bytes + 1023) / 1024);
        if (f->is_adaptive) {
            printf("%s: marked as routed adaptively: jobs keep rank order\n", path);
        }
    }
    return rc;
}

/* A job must not find out that its tables lead nowhere. */
int fabric_check_routes(const struct cli_args *args, const struct ibshift_fabric *f)
{
    struct ibshift_table_check check;
    struct ibshift_error err;

    if (ibshift_fabric_check(f, NULL, &check, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    if (check.circles + check.strays != 0) {
        return cli_error(args->command, "%" PRIu64 " of %" PRIu64 " routes do not arrive: %s",
                         check.circles + check.strays, check.routes, check.problem[0]);
    }
    if (check.lost > check.routes / 2) { /* not hosts that are down */
        return cli_error(args->command,
                         "%" PRIu64 " of %" PRIu64
                         " routes have no next hop: the tables are not complete: %s",
                         check.lost, check.routes, check.problem[0]);
    }
    if (check.lost != 0) {
        fprintf(stderr,
                "ibshift %s: warning: %" PRIu64 " of %" PRIu64
                " routes have no next hop; jobs that need them are refused:\n",
                args->command, check.lost, check.routes);
    }
    for (unsigned i = 0; i < check.told; i++) {
        fprintf(stderr, "  %s\n", check.problem[i]);
    }
    if (check.lost > check.told) {
        fprintf(stderr, "  and %" PRIu64 " more\n", check.lost - check.told);
    }
    return CLI_OK;
}

/* What jobs must know of the tables: whether packets on one service level may wait in a circle. */
int fabric_find_loop(const struct cli_args *args, struct ibshift_fabric *f)
{
    struct route_proof proof = {.routes = 0};
    struct ibshift_error err;

    if (route_verify_tables(f, &proof, &err) != 0) {
        return fabric_args_fail(args, &err);
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

struct compile_options {
    const char *output, *sl;
    bool is_adaptive;
};

static int compile(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct compile_options *o = args->context;
    struct ibshift_error err;
    int rc;

    f->is_adaptive |= o->is_adaptive;
    if (f->lft == NULL) {
        return cli_error(args->command, "%s has no tables: name a file of them",
                         args->positional[0]);
    }
    if (o->sl != NULL && f->image != NULL) {
        return cli_error(args->command, "%s is compiled: name what it was compiled from",
                         args->positional[0]);
    }
    if (o->sl != NULL && ibshift_sl_load(o->sl, f, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    rc = fabric_check_routes(args, f);
    rc = rc == CLI_OK ? fabric_find_loop(args, f) : rc;
    return rc == CLI_OK ? fabric_compile(args, f, o->output) : rc;
}

int cmd_fabric_compile(int argc, char **argv)
{
    struct compile_options o = {.output = NULL};
    const struct cli_option options[] = {
        {"--output", 'o', CLI_OUTPUT, "FILE", "the file to write (needed)", .where = &o.output,
         .is_needed = true},
        {"--adaptive", 0, CLI_FLAG, NULL,
         "the fabric routes adaptively: jobs keep rank order, and say why",
         .where = &o.is_adaptive},
        {"--sl", 0, CLI_TEXT, "FILE",
         "path records with the service level of each pair: opensm-path-records.dump, or what "
         "saquery prints",
         .where = &o.sl},
        {.name = NULL},
    };
    struct cli_args args = {.command = "fabric compile",
                            .usage = "--output FILE FABRIC [LFTS]",
                            .options = options,
                            .least = 1,
                            .most = 2,
                            .context = &o};

    return fabric_command(&args, argc, argv, compile);
}

/* `ibshift fabric discover`: the fabric that this machine is on, into a compiled file. */

#ifdef HAVE_IBNETDISC

static int discover(const struct cli_args *args, const struct fabric_live *live, const char *output)
{
    struct ibshift_fabric *f;
    struct ibshift_error err;
    int rc;

    if (fabric_live_read(live, &f, &err) != 0) {
        fabric_args_fail(args, &err);
        return CLI_UNFIT;
    }
    rc = fabric_find_loop(args, f);
    rc = rc == CLI_OK ? fabric_compile(args, f, output) : rc;
    ibshift_fabric_free(f);
    return rc;
}

#else

static int discover(const struct cli_args *args, const struct fabric_live *live, const char *output)
{
    (void)live;
    (void)output;
    cli_error(args->command, "built without libibnetdisc: give a file to ibshift fabric compile");
    return CLI_UNFIT;
}

#endif

int cmd_fabric_discover(int argc, char **argv)
{
    struct fabric_live live = {.device = NULL};
    uint32_t port = 0, in_flight = 16;
    const char *output = NULL;
    bool is_quiet = false;
    const struct cli_option options[] = {
        {"--output", 'o', CLI_OUTPUT, "FILE", "the compiled file to write (needed)",
         .where = &output, .is_needed = true},
        {"--device", 0, CLI_TEXT, "NAME",
         "the HCA to ask through (default: the first with an active port)", .where = &live.device},
        {"--port", 0, CLI_WHOLE, "N", "its port (default: the first active one)", .where = &port,
         .low = 0, .high = 254},
        {"--in-flight", 0, CLI_WHOLE, "N", "datagrams under way at once, 1 to 128 (default: 16)",
         .where = &in_flight, .low = 1, .high = FABRIC_LIVE_FLIGHT_MAX},
        cli_quiet_option(&is_quiet),
        {.name = NULL},
    };
    struct cli_args args = {
        .command = "fabric discover", .usage = "--output FILE", .options = options};
    int rc = cli_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    live.port = (int)port;
    live.in_flight = in_flight;
    live.has_progress = !is_quiet && isatty(STDERR_FILENO);
    return discover(&args, &live, output);
}

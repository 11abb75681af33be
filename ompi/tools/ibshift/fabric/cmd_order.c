/* `ibshift fabric order` and `ibshift fabric compile`. */
#include "fabric/cmd.h"
#include "fabric/names.h"
#include "fabric/read/compiled.h"
#include "fabric/shape/check.h"
#include "fabric/shape/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

static int find_order(const struct fabric_args *args, const struct ibshift_fabric *f, bool keepers,
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

    putchar('[');
    for (uint32_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : ",\n ", stdout);
        if (order[i] == IBSHIFT_NO_HOST) {
            fputs("null", stdout);
        } else {
            printf("{\"lid\": %u, \"host\": ", ibshift_host_lid(names->fabric, order[i]));
            json_quote(stdout, fabric_names_get(names, order[i], name, sizeof(name)));
            putchar('}');
        }
    }
    puts("]");
}

int cmd_fabric_order(int argc, char **argv)
{
    bool json = false, keepers = false;
    const struct fabric_option options[] = {
        {"--keepers", NULL, "with place keepers (DUMMY) for hosts that are missing", &keepers,
         NULL},
        {"--json", NULL, "the same as a JSON array, null for place keepers", &json, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    struct fabric_args args = {.command = "fabric order",
                               .usage = "FABRIC [LFTS]",
                               .options = options,
                               .least = 1,
                               .most = 2};
    struct fabric_names names;
    struct ibshift_fabric *f;
    uint32_t *order = NULL, count = 0;
    int rc = fabric_args_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    rc = fabric_args_load(&args, &f);
    if (rc != CLI_OK) {
        return rc;
    }
    rc = find_order(&args, f, keepers, &order, &count);
    if (rc == CLI_OK && fabric_names_open(f, &names) != 0) {
        rc = cli_error(args.command, "no memory for the names of %u hosts", f->host_count);
    } else if (rc == CLI_OK) {
        (json ? print_order_json : print_order)(&names, order, count);
        fabric_names_close(&names);
    }
    free(order);
    ibshift_fabric_free(f);
    return rc;
}

int fabric_compile(const struct fabric_args *args, const struct ibshift_fabric *f, const char *path)
{
    uint32_t *order = NULL, count = 0;
    struct ibshift_error err;
    struct stat info = {.st_size = 0};
    int rc = find_order(args, f, true, &order, &count);

    if (rc == CLI_OK && ibshift_compiled_write(path, f, order, count, &err) != 0) {
        rc = fabric_args_fail(args, &err);
    }
    free(order);
    if (rc == CLI_OK) {
        stat(path, &info);
        printf("%s: %u hosts, %u switches, %.1f MiB\n", path, f->host_count, f->switch_count,
               (double)info.st_size / (1 << 20));
        if (f->is_adaptive) {
            printf("%s: marked as routed adaptively: jobs keep to rank order\n", path);
        }
    }
    return rc;
}

/* A job must not find out that its tables lead nowhere. */
static int check_routes(const struct fabric_args *args, const struct ibshift_fabric *f)
{
    struct ibshift_check check;
    struct ibshift_error err;

    if (ibshift_fabric_check(f, NULL, &check, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    if (check.circles + check.strays != 0) {
        return cli_error(args->command, "%" PRIu64 " of %" PRIu64 " routes do not arrive: %s",
                         check.circles + check.strays, check.routes, check.problem[0]);
    }
    if (check.lost != 0) {
        fprintf(stderr,
                "ibshift %s: note: %" PRIu64 " of %" PRIu64
                " routes have no way on; jobs that need them are refused:\n",
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

static int compile_loaded(const struct fabric_args *args, const struct ibshift_fabric *f,
                          const char *output)
{
    int rc;

    if (f->lft == NULL) {
        return cli_error(args->command, "%s has no tables: name a file of them",
                         args->positional[0]);
    }
    rc = check_routes(args, f);
    return rc == CLI_OK ? fabric_compile(args, f, output) : rc;
}

int cmd_fabric_compile(int argc, char **argv)
{
    const char *output = NULL;
    bool is_adaptive = false;
    const struct fabric_option options[] = {
        {"--output", "FILE", "the file to write (needed)", NULL, &output},
        {"--adaptive", NULL, "the fabric routes adaptively: jobs keep to rank order, and say why",
         &is_adaptive, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    struct fabric_args args = {.command = "fabric compile",
                               .usage = "--output FILE FABRIC [LFTS]",
                               .options = options,
                               .least = 1,
                               .most = 2};
    struct ibshift_fabric *f;
    int rc = fabric_args_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    if (output == NULL) {
        return cli_error(args.command, "wants --output FILE");
    }
    rc = fabric_args_load(&args, &f);
    if (rc != CLI_OK) {
        return rc;
    }
    f->is_adaptive |= is_adaptive;
    rc = compile_loaded(&args, f, output);
    ibshift_fabric_free(f);
    return rc;
}

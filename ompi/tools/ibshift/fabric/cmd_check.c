/* `ibshift fabric check`: do the tables bring every packet to its host, and is a compiled file
 * still true? */
#include "fabric/cmd.h"
#include "fabric/shape/check.h"
#include "fabric/read/compiled.h"
#include "route/verify.h"

#include <errno.h>
#include <inttypes.h>

/* Up and down mean something where there are levels. */
static bool has_levels(const struct ibshift_shape *shape)
{
    return shape->kind != IBSHIFT_SHAPE_TORUS && shape->digits != NULL;
}

/* The tables do not say which packets take which VL: with more than one, a cycle is a warning. */
static void print_loops(const struct ibshift_fabric *f, const struct route_proof *proof)
{
    if (proof->cycle_length == 0) {
        printf("no credit loop: %" PRIu64 " dependencies between channels, acyclic on one VL\n",
               proof->dependencies);
    } else {
        printf("on one VL these tables may deadlock (with the SLs of an engine that uses several "
               "VLs they need not)\n");
        route_cycle_print(f, proof, stdout);
    }
}

static void print_check(const struct ibshift_check *c, const struct ibshift_shape *shape)
{
    printf("%" PRIu64 " routes from leaf switches to LIDs, the longest of %u links\n", c->routes,
           c->longest);
    printf("  %" PRIu64 " have no way on, %" PRIu64 " run in circles, %" PRIu64
           " end at another host, ",
           c->lost, c->circles, c->strays);
    if (has_levels(shape)) {
        printf("%" PRIu64 " go up after going down\n", c->turns);
    } else {
        printf("not a tree: no way is up or down\n");
    }
    for (unsigned i = 0; i < c->told; i++) {
        printf("  %s\n", c->problem[i]);
    }
}

static void print_check_json(const struct ibshift_check *c, const struct ibshift_shape *shape,
                             const struct route_proof *proof)
{
    char turns[24] = "null";

    if (has_levels(shape)) {
        snprintf(turns, sizeof(turns), "%" PRIu64, c->turns);
    }
    printf("{\"routes\": %" PRIu64 ", \"longest\": %u, \"lost\": %" PRIu64 ", \"circles\": %" PRIu64
           ", \"strays\": %" PRIu64 ", \"up_after_down\": %s, \"dependencies\": %" PRIu64 ", "
           "\"cycle\": %u, \"findings\": %u, \"problems\": [",
           c->routes, c->longest, c->lost, c->circles, c->strays, turns, proof->dependencies,
           proof->cycle_length, shape->findings);
    for (unsigned i = 0; i < c->told; i++) {
        fputs(i == 0 ? "" : ", ", stdout);
        json_quote(stdout, c->problem[i]);
    }
    puts("]}");
}

static int check(const struct fabric_args *args, const struct ibshift_fabric *f, bool json)
{
    struct ibshift_shape shape;
    struct ibshift_check result;
    struct route_proof proof = {.routes = 0};
    struct ibshift_error err;
    int rc = ibshift_shape_find(f, &shape, &err);

    if (rc != 0) {
        return fabric_args_fail(args, &err);
    }
    rc = ibshift_fabric_check(f, has_levels(&shape) ? &shape : NULL, &result, &err);
    rc = rc == 0 ? route_verify_tables(f, &proof, &err) : rc;
    if (rc != 0) {
        rc = fabric_args_fail(args, &err);
    } else {
        if (json) {
            print_check_json(&result, &shape, &proof);
        } else {
            print_check(&result, &shape);
            print_loops(f, &proof);
        }
        rc = result.lost + result.circles + result.strays != 0 ? CLI_FAILED : CLI_OK;
    }
    ibshift_shape_free(&shape);
    return rc;
}

static int compare(const struct fabric_args *args, const struct ibshift_fabric *now,
                   const char *old_name)
{
    struct ibshift_notes notes = {.count = 0};
    struct ibshift_error err;
    struct ibshift_fabric *old;
    int rc = ibshift_fabric_load(old_name, NULL, &old, &notes, &err);

    if (rc != 0) {
        return fabric_args_fail(args, &err);
    }
    rc = ibshift_fabric_compare(old, now, &err);
    ibshift_fabric_free(old);
    if (rc == 0) {
        printf("%s still holds\n", old_name);
        return CLI_OK;
    }
    printf("%s is stale: %s\n", old_name, err.text);
    return CLI_FAILED;
}

int cmd_fabric_check(int argc, char **argv)
{
    bool json = false;
    const char *old = NULL;
    const struct fabric_option options[] = {
        {"--compiled", "FILE", "is this compiled file still true of the fabric?", NULL, &old},
        {"--json", NULL, "the result as a JSON object", &json, NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    struct fabric_args args = {.command = "fabric check",
                               .usage = "FABRIC [LFTS]",
                               .options = options,
                               .least = 1,
                               .most = 2};
    struct ibshift_fabric *f;
    int rc = fabric_args_parse(&args, argc, argv);

    if (rc != CLI_OK || args.helped) {
        return rc;
    }
    rc = fabric_args_load(&args, &f);
    if (rc == CLI_OK) {
        rc = old != NULL ? compare(&args, f, old) : check(&args, f, json);
        ibshift_fabric_free(f);
    }
    return rc;
}

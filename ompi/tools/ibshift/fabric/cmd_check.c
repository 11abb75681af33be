/* `ibshift fabric check`: do the tables bring every packet to its host, and is a compiled file
 * still true? */
#include "fabric/cmd.h"
#include "fabric/shape/check.h"
#include "fabric/read/compiled.h"
#include "route/verify.h"

#include <errno.h>
#include <inttypes.h>

struct check_options {
    bool json;
    const char *compiled;
};

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
    struct json j;

    json_begin(&j, stdout);
    json_value(&j, "routes", "%" PRIu64, c->routes);
    json_value(&j, "longest", "%u", c->longest);
    json_value(&j, "lost", "%" PRIu64, c->lost);
    json_value(&j, "circles", "%" PRIu64, c->circles);
    json_value(&j, "strays", "%" PRIu64, c->strays);
    if (has_levels(shape)) {
        json_value(&j, "up_after_down", "%" PRIu64, c->turns);
    } else {
        json_value(&j, "up_after_down", "null");
    }
    json_value(&j, "dependencies", "%" PRIu64, proof->dependencies);
    json_value(&j, "cycle", "%u", proof->cycle_length);
    json_value(&j, "findings", "%u", shape->findings);
    json_open(&j, "problems", '[');
    for (unsigned i = 0; i < c->told; i++) {
        json_text(&j, NULL, c->problem[i]);
    }
    json_close(&j, ']');
    json_end(&j);
}

static int check(const struct cli_args *args, const struct ibshift_fabric *f, bool json)
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

static int compare(const struct cli_args *args, const struct ibshift_fabric *now,
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

static int check_or_compare(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct check_options *o = args->context;

    return o->compiled != NULL ? compare(args, f, o->compiled) : check(args, f, o->json);
}

int cmd_fabric_check(int argc, char **argv)
{
    struct check_options o = {.json = false};
    const struct cli_option options[] = {
        {"--compiled", 0, CLI_TEXT, "FILE", "is this compiled file still true of the fabric?",
         .where = &o.compiled},
        cli_json_option(&o.json),
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric check", options, &o);

    return fabric_command(&args, argc, argv, check_or_compare);
}

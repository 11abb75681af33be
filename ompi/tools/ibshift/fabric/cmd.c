/* `ibshift fabric`: its commands, and those of them that look at a fabric alone: show and check. */
#include "fabric/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "fabric/graph/rate.h"
#include "fabric/paths/contend.h"
#include "fabric/shape/shape.h"
#include "fabric/table/placement.h"
#include "pool.h"
#include "route/verify.h"

/* `ibshift fabric show`: what a fabric is, in the manner of lstopo. */

struct show {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    uint32_t cables, slow_cables, fast_cables, near_least, near_most;
    struct ibshift_rate usual_rate;
    unsigned lmc;
    char name[128];
};

/* The rate that most cables have. */
static void count_cables(struct show *s)
{
    const struct ibshift_fabric *f = s->f;
    uint32_t votes = 0;

    for (uint32_t p = 0; p < f->port_count; p++) {
        struct ibshift_rate rate = f->ports[p].rate;

        if (f->ports[p].peer == IBSHIFT_NO_PORT) {
            continue;
        }
        s->cables++;
        s->usual_rate = votes == 0 ? rate : s->usual_rate;
        votes = rate.mbps == s->usual_rate.mbps ? votes + 1 : votes - 1;
    }
    for (uint32_t p = 0; p < f->port_count; p++) {
        if (f->ports[p].peer != IBSHIFT_NO_PORT) {
            s->slow_cables += f->ports[p].rate.mbps < s->usual_rate.mbps;
            s->fast_cables += f->ports[p].rate.mbps > s->usual_rate.mbps;
        }
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        unsigned lmc = f->ports[f->hosts[h]].lmc;

        s->lmc = lmc > s->lmc ? lmc : s->lmc;
    }
    s->cables /= 2;
    s->slow_cables /= 2;
    s->fast_cables /= 2;
}

static void print_time(uint64_t time, FILE *out)
{
    char text[32];
    struct tm tm;
    time_t seconds = (time_t)time;

    if (gmtime_r(&seconds, &tm) == NULL || strftime(text, sizeof(text), "%F %R UTC", &tm) == 0) {
        fprintf(out, "%" PRIu64, time);
    } else {
        fputs(text, out);
    }
}

void fabric_imprint_print(const struct ibshift_imprint *imprint, FILE *out)
{
    print_time(imprint->time, out);
    if (imprint->expires != 0) {
        fputs(", good until ", out);
        print_time(imprint->expires, out);
    }
    if (imprint->subnet_prefix != 0) {
        fprintf(out, "; subnet %016" PRIx64, imprint->subnet_prefix);
    }
    if (imprint->sm_guid != 0) {
        fprintf(out, ", subnet manager %016" PRIx64 " at LID %u", imprint->sm_guid,
                imprint->sm_lid);
    }
}

static void show_head(const struct show *s)
{
    const struct ibshift_fabric *f = s->f;
    char rate[32];

    printf("Fabric: %u host%s, %u switch%s, %u cable%s", f->host_count, cli_plural(f->host_count),
           f->switch_count, f->switch_count == 1 ? "" : "es", s->cables, cli_plural(s->cables));
    if (s->usual_rate.mbps != 0) {
        ibshift_rate_name(s->usual_rate, rate, sizeof(rate));
        printf(" %s", rate);
    }
    if (s->slow_cables != 0 || s->fast_cables != 0) {
        printf(" (%u slower, %u faster)", s->slow_cables, s->fast_cables);
    }
    if (s->lmc != 0) {
        printf(", %u LIDs per host (LMC %u)", 1u << s->lmc, s->lmc);
    }
    printf("\nShape:  %s\n", s->name);
    if (s->near_least < s->near_most) {
        printf("Near:   %u to %u hosts within three switches\n", s->near_least, s->near_most);
    } else {
        printf("Near:   %u host%s within three switches\n", s->near_most, cli_plural(s->near_most));
    }
    if (f->imprint.time != 0) {
        fputs("Published: ", stdout);
        fabric_imprint_print(&f->imprint, stdout);
        putchar('\n');
    }
}

static void show_groups(unsigned groups, unsigned ports, const char *way)
{
    if (ports > 1) {
        printf("%u groups of %u %s", groups, ports, way);
    } else {
        printf("%u %s", groups, way);
    }
}

static void show_level(const struct ibshift_shape *t, unsigned l)
{
    const struct ibshift_level *level = &t->level[l];
    unsigned down = l == 1 ? t->hosts_per_leaf : level->groups_down * level->ports_down;
    unsigned up = level->groups_up * level->ports_up;

    printf("  Level %u: %u switch%s, ", l, level->switches, level->switches == 1 ? "" : "es");
    if (l == 1) {
        printf("%u host%s", t->hosts_per_leaf, cli_plural(t->hosts_per_leaf));
    } else {
        show_groups(level->groups_down, level->ports_down, "down");
    }
    if (l < t->levels) {
        printf(", ");
        show_groups(level->groups_up, level->ports_up, "up");
        printf(", ratio %.3g:1", up == 0 ? 0.0 : (double)down / up);
    }
    if (level->expected != level->switches && level->expected != 0) {
        printf(" (whole: %u)", level->expected);
    }
    printf("\n");
}

/* Nothing differs in what the levels are made of; are the hosts where they belong? */
static void show_symmetric(const struct ibshift_fabric *f, const struct ibshift_shape *t)
{
    if (t->hosts_elsewhere == 0) {
        printf("Verdict: symmetric");
    } else if (t->hosts_elsewhere <= f->host_count / 10) {
        printf("Verdict: symmetric except for %u host%s not on a leaf switch", t->hosts_elsewhere,
               cli_plural(t->hosts_elsewhere));
    } else {
        printf("Verdict: not symmetric: %u of %u hosts are not on a leaf switch",
               t->hosts_elsewhere, f->host_count);
    }
    if (t->missing_hosts != 0) {
        printf(", %u place%s without a host", t->missing_hosts, cli_plural(t->missing_hosts));
    }
    printf("\n");
}

static void show_verdict(const struct ibshift_fabric *f, const struct ibshift_shape *t)
{
    if (t->parts > 1) {
        printf("Verdict: not one fabric: no cable joins its %u parts, '%s' and '%s' are in two\n",
               t->parts, ibshift_host_name(f, t->part_host[0]),
               ibshift_host_name(f, t->part_host[1]));
    } else if (t->kind == IBSHIFT_SHAPE_OTHER) {
        printf("Verdict: not a known tree or torus: the order comes from the tables\n");
    } else if (t->findings.count == 0) {
        show_symmetric(f, t);
    } else {
        printf("Verdict: the symmetry breaks in %u place%s\n", t->findings.count,
               cli_plural(t->findings.count));
    }
    for (uint32_t i = 0; i < ibshift_warnings_kept(&t->findings); i++) {
        printf("  %s\n", t->findings.text[i]);
    }
    if (t->findings.count > IBSHIFT_WARNINGS) {
        printf("  and %u more\n", t->findings.count - IBSHIFT_WARNINGS);
    }
    if (t->findings.count != 0 && t->hosts_elsewhere != 0) {
        printf("  %u host%s not on a leaf switch\n", t->hosts_elsewhere,
               t->hosts_elsewhere == 1 ? " is" : "s are");
    }
}

/* As for a job on all hosts, one rank each. */
static int find_limit(const struct ibshift_fabric *f, double *limit, char *link, size_t size,
                      struct ibshift_error *err)
{
    struct pool pool = {NULL};
    uint32_t *host_of = pool_new(&pool, f->host_count, sizeof(*host_of)), busiest;
    struct ibshift_placement *p = NULL;
    double bound = 0, own = 0;
    int rc;

    for (uint32_t h = 0; h < f->host_count; h++) {
        host_of[h] = h;
    }
    rc = ibshift_placement_open(f, host_of, f->host_count, &p, err);
    rc = rc == 0 ? ibshift_placement_routes(p, true, err) : rc;
    if (rc == 0 &&
        ibshift_alltoall_bound(p->paths, p->ranks, p->member_of, &bound, &busiest) != 0) {
        rc = ibshift_fail(err, -ENOMEM, "no memory");
    }
    for (uint32_t h = 0; rc == 0 && h < p->hosts; h++) {
        own = p->paths->host_cost[h] > own ? p->paths->host_cost[h] : own;
    }
    if (rc == 0) {
        *limit = bound / own / (f->host_count - 1);
        ibshift_contention_name(p->paths, busiest, link, size);
    }
    ibshift_placement_close(p);
    pool_free(&pool);
    return rc;
}

static void show_tables(const struct ibshift_fabric *f)
{
    double limit = 1;
    struct ibshift_error err;
    char name[256];

    if (f->lft == NULL) {
        printf("Tables: none\n");
        return;
    }
    if (f->is_adaptive) {
        printf("Tables: not followed, the switches route adaptively; on their own:\n");
    }
    if (f->host_count < 2) {
        return;
    }
    if (find_limit(f, &limit, name, sizeof(name), &err) != 0) {
        printf("Tables: an all-to-all of all hosts is not counted: %s\n", err.text);
    } else if (limit > 1 + 1e-9) {
        printf("Tables: an all-to-all of all hosts is limited to 1/%.4g of the hosts' rate by %s\n",
               limit, name);
    } else {
        printf("Tables: an all-to-all of all hosts can use the hosts' full rate\n");
    }
}

static void show_switch(const struct ibshift_fabric *f, const struct ibshift_shape *t,
                        uint32_t node)
{
    char tuple[64] = "";

    if (t->digits != NULL) {
        ibshift_shape_tuple(t, f, node, tuple, sizeof(tuple));
    }
    printf("  Switch %s  %s%sLID %u\n", ibshift_node_name(f, node), tuple, tuple[0] ? "  " : "",
           f->nodes[node].lid);
    for (unsigned p = 1; p <= f->nodes[node].port_count; p++) {
        uint32_t port = ibshift_node_port(f, node, p), peer = f->ports[port].peer;

        if (peer != IBSHIFT_NO_PORT) {
            uint32_t other = f->ports[peer].node;

            printf("    [%u] %s %s [%u]", p, ibshift_node_is_switch(f, other) ? "Switch" : "Host",
                   ibshift_node_name(f, other), f->ports[peer].number);
            printf(f->ports[peer].lid != 0 ? "  LID %u\n" : "\n", f->ports[peer].lid);
        }
    }
}

static void show_levels_json(const struct ibshift_shape *t, struct json *j)
{
    json_open(j, "levels", '[');
    for (unsigned l = 1; l <= t->levels && t->kind != IBSHIFT_SHAPE_TORUS; l++) {
        const struct ibshift_level *v = &t->level[l];

        json_open(j, NULL, '{');
        json_value(j, "level", "%u", l);
        json_value(j, "switches", "%u", v->switches);
        json_value(j, "expected", "%u", v->expected);
        json_value(j, "groups_down", "%u", l == 1 ? t->hosts_per_leaf : v->groups_down);
        json_value(j, "ports_down", "%u", l == 1 ? 1 : v->ports_down);
        json_value(j, "groups_up", "%u", v->groups_up);
        json_value(j, "ports_up", "%u", v->ports_up);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void show_json(const struct show *s)
{
    const struct ibshift_shape *t = s->shape;
    struct json j;

    json_begin(&j, stdout);
    json_text(&j, "shape", s->name);
    json_value(&j, "hosts", "%u", s->f->host_count);
    json_value(&j, "switches", "%u", s->f->switch_count);
    json_value(&j, "cables", "%u", s->cables);
    json_value(&j, "rate_mbps", "%u", s->usual_rate.mbps);
    json_value(&j, "lmc", "%u", s->lmc);
    json_value(&j, "near_least", "%u", s->near_least);
    json_value(&j, "near_most", "%u", s->near_most);
    json_bool(&j, "tables", s->f->lft != NULL);
    show_levels_json(t, &j);
    json_value(&j, "parts", "%u", t->parts);
    json_value(&j, "missing_hosts", "%u", t->missing_hosts);
    json_value(&j, "hosts_elsewhere", "%u", t->hosts_elsewhere);
    json_value(&j, "findings", "%u", t->findings.count);
    json_open(&j, "told", '[');
    for (uint32_t i = 0; i < ibshift_warnings_kept(&t->findings); i++) {
        json_text(&j, NULL, t->findings.text[i]);
    }
    json_close(&j, ']');
    json_end(&j);
}

struct show_options {
    bool json, all;
};

static int show(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct show_options *o = args->context;
    struct ibshift_shape shape;
    struct ibshift_error err;
    struct show s = {.f = f, .shape = &shape};

    fabric_must(args, ibshift_shape_find(f, &shape, &err), &err);
    ibshift_shape_name(&shape, s.name, sizeof(s.name));
    count_cables(&s);
    fabric_hosts_near(f, &s.near_least, &s.near_most);
    if (o->json) {
        show_json(&s);
    } else {
        show_head(&s);
        for (unsigned l = shape.kind == IBSHIFT_SHAPE_TORUS ? 0 : shape.levels; l >= 1; l--) {
            if (shape.level[l].switches != 0) {
                show_level(&shape, l);
            }
        }
        show_verdict(f, &shape);
        show_tables(f);
        for (uint32_t i = f->switch_count; o->all && i-- > 0;) {
            show_switch(f, &shape, f->switches[i]);
        }
    }
    ibshift_shape_free(&shape);
    return CLI_OK;
}

static int cmd_fabric_show(int argc, char **argv)
{
    struct show_options o = {.json = false};
    const struct cli_option options[] = {
        {"--all", 0, CLI_FLAG, NULL, "every switch with its tuple, cables and LIDs",
         .where = &o.all},
        cli_json_option(&o.json),
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric show", options, &o);

    return fabric_command(&args, argc, argv, show);
}

/* `ibshift fabric check`: do the tables bring every packet to its host? */

/* The tables do not say which packets take which VL: with more than one, a cycle is a warning. */
static void print_levels(const struct ibshift_fabric *f, const struct route_proof *proof,
                         unsigned vls)
{
    printf("with the service levels of all pairs, each on a VL of its own: ");
    if (proof->cycle_length == 0) {
        printf("no credit loop, %" PRIu64 " dependencies, acyclic on %u VLs\n", proof->dependencies,
               vls);
    } else {
        route_cycle_print(f, proof, stdout);
    }
}

static int check(const struct cli_args *args, struct ibshift_fabric *f)
{
    bool is_json = *(const bool *)args->context;
    struct route_proof tables, levels;
    unsigned vls;
    bool has_levels;
    struct json j;

    fabric_must_have_tables(args, f);
    route_verify_tables(f, &tables);
    has_levels = tables.cycle_length != 0 && route_verify_levels(f, &vls, &levels) == 0;
    if (is_json) {
        json_begin(&j, stdout);
        route_proof_json(&tables, &j);
        if (has_levels) {
            json_value(&j, "vls", "%u", vls);
            json_value(&j, "cycle_on_vls", "%u", levels.cycle_length);
        }
        json_end(&j);
    } else {
        route_proof_print(f, 1, &tables, stdout);
        if (has_levels) {
            print_levels(f, &levels, vls);
        } else if (tables.cycle_length != 0) {
            puts("with the service levels of an engine that uses several VLs they need not "
                 "deadlock");
        }
    }
    return tables.lost + tables.circles + tables.strays != 0 ? CLI_FAILED : CLI_OK;
}

static int cmd_fabric_check(int argc, char **argv)
{
    bool is_json = false;
    const struct cli_option options[] = {
        cli_json_option(&is_json),
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric check", options, &is_json);

    return fabric_command(&args, argc, argv, check);
}

static const struct cli_command rows[] = {
    {"show", cmd_fabric_show, "levels, port groups, ratios and whether the shape is whole"},
    {"order", cmd_fabric_order, "hosts in the order that the tables were made for"},
    {"check", cmd_fabric_check, "check that routes arrive"},
    {"contend", cmd_fabric_contend, "flows per link, stage by stage, of an order, table or plan"},
    {"schedule", cmd_fabric_schedule, "the cheapest order for the all-to-all of a job, and why"},
    {"bound", cmd_fabric_bound, "what no plan and no routes can beat, with a proof"},
    {"modes", cmd_fabric_modes, "what each LID offset gives the hosts of a job"},
    {"audit", cmd_fabric_audit, "what past jobs would have gained from an order, or jobs lose now"},
    {"place", cmd_fabric_place, "which free hosts a job should get"},
    {"publish", cmd_fabric_publish,
     "the file that jobs read, from the fabric or other tools' files; or its check"},
    {"export", cmd_fabric_export, "netlist or tables, for ibsim and OpenSM"},
};

static void print_rest(FILE *out)
{
    cli_print_help(out, "", 0,
                   "FABRIC is a file (ibnetdiscover's output, an ibsim netlist, opensm-subnet.lst, "
                   "a compiled fabric) or a synthetic fabric: kary:4,3  "
                   "pgft:3;18,9,36;1,9,18;1,2,1  qft:..  torus:8x8,4  hyperx:8x8,4  "
                   "dragonfly:4,8,4  dragonfly+:4,4,4,4  slimfly:7,5");
    cli_print_help(out, "", 0,
                   "LFTS is a file of forwarding tables (dump_fts' output, opensm-lfts.dump, "
                   "opensm.fdbs); '-' or nothing where FABRIC carries its tables.");
    fputs("\n  --help   this text; ibshift fabric COMMAND --help for that of a command\n", out);
}

int cmd_fabric(int argc, char **argv)
{
    const struct cli_commands commands = {.command = "fabric",
                                          .rows = rows,
                                          .count = sizeof(rows) / sizeof(rows[0]),
                                          .print_rest = print_rest};

    return cli_run(&commands, argc, argv);
}

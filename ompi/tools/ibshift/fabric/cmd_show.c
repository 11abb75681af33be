/* `ibshift fabric show`: what a fabric is, in the manner of lstopo. */
#include "fabric/cmd.h"
#include "fabric/paths/load.h"
#include "fabric/graph/rate.h"
#include "fabric/shape/shape.h"

#include <inttypes.h>
#include <stdlib.h>

struct show {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    uint32_t cables, slow_cables, fast_cables;
    struct ibshift_rate usual_rate;
    unsigned lmc;
    char name[128];
};

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

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

static void show_head(const struct show *s)
{
    const struct ibshift_fabric *f = s->f;
    char rate[32];

    printf("Fabric: %u host%s, %u switch%s, %u cable%s", f->host_count, plural(f->host_count),
           f->switch_count, f->switch_count == 1 ? "" : "es", s->cables, plural(s->cables));
    if (s->usual_rate.mbps != 0) {
        ibshift_rate_name(s->usual_rate, rate, sizeof(rate));
        printf(" %s", rate);
    }
    if (s->slow_cables != 0 || s->fast_cables != 0) {
        printf(" (%u slower, %u faster)", s->slow_cables, s->fast_cables);
    }
    if (s->lmc != 0) {
        printf(", %u LIDs a host (LMC %u)", 1u << s->lmc, s->lmc);
    }
    printf("\nShape:  %s\n", s->name);
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
        printf("%u host%s", t->hosts_per_leaf, plural(t->hosts_per_leaf));
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
        printf("Verdict: symmetric but for %u host%s not on a leaf switch", t->hosts_elsewhere,
               plural(t->hosts_elsewhere));
    } else {
        printf("Verdict: not symmetric: %u of %u hosts are not on a leaf switch",
               t->hosts_elsewhere, f->host_count);
    }
    if (t->missing_hosts != 0) {
        printf(", %u place%s without a host", t->missing_hosts, plural(t->missing_hosts));
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
        printf("Verdict: no tree or torus that is known here: the order comes from the tables\n");
    } else if (t->findings == 0) {
        show_symmetric(f, t);
    } else {
        printf("Verdict: the symmetry breaks in %u place%s\n", t->findings, plural(t->findings));
    }
    for (uint32_t i = 0; i < t->findings && i < IBSHIFT_FINDINGS; i++) {
        printf("  %s\n", t->finding[i]);
    }
    if (t->findings > IBSHIFT_FINDINGS) {
        printf("  and %u more\n", t->findings - IBSHIFT_FINDINGS);
    }
    if (t->findings != 0 && t->hosts_elsewhere != 0) {
        printf("  %u host%s not on a leaf switch\n", t->hosts_elsewhere,
               t->hosts_elsewhere == 1 ? " is" : "s are");
    }
}

static int show_tables(const struct cli_args *args, const struct ibshift_fabric *f)
{
    struct ibshift_load load;
    struct ibshift_error err;
    char name[256];

    if (f->lft == NULL) {
        printf("Tables: none\n");
        return CLI_OK;
    }
    if (f->is_adaptive) {
        printf("Tables: not followed, the switches route adaptively; on their own:\n");
    }
    if (ibshift_load_find(f, &load, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    ibshift_load_free(&load);
    if (f->host_count > 1) {
        ibshift_link_name(f, load.link, name, sizeof(name));
        printf("Tables: an all-to-all of all hosts needs at least %.4g times the time of the "
               "hosts' own links",
               load.least);
        printf(load.least > 1 ? " (%s)\n" : "\n", name);
    }
    return CLI_OK;
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
    json_bool(&j, "tables", s->f->lft != NULL);
    show_levels_json(t, &j);
    json_value(&j, "parts", "%u", t->parts);
    json_value(&j, "missing_hosts", "%u", t->missing_hosts);
    json_value(&j, "hosts_elsewhere", "%u", t->hosts_elsewhere);
    json_value(&j, "findings", "%u", t->findings);
    json_open(&j, "told", '[');
    for (uint32_t i = 0; i < t->findings && i < IBSHIFT_FINDINGS; i++) {
        json_text(&j, NULL, t->finding[i]);
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
    int rc = CLI_OK;

    if (ibshift_shape_find(f, &shape, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    ibshift_shape_name(&shape, s.name, sizeof(s.name));
    count_cables(&s);
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
        rc = show_tables(args, f);
        for (uint32_t i = f->switch_count; o->all && i-- > 0;) {
            show_switch(f, &shape, f->switches[i]);
        }
    }
    ibshift_shape_free(&shape);
    return rc;
}

int cmd_fabric_show(int argc, char **argv)
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

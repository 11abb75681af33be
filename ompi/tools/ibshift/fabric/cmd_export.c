/* `ibshift fabric order` and `export`: a fabric in the formats of other programs, OpenSM's order of hosts,
 * its tables for its file routing engine, ibsim's netlist, Slurm's topology.conf and topology.yaml. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/cmd.h"
#include "fabric/names.h"
#include "fabric/shape/order.h"

/* The routing order, with place keepers or without; the caller frees it. */
uint32_t *fabric_find_order(const struct cli_args *args, const struct ibshift_fabric *f,
                            bool keepers, uint32_t *count)
{
    struct ibshift_shape shape;
    struct ibshift_error err;
    uint32_t *order = NULL;

    fabric_must(args, ibshift_shape_find(f, &shape, &err), &err);
    *count = f->host_count;
    fabric_must(args,
                keepers ? ibshift_order_keepers(f, &shape, &order, count, &err)
                        : ibshift_order_routing(f, &shape, &order, &err),
                &err);
    ibshift_shape_free(&shape);
    return order;
}

static void print_order_json(const struct ibshift_fabric *f, const uint32_t *order, uint32_t count)
{
    char name[FABRIC_NAME_SIZE];
    struct fabric_names names;
    struct json j;

    fabric_names_open(f, &names);
    json_begin(&j, stdout);
    json_open(&j, "order", '[');
    for (uint32_t i = 0; i < count; i++) {
        if (order[i] == IBSHIFT_NO_HOST) {
            json_value(&j, NULL, "null");
            continue;
        }
        json_open(&j, NULL, '{');
        json_value(&j, "lid", "%u", ibshift_host_lid(f, order[i]));
        json_text(&j, "host", fabric_names_get(&names, order[i], name, sizeof(name)));
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_end(&j);
    pool_free(&names.pool);
}

struct order_options {
    bool json, keepers;
};

static int order(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct order_options *o = args->context;
    uint32_t count, *hosts = fabric_find_order(args, f, o->keepers, &count);

    if (o->json) {
        print_order_json(f, hosts, count);
    } else {
        fabric_order_write(f, hosts, count, stdout);
    }
    free(hosts);
    return CLI_OK;
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

/* ---- export ---- */

/*
 * In Slurm's tree each node stands once. Its leaf switches are those of the fabric; a switch above
 * them stands for a whole group of switches, since a host of a fat tree reaches several.
 */

struct slurm_node {
    char name[FABRIC_NODE_NAME];
    uint32_t leaf; /* index of its switch */
};

/* A switch of Slurm: a leaf switch, or all leaf switches of a group. */
struct slurm_switch {
    unsigned level;
    uint32_t leaf; /* the first of its leaf switches */
    uint32_t number;
};

struct slurm {
    struct pool pool;
    const struct ibshift_fabric *f;
    struct ibshift_shape shape;
    bool is_yaml;
    FILE *out;
    struct slurm_node *nodes;
    struct slurm_switch *lower, *upper; /* of two levels */
    uint32_t count, lowers, uppers, unnamed;
};

/* Shorter names first, so that n9 comes before n10. */
static int by_leaf(const void *a, const void *b)
{
    const struct slurm_node *x = a, *y = b;
    size_t p = strlen(x->name), q = strlen(y->name);

    if (x->leaf != y->leaf) {
        return x->leaf < y->leaf ? -1 : 1;
    }
    return p != q ? (p < q ? -1 : 1) : strcmp(x->name, y->name);
}

static int list_nodes(struct slurm *s, struct ibshift_error *err)
{
    struct fabric_nodes known;
    int rc = fabric_nodes_find(s->f, &s->pool, &known, err);

    s->nodes = pool_new(&s->pool, known.count, sizeof(*s->nodes));
    for (uint32_t i = 0; i < known.count; i++) {
        uint32_t leaf = ibshift_port_neighbour(s->f, s->f->hosts[known.at[i].host]);

        if (leaf != IBSHIFT_NO_NODE && ibshift_node_is_switch(s->f, leaf)) {
            struct slurm_node *node = &s->nodes[s->count++];

            memcpy(node->name, known.at[i].name, sizeof(node->name));
            node->leaf = s->f->nodes[leaf].switch_index;
        }
    }
    s->unnamed = known.unnamed;
    qsort(s->nodes, s->count, sizeof(*s->nodes), by_leaf);
    return rc;
}

/* The place of the last digits of the name, as many as Slurm counts in. */
static size_t number_at(const char *name)
{
    size_t size = strlen(name), at = size;

    while (at > 0 && size - at < 9 && isdigit((unsigned char)name[at - 1])) {
        at--;
    }
    return at;
}

static bool follows(const char *a, const char *b)
{
    size_t at = number_at(a);

    return a[at] != '\0' && strlen(a) == strlen(b) && number_at(b) == at &&
           strncmp(a, b, at) == 0 && strtoul(a + at, NULL, 10) + 1 == strtoul(b + at, NULL, 10);
}

/* "n[001-018],login": runs of numbers that have as many digits. */
static void print_nodes(const struct slurm *s, uint32_t leaf)
{
    const struct slurm_node *nodes = s->nodes;
    bool is_first = true;

    for (uint32_t i = 0, end; i < s->count; i = end) {
        size_t at = number_at(nodes[i].name);

        end = i + 1;
        if (nodes[i].leaf != leaf) {
            continue;
        }
        while (end < s->count && nodes[end].leaf == leaf &&
               follows(nodes[end - 1].name, nodes[end].name)) {
            end++;
        }
        fprintf(s->out, "%s%.*s", is_first ? "" : ",", (int)at, nodes[i].name);
        if (end - i > 1) {
            fprintf(s->out, "[%s-%s]", nodes[i].name + at, nodes[end - 1].name + at);
        } else {
            fputs(nodes[i].name + at, s->out);
        }
        is_first = false;
    }
}

/* By GUID, since descriptions may be alike and have any characters. */
static void print_name(const struct slurm *s, const struct slurm_switch *w)
{
    if (w->level == 1) {
        fprintf(s->out, "leaf-%016" PRIx64, s->f->nodes[s->f->switches[w->leaf]].guid);
    } else {
        fprintf(s->out, "level%u-%u", w->level, w->number);
    }
}

static void print_comment(const struct slurm *s, const struct slurm_switch *w)
{
    const char *text = ibshift_node_name(s->f, s->f->switches[w->leaf]);

    fputs(s->is_yaml ? "      # " : "# ", s->out);
    for (; *text != '\0'; text++) {
        fputc(isprint((unsigned char)*text) ? *text : '?', s->out);
    }
    fputc('\n', s->out);
}

static uint32_t group_of(const struct slurm *s, uint32_t leaf, unsigned level)
{
    if (level == 1) {
        return leaf;
    }
    return level > s->shape.levels || s->shape.down[level] == NULL ? 0 : s->shape.down[level][leaf];
}

static void print_switch(const struct slurm *s, const struct slurm_switch *w)
{
    bool is_first = true;

    if (w->level == 1) {
        print_comment(s, w);
    }
    fputs(s->is_yaml ? "      - switch: " : "SwitchName=", s->out);
    print_name(s, w);
    fputs(!s->is_yaml     ? w->level == 1 ? " Nodes=" : " Switches="
          : w->level == 1 ? "\n        nodes: "
                          : "\n        children: ",
          s->out);
    if (w->level == 1) {
        print_nodes(s, w->leaf);
    }
    for (uint32_t i = 0; w->level > 1 && i < s->lowers; i++) {
        if (group_of(s, s->lower[i].leaf, w->level) == group_of(s, w->leaf, w->level)) {
            fputs(is_first ? "" : ",", s->out);
            print_name(s, &s->lower[i]);
            is_first = false;
        }
    }
    fputc('\n', s->out);
}

static void find_leaves(struct slurm *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (i == 0 || s->nodes[i].leaf != s->nodes[i - 1].leaf) {
            s->lower[s->lowers++] = (struct slurm_switch){.level = 1, .leaf = s->nodes[i].leaf};
        }
    }
}

/* Groups of the level, each by the first of the lower ones that is in it. */
static void find_groups(struct slurm *s, unsigned level)
{
    s->uppers = 0;
    for (uint32_t i = 0; i < s->lowers; i++) {
        uint32_t group = group_of(s, s->lower[i].leaf, level), u = 0;

        while (u < s->uppers && group_of(s, s->upper[u].leaf, level) != group) {
            u++;
        }
        if (u == s->uppers) {
            s->upper[s->uppers++] =
                (struct slurm_switch){.level = level, .leaf = s->lower[i].leaf, .number = u};
        }
    }
}

static void print_tree(struct slurm *s)
{
    unsigned levels =
        s->shape.kind == IBSHIFT_SHAPE_TORUS || s->shape.levels < 2 ? 2 : s->shape.levels;

    fputs(s->is_yaml ? "---\n- topology: ibshift\n  cluster_default: true\n  tree:\n"
                       "    switches:\n"
                     : "",
          s->out);
    find_leaves(s);
    for (uint32_t i = 0; i < s->lowers; i++) {
        print_switch(s, &s->lower[i]);
    }
    for (unsigned level = 2; level <= levels; level++) {
        struct slurm_switch *swap = s->lower;

        find_groups(s, level);
        if (s->uppers == s->lowers) { /* as many: it would join nothing */
            continue;
        }
        for (uint32_t i = 0; i < s->uppers; i++) {
            print_switch(s, &s->upper[i]);
        }
        s->lower = s->upper;
        s->lowers = s->uppers;
        s->upper = swap;
    }
}

struct node_words {
    const char *guid, *record;
    char letter;
};

/* Aggregation nodes are channel adapters by what ibnetdiscover says, and known by their name. */
static struct node_words words_of(const struct ibshift_fabric *f, uint32_t node)
{
    if (ibshift_node_is_switch(f, node)) {
        return (struct node_words){"switchguid", "Switch", 'S'};
    }
    return f->nodes[node].kind == IBSHIFT_NODE_HCA ||
                   ibshift_is_aggregation_node(ibshift_node_name(f, node))
               ? (struct node_words){"caguid", "Ca", 'H'}
               : (struct node_words){"rtguid", "Rt", 'R'};
}

static void print_port(const struct ibshift_fabric *f, uint32_t port)
{
    const struct ibshift_port *own = &f->ports[port], *peer = &f->ports[own->peer];

    printf("[%u]\t\"%c-%016" PRIx64 "\"[%u]\t\t# \"%s\"\n", own->number,
           words_of(f, peer->node).letter, f->nodes[peer->node].guid, peer->number,
           ibshift_node_name(f, peer->node));
}

static void print_node(const struct ibshift_fabric *f, uint32_t n)
{
    const struct ibshift_node *node = &f->nodes[n];
    struct node_words words = words_of(f, n);

    printf("%s=0x%" PRIx64 "\n", words.guid, node->guid);
    printf("%s\t%u \"%c-%016" PRIx64 "\"\t\t# \"%s\"\n", words.record, node->port_count,
           words.letter, node->guid, ibshift_node_name(f, n));
    for (uint32_t p = node->first_port; p < node->first_port + node->port_count; p++) {
        if (f->ports[p].peer != IBSHIFT_NO_PORT) {
            print_port(f, p);
        }
    }
    putchar('\n');
}

static void print_row(const struct ibshift_fabric *f, uint32_t sw, unsigned lid)
{
    uint32_t port = f->lid_port[lid];
    unsigned out = ibshift_lft_get(f, sw, lid);

    if (port != IBSHIFT_NO_PORT && out != 0) {
        printf("0x%04x %03u # Channel Adapter portguid 0x%016" PRIx64 ": '%s'\n", lid, out,
               f->ports[port].guid, ibshift_node_name(f, f->ports[port].node));
    }
}

static void print_tables(const struct ibshift_fabric *f)
{
    for (uint32_t s = 0; s < f->switch_count; s++) {
        const struct ibshift_node *node = &f->nodes[f->switches[s]];

        printf("Unicast lids [0-%u] of switch Lid %u guid 0x%016" PRIx64 " ('%s'):\n",
               f->lft_stride - 1, node->lid, node->guid, ibshift_node_name(f, f->switches[s]));
        for (unsigned lid = 1; lid < f->lft_stride; lid++) {
            print_row(f, s, lid);
        }
    }
}

struct export_options {
    bool netlist, tables, slurm, slurm_yaml;
};

/* topology.conf, or topology.yaml. */
static int export_slurm(const struct cli_args *args, const struct ibshift_fabric *f, bool is_yaml)
{
    struct slurm s = {.f = f, .is_yaml = is_yaml, .out = stdout};
    struct ibshift_error err;

    fabric_must(args, ibshift_shape_find(f, &s.shape, &err), &err);
    fabric_must(args, list_nodes(&s, &err), &err);
    s.lower = pool_new(&s.pool, f->switch_count, sizeof(*s.lower));
    s.upper = pool_new(&s.pool, f->switch_count, sizeof(*s.upper));
    print_tree(&s);
    if (s.unnamed != 0) {
        fprintf(stderr,
                "ibshift %s: warning: %u host%s left out: no name of a node in the name of the "
                "adapter\n",
                args->command, s.unnamed, s.unnamed == 1 ? " is" : "s are");
    }
    pool_free(&s.pool);
    ibshift_shape_free(&s.shape);
    return CLI_OK;
}

static int export(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct export_options *o = args->context;

    if (o->slurm || o->slurm_yaml) {
        return export_slurm(args, f, o->slurm_yaml);
    }
    if (o->tables) {
        fabric_must_have_tables(args, f);
        print_tables(f);
    }
    for (uint32_t n = 0; (o->netlist || !o->tables) && n < f->node_count; n++) {
        print_node(f, n);
    }
    return CLI_OK;
}

int cmd_fabric_export(int argc, char **argv)
{
    struct export_options o = {.netlist = false};
    const struct cli_option options[] = {
        {"--netlist", 0, CLI_FLAG, NULL,
         "nodes and cables, as ibsim and ibshift read them (default: this)", .where = &o.netlist},
        {"--tables", 0, CLI_FLAG, NULL,
         "forwarding tables, as opensm -R file -U and ibshift read them", .where = &o.tables},
        {"--slurm", 0, CLI_FLAG, NULL, "the switches as Slurm's topology.conf has them",
         .where = &o.slurm},
        {"--slurm-yaml", 0, CLI_FLAG, NULL, "the same as topology.yaml", .where = &o.slurm_yaml},
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric export", options, &o);

    return fabric_command(&args, argc, argv, export);
}

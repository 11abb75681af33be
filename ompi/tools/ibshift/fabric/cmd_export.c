/* `ibshift fabric export`: a fabric in the formats of ibsim (netlist), OpenSM (tables for its file
 * routing engine) and Slurm (topology.conf, topology.yaml). */
#include "fabric/cmd.h"

#include <inttypes.h>

#include "fabric/slurm.h"

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

static int export_slurm(const struct cli_args *args, const struct ibshift_fabric *f, bool is_yaml)
{
    struct ibshift_error err;
    uint32_t unnamed = 0;

    if (fabric_slurm_print(f, is_yaml, stdout, &unnamed, &err) != 0) {
        return fabric_args_fail(args, &err);
    }
    if (unnamed != 0) {
        fprintf(stderr,
                "ibshift %s: note: %u hosts are left out: their adapters have no node's name\n",
                args->command, unnamed);
    }
    return CLI_OK;
}

static int export(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct export_options *o = args->context;

    if (o->slurm || o->slurm_yaml) {
        return export_slurm(args, f, o->slurm_yaml);
    }
    if (o->tables && f->lft == NULL) {
        return cli_error(args->command, "%s has no tables: name a file of them",
                         args->positional[0]);
    }
    if (o->tables) {
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
         "nodes and cables, as ibsim and ibshift read them (the default)", .where = &o.netlist},
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

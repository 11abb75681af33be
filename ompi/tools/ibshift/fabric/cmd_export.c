/* `ibshift fabric order` and `export`: a fabric in the formats of other programs, OpenSM's order of hosts,
 * its tables for its file routing engine, ibsim's netlist. */
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

static int order(const struct cli_args *args, struct ibshift_fabric *f)
{
    const bool *keepers = args->context;
    uint32_t count, *hosts = fabric_find_order(args, f, *keepers, &count);

    fabric_order_write(f, hosts, count, stdout);
    free(hosts);
    return CLI_OK;
}

int cmd_fabric_order(int argc, char **argv)
{
    bool keepers = false;
    const struct cli_option options[] = {
        {"--keepers", 0, CLI_FLAG, NULL, "with place keepers (DUMMY) for hosts that are missing",
         .where = &keepers},
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric order", options, &keepers);

    return fabric_command(&args, argc, argv, order);
}

/* ---- export ---- */

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
    bool netlist, tables;
};

static int export(const struct cli_args *args, struct ibshift_fabric *f)
{
    const struct export_options *o = args->context;

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
        {.name = NULL},
    };
    struct cli_args args = fabric_args("fabric export", options, &o);

    return fabric_command(&args, argc, argv, export);
}

/*
 * Is adaptive routing on? Only the vendor's own attribute of a switch says so: AdaptiveRoutingInfo,
 * whose lowest bit of the first word is the switch's "enabled". Other vendors' switches, and those
 * that do not know the attribute, are taken as static.
 */
#include "fabric/live.h"

#include <infiniband/ibnetdisc.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <string.h>

#define ATTRIBUTE  0xFF20
#define VENDOR     0x2C9 /* Mellanox */
#define TIMEOUT_MS 200

static bool is_asked(const ibnd_node_t *node)
{
    return node->type == IB_NODE_SWITCH &&
           mad_get_field((void *)(uintptr_t)node->info, 0, IB_NODE_VENDORID_F) == VENDOR;
}

/* 1: on, 0: off or not known there. */
static int ask(struct ibmad_port *port, const ibnd_node_t *node)
{
    uint8_t data[IB_SMP_DATA_SIZE] = {0};
    ib_portid_t to = {.lid = node->smalid};

    return smp_query_via(data, &to, ATTRIBUTE, 0, TIMEOUT_MS, port) != NULL ? data[3] & 1 : 0;
}

uint32_t fabric_live_adaptive(const struct fabric_live *live, const ibnd_fabric_t *found)
{
    int classes[] = {IB_SMI_CLASS};
    char device[UMAD_CA_NAME_LEN] = "";
    struct ibmad_port *port;
    uint32_t count = 0;

    if (live->device != NULL) {
        strncpy(device, live->device, sizeof(device) - 1);
    }
    port = mad_rpc_open_port(device[0] != '\0' ? device : NULL, live->port, classes, 1);
    if (port == NULL) {
        return 0;
    }
    mad_rpc_set_retries(port, 1);
    for (const ibnd_node_t *node = found->nodes; node != NULL; node = node->next) {
        count += is_asked(node) ? (uint32_t)ask(port, node) : 0;
    }
    mad_rpc_close_port(port);
    return count;
}

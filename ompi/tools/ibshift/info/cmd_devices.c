/* The devices of this machine, looked at with the component's own eyes. */
#include "info/cmd.h"

#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "net/verbs/find.h"
#include "net/verbs/gid.h"

static void take_candidates(struct info_devices *devices, void *topology)
{
    struct ibshift_port_candidate *c = NULL;
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    int found = list != NULL ? ibshift_ports_find(list, topology, &c) : 0;

    for (int i = 0; i < found && devices->count < INFO_PORTS; i++) {
        struct info_port *port = &devices->ports[devices->count++];

        snprintf(port->device, sizeof(port->device), "%s", c[i].device);
        port->number = c[i].port;
        port->is_active = c[i].is_active;
        port->is_ethernet = c[i].is_ethernet;
        port->rate = c[i].rate;
        port->distance = c[i].distance;
    }
    free(c);
    if (list != NULL) {
        ibv_free_device_list(list);
    }
}

static struct info_port *port_of(struct info_devices *devices, const struct ibshift_port *used)
{
    for (int i = 0; i < devices->count; i++) {
        struct info_port *port = &devices->ports[i];

        if (port->number == used->number &&
            strcmp(port->device, ibv_get_device_name(used->device->context->device)) == 0) {
            return port;
        }
    }
    return NULL;
}

static void mark_used(struct info_devices *devices, const struct ibshift_verbs *verbs)
{
    for (int i = 0; i < verbs->port_count; i++) {
        const struct ibshift_port *used = &verbs->ports[i];
        struct info_port *port = port_of(devices, used);

        if (port != NULL) {
            port->place = (unsigned)i + 1;
            port->lid = used->attr.lid;
            port->lmc = used->attr.lmc;
            port->mtu = 128u << used->attr.active_mtu;
            port->gid_index = used->gid_index;
            ibshift_gid_text(verbs->blob.address[i].gid, port->gid);
        }
    }
}

void info_devices_find(struct info_devices *devices, const char *list, int most, int gid_index)
{
    struct ibshift_verbs_options options = {
        .ports = list, .max_ports = most, .gid_index = gid_index, .fork = 0};
    struct ibshift_verbs *verbs;
    hwloc_topology_t topology = NULL;

    if (hwloc_topology_init(&topology) == 0 && hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        topology = NULL;
    }
    options.topology = topology;
    take_candidates(devices, topology);
    if (ibshift_verbs_open(&options, &verbs, devices->why, sizeof(devices->why)) == 0) {
        devices->why[0] = '\0';
        devices->is_software = ibshift_verbs_is_software(verbs);
        mark_used(devices, verbs);
        ibshift_verbs_close(verbs);
    }
    if (topology != NULL) {
        hwloc_topology_destroy(topology);
    }
}

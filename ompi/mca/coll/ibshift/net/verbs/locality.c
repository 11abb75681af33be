/* Where a device is: how far from the processors that this process may use, and on which bus. */
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "net/verbs/device.h"

uint32_t ibshift_cpuset_distance(void *topology, const void *device_cpus, const void *own_cpus)
{
    if (hwloc_bitmap_isincluded(own_cpus, device_cpus)) {
        return 0;
    }
    hwloc_obj_t device = hwloc_get_obj_covering_cpuset(topology, device_cpus);
    hwloc_obj_t own = hwloc_get_obj_covering_cpuset(topology, own_cpus);
    if (device == NULL || own == NULL) {
        return (uint32_t)hwloc_topology_get_depth(topology);
    }
    hwloc_obj_t both = hwloc_get_common_ancestor_obj(topology, device, own);
    int depth = both != NULL && both->depth > 0 ? both->depth : 0;
    return (uint32_t)(hwloc_topology_get_depth(topology) - depth);
}

uint32_t ibshift_device_distance(void *topology, struct ibv_device *device)
{
    uint32_t distance = 0;
    hwloc_bitmap_t device_cpus, own_cpus;

    if (topology == NULL) {
        return 0;
    }
    device_cpus = hwloc_bitmap_alloc();
    own_cpus = hwloc_bitmap_alloc();
    if (device_cpus != NULL && own_cpus != NULL &&
        hwloc_get_cpubind(topology, own_cpus, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_ibv_get_device_cpuset(topology, device, device_cpus) == 0) {
        distance = ibshift_cpuset_distance(topology, device_cpus, own_cpus);
    }
    hwloc_bitmap_free(device_cpus);
    hwloc_bitmap_free(own_cpus);
    return distance;
}

uint32_t ibshift_processors_count(void *topology)
{
    int count = topology != NULL ? hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology))
                                 : (int)sysconf(_SC_NPROCESSORS_ONLN);

    return count > 0 ? (uint32_t)count : 1;
}

bool ibshift_verbs_is_software(const struct ibshift_verbs *verbs)
{
    const char *folder = verbs->ports[0].device->context->device->ibdev_path;
    char bus[PATH_MAX];

    snprintf(bus, sizeof(bus), "%s/device/subsystem", folder);
    return access(folder, F_OK) == 0 && access(bus, F_OK) != 0;
}

/* How far a device is, on machines that hwloc makes up. */
#include <hwloc.h>

#include "net/verbs/device.h"
#include "unit.h"

static uint32_t distance(hwloc_topology_t topology, const char *device, const char *own)
{
    hwloc_bitmap_t a = hwloc_bitmap_alloc(), b = hwloc_bitmap_alloc();

    hwloc_bitmap_list_sscanf(a, device);
    hwloc_bitmap_list_sscanf(b, own);
    uint32_t d = ibshift_cpuset_distance(topology, a, b);
    hwloc_bitmap_free(a);
    hwloc_bitmap_free(b);
    return d;
}

static void nearer_is_less(void **state)
{
    hwloc_topology_t t;

    assert_int_equal(hwloc_topology_init(&t), 0);
    assert_int_equal(hwloc_topology_set_synthetic(t, "pack:2 numa:2 core:4 pu:1"), 0);
    assert_int_equal(hwloc_topology_load(t), 0);
    assert_int_equal(distance(t, "0-3", "2"), 0);
    assert_int_equal(distance(t, "0-15", "9"), 0);
    assert_true(distance(t, "0-3", "5") > 0);
    assert_true(distance(t, "0-3", "5") < distance(t, "0-3", "12"));
    assert_true(distance(t, "0-3", "0-15") > 0);
    assert_int_equal(distance(t, "0-3", "8"), distance(t, "0-3", "12"));
    hwloc_topology_destroy(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nearer_is_less)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Memory of devices that compute, such as GPUs: host code must neither touch nor register it. It is
 * recognised and copied by the hooks of who knows the device; without any, all memory is the host's.
 */
#ifndef IBSHIFT_DEVICE_DEVICE_H
#define IBSHIFT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

struct ibshift_device_hooks {
    const char *name; /* for people */
    bool (*is_device)(const void *address);
    /* Between memory of the device and the host's, either way; over when it returns. 0 or -EIO. */
    int (*copy)(void *to, const void *from, size_t bytes);
};

/*
 * Takes the hooks, or, without any, those of a runtime that this process has loaded: CUDA's driver or
 * HIP. None is loaded here. Until one has been found each call looks again; not at the same time as
 * the others.
 */
void ibshift_device_look(const struct ibshift_device_hooks *hooks);

/* NULL: there is no such memory. */
extern const struct ibshift_device_hooks *ibshift_device;

static inline bool ibshift_device_is(const void *address)
{
    return ibshift_device != NULL && address != NULL && ibshift_device->is_device(address);
}

#endif

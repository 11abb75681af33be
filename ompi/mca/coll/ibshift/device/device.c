#include "device/device.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>

const struct ibshift_device_hooks *ibshift_device;

/* What is used of the runtimes, as their manuals have it; their headers are not needed. */
enum {
    CUDA_ATTRIBUTE_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
    CUDA_MEMORY_HOST = 1,           /* CU_MEMORYTYPE_HOST */
    HIP_ATTRIBUTE_MEMORY_TYPE = 2,  /* HIP_POINTER_ATTRIBUTE_MEMORY_TYPE */
    HIP_COPY_DEFAULT = 4,           /* hipMemcpyDefault: finds out which way */
};

static struct {
    int (*attribute)(void *data, int attribute, uint64_t address); /* cuPointerGetAttribute */
    int (*copy)(uint64_t to, uint64_t from, size_t bytes);         /* cuMemcpy */
} cuda;

static struct {
    int (*attribute)(void *data, int attribute, void *address); /* hipPointerGetAttribute */
    int (*copy)(void *to, const void *from, size_t bytes, int kind);
} hip;

/* Memory that the driver knows nothing of is an error to it, and the host's. */
static bool is_cuda(const void *address)
{
    unsigned type = 0;

    return cuda.attribute(&type, CUDA_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)address) == 0 &&
           type != CUDA_MEMORY_HOST;
}

static int copy_cuda(void *to, const void *from, size_t bytes)
{
    return cuda.copy((uintptr_t)to, (uintptr_t)from, bytes) == 0 ? 0 : -EIO;
}

/* The numbers of the types have changed between releases: whatever HIP knows, it copies. */
static bool is_hip(const void *address)
{
    unsigned type = 0;

    return hip.attribute(&type, HIP_ATTRIBUTE_MEMORY_TYPE, (void *)(uintptr_t)address) == 0;
}

static int copy_hip(void *to, const void *from, size_t bytes)
{
    return hip.copy(to, from, bytes, HIP_COPY_DEFAULT) == 0 ? 0 : -EIO;
}

static const struct ibshift_device_hooks cuda_hooks = {"CUDA's driver", is_cuda, copy_cuda};
static const struct ibshift_device_hooks hip_hooks = {"HIP", is_hip, copy_hip};

/* Two functions of a library that is loaded already. */
static bool find(const char *library, const char *attribute, void **attribute_at, const char *copy,
                 void **copy_at)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

    *attribute_at = handle == NULL ? NULL : dlsym(handle, attribute);
    *copy_at = handle == NULL ? NULL : dlsym(handle, copy);
    return *attribute_at != NULL && *copy_at != NULL;
}

/* Of the first object, which knows it of all. */
static int read_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
    (void)size;
    *(unsigned long long *)adds = info->dlpi_adds;
    return 1;
}

/* dlopen() goes through all folders each time for a library that is not there. */
static bool is_loaded_since(void)
{
    static unsigned long long seen;
    unsigned long long adds = 0;

    (void)dl_iterate_phdr(read_adds, &adds);
    if (adds == seen) {
        return false;
    }
    seen = adds;
    return true;
}

void ibshift_device_look(const struct ibshift_device_hooks *hooks)
{
    if (ibshift_device != NULL || (hooks == NULL && !is_loaded_since())) {
        return;
    }
    if (hooks != NULL) {
        ibshift_device = hooks;
    } else if (find("libcuda.so.1", "cuPointerGetAttribute", (void **)&cuda.attribute, "cuMemcpy",
                    (void **)&cuda.copy)) {
        ibshift_device = &cuda_hooks;
    } else if (find("libamdhip64.so", "hipPointerGetAttribute", (void **)&hip.attribute,
                    "hipMemcpy", (void **)&hip.copy) ||
               find("libamdhip64.so.6", "hipPointerGetAttribute", (void **)&hip.attribute,
                    "hipMemcpy", (void **)&hip.copy)) {
        ibshift_device = &hip_hooks;
    }
}

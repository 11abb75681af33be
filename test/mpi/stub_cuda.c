/*
 * Plays CUDA's driver: memory that only its own functions may touch. With STUB_CUDA_COPIES it refuses
 * all copies after so many. Each allocation is mapped twice,
 * for programs without any access (so that host code that touches it dies), and for the copies.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64, INVALID = 1, DEVICE = 2, ATTRIBUTE_MEMORY_TYPE = 2 };

static struct {
    uint64_t address;
    char *inside;
    size_t size;
} known[MOST];
static int count;
static unsigned long copies, asked;

int cuMemAlloc(uint64_t *address, size_t size);
int cuPointerGetAttribute(void *data, int attribute, uint64_t address);
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);
unsigned long stub_cuda_copies(void);
unsigned long stub_cuda_asked(void); /* where memory is */

int cuMemAlloc(uint64_t *address, size_t size)
{
    int fd = memfd_create("device", MFD_CLOEXEC);
    void *outside, *inside;

    if (count == MOST || fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        return 2;
    }
    outside = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd, 0);
    inside = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (outside == MAP_FAILED || inside == MAP_FAILED) {
        return 2;
    }
    known[count].address = *address = (uintptr_t)outside;
    known[count].inside = inside;
    known[count].size = size;
    count++;
    return 0;
}

static char *inside_of(uint64_t address, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        if (address >= known[i].address && address + bytes <= known[i].address + known[i].size) {
            return known[i].inside + (address - known[i].address);
        }
    }
    return NULL;
}

int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
    asked++;
    if (attribute != ATTRIBUTE_MEMORY_TYPE || inside_of(address, 1) == NULL) {
        return INVALID;
    }
    *(unsigned *)data = DEVICE;
    return 0;
}

int cuMemcpy(uint64_t to, uint64_t from, size_t bytes)
{
    char *target = inside_of(to, bytes), *source = inside_of(from, bytes);
    const char *most = getenv("STUB_CUDA_COPIES");

    if (most != NULL && copies >= strtoul(most, NULL, 10)) {
        return INVALID;
    }
    copies++;
    memcpy(target != NULL ? target : (char *)(uintptr_t)to,
           source != NULL ? source : (char *)(uintptr_t)from, bytes);
    return 0;
}

unsigned long stub_cuda_copies(void)
{
    return copies;
}

unsigned long stub_cuda_asked(void)
{
    return asked;
}

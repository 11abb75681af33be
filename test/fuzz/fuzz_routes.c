/*
 * A compiled fabric whose header fits its sections and whose checksum is right, whatever they say:
 * what a writer that means it, or one with a defect, would leave. Then all that follows the
 * reading: shape, orders, placement, routes, contention.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The writer's own sum, under other names beside the linked ones. */
#define ibshift_compiled_write   sealed_write
#define ibshift_compiled_read    sealed_read
#define ibshift_compiled_imprint sealed_imprint
#include "fabric/read/compiled.c"
#undef ibshift_compiled_write
#undef ibshift_compiled_read
#undef ibshift_compiled_imprint

#include "fabric/table/arrange.h"
#include "fabric/paths/contend.h"
#include "fabric/paths/route.h"
#include "fabric/table/placement.h"
#include "fuzz_fabric.h"
#include "route/verify.h"

enum { IMAGE_SIZE = 1 << 16, RANKS_MAX = 48 };

int ibshift_compiled_read(const char *path, struct ibshift_fabric **fabric,
                          struct ibshift_error *err);

/* Sections one behind the other, as many elements as the header says and there is room for. */
static uint64_t seal(uint8_t *image)
{
    struct ibshift_compiled_header *h = (void *)image;
    struct section sections[IBSHIFT_SECTION_COUNT];
    uint64_t at = sizeof(*h);

    memcpy(h->magic, IBSHIFT_COMPILED_MAGIC, sizeof(h->magic));
    h->version = IBSHIFT_COMPILED_VERSION;
    h->byte_order = BYTE_ORDER_MARK;
    h->header_size = sizeof(*h);
    h->flags &= IBSHIFT_COMPILED_FLAGS;
    h->lft_stride %= 1024;
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        uint64_t element = element_size(i, h->lft_stride);

        at = (at + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
        if (at > IMAGE_SIZE || h->count[i] * element > IMAGE_SIZE - at) {
            h->count[i] = 0;
        }
        h->offset[i] = at < IMAGE_SIZE ? at : IMAGE_SIZE;
        sections[i] = (struct section){image + h->offset[i], h->count[i] * element, h->count[i]};
        at = h->offset[i] + sections[i].size;
    }
    h->file_size = at;
    h->checksum = sum_of(h, sections);
    return at;
}

static void use_routes(const struct ibshift_fabric *f)
{
    uint32_t ranks = f->host_count < RANKS_MAX ? f->host_count : RANKS_MAX, host_of[RANKS_MAX],
             link;
    struct ibshift_placement *p = NULL;
    struct ibshift_contention result;
    struct ibshift_error err;
    double bound;

    for (uint32_t r = 0; r < ranks; r++) {
        host_of[r] = r;
    }
    if (ranks == 0 || ibshift_placement_open(f, host_of, ranks, &p, &err) != 0) {
        return;
    }
    if (ibshift_placement_routes(p, true, &err) == 0) {
        struct ibshift_order none = {.step = 1};
        struct ibshift_stage_source source = ibshift_source_shift(&none, ranks, p->member_of);

        if (ibshift_contend(p->paths, &source, 1, 1, &result) == 0) {
            ibshift_contention_free(&result);
        }
        (void)ibshift_alltoall_bound(p->paths, ranks, p->member_of, &bound, &link);
    }
    ibshift_placement_close(p);
}

static void use(struct ibshift_fabric *f)
{
    struct route_proof proof;
    struct ibshift_shape shape;
    struct ibshift_error err;
    uint32_t *order, count;

    if (f->lft != NULL && ibshift_placement_order(f, &order, &count, &err) == 0) {
        free(order);
    }
    if (ibshift_shape_find(f, &shape, &err) == 0) {
        if (ibshift_order_keepers(f, &shape, &order, &count, &err) == 0) {
            free(order);
        }
        if (ibshift_order_routing(f, &shape, &order, &err) == 0) {
            free(order);
        }
        ibshift_shape_free(&shape);
    }
    if (f->lft != NULL) {
        route_verify_tables(f, &proof);
        use_routes(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) uint8_t image[IMAGE_SIZE + SECTION_ALIGN];
    char path[64];
    struct ibshift_fabric *f = NULL;
    struct ibshift_error err;
    int fd = memfd_create("fuzz", 0);

    memset(image, 0, sizeof(image));
    memcpy(image, data, size < IMAGE_SIZE ? size : IMAGE_SIZE);
    size = seal(image);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (write(fd, image, size) == (ssize_t)size && ibshift_compiled_read(path, &f, &err) == 0) {
        use(f);
        ibshift_fabric_free(f);
    }
    close(fd);
    return 0;
}

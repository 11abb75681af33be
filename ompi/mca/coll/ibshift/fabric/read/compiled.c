#include "fabric/read/compiled.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTE_ORDER_MARK 0x01020304u
#define SECTION_ALIGN   64
#define IMAGE_MAX       (512 << 20) /* bytes; 48k LIDs on 6,700 switches take 330 MB */

struct section {
    const void *data;
    uint64_t size;
    uint32_t count;
};

static void list_sections(const struct ibshift_fabric *f, const uint32_t *order,
                          uint32_t order_count, struct section *s)
{
    uint64_t lft = f->lft == NULL ? 0 : (uint64_t)f->switch_count * f->lft_stride;

    s[IBSHIFT_SECTION_NODES] =
        (struct section){f->nodes, f->node_count * sizeof(*f->nodes), f->node_count};
    s[IBSHIFT_SECTION_PORTS] =
        (struct section){f->ports, f->port_count * sizeof(*f->ports), f->port_count};
    s[IBSHIFT_SECTION_NAMES] = (struct section){f->names, f->names_size, f->names_size};
    s[IBSHIFT_SECTION_HOSTS] = (struct section){f->hosts, f->host_count * 4ull, f->host_count};
    s[IBSHIFT_SECTION_SWITCHES] =
        (struct section){f->switches, f->switch_count * 4ull, f->switch_count};
    s[IBSHIFT_SECTION_LFT] = (struct section){f->lft, lft, lft != 0 ? f->switch_count : 0};
    s[IBSHIFT_SECTION_ORDER] = (struct section){order, order == NULL ? 0 : order_count * 4ull,
                                                order == NULL ? 0 : order_count};
}

/* sum over 8-byte words, the last padded with zeros. */
static uint64_t add_sum(uint64_t sum, const void *data, uint64_t size)
{
    const char *at = data;

    while (size > 0) {
        uint64_t word = 0, part = size < 8 ? size : 8;

        memcpy(&word, at, part);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
        sum ^= sum >> 29;
        at += part;
        size -= part;
    }
    return sum;
}

/* Of the header's fields that say what follows, then of each section. */
static uint64_t sum_of(const struct ibshift_compiled_header *header, const struct section *sections)
{
    uint64_t sum = add_sum(header->version, header->count, sizeof(header->count));

    sum = add_sum(sum, header->offset, sizeof(header->offset));
    sum = add_sum(sum, &header->guid_sum, sizeof(header->guid_sum));
    sum = add_sum(sum, &header->tables_sum, sizeof(header->tables_sum));
    sum = add_sum(sum, &header->lft_stride, sizeof(header->lft_stride));
    if (header->flags != 0) { /* files from before there were flags stay good */
        sum = add_sum(sum, &header->flags, sizeof(header->flags));
    }
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        sum = add_sum(sum, sections[i].data, sections[i].size);
    }
    return sum;
}

static void fill_header(const struct ibshift_fabric *f, const struct section *sections,
                        struct ibshift_compiled_header *header)
{
    uint64_t at = sizeof(*header);

    memset(header, 0, sizeof(*header));
    memcpy(header->magic, IBSHIFT_COMPILED_MAGIC, sizeof(header->magic));
    header->version = IBSHIFT_COMPILED_VERSION;
    header->byte_order = BYTE_ORDER_MARK;
    header->header_size = sizeof(*header);
    header->guid_sum = f->guid_sum;
    header->tables_sum = f->tables_sum;
    header->lft_stride = f->lft == NULL ? 0 : f->lft_stride;
    header->flags = f->is_adaptive ? IBSHIFT_COMPILED_ADAPTIVE : 0;
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        at = (at + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
        header->offset[i] = at;
        header->count[i] = sections[i].count;
        at += sections[i].size;
    }
    header->file_size = at;
    header->checksum = sum_of(header, sections);
}

static bool put(FILE *file, const struct ibshift_compiled_header *header,
                const struct section *sections)
{
    bool ok = fwrite(header, sizeof(*header), 1, file) == 1;

    for (int i = 0; ok && i < IBSHIFT_SECTION_COUNT; i++) {
        while (ok && (uint64_t)ftello(file) < header->offset[i]) {
            ok = putc(0, file) == 0;
        }
        ok = ok &&
             (sections[i].size == 0 || fwrite(sections[i].data, sections[i].size, 1, file) == 1);
    }
    return ok && fflush(file) == 0 && fsync(fileno(file)) == 0;
}

static int write_beside(const char *path, const struct ibshift_compiled_header *header,
                        const struct section *sections, struct ibshift_error *err)
{
    char temporary[4096];
    FILE *file;
    int fd, saved;

    if ((size_t)snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= sizeof(temporary)) {
        return ibshift_fail(err, -ENAMETOOLONG, "%.200s..: path too long", path);
    }
    fd = mkstemp(temporary);
    file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (file == NULL) {
        saved = errno;
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return ibshift_fail(err, -saved, "%s: %s", path, strerror(saved));
    }
    errno = 0;
    if (fchmod(fd, 0644) != 0 || !put(file, header, sections) || rename(temporary, path) != 0) {
        saved = errno != 0 ? errno : EIO;
        fclose(file);
        unlink(temporary);
        return ibshift_fail(err, -saved, "%s: %s", path, strerror(saved));
    }
    return fclose(file) == 0 ? 0 : ibshift_fail(err, -EIO, "%s: %s", path, strerror(errno));
}

int ibshift_compiled_write(const char *path, const struct ibshift_fabric *f, const uint32_t *order,
                           uint32_t order_count, struct ibshift_error *err)
{
    struct section sections[IBSHIFT_SECTION_COUNT];
    struct ibshift_compiled_header header;

    list_sections(f, order, order_count, sections);
    fill_header(f, sections, &header);
    return write_beside(path, &header, sections, err);
}

static const uint64_t element_size[IBSHIFT_SECTION_COUNT] = {
    sizeof(struct ibshift_node), sizeof(struct ibshift_port), 1, 4, 4, 0, 4};

/* The sections lie within the file, one after the other; sections[] point into it. */
static bool are_within(const char *base, uint64_t size, struct section *sections)
{
    const struct ibshift_compiled_header *h = (const void *)base;
    uint64_t at = sizeof(*h);

    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        uint64_t element = i == IBSHIFT_SECTION_LFT ? h->lft_stride : element_size[i];

        if (h->offset[i] < at || h->offset[i] % SECTION_ALIGN != 0 || h->offset[i] > size ||
            h->count[i] * element > size - h->offset[i]) {
            return false;
        }
        sections[i] = (struct section){base + h->offset[i], h->count[i] * element, h->count[i]};
        at = h->offset[i] + sections[i].size;
    }
    return at == size && h->lft_stride <= IBSHIFT_LID_MAX + 1 &&
           h->count[IBSHIFT_SECTION_NODES] <= IBSHIFT_NODES_MAX &&
           h->count[IBSHIFT_SECTION_PORTS] <= IBSHIFT_GRAPH_PORTS_MAX;
}

static int check_header(const char *path, const char *base, uint64_t size, struct section *sections,
                        struct ibshift_error *err)
{
    const struct ibshift_compiled_header *h = (const void *)base;

    if (size < sizeof(*h) || memcmp(h->magic, IBSHIFT_COMPILED_MAGIC, sizeof(h->magic)) != 0) {
        return ibshift_fail(err, -EINVAL, "%s: not a compiled fabric", path);
    }
    if (h->byte_order != BYTE_ORDER_MARK || h->version != IBSHIFT_COMPILED_VERSION ||
        h->header_size != sizeof(*h) || (h->flags & ~IBSHIFT_COMPILED_ADAPTIVE) != 0) {
        return ibshift_fail(err, -EINVAL,
                            "%s: version %u of the compiled form, this ibshift reads %d: run "
                            "ibshift fabric compile again",
                            path, h->version, IBSHIFT_COMPILED_VERSION);
    }
    if (h->file_size != size || !are_within(base, size, sections) ||
        h->checksum != sum_of(h, sections)) {
        return ibshift_fail(err, -EINVAL, "%s: damaged (%s): run ibshift fabric compile again",
                            path, h->file_size != size ? "cut short" : "checksum");
    }
    return 0;
}

/* The arrays are the image's; nothing writes to them. */
static void take_sections(struct ibshift_fabric *f, const struct section *s)
{
    const struct ibshift_compiled_header *h = f->image;

    f->is_adaptive = h->flags != 0;
    f->nodes = (void *)(uintptr_t)s[IBSHIFT_SECTION_NODES].data;
    f->ports = (void *)(uintptr_t)s[IBSHIFT_SECTION_PORTS].data;
    f->names = (void *)(uintptr_t)s[IBSHIFT_SECTION_NAMES].data;
    f->hosts = (void *)(uintptr_t)s[IBSHIFT_SECTION_HOSTS].data;
    f->switches = (void *)(uintptr_t)s[IBSHIFT_SECTION_SWITCHES].data;
    f->node_count = s[IBSHIFT_SECTION_NODES].count;
    f->port_count = s[IBSHIFT_SECTION_PORTS].count;
    f->names_size = s[IBSHIFT_SECTION_NAMES].count;
    f->host_count = s[IBSHIFT_SECTION_HOSTS].count;
    f->switch_count = s[IBSHIFT_SECTION_SWITCHES].count;
    if (s[IBSHIFT_SECTION_LFT].count != 0) {
        f->lft = (void *)(uintptr_t)s[IBSHIFT_SECTION_LFT].data;
        f->lft_stride = h->lft_stride;
    }
    if (s[IBSHIFT_SECTION_ORDER].count != 0) {
        f->order = s[IBSHIFT_SECTION_ORDER].data;
        f->order_count = s[IBSHIFT_SECTION_ORDER].count;
    }
    f->guid_sum = h->guid_sum;
    f->tables_sum = h->tables_sum;
}

static int check_image(const char *path, struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct section sections[IBSHIFT_SECTION_COUNT];
    int rc = check_header(path, f->image, f->image_size, sections, err);

    if (rc != 0) {
        return rc;
    }
    take_sections(f, sections);
    if (!ibshift_compiled_is_sound(f, sections[IBSHIFT_SECTION_LFT].count)) {
        return ibshift_fail(err, -EINVAL, "%s: damaged (an index is out of range)", path);
    }
    return ibshift_fabric_index(f, err);
}

/* As many bytes as the file had when it was opened; fewer when it is being written anew. */
static int read_image(const char *path, int fd, uint64_t size, struct ibshift_fabric *f,
                      struct ibshift_error *err)
{
    ssize_t part = 1;

    f->image = malloc(size + 1);
    if (f->image == NULL) {
        return ibshift_fail(err, -ENOMEM, "%s: no memory for its %" PRIu64 " bytes", path, size);
    }
    while (f->image_size < size && part > 0) {
        part = read(fd, (char *)f->image + f->image_size, size - f->image_size);
        if (part < 0 && errno == EINTR) {
            part = 1;
        } else if (part < 0) {
            return ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
        } else {
            f->image_size += (size_t)part;
        }
    }
    return 0;
}

static int read_file(const char *path, int fd, struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct stat info;
    int rc;

    if (fstat(fd, &info) != 0) {
        return ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return ibshift_fail(err, -EINVAL, "%s: not a file: a compiled fabric is read from a file",
                            path);
    }
    if (info.st_size > IMAGE_MAX) {
        return ibshift_fail(err, -EFBIG, "%s: %" PRIu64 " bytes: a compiled fabric has at most %d",
                            path, (uint64_t)info.st_size, IMAGE_MAX);
    }
    rc = read_image(path, fd, (uint64_t)info.st_size, f, err);
    return rc == 0 ? check_image(path, f, err) : rc;
}

/* Opening a pipe would wait for its writer, but for the flag. */
int ibshift_compiled_read(const char *path, struct ibshift_fabric **fabric,
                          struct ibshift_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
    struct ibshift_fabric *f;

    if (fd < 0) {
        return ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    f = ibshift_fabric_new();
    rc = f == NULL ? ibshift_fail(err, -ENOMEM, "no memory") : read_file(path, fd, f, err);
    close(fd);
    if (rc != 0) {
        ibshift_fabric_free(f);
        return rc;
    }
    *fabric = f;
    return 0;
}

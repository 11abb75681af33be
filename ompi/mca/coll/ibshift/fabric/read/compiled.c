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
#define SECTION_ALIGN   64          /* sections are arrays, used where they lie in the image */
#define IMAGE_MAX       (512 << 20) /* bytes; 48k LIDs on 6,700 switches take 330 MB */

struct section {
    const void *data;
    uint64_t size;
    uint32_t count;
};

#define FIELD(array, number, element)                                                              \
    {                                                                                              \
        offsetof(struct ibshift_fabric, array), offsetof(struct ibshift_fabric, number), element   \
    }

/* Where each section's array and its count are in a fabric, and the bytes of an element; 0: a row of a
 * table, as long as the header says. */
static const struct {
    size_t array, count;
    uint64_t element;
} fields[IBSHIFT_SECTION_COUNT] = {
    [IBSHIFT_SECTION_NODES] = FIELD(nodes, node_count, sizeof(struct ibshift_node)),
    [IBSHIFT_SECTION_PORTS] = FIELD(ports, port_count, sizeof(struct ibshift_port)),
    [IBSHIFT_SECTION_NAMES] = FIELD(names, names_size, 1),
    [IBSHIFT_SECTION_HOSTS] = FIELD(hosts, host_count, 4),
    [IBSHIFT_SECTION_SWITCHES] = FIELD(switches, switch_count, 4),
    [IBSHIFT_SECTION_LFT] = FIELD(lft, switch_count, 0),
    [IBSHIFT_SECTION_ORDER] = FIELD(order, order_count, 4),
    [IBSHIFT_SECTION_SL] = FIELD(sl, sl_rows, 0),
    [IBSHIFT_SECTION_SL_ROW] = FIELD(sl_row, host_count, 4),
};

static uint64_t element_size(int section, uint32_t lft_stride)
{
    return fields[section].element != 0 ? fields[section].element : lft_stride;
}

static void list_sections(const struct ibshift_fabric *f, struct section *sections)
{
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        struct section *s = &sections[i];

        memcpy(&s->data, (const char *)f + fields[i].array, sizeof(s->data));
        memcpy(&s->count, (const char *)f + fields[i].count, sizeof(s->count));
        s->count = s->data != NULL ? s->count : 0;
        s->size = s->count * element_size(i, f->lft_stride);
    }
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
    sum = add_sum(sum, &header->flags, sizeof(header->flags));
    sum = add_sum(sum, &header->imprint, sizeof(header->imprint));
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
    header->flags = (f->is_adaptive ? IBSHIFT_COMPILED_ADAPTIVE : 0) |
                    (f->has_loop ? IBSHIFT_COMPILED_LOOP : 0);
    header->imprint = f->imprint;
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        at = (at + SECTION_ALIGN - 1) / SECTION_ALIGN * SECTION_ALIGN;
        header->offset[i] = at;
        header->count[i] = sections[i].count;
        at += sections[i].size;
    }
    header->file_size = at;
    header->checksum = sum_of(header, sections);
}

int64_t ibshift_compiled_write(FILE *file, const struct ibshift_fabric *f, const uint32_t *order,
                               uint32_t order_count)
{
    struct section sections[IBSHIFT_SECTION_COUNT];
    struct ibshift_compiled_header header;
    struct ibshift_fabric whole = *f;
    uint64_t at = sizeof(header);
    bool ok;

    whole.order = order;
    whole.order_count = order_count;
    list_sections(&whole, sections);
    fill_header(f, sections, &header);
    ok = fwrite(&header, sizeof(header), 1, file) == 1;
    for (int i = 0; ok && i < IBSHIFT_SECTION_COUNT; i++) {
        for (; ok && at < header.offset[i]; at++) {
            ok = putc(0, file) == 0;
        }
        at += sections[i].size;
        ok = ok &&
             (sections[i].size == 0 || fwrite(sections[i].data, sections[i].size, 1, file) == 1);
    }
    return ok ? (int64_t)at : -errno;
}

/* The sections lie within the file, one after the other; sections[] point into it. */
static bool are_within(const char *base, uint64_t size, struct section *sections)
{
    const struct ibshift_compiled_header *h = (const void *)base;
    uint64_t at = sizeof(*h);

    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        uint64_t element = element_size(i, h->lft_stride);

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

static int check_version(const char *path, const struct ibshift_compiled_header *h, uint64_t size,
                         struct ibshift_error *err)
{
    if (size < sizeof(*h) || memcmp(h->magic, IBSHIFT_COMPILED_MAGIC, sizeof(h->magic)) != 0) {
        return ibshift_fail(err, -EINVAL, "%s: not a compiled fabric", path);
    }
    if (h->byte_order != BYTE_ORDER_MARK || h->version != IBSHIFT_COMPILED_VERSION ||
        h->header_size != sizeof(*h) || (h->flags & ~IBSHIFT_COMPILED_FLAGS) != 0) {
        return ibshift_fail(err, -EINVAL,
                            "%s: version %u of the compiled form, this ibshift reads %d: run "
                            "ibshift fabric publish again",
                            path, h->version, IBSHIFT_COMPILED_VERSION);
    }
    return 0;
}

static int check_header(const char *path, const char *base, uint64_t size, struct section *sections,
                        struct ibshift_error *err)
{
    const struct ibshift_compiled_header *h = (const void *)base;
    int rc = check_version(path, h, size, err);

    if (rc != 0) {
        return rc;
    }
    if (h->file_size != size || !are_within(base, size, sections) ||
        h->checksum != sum_of(h, sections)) {
        return ibshift_fail(err, -EINVAL, "%s: damaged (%s): run ibshift fabric publish again",
                            path, h->file_size != size ? "cut short" : "checksum");
    }
    return 0;
}

/* The arrays are the image's; nothing writes to them. */
static void take_sections(struct ibshift_fabric *f, const struct section *s)
{
    const struct ibshift_compiled_header *h = f->image;

    f->is_adaptive = (h->flags & IBSHIFT_COMPILED_ADAPTIVE) != 0;
    f->has_loop = (h->flags & IBSHIFT_COMPILED_LOOP) != 0;
    f->imprint = h->imprint;
    f->lft_stride = s[IBSHIFT_SECTION_LFT].count != 0 ? h->lft_stride : 0;
    for (int i = 0; i < IBSHIFT_SECTION_COUNT; i++) {
        const void *data = s[i].count != 0 ? s[i].data : NULL;

        memcpy((char *)f + fields[i].array, &data, sizeof(data));
        if (i != IBSHIFT_SECTION_LFT && i != IBSHIFT_SECTION_SL_ROW) { /* of hosts and switches */
            memcpy((char *)f + fields[i].count, &s[i].count, sizeof(s[i].count));
        }
    }
    f->guid_sum = h->guid_sum;
    f->tables_sum = h->tables_sum;
}

/* ---- what makes a file safe to use, whoever wrote it ---- */

static bool are_nodes_sound(const struct ibshift_fabric *f)
{
    uint64_t port = 0;

    for (uint32_t n = 0; n < f->node_count; n++) {
        const struct ibshift_node *node = &f->nodes[n];
        bool is_switch = node->kind == IBSHIFT_NODE_SWITCH;

        if (node->first_port != port || node->kind > IBSHIFT_NODE_OTHER ||
            node->name >= f->names_size || node->port_count > IBSHIFT_PORT_MAX ||
            node->lmc > IBSHIFT_LMC_MAX || node->lid + (1u << node->lmc) > IBSHIFT_LID_MAX + 1 ||
            is_switch != (node->switch_index != IBSHIFT_NO_SWITCH) ||
            (is_switch &&
             (node->switch_index >= f->switch_count || f->switches[node->switch_index] != n))) {
            return false;
        }
        port += node->port_count;
    }
    return port == f->port_count;
}

static bool are_ports_sound(const struct ibshift_fabric *f)
{
    for (uint32_t p = 0; p < f->port_count; p++) {
        const struct ibshift_port *port = &f->ports[p];

        if (port->node >= f->node_count || port->number == 0 ||
            f->nodes[port->node].first_port + port->number - 1 != p ||
            port->lmc > IBSHIFT_LMC_MAX || port->lid + (1u << port->lmc) > IBSHIFT_LID_MAX + 1 ||
            (port->peer != IBSHIFT_NO_PORT &&
             (port->peer >= f->port_count || port->peer == p || f->ports[port->peer].peer != p))) {
            return false;
        }
    }
    return true;
}

/* A host has one place in the order; other places may be empty. */
static bool is_order_sound(const struct ibshift_fabric *f)
{
    bool *is_placed = calloc(f->host_count + 1, sizeof(*is_placed));
    bool is_sound = is_placed != NULL;

    for (uint32_t i = 0; is_sound && i < f->order_count; i++) {
        uint32_t host = f->order[i];

        if (host != IBSHIFT_NO_HOST) {
            is_sound = host < f->host_count && !is_placed[host];
            is_placed[is_sound ? host : 0] = true;
        }
    }
    free(is_placed);
    return is_sound;
}

static bool are_lists_sound(const struct ibshift_fabric *f)
{
    for (uint32_t h = 0; h < f->host_count; h++) {
        if (f->hosts[h] >= f->port_count || (h > 0 && f->hosts[h] <= f->hosts[h - 1]) ||
            f->ports[f->hosts[h]].peer == IBSHIFT_NO_PORT ||
            f->nodes[f->ports[f->hosts[h]].node].kind != IBSHIFT_NODE_HCA) {
            return false;
        }
    }
    for (uint32_t s = 0; s < f->switch_count; s++) {
        if (f->switches[s] >= f->node_count || f->nodes[f->switches[s]].switch_index != s) {
            return false;
        }
    }
    return is_order_sound(f);
}

/*
 * Is an entry above the limit? Eight at once: tables are most of a large file, and every rank reads
 * them when a job starts. Adding 127 - limit to a byte below 128 sets its highest bit if it is above.
 */
static bool has_above(const uint8_t *row, uint32_t count, unsigned limit)
{
    const uint64_t ones = 0x0101010101010101ull, high = 0x80 * ones;
    uint64_t found = 0, word;
    uint32_t at = 0;

    for (; limit < 128 && at + sizeof(word) <= count; at += sizeof(word)) {
        memcpy(&word, row + at, sizeof(word));
        found |= ((word & ~high) + (127 - limit) * ones) | word;
    }
    for (; at < count; at++) {
        found |= row[at] > limit ? high : 0;
    }
    return (found & high) != 0;
}

static bool are_tables_sound(const struct ibshift_fabric *f)
{
    for (uint32_t s = 0; f->lft != NULL && s < f->switch_count; s++) {
        if (has_above(f->lft + (size_t)s * f->lft_stride, f->lft_stride,
                      f->nodes[f->switches[s]].port_count)) {
            return false;
        }
    }
    return true;
}

static bool are_sl_sound(const struct ibshift_fabric *f, uint32_t hosts)
{
    if (f->sl == NULL) {
        return hosts == 0;
    }
    if (f->lft == NULL || hosts != f->host_count) {
        return false;
    }
    for (uint32_t h = 0; h < hosts; h++) {
        if (f->sl_row[h] >= f->sl_rows) {
            return false;
        }
    }
    for (uint32_t row = 0; row < f->sl_rows; row++) {
        if (has_above(f->sl + (size_t)row * f->lft_stride, f->lft_stride, IBSHIFT_SL_MAX)) {
            return false;
        }
    }
    return true;
}

static bool is_sound(const struct ibshift_fabric *f, const struct section *s)
{
    uint32_t tables = s[IBSHIFT_SECTION_LFT].count;

    return (tables == 0 || tables == f->switch_count) &&
           are_sl_sound(f, s[IBSHIFT_SECTION_SL_ROW].count) &&
           (f->names_size == 0 || f->names[f->names_size - 1] == '\0') && are_nodes_sound(f) &&
           are_ports_sound(f) && are_lists_sound(f) && are_tables_sound(f);
}

static int check_image(const char *path, struct ibshift_fabric *f, struct ibshift_error *err)
{
    struct section sections[IBSHIFT_SECTION_COUNT];
    int rc = check_header(path, f->image, f->image_size, sections, err);

    if (rc != 0) {
        return rc;
    }
    take_sections(f, sections);
    if (!is_sound(f, sections)) {
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
static int open_file(const char *path, struct ibshift_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    return fd >= 0 ? fd : ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
}

int ibshift_compiled_read(const char *path, struct ibshift_fabric **fabric,
                          struct ibshift_error *err)
{
    int fd = open_file(path, err), rc;
    struct ibshift_fabric *f;

    if (fd < 0) {
        return fd;
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

int ibshift_compiled_imprint(const char *path, struct ibshift_imprint *imprint,
                             struct ibshift_error *err)
{
    struct ibshift_compiled_header header = {.version = 0};
    int fd = open_file(path, err), rc;
    ssize_t size;

    if (fd < 0) {
        return fd;
    }
    size = read(fd, &header, sizeof(header));
    rc = size < 0 ? ibshift_fail(err, -errno, "%s: %s", path, strerror(errno))
                  : check_version(path, &header, (uint64_t)size, err);
    close(fd);
    if (rc == 0) {
        *imprint = header.imprint;
    }
    return rc;
}

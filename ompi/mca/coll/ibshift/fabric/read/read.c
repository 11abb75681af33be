#include "fabric/read/compiled.h"
#include "fabric/read/read.h"
#include "fabric/read/synth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const format_names[] = {
    "unknown",
    "netlist",
    "subnet list",
    "ports",
    "tables",
    "tables (fdbs)",
    "host order",
    "compiled",
    "path records",
    "ibdiagnet's .far (name its .fdbs)",
    "Slurm's topology (as topograph's), without ports and routes"};

static bool starts(const char *line, size_t size, const char *word)
{
    size_t length = strlen(word);

    return size >= length && memcmp(line, word, length) == 0;
}

static bool has(const char *text, size_t size, const char *word)
{
    return memmem(text, size, word, strlen(word)) != NULL;
}

static enum ibshift_format format_of_line(const char *line, size_t size)
{
    static const struct {
        const char *word, *later; /* what begins the line, what else is in it */
        enum ibshift_format format;
    } words[] = {
        {"Channel Adapter 0x", "", IBSHIFT_FORMAT_PATHS},
        {"Switch 0x", "", IBSHIFT_FORMAT_PATHS},
        {"PathRecord dump:", "", IBSHIFT_FORMAT_PATHS},
        {"SwitchName=", "", IBSHIFT_FORMAT_TOPOLOGY},
        {"Switch\t", "", IBSHIFT_FORMAT_NETLIST},
        {"Switch ", "", IBSHIFT_FORMAT_NETLIST},
        {"Hca\t", "", IBSHIFT_FORMAT_NETLIST},
        {"Hca ", "", IBSHIFT_FORMAT_NETLIST},
        {"Ca\t", "", IBSHIFT_FORMAT_NETLIST},
        {"Ca ", "", IBSHIFT_FORMAT_NETLIST},
        {"switchguid=", "", IBSHIFT_FORMAT_NETLIST},
        {"caguid=", "", IBSHIFT_FORMAT_NETLIST},
        {"vendid=", "", IBSHIFT_FORMAT_NETLIST},
        {"{ CA", "", IBSHIFT_FORMAT_SUBNET},
        {"{ SW", "", IBSHIFT_FORMAT_SUBNET},
        {"Unicast lids ", "", IBSHIFT_FORMAT_LFTS},
        {"dump_ucast_routes:", "", IBSHIFT_FORMAT_FDBS},
        {"osm_ucast_mgr_dump_ucast_routes:", "", IBSHIFT_FORMAT_FDBS}, /* ibdiagnet, old OpenSM */
        {"__osm_ucast_mgr_dump_ucast_routes:", "", IBSHIFT_FORMAT_FDBS},
        {"SW ", " 0x", IBSHIFT_FORMAT_ROWS},
        {"CA ", " 0x", IBSHIFT_FORMAT_ROWS},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (starts(line, size, words[i].word) && has(line, size, words[i].later)) {
            return words[i].format;
        }
    }
    return size > 7 && starts(line, size, "0x") && memchr(line, '\t', size < 9 ? size : 9) != NULL
               ? IBSHIFT_FORMAT_ORDER
               : IBSHIFT_FORMAT_UNKNOWN;
}

enum ibshift_format ibshift_format_of(const char *head, size_t size)
{
    if (starts(head, size, IBSHIFT_COMPILED_MAGIC)) {
        return IBSHIFT_FORMAT_COMPILED;
    }
    if (has(head, size, "\nGroups Definition:")) {
        return IBSHIFT_FORMAT_FAR; /* its switches begin as those of path records do */
    }
    while (size > 0) {
        const char *end = memchr(head, '\n', size);
        size_t length = end != NULL ? (size_t)(end - head) + 1 : size;
        enum ibshift_format format = format_of_line(head, length);

        if (format != IBSHIFT_FORMAT_UNKNOWN) {
            return format;
        }
        head += length;
        size -= length;
    }
    return IBSHIFT_FORMAT_UNKNOWN;
}

bool ibshift_format_is_graph(enum ibshift_format format)
{
    return format >= IBSHIFT_FORMAT_NETLIST && format <= IBSHIFT_FORMAT_ROWS;
}

bool ibshift_format_is_tables(enum ibshift_format format)
{
    return format >= IBSHIFT_FORMAT_LFTS && format <= IBSHIFT_FORMAT_FDBS;
}

static enum ibshift_format format_of(struct ibshift_lines *lines, const char **name)
{
    size_t size;
    const char *head = ibshift_lines_head(lines, &size);
    enum ibshift_format format = ibshift_format_of(head, size);

    *name = size == 0 ? "empty" : format_names[format];
    return format;
}

static int read_graph(struct ibshift_lines *lines, struct ibshift_fabric **fabric,
                      struct ibshift_warnings *warnings)
{
    const char *name;
    enum ibshift_format format = format_of(lines, &name);
    struct ibshift_fabric *f;
    int rc;

    if (format == IBSHIFT_FORMAT_COMPILED) {
        return ibshift_compiled_read(lines->name, fabric, lines->err);
    }
    if (!ibshift_format_is_graph(format)) {
        return ibshift_fail(lines->err, -EINVAL,
                            "%s: %s, not a fabric: wants ibnetdiscover's output, an ibsim "
                            "netlist, opensm-subnet.lst, ibdiagnet's .lst, or a compiled fabric",
                            lines->name, name);
    }
    f = ibshift_fabric_new();
    if (f == NULL) {
        return ibshift_fail(lines->err, -ENOMEM, "no memory");
    }
    rc = format == IBSHIFT_FORMAT_NETLIST  ? ibshift_read_netlist(lines, f, warnings)
         : format == IBSHIFT_FORMAT_SUBNET ? ibshift_read_subnet(lines, f, warnings)
                                           : ibshift_read_rows(lines, f, warnings);
    rc = rc == 0 ? ibshift_fabric_finish(f, lines->err) : rc;
    if (rc != 0) {
        ibshift_fabric_free(f);
        return rc;
    }
    *fabric = f;
    return 0;
}

static int load_graph(const char *name, struct ibshift_fabric **f,
                      struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    struct ibshift_lines *lines;
    int rc;

    if (ibshift_synth_is(name)) {
        return ibshift_synth_fabric(name, f, err);
    }
    if (strchr(name, ':') != NULL && access(name, F_OK) != 0) {
        return ibshift_fail(err, -ENOENT,
                            "'%.80s': neither a file nor a synthetic fabric, as kary:4,3", name);
    }
    lines = ibshift_lines_open(name, err);
    if (lines == NULL) {
        return -EIO;
    }
    rc = read_graph(lines, f, warnings);
    ibshift_lines_close(lines);
    return rc;
}

static int load_tables(const char *path, struct ibshift_fabric *f,
                       struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    struct ibshift_lines *lines = ibshift_lines_open(path, err);
    const char *name;
    int rc;

    if (lines == NULL) {
        return -EIO;
    }
    rc = ibshift_format_is_tables(format_of(lines, &name))
             ? ibshift_read_tables(lines, f, warnings)
             : ibshift_fail(err, -EINVAL,
                            "%s: %s, not forwarding tables: wants dump_fts' output, "
                            "opensm-lfts.dump, opensm.fdbs or ibdiagnet's .fdbs",
                            path, name);
    ibshift_lines_close(lines);
    return rc;
}

/* Tables are of no use for hosts whose LID nobody said. */
static int check_lids(const char *tables, const struct ibshift_fabric *f,
                      struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    uint32_t without = 0, first = 0;

    for (uint32_t h = f->host_count; h-- > 0;) {
        if (ibshift_host_lid(f, h) == 0) {
            without++;
            first = h;
        }
    }
    if (without != 0 && without == f->host_count) {
        return ibshift_fail(
            err, -ENODATA,
            "%s does not say to which ports the LIDs belong, and the fabric has none: take "
            "ibnetdiscover's output as the fabric, or opensm-lfts.dump as tables",
            tables);
    }
    if (without != 0) {
        ibshift_warn(warnings, "%u of %u hosts have no LID, '%s' for one", without, f->host_count,
                     ibshift_host_name(f, first));
    }
    return 0;
}

int ibshift_fabric_load(const char *fabric, const char *tables, struct ibshift_fabric **out,
                        struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    bool has_tables = tables != NULL && strcmp(tables, "-") != 0;
    struct ibshift_fabric *f = NULL;
    int rc = load_graph(fabric, &f, warnings, err);

    if (rc == 0 && has_tables && f->image != NULL) {
        rc = ibshift_fail(err, -EINVAL,
                          "%s is compiled and has its own tables: leave %s out, or name the "
                          "fabric that it was compiled from",
                          fabric, tables);
    } else if (rc == 0 && has_tables) {
        rc = load_tables(tables, f, warnings, err);
        rc = rc == 0 ? check_lids(tables, f, warnings, err) : rc;
    }
    if (rc != 0) {
        ibshift_fabric_free(f);
        return rc;
    }
    if (f->image == NULL) {
        ibshift_fabric_tables_finish(f);
    }
    *out = f;
    return 0;
}

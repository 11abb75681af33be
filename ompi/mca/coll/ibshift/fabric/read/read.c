#include "fabric/read/compiled.h"
#include "fabric/read/read.h"
#include "fabric/read/synth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *format_name(enum ibshift_format format)
{
    static const char *const names[] = {
        "unknown",
        "netlist",
        "subnet list",
        "ports",
        "UFM's ports",
        "UFM's links",
        "tables (far)",
        "tables",
        "tables (fdbs)",
        "host order",
        "compiled",
        "path records",
        "Slurm's topology (as topograph's), without ports and routes"};

    return names[format];
}

static bool starts(const char *line, size_t size, const char *word)
{
    size_t length = strlen(word);

    return size >= length && memcmp(line, word, length) == 0;
}

static enum ibshift_format format_of_line(const char *line, size_t size)
{
    static const struct {
        const char *word;
        enum ibshift_format format;
    } words[] = {
        {"Channel Adapter 0x", IBSHIFT_FORMAT_PATHS},
        {"Switch 0x", IBSHIFT_FORMAT_PATHS},
        {"PathRecord dump:", IBSHIFT_FORMAT_PATHS},
        {"SwitchName=", IBSHIFT_FORMAT_TOPOLOGY},
        {"Switch\t", IBSHIFT_FORMAT_NETLIST},
        {"Switch ", IBSHIFT_FORMAT_NETLIST},
        {"Hca\t", IBSHIFT_FORMAT_NETLIST},
        {"Hca ", IBSHIFT_FORMAT_NETLIST},
        {"Ca\t", IBSHIFT_FORMAT_NETLIST},
        {"Ca ", IBSHIFT_FORMAT_NETLIST},
        {"switchguid=", IBSHIFT_FORMAT_NETLIST},
        {"caguid=", IBSHIFT_FORMAT_NETLIST},
        {"vendid=", IBSHIFT_FORMAT_NETLIST},
        {"{ CA", IBSHIFT_FORMAT_SUBNET},
        {"{ SW", IBSHIFT_FORMAT_SUBNET},
        {"Unicast lids ", IBSHIFT_FORMAT_LFTS},
        {"dump_ucast_routes:", IBSHIFT_FORMAT_FDBS},
        {"osm_ucast_mgr_dump_ucast_routes:", IBSHIFT_FORMAT_FDBS}, /* ibdiagnet, old OpenSM */
        {"__osm_ucast_mgr_dump_ucast_routes:", IBSHIFT_FORMAT_FDBS},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (starts(line, size, words[i].word)) {
            return words[i].format;
        }
    }
    if ((starts(line, size, "SW ") || starts(line, size, "CA ")) &&
        memmem(line, size, " 0x", 3) != NULL) {
        return IBSHIFT_FORMAT_ROWS;
    }
    if (starts(line, size, "\"") && memmem(line, size, "\", ", 3) != NULL &&
        memmem(line, size, ", LID ", 6) != NULL) {
        return IBSHIFT_FORMAT_ROWS;
    }
    return size > 7 && starts(line, size, "0x") && memchr(line, '\t', size < 9 ? size : 9) != NULL
               ? IBSHIFT_FORMAT_ORDER
               : IBSHIFT_FORMAT_UNKNOWN;
}

enum ibshift_format ibshift_format_of(const char *head, size_t size)
{
    static const char far_word[] = "\nGroups Definition:";

    if (starts(head, size, "ibshift\x1a")) {
        return IBSHIFT_FORMAT_COMPILED;
    }
    if (memmem(head, size, far_word, strlen(far_word)) != NULL) {
        return IBSHIFT_FORMAT_FAR; /* its switches begin as those of path records do */
    }
    if (starts(head, size, "[") && memmem(head, size, "\"source_guid\"", 13) != NULL) {
        return IBSHIFT_FORMAT_LINKS;
    }
    if (starts(head, size, "[") && memmem(head, size, "\"logical_state\"", 15) != NULL) {
        return IBSHIFT_FORMAT_PORTS;
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
    return format >= IBSHIFT_FORMAT_NETLIST && format <= IBSHIFT_FORMAT_LINKS;
}

static int read_graph(struct ibshift_lines *lines, struct ibshift_fabric **fabric,
                      struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    size_t size;
    const char *head = ibshift_lines_head(lines, &size);
    enum ibshift_format format = ibshift_format_of(head, size);
    struct ibshift_fabric *f;
    int rc;

    if (format == IBSHIFT_FORMAT_COMPILED) {
        return ibshift_compiled_read(lines->name, fabric, err);
    }
    if (!ibshift_format_is_graph(format)) {
        return ibshift_fail(err, -EINVAL,
                            "%s: %s, not a fabric: wants ibnetdiscover's output, an ibsim "
                            "netlist, opensm-subnet.lst, ibdiagnet's .lst or .net_dump, UFM's "
                            "ports or links, or a compiled fabric",
                            lines->name, size == 0 ? "empty" : format_name(format));
    }
    f = ibshift_fabric_new();
    if (f == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
    }
    rc = format == IBSHIFT_FORMAT_NETLIST  ? ibshift_read_netlist(lines, f, warnings, err)
         : format == IBSHIFT_FORMAT_SUBNET ? ibshift_read_subnet(lines, f, warnings, err)
         : format == IBSHIFT_FORMAT_ROWS   ? ibshift_read_rows(lines, f, warnings, err)
                                           : ibshift_read_ufm(lines, f, warnings, err);
    if (rc == 0) {
        rc = ibshift_fabric_finish(f, err);
    }
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
    lines = malloc(sizeof(*lines));
    rc = lines == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                       : ibshift_lines_open(lines, name, err);
    if (rc == 0) {
        rc = read_graph(lines, f, warnings, err);
        ibshift_lines_close(lines);
    }
    free(lines);
    return rc;
}

static int load_tables(const char *name, struct ibshift_fabric *f,
                       struct ibshift_warnings *warnings, struct ibshift_error *err)
{
    struct ibshift_lines *lines = malloc(sizeof(*lines));
    int rc = lines == NULL ? ibshift_fail(err, -ENOMEM, "no memory")
                           : ibshift_lines_open(lines, name, err);

    if (rc == 0) {
        size_t size;
        const char *head = ibshift_lines_head(lines, &size);
        enum ibshift_format format = ibshift_format_of(head, size);

        rc = format == IBSHIFT_FORMAT_LFTS || format == IBSHIFT_FORMAT_FDBS ||
                     format == IBSHIFT_FORMAT_FAR
                 ? ibshift_read_tables(lines, f, warnings, err)
                 : ibshift_fail(err, -EINVAL,
                                "%s: %s, not forwarding tables: wants dump_fts' output, "
                                "opensm-lfts.dump, opensm.fdbs or ibdiagnet's .far",
                                name, size == 0 ? "empty" : format_name(format));
        ibshift_lines_close(lines);
    }
    free(lines);
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
    struct ibshift_fabric *f = NULL;
    int rc = load_graph(fabric, &f, warnings, err);

    if (rc != 0) {
        return rc;
    }
    if (f->image != NULL) {
        if (tables != NULL && strcmp(tables, "-") != 0) {
            ibshift_fabric_free(f);
            return ibshift_fail(err, -EINVAL,
                                "%s is compiled and has its own tables: leave %s out, or name the "
                                "fabric that it was compiled from",
                                fabric, tables);
        }
        *out = f;
        return 0;
    }
    if (tables != NULL && strcmp(tables, "-") != 0) {
        rc = load_tables(tables, f, warnings, err);
        rc = rc == 0 ? check_lids(tables, f, warnings, err) : rc;
    }
    if (rc != 0) {
        ibshift_fabric_free(f);
        return rc;
    }
    ibshift_fabric_tables_finish(f);
    *out = f;
    return 0;
}

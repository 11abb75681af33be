#include "fabric/sources.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric/read/synth.h"

/* In a folder only these are looked at: a log may begin like a dump. */
static const char *const names[] = {"opensm-subnet.lst", "opensm-lfts.dump", "opensm.fdbs",
                                    "*ibnetdiscover*",   "ibdiagnet*.lst",   "ibdiagnet*.fdbs",
                                    "ibdiagnet*.db_csv", "*sminfo*",         "*path-records*"};

static bool is_looked_at(const char *name)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (fnmatch(names[i], name, 0) == 0) {
            return true;
        }
    }
    return false;
}

/* ibnetdiscover says more than a subnet list, dump_fts more than an fdbs file; in the order of enum ibshift_format. */
static int keep(char **slot, enum ibshift_format *slot_format, const char *path,
                enum ibshift_format format, bool is_named, struct ibshift_error *err)
{
    char *copy;

    if (*slot != NULL && is_named) {
        return ibshift_fail(err, -EINVAL, "%s and %s say the same: name one of them", *slot, path);
    }
    if (*slot != NULL && *slot_format < format) {
        return 0;
    }
    if (*slot != NULL && *slot_format == format) {
        return ibshift_fail(err, -EINVAL, "%s and %s are of one kind: name the right one", *slot,
                            path);
    }
    copy = strdup(path);
    if (copy == NULL) {
        return ibshift_fail(err, -ENOMEM, "no memory");
    }
    free(*slot);
    *slot = copy;
    *slot_format = format;
    return 0;
}

static int add_file(struct fabric_sources *s, const char *path, bool is_named,
                    struct ibshift_error *err)
{
    struct ibshift_lines *lines = ibshift_lines_open(path, err);
    enum ibshift_format format;
    const char *head;
    size_t size;
    int rc = 0;

    if (lines == NULL) {
        return -EIO;
    }
    head = ibshift_lines_head(lines, &size);
    format = ibshift_format_of(head, size);
    if (fabric_facts_kind(head, size) != FABRIC_FACTS_NONE) {
        rewind(lines->file);
        rc = fabric_facts_read(lines->file, path, fabric_facts_kind(head, size), &s->facts, err);
    } else if (ibshift_format_is_graph(format) || format == IBSHIFT_FORMAT_COMPILED) {
        rc = keep(&s->graph, &s->graph_format, path, format, is_named, err);
    } else if (ibshift_format_is_tables(format)) {
        rc = keep(&s->tables, &s->tables_format, path, format, is_named, err);
    } else if (format == IBSHIFT_FORMAT_PATHS) {
        rc = keep(&s->sl, &s->sl_format, path, format, is_named, err);
    } else if (is_named && format == IBSHIFT_FORMAT_TOPOLOGY) {
        rc = ibshift_fail(err, -EINVAL,
                          "%s: Slurm's topology, as topograph writes it too, has neither ports nor "
                          "routes: name what it was made from, as ibnetdiscover's output",
                          path);
    } else if (is_named) {
        rc = ibshift_fail(err, -EINVAL,
                          "%s: not a known format: wants files of OpenSM, ibdiagnet, "
                          "ibnetdiscover, dump_fts, sminfo or path records of saquery",
                          path);
    }
    ibshift_lines_close(lines);
    return rc;
}

static int add_folder(struct fabric_sources *s, const char *path, struct ibshift_error *err)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), rc = 0;
    unsigned taken = 0;

    if (count < 0) {
        return ibshift_fail(err, -errno, "%s: %s", path, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        char file[4096];
        struct stat info;

        if (rc == 0 && is_looked_at(entries[i]->d_name) &&
            (size_t)snprintf(file, sizeof(file), "%s/%s", path, entries[i]->d_name) <
                sizeof(file) &&
            stat(file, &info) == 0 && S_ISREG(info.st_mode)) {
            rc = add_file(s, file, false, err);
            taken++;
        }
        free(entries[i]);
    }
    free(entries);
    return rc != 0 || taken != 0 ? rc
                                 : ibshift_fail(err, -ENOENT,
                                                "%s: no files of OpenSM or ibdiagnet in it: OpenSM "
                                                "writes them with the option -D 0x43",
                                                path);
}

int fabric_sources_add(struct fabric_sources *s, const char *path, struct ibshift_error *err)
{
    struct stat info;

    if (ibshift_synth_is(path)) {
        return keep(&s->graph, &s->graph_format, path, IBSHIFT_FORMAT_UNKNOWN, true, err);
    }
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? add_folder(s, path, err)
                                                           : add_file(s, path, true, err);
}

void fabric_sources_free(struct fabric_sources *s)
{
    free(s->graph);
    free(s->tables);
    free(s->sl);
    *s = (struct fabric_sources){.graph = NULL};
}

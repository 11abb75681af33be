/* The files that other tools left about a fabric, found by name in folders and told by content. */
#ifndef IBSHIFT_FABRIC_SOURCES_H
#define IBSHIFT_FABRIC_SOURCES_H

#include "fabric/facts.h"
#include "fabric/read/read.h"

struct fabric_sources {
    char *graph, *tables, *sl; /* paths, or NULL */
    enum ibshift_format graph_format, tables_format, sl_format;
    struct fabric_facts facts;
};

/* path: a file, or a folder in which the names that OpenSM and ibdiagnet give are looked for. Of two
 * files of a folder that say the same, the one that says more is taken; two that were named are
 * refused. */
int fabric_sources_add(struct fabric_sources *sources, const char *path, struct ibshift_error *err);
void fabric_sources_free(struct fabric_sources *sources);

#endif

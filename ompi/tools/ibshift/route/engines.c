/* One row an engine: the command line, its help and the tests follow from it. */
#include "route/route.h"

#include <string.h>

const struct route_engine route_engines[] = {
    {"ftree", route_ftree, "a fat tree",
     "one destination after another, over the least used ports"},
    {"pgft", route_pgft, "a fat tree, cables may be missing",
     "closed form: shifts over its order are free of contention"},
    {"qft", route_qft, "a quasi fat tree, cables may be missing",
     "closed form for cross-connected levels, as clean"},
    {"ecube", route_ecube, "a torus, and 2 VLs",
     "dimension by dimension, with SLs and VLs against deadlock"},
    {"updn", route_updn, "any that is connected",
     "up, then down a depth-first spanning tree; one VL"},
    {"flexible", route_flexible, "any that is connected",
     "cycles broken turn by turn for short, even ways; one VL"},
    {NULL, NULL, NULL, NULL},
};

const struct route_engine *route_engine_find(const char *name)
{
    for (const struct route_engine *e = route_engines; e->name != NULL; e++) {
        if (strcmp(e->name, name) == 0) {
            return e;
        }
    }
    return NULL;
}

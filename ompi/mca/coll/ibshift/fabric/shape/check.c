#include "fabric/shape/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of a packet at a switch, for one destination. */
enum fate { FATE_UNKNOWN, FATE_WALKING, FATE_ARRIVES, FATE_LOST, FATE_CIRCLES, FATE_STRAYS };

struct walker {
    const struct ibshift_fabric *f;
    const struct ibshift_shape *shape;
    uint8_t *fate, *turns; /* by switch */
    uint16_t *links;       /* from the switch on */
    uint32_t *path;
    bool *has_hosts; /* by switch */
};

static void walker_free(struct walker *w)
{
    free(w->fate);
    free(w->turns);
    free(w->links);
    free(w->path);
    free(w->has_hosts);
}

static int walker_init(struct walker *w, const struct ibshift_fabric *f,
                       const struct ibshift_shape *shape, struct ibshift_error *err)
{
    size_t n = (size_t)f->switch_count + 1;

    *w = (struct walker){.f = f,
                         .shape = shape,
                         .fate = calloc(n, 1),
                         .turns = calloc(n, 1),
                         .links = calloc(n, sizeof(*w->links)),
                         .path = calloc(n, sizeof(*w->path)),
                         .has_hosts = calloc(n, sizeof(*w->has_hosts))};
    if (!w->fate || !w->turns || !w->links || !w->path || !w->has_hosts) {
        walker_free(w);
        return ibshift_fail(err, -ENOMEM, "no memory for %u switches", f->switch_count);
    }
    for (uint32_t h = 0; h < f->host_count; h++) {
        uint32_t leaf = ibshift_port_neighbour(f, f->hosts[h]);

        if (leaf != IBSHIFT_NO_NODE && ibshift_node_is_switch(f, leaf)) {
            w->has_hosts[f->nodes[leaf].switch_index] = true;
        }
    }
    return 0;
}

/* The link that the switch sends the LID into, or IBSHIFT_NO_PORT. */
static uint32_t next_link(const struct ibshift_fabric *f, uint32_t sw, unsigned lid)
{
    const struct ibshift_node *node = &f->nodes[f->switches[sw]];
    unsigned port = lid < f->lft_stride ? ibshift_lft_get(f, sw, lid) : 0;
    uint32_t link = node->first_port + port - 1;

    return port == 0 || port > node->port_count || f->ports[link].peer == IBSHIFT_NO_PORT
               ? IBSHIFT_NO_PORT
               : link;
}

/* Does the way from switch a to switch b climb? */
static bool climbs(const struct walker *w, uint32_t a, uint32_t b)
{
    return w->shape->node_level[w->f->switches[b]] > w->shape->node_level[w->f->switches[a]];
}

/* Finds the fate of sw and of all switches on the way, for the LID that goal owns. */
static void walk(struct walker *w, uint32_t sw, unsigned lid, uint32_t goal)
{
    const struct ibshift_fabric *f = w->f;
    uint32_t count = 0, links = 0;
    enum fate end = FATE_UNKNOWN;
    bool turned = false, up_later = false;

    for (;;) {
        uint32_t link, peer;

        if (w->fate[sw] != FATE_UNKNOWN) {
            end = w->fate[sw] == FATE_WALKING ? FATE_CIRCLES : (enum fate)w->fate[sw];
            links = w->links[sw];
            turned = w->turns[sw] & 1;
            up_later = w->turns[sw] & 2;
            break;
        }
        w->fate[sw] = FATE_WALKING;
        w->path[count++] = sw;
        link = next_link(f, sw, lid);
        if (link == IBSHIFT_NO_PORT) {
            end = FATE_LOST;
            break;
        }
        peer = f->ports[link].peer;
        if (!ibshift_node_is_switch(f, f->ports[peer].node)) {
            end = peer == goal ? FATE_ARRIVES : FATE_STRAYS;
            break;
        }
        sw = f->nodes[f->ports[peer].node].switch_index;
    }
    while (count-- > 0) {
        uint32_t here = w->path[count];

        if (w->shape != NULL && w->shape->levels > 0 && links > 0) {
            bool up = climbs(w, here, sw);

            turned = turned || (!up && up_later);
            up_later = up_later || up;
        }
        w->fate[here] = (uint8_t)end;
        w->links[here] = (uint16_t)(links < UINT16_MAX ? ++links : links);
        w->turns[here] = (uint8_t)(turned | up_later << 1);
        sw = here;
    }
}

static void tell(struct ibshift_table_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void tell(struct ibshift_table_check *check, const char *format, ...)
{
    if (check->told < IBSHIFT_CHECK_TOLD) {
        va_list args;

        va_start(args, format);
        vsnprintf(check->problem[check->told++], sizeof(check->problem[0]), format, args);
        va_end(args);
    }
}

static void count_route(const struct walker *w, uint32_t sw, unsigned lid, uint32_t host,
                        struct ibshift_table_check *check)
{
    const struct ibshift_fabric *f = w->f;
    const char *from = ibshift_node_name(f, f->switches[sw]), *to = ibshift_host_name(f, host);

    check->routes++;
    switch (w->fate[sw]) {
    case FATE_LOST:
        check->lost++;
        tell(check, "'%s' to '%s' (LID %u): no next hop", from, to, lid);
        break;
    case FATE_CIRCLES:
        check->circles++;
        tell(check, "'%s' to '%s' (LID %u) runs in a circle", from, to, lid);
        break;
    case FATE_STRAYS:
        check->strays++;
        tell(check, "'%s' to '%s' (LID %u) ends at another host", from, to, lid);
        break;
    default:
        check->longest = w->links[sw] + 1u > check->longest ? w->links[sw] + 1u : check->longest;
        if (w->turns[sw] & 1) {
            check->turns++;
        }
    }
}

int ibshift_fabric_check(const struct ibshift_fabric *f, const struct ibshift_shape *shape,
                         struct ibshift_table_check *check, struct ibshift_error *err)
{
    struct walker w;
    int rc;

    memset(check, 0, sizeof(*check));
    if (f->lft == NULL) {
        return ibshift_fail(err, -ENODATA, "the fabric has no forwarding tables");
    }
    rc = walker_init(&w, f, shape, err);
    for (uint32_t h = 0; rc == 0 && h < f->host_count; h++) {
        for (unsigned i = 0; i < ibshift_host_lid_count(f, h); i++) {
            unsigned lid = ibshift_host_lid(f, h) + i;

            memset(w.fate, 0, f->switch_count);
            for (uint32_t s = 0; lid != 0 && s < f->switch_count; s++) {
                if (w.has_hosts[s]) {
                    walk(&w, s, lid, f->hosts[h]);
                    count_route(&w, s, lid, h, check);
                }
            }
        }
    }
    if (rc == 0) {
        walker_free(&w);
    }
    return rc;
}

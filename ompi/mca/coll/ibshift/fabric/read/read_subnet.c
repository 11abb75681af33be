/* opensm-subnet.lst: { end } { end } PHY=4x LOG=ACT SPD=2.5, one line a directed link. */
#include "fabric/graph/rate.h"
#include "fabric/read/draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* { CA Ports:01 SystemGUID:.. NodeGUID:.. PortGUID:.. VenID:.. {NAME} LID:0001 PN:01 }; ibdiagnet's nodes
 * have no name. NULL: it is not like that, or err. */
static const char *read_end(struct ibshift_draft *d, const char *at, struct ibshift_draft_end *end)
{
    enum ibshift_node_kind kind = ibshift_scan(at, " { SW")   ? IBSHIFT_NODE_SWITCH
                                  : ibshift_scan(at, " { CA") ? IBSHIFT_NODE_HCA
                                                              : IBSHIFT_NODE_OTHER;
    const char *name, *after, *lid;
    struct ibshift_draft_node *n;
    uint64_t ports;
    char number[20];

    at = ibshift_scan(at, " { %*Ports:%x%*NodeGUID:%x%*PortGUID:%x", &ports, &end->key, &end->guid);
    name = ibshift_scan(at, "%*{");
    lid = at == NULL ? NULL : strstr(at, " LID:");
    after = name == NULL ? NULL : strstr(name, "} LID:");
    if (lid != NULL && (name == NULL || name > lid)) {
        snprintf(number, sizeof(number), "0x%016" PRIx64, end->key);
        name = number;
        after = number + strlen(number);
        at = lid;
    } else {
        at = after;
    }
    at = ibshift_scan(at, "%*LID:%x%*PN:%x }", &end->lid, &end->port);
    if (at == NULL || after - name > 255 || ports > IBSHIFT_PORT_MAX ||
        end->lid > IBSHIFT_LID_MAX || end->port < 1 || end->port > ports) {
        ibshift_lines_fail(d->lines, -EINVAL,
                           "wants { CA|SW Ports: NodeGUID: PortGUID: {name} LID: PN: } twice, "
                           "with at most %d ports and LIDs to %u",
                           IBSHIFT_PORT_MAX, IBSHIFT_LID_MAX);
        return NULL;
    }
    n = ibshift_draft_node(d, end->key, kind, name, (size_t)(after - name), 0);
    if (n != NULL && n->ports == 0) {
        n->ports = (unsigned)ports;
    }
    if (n != NULL && end->lid != 0) {
        n->lid = (unsigned)end->lid;
    }
    return n != NULL ? at : NULL;
}

static int read_line(void *context)
{
    struct ibshift_draft *d = context;
    struct ibshift_draft_end near = {.lmc = 0}, far = {.lmc = 0};
    const char *at = d->lines->text, *width, *speed;

    if (at[0] == '\0') {
        return 0;
    }
    at = read_end(d, at, &near);
    at = at == NULL ? NULL : read_end(d, at, &far);
    if (at == NULL) {
        return -EINVAL;
    }
    width = ibshift_scan(at, "%*PHY=");
    speed = ibshift_scan(at, "%*SPD=");
    return ibshift_draft_join(
        d, &near, &far,
        ibshift_rate_of_texts(width != NULL ? width : "", speed != NULL ? speed : ""));
}

int ibshift_read_subnet(struct ibshift_lines *lines, struct ibshift_fabric *f,
                        struct ibshift_warnings *warnings)
{
    struct ibshift_draft d = {.lines = lines, .fabric = f};

    (void)warnings;
    return ibshift_draft_read(&d, read_line, &d, "link");
}

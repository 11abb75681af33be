/* Linear forwarding tables, 64 LIDs a MAD, many MADs in flight. A lost MAD is sent again, three
 * times at most. */
#include "fabric/live.h"

#include <errno.h>
#include <infiniband/mad.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      64
#define TIMEOUT_MS 1000
#define TRIES      4

struct request {
    uint32_t sw;
    uint16_t block;
    uint8_t tries;
    bool is_done;
};

struct reader {
    const struct fabric_live *live;
    struct ibshift_fabric *f;
    int port, agent;
    struct request *requests;
    uint32_t count, next, done, flying;
    uint32_t *again; /* requests to repeat */
    uint32_t again_count;
    void *umad;
};

static int make_requests(struct reader *r, const unsigned *top)
{
    uint64_t count = 0;

    for (uint32_t s = 0; s < r->f->switch_count; s++) {
        count += top[s] / BLOCK + 1;
    }
    r->requests = calloc(count + 1, sizeof(*r->requests));
    r->again = calloc(count + 1, sizeof(*r->again));
    r->umad = umad_alloc(1, umad_size() + IB_MAD_SIZE);
    if (r->requests == NULL || r->again == NULL || r->umad == NULL) {
        return -ENOMEM;
    }
    for (uint32_t s = 0; s < r->f->switch_count; s++) {
        for (unsigned block = 0; block <= top[s] / BLOCK; block++) {
            r->requests[r->count++] = (struct request){.sw = s, .block = (uint16_t)block};
        }
    }
    return 0;
}

static int send_request(struct reader *r, uint32_t index, struct ibshift_error *err)
{
    struct request *request = &r->requests[index];
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];
    ib_portid_t to = {.lid = node->lid};
    ib_rpc_t rpc = {.mgtclass = IB_SMI_CLASS,
                    .method = IB_MAD_METHOD_GET,
                    .attr = {.id = IB_ATTR_LINEARFORWTBL, .mod = request->block},
                    .dataoffs = IB_SMP_DATA_OFFS,
                    .datasz = IB_SMP_DATA_SIZE,
                    .trid = (uint64_t)index + 1,
                    .timeout = TIMEOUT_MS};

    memset(r->umad, 0, umad_size() + IB_MAD_SIZE);
    if (mad_build_pkt(r->umad, &rpc, &to, NULL, NULL) < 0 ||
        umad_send(r->port, r->agent, r->umad, IB_MAD_SIZE, TIMEOUT_MS, 0) < 0) {
        return ibshift_fail(err, -EIO, "cannot send to switch '%s': %s",
                            ibshift_node_name(r->f, r->f->switches[request->sw]), strerror(errno));
    }
    request->tries++;
    r->flying++;
    return 0;
}

static void store(struct reader *r, const struct request *request, const uint8_t *ports)
{
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];

    for (unsigned i = 0; i < BLOCK; i++) {
        unsigned lid = request->block * BLOCK + i;

        if (lid > 0 && lid <= IBSHIFT_LID_MAX && ports[i] <= node->port_count) {
            ibshift_lft_set(r->f, request->sw, lid, ports[i]);
        }
    }
}

static int give_up(const struct reader *r, const struct request *request, struct ibshift_error *err)
{
    const struct ibshift_node *node = &r->f->nodes[r->f->switches[request->sw]];

    return ibshift_fail(err, -ETIMEDOUT, "switch '%s' (LID %u) does not give its table",
                        ibshift_node_name(r->f, r->f->switches[request->sw]), node->lid);
}

/* One answer, or a MAD that came back as timed out. */
static int take_answer(struct reader *r, struct ibshift_error *err)
{
    int length = IB_MAD_SIZE, agent = umad_recv(r->port, r->umad, &length, 2 * TIMEOUT_MS);
    uint8_t *mad = umad_get_mad(r->umad);
    struct request *request;
    uint32_t index;

    if (agent < 0) {
        return ibshift_fail(err, -ETIMEDOUT, "the fabric stopped answering: %s", strerror(-agent));
    }
    index =
        (uint32_t)mad_get_field64(mad, 0, IB_MAD_TRID_F) - 1; /* the kernel owns the upper half */
    if (agent != r->agent || index >= r->count || r->requests[index].is_done) {
        return 0;
    }
    request = &r->requests[index];
    r->flying--;
    if (umad_status(r->umad) != 0 || mad_get_field(mad, 0, IB_MAD_STATUS_F) != 0) {
        if (request->tries == TRIES) {
            return give_up(r, request, err);
        }
        r->again[r->again_count++] = index;
        return 0;
    }
    request->is_done = true;
    store(r, request, mad + IB_SMP_DATA_OFFS);
    r->done++;
    fabric_live_progress(r->live, "tables", r->done, r->count);
    return 0;
}

static int read_all(struct reader *r, struct ibshift_error *err)
{
    int rc = 0;

    while (rc == 0 && r->done < r->count) {
        while (rc == 0 && r->flying < r->live->in_flight &&
               (r->again_count > 0 || r->next < r->count)) {
            rc = send_request(r, r->again_count > 0 ? r->again[--r->again_count] : r->next++, err);
        }
        if (rc == 0) {
            rc = take_answer(r, err);
        }
    }
    return rc;
}

static int open_port(struct reader *r, struct ibshift_error *err)
{
    char device[UMAD_CA_NAME_LEN] = "";

    if (r->live->device != NULL) {
        strncpy(device, r->live->device, sizeof(device) - 1);
    }
    r->port = umad_open_port(device[0] != '\0' ? device : NULL, r->live->port);
    r->agent = r->port < 0 ? -1 : umad_register(r->port, IB_SMI_CLASS, 1, 0, NULL);
    return r->agent < 0 ? ibshift_fail(err, -EIO, "cannot open the port for management datagrams")
                        : 0;
}

int fabric_live_tables(const struct fabric_live *live, struct ibshift_fabric *f,
                       const unsigned *top, struct ibshift_error *err)
{
    struct reader r = {.live = live, .f = f, .port = -1, .agent = -1};
    int rc = make_requests(&r, top);

    rc = rc != 0 ? ibshift_fail(err, rc, "no memory for the tables' requests") : open_port(&r, err);
    if (rc == 0) {
        rc = read_all(&r, err);
    }
    if (r.agent >= 0) {
        umad_unregister(r.port, r.agent);
    }
    if (r.port >= 0) {
        umad_close_port(r.port);
    }
    if (r.umad != NULL) {
        umad_free(r.umad);
    }
    free(r.requests);
    free(r.again);
    return rc;
}

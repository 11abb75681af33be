#include "wire/wire.h"

#include "verbs/hca.h"
#include "run/pending.h"

static void moved(uint32_t owner, uint64_t when)
{
    pending_due_by(&shm.qps[owner], when);
}

static struct wire_net the_net(void)
{
    struct shm_wire *w = shm.wire;

    return (struct wire_net){.clock = &w->clock,
                             .links = w->links,
                             .lanes = w->lanes,
                             .gates = w->gates,
                             .messages = w->messages,
                             .heap = w->heap,
                             .room = WIRE_MESSAGES,
                             .moved = moved};
}

/* Links from a port to the one that owns the LID `lid` (0: only `to` counts); SHM_NONE: nobody
   does. Returns their number; none from a port to itself. */
static uint32_t path(uint32_t from, uint32_t to, uint16_t lid, uint32_t links[WIRE_HOPS])
{
    const struct shm_wire *w = shm.wire;
    uint32_t n = 0;

    if (from == to) {
        return 0;
    }
    if (!w->columns) {
        links[n++] = 2 * from;
        if (to != SHM_NONE) {
            links[n++] = 2 * to + 1;
        }
        return n;
    }
    links[n++] = w->cable[from];
    if (to != SHM_NONE) {
        uint16_t goal = lid ? lid : shm.ports[to].lid;
        const uint32_t *cell = (const uint32_t *)(const void *)(shm.base + w->cells) +
                               ((uint64_t)w->leaf[from] * w->columns + w->column[goal]) * w->width;

        for (uint32_t i = 0; i < w->width && cell[i]; i++) {
            links[n++] = cell[i] - 1;
        }
    }
    return n;
}

/* Both HCAs, and the switch that each cable but the last ends at. */
static uint64_t latency(uint32_t links)
{
    return 2 * shm.wire->hca_ns + (links > 1 ? links - 1 : 0) * shm.wire->hop_ns;
}

static uint32_t target_port(const struct shm_qp *source, const struct shm_av *av)
{
    if (source->type != IBV_QPT_UD) {
        return source->peer_port;
    }
    return av_is_multicast(av) ? SHM_NONE : av_port(av);
}

/* A datagram to a group is there when the farthest of its members can have it. */
static uint32_t hops_to_group(const struct shm_qp *source, const struct shm_av *av)
{
    uint32_t members[SHM_MEMBERS], links[WIRE_HOPS], most = 1;
    uint32_t n = mcast_members(source->port, av, members);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t hops = path(source->port, shm.qps[members[i]].port, 0, links);

        most = hops > most ? hops : most;
    }
    return most;
}

bool wire_start(uint32_t index, struct shm_wqe *wqe, uint64_t now)
{
    const struct shm_qp *source = &shm.qps[index];
    const struct shm_av *av = source->type == IBV_QPT_UD ? &wqe->av : &source->av;
    uint32_t to = target_port(source, av);
    struct wire_request r = {
        .owner = index, .gate = source->port, .bytes = wqe->length, .limit = shm.wire->limit};
    struct wire_net net;

    r.hops = path(source->port, to, av->dlid, r.link);
    if (wqe->opcode == IBV_WR_RDMA_READ && to != SHM_NONE) {
        uint16_t back = (uint16_t)(shm.ports[source->port].lid + av->path_bits);

        r.reads = true;
        r.back_gate = to;
        r.hops = path(to, source->port, back, r.link);
    }
    r.latency = latency(to == SHM_NONE && source->type == IBV_QPT_UD && av_is_multicast(av)
                            ? hops_to_group(source, av)
                            : r.hops);
    net = the_net();
    lock_take(&shm.wire->lock);
    wqe->wire = wire_net_send(&net, &r, now);
    if (wqe->wire != WIRE_NONE) {
        shm.wire->by_sl[av->sl] += wqe->length;
    }
    lock_drop(&shm.wire->lock);
    wqe->back = source->type == IBV_QPT_RC ? r.latency : 0;
    return wqe->wire != WIRE_NONE;
}

bool wire_look(uint32_t index, struct shm_wqe *wqe, uint64_t now, struct wire_times *times)
{
    struct wire_net net = the_net();
    bool lands;

    lock_take(&shm.wire->lock);
    lands = wire_net_look(&net, wqe->wire, index, now, &times->land);
    lock_drop(&shm.wire->lock);
    times->recv = times->done = times->land;
    if (lands && wqe->opcode == IBV_WR_RDMA_READ) {
        times->land = times->recv -= wqe->back;
    } else if (lands) {
        times->done += wqe->back;
    }
    return lands;
}

void wire_forget(uint32_t index, struct shm_wqe *wqe)
{
    struct wire_net net = the_net();

    lock_take(&shm.wire->lock);
    wire_net_forget(&net, wqe->wire, index);
    lock_drop(&shm.wire->lock);
    wqe->timed = WQE_TIMED;
}

void wire_drop(uint32_t index)
{
    struct shm_qp *qp = &shm.qps[index];

    for (; qp->sq_landed < qp->sq_started; qp->sq_landed++) {
        struct shm_wqe *wqe = shm_at(&qp->sq, qp->sq_landed);

        if (wqe->timed == WQE_ON_WIRE) {
            wire_forget(index, wqe);
        }
    }
}

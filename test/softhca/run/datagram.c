/* Datagrams: unicast and multicast, with the global route header that InfiniBand puts in front. */
#include <string.h>

#include "verbs/hca.h"
#include "run/run.h"
#include "fault/fault.h"
#include "shm/proc.h"

enum { RUBBISH = 0xdb, GRH_BYTES = 40, QKEY_OWN = 1u << 31, GRH_NEXT = 0x1b };

struct flight {
    struct run *run;
    struct shm_wqe *wqe;
    struct pieces payload;
    uint32_t qkey;
    bool at_once; /* the completion does not wait: multicast has many targets */
};

static void fill_grh(const struct flight *f, struct ibv_grh *grh)
{
    const struct shm_av *av = &f->wqe->av;
    const struct shm_port *port = &shm.ports[f->run->qp->port];
    uint32_t first;

    memset(grh, av->is_global ? 0 : RUBBISH, sizeof(*grh));
    if (!av->is_global) {
        return; /* undefined on hardware as well */
    }
    first = 6u << 28 | (uint32_t)av->traffic_class << 20 | (av->flow_label & 0xfffff);
    grh->version_tclass_flow = htobe32(first);
    grh->paylen = htobe16((uint16_t)(f->wqe->length + 24)); /* with transport headers and CRC */
    grh->next_hdr = GRH_NEXT;
    grh->hop_limit = av->hop_limit;
    grh->sgid = port->gid[av->sgid_index];
    grh->dgid = av->dgid;
}

static void deliver(const struct flight *f, const struct receive *r, enum ibv_wc_status status)
{
    const struct shm_wqe *wqe = f->wqe;
    const struct shm_qp *qp = f->run->qp;
    struct shm_cqe e;

    receive_fill(r, &e);
    e.wc.status = status;
    e.wc.byte_len = wqe->length + GRH_BYTES;
    e.wc.src_qp = qp->number;
    e.wc.slid = (uint16_t)(shm.ports[qp->port].lid + wqe->av.path_bits);
    e.wc.sl = wqe->av.sl;
    e.wc.dlid_path_bits = (uint8_t)(wqe->av.dlid & ((1u << shm.head->conf.lmc) - 1));
    e.solicited = (wqe->flags & IBV_SEND_SOLICITED) != 0;
    e.wc.wc_flags = wqe->av.is_global ? IBV_WC_GRH : 0;
    if (wqe->opcode == IBV_WR_SEND_WITH_IMM) {
        e.wc.wc_flags |= IBV_WC_WITH_IMM;
        e.wc.imm_data = wqe->imm;
    }
    if (f->at_once) {
        cq_push(shm.qps[r->qp].recv_cq, &e);
    } else {
        exec_deliver(f->run, f->wqe, &e);
    }
}

static int place(const struct flight *f, const struct receive *r, struct ibv_grh *grh)
{
    struct pieces from, to = r->to, rest;
    int err;

    pieces_clear(&from, SHM_NONE);
    pieces_add(&from, grh, sizeof(*grh));
    if (f->payload.proc == SHM_NONE || f->payload.proc == proc_self) { /* one call for both */
        for (uint32_t i = 0; i < f->payload.n; i++) {
            pieces_add(&from, f->payload.iov[i].iov_base, f->payload.iov[i].iov_len);
        }
        pieces_cut(&to, from.bytes);
        return copy_pieces(&from, &to);
    }
    pieces_slice(&r->to, GRH_BYTES, f->payload.bytes, &rest);
    pieces_cut(&to, GRH_BYTES);
    err = copy_pieces(&from, &to);
    return err ? err : copy_pieces(&f->payload, &rest);
}

/* Without a receive, or with a wrong key, a datagram vanishes. */
static void arrive(struct flight *f, uint32_t target)
{
    struct shm_qp *peer = &shm.qps[target];
    struct receive r;
    struct ibv_grh grh;
    uint32_t state = atomic_load_explicit(&peer->state, memory_order_acquire);

    if (peer->type != IBV_QPT_UD || peer->attr.qkey != f->qkey || state < IBV_QPS_RTR ||
        state == IBV_QPS_ERR || !receive_take(target, &r)) {
        return;
    }
    if (r.bad_key || r.to.bytes < f->payload.bytes + GRH_BYTES) {
        deliver(f, &r, r.bad_key ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR);
        qp_kill(target, 0);
        return;
    }
    fill_grh(f, &grh);
    if (place(f, &r, &grh) == 0) {
        deliver(f, &r, IBV_WC_SUCCESS);
    }
}

static void multicast(struct flight *f)
{
    uint32_t members[SHM_MEMBERS];
    uint32_t n = mcast_members(f->run->qp->port, &f->wqe->av, members);

    f->at_once = true;
    for (uint32_t i = 0; i < n; i++) {
        bool is_self = members[i] == f->run->index &&
                       (f->run->qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
        uint32_t port = shm.qps[members[i]].port;

        if (!is_self && port != SHM_NONE && qp_share_partition(f->run->qp, &shm.qps[members[i]]) &&
            fault_fate(f->run->qp, port, f->wqe) == FATE_DELIVER) {
            for (int times = shm.head->conf.adversarial && shm_random(8) == 0 ? 2 : 1; times > 0;
                 times--) { /* switches may forward one twice while the tree changes */
                arrive(f, members[i]);
            }
        }
    }
}

enum verdict exec_datagram(struct run *run, struct shm_wqe *wqe)
{
    struct shm_qp *qp = run->qp;
    struct flight f; /* large: only what is used gets set */
    uint32_t port, target;

    f.run = run;
    f.wqe = wqe;
    f.at_once = false;
    wqe->status = IBV_WC_SUCCESS;
    if (!exec_gather(qp, wqe, 0, &f.payload)) {
        return VERDICT_LANDED;
    }
    if (wqe->length > 128u << shm.head->conf.mtu) {
        wqe->status = IBV_WC_LOC_LEN_ERR;
        return VERDICT_LANDED;
    }
    f.qkey = wqe->remote_qkey & QKEY_OWN ? qp->attr.qkey : wqe->remote_qkey;
    if (av_is_multicast(&wqe->av)) {
        multicast(&f);
        return VERDICT_LANDED;
    }
    port = av_port(&wqe->av);
    target = qp_find(wqe->remote_qpn);
    if (port != SHM_NONE && target != SHM_NONE && shm.qps[target].port == port &&
        qp_share_partition(qp, &shm.qps[target]) && fault_fate(qp, port, wqe) == FATE_DELIVER) {
        arrive(&f, target);
    }
    return VERDICT_LANDED;
}

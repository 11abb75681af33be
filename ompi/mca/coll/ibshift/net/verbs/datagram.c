/* Datagrams between endpoints: sent and forgotten, received and checked. */
#include <string.h>

#include "net/verbs/inside.h"

enum { ROUTE_HEADER = 40, BATCH = 16 };

static uint8_t *receive_at(const struct ibshift_net_verbs *nv, uint32_t i)
{
    return nv->ud_memory + (size_t)i * IBSHIFT_UD_STRIDE;
}

static int post_receive(struct ibshift_net_verbs *nv, uint32_t i)
{
    struct ibv_sge sge = {.addr = (uintptr_t)receive_at(nv, i),
                          .length = IBSHIFT_UD_STRIDE,
                          .lkey = nv->lanes[0].mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
    return -ibv_post_recv(nv->verbs->ud_qp, &wr, &bad);
}

int ibshift_nv_ud_open(struct ibshift_net_verbs *nv)
{
    struct ibv_qp *qp = nv->verbs->ud_qp;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = nv->verbs->ports[0].pkey_index,
                               .port_num = nv->verbs->ports[0].number,
                               .qkey = nv->verbs->blob.ud_qkey};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
    int rc = ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    for (uint32_t i = 0; i < IBSHIFT_UD_DEPTH && rc == 0; i++) {
        rc = -post_receive(nv, i);
    }
    rc = rc != 0 ? rc : ibv_modify_qp(qp, &rtr, IBV_QP_STATE);
    return -(rc != 0 ? rc : ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* Takes the queue pair back to where it knows nothing of our memory. */
void ibshift_nv_ud_close(struct ibshift_net_verbs *nv)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_wc wc[BATCH];

    (void)ibv_modify_qp(nv->verbs->ud_qp, &reset, IBV_QP_STATE);
    while (ibv_poll_cq(nv->verbs->ud_cq, BATCH, wc) > 0) {
    }
}

static uint8_t service_level(const struct ibshift_net_verbs *nv,
                             const struct ibshift_verbs_address *from,
                             const struct ibshift_verbs_address *to, unsigned path)
{
    int level = nv->options.service_level == NULL
                    ? -1
                    : nv->options.service_level(nv->options.context, from, to, path);

    return level < 0 ? nv->verbs->service_level : (uint8_t)level;
}

/* Of the peer's port: the LID that is `path` above its first. */
void ibshift_nv_address(const struct ibshift_connection *c, int my_port, int their_port,
                        unsigned path, struct ibv_ah_attr *ah)
{
    const struct ibshift_net_verbs *nv = c->net;
    const struct ibshift_verbs_address *from = &nv->verbs->blob.address[my_port];
    const struct ibshift_verbs_address *to = &c->card.address[their_port];

    memset(ah, 0, sizeof(*ah));
    ah->dlid = (uint16_t)(to->lid + path);
    ah->sl = service_level(nv, from, to, path);
    ah->port_num = nv->verbs->ports[my_port].number;
    /* Where either port asks for the header: a port that does refuses paths without one, and drops
       packets that come without one. */
    if (from->needs_grh || to->needs_grh) {
        ah->is_global = 1;
        memcpy(ah->grh.dgid.raw, to->gid, 16);
        ah->grh.sgid_index = nv->verbs->ports[my_port].gid_index;
        ah->grh.traffic_class = nv->verbs->traffic_class;
        ah->grh.hop_limit = 64;
    }
}

static struct ibv_ah *address_handle(struct ibshift_connection *c)
{
    if (c->ah == NULL) {
        struct ibv_ah_attr attr;
        ibshift_nv_address(c, 0, 0, 0, &attr);
        c->ah = ibv_create_ah(c->net->lanes[0].device->pd, &attr);
    }
    return c->ah;
}

/* A datagram for which there is no room is as good as lost: all of them are repeated. */
void ibshift_nv_ud_send(struct ibshift_connection *c, const struct ibshift_hello *hello)
{
    struct ibshift_net_verbs *nv = c->net;

    if (nv->ud_sends >= IBSHIFT_UD_DEPTH || address_handle(c) == NULL) {
        return;
    }
    uint8_t *data = receive_at(nv, IBSHIFT_UD_DEPTH + nv->ud_next++ % IBSHIFT_UD_DEPTH);
    struct ibv_sge sge = {
        .addr = (uintptr_t)data, .length = sizeof(*hello), .lkey = nv->lanes[0].mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = IBSHIFT_UD_DEPTH,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = {.ah = c->ah, .remote_qpn = c->card.ud_qpn, .remote_qkey = c->card.ud_qkey}};
    struct ibv_send_wr *bad;

    ibshift_hello_encode(hello, data);
    if (ibv_post_send(nv->verbs->ud_qp, &wr, &bad) == 0) {
        nv->ud_sends++;
    }
}

static void take(struct ibshift_net_verbs *nv, const struct ibv_wc *wc, ibshift_hello_came_t *came)
{
    struct ibshift_hello hello;
    const uint8_t *data = receive_at(nv, (uint32_t)wc->wr_id);
    struct ibshift_verbs_source source = {
        .qpn = wc->src_qp, .lid = wc->slid, .route = wc->wc_flags & IBV_WC_GRH ? data : NULL};

    if (wc->byte_len >= ROUTE_HEADER &&
        ibshift_hello_decode(data + ROUTE_HEADER, wc->byte_len - ROUTE_HEADER, &hello) == 0) {
        came(nv, &hello, &source);
    }
    (void)post_receive(nv, (uint32_t)wc->wr_id);
}

/* Anybody can send a datagram that is longer than its receive, and that ends the queue pair. */
static void open_again(struct ibshift_net_verbs *nv)
{
    ibshift_nv_ud_close(nv);
    nv->ud_sends = 0;
    nv->is_ud_shut = ibshift_nv_ud_open(nv) != 0; /* then at the next poll */
}

void ibshift_nv_ud_poll(struct ibshift_net_verbs *nv, ibshift_hello_came_t *came)
{
    struct ibv_wc wc[BATCH];
    int n = nv->is_ud_shut ? 1 : ibv_poll_cq(nv->verbs->ud_cq, BATCH, wc);

    for (int i = 0; i < n; i++) {
        if (nv->is_ud_shut || wc[i].status != IBV_WC_SUCCESS) {
            open_again(nv);
            return;
        }
        if (wc[i].wr_id < IBSHIFT_UD_DEPTH) {
            take(nv, &wc[i], came);
        } else {
            nv->ud_sends--;
        }
    }
}

void ibshift_nv_hello(struct ibshift_connection *c, uint8_t kind)
{
    struct ibshift_net_verbs *nv = c->net;
    struct ibshift_hello h = {.kind = kind,
                              .flags = ibshift_handshake_flags(&c->shake),
                              .from_incarnation = nv->verbs->blob.incarnation,
                              .to_incarnation = c->card.incarnation,
                              .from_peer = nv->options.self,
                              .to_peer = c->peer,
                              .word_address = (uintptr_t)&nv->words[c->number],
                              .word_key = nv->lanes[0].mr->rkey,
                              .max_eager = (uint32_t)nv->options.max_eager,
                              .credits = (uint16_t)c->in.slots_window,
                              .quota = (uint16_t)c->in.quota_window,
                              .rails = c->rails,
                              .path = c->path,
                              .status = c->status};

    if (kind == IBSHIFT_HELLO_ASK) {
        h.credits = (uint16_t)c->out.slots;
    }
    if (kind == IBSHIFT_HELLO_BYE) {
        h.status = c->root.status != 0 ? -ECONNABORTED : c->status;
        h.word_key = c->root.peer;
        h.max_eager = (uint32_t)-c->root.status;
    }
    if (h.status == -EMSGSIZE) {
        h.word_address = c->lengths[0];
        h.word_key = (uint32_t)c->lengths[1];
        h.max_eager = (uint32_t)(c->lengths[1] >> 32);
    }
    for (int i = 0; i < c->rails; i++) {
        h.rail[i].qpn = c->rail[i].qp->qp_num;
        h.rail[i].psn = c->rail[i].psn;
        h.rail[i].ece_vendor = c->rail[i].ece.vendor_id;
        h.rail[i].ece_options = c->rail[i].ece.options;
    }
    ibshift_nv_ud_send(c, &h);
}

void ibshift_nv_bye(struct ibshift_connection *c)
{
    if (c->card.ports != 0) {
        ibshift_nv_hello(c, IBSHIFT_HELLO_BYE);
    }
}

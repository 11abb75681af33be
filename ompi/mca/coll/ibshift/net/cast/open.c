/* Making and ending a multicast group: its queue pair, its memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/cast/impl.h"

enum { TRIES = 8 };
enum { WAYS = 8 /* that a receive waits at most: so many datagrams may follow one another */ };
enum { LEAST = 256 /* bytes of a message, or it is not worth the while */, INLINED = 128 };

static const uint64_t pause_first = 200 * 1000, pause_most = 5 * 1000 * 1000; /* ns */

size_t ibshift_cast_most(struct ibshift_net *net, const uint32_t *peers, uint32_t count)
{
    struct ibshift_net_verbs *nv = ibshift_nv(net);
    size_t most = 128u << nv->verbs->blob.address[0].mtu;

    for (uint32_t i = 0; i < count; i++) {
        const struct ibshift_connection *c = ibshift_nv_peer(nv, peers[i]);

        if (c != NULL && most > 128u << c->card.address[0].mtu) {
            most = 128u << c->card.address[0].mtu;
        }
    }
    most = most < net->max_eager ? most : net->max_eager; /* it may have to go as a short message */
    return most < LEAST + sizeof(struct ibshift_cast_head)
               ? 0
               : most - sizeof(struct ibshift_cast_head);
}

static int post_receives(struct ibshift_cast *cast)
{
    int rc = 0;

    for (uint32_t i = 0; i < IBSHIFT_CAST_RECEIVES && rc == 0; i++) {
        rc = ibshift_nv_cast_receive(&cast->receives[i]);
    }
    return rc;
}

int ibshift_cast_ready(struct ibshift_cast *cast)
{
    const struct ibshift_port *port = &cast->nv->verbs->ports[0];
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = port->pkey_index,
                               .port_num = port->number,
                               .qkey = cast->place.key};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    int rc = -ibv_modify_qp(cast->qp, &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    rc = rc == 0 ? post_receives(cast) : rc;
    rc = rc == 0 ? -ibv_modify_qp(cast->qp, &rtr, IBV_QP_STATE) : rc;
    return rc == 0 ? -ibv_modify_qp(cast->qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN) : rc;
}

static int make_memory(struct ibshift_cast *cast)
{
    uint32_t pieces = IBSHIFT_CAST_RECEIVES + IBSHIFT_CAST_WINDOW + IBSHIFT_CAST_HELD;
    uint8_t *at;

    cast->stride = (IBSHIFT_CAST_ROUTE + sizeof(struct ibshift_cast_head) + cast->most + 63) & ~63u;
    cast->memory = at = calloc(pieces, cast->stride);
    cast->acknowledged = calloc(cast->count, sizeof(*cast->acknowledged));
    cast->sources = calloc(cast->count, sizeof(*cast->sources));
    if (at == NULL || cast->acknowledged == NULL || cast->sources == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < IBSHIFT_CAST_RECEIVES; i++, at += cast->stride) {
        cast->receives[i] = (struct ibshift_cast_buffer){cast, at};
    }
    cast->window = (struct ibshift_cast_buffer){cast, at};
    at += IBSHIFT_CAST_WINDOW * cast->stride;
    for (uint32_t i = 0; i < IBSHIFT_CAST_HELD; i++, at += cast->stride) {
        cast->held[i].data = at;
    }
    cast->mr = ibv_reg_mr(cast->nv->lanes[0].device->pd, cast->memory, pieces * cast->stride,
                          IBV_ACCESS_LOCAL_WRITE);
    return cast->mr == NULL ? -errno : 0;
}

/* Its completions come in the queue of the first device's connections, which then has room for fewer of theirs. */
static int make_queues(struct ibshift_cast *cast)
{
    struct ibshift_net_verbs *nv = cast->nv;
    struct ibshift_lane *lane = &nv->lanes[0];
    uint32_t takes = IBSHIFT_CAST_RECEIVES + IBSHIFT_CAST_WINDOW;
    struct ibv_qp_init_attr attr = {.send_cq = lane->cq,
                                    .recv_cq = lane->cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = IBSHIFT_CAST_WINDOW,
                                            .max_recv_wr = IBSHIFT_CAST_RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = INLINED}};

    if (nv->requests + takes > nv->cq_room / 2) {
        return -ENOSPC;
    }
    cast->qp = ibv_create_qp(lane->device->pd, &attr);
    if (cast->qp == NULL) { /* some can do without any */
        attr.cap.max_inline_data = 0;
        cast->qp = ibv_create_qp(lane->device->pd, &attr);
    }
    if (cast->qp == NULL) {
        return -errno;
    }
    nv->cq_room -= takes;
    cast->inlined = attr.cap.max_inline_data;
    return ibshift_cast_ready(cast);
}

static int attach(struct ibshift_cast *cast)
{
    const struct ibshift_cast_place *place = &cast->place;
    struct ibv_ah_attr address = {
        .dlid = place->lid,
        .sl = place->service_level,
        .port_num = place->port,
        .is_global = 1,
        .grh = {.sgid_index = place->gid_index, .hop_limit = place->hops}};
    union ibv_gid gid = {.raw = {0}};

    memcpy(gid.raw, place->gid, sizeof(gid.raw));
    address.grh.dgid = gid;
    cast->ah = ibv_create_ah(cast->nv->lanes[0].device->pd, &address);
    return cast->ah == NULL ? -errno : -ibv_attach_mcast(cast->qp, &gid, place->lid);
}

void ibshift_cast_free(struct ibshift_cast *cast)
{
    union ibv_gid gid;

    memcpy(gid.raw, cast->place.gid, sizeof(gid.raw));
    if (cast->qp != NULL) {
        (void)ibv_detach_mcast(cast->qp, &gid, cast->place.lid);
        (void)ibv_destroy_qp(cast->qp);
        cast->nv->cq_room += IBSHIFT_CAST_RECEIVES + IBSHIFT_CAST_WINDOW;
    }
    if (cast->ah != NULL) {
        (void)ibv_destroy_ah(cast->ah);
    }
    if (cast->mr != NULL) {
        (void)ibv_dereg_mr(cast->mr);
    }
    ibshift_join_close(&cast->join);
    free(cast->memory);
    free(cast->acknowledged);
    free(cast->sources);
    free(cast->awaited);
    free(cast);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int ibshift_cast_open(struct ibshift_net *net, const struct ibshift_cast_members *members,
                      const struct ibshift_cast_place *place, struct ibshift_join *join,
                      struct ibshift_cast **out, char *error, size_t size)
{
    struct ibshift_cast *cast = calloc(1, sizeof(*cast) + members->count * sizeof(cast->peers[0]));
    int rc;

    *out = NULL;
    if (cast == NULL) {
        snprintf(error, size, "out of memory");
        return -ENOMEM;
    }
    cast->nv = ibshift_nv(net);
    cast->count = members->count;
    cast->rank = members->rank;
    memcpy(cast->peers, members->peers, members->count * sizeof(cast->peers[0]));
    cast->place = *place;
    cast->group = place->secret;
    cast->most = members->most;
    cast->pause = later(pause_first, members->way + members->way / 4);
    cast->pause_most = later(pause_most, WAYS * members->way);
    cast->join.device = -1;
    rc = make_memory(cast);
    rc = rc == 0 ? make_queues(cast) : rc;
    rc = rc == 0 ? attach(cast) : rc;
    if (rc != 0) {
        snprintf(error, size, "the adapter has no queue pair for it: %s", strerror(-rc));
        ibshift_cast_free(cast);
        return rc;
    }
    for (uint32_t i = 0; i < cast->count; i++) {
        cast->sources[i].is_near =
            members->is_near != NULL && members->is_near(NULL, cast->peers[i]);
    }
    for (uint32_t i = cast->count - 1; i > 0; i--) {
        uint32_t rank = (cast->rank + i) % cast->count;

        cast->first = cast->sources[rank].is_near ? cast->first : cast->peers[rank];
    }
    cast->join = *join;
    join->device = -1;
    cast->next = cast->nv->casts;
    cast->nv->casts = cast;
    *out = cast;
    return 0;
}

void ibshift_cast_close(struct ibshift_cast *cast)
{
    ibshift_cast_acknowledge_all(cast);
    cast->held_count = cast->awaited_count = 0;
    cast->is_closing = true;
    cast->nv->next_walk = 0;
}

void ibshift_nv_casts_shut(struct ibshift_net_verbs *nv)
{
    while (nv->casts != NULL) {
        struct ibshift_cast *cast = nv->casts;

        nv->casts = cast->next;
        ibshift_cast_free(cast);
    }
}

static void begin_again(struct ibshift_cast *cast)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

    cast->is_broken = ibv_modify_qp(cast->qp, &reset, IBV_QP_STATE) != 0;
    cast->left = cast->sent;
    cast->is_broken |= ibshift_cast_ready(cast) != 0;
    cast->tries = cast->is_broken ? cast->tries + 1 : 0;
}

uint64_t ibshift_nv_casts_look(struct ibshift_net_verbs *nv)
{
    uint64_t next = UINT64_MAX;

    for (struct ibshift_cast **at = &nv->casts, *cast; (cast = *at) != NULL;) {
        uint64_t due = ibshift_cast_ask(cast);

        if (cast->is_broken && cast->tries < TRIES) {
            begin_again(cast);
        }
        next = due < next ? due : next;
        if (cast->is_closing && ibshift_cast_is_acknowledged(cast)) {
            *at = cast->next;
            ibshift_cast_free(cast);
        } else {
            at = &cast->next;
        }
    }
    return next;
}

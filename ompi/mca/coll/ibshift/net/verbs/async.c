/* What a device says out of turn: queues, queue pairs and devices that died. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "net/verbs/private.h"

/* Reading must not wait; the descriptor is of our own open of the device. */
int ibshift_nv_async_open(struct ibshift_net_verbs *nv)
{
    for (int i = 0; i < nv->lane_count; i++) {
        int fd = nv->lanes[i].device->context->async_fd;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
            return -errno;
        }
    }
    return 0;
}

static int is_of_lane(const struct ibshift_connection *c, const struct ibshift_lane *lane,
                      const struct ibv_qp *qp)
{
    for (int i = 0; i < c->rails; i++) {
        if (c->rail[i].lane == lane && (qp == NULL || c->rail[i].qp == qp)) {
            return 1;
        }
    }
    return 0;
}

/* qp NULL: all connections over this device. */
static void break_all(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane,
                      const struct ibv_qp *qp, enum ibv_event_type type)
{
    for (uint32_t i = 0; i < nv->connection_count; i++) {
        if (is_of_lane(nv->connections[i], lane, qp)) {
            ibshift_nv_break(nv, nv->connections[i], -EIO, "device %s here reports: %s",
                             ibv_get_device_name(lane->device->context->device),
                             ibv_event_type_str(type));
        }
    }
}

static void say_port_down(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane, int port)
{
    char line[256];

    if (nv->options.say != NULL) {
        snprintf(line, sizeof(line),
                 "port %s:%d went down: collectives wait for it as long as the device tries again, "
                 "then they fail",
                 ibv_get_device_name(lane->device->context->device), port);
        nv->options.say(nv->options.context, line);
    }
}

static int is_mine(const struct ibshift_net_verbs *nv, const struct ibshift_lane *lane, int port)
{
    for (int i = 0; i < nv->verbs->port_count; i++) {
        if (nv->verbs->ports[i].device == lane->device && nv->verbs->ports[i].number == port) {
            return 1;
        }
    }
    return 0;
}

static void take(struct ibshift_net_verbs *nv, const struct ibshift_lane *lane,
                 const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
        break_all(nv, lane, NULL, event->event_type);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        break_all(nv, lane, event->element.qp, event->event_type);
        break;
    case IBV_EVENT_PORT_ERR:
        if (is_mine(nv, lane, event->element.port_num)) {
            say_port_down(nv, lane, event->element.port_num);
        }
        break;
    default:
        break;
    }
}

void ibshift_nv_async_poll(struct ibshift_net_verbs *nv)
{
    struct ibv_async_event event;

    for (int i = 0; i < nv->lane_count; i++) {
        if (ibv_get_async_event(nv->lanes[i].device->context, &event) == 0) {
            take(nv, &nv->lanes[i], &event);
            ibv_ack_async_event(&event);
        }
    }
}

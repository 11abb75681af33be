/* Armed for solicited events only: a plain message does not wake, a solicited or failed one does.
 */
#include "vt.h"

#include <poll.h>

static bool is_awake(struct ibv_comp_channel *channel, int ms)
{
    struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;
    if (poll(&pfd, 1, ms) != 1) {
        return false;
    }
    VT_OK(ibv_get_cq_event(channel, &cq, &context));
    ibv_ack_cq_events(cq, 1);
    return true;
}

static void send_one(struct vt_pair *p, uint64_t id, unsigned flags)
{
    VT_OK(vt_recv(&p->b, id, 0, 8));
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, id, 0, 8);
    w.wr.send_flags |= flags;
    VT_OK(vt_post(&p->a, &w));
    VT_WC(p->a.scq, id, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "armed for solicited events, only solicited and failed completions wake");
    struct vt_conf conf = vt_conf();
    conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);
    VT_OK(ibv_req_notify_cq(p.b.rcq, 1));
    send_one(&p, 1, 0);
    VT_CHECK(!is_awake(conf.events, VT_QUIET_MS), "expected a plain message not to wake");
    send_one(&p, 2, IBV_SEND_SOLICITED);
    VT_CHECK(is_awake(conf.events, VT_WAIT_MS), "expected a solicited message to wake");
    VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_OK(vt_recv(&p.b, 3, 0, 8));
    VT_OK(ibv_req_notify_cq(p.b.rcq, 1));
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    if (!is_awake(conf.events, 1000)) {
        vt_differs("a flushed receive did not wake the channel armed for solicited events");
    }
    VT_WC(p.b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
    vt_disconnect(&p);
    VT_OK(ibv_destroy_comp_channel(conf.events));
    return vt_close();
}

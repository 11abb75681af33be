/* Completion channels: an armed queue wakes once, an unarmed one never, and no wake-up is lost. */
#include "vt.h"

#include <poll.h>
#include <stdlib.h>

enum { ROUNDS = 300 };

static struct ibv_comp_channel *channel;

static bool is_awake(int ms)
{
    struct pollfd pfd = {.fd = channel->fd, .events = POLLIN};
    return poll(&pfd, 1, ms) == 1;
}

static void take_event(struct ibv_cq *expected)
{
    struct ibv_cq *cq = NULL;
    void *context = &channel;
    VT_CHECK(is_awake(VT_WAIT_MS), "expected an event on the channel, got none");
    VT_OK(ibv_get_cq_event(channel, &cq, &context));
    VT_CHECK(cq == expected, "expected the event of the receive queue's completions");
    VT_CHECK(context == NULL, "expected the context that was given");
    ibv_ack_cq_events(cq, 1);
}

static void send_one(struct vt_pair *p, uint64_t id)
{
    VT_OK(vt_recv(&p->b, id, 0, 8));
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, id, 0, 8);
    VT_OK(vt_post(&p->a, &w));
    VT_WC(p->a.scq, id, IBV_WC_SUCCESS);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "an armed completion queue wakes its channel once, and none is lost");
    struct vt_conf conf = vt_conf();
    channel = conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&p, &conf);

    send_one(&p, 1);
    VT_CHECK(!is_awake(VT_QUIET_MS), "expected no event from a queue that was never armed");
    VT_WC(p.b.rcq, 1, IBV_WC_SUCCESS);

    VT_OK(ibv_req_notify_cq(p.b.rcq, 0));
    VT_CHECK(!is_awake(VT_QUIET_MS), "expected no event before a completion");
    send_one(&p, 2);
    take_event(p.b.rcq);
    send_one(&p, 3);
    VT_CHECK(!is_awake(VT_QUIET_MS), "expected one event only for each arming");
    VT_WC(p.b.rcq, 2, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 3, IBV_WC_SUCCESS);

    /* Devices differ in what they do about a completion that came before (--arm-waiting). */
    send_one(&p, 4);
    VT_OK(ibv_req_notify_cq(p.b.rcq, 0));
    bool is_told = is_awake(VT_QUIET_MS);
    VT_CHECK(!vt.strict || is_told == (getenv("ARM_WAITING") != NULL),
             "a completion that waits was%s told when armed", is_told ? "" : " not");
    if (is_told) {
        take_event(p.b.rcq);
    }
    VT_WC(p.b.rcq, 4, IBV_WC_SUCCESS);

    /* Arm, look, wait: whatever the moment of the completion, one of the two sees it. */
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        VT_OK(vt_recv(&p.b, i, 0, 8));
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, i, 0, 8);
        VT_OK(i % 2 ? vt_post(&p.a, &w) : 0);
        VT_OK(ibv_req_notify_cq(p.b.rcq, 0));
        VT_OK(i % 2 ? 0 : vt_post(&p.a, &w));
        if (ibv_poll_cq(p.b.rcq, 1, &wc) == 0) {
            take_event(p.b.rcq);
            VT_CHECK(ibv_poll_cq(p.b.rcq, 1, &wc) == 1, "an event without its completion");
        }
        VT_CHECK(wc.wr_id == i && wc.status == IBV_WC_SUCCESS, "round %d: wrong completion",
                 (int)i);
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        /* The completion may have been seen without its event: take that, so that rounds stay
         * apart. */
        if (is_awake(0)) {
            take_event(p.b.rcq);
        }
    }
    vt_disconnect(&p);
    VT_OK(ibv_destroy_comp_channel(channel));
    return vt_close();
}

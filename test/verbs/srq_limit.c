/* The limit event comes once, when fewer receives than the limit are left, until it is armed again.
 */
#include "vt.h"

#include <poll.h>

enum { N = 8, LIMIT = 4 };

static void send_one(struct vt_pair *p)
{
    struct vt_wr w = vt_wr(&p->a, IBV_WR_SEND, 1, 0, 8);
    struct ibv_wc wc;
    VT_OK(vt_post(&p->a, &w));
    VT_WC(p->a.scq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_poll(p->b.rcq, &wc, VT_WAIT_MS), "expected the message to arrive");
}

static void expect_no_event(const char *when)
{
    struct pollfd pfd = {.fd = vt.ctx->async_fd, .events = POLLIN};
    VT_CHECK(poll(&pfd, 1, VT_QUIET_MS) == 0, "expected no event %s", when);
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv,
            "the limit event of a shared receive queue comes once each time it is armed");
    struct vt_conf conf = vt_conf();
    struct ibv_srq_init_attr init = {.attr = {.max_wr = N, .max_sge = 1}};
    conf.srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    vt_connect(&p, &conf);
    for (uint64_t i = 0; i < N; i++) {
        VT_OK(vt_recv(&p.b, i, 0, 64));
    }
    struct ibv_srq_attr limit = {.srq_limit = LIMIT};
    VT_OK(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    struct ibv_srq_attr now;
    VT_OK(ibv_query_srq(conf.srq, &now));
    VT_CHECK(now.srq_limit == LIMIT, "the limit: expected %d, got %u", LIMIT, now.srq_limit);
    for (int left = N - 1; left >= LIMIT; left--) {
        send_one(&p);
    }
    expect_no_event("while as many receives as the limit are left");
    send_one(&p);
    vt_wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, VT_WAIT_MS);
    send_one(&p);
    expect_no_event("before the limit is armed again");
    limit.srq_limit = 2;
    VT_OK(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    send_one(&p);
    vt_wait_event(IBV_EVENT_SRQ_LIMIT_REACHED, VT_WAIT_MS);
    limit.srq_limit = init.attr.max_wr + 1;
    VT_REFUSED(ibv_modify_srq(conf.srq, &limit, IBV_SRQ_LIMIT));
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
    return vt_close();
}

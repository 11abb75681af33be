/* A queue pair on a shared receive queue that enters the error state says when it took its last
 * one. */
#include "vt.h"

int main(int argc, char **argv)
{
    struct vt_pair p;
    vt_open(argc, argv, "a queue pair in error tells that it has taken its last shared receive");
    struct vt_conf conf = vt_conf();
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    conf.srq = VT_PTR(ibv_create_srq(vt.pd, &init));
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 1, 0, 64));
    VT_OK(vt_to_state(p.b.qp, IBV_QPS_ERR));
    vt_wait_event(IBV_EVENT_QP_LAST_WQE_REACHED, VT_WAIT_MS);
    /* The receive belongs to the shared queue and is not flushed. */
    VT_QUIET(p.b.rcq);
    vt_disconnect(&p);
    VT_OK(ibv_destroy_srq(conf.srq));
    return vt_close();
}

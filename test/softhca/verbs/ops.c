/*
 * The tables that the inline functions of <infiniband/verbs.h> go through. A missing entry would do
 * for most of them (the header then answers EOPNOTSUPP itself), but not for those that have no
 * check.
 */
#include <stdlib.h>

#include "verbs/cq.h"
#include "verbs/hca.h"
#include "verbs/mr.h"
#include "verbs/qp.h"
#include "verbs/query.h"
#include "verbs/srq.h"
#include "verbs/wr.h"

static struct ibv_mw *no_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    return FAIL_WITH(EOPNOTSUPP);
}

static int no_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    return EOPNOTSUPP;
}

static int no_dealloc_mw(struct ibv_mw *mw)
{
    return EOPNOTSUPP;
}

static struct ibv_xrcd *no_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
    return FAIL_WITH(EOPNOTSUPP);
}

static int no_close_xrcd(struct ibv_xrcd *xrcd)
{
    return EOPNOTSUPP;
}

static struct ibv_td *td_alloc(struct ibv_context *ctx, struct ibv_td_init_attr *attr)
{
    if (attr->comp_mask) {
        return FAIL_WITH(EINVAL);
    }
    struct ibv_td *td = calloc(1, sizeof(*td));
    if (!td) {
        return FAIL_WITH(ENOMEM);
    }
    td->context = ctx;
    return td;
}

static int td_dealloc(struct ibv_td *td)
{
    free(td);
    return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge *list, uint32_t n)
{
    return EOPNOTSUPP;
}

void hca_set_ops(struct hca_ctx *ctx)
{
    struct verbs_context *v = &ctx->vctx;
    struct ibv_context_ops *ops = &v->context.ops;
    v->sz = sizeof(*v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    ops->poll_cq = cq_poll;
    ops->req_notify_cq = cq_arm;
    ops->post_send = post_send;
    ops->post_recv = post_recv;
    ops->post_srq_recv = srq_post;
    ops->alloc_mw = no_alloc_mw;
    ops->bind_mw = no_bind_mw;
    ops->dealloc_mw = no_dealloc_mw;
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_rt_values;
    v->create_cq_ex = cq_create_ex;
    v->modify_cq = cq_modify;
    v->create_qp_ex = wr_create_qp_ex;
    v->create_srq_ex = srq_create_ex;
    v->get_srq_num = srq_get_number;
    v->alloc_parent_domain = pd_alloc_parent;
    v->alloc_td = td_alloc;
    v->dealloc_td = td_dealloc;
    v->advise_mr = advise_mr;
    v->open_xrcd = no_open_xrcd;
    v->close_xrcd = no_close_xrcd;
}

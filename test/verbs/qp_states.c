/* The states of an RC queue pair: the way to RTS one step at a time, back to RESET from anywhere.
 */
#include "vt.h"

static const char *const names[] = {"RESET", "INIT", "RTR", "RTS"};

static struct vt_conf conf;
static struct vt_side side;
static struct vt_address self;

static int step_to(enum ibv_qp_state state)
{
    switch (state) {
    case IBV_QPS_INIT:
        return vt_to_init(side.qp, &conf);
    case IBV_QPS_RTR:
        return vt_to_rtr(side.qp, &conf, &self);
    case IBV_QPS_RTS:
        return vt_to_rts(side.qp, &conf);
    default:
        return vt_to_state(side.qp, state);
    }
}

static void bring_to(enum ibv_qp_state state)
{
    VT_OK(vt_to_state(side.qp, IBV_QPS_RESET));
    for (enum ibv_qp_state s = IBV_QPS_INIT; s <= state; s++) {
        VT_OK(step_to(s));
    }
}

static bool is_legal(enum ibv_qp_state from, enum ibv_qp_state to)
{
    return to == from + 1 || to == IBV_QPS_RESET || (from == IBV_QPS_INIT && to == IBV_QPS_INIT);
}

int main(int argc, char **argv)
{
    vt_open(argc, argv, "only the legal transitions of a queue pair's state are accepted");
    conf = vt_conf();
    vt_side_create(&side, vt.pd, &conf, false);
    self = vt_address(&side);
    for (enum ibv_qp_state from = IBV_QPS_RESET; from <= IBV_QPS_RTS; from++) {
        for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_RTS; to++) {
            bring_to(from);
            int rc = step_to(to);
            VT_CHECK(!rc == is_legal(from, to), "%s to %s: expected %s, got %s", names[from],
                     names[to], is_legal(from, to) ? "success" : "a refusal",
                     rc ? vt_errname(rc) : "success");
            enum ibv_qp_state now = vt_state(side.qp), expected = is_legal(from, to) ? to : from;
            VT_CHECK(now == expected, "after %s to %s: expected state %d, got %d", names[from],
                     names[to], expected, now);
        }
        bring_to(from);
        if (from > IBV_QPS_RESET) {
            VT_OK(vt_to_state(side.qp, IBV_QPS_ERR));
            VT_CHECK(vt_state(side.qp) == IBV_QPS_ERR, "expected the state ERR after %s to ERR",
                     names[from]);
            VT_REFUSED(step_to(IBV_QPS_INIT));
            VT_REFUSED(step_to(IBV_QPS_RTS));
        }
    }
    vt_side_destroy(&side);
    return vt_close();
}

/* The target's process is killed: its peer hears of it after its retries and can clean up. */
#include "vt.h"

#include <signal.h>
#include <sys/wait.h>

static struct vt_conf conf;

static _Noreturn void live_until_killed(int argc, char **argv, int in, int out)
{
    struct vt_side side;
    struct vt_address theirs;
    vt_open(argc, argv, "the process to be killed");
    conf = vt_conf();
    vt_side_create(&side, vt.pd, &conf, true);
    struct vt_address mine = vt_address(&side);
    VT_CHECK(write(out, &mine, sizeof(mine)) == sizeof(mine), "write: %s", vt_errname(errno));
    VT_CHECK(read(in, &theirs, sizeof(theirs)) == sizeof(theirs), "read: %s", vt_errname(errno));
    vt_side_connect(&side, &conf, &theirs);
    VT_CHECK(write(out, "x", 1) == 1, "write: %s", vt_errname(errno));
    for (;;) {
        pause();
    }
}

static void write_there(struct vt_side *side, const struct vt_address *to,
                        enum ibv_wc_status status)
{
    struct vt_wr w = vt_wr(side, IBV_WR_RDMA_WRITE, 1, 0, 64);
    w.wr.wr.rdma.remote_addr = to->addr;
    w.wr.wr.rdma.rkey = to->rkey;
    VT_OK(vt_post(side, &w));
    VT_WC(side->scq, 1, status);
}

int main(int argc, char **argv)
{
    int down[2], up[2];
    struct vt_side side;
    struct vt_address to;
    char c;
    VT_CHECK(!pipe(down) && !pipe(up), "pipe: %s", vt_errname(errno));
    pid_t pid = fork();
    VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
    if (pid == 0) {
        close(down[1]);
        close(up[0]);
        live_until_killed(argc, argv, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    vt_open(argc, argv, "a killed target ends as retry count exceeded");
    conf = vt_conf();
    conf.timeout = 10;
    conf.retry_cnt = 2;
    vt_side_create(&side, vt.pd, &conf, false);
    struct vt_address mine = vt_address(&side);
    VT_CHECK(write(down[1], &mine, sizeof(mine)) == sizeof(mine), "write: %s", vt_errname(errno));
    if (read(up[0], &to, sizeof(to)) != sizeof(to)) {
        VT_FAIL("the other process did not start");
    }
    vt_side_connect(&side, &conf, &to);
    VT_CHECK(read(up[0], &c, 1) == 1, "read: %s", vt_errname(errno));
    write_there(&side, &to, IBV_WC_SUCCESS);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    write_there(&side, &to, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(side.qp);
    vt_side_destroy(&side);
    return vt_close();
}

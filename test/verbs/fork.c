/* After ibv_fork_init a child may come and go: the parent's registered memory stays its own. */
#include "vt.h"

#include <sys/wait.h>

static void wait_for(pid_t pid)
{
    int status;
    VT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", vt_errname(errno));
    VT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "expected the child to exit with 3");
}

int main(int argc, char **argv)
{
    struct vt_pair p;
    int rc = ibv_fork_init();
    vt_open(argc, argv, "a forked child does not disturb the parent's registered memory");
    if (rc == EOPNOTSUPP || rc == ENOSYS) {
        vt_skip("ibv_fork_init: %s", vt_errname(rc));
    }
    VT_CHECK(!rc, "ibv_fork_init: expected success, got %s", vt_errname(rc));
    struct vt_conf conf = vt_conf();
    vt_connect(&p, &conf);
    int gate[2];
    VT_CHECK(!pipe(gate), "pipe: %s", vt_errname(errno));
    for (unsigned round = 0; round < 3; round++) {
        pid_t pid = fork();
        VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
        if (pid == 0) {
            char c;
            _exit(read(gate[0], &c, 1) == 1 ? 3 : 4);
        }
        /* Written after the fork, with the child alive: the device must see the parent's pages. */
        vt_fill(p.a.buf, 16384, round);
        struct vt_wr w = vt_wr(&p.a, IBV_WR_RDMA_WRITE, round, 0, 16384);
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, round, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(p.b.buf, 16384, round), "round %u: expected what the parent wrote",
                 round);
        VT_CHECK(write(gate[1], "x", 1) == 1, "write: %s", vt_errname(errno));
        wait_for(pid);
        vt_expect_alive(&p);
    }
    vt_disconnect(&p);
    return vt_close();
}

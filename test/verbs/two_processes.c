/* Two processes: sends, writes, reads and atomics go through, with the target process asleep. */
#include "vt.h"

#include <sys/wait.h>

enum { LEN = 30000, ROUNDS = 20 };

static struct vt_conf conf;
static struct vt_side side;
static int in, out;

static void tell(const void *what, size_t len)
{
    VT_CHECK(write(out, what, len) == (ssize_t)len, "the other process is gone");
}

static void hear(void *what, size_t len)
{
    VT_CHECK(read(in, what, len) == (ssize_t)len, "the other process is gone");
}

static struct vt_address meet(void)
{
    vt_side_create(&side, vt.pd, &conf, true);
    struct vt_address mine = vt_address(&side), theirs;
    tell(&mine, sizeof(mine));
    hear(&theirs, sizeof(theirs));
    vt_side_connect(&side, &conf, &theirs);
    return theirs;
}

static int target(int argc, char **argv)
{
    char c = 0;
    vt_open(argc, argv, "the target of one-sided requests");
    conf = vt_conf();
    meet();
    for (uint64_t i = 0; i < ROUNDS; i++) {
        VT_OK(vt_recv(&side, i, 0, LEN));
        tell(&c, 1);
        VT_WC(side.rcq, i, IBV_WC_SUCCESS);
        VT_CHECK(vt_filled(side.buf, LEN, (unsigned)i), "round %d: wrong bytes", (int)i);
        VT_OK(vt_recv(&side, i, 0, 0));
        vt_fill(side.buf + 32768, LEN, (unsigned)i + 100);
        tell(&c, 1);
        hear(&c, 1); /* asleep while the other writes, reads and adds */
        VT_CHECK(vt_filled(side.buf, LEN, (unsigned)i + 200),
                 "round %d: expected the bytes written", (int)i);
        VT_WC(side.rcq, i, IBV_WC_SUCCESS);
    }
    hear(&c, 1);
    vt_side_destroy(&side);
    return vt_close();
}

static void run(enum ibv_wr_opcode opcode, const struct vt_address *to, uint64_t there, size_t here,
                size_t len)
{
    struct vt_wr w = vt_wr(&side, opcode, 1, here, len);
    w.wr.wr.rdma.remote_addr = to->addr + there;
    w.wr.wr.rdma.rkey = to->rkey;
    VT_OK(vt_post(&side, &w));
    VT_WC(side.scq, 1, IBV_WC_SUCCESS);
}

static void initiate(void)
{
    char c = 0;
    struct vt_address to = meet();
    for (unsigned i = 0; i < ROUNDS; i++) {
        hear(&c, 1);
        vt_fill(side.buf, LEN, i);
        run(IBV_WR_SEND, &to, 0, 0, LEN);
        hear(&c, 1);
        vt_fill(side.buf, LEN, i + 200);
        run(IBV_WR_RDMA_WRITE, &to, 0, 0, LEN);
        run(IBV_WR_RDMA_READ, &to, 32768, 0, LEN);
        VT_CHECK(vt_filled(side.buf, LEN, i + 100), "round %u: expected the target's bytes", i);
        run(IBV_WR_RDMA_WRITE_WITH_IMM, &to, 0, 0, 0);
        tell(&c, 1);
    }
    tell(&c, 1);
    vt_side_destroy(&side);
}

int main(int argc, char **argv)
{
    int down[2], up[2], status;
    VT_CHECK(!pipe(down) && !pipe(up), "pipe: %s", vt_errname(errno));
    pid_t pid = fork();
    VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
    if (pid == 0) {
        close(down[1]);
        close(up[0]);
        in = down[0];
        out = up[1];
        exit(target(argc, argv));
    }
    close(down[0]);
    close(up[1]);
    in = up[0];
    out = down[1];
    vt_open(argc, argv, "two processes reach each other, the target may sleep");
    conf = vt_conf();
    initiate();
    VT_CHECK(waitpid(pid, &status, 0) == pid, "waitpid: %s", vt_errname(errno));
    VT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the target process failed");
    return vt_close();
}

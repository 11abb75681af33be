/*
 * faults CASE RUNNER SOCKET: one kind of fault, told to the run in its middle, and what a correct
 * program sees of it. Runs inside softhca-run --control SOCKET; the rules are in README.md.
 */
#include <signal.h>
#include <sys/wait.h>

#include "../../verbs/vt.h"

static const char *runner, *control;

static void tell(const char *fault)
{
    pid_t pid = fork();
    int status;

    VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
    if (pid == 0) {
        unsetenv("LD_PRELOAD");
        execl(runner, runner, "--tell", control, fault, (char *)NULL);
        _exit(127);
    }
    VT_CHECK(waitpid(pid, &status, 0) == pid && status == 0, "'%s': expected ok, got status %d",
             fault, status);
}

static void write_now(struct vt_side *side, uint64_t id)
{
    struct vt_wr w = vt_wr(side, IBV_WR_RDMA_WRITE, id, 0, 4096);

    VT_OK(vt_post(side, &w));
}

static struct vt_conf few_retries(void)
{
    struct vt_conf conf = vt_conf();

    conf.timeout = 10;
    conf.retry_cnt = 2;
    return conf;
}

/* Each try is a case: the request arrives by its last try, or not at all. */
static void lose_reliable(void)
{
    struct vt_conf conf = few_retries();
    struct vt_pair p;

    vt_connect(&p, &conf);
    tell("lose:count=2");
    vt_fill(p.a.buf, 4096, 1);
    write_now(&p.a, 1);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf, 4096, 1), "expected the bytes written after two losses");
    tell("lose");
    write_now(&p.a, 2);
    VT_WC(p.a.scq, 2, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(p.a.qp);
    tell("clear");
    vt_disconnect(&p);
}

static void lose_unreliable(void)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;
    struct ibv_wc first, second;

    conf.type = IBV_QPT_UC;
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 9, 0, 64));
    tell("lose:after=1,count=1");
    for (uint64_t id = 1; id <= 3; id++) {
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, id, 0, 16 * id);

        if (id == 2) {
            VT_OK(vt_recv(&p.b, 10, 0, 64));
        }
        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, id, IBV_WC_SUCCESS);
    }
    first = VT_WC(p.b.rcq, 9, IBV_WC_SUCCESS);
    second = VT_WC(p.b.rcq, 10, IBV_WC_SUCCESS);
    VT_CHECK(first.byte_len == 16 && second.byte_len == 48,
             "expected the messages of 16 and 48 bytes, got %u and %u", first.byte_len,
             second.byte_len);
    vt_disconnect(&p);
}

static void check_port(enum ibv_port_state state)
{
    struct ibv_port_attr port;

    VT_OK(ibv_query_port(vt.ctx, (uint8_t)vt.port_num, &port));
    VT_CHECK(port.state == state, "expected port state %d, got %d", state, port.state);
}

static void down(void)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;

    conf.timeout = 20; /* 4 s: the first retry comes after the port is up */
    vt_connect(&p, &conf);
    tell("down:host=0,port=1");
    vt_wait_event(IBV_EVENT_PORT_ERR, VT_WAIT_MS);
    check_port(IBV_PORT_DOWN);
    write_now(&p.a, 1);
    VT_QUIET(p.a.scq);
    tell("up");
    vt_wait_event(IBV_EVENT_PORT_ACTIVE, VT_WAIT_MS);
    check_port(IBV_PORT_ACTIVE);
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    tell("down:for=100ms");
    vt_wait_event(IBV_EVENT_PORT_ERR, VT_WAIT_MS);
    vt_wait_event(IBV_EVENT_PORT_ACTIVE, VT_WAIT_MS);
    vt_disconnect(&p);
}

static void rnr(void)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;
    struct vt_wr w;

    conf.rnr_retry = 2;
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 9, 0, 64));
    tell("rnr:count=2");
    write_now(&p.a, 1); /* needs no receive */
    VT_WC(p.a.scq, 1, IBV_WC_SUCCESS);
    w = vt_wr(&p.a, IBV_WR_SEND, 2, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 2, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 9, IBV_WC_SUCCESS);
    VT_OK(vt_recv(&p.b, 10, 0, 64));
    tell("rnr");
    w = vt_wr(&p.a, IBV_WR_SEND, 3, 0, 64);
    VT_OK(vt_post(&p.a, &w));
    VT_WC(p.a.scq, 3, IBV_WC_RNR_RETRY_EXC_ERR);
    vt_disconnect(&p);
}

static void slow(void)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;
    uint64_t start, took;

    vt_connect(&p, &conf);
    tell("slow:rank=7,delay=60s"); /* somebody else */
    tell("slow:rank=0,delay=50ms,count=2");
    start = vt_now_ms();
    for (uint64_t id = 1; id <= 3; id++) {
        write_now(&p.a, id);
    }
    for (uint64_t id = 1; id <= 3; id++) {
        VT_WC(p.a.scq, id, IBV_WC_SUCCESS);
    }
    took = vt_now_ms() - start;
    VT_CHECK(took >= 99, "expected two delays of 50 ms, got %d ms in all", (int)took);
    vt_disconnect(&p);
}

static struct ibv_mr *reg(char *buf, size_t length)
{
    return ibv_reg_mr(vt.pd, buf, length, IBV_ACCESS_LOCAL_WRITE);
}

static void registration(void)
{
    static char buf[65536];
    struct ibv_mr *first, *second, *third;

    tell("refuse:after=1,count=1");
    first = VT_PTR(reg(buf, 4096));
    errno = 0;
    VT_CHECK(!reg(buf, 4096) && errno == ENOMEM, "expected ENOMEM, got %s", vt_errname(errno));
    second = VT_PTR(reg(buf, 4096));
    tell("limit:bytes=16K");
    errno = 0;
    VT_CHECK(!reg(buf, 8193) && errno == ENOMEM, "expected ENOMEM, got %s", vt_errname(errno));
    VT_CHECK(ibv_rereg_mr(second, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, 65536, 0) != 0,
             "expected a refused registration anew, got success");
    third = VT_PTR(reg(buf, 8192));
    VT_OK(ibv_dereg_mr(first));
    first = VT_PTR(reg(buf, 4096));
    VT_OK(ibv_dereg_mr(first));
    VT_OK(ibv_dereg_mr(second));
    VT_OK(ibv_dereg_mr(third));
}

static void event(void)
{
    tell("event:type=sm_change");
    vt_wait_event(IBV_EVENT_SM_CHANGE, VT_WAIT_MS);
    check_port(IBV_PORT_ACTIVE);
    tell("event:type=lid_change,in=30ms");
    vt_wait_event(IBV_EVENT_LID_CHANGE, VT_WAIT_MS);
}

static _Noreturn void writes_until_killed(int in, int out)
{
    struct vt_conf conf = vt_conf();
    struct vt_side side;
    struct vt_address theirs, mine;

    vt_open("the process to be killed");
    vt_side_create(&side, vt.pd, &conf, true);
    mine = vt_address(&side);
    VT_CHECK(write(out, &mine, sizeof(mine)) == sizeof(mine), "write: %s", vt_errname(errno));
    VT_CHECK(read(in, &theirs, sizeof(theirs)) == sizeof(theirs), "read: %s", vt_errname(errno));
    vt_side_connect(&side, &conf, &theirs);
    VT_CHECK(write(out, "x", 1) == 1, "write: %s", vt_errname(errno));
    for (uint64_t id = 1;; id++) {
        struct vt_wr w = vt_wr(&side, IBV_WR_RDMA_WRITE, id, 0, 64);

        w.wr.wr.rdma.remote_addr = theirs.addr;
        w.wr.wr.rdma.rkey = theirs.rkey;
        VT_OK(vt_post(&side, &w));
        VT_WC(side.scq, id, IBV_WC_SUCCESS);
        usleep(1000);
    }
}

/* The child is rank 1: it attaches second. Its peer hears of its end and cleans up. */
static void kill_child(const char *fault, enum ibv_wr_opcode opcode)
{
    struct vt_conf conf = few_retries();
    int down_pipe[2], up_pipe[2], status;
    struct vt_side side;
    struct vt_address to;
    char c;
    pid_t pid;
    struct vt_address mine;
    struct vt_wr w;

    VT_CHECK(!pipe(down_pipe) && !pipe(up_pipe), "pipe: %s", vt_errname(errno));
    vt_side_create(&side, vt.pd, &conf, false);
    pid = fork();
    VT_CHECK(pid >= 0, "fork: %s", vt_errname(errno));
    if (pid == 0) {
        writes_until_killed(down_pipe[0], up_pipe[1]);
    }
    mine = vt_address(&side);
    VT_CHECK(write(down_pipe[1], &mine, sizeof(mine)) == sizeof(mine), "write failed");
    VT_CHECK(read(up_pipe[0], &to, sizeof(to)) == sizeof(to), "the other process did not start");
    vt_side_connect(&side, &conf, &to);
    VT_CHECK(read(up_pipe[0], &c, 1) == 1, "the other process did not connect");
    tell(fault);
    VT_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
             "expected a killed process, got status %d", status);
    w = vt_wr(&side, opcode, 1, 0, 64);
    if (opcode == IBV_WR_RDMA_WRITE) {
        w.wr.wr.rdma.remote_addr = to.addr;
        w.wr.wr.rdma.rkey = to.rkey;
    }
    VT_OK(vt_post(&side, &w));
    VT_WC(side.scq, 1, IBV_WC_RETRY_EXC_ERR);
    vt_side_destroy(&side);
}

static void kill_now(void)
{
    kill_child("kill:rank=1", IBV_WR_RDMA_WRITE);
}

/* It has posted no receive, and there are tries without end for that: but nobody is there. */
static void kill_unready(void)
{
    kill_child("kill:rank=1", IBV_WR_SEND);
}

static void kill_after(void)
{
    kill_child("kill:rank=1,after=20", IBV_WR_RDMA_WRITE);
}

/* How many of 400 messages arrive: the same number with the same seed. */
static void seeded(void)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;
    int arrived = 0;

    conf.type = IBV_QPT_UC;
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 0, 0, 64));
    tell("lose:p=0.3");
    for (uint64_t i = 1; i <= 400; i++) {
        struct ibv_wc wc;
        struct vt_wr w = vt_wr(&p.a, IBV_WR_SEND, i, 0, 64);

        VT_OK(vt_post(&p.a, &w));
        VT_WC(p.a.scq, i, IBV_WC_SUCCESS);
        if (ibv_poll_cq(p.b.rcq, 1, &wc) == 1) {
            arrived++;
            VT_OK(vt_recv(&p.b, 0, 0, 64));
        }
    }
    VT_CHECK(arrived > 230 && arrived < 330, "expected about 280 arrivals, got %d", arrived);
    printf("arrived %d\n", arrived);
    vt_disconnect(&p);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"lose_reliable", lose_reliable},
    {"lose_unreliable", lose_unreliable},
    {"down", down},
    {"rnr", rnr},
    {"slow", slow},
    {"registration", registration},
    {"event", event},
    {"kill_now", kill_now},
    {"kill_unready", kill_unready},
    {"kill_after", kill_after},
    {"seeded", seeded},
};

int main(int argc, char **argv)
{
    if (argc == 1) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            puts(cases[i].name);
        }
        return 0;
    }
    VT_CHECK(argc == 4, "usage: faults CASE RUNNER SOCKET");
    runner = argv[2];
    control = argv[3];
    vt_open(argv[1]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            cases[i].run();
            return vt_close();
        }
    }
    VT_FAIL("expected the name of a case, got '%s'", argv[1]);
}

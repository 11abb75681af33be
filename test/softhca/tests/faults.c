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

static const struct vt_conf *few_retries(struct vt_conf *conf)
{
    *conf = vt_conf();
    conf->timeout = 10;
    conf->retry_cnt = 2;
    return conf;
}

static void write_one(struct vt_pair *p, uint64_t id, enum ibv_wc_status status)
{
    VT_DO(&p->a, IBV_WR_RDMA_WRITE, id, 0, 4096, status);
}

/* Each try is a case: the request arrives by its last try, or not at all. */
static void lose_reliable(struct vt_pair *unused)
{
    struct vt_conf conf;
    struct vt_pair p;

    vt_connect(&p, few_retries(&conf));
    tell("lose:count=2");
    vt_fill(p.a.buf, 4096, 1);
    write_one(&p, 1, IBV_WC_SUCCESS);
    VT_CHECK(vt_filled(p.b.buf, 4096, 1), "expected the bytes written after two losses");
    tell("lose");
    write_one(&p, 2, IBV_WC_RETRY_EXC_ERR);
    vt_wait_error(p.a.qp);
    tell("clear");
    vt_disconnect(&p);
}

static void lose_unreliable(struct vt_pair *p)
{
    struct ibv_wc first, second;

    VT_OK(vt_recv(&p->b, 9, 0, 64));
    tell("lose:after=1,count=1");
    for (uint64_t id = 1; id <= 3; id++) {
        VT_OK(id == 2 ? vt_recv(&p->b, 10, 0, 64) : 0);
        VT_DO(&p->a, IBV_WR_SEND, id, 0, 16 * id, IBV_WC_SUCCESS);
    }
    first = VT_WC(p->b.rcq, 9, IBV_WC_SUCCESS);
    second = VT_WC(p->b.rcq, 10, IBV_WC_SUCCESS);
    VT_CHECK(first.byte_len == 16 && second.byte_len == 48,
             "expected the messages of 16 and 48 bytes, got %u and %u", first.byte_len,
             second.byte_len);
}

static void check_port(enum ibv_port_state state)
{
    struct ibv_port_attr port;

    VT_OK(ibv_query_port(vt.ctx, (uint8_t)vt.port_num, &port));
    VT_CHECK(port.state == state, "expected port state %d, got %d", state, port.state);
}

static void down(struct vt_pair *unused)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;

    conf.timeout = 20; /* 4 s: the first retry comes after the port is up */
    vt_connect(&p, &conf);
    tell("down:host=0,port=1");
    vt_wait_event(IBV_EVENT_PORT_ERR, VT_WAIT_MS);
    check_port(IBV_PORT_DOWN);
    VT_OK(vt_post(&p.a, (struct vt_wr[]){vt_wr(&p.a, IBV_WR_RDMA_WRITE, 1, 0, 4096)}));
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

static void rnr(struct vt_pair *unused)
{
    struct vt_conf conf = vt_conf();
    struct vt_pair p;

    conf.rnr_retry = 2;
    vt_connect(&p, &conf);
    VT_OK(vt_recv(&p.b, 9, 0, 64));
    tell("rnr:count=2");
    write_one(&p, 1, IBV_WC_SUCCESS); /* needs no receive */
    VT_DO(&p.a, IBV_WR_SEND, 2, 0, 64, IBV_WC_SUCCESS);
    VT_WC(p.b.rcq, 9, IBV_WC_SUCCESS);
    VT_OK(vt_recv(&p.b, 10, 0, 64));
    tell("rnr");
    VT_DO(&p.a, IBV_WR_SEND, 3, 0, 64, IBV_WC_RNR_RETRY_EXC_ERR);
    vt_disconnect(&p);
}

static void slow(struct vt_pair *p)
{
    struct vt_wr w[3];
    struct ibv_send_wr *bad;
    uint64_t start, took;

    tell("slow:rank=7,delay=60s"); /* somebody else */
    tell("slow:rank=0,delay=50ms,count=2");
    for (uint64_t i = 0; i < 3; i++) {
        w[i] = vt_wr(&p->a, IBV_WR_RDMA_WRITE, i, 0, 4096);
    }
    start = vt_now_ms();
    VT_OK(ibv_post_send(p->a.qp, vt_list(w, 3), &bad));
    for (uint64_t i = 0; i < 3; i++) {
        VT_WC(p->a.scq, i, IBV_WC_SUCCESS);
    }
    took = vt_now_ms() - start;
    VT_CHECK(took >= 99, "expected two delays of 50 ms, got %d ms in all", (int)took);
}

static struct ibv_mr *reg(char *buf, size_t length)
{
    return ibv_reg_mr(vt.pd, buf, length, IBV_ACCESS_LOCAL_WRITE);
}

static void registration(struct vt_pair *unused)
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

static void event(struct vt_pair *unused)
{
    tell("event:type=sm_change");
    vt_wait_event(IBV_EVENT_SM_CHANGE, VT_WAIT_MS);
    check_port(IBV_PORT_ACTIVE);
    tell("event:type=lid_change,in=30ms");
    vt_wait_event(IBV_EVENT_LID_CHANGE, VT_WAIT_MS);
}

/* The child is rank 1: it attaches second. Its peer hears of its end and cleans up. */
static void kill_child(const char *fault, enum ibv_wr_opcode opcode)
{
    struct vt_conf conf;
    struct vt_side side;
    struct vt_address to;
    struct vt_wr w;
    int status;
    pid_t pid = vt_split();

    if (pid == 0) {
        vt_open("the process to be killed");
    }
    to = vt_meet(&side, few_retries(&conf));
    while (pid == 0) {
        w = vt_wr(&side, IBV_WR_RDMA_WRITE, 1, 0, 64);
        vt_aim(&w, &to, 0);
        VT_RUN(&side, &w, IBV_WC_SUCCESS);
        usleep(1000);
    }
    tell(fault);
    VT_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
             "expected a killed process, got status %d", status);
    w = vt_wr(&side, opcode, 1, 0, 64);
    if (opcode == IBV_WR_RDMA_WRITE) {
        vt_aim(&w, &to, 0);
    }
    VT_RUN(&side, &w, IBV_WC_RETRY_EXC_ERR);
    vt_side_destroy(&side);
}

static void kill_now(struct vt_pair *unused)
{
    kill_child("kill:rank=1", IBV_WR_RDMA_WRITE);
}

/* It has posted no receive, and there are tries without end for that: but nobody is there. */
static void kill_unready(struct vt_pair *unused)
{
    kill_child("kill:rank=1", IBV_WR_SEND);
}

static void kill_after(struct vt_pair *unused)
{
    kill_child("kill:rank=1,after=20", IBV_WR_RDMA_WRITE);
}

/* How many of 400 messages arrive: the same number with the same seed. */
static void seeded(struct vt_pair *p)
{
    int arrived = 0;

    VT_OK(vt_recv(&p->b, 0, 0, 64));
    tell("lose:p=0.3");
    for (uint64_t i = 1; i <= 400; i++) {
        struct ibv_wc wc;

        VT_DO(&p->a, IBV_WR_SEND, i, 0, 64, IBV_WC_SUCCESS);
        if (ibv_poll_cq(p->b.rcq, 1, &wc) == 1) {
            arrived++;
            VT_OK(vt_recv(&p->b, 0, 0, 64));
        }
    }
    VT_CHECK(arrived > 230 && arrived < 330, "expected about 280 arrivals, got %d", arrived);
    printf("arrived %d\n", arrived);
}

static const struct vt_rule cases[] = {
    {"lose_reliable", "retries", VT_DEVICE, lose_reliable},
    {"lose_unreliable", "no retries", VT_UC, lose_unreliable},
    {"down", "a port goes down and up", VT_DEVICE, down},
    {"rnr", "receivers are not ready", VT_DEVICE, rnr},
    {"slow", "requests wait", VT_RC, slow},
    {"registration", "registrations fail", VT_DEVICE, registration},
    {"event", "events are raised", VT_DEVICE, event},
    {"kill_now", "a killed peer", VT_DEVICE, kill_now},
    {"kill_unready", "a killed peer without receives", VT_DEVICE, kill_unready},
    {"kill_after", "a peer killed in a request", VT_DEVICE, kill_after},
    {"seeded", "the same losses", VT_UC, seeded},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (argc == 1) {
            puts(cases[i].name);
        } else if (argc == 4 && strcmp(cases[i].name, argv[1]) == 0) {
            runner = argv[2];
            control = argv[3];
            vt_check(&cases[i]);
            return vt_close();
        }
    }
    return argc != 1;
}

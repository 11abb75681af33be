/*
 * A process dies anywhere in what it does to others: softhca-run -- softhca-deaths [STRIDE [SEED [ACTION]]].
 * The victim is traced into an action instruction by instruction, and killed there; STRIDE
 * instructions later the next time, until it comes through; SEED says where the first dies. In a
 * start, which is long, it is killed up to so many instructions after some of its system calls.
 * Afterwards a process that it was connected to must have its completions and events, and take its
 * objects down, and the dead must not be counted out more often than they came.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../verbs/vt.h"
#include "shm/layout.h"

enum { LEN = 3000, SETTLE_US = 300, STEPS_MAX = 200000 };

/* What the processes tell each other; each number is the round that it is done for. */
static struct {
    struct vt_address victim, survivor;
    atomic_int victim_made, survivor_made, victim_connected, connected, traced, killed, checked;
} * all;

static int action; /* of this round */
static const struct shm_head *head;
static struct vt_conf conf;
static struct vt_side side; /* to the other process */

static pid_t start_process(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    return pid;
}

static void wait_for(const atomic_int *what, int round)
{
    while (atomic_load(what) < round) {
        usleep(100);
    }
}

static void poll_once(void)
{
    struct ibv_wc wc;

    ibv_poll_cq(side.scq, 1, &wc);
}

static void write_to(const struct vt_address *other)
{
    struct vt_wr w = vt_wr(&side, IBV_WR_RDMA_WRITE, 1, 0, LEN);

    vt_aim(&w, other, 0);
    VT_OK(vt_post(&side, &w));
}

static void write_once(void)
{
    write_to(&all->survivor);
}

static void send_once(void)
{
    struct vt_wr w = vt_wr(&side, IBV_WR_SEND, 1, 0, LEN);

    VT_OK(vt_post(&side, &w));
}

static void take_down(void)
{
    vt_side_destroy(&side);
}

/* It also clears up after the victim of the round before. */
static void join(void)
{
    vt_open("the victim");
    vt_side_create(&side, vt.pd, &conf, false);
}

static const struct {
    const char *name;
    void (*run)(void);
    enum { APART, CONNECTED, WRITING } survivor; /* WRITING: a write to the victim is under way */
    int stride;                                  /* of theirs, in one of the others */
    bool by_calls; /* a random part of that after some system calls: it is long */
} actions[] = {
    {"poll", poll_once, WRITING, 1, false},   {"write", write_once, CONNECTED, 1, false},
    {"send", send_once, CONNECTED, 1, false}, {"destroy", take_down, WRITING, 1, false},
    {"join", join, APART, 6, true},
};

static void meet_survivor(int round)
{
    join();
    all->victim = vt_address(&side);
    atomic_store(&all->victim_made, round);
    wait_for(&all->survivor_made, round);
    vt_side_connect(&side, &conf, &all->survivor);
    atomic_store(&all->victim_connected, round);
    wait_for(&all->connected, round);
}

static void be_victim(int round)
{
    if (actions[action].survivor != APART) {
        meet_survivor(round);
    }
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(77);
    }
    raise(SIGSTOP);
    actions[action].run();
    raise(SIGSTOP);
    _exit(0);
}

/* An event of that queue comes, whatever other events come before. */
static void expect_event(struct ibv_comp_channel *channel, struct ibv_cq *cq)
{
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *got = NULL;
    void *context;

    while (got != cq) {
        VT_CHECK(poll(&ready, 1, VT_WAIT_MS) == 1, "no event came");
        VT_OK(ibv_get_cq_event(channel, &got, &context));
        ibv_ack_cq_events(got, 1);
    }
}

/* The survivor's own loop still gets a message through, and an event for it. */
static void check_loop(struct vt_pair *loop)
{
    struct vt_wr w = vt_wr(&loop->a, IBV_WR_SEND, 5, 0, LEN);

    VT_OK(ibv_req_notify_cq(loop->b.rcq, 0));
    VT_OK(vt_recv(&loop->b, 6, 0, LEN));
    VT_OK(vt_post(&loop->a, &w));
    expect_event(conf.events, loop->b.rcq);
    VT_WC(loop->b.rcq, 6, IBV_WC_SUCCESS);
    VT_WC(loop->a.scq, 5, IBV_WC_SUCCESS);
}

static void check_write(void)
{
    struct ibv_wc wc;

    VT_CHECK(vt_poll(side.scq, &wc, VT_WAIT_MS), "no completion of the write to the dead came");
    VT_CHECK(wc.wr_id == 1 && (wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_RETRY_EXC_ERR),
             "the write to the dead ended with: %s", ibv_wc_status_str(wc.status));
    VT_CHECK(ibv_poll_cq(side.scq, 1, &wc) == 0, "it completed twice");
}

static void meet_victim(int round)
{
    vt_side_create(&side, vt.pd, &conf, true);
    all->survivor = vt_address(&side);
    atomic_store(&all->survivor_made, round);
    wait_for(&all->victim_made, round);
    vt_side_connect(&side, &conf, &all->victim);
    VT_OK(ibv_req_notify_cq(side.rcq, 0));
    VT_OK(vt_recv(&side, 2, 0, LEN));
    wait_for(&all->victim_connected, round);
    write_to(&all->victim); /* from the first one on, the victim has a hand in what comes */
    VT_WC(side.scq, 1, IBV_WC_SUCCESS);
    atomic_store(&all->connected, round);
}

static void survive(struct vt_pair *loop, int round)
{
    bool is_apart = actions[action].survivor == APART;
    bool writes = actions[action].survivor == WRITING;

    if (!is_apart) {
        meet_victim(round);
    }
    wait_for(&all->traced, round);
    if (writes) {
        write_to(&all->victim);
    }
    raise(SIGSTOP); /* or this process would do all the work itself */
    wait_for(&all->killed, round);
    if (writes) {
        check_write();
    }
    check_loop(loop);
    if (!is_apart) {
        vt_side_destroy(&side);
    }
    check_loop(loop);
    atomic_store(&all->checked, round);
}

static void be_survivor(int round)
{
    struct vt_pair loop;

    vt_open("who lives on has what is due to it");
    conf.events = VT_PTR(ibv_create_comp_channel(vt.ctx));
    vt_connect(&loop, &conf);
    for (;; round++) {
        alarm(60); /* vt's watchdog: for this round */
        survive(&loop, round);
    }
}

static bool is_stopped(pid_t pid, int *status)
{
    return waitpid(pid, status, WUNTRACED) == pid && WIFSTOPPED(*status);
}

/* True when the action was over before its `steps` instructions. */
static bool walk(pid_t victim, int steps)
{
    int status;

    for (int i = 0; i < steps; i++) {
        ptrace(PTRACE_SINGLESTEP, victim, NULL, NULL);
        if (waitpid(victim, &status, 0) != victim || !WIFSTOPPED(status)) {
            vt_fail_at(__FILE__, __LINE__, "the victim ended by itself");
        }
        if (WSTOPSIG(status) == SIGSTOP) {
            return true;
        }
    }
    return false;
}

/* Through the last system call before it claims a place in the run, and so many more. True when
   the action was over before. */
static bool skip_calls(pid_t victim, int calls)
{
    struct __ptrace_syscall_info info = {0};
    bool is_near = false;
    int status;

    ptrace(PTRACE_SETOPTIONS, victim, NULL, PTRACE_O_TRACESYSGOOD); /* or there is no information */
    for (int stops = 2 * (calls + 1); stops > 0; stops -= is_near) {
        ptrace(PTRACE_SYSCALL, victim, NULL, NULL);
        VT_CHECK(is_stopped(victim, &status), "the victim ended by itself");
        if (WSTOPSIG(status) == SIGSTOP) {
            VT_CHECK(is_near, "the victim never claimed a place");
            return true;
        }
        ptrace(PTRACE_GET_SYSCALL_INFO, victim, sizeof(info), &info);
        is_near |= info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_prctl;
    }
    return false;
}

/* Few more than there are, since a death may leave one too many; a number that wrapped is not. */
static void check_count(int round, int steps)
{
    uint32_t live = atomic_load(&head->live);

    VT_CHECK(live <= (uint32_t)round + 2, "%d instructions into '%s': %u processes are attached",
             steps, actions[action].name, live);
}

/* One death, so many system calls (below 0: none are skipped) and instructions on. True when there
   is none to come further on. */
static bool play(pid_t survivor, int round, int calls, int steps)
{
    pid_t victim = start_process();
    bool is_over;
    int status;

    if (victim == 0) {
        be_victim(round);
    }
    if (!is_stopped(victim, &status)) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            vt_skip("tracing is not allowed here");
        }
        VT_FAIL("round %d of '%s': the victim ended at once", round, actions[action].name);
    }
    atomic_store(&all->traced, round);
    VT_CHECK(is_stopped(survivor, &status), "the survivor ended");
    usleep(SETTLE_US); /* what was posted is due */
    is_over = (calls >= 0 && skip_calls(victim, calls)) || walk(victim, steps);
    kill(victim, SIGKILL);
    waitpid(victim, &status, 0);
    atomic_store(&all->killed, round);
    kill(survivor, SIGCONT);
    while (atomic_load(&all->checked) < round) {
        VT_CHECK(waitpid(survivor, &status, WNOHANG) == 0, "%d instructions into '%s'", steps,
                 actions[action].name);
        usleep(100);
    }
    check_count(round, steps);
    return is_over || steps >= STEPS_MAX;
}

static void sweep(int stride, unsigned int seed)
{
    /* The sweep's survivor before had begun the next round when it was ended. */
    int first = atomic_load(&all->checked) + 2, round = first, calls = -1;
    int steps = (int)(seed % (unsigned int)stride);
    pid_t survivor = start_process();

    if (survivor == 0) {
        be_survivor(round);
    }
    if (actions[action].by_calls) {
        calls = 0;
    }
    while (!play(survivor, round, calls, steps)) {
        round++;
        if (calls < 0) {
            steps += stride;
        } else {
            calls += 1 + rand_r(&seed) % (1 + calls / 2); /* densest after the claim */
            steps = rand_r(&seed) % (1 + rand_r(&seed) % stride);
        }
    }
    kill(survivor, SIGKILL);
    waitpid(survivor, NULL, 0);
    printf("%s: %d deaths\n", actions[action].name, round - first + 1);
}

static const struct shm_head *map_head(void)
{
    const char *dir = getenv("SOFTHCA_DIR");
    char path[256];
    void *map;
    int fd;

    snprintf(path, sizeof(path), "%s/shm", dir ? dir : "");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    VT_CHECK(fd >= 0, "%s: %s: start this with softhca-run", path, strerror(errno));
    map = mmap(NULL, sizeof(*head), PROT_READ, MAP_SHARED, fd, 0);
    VT_CHECK(map != MAP_FAILED, "%s: %s", path, strerror(errno));
    close(fd);
    return map;
}

int main(int argc, char **argv)
{
    int stride = argc > 1 ? atoi(argv[1]) : 101;
    unsigned int seed = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
    const char *only = argc > 3 ? argv[3] : NULL;

    if (stride < 1) {
        fprintf(stderr,
                "usage: softhca-deaths [STRIDE(from 1) [SEED [poll|write|send|destroy|join]]]\n");
        return 2;
    }
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    vt.rule = "deaths";
    head = map_head();
    printf("seed %u\n", seed);
    conf = vt_conf();
    conf.timeout = 8;
    conf.retry_cnt = 1;
    for (action = 0; action < (int)(sizeof(actions) / sizeof(actions[0])); action++) {
        if (!only || strcmp(only, actions[action].name) == 0) {
            sweep(actions[action].stride * stride, seed);
        }
    }
    return 0;
}

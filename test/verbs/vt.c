#include "vt.h"

#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>

struct vt vt;

enum { WATCHDOG_S = 60 };

const char *vt_errname(int err)
{
    const char *name = strerrorname_np(err);
    return name ? name : "an unknown errno";
}

_Noreturn void vt_fail_at(const char *file, int line, const char *fmt, ...)
{
    const char *base = strrchr(file, '/');
    va_list ap;
    fflush(stdout);
    printf("FAIL (%s): ", vt.rule ? vt.rule : "start");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf(" [%s:%d]\n", base ? base + 1 : file, line);
    fflush(stdout);
    _exit(1);
}

_Noreturn void vt_skip(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    _exit(77);
}

void vt_differs(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    printf("%s", vt.strict ? "FAIL (strict): " : "note: ");
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    if (vt.strict) {
        _exit(1);
    }
}

static void on_alarm(int sig)
{
    static const char text[] = "FAIL: the program hung: a call that must return did not\n";
    (void)!write(STDOUT_FILENO, text, sizeof(text) - 1);
    _exit(1);
}

void vt_expect_ok(int rc, const char *call, const char *file, int line)
{
    if (rc) {
        int err = rc > 0 ? rc : errno;
        vt_fail_at(file, line, "%s: expected success, got %s", call, vt_errname(err));
    }
}

int vt_expect_refused(int rc, const char *call, const char *file, int line)
{
    if (!rc) {
        vt_fail_at(file, line, "%s: expected an error, got success", call);
    }
    return rc > 0 ? rc : errno;
}

void *vt_expect_ptr(void *p, const char *call, const char *file, int line)
{
    if (!p) {
        vt_fail_at(file, line, "%s: expected an object, got NULL and %s", call, vt_errname(errno));
    }
    return p;
}

void vt_expect_null(void *p, const char *call, const char *file, int line)
{
    if (p) {
        vt_fail_at(file, line, "%s: expected NULL, got an object", call);
    }
}

uint64_t vt_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int number(const char *what, const char *text, int low, int high)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || end == text || *end || n < low || n > high) {
        fprintf(stderr, "%s '%s': a number from %d to %d is needed\n", what, text, low, high);
        exit(2);
    }
    return (int)n;
}

/* What the options say; none: no device, port 0, GID -1. */
static struct {
    const char *device;
    int port;
    int gid_index;
} chosen = {.gid_index = -1};

void vt_options(int argc, char **argv)
{
    static const struct option options[] = {{"device", required_argument, NULL, 'd'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"gid-index", required_argument, NULL, 'g'},
                                            {"strict", no_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    const char *port = getenv("IBSHIFT_VERBS_PORT"), *gid = getenv("IBSHIFT_VERBS_GID_INDEX");
    int o;
    chosen.device = getenv("IBSHIFT_VERBS_DEVICE");
    chosen.port = port ? number("IBSHIFT_VERBS_PORT", port, 1, 255) : 0;
    chosen.gid_index = gid ? number("IBSHIFT_VERBS_GID_INDEX", gid, 0, 65535) : -1;
    vt.strict = getenv("IBSHIFT_VERBS_STRICT") != NULL;
    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (o) {
        case 'd':
            chosen.device = optarg;
            break;
        case 'p':
            chosen.port = number("--port", optarg, 1, 255);
            break;
        case 'g':
            chosen.gid_index = number("--gid-index", optarg, 0, 65535);
            break;
        case 's':
            vt.strict = true;
            break;
        default:
            fprintf(stderr, "usage: %s [--device NAME] [--port N] [--gid-index N] [--strict]\n",
                    argv[0]);
            exit(2);
        }
    }
}

/* The first active port of the device, or the one that was asked for. */
static bool find_port(struct ibv_context *ctx, int wanted)
{
    struct ibv_device_attr dev;
    if (ibv_query_device(ctx, &dev)) {
        return false;
    }
    for (int port = 1; port <= dev.phys_port_cnt; port++) {
        if ((!wanted || port == wanted) && !ibv_query_port(ctx, (uint8_t)port, &vt.port) &&
            vt.port.state == IBV_PORT_ACTIVE) {
            vt.dev = dev;
            vt.port_num = port;
            return true;
        }
    }
    return false;
}

static void find_device(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; i < count && !vt.ctx; i++) {
        if (chosen.device && strcmp(ibv_get_device_name(list[i]), chosen.device)) {
            continue;
        }
        vt.ctx = ibv_open_device(list[i]);
        if (vt.ctx && !find_port(vt.ctx, chosen.port)) {
            ibv_close_device(vt.ctx);
            vt.ctx = NULL;
        }
    }
    if (list) {
        ibv_free_device_list(list);
    }
    if (!vt.ctx) {
        vt_skip("no device%s%s with an active port", chosen.device ? " " : "",
                chosen.device ? chosen.device : "");
    }
}

/* Without a choice: index 0 on InfiniBand; on Ethernet an IPv4 address, else the first there is. */
static void find_gid(void)
{
    static const union ibv_gid none;
    union ibv_gid gid;
    int wanted = chosen.gid_index;
    vt.gid_index = wanted;
    for (int i = 0; i < vt.port.gid_tbl_len && wanted < 0; i++) {
        if (ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, i, &gid) || !memcmp(&gid, &none, 16)) {
            continue;
        }
        bool is_ipv4 = !memcmp(gid.raw, none.raw, 10) && gid.raw[10] == 0xff && gid.raw[11] == 0xff;
        if (vt.gid_index < 0 || is_ipv4) {
            vt.gid_index = i;
        }
        if (is_ipv4 || !vt.is_roce) {
            break;
        }
    }
    if (vt.gid_index < 0 || ibv_query_gid(vt.ctx, (uint8_t)vt.port_num, vt.gid_index, &vt.gid)) {
        vt_skip("no usable GID on port %d", vt.port_num);
    }
}

void vt_open(const char *rule)
{
    vt.rule = rule;
    signal(SIGALRM, on_alarm);
    alarm(WATCHDOG_S);
    find_device();
    vt.is_roce = vt.port.link_layer == IBV_LINK_LAYER_ETHERNET;
    find_gid();
    vt.pd = VT_PTR(ibv_alloc_pd(vt.ctx));
    int fd = vt.ctx->async_fd;
    VT_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

int vt_close(void)
{
    VT_OK(ibv_dealloc_pd(vt.pd));
    VT_OK(ibv_close_device(vt.ctx));
    printf("ok: %s\n", vt.rule);
    return 0;
}

bool vt_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
    uint64_t end = vt_now_ms() + (uint64_t)ms;
    do {
        int n = ibv_poll_cq(cq, 1, wc);
        VT_CHECK(n >= 0, "ibv_poll_cq: expected a count, got %d", n);
        if (n == 1) {
            return true;
        }
        sched_yield();
    } while (vt_now_ms() < end);
    return false;
}

struct ibv_wc vt_expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
                           const char *file, int line)
{
    return vt_expect_wc_or(cq, id, status, status, file, line);
}

struct ibv_wc vt_expect_wc_or(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
                              enum ibv_wc_status other, const char *file, int line)
{
    struct ibv_wc wc;
    if (!vt_poll(cq, &wc, VT_WAIT_MS)) {
        vt_fail_at(file, line, "expected completion %llu with status '%s', got none in %d s",
                   (unsigned long long)id, ibv_wc_status_str(status), VT_WAIT_MS / 1000);
    }
    if (wc.wr_id != id || (wc.status != status && wc.status != other)) {
        vt_fail_at(file, line, "expected completion %llu with status '%s', got %llu with '%s'",
                   (unsigned long long)id, ibv_wc_status_str(status), (unsigned long long)wc.wr_id,
                   ibv_wc_status_str(wc.status));
    }
    if (wc.status != status) {
        vt_differs("'%s' in place of '%s'", ibv_wc_status_str(wc.status),
                   ibv_wc_status_str(status));
    }
    return wc;
}

void vt_expect_quiet(struct ibv_cq *cq, const char *file, int line)
{
    struct ibv_wc wc;
    if (vt_poll(cq, &wc, VT_QUIET_MS)) {
        vt_fail_at(file, line, "expected no completion, got %llu with status '%s'",
                   (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
    }
}

void vt_wait_event(enum ibv_event_type type, int ms)
{
    uint64_t end = vt_now_ms() + (uint64_t)ms;
    struct ibv_async_event event;
    while (vt_now_ms() < end) {
        struct pollfd pfd = {.fd = vt.ctx->async_fd, .events = POLLIN};
        if (poll(&pfd, 1, 20) == 1 && !ibv_get_async_event(vt.ctx, &event)) {
            ibv_ack_async_event(&event);
            if (event.event_type == type) {
                return;
            }
            printf("note: event '%s' passed over\n", ibv_event_type_str(event.event_type));
        }
    }
    VT_FAIL("expected the event '%s', got none in %d ms", ibv_event_type_str(type), ms);
}

void vt_fill(void *buf, size_t len, unsigned seed)
{
    unsigned char *p = buf;
    for (size_t i = 0; i < len; i++) {
        p[i] = (unsigned char)(i * 31 + (i >> 8) * 7 + seed * 101 + 1);
    }
}

bool vt_filled(const void *buf, size_t len, unsigned seed)
{
    const unsigned char *p = buf;
    for (size_t i = 0; i < len; i++) {
        if (p[i] != (unsigned char)(i * 31 + (i >> 8) * 7 + seed * 101 + 1)) {
            return false;
        }
    }
    return true;
}

/* Latency and bandwidth of two processes over the component's own net. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "net/verbs/verbs.h"

enum {
    ROUNDS = 1000,
    SHORT = 8,
    LONG = 1 << 20,
    LONGS = 32,
    PATIENCE = 60,
    MESSAGES = 20,
    CARD = 512
};

struct pair {
    struct ibshift_net *net;
    int self;
    uint8_t card[CARD];
    size_t card_size;
    uint8_t *data;
    uint64_t until;
};

/* 0, or -errno when the other one says nothing for long. */
static int read_all(int fd, void *to, size_t size)
{
    uint8_t *at = to;

    while (size > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&ready, 1, PATIENCE * 1000) == 1 ? read(fd, at, size) : -1;
        if (n <= 0) {
            return n == 0 ? -ECONNRESET : -ETIMEDOUT;
        }
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Both say their cards, of at most CARD bytes. */
static int exchange(int fd, const struct ibshift_verbs *verbs, struct pair *p)
{
    size_t size = 0;
    const void *mine = ibshift_verbs_card(verbs, &size);
    uint32_t length = (uint32_t)size;
    int rc = 0;

    if (send(fd, &length, sizeof(length), MSG_NOSIGNAL) != sizeof(length) ||
        send(fd, mine, size, MSG_NOSIGNAL) != (ssize_t)size) {
        return -errno;
    }
    rc = read_all(fd, &length, sizeof(length));
    if (rc == 0 && length > CARD) {
        return -EPROTO;
    }
    p->card_size = length;
    return rc != 0 ? rc : read_all(fd, p->card, length);
}

static int give_card(void *context, uint32_t peer, void *card, size_t size)
{
    const struct pair *p = context;

    (void)peer;
    memcpy(card, p->card, p->card_size < size ? p->card_size : size);
    return (int)p->card_size;
}

/* One message to its end. */
static int message(struct pair *p, bool is_send, uint32_t tag, size_t length)
{
    struct ibshift_net_message m = {.peer = (uint32_t)!p->self,
                                    .key = {.comm = 1, .seq = tag, .tag = tag},
                                    .buffer = p->data,
                                    .length = length};
    struct ibshift_net_event event = {0};
    int rc = is_send ? ibshift_net_send(p->net, &m) : ibshift_net_recv(p->net, &m);

    while (rc == IBSHIFT_NET_PENDING && ibshift_net_poll(p->net, &event, 1) == 0) {
        if (doctor_now() > p->until) {
            return -ETIMEDOUT;
        }
    }
    return rc < 0 ? rc : rc == IBSHIFT_NET_DONE ? 0 : event.status;
}

/* There and back, as often; ns for one way. */
static int bounce(struct pair *p, uint32_t tag, size_t length, int rounds, double *one_way)
{
    uint64_t begin = doctor_now();
    int rc = 0;

    for (int i = 0; i < 2 * rounds && rc == 0; i++) {
        rc = message(p, i % 2 == p->self, tag + (uint32_t)i, length);
    }
    *one_way = (double)(doctor_now() - begin) / (2 * rounds);
    return rc;
}

static int measure(struct doctor *d, struct pair *p)
{
    double warm, little, big;
    char why[DOCTOR_TEXT] = "";
    int rc = bounce(p, 0, SHORT, ROUNDS / 4, &warm);

    rc = rc != 0 ? rc : bounce(p, ROUNDS, SHORT, ROUNDS, &little);
    rc = rc != 0 ? rc : bounce(p, 4 * ROUNDS, LONG, LONGS, &big);
    if (rc != 0) {
        ibshift_net_describe(p->net, (uint32_t)!p->self, why, sizeof(why));
        info_say(&d->info, INFO_BAD, "pair", "a message failed: %s: %.400s", strerror(-rc), why);
        return rc;
    }
    info_say(&d->info, INFO_FACT, "latency", "%.2f us one way for %d bytes", little / 1e3, SHORT);
    info_say(&d->info, INFO_FACT, "bandwidth", "%.2f GB/s, one message of %d MiB after another",
             LONG / big, LONG >> 20);
    return 0;
}

static void tell_memory(struct doctor *d, const struct ibshift_net *net)
{
    struct ibshift_net_verbs_stats s;
    size_t wanted = ibshift_net_verbs_defaults.memory;

    ibshift_net_verbs_stats((struct ibshift_net *)(uintptr_t)net, &s);
    info_say(&d->info, s.registered < wanted ? INFO_NOTE : INFO_FACT, "memory",
             "%zu KiB registered of %zu KiB%s", (size_t)s.registered >> 10, wanted >> 10,
             s.registered < wanted ? ": raise the limit of locked memory (container: --ulimit "
                                     "memlock=-1; PAM: limits.d; Slurm: LimitMEMLOCK=infinity)"
                                   : "");
}

static void tell_fork(struct doctor *d)
{
    static const char *const texts[] = {
        [IBV_FORK_DISABLED] =
            "children see registered memory change: ibv_fork_init() is not called",
        [IBV_FORK_ENABLED] = "safe by ibv_fork_init()",
        [IBV_FORK_UNNEEDED] = "safe: the kernel copies at fork"};
    enum ibv_fork_status status = ibv_is_fork_initialized();

    info_say(&d->info, INFO_FACT, "fork", "%s",
             status <= IBV_FORK_UNNEEDED ? texts[status] : "unknown");
}

static int with_verbs(struct doctor *d, int fd, struct ibshift_verbs *verbs, struct pair *p)
{
    struct ibshift_net_verbs_options options = ibshift_net_verbs_defaults;
    char error[DOCTOR_TEXT] = "", byte = 1;
    int rc = exchange(fd, verbs, p);

    if (rc != 0) {
        info_say(&d->info, INFO_BAD, "pair", "the other process does not answer: %s",
                 strerror(-rc));
        return rc;
    }
    options.self = (uint32_t)p->self;
    options.peers = 2;
    options.card = give_card;
    options.context = p;
    rc = ibshift_net_verbs_create(verbs, &options, &p->net, error, sizeof(error));
    if (rc != 0) {
        info_say(&d->info, INFO_BAD, "pair", "no endpoint: %.480s", error);
        return rc;
    }
    tell_memory(d, p->net);
    tell_fork(d);
    rc = measure(d, p);
    if (rc == 0 &&
        send(fd, &byte, 1, MSG_NOSIGNAL) == 1) { /* neither goes before the other is done */
        (void)read_all(fd, &byte, 1);
    }
    ibshift_net_destroy(p->net);
    return rc;
}

int doctor_pair(struct doctor *d, int fd, int self)
{
    struct ibshift_verbs_options open = {.max_ports = 1, .gid_index = -1, .survives_fork = true};
    struct ibshift_verbs *verbs;
    struct pair p = {.self = self};
    char error[DOCTOR_TEXT] = "", go = 1;
    int rc = self == 0 ? (send(fd, &go, 1, MSG_NOSIGNAL) == 1 ? 0 : -errno) : read_all(fd, &go, 1);

    p.data = rc == 0 ? calloc(1, LONG) : NULL;
    if (p.data == NULL) {
        return rc != 0 ? rc : -ENOMEM;
    }
    p.until = doctor_now() + MESSAGES * 1000000000ull;
    rc = ibshift_verbs_open(&open, &verbs, error, sizeof(error));
    if (rc != 0) {
        info_say(&d->info, INFO_BAD, "pair", "%.480s", error);
    } else {
        rc = with_verbs(d, fd, verbs, &p);
        ibshift_verbs_close(verbs);
    }
    free(p.data);
    return rc;
}

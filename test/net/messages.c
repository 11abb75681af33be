#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"

enum { LIMIT = 60 };

void test_post(struct test *t, int is_send, const struct ibshift_net_message *m)
{
    int rc;

    do {
        rc = is_send ? ibshift_net_send(t->r->net, m) : ibshift_net_recv(t->r->net, m);
    } while (rc == -EAGAIN && ibshift_net_poll(t->r->net, NULL, 0) == 0);
    t->status[m->cookie] = rc == IBSHIFT_NET_PENDING ? PENDING : rc == IBSHIFT_NET_DONE ? 0 : rc;
    t->left += rc == IBSHIFT_NET_PENDING;
}

void test_begin(struct test *t, int is_send, uint32_t peer, uint32_t tag, void *buffer,
                size_t length)
{
    test_post(t, is_send,
              &(struct ibshift_net_message){.peer = peer,
                                            .key = {.comm = 7, .seq = tag / 64, .tag = tag},
                                            .buffer = buffer,
                                            .length = length,
                                            .piece = is_send ? t->piece : 0,
                                            .cookie = is_send ? tag + SENDS : tag});
}

void test_poll_once(struct test *t)
{
    struct ibshift_net_event events[8];
    int n = ibshift_net_poll(t->r->net, events, 8);

    for (int i = 0; i < n; i++) {
        uint32_t tag = (uint32_t)events[i].cookie;
        if (tag >= 2 * TAGS || t->status[tag] != PENDING) {
            ranks_fail(t->r, "an event that belongs to no message: %u", tag);
        }
        t->status[tag] = events[i].status;
        t->left--;
    }
}

void test_poll_for(struct test *t, int milliseconds)
{
    uint64_t until = ibshift_net_now(t->r->net) + (uint64_t)milliseconds * 1000000;
    while (ibshift_net_now(t->r->net) < until) {
        test_poll_once(t);
        usleep(20);
    }
}

void test_finish(struct test *t)
{
    while (t->left > 0) {
        test_poll_once(t);
    }
    if (*t->r->net->ungranted != 0) {
        ranks_fail(t->r, "nothing is under way, but %lu bytes wait for grants",
                   *t->r->net->ungranted);
    }
}

void test_expect(struct test *t, uint32_t cookie, int status, uint32_t peer)
{
    char text[512];

    ibshift_net_describe(t->r->net, peer, text, sizeof(text));
    if (t->status[cookie] != status) {
        ranks_fail(t->r, "message %u: status %d instead of %d: %s", cookie % TAGS,
                   t->status[cookie], status, text);
    }
    if (status != 0) {
        printf("rank %d: %s\n", t->r->self, text);
    }
}

int test_run(const struct test_case *cases, size_t count, int argc, char **argv)
{
    alarm(LIMIT);
    for (size_t i = 0; argc > 1 && i < count; i++) {
        if (strcmp(cases[i].name, argv[1]) == 0) {
            struct ranks r = {
                .count = cases[i].ranks, .max_ports = 1, .options = ibshift_net_verbs_defaults};
            r.count = argc > 2 ? atoi(argv[2]) : r.count;
            r.options.rings = cases[i].rings > 0 ? cases[i].rings : r.options.rings;
            r.options.max_eager = cases[i].max_eager > 0 ? cases[i].max_eager : r.options.max_eager;
            r.options.memory = argc > 3 ? strtoul(argv[3], NULL, 0) : r.options.memory;
            r.options.is_tolerant = argc > 4 && strcmp(argv[4], "tolerant") == 0;
            return ranks_run(&r, cases[i].body, cases[i].may_die);
        }
    }
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "%s%s", i == 0 ? "one of: " : ", ", cases[i].name);
    }
    fprintf(stderr, "\n");
    return 2;
}

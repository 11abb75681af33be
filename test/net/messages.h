#ifndef IBSHIFT_TEST_NET_MESSAGES_H
#define IBSHIFT_TEST_NET_MESSAGES_H

#include "ranks.h"

/* Messages of one rank by their tags, and programs of which one case is run. */
enum { TAGS = 4096, PENDING = 1, SENDS = TAGS }; /* statuses of sends: tag + SENDS */

struct test {
    struct ranks *r;
    int status[2 * TAGS]; /* by cookie: PENDING, or how it ended */
    uint32_t left;
    size_t piece; /* of sends */
};

/* Its cookie says by which status it is known. */
void test_post(struct test *t, int is_send, const struct ibshift_net_message *m);
void test_begin(struct test *t, int is_send, uint32_t peer, uint32_t tag, void *buffer,
                size_t length);
void test_poll_once(struct test *t);
void test_poll_for(struct test *t, int milliseconds);
void test_finish(struct test *t);
void test_expect(struct test *t, uint32_t cookie, int status, uint32_t peer);

struct test_case {
    const char *name;
    int (*body)(struct ranks *);
    int ranks;
    uint64_t may_die;
    uint32_t rings;   /* 0: as many as usual */
    size_t max_eager; /* likewise */
};

/* PROGRAM NAME [RANKS [MEMORY [tolerant]]], the last of the net's options. A case ends by events alone; an alarm ends one that hangs. */
int test_run(const struct test_case *cases, size_t count, int argc, char **argv);

#endif

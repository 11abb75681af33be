/*
 * Why operations failed. Each failure names a rank; it is explained when something was done to that rank, to the way to
 * it, or to the rank that failed, which can have this status, or when the rank that it names has a failure that is
 * explained. So a failure without a cause shows also where something else was done. Asked at the end: a rank is heard of
 * before it has said itself why it gave up.
 */
#include "causes.h"

#include <errno.h>
#include <string.h>

enum { FAILURES = 2048 };

struct failure {
    int rank, item, status, peer;
    uint32_t comm;
    uint64_t at;
    bool is_explained;
};

static struct {
    const struct program *program;
    uint64_t since[PROGRAM_RANKS][CAUSES]; /* 0: never */
    struct failure failure[FAILURES];
    int failures;
} c;

void causes_begin(const struct program *program)
{
    c.program = program;
}

void causes_happened(int rank, enum cause cause, uint64_t now)
{
    if (c.since[rank][cause] == 0) {
        c.since[rank][cause] = now;
    }
}

bool causes_has(int rank, enum cause cause)
{
    return c.since[rank][cause] != 0;
}

bool causes_taint(uint32_t comm)
{
    for (int i = 0; i < program_comm_ranks(c.program, comm); i++) {
        if (causes_has(i, CAUSE_HOSTILE)) {
            return true;
        }
    }
    return false;
}

void causes_failed(uint64_t now, int rank, int item, uint32_t comm, int status, int peer)
{
    if (c.failures < FAILURES) {
        c.failure[c.failures++] = (struct failure){rank, item, status, peer, comm, now, false};
    }
}

static bool is_before(const struct failure *f, int rank, enum cause cause)
{
    return c.since[rank][cause] != 0 && c.since[rank][cause] <= f->at;
}

/* What may have gone wrong between the two, so that a connection breaks. */
static bool is_broken(const struct failure *f)
{
    static const enum cause either[] = {CAUSE_DEAD, CAUSE_LINK, CAUSE_HOSTILE, CAUSE_MEMORY};

    for (size_t i = 0; i < sizeof(either) / sizeof(either[0]); i++) {
        if (is_before(f, f->rank, either[i]) || is_before(f, f->peer, either[i])) {
            return true;
        }
    }
    return false;
}

/* Whether anybody of the communicator keeps the others waiting: they wait for one another. A dead one is found before
   the deadline, where the launcher says who is dead. */
static bool is_somebody_late(const struct failure *f)
{
    for (int i = 0; i < program_comm_ranks(c.program, f->comm); i++) {
        if (is_before(f, i, CAUSE_LATE) ||
            (is_before(f, i, CAUSE_DEAD) && !c.program->knows_ends) ||
            is_before(f, i, CAUSE_LINK) || is_before(f, i, CAUSE_HOSTILE)) {
            return true;
        }
    }
    return false;
}

/* Ranks have called different collectives there, which is no reason to wait for the deadline. */
static bool is_unlike(const struct failure *f)
{
    for (int i = 0; i < c.program->items; i++) {
        const struct program_item *item = &c.program->item[i];

        if (item->kind == PROGRAM_UNLIKE && item->comm == f->comm && !item->is_dropped) {
            return f->status == -EBADMSG || f->status == -EMSGSIZE || f->status == -ECONNABORTED ||
                   f->status == -ECONNRESET;
        }
    }
    return false;
}

static bool is_direct(const struct failure *f)
{
    switch (f->status) {
    case -ENOMEM:
        return is_before(f, f->rank, CAUSE_MEMORY) || is_before(f, f->peer, CAUSE_MEMORY);
    case -ETIME:
        return is_somebody_late(f);
    case -EBADMSG:
    case -EMSGSIZE:
        return is_before(f, f->peer, CAUSE_HOSTILE) || is_before(f, f->rank, CAUSE_HOSTILE);
    default:
        return is_broken(f);
    }
}

/* The rank that is named has failed itself, on whatever communicator. */
static bool is_told(const struct failure *f)
{
    for (int i = 0; i < c.failures; i++) {
        if (c.failure[i].rank == f->peer && c.failure[i].is_explained && f->peer != f->rank) {
            return true;
        }
    }
    return false;
}

int causes_unexplained(void (*say)(const char *format, ...))
{
    int count = 0;

    for (bool is_new = true; is_new;) {
        is_new = false;
        for (int i = 0; i < c.failures; i++) {
            struct failure *f = &c.failure[i];

            if (!f->is_explained && (is_direct(f) || is_unlike(f) || is_told(f))) {
                f->is_explained = is_new = true;
            }
        }
    }
    for (int i = 0; i < c.failures; i++) {
        const struct failure *f = &c.failure[i];

        if (!f->is_explained) {
            count++;
            say("item %d failed on rank %d with rank %d (%s), and nothing that was done "
                "explains it",
                f->item, f->rank, f->peer, strerror(-f->status));
        }
    }
    return count;
}

/*
 * Why operations failed. Each failure names a rank; it is explained when something was done to that rank, to the way to
 * it, or to the rank that failed, which can have this status, or when the rank that it names has a failure that is
 * explained. So a failure without a cause shows also where something else was done. Asked at the end: a rank is heard of
 * before it has said itself why it gave up.
 */
#include "causes.h"

#include <errno.h>
#include <string.h>

enum { FAILURES = 2048, FACTS = 1 << 10 };

static const uint64_t answered = 25 * 1000 * 1000000ull; /* ns */

struct failure {
    int rank, item, status, peer;
    uint32_t members; /* of the communicator, a bit each */
    uint64_t at;
    bool is_busy, is_explained;
};

static struct {
    const struct program *program;
    uint64_t since[PROGRAM_RANKS][CAUSES]; /* 0: never */
    struct failure failure[FAILURES];
    int failures;
    bool is_unlike, is_left_out;
    struct {
        uint64_t key, value;
    } fact[FACTS];
    int facts;
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

bool causes_has_any(void)
{
    for (int i = 0; i < PROGRAM_RANKS * CAUSES; i++) {
        if (causes_has(i / CAUSES, (enum cause)(i % CAUSES))) {
            return true;
        }
    }
    return c.is_unlike;
}

void causes_unlike(bool is_left_out)
{
    c.is_unlike = true;
    c.is_left_out |= is_left_out;
}

bool causes_taint(uint32_t members)
{
    for (int i = 0; i < PROGRAM_RANKS; i++) {
        if ((members >> i & 1) != 0 &&
            (causes_has(i, CAUSE_HOSTILE) || causes_has(i, CAUSE_SPOILT))) {
            return true;
        }
    }
    return false;
}

void causes_failed(uint64_t now, int rank, int item, uint32_t members, int status, int peer,
                   bool is_busy)
{
    c.since[rank][CAUSE_BUSY] |= is_busy;
    if (c.failures < FAILURES) {
        c.failure[c.failures++] =
            (struct failure){rank, item, status, peer, members, now, is_busy, false};
    }
}

static bool is_before(const struct failure *f, int rank, enum cause cause)
{
    return c.since[rank][cause] != 0 && c.since[rank][cause] <= f->at;
}

static bool is_either(const struct failure *f, enum cause cause)
{
    return is_before(f, f->rank, cause) || is_before(f, f->peer, cause);
}

static bool has_garbage(const struct failure *f)
{
    return is_either(f, CAUSE_HOSTILE) || is_either(f, CAUSE_SPOILT);
}

/* What may have gone wrong between the two, so that a connection breaks. */
static bool is_broken(const struct failure *f)
{
    return is_either(f, CAUSE_DEAD) || is_either(f, CAUSE_LINK) || is_either(f, CAUSE_MEMORY) ||
           has_garbage(f);
}

/* Somebody has found the same rank dead long before, and would have said so: it is asked. */
static bool is_known(const struct failure *f)
{
    for (int i = 0; i < c.failures; i++) {
        const struct failure *g = &c.failure[i];

        if (g->peer == f->peer && g->status == -ETIMEDOUT && g->at + answered < f->at &&
            c.since[g->rank][CAUSE_DEAD] == 0 && c.since[g->rank][CAUSE_LATE] == 0) {
            return true;
        }
    }
    return false;
}

/* Whether anybody of the communicator keeps the others waiting: they wait for one another. A dead one is found before
   the deadline, where the launcher says who is dead, or another rank. */
static bool is_somebody_late(const struct failure *f)
{
    for (int i = 0; i < PROGRAM_RANKS; i++) {
        if ((f->members >> i & 1) == 0) {
            continue;
        }
        if (is_before(f, i, CAUSE_LATE) ||
            (is_before(f, i, CAUSE_DEAD) && !c.program->knows_ends && !is_known(f)) ||
            is_before(f, i, CAUSE_LINK) || is_before(f, i, CAUSE_HOSTILE) ||
            is_before(f, i, CAUSE_SPOILT)) {
            return true;
        }
    }
    return false;
}

/* Ranks have called different collectives, which is no reason to wait for the deadline; or one has left one out. */
static bool is_unlike(const struct failure *f)
{
    return c.is_left_out ||
           (c.is_unlike &&
            (f->status == -EBADMSG || f->status == -EMSGSIZE || f->status == -ECONNABORTED ||
             f->status == -ECONNRESET || f->status == -EIO || f->status == -EPROTO));
}

static bool is_direct(const struct failure *f)
{
    switch (f->status) {
    case -ENOMEM:
        return is_either(f, CAUSE_MEMORY);
    case -ETIME:
        return f->is_busy || is_somebody_late(f);
    case -EBADMSG:
    case -EMSGSIZE:
        return has_garbage(f);
    case -EPROTO: /* counts, which leaders tell of the ranks of their hosts */
        return causes_taint(f->members);
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

uint64_t causes_first(uint64_t key, uint64_t value)
{
    int i = 0;

    while (i < c.facts && c.fact[i].key != key) {
        i++;
    }
    if (i == c.facts && i < FACTS) { /* more is not asked of a program */
        c.fact[c.facts].key = key;
        c.fact[c.facts++].value = value;
    }
    return i < FACTS ? c.fact[i].value : value;
}

bool causes_is_alike(uint64_t key, uint64_t value)
{
    return causes_first(key, value) == value || causes_has_any();
}

#include "scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "causes.h"
#include "context.h"
#include "front/front.h"
#include "story.h"

enum { STACK = 1 << 20, ROUNDS = 16 };
enum { CALM = 1 }; /* so often has each rank found nothing, in the mean, before the clock goes on */
enum { PATIENCE = 128 }; /* parts of the time without anything that the clock goes on at once */

static const uint64_t us = 1000, ms = 1000 * 1000, second = 1000 * 1000 * 1000ull;
/* Undisturbed ranks wait for each other, not for the nets' pauses of 500 ms; ROUNDS: the clock outruns who works. */
static const uint64_t stall = 450 * 1000000ull;          /* ns */
static const uint64_t longest = 400 * 1000 * 1000000ull; /* ns without anything: it hangs */
static const uint64_t most_branches = 800 * 1000000ull;  /* of a run */

enum { begun = 1000000000 }; /* ns */
enum state { READY, ASLEEP, AT_BARRIER, ENDED, DEAD };

struct rank {
    enum state state, awake; /* awake: which it is again when it has slept */
    struct context context;
    char *stack;
    uint64_t wakes, did_at, busy_since; /* since then it never did nothing for a second */
    uint64_t branches;                  /* so many were taken */
    void (*poll)(void *context);        /* at the barrier */
    void *poll_context;
    const char *base; /* of its copy's code */
    struct replay_branches *count;
    int64_t given; /* what its budget was when its turn began */
    replay_rank_main *main;
};

static struct {
    const struct program *program;
    const struct replay_kernel *kernel;
    void *const *copies;
    struct rank rank[PROGRAM_RANKS];
    struct replay_card card[PROGRAM_RANKS];
    struct context scheduler;
    int self;
    uint64_t now, step, random;
    uint64_t did_at;         /* the time when something happened last */
    uint32_t calm;           /* turns since then in which nothing did */
    uint32_t looked, rounds; /* since then: who found nothing, a bit each, and how often all have */
    uint64_t faults_at;      /* of the software HCA: when it wants to be called */
    uint64_t gate;           /* barriers that are over */
    uint64_t branches;       /* of all */
    bool is_over, has_slept; /* has_slept: somebody, since something happened */
} w = {.self = -1, .now = begun};

uint8_t *replay_taken;

int replay_self(void)
{
    return w.self;
}

const struct program *replay_program(void)
{
    return w.program;
}

struct replay_card *replay_card(int rank)
{
    return &w.card[rank];
}

bool replay_is_dead(int rank)
{
    return rank >= w.program->ranks + w.program->has_stranger || w.rank[rank].state == DEAD;
}

void *replay_function(const char *name)
{
    return dlsym(w.copies[w.self], name);
}

uint64_t replay_now(void)
{
    return w.now += w.self >= 0 ? 20 : 0;
}

/* The ranks, and a stranger behind them. */
static int people(void)
{
    return w.program->ranks + w.program->has_stranger;
}

static uint64_t below(uint64_t bound)
{
    return program_random(&w.random) % bound;
}

void replay_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    story_add(w.now, w.self, format, args);
    va_end(args);
}

size_t replay_place(int rank, const void *code)
{
    return (size_t)((const char *)code - w.rank[rank].base);
}

/* Where a rank stands, by the frame pointers on its stack. */
static void say_where(int i)
{
    const struct rank *rank = &w.rank[i];
    uintptr_t bottom = (uintptr_t)rank->stack, frame = context_frame(&rank->context);
    char text[STORY_LINE] = "";
    size_t n = 0;

    while (frame >= bottom && frame < bottom + STACK - 16 && n + 20 < sizeof(text)) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, " %#zx",
                              replay_place(i, ((void **)frame)[1]));
        frame = ((uintptr_t *)frame)[0];
    }
    replay_say("rank %d, state %d, %llu branches:%s", i, rank->state,
               (unsigned long long)rank->branches, text);
}

static void say_all(void)
{
    for (int i = 0; i < w.program->ranks; i++) {
        say_where(i);
    }
}

bool replay_is_quiet;

void replay_fail(const char *format, ...)
{
    va_list args;

    if (!replay_is_quiet) {
        story_print();
    }
    printf("seed %llu: ", (unsigned long long)w.program->seed);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
    _exit(1);
}

static void set_budget(struct rank *rank, int64_t turn)
{
    rank->given = turn;
    rank->count->budget = rank->count->taken != NULL ? 1 : turn;
    rank->count->apart = turn - rank->count->budget;
}

static void count_branches(struct rank *rank)
{
    uint64_t taken = (uint64_t)(rank->given - rank->count->budget - rank->count->apart);

    rank->branches += taken;
    w.branches += taken;
    w.now += taken / (uint64_t)w.program->ranks;
    set_budget(rank, INT64_MAX);
}

static void to_scheduler(void)
{
    struct rank *rank = &w.rank[w.self];
    int error = errno;

    count_branches(rank);
    if (!w.is_over) { /* while a library is unloaded nobody goes on */
        context_switch(&rank->context, &w.scheduler);
    }
    errno = error; /* the thread's, and so all ranks' */
}

void replay_idle(void)
{
    if (w.self >= 0) {
        w.calm++;
        w.looked |= 1u << w.self;
        to_scheduler();
    }
}

void replay_moved(void)
{
    w.calm = 0;
    w.step = us / 4;
}

/* Its owner may be dead, which is found after so many looks, or stopped for minutes. */
void replay_wants_lock(void)
{
    w.step = w.step < ms ? w.step : ms;
    replay_idle();
}

void replay_progressed(void)
{
    if (w.now - w.did_at > stall && !w.has_slept && !causes_has_any() && w.rounds >= ROUNDS) {
        say_all();
        replay_fail("rank %d waited %llu ms for a timer: nobody had anything to do", w.self,
                    (unsigned long long)((w.now - w.did_at) / ms));
    }
    replay_did();
}

void replay_did(void)
{
    replay_moved();
    w.did_at = w.now;
    w.has_slept = false;
    w.looked = w.rounds = 0;
    if (w.self >= 0) {
        struct rank *rank = &w.rank[w.self];

        rank->busy_since = w.now - rank->did_at < second ? rank->busy_since : w.now;
        rank->did_at = w.now;
    }
}

void replay_sleep(uint64_t ns)
{
    if (w.self >= 0 && !w.is_over) {
        w.rank[w.self].wakes = w.now + ns;
        w.rank[w.self].awake = w.rank[w.self].state;
        w.rank[w.self].state = ASLEEP;
        to_scheduler();
    }
}

void replay_kill(int rank)
{
    bool is_self = rank == w.self;

    replay_say("rank %d is killed", rank);
    story_count(COUNT_DEATHS, 1);
    w.rank[rank].state = DEAD;
    causes_happened(rank, CAUSE_DEAD, w.now);
    w.kernel->rank_died(rank);
    replay_did();
    if (is_self) {
        to_scheduler();
    }
}

void replay_give_up(const char *file, int line)
{
    if (!causes_has(w.self, CAUSE_MEMORY)) {
        replay_fail("%s:%d: claims what is not so on rank %d", file, line, w.self);
    }
    replay_say("aborts at %s:%d", file, line);
    replay_kill(w.self);
}

void replay_turn_ends(void)
{
    if (w.self >= 0) { /* not while the copy is loaded */
        count_branches(&w.rank[w.self]);
        w.kernel->at_branch(w.self, w.rank[w.self].branches);
        to_scheduler();
    }
}

void replay_explain(int item, int status, int peer, uint32_t members)
{
    bool is_busy = false;

    replay_say("item %d failed with rank %d: %s", item, peer, strerror(-status));
    story_count(COUNT_FAILURES, 1);
    for (int i = 0; status == -ETIME && i < w.program->ranks; i++) { /* messages take long */
        is_busy |= i != w.self && (members >> i & 1) != 0 && w.now - w.rank[i].did_at < second &&
                   w.now - w.rank[i].busy_since >= 15 * second; /* the deadline: program.c */
    }
    causes_failed(w.now, w.self, item, members, status, peer, is_busy);
}

/* All that are not dead. Those who wait go on with their nets, as in MPI's own barriers. */
void replay_barrier(void (*poll)(void *context), void *context)
{
    uint64_t gate = w.gate;

    w.rank[w.self].state = AT_BARRIER;
    while (w.gate == gate) {
        int missing = 0;

        for (int i = 0; i < w.program->ranks; i++) {
            missing +=
                w.rank[i].state == READY || (w.rank[i].state == ASLEEP && w.rank[i].awake == READY);
        }
        if (missing == 0) {
            w.gate++;
            replay_did();
            for (int i = 0; i < w.program->ranks; i++) {
                if (w.rank[i].state == AT_BARRIER) {
                    w.rank[i].state = READY;
                }
                w.rank[i].awake = READY;
            }
            return;
        }
        if (poll != NULL) {
            poll(context);
        }
        replay_idle();
    }
}

static void start(void)
{
    struct rank *rank = &w.rank[w.self];

    rank->main(w.self);
    rank->state = ENDED;
    replay_did();
    to_scheduler();
}

/* Until the branch at which something is to happen to the rank, and no longer than is drawn: mostly short turns, some
   of a few branches, some long ones. */
static int64_t turn_of(int rank)
{
    static const uint64_t most[] = {8, 100, 2000, 30000};
    uint64_t turn = 1 + below(most[below(4)]), left = w.kernel->left(rank, w.rank[rank].branches);

    return (int64_t)(left < turn ? left : turn);
}

static void run(int self)
{
    struct rank *rank = &w.rank[self];

    w.self = self;
    set_budget(rank, turn_of(self));
    context_switch(&w.scheduler, &rank->context);
    w.self = -1;
}

static void adapters_act(void)
{
    if (w.now < w.faults_at) {
        return;
    }
    w.faults_at = control_act();
    for (int i = 0; i < w.program->acts; i++) {
        const struct program_act *act = &w.program->act[i];

        for (int rank = 0; rank < w.program->ranks && act->is_lasting && !act->is_dropped; rank++) {
            if (program_host_of(w.program, rank) == act->rank && w.now >= begun + act->time) {
                causes_happened(rank, CAUSE_LINK, w.now);
            }
        }
    }
}

/* Whoever has garbage of its own making may wait for ever: then it is time that it is killed. */
static bool end_hostile(void)
{
    for (int i = 0; i < w.program->ranks; i++) {
        if (causes_has(i, CAUSE_HOSTILE) && w.rank[i].state != DEAD && w.rank[i].state != ENDED) {
            replay_kill(i);
            return true;
        }
    }
    return false;
}

/* The clock goes on when nobody has anything to do: first a little, then in longer and longer steps. */
static void let_time_pass(uint64_t earliest, bool is_alone)
{
    uint64_t until = w.now + w.step, calm = (w.now - w.did_at) / PATIENCE;
    uint64_t seen =
        100 * ms / w.program->calls; /* the engine sees no more of it at once: engine.c */
    uint64_t most = calm < 5 * ms ? 5 * ms : calm < seen ? calm : seen;

    w.step = w.step * 2 < most ? w.step * 2 : most;
    if (is_alone && earliest != UINT64_MAX && earliest > until) {
        until = earliest;
    }
    w.now = earliest < until && earliest > w.now ? earliest : until;
    w.calm = 0;
    if (w.now - w.did_at > longest && !end_hostile()) {
        say_all();
        replay_fail("nothing has happened for %llu s", (unsigned long long)(longest / second));
    }
}

/* False: all have ended. */
static bool turn(void)
{
    int ready[PROGRAM_RANKS], count = 0, asleep = 0, missing = 0;
    uint64_t earliest = UINT64_MAX;

    for (int i = 0; i < people(); i++) {
        struct rank *rank = &w.rank[i];

        if (rank->state == ASLEEP && rank->wakes <= w.now) {
            rank->state = rank->awake;
            w.calm = 0;
        }
        if (rank->state == ASLEEP) {
            asleep++;
            earliest = rank->wakes < earliest ? rank->wakes : earliest;
        }
        if (rank->state == READY || rank->state == AT_BARRIER) {
            ready[count++] = i;
            missing += (w.looked >> i & 1) == 0;
        }
    }
    w.rounds += missing == 0;
    w.looked = missing == 0 ? 0 : w.looked;
    w.has_slept |= asleep > 0;
    adapters_act();
    if (w.branches > most_branches && !end_hostile()) {
        say_all();
        replay_fail("it goes on and on: %llu branches", (unsigned long long)w.branches);
    }
    if (count > 0 && w.calm < (uint32_t)(CALM * count)) {
        run(ready[below((uint64_t)count)]);
    } else if (count > 0 || asleep > 0) {
        let_time_pass(earliest, count == 0);
    }
    return count > 0 || asleep > 0;
}

static void make_rank(int i, void *copy)
{
    struct rank *rank = &w.rank[i];
    Dl_info info;

    rank->main = (replay_rank_main *)(uintptr_t)dlsym(
        copy, i < w.program->ranks ? "replay_rank" : "replay_stranger");
    if (rank->main == NULL || dladdr((void *)(uintptr_t)rank->main, &info) == 0) {
        replay_fail("rank.so: %s", dlerror());
    }
    rank->base = info.dli_fbase;
    rank->count = ((struct replay_branches * (*)(void))(uintptr_t)dlsym(copy, "replay_branches"))();
    rank->count->taken = replay_taken;
    rank->count->base = (uintptr_t)rank->base;
    rank->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    context_make(&rank->context, rank->stack, STACK, start);
}

/* What a rank leaves when it ends by itself: nothing. */
static void look_for_leaks(void *const copies[])
{
    w.is_over = true;
    for (int i = 0; i < people(); i++) {
        if (w.rank[i].state != ENDED) {
            continue;
        }
        w.self = i;
        set_budget(&w.rank[i], INT64_MAX); /* nobody else goes on any more */
        dlclose(copies[i]);
        w.self = -1;
        if (w.kernel->leaks(i) != 0) {
            replay_fail("rank %d has left memory or open files", i);
        }
    }
}

void replay_run(const struct program *program, void *const copies[],
                const struct replay_kernel *kernel, const char *folder)
{
    w.program = program;
    w.self = -1;
    w.random = program->seed ^ 0x5851f42d4c957f2d;
    w.did_at = w.now;
    w.step = us / 4;
    w.kernel = kernel;
    w.copies = copies;
    kernel->begin(folder, program->seed);
    causes_begin(program);
    for (int i = 0; i < people(); i++) {
        make_rank(i, copies[i]);
    }
    while (turn()) {
    }
    if (causes_unexplained(replay_say) != 0) {
        replay_fail("%d failures without a cause", causes_unexplained(replay_say));
    }
    look_for_leaks(copies);
    kernel->check();
    if (!replay_is_quiet) {
        story_print();
    }
    story_count(COUNT_MS, (w.now - begun) / ms);
    story_mix(w.now);
    for (int i = 0; i < program->ranks; i++) {
        story_mix(w.rank[i].branches);
    }
}

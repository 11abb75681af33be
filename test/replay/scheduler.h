#ifndef IBSHIFT_REPLAY_SCHEDULER_H
#define IBSHIFT_REPLAY_SCHEDULER_H

/*
 * The world that ranks live in: one process, one thread, one clock. Each rank is a copy of its own
 * of the production code and of the software HCA (rank.so, loaded once a rank), so nothing in them
 * knows that the others are not processes. A rank goes on until the world takes the processor from
 * it: at any branch of its code, or when it waits. What the code asks of the kernel (wrap.c) and
 * when it goes on are functions of the seed alone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "program.h"

enum { REPLAY_CARD = 8192, REPLAY_ADDRESS = 512, REPLAY_FIRST_PID = 100 };

/* What ranks tell one another outside of the nets: the launcher's exchange. */
struct replay_card {
    uint8_t bytes[REPLAY_CARD], address[REPLAY_ADDRESS]; /* the address: for strangers */
    size_t size, address_size;                           /* 0: nothing */
    uint64_t numbers;                                    /* of its communicators: a bit each */
    uint64_t posted, received, carried; /* messages: of the executor, and of its nets */
    uint64_t bytes_posted, bytes_carried;
    const void *net; /* of its adapter, for who compares both ends; NULL: none */
};

/* Of the rank that runs. */
int replay_self(void); /* -1: none, the world itself */
const struct program *replay_program(void);
struct replay_card *replay_card(int rank);
bool replay_is_dead(int rank);
void replay_idle(
    void); /* it found nothing to do: others go on, and when all say so the clock does */
void replay_wants_lock(void);
void replay_did(void);        /* it found something */
void replay_progressed(void); /* messages of it have ended */
void replay_moved(void);      /* an adapter has copied something: the clock does not run away */
void replay_sleep(uint64_t ns);
void *replay_function(const char *name); /* of the copy of the rank that runs */
void replay_barrier(void (*poll)(void *context), void *context);
__attribute__((format(printf, 1, 2))) void replay_say(const char *format, ...);
/* The run has failed: an oracle has seen something. Does not return. */
__attribute__((noreturn, format(printf, 1, 2))) void replay_fail(const char *format, ...);
/* The rank aborts: what it needs it has not got. */
void replay_give_up(const char *file, int line);
/* A call of item failed here, with this peer: asked at the end whether anything that was done can be why. */
void replay_explain(int item, int status, int peer, uint32_t members);
/* Of the kernel's place. */
uint64_t replay_now(void);
bool replay_strikes(enum program_fault fault); /* the next case of it, for the rank that runs */
void replay_kill(int rank);
void replay_spoil_card(
    struct replay_card *card); /* of the rank that runs, when it is to be garbage */

/* What a rank's copy exports: its main function, and what is counted at its branches. */
typedef void replay_rank_main(int self);
struct replay_branches {
    int64_t budget; /* branches until the world takes the processor, */
    int64_t apart;  /* and those that are looked at one by one before */
    uint8_t *taken; /* NULL: nobody asks */
    uintptr_t base;
};
void replay_turn_ends(void); /* they are used up */

/* The world's side of the kernel (wrap.h), which calls the world itself. */
struct replay_kernel {
    void (*begin)(const char *folder, uint64_t seed);
    void (*rank_died)(int rank);
    int (*leaks)(int rank); /* what a rank that has ended has left, each said */
    void (*check)(void);    /* memory and files: does not return when they are wrong */
    void (*at_branch)(int rank, uint64_t branches);
    uint64_t (*left)(int rank, uint64_t branches); /* until something is done to it there */
};

extern const struct replay_kernel wrap_kernel; /* wrap.c */

/* Runs the program; does not return when something is wrong. */
void replay_run(const struct program *program, void *const copies[],
                const struct replay_kernel *kernel, const char *folder);
size_t replay_place(int rank, const void *code); /* in rank.so: for addr2line */

extern bool replay_is_quiet; /* prints what was wrong alone */

/* Which branches were taken, by their place in rank.so; in shared memory. NULL: nobody asks. */
extern uint8_t *replay_taken;
enum { REPLAY_TAKEN = 4 << 20 };

#endif

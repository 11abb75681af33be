#ifndef IBSHIFT_REPLAY_CONTEXT_H
#define IBSHIFT_REPLAY_CONTEXT_H

/*
 * A rank's stack, and where it goes on. As ucontext, which asks the kernel for the signal mask at
 * each of millions of turns; so on x86-64 the few registers that a call keeps are moved here.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
struct context {
    void **sp; /* points to what is kept */
};
#else
#include <ucontext.h>
struct context {
    ucontext_t u;
};
#endif

void context_make(struct context *context, char *stack, size_t size, void (*start)(void));
void context_switch(struct context *from, struct context *to);
/* Of one that waits, the frame of its call of context_switch(); 0: not known. */
uintptr_t context_frame(const struct context *context);

#endif

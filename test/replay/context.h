#ifndef IBSHIFT_REPLAY_CONTEXT_H
#define IBSHIFT_REPLAY_CONTEXT_H

/*
 * A rank's stack, and where it goes on. As ucontext, which asks the kernel for the signal mask at each of
 * millions of turns; so the few registers that a call keeps are moved here, those of x86-64.
 */

#include <stddef.h>
#include <stdint.h>

struct context {
    void **sp; /* points to what is kept */
};

void context_make(struct context *context, char *stack, size_t size, void (*start)(void));
void context_switch(struct context *from, struct context *to);
/* Of one that waits, the frame of its call of context_switch(). */
uintptr_t context_frame(const struct context *context);

#endif

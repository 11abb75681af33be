#include "context.h"

#include <stdlib.h>

enum { KEPT = 6 }; /* registers: r15, r14, r13, r12, rbx, rbp from the lowest address on */

__asm__(".text\n"
        ".globl context_switch\n"
        ".type context_switch, @function\n"
        "context_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov (%rsi), %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size context_switch, .-context_switch\n");

void context_make(struct context *context, char *stack, size_t size, void (*start)(void))
{
    void **top = (void **)(void *)(stack + size) -
                 1; /* as a call leaves it: 8 bytes beside a multiple of 16 */

    top[0] = (void *)(uintptr_t)abort; /* start() does not return */
    top[-1] = (void *)(uintptr_t)start;
    for (int i = 0; i < KEPT; i++) {
        top[-2 - i] = NULL;
    }
    context->sp = &top[-1 - KEPT];
}

uintptr_t context_frame(const struct context *context)
{
    return (uintptr_t)context->sp[KEPT - 1];
}

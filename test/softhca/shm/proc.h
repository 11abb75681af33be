/* The processes of a run: who is attached, on which modelled host, and who is still alive. */
#ifndef SOFTHCA_PROC_H
#define SOFTHCA_PROC_H

#include <stdbool.h>
#include <stdint.h>

/* What lies above and follows a process's life. */
struct proc_hooks {
    void (*end)(void);    /* of this process: its threads stop */
    void (*forked)(void); /* in the child: the parent's threads are not here */
    void (*free_all)(uint32_t proc);
};

/* Attaches at the first call, and again after fork. 0, or -errno after a message. */
int proc_attach(const struct proc_hooks *hooks);

/* True in a child that inherited its parent's objects and may not use them. */
bool proc_is_forked(void);

#endif

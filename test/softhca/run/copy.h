/* Moving bytes between the memories of two processes, without the help of either. */
#ifndef SOFTHCA_COPY_H
#define SOFTHCA_COPY_H

#include "run/pieces.h"

/* Copies from->bytes bytes; `to` has room for them. 0, -EFAULT (memory that is not mapped as it was
   registered), or -ESRCH (the other process is gone). */
int copy_pieces(const struct pieces *from, const struct pieces *to);
/* The same at once, whatever the mode. */
int copy_whole(const struct pieces *from, const struct pieces *to);

/* Bounce mode: when a process attaches (0 or -errno), ends, and in a child after fork. */
int agent_start(void);
void agent_stop(void);
void agent_forget(void);

#endif

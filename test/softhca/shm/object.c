#include "shm/object.h"

#include "shm/chan.h"
#include "verbs/cq.h"
#include "verbs/mr.h"
#include "shm/proc.h"
#include "verbs/qp.h"
#include "verbs/srq.h"

/* Nobody of a process that is dead or ends is in a section. */
static void free_threads(uint32_t proc)
{
    uint32_t high = atomic_load(&shm.head->threads.high);
    for (uint32_t i = 0; i < high; i++) {
        if (atomic_load(&shm.threads[i].proc) == proc + 1) {
            atomic_store(&shm.threads[i].seq, 0);
            atomic_store(&shm.threads[i].proc, 0);
        }
    }
}

#define EACH(i, table, slots)                                                                      \
    for (uint32_t i = 0; i < shm.head->table.high; i++)                                            \
        if (shm_slot_is_live(&shm.head->table, i) && shm.slots[i].proc == proc)

/* After this nobody finds them any more. */
static void hide_all(uint32_t proc)
{
    EACH(i, qps, qps)
    {
        atomic_store(&shm.qps[i].number, 0);
    }
    EACH(i, srqs, srqs)
    {
        atomic_store(&shm.srqs[i].number, 0);
    }
    EACH(i, cqs, cqs)
    {
        atomic_store(&shm.cqs[i].number, 0);
    }
    EACH(i, mrs, mrs)
    {
        atomic_store(&shm.mrs[i].key, 0);
    }
}

void object_free_all(uint32_t proc)
{
    if (proc != proc_self) {
        free_threads(proc);
    }
    hide_all(proc);
    grace_wait();
    grace_skip(true);
    EACH(i, qps, qps) /* first: they refer to the others */
    {
        qp_free(i);
    }
    EACH(i, srqs, srqs)
    {
        srq_free(i);
    }
    EACH(i, cqs, cqs)
    {
        cq_free(i);
    }
    EACH(i, mrs, mrs)
    {
        mr_free(i);
    }
    EACH(i, chans, chans)
    {
        chan_free(i);
    }
    grace_skip(false);
    free_threads(proc);
}

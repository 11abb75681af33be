#include "object.h"

#include "chan.h"
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "srq.h"

/* Queue pairs first: they refer to the others. */
void object_free_all(uint32_t proc)
{
    struct shm_head *h = shm.head;
#define FREE_ALL(table, slots, free_one)                                                           \
    for (uint32_t i = 0; i < h->table.high; i++) {                                                 \
        if (shm_slot_is_live(&h->table, i) && shm.slots[i].proc == proc) {                         \
            free_one(i);                                                                           \
        }                                                                                          \
    }
    FREE_ALL(qps, qps, qp_free)
    FREE_ALL(srqs, srqs, srq_free)
    FREE_ALL(cqs, cqs, cq_free)
    FREE_ALL(mrs, mrs, mr_free)
    FREE_ALL(chans, chans, chan_free)
#undef FREE_ALL
    uint32_t high = atomic_load(&h->threads.high);
    for (uint32_t i = 0; i < high; i++) {
        if (atomic_load(&shm.threads[i].proc) == proc + 1) {
            atomic_store(&shm.threads[i].proc, 0);
        }
    }
}

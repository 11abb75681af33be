#include "route/route.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PARTS_A_THREAD 16
#define THREADS_MOST   64

struct crew {
    uint32_t count, part;
    int (*work)(void *context, uint32_t first, uint32_t end);
    void *context;
    atomic_uint next; /* part to take */
    atomic_int error;
};

static void *take_parts(void *argument)
{
    struct crew *crew = argument;

    while (atomic_load(&crew->error) == 0) {
        uint64_t first = (uint64_t)atomic_fetch_add(&crew->next, 1) * crew->part;
        uint64_t end = first + crew->part;
        int rc, none = 0;

        if (first >= crew->count) {
            break;
        }
        rc = crew->work(crew->context, (uint32_t)first,
                        end < crew->count ? (uint32_t)end : crew->count);
        if (rc != 0) {
            atomic_compare_exchange_strong(&crew->error, &none, rc);
        }
    }
    return NULL;
}

/* What gets no thread is done by this one. */
int route_parallel(unsigned threads, uint32_t count,
                   int (*work)(void *context, uint32_t first, uint32_t end), void *context)
{
    pthread_t thread[THREADS_MOST];
    unsigned started = 0;
    struct crew crew = {.count = count, .work = work, .context = context};

    threads = threads > THREADS_MOST ? THREADS_MOST : threads > 0 ? threads : 1;
    crew.part = count / (threads * PARTS_A_THREAD) + 1;
    while (started + 1 < threads &&
           pthread_create(&thread[started], NULL, take_parts, &crew) == 0) {
        started++;
    }
    take_parts(&crew);
    while (started > 0) {
        pthread_join(thread[--started], NULL);
    }
    return atomic_load(&crew.error);
}

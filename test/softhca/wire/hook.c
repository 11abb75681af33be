/* The wire that is always there: the random delays of deferred mode. */
#include "wire/hook.h"

enum { ADVERSARIAL_US = 50 }; /* without --defer */

void delay_times(struct wire_times *times)
{
    const struct shm_conf *conf = &shm.head->conf;
    if (!conf->defer_us && !conf->adversarial) {
        return;
    }
    uint64_t longest = (conf->defer_us ? conf->defer_us : ADVERSARIAL_US) * 1000ull;
    uint64_t delay = shm_random(longest);
    times->land += delay;
    times->recv = times->land;
    times->done += delay + shm_random(longest);
    if (conf->adversarial) {
        times->recv += shm_random(times->done - times->land + 1);
    }
}

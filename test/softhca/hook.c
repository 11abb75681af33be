/* The wire that is always there: the random delays of deferred mode. */
#include "hook.h"

enum { ADVERSARIAL_US = 50 }; /* without --defer */

void wire_times(const struct shm_qp *source, uint32_t port, const struct shm_wqe *wqe,
                struct wire_times *times)
{
    const struct shm_conf *conf = &shm.head->conf;
    uint64_t longest = (conf->defer_us ? conf->defer_us : ADVERSARIAL_US) * 1000ull;
    uint64_t now = shm_now();
    times->land = now + shm_random(longest);
    times->recv = times->land;
    times->done = times->land + shm_random(longest);
    if (conf->adversarial) {
        times->recv += shm_random(times->done - times->land + 1);
    }
}

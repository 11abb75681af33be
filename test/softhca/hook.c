/* The models that are always there: no fault, and the random delays of deferred mode. */
#include "hook.h"

enum { ADVERSARIAL_US = 50 }; /* without --defer */

enum fate fault_fate(const struct shm_qp *source, uint32_t port, const struct shm_wqe *wqe)
{
    bool is_down =
        atomic_load_explicit(&shm.ports[source->port].state, memory_order_relaxed) !=
            IBV_PORT_ACTIVE ||
        atomic_load_explicit(&shm.ports[port].state, memory_order_relaxed) != IBV_PORT_ACTIVE;
    return is_down ? FATE_LOSE : FATE_DELIVER;
}

int fault_register(uint64_t length)
{
    return 0;
}

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

/* The rules that requests and registrations meet. */
#include "fault/fault.h"

#include <errno.h>
#include <signal.h>

#include "shm/life.h"
#include "shm/shm.h"

/* A case that a rule could hit. */
struct event {
    uint32_t proc, host, to;
    bool waits_for_receive;
};

static bool is_meant(const struct shm_fault *f, const struct event *e, uint64_t now)
{
    return (f->rank == SHM_NONE || f->rank == shm.procs[e->proc].rank) &&
           (f->host == SHM_NONE || f->host == e->host) && (f->to == SHM_NONE || f->to == e->to) &&
           now >= f->from && now < f->until;
}

/* Counts the case, and throws the dice. */
static bool strikes(struct shm_fault *f)
{
    if (atomic_fetch_add(&f->seen, 1) < f->after) {
        return false;
    }
    if (f->chance < FAULT_ALWAYS && shm_random(FAULT_ALWAYS) >= f->chance) {
        return false;
    }
    return atomic_fetch_add(&f->hits, 1) < f->count;
}

/* The next live rule from *i on that is meant, or NULL. */
static struct shm_fault *next_rule(uint32_t *i, const struct event *e, uint64_t now)
{
    uint32_t high = atomic_load_explicit(&shm.head->faults, memory_order_acquire);

    while (*i < high) {
        struct shm_fault *f = &shm.faults[(*i)++];

        if (atomic_load_explicit(&f->kind, memory_order_acquire) && is_meant(f, e, now)) {
            return f;
        }
    }
    return NULL;
}

/* Not a number that stands for more than one process: somebody may be emptying the slot by now. */
static void kill_process(uint32_t proc)
{
    int32_t pid = atomic_load(&shm.procs[proc].pid);

    if (pid > 0) {
        kill(pid, SIGKILL);
    }
}

static enum fate search(const struct shm_qp *source, const struct event *e)
{
    uint64_t now = shm_now();
    struct shm_fault *f;

    for (uint32_t i = 0; (f = next_rule(&i, e, now));) {
        switch (atomic_load_explicit(&f->kind, memory_order_relaxed)) {
        case FAULT_KILL:
            if (strikes(f) && proc_is_alive(source->proc)) {
                kill_process(source->proc);
                return FATE_LOSE;
            }
            break;
        case FAULT_LOSE:
            if (strikes(f)) {
                return FATE_LOSE;
            }
            break;
        case FAULT_RNR:
            if (e->waits_for_receive && source->type == IBV_QPT_RC && strikes(f)) {
                return FATE_RNR;
            }
            break;
        default:
            break;
        }
    }
    return FATE_DELIVER;
}

static bool takes_receive(uint32_t opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
           opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_up(uint32_t port)
{
    return atomic_load_explicit(&shm.ports[port].state, memory_order_relaxed) == IBV_PORT_ACTIVE;
}

enum fate fault_fate(const struct shm_qp *source, uint32_t port, const struct shm_wqe *wqe)
{
    struct event e;

    if (!is_up(source->port) || !is_up(port)) {
        return FATE_LOSE;
    }
    if (atomic_load_explicit(&shm.head->faults, memory_order_relaxed) == 0) {
        return FATE_DELIVER;
    }
    e = (struct event){source->proc, shm.ports[source->port].host, shm.ports[port].host,
                       takes_receive(wqe->opcode)};
    return search(source, &e);
}

uint64_t fault_delay(const struct shm_qp *source)
{
    struct event e = {source->proc, shm.ports[source->port].host, SHM_NONE, false};
    uint64_t now = shm_now(), delay = 0;
    struct shm_fault *f;

    for (uint32_t i = 0; (f = next_rule(&i, &e, now));) {
        if (atomic_load_explicit(&f->kind, memory_order_relaxed) == FAULT_SLOW && strikes(f)) {
            delay = delay > f->delay_ns ? delay : f->delay_ns;
        }
    }
    return delay;
}

int fault_register(uint64_t length)
{
    const struct shm_proc *self;
    struct event e;
    uint64_t now;
    struct shm_fault *f;

    if (atomic_load_explicit(&shm.head->faults, memory_order_relaxed) == 0) {
        return 0;
    }
    self = &shm.procs[proc_self];
    e = (struct event){proc_self, self->host, SHM_NONE, false};
    now = shm_now();
    for (uint32_t i = 0; (f = next_rule(&i, &e, now));) {
        uint32_t kind = atomic_load_explicit(&f->kind, memory_order_relaxed);
        bool is_over = kind == FAULT_LIMIT && atomic_load(&self->locked_bytes) + length > f->bytes;

        if ((kind == FAULT_REFUSE || is_over) && strikes(f)) {
            return ENOMEM;
        }
    }
    return 0;
}

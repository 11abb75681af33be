#include "fault/faultact.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shm/chan.h"
#include "shm/life.h"
#include "shm/proc.h"
#include "shm/shm.h"

#define RETRY_NS 10000000ull /* a process to kill may still have to come */

struct action {
    struct shm_fault f;
    uint64_t when; /* 0 = free */
};

static struct action actions[SHM_FAULTS];
static bool is_quiet;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;

    if (is_quiet) {
        return;
    }
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

void faultact_be_quiet(void)
{
    is_quiet = true;
}

static bool matches(uint32_t wanted, uint32_t value)
{
    return wanted == SHM_NONE || wanted == value;
}

static int kill_processes(const struct shm_fault *f)
{
    uint32_t high = atomic_load(&shm.head->procs.high);
    int killed = 0;

    for (uint32_t i = 0; i < high; i++) {
        const struct shm_proc *p = &shm.procs[i];
        int32_t pid = atomic_load(&p->pid);

        if (pid > 0 && proc_is_alive(i) && matches(f->rank, p->rank) && matches(f->host, p->host) &&
            kill(pid, SIGKILL) == 0) {
            say("softhca: fault %s: killed process %d (rank %u, host %u)\n", f->text, pid, p->rank,
                p->host);
            killed++;
        }
    }
    return killed;
}

/* To every open context of the port's HCA. */
static void raise_event(const struct shm_port *port, uint32_t type)
{
    uint32_t high = atomic_load(&shm.head->chans.high);

    for (uint32_t i = 0; i < high; i++) {
        const struct shm_chan *c = &shm.chans[i];

        if (atomic_load(&c->used) && c->is_async && c->host == port->host && c->hca == port->hca) {
            chan_signal_async(i, type, 0, port->num);
        }
    }
}

static void set_port(struct shm_port *port, uint32_t state)
{
    if (atomic_exchange(&port->state, state) != state) {
        raise_event(port, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    }
}

static void change_ports(const struct shm_fault *f)
{
    for (uint32_t i = 0; i < shm.head->port_count; i++) {
        struct shm_port *port = &shm.ports[i];

        if (!matches(f->host, port->host) || !matches(f->hca, port->hca) ||
            !matches(f->port, port->num)) {
            continue;
        }
        if (f->kind == FAULT_EVENT) {
            raise_event(port, f->event);
        } else {
            set_port(port, f->kind == FAULT_DOWN ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
        }
    }
}

static void clear_all(void)
{
    const struct shm_fault up = {
        .kind = FAULT_UP, .host = SHM_NONE, .hca = SHM_NONE, .port = SHM_NONE};

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        atomic_store(&shm.faults[i].kind, FAULT_NONE);
        actions[i].when = 0;
    }
    atomic_store(&shm.head->faults, 0);
    change_ports(&up);
}

/* A rule's place is used again only after all others, so that who still looks at it is done. */
static int add_rule(const struct shm_fault *f)
{
    static uint32_t last;

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        uint32_t at = (last + i) % SHM_FAULTS;
        struct shm_fault *rule = &shm.faults[at];
        struct shm_fault next;

        if (atomic_load(&rule->kind) && rule->until > shm_now()) {
            continue;
        }
        next = *f;
        next.kind = FAULT_NONE;
        next.from = shm_now() + f->in_ns;
        next.until = f->for_ns ? next.from + f->for_ns : TIME_NEVER;
        atomic_store(&rule->kind, FAULT_NONE);
        *rule = next;
        atomic_store_explicit(&rule->kind, f->kind, memory_order_release);
        if (atomic_load(&shm.head->faults) <= at) {
            atomic_store(&shm.head->faults, at + 1);
        }
        last = at + 1;
        return 0;
    }
    return -ENOSPC;
}

static int schedule(const struct shm_fault *f, uint64_t delay)
{
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when == 0) {
            actions[i].f = *f;
            actions[i].when = shm_now() + delay;
            return 0;
        }
    }
    return -ENOSPC;
}

int faultact_begin(const struct shm_fault *f)
{
    return fault_is_rule(f) ? add_rule(f) : schedule(f, f->in_ns);
}

static void act(struct action *a)
{
    struct shm_fault f = a->f;

    a->when = 0;
    switch (f.kind) {
    case FAULT_KILL:
        if (!kill_processes(&f)) {
            a->when = shm_now() + RETRY_NS;
        }
        return;
    case FAULT_CLEAR:
        clear_all();
        break;
    default:
        change_ports(&f);
        if (f.kind == FAULT_DOWN && f.for_ns) {
            uint64_t for_ns = f.for_ns;

            f.kind = FAULT_UP;
            schedule(&f, for_ns); /* into the place that has just become free */
            f.kind = FAULT_DOWN;
        }
    }
    say("softhca: fault %s\n", f.text);
}

uint64_t faultact_run(void)
{
    uint64_t next = TIME_NEVER, now = shm_now();

    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when && actions[i].when <= now) {
            act(&actions[i]);
        }
    }
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        if (actions[i].when && actions[i].when < next) {
            next = actions[i].when;
        }
    }
    return next;
}

void faultact_report(void)
{
    for (uint32_t i = 0; i < SHM_FAULTS; i++) {
        struct shm_fault *f = &shm.faults[i];
        uint64_t hits = atomic_load(&f->hits);

        if (atomic_load(&f->kind)) {
            say("softhca: fault %s: hit %llu of %llu\n", f->text,
                (unsigned long long)(hits < f->count ? hits : f->count),
                (unsigned long long)atomic_load(&f->seen));
        }
        if (actions[i].when) {
            say("softhca: fault %s: did not happen\n", actions[i].f.text);
        }
    }
}

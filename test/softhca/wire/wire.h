/* The wire under the software HCA: its part of the shared file, and when requests land. */
#ifndef SOFTHCA_WIRE_H
#define SOFTHCA_WIRE_H

#include "shm/layout.h"
#include "wire/wire_net.h"

enum { WIRE_LINKS = 1 << 22 };

/* Written by softhca-run before anything starts, but for what the lock covers. */
struct shm_wire {
    uint64_t hca_ns, hop_ns; /* latency of one HCA, of one switch with its cable */
    double limit;            /* bytes per nanosecond that an HCA takes or gives */
    /* Routes behind a host's own cable: cells[leaf of the source][column of the LID][width], as
       link + 1, 0 behind the last. No columns: one crossbar switch, links 2 * port to it and 2 *
       port + 1 from it. */
    uint64_t cells; /* offset in the file */
    uint32_t columns, width;
    uint32_t cable[SHM_PORTS], leaf[SHM_PORTS], column[SHM_LIDS];

    struct lock lock;   /* of all below */
    uint64_t by_sl[16]; /* bytes that queue pairs have sent on each service level */
    struct wire_clock clock;
    struct wire_gate gates[SHM_PORTS];
    struct wire_lane lanes[2 * SHM_QPS];
    uint32_t heap[WIRE_MESSAGES];
    struct wire_message messages[WIRE_MESSAGES];
    struct wire_link links[WIRE_LINKS];
};

struct wire_times {
    uint64_t land; /* all bytes are in the target's memory (a READ: have left it) */
    uint64_t recv; /* the target sees its completion */
    uint64_t done; /* the source sees its completion */
};

/* The next three are called under the source's sq_lock and inside a section, by whichever process
   runs the request, and only when shm.head->wired is set. */
/* Sends the request of queue pair `index` on its way. False: there is no room for it now. */
bool wire_start(uint32_t index, struct shm_wqe *wqe, uint64_t now);
/* True: the times are known. False: look again at times->land. */
bool wire_look(uint32_t index, struct shm_wqe *wqe, uint64_t now, struct wire_times *times);
/* Nobody will look. */
void wire_forget(uint32_t index, struct shm_wqe *wqe);

/* A queue pair leaves its requests behind (sq_lock is held or nobody else is there). */
void wire_drop(uint32_t index);

#endif

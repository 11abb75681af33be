/*
 * The layout of the shared-memory file that is the software HCA: what all processes of a run see of one another.
 * One sparse file, mapped whole by every process; places in it are offsets or table indexes.
 *
 * Ownership: an object belongs to the process that has its slot (shm_slot_owner; a `proc` field says it too where requests ask), which creates,
 * changes and frees it. Other processes touch it only inside a section (lock.h) and under the object's lock.
 * Lock order: qp.sq_lock, then qp.rq_lock or srq.lock, then cq.lock, then chan.lock;
 * proc.pend_lock, table.lock and arena.lock are leaves.
 */
#ifndef SOFTHCA_LAYOUT_H
#define SOFTHCA_LAYOUT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SHM_PROCS = 1024, /* and one place more, the runner's */
    SHM_THREADS = 8191,
    SHM_QPS = 65536,
    SHM_CQS = 65536,
    SHM_SRQS = 16384,
    SHM_CHANS = 16384,
    SHM_MRS = 1 << 20,
    SHM_PORTS = 49152,
    SHM_LIDS = 49152,
    SHM_GROUPS = 1024,
    SHM_MEMBERS = 256,
    SHM_GIDS = 8,
    SHM_PKEYS = 4,
    SHM_ARENA_CLASSES = 40,
    SHM_ASYNC = 128,
    SHM_FAULTS = 256,
    FAULT_TEXT = 128,
};

/* The network interface of a port, by HCA and port. */
#define CM_INTERFACE "softhca%u-%u"

#define SHM_MAGIC     0x736f667468636131ull
#define SHM_GIB       32
#define SHM_NONE      UINT32_MAX
#define TIME_NEVER    UINT64_MAX
#define SHM_FIRST_LID 1

enum which_ports { PORTS_NONE, PORTS_ALL, PORTS_ODD }; /* odd: of hosts 1, 3, ... */

/* What softhca-run was told; read-only for the processes. */
struct shm_conf {
    uint32_t hosts, hcas, ports, per_host;
    uint32_t link; /* IBV_LINK_LAYER_* */
    uint32_t lmc;
    uint32_t mtu; /* enum ibv_mtu */
    uint32_t max_qp_wr, max_sge, max_inline, max_cqe, max_srq_wr;
    uint32_t max_mr, max_rd_atomic;
    uint64_t max_mr_size;
    uint64_t max_locked; /* bytes a process may register; 0 = no limit */
    uint32_t defer_us;   /* longest random delay of deferred mode; 0 = off */
    bool adversarial;
    bool arm_waiting;
    uint16_t pkeys[2][SHM_PKEYS]; /* of ports of hosts 0, 2, ... and 1, 3, ...; 0 = empty */
    bool no_srq, no_ah;
    uint32_t max_groups;                /* that the subnet administrator makes */
    uint32_t inline_errno, inline_step; /* refuses too much with it; answers in multiples */
    bool count_queues;                  /* their memory is locked memory too */
    bool swap, scatter;                 /* writes, or packets of writes, land in any order */
    bool stalls;                        /* are looked for */
    bool in_order;                      /* says that they do not */
    bool relaxed_only;                  /* memory keys */
    uint32_t ece; /* options of connections; of hosts 1, 3, ... all but the lowest */
    uint32_t grh; /* enum which_ports: which want a global header */
    uint64_t seed;
};

/* Of lock.h. */
struct lock {
    _Atomic uint32_t holder; /* thread_id(); 0 = free */
    uint32_t broken;         /* a holder died; until whoever has it now has mended the data */
};

/* A table of fixed-size slots; freed slots are used again, lowest first, after a grace period. */
struct shm_table {
    struct lock lock;
    uint64_t map;          /* offset of the slots' owners: shm.c */
    uint32_t slots;        /* limit */
    uint32_t hint;         /* no free slot below */
    _Atomic uint32_t high; /* no slot at or above was ever used */
};

struct shm_port {
    uint32_t host, hca, num; /* num counts from 1 */
    uint16_t lid;
    _Atomic uint32_t state; /* enum ibv_port_state */
    uint64_t guid;
    uint32_t gids;
    union ibv_gid gid[SHM_GIDS];
    uint8_t gid_type[SHM_GIDS]; /* enum ibv_gid_type */
    bool needs_grh;
    uint16_t pkey[SHM_PKEYS]; /* 0 = empty */
};

struct shm_proc {
    _Atomic int32_t pid; /* 0 = free slot; below 0: minus the one that takes or empties it */
    uint32_t generation;
    uint64_t start_time; /* from /proc/PID/stat: tells a reused pid */
    uint32_t host, rank; /* rank: the launcher's, else the order of arrival */
    struct lock pend_lock;
    _Atomic uint32_t pending; /* entries of the two lists below */
    uint32_t pend_head[2];    /* queue pairs with unfinished requests: as source, as target */
    _Atomic uint64_t mrs, locked_bytes;
    _Atomic uint64_t still, still_since; /* empty polls since head->moves was that; 0 = none ever */
};

struct shm_mr {
    _Atomic uint32_t key; /* lkey and rkey; 0 = not valid */
    uint32_t used;
    uint32_t generation;
    uint32_t proc, pd, access;
    uint64_t addr, iova, length;
};

struct shm_ring {
    uint64_t offset; /* of slot 0 in the file */
    uint32_t stride, slots;
};

/* An address a datagram or a connection goes to, resolved when it was created. */
struct shm_av {
    uint16_t dlid;
    uint8_t sl, path_bits, is_global, sgid_index, port, static_rate;
    uint32_t flow_label;
    uint8_t hop_limit, traffic_class;
    union ibv_gid dgid;
};

struct shm_cqe {
    struct ibv_wc wc;
    uint64_t stamp, sq_position;
    uint8_t is_send, solicited;
    uint32_t qp, srq; /* table indexes; srq SHM_NONE when the queue pair's own */
    uint32_t resets;  /* of a receive: the queue pair's when it was taken */
};

struct shm_wqe {
    uint64_t wr_id;
    uint32_t opcode, flags; /* enum ibv_wr_opcode, enum ibv_send_flags */
    uint32_t imm;           /* immediate data as given, or the key to invalidate */
    uint32_t length;        /* all bytes of the message */
    uint32_t nsge, inlined; /* inlined: the bytes follow instead of the sge */
    uint64_t raddr, compare, swap;
    uint32_t rkey;
    uint32_t status;                 /* enum ibv_wc_status, valid when landed */
    uint32_t timed;                  /* enum wqe_timed */
    uint32_t early;                  /* a tail of it has landed (adversarial mode) */
    uint32_t ahead;                  /* bytes of it that have landed before its end (wire) */
    uint64_t scattered;              /* packets that have landed before their turn, a bit each */
    uint64_t posted;                 /* when it was put on the wire */
    uint32_t wire;                   /* its message there */
    uint64_t back;                   /* the wire's latency of the way back */
    uint64_t t_land, t_recv, t_done; /* absolute, see run.c; 0 = at once */
    uint64_t hash;                   /* of the source buffer when posted (deferred mode) */
    uint32_t remote_qpn, remote_qkey;
    struct shm_av av;
    uint32_t rx_cq; /* the target's completion waits for t_recv; SHM_NONE: none */
    struct shm_cqe rx;
    struct ibv_sge sge[];
};

enum { WQE_PACKETS = 64 }; /* that a request tells apart */

enum wqe_timed {
    WQE_NOT_TIMED,
    WQE_TIMED, /* t_land, t_recv, t_done are set */
    WQE_ON_WIRE,
};

struct shm_rwqe {
    uint64_t wr_id;
    uint32_t nsge;
    struct ibv_sge sge[];
};

/* A receive queue, of a queue pair or shared. */
struct shm_rq {
    struct shm_ring ring;
    uint64_t head, tail;   /* next to consume, next to post */
    _Atomic uint32_t held; /* posted and not yet polled: each holds a slot */
};

struct shm_srq {
    struct lock lock;
    _Atomic uint32_t number; /* 0 = free */
    uint32_t proc, pd, generation, ctx;
    uint64_t user; /* struct ibv_srq of the owner */
    uint32_t max_sge, limit;
    struct shm_rq rq;
};

struct shm_cq {
    struct lock lock;
    _Atomic uint32_t number; /* 0 = free, else generation << 16 | index */
    uint32_t generation, ctx, chan;
    uint64_t user; /* struct ibv_cq of the owner */
    struct shm_ring ring;
    _Atomic uint64_t head, tail;
    _Atomic uint32_t armed; /* 0, or ARM_* */
    _Atomic uint32_t overrun;
    uint32_t events, next; /* unread events; the channel's list */
    uint32_t ignore_overrun;
    uint32_t stamped; /* completions carry their time */
};

enum { ARM_NONE, ARM_SOLICITED, ARM_NEXT };

struct shm_async {
    uint32_t type, port; /* enum ibv_event_type */
    uint64_t element;    /* struct ibv_cq, ibv_qp or ibv_srq of the owner */
};

/* A completion channel, or the asynchronous events of a context. `signaled` is true while the
   datagram that makes the channel's socket readable is on its way or unread. */
struct shm_chan {
    struct lock lock;
    _Atomic uint32_t used;
    uint32_t generation, signaled;
    uint32_t head, tail; /* completion queues with unread events */
    uint32_t host, hca;  /* of the context */
    uint32_t is_async;
    uint32_t async_head, async_tail;
    struct shm_async async[SHM_ASYNC];
};

struct shm_qp {
    struct lock sq_lock;
    struct lock rq_lock;
    _Atomic uint32_t number; /* 0 = free, else generation << 16 | index */
    _Atomic uint32_t state;  /* enum ibv_qp_state */
    uint32_t type, proc, generation, pd, ctx;
    uint32_t host, hca, create_flags, sig_all;
    uint32_t send_cq, recv_cq, srq;
    uint64_t user; /* struct ibv_qp of the owner */
    struct ibv_qp_attr attr;
    uint32_t port; /* index of the own port, from INIT on */
    uint32_t peer; /* index of the connected queue pair, SHM_NONE until found */
    uint32_t peer_port;
    uint32_t has_ece, ece;   /* agreed with the peer */
    _Atomic uint32_t resets; /* how often all that was posted was forgotten */

    /* send side, under sq_lock: positions count requests since RESET */
    struct shm_ring sq;
    uint64_t sq_tail, sq_landed, sq_received, sq_done; /* see run.c */
    uint64_t sq_started;                               /* all before are on the wire, or past it */
    _Atomic uint64_t sq_free; /* all before were polled, or covered by a polled one */
    struct shm_av av;
    uint32_t sq_psn;
    uint32_t losses, rnr_waits; /* of the oldest request that has not landed */
    uint32_t is_held;           /* it has been asked whether a fault delays that request */
    uint64_t retry_at;
    _Atomic uint64_t due;      /* when the oldest unfinished request can go on */
    _Atomic uint64_t next_due; /* what a run that is not over yet has found of it */

    /* receive side, under rq_lock */
    struct shm_rq rq;
    _Atomic uint32_t epsn; /* changed by the connected peer's requests, under its sq_lock */
    _Atomic uint32_t established, last_wqe;

    /* pending lists, under the pend_lock of the list's process */
    struct shm_pend {
        uint32_t listed, proc, prev, next;
    } pend[2];
};

/* A multicast group: the queue pairs that are attached to it, and the ports that have joined it at the
   subnet administrator. Where any has, others neither hear nor are heard. */
struct shm_group {
    union ibv_gid gid;
    uint16_t lid;
    uint32_t members;
    uint32_t qp[SHM_MEMBERS];
    uint32_t qkey;
    uint32_t joins;

    struct shm_join {
        uint32_t proc, port;
    } join[SHM_MEMBERS];
};

struct shm_thread {
    _Atomic uint64_t seq;  /* odd inside a section */
    _Atomic uint32_t proc; /* owner + 1, 0 = free */
    _Atomic uint32_t id;   /* see lock.h */
    char pad[48];
};

/* A fault on demand: fault.h. */
enum fault_kind {
    FAULT_NONE,
    FAULT_KILL,
    FAULT_DOWN,
    FAULT_UP,
    FAULT_EVENT,
    FAULT_LOSE,
    FAULT_RNR,
    FAULT_SLOW,
    FAULT_REFUSE,
    FAULT_LIMIT,
    FAULT_CLEAR,
    FAULT_SHOW,
};

#define FAULT_ALWAYS (1ull << 32)

struct shm_fault {
    _Atomic uint32_t kind;
    uint32_t rank, host, to, hca, port; /* SHM_NONE = any */
    uint32_t event;                     /* enum ibv_event_type */
    uint64_t chance;                    /* of FAULT_ALWAYS */
    uint64_t delay_ns, bytes;
    uint64_t in_ns, for_ns;      /* 0 = at once, for ever */
    uint64_t after, count;       /* cases passed over, cases hit at most */
    uint64_t from, until;        /* set when the rule begins */
    _Atomic uint64_t seen, hits; /* hits may pass count */
    char text[FAULT_TEXT];
};

struct shm_arena {
    struct lock lock;
    uint64_t next;
    uint64_t free[SHM_ARENA_CLASSES];
};

struct shm_head {
    uint64_t magic, bytes, wire_bytes;
    char dir[128];
    struct shm_conf conf;
    struct lock attach_lock;
    _Atomic uint32_t live;    /* attached processes */
    _Atomic uint32_t arrived; /* processes ever placed by order of arrival */
    _Atomic uint32_t pds;
    _Atomic uint32_t timed;   /* requests need modelled times: run.c */
    _Atomic uint32_t wired;   /* some of them from the wire: wire.h */
    _Atomic uint32_t refused; /* processes, because there is no host for them */
    _Atomic uint32_t reports; /* errors of use that were found */
    _Atomic uint32_t faults;  /* no fault rule at or above */
    _Atomic uint64_t random;
    _Atomic uint64_t moves, stall; /* cq.h: posts, and most empty polls of all between two */
    uint32_t port_count;
    struct shm_table procs, threads, qps, cqs, srqs, chans, mrs;
    struct shm_arena arena;
    struct lock group_lock;
    uint32_t groups_used;  /* none was at or above: most runs touch no page of theirs */
    uint32_t groups_named; /* by the subnet administrator, ever */
    struct lock atomic_lock[64];
    uint32_t lid_port[SHM_LIDS];
};

/* The file's parts, each on its own pages. */
struct shm {
    struct shm_head *head;
    struct shm_port *ports;
    struct shm_proc *procs;
    struct shm_thread *threads;
    struct shm_qp *qps;
    struct shm_cq *cqs;
    struct shm_srq *srqs;
    struct shm_chan *chans;
    struct shm_mr *mrs;
    struct shm_group *groups;
    struct shm_fault *faults;
    struct shm_wire *wire; /* wire.h */
    char *base;
    uint64_t bytes;
    uint64_t maps, arena; /* offsets */
};

extern struct shm shm;
extern uint32_t proc_self; /* own index in the process table, SHM_NONE when not attached */

static inline void *shm_at(const struct shm_ring *ring, uint64_t position)
{
    return shm.base + ring->offset + (position % ring->slots) * ring->stride;
}

#endif

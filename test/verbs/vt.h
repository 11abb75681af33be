/*
 * What the rules of test/verbs share. Each rule of the verbs is checked on one device, by plain
 * libibverbs, between queue pairs of its own, by a program with the rule's name: exit code 0 = the
 * rule holds, 1 = it does not (the last line says what was expected and what came), 77 = the device
 * cannot be asked.
 */
#ifndef VT_H
#define VT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VT_BUF = 65536, VT_WAIT_MS = 10000, VT_QUIET_MS = 60 };

/* The device under test; filled by vt_open. */
struct vt {
    const char *rule;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr dev;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int port_num;
    int gid_index;
    bool is_roce;
    bool strict; /* what the specification leaves open is answered in the strictest way */
};
extern struct vt vt;

/* What is there when a rule's check is called: the device, and a connected pair of its own. */
enum vt_frame { VT_DEVICE, VT_RC, VT_UC, VT_UD, VT_NOTHING };

struct vt_pair;
struct vt_rule {
    const char *name, *rule;
    enum vt_frame frame;
    void (*check)(struct vt_pair *p);
};
/* With what its frame says there is. */
void vt_check(const struct vt_rule *rule);
/* The rules by subject, each list ended by an empty row. */
extern const struct vt_rule vt_states[], vt_memory[], vt_messages[], vt_queues[], vt_errors[];

/* Options: --device NAME --port N --gid-index N --strict, or IBSHIFT_VERBS_DEVICE and so on. */
void vt_options(int argc, char **argv);
void vt_open(const char *rule);
/* Everything the program made must be gone by now: a device that refuses is a failure. */
int vt_close(void);

_Noreturn void vt_fail_at(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void vt_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * The device does not answer as strictly as the specification reads, but no correct program is
 * harmed: a note, or with --strict a failure.
 */
void vt_differs(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *vt_errname(int err);

#define VT_FAIL(...) vt_fail_at(__FILE__, __LINE__, __VA_ARGS__)
#define VT_CHECK(condition, ...)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            vt_fail_at(__FILE__, __LINE__, __VA_ARGS__);                                           \
        }                                                                                          \
    } while (0)
/* For calls that return 0 or an errno (or -1 and set errno). */
#define VT_OK(call)      vt_expect_ok((call), #call, __FILE__, __LINE__)
#define VT_REFUSED(call) vt_expect_refused((call), #call, __FILE__, __LINE__)
/* For calls that return a pointer. */
#define VT_PTR(call)  vt_expect_ptr((call), #call, __FILE__, __LINE__)
#define VT_NULL(call) vt_expect_null((call), #call, __FILE__, __LINE__)
void vt_expect_ok(int rc, const char *call, const char *file, int line);
int vt_expect_refused(int rc, const char *call, const char *file, int line);
void *vt_expect_ptr(void *p, const char *call, const char *file, int line);
void vt_expect_null(void *p, const char *call, const char *file, int line);

/* How queue pairs are made and connected; vt_conf gives the defaults. */
struct vt_conf {
    enum ibv_qp_type type;
    int depth; /* of both queues and of the completion queues */
    int cqe;   /* of each completion queue; 0 = twice the depth */
    int sge;
    int inline_bytes;
    int sig_all;
    int rnr_retry, min_rnr_timer, retry_cnt, timeout;
    int rd_atomic; /* outstanding READs and atomics, both ways */
    int qp_access, mr_access;
    struct ibv_srq *srq;             /* of side b */
    struct ibv_comp_channel *events; /* of side b's receive completions */
};
struct vt_conf vt_conf(void);

/* One queue pair with its completion queues and its registered memory. */
struct vt_side {
    struct ibv_pd *pd;
    struct ibv_cq *scq, *rcq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *buf;
    struct ibv_qp_cap cap; /* what the device granted */
    struct vt_side *peer;
};
struct vt_pair {
    struct vt_side a, b;
};

/* Where a queue pair is: what two processes tell each other. */
struct vt_address {
    uint32_t qpn;
    uint16_t lid;
    union ibv_gid gid;
    uint64_t addr;
    uint32_t rkey;
};

void vt_side_create(struct vt_side *side, struct ibv_pd *pd, const struct vt_conf *conf, bool is_b);
void vt_side_destroy(struct vt_side *side);
struct vt_address vt_address(const struct vt_side *side);
/* From any state but ERR: through INIT and RTR to RTS, towards to. */
void vt_side_connect(struct vt_side *side, const struct vt_conf *conf, const struct vt_address *to);
/* The steps alone, with the mask that was used; 0 or the errno of ibv_modify_qp. */
int vt_to_init(struct ibv_qp *qp, const struct vt_conf *conf);
int vt_to_rtr(struct ibv_qp *qp, const struct vt_conf *conf, const struct vt_address *to);
int vt_to_rts(struct ibv_qp *qp, const struct vt_conf *conf);
int vt_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state vt_state(struct ibv_qp *qp);
/* Waits until the queue pair is in the error state. */
void vt_wait_error(struct ibv_qp *qp);
struct ibv_ah_attr vt_ah_attr(const struct vt_address *to);

/* Both sides, and then their way to each other. */
void vt_pair_create(struct vt_pair *p, const struct vt_conf *conf);
void vt_pair_connect(struct vt_pair *p, const struct vt_conf *conf);
void vt_connect(struct vt_pair *p, const struct vt_conf *conf);
void vt_disconnect(struct vt_pair *p);

/* A signaled request of len bytes at offset off of both sides' memory; change it, then post it. */
struct vt_wr {
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};
struct vt_wr vt_wr(struct vt_side *side, enum ibv_wr_opcode opcode, uint64_t id, size_t off,
                   size_t len);
int vt_post(struct vt_side *side, struct vt_wr *w);
int vt_recv(struct vt_side *side, uint64_t id, size_t off, size_t len);
/* Posts it, or such a request, and expects its completion. */
#define VT_RUN(side, w, status) vt_expect_run((side), (w), (status), __FILE__, __LINE__)
#define VT_DO(side, opcode, id, off, len, status)                                                  \
    vt_expect_run((side), (struct vt_wr[]){vt_wr((side), (opcode), (id), (off), (len))}, (status), \
                  __FILE__, __LINE__)
struct ibv_wc vt_expect_run(struct vt_side *side, struct vt_wr *w, enum ibv_wc_status status,
                            const char *file, int line);
/* Chains n requests into a list. */
struct ibv_send_wr *vt_list(struct vt_wr *w, int n);
struct ibv_ah *vt_ah(const struct vt_address *to);
/* A datagram of len bytes at off. */
struct vt_wr vt_datagram(struct vt_side *side, struct ibv_ah *ah, uint32_t qpn, uint64_t id,
                         size_t off, size_t len);
struct ibv_srq *vt_srq(uint32_t receives);
struct ibv_mr *vt_reg(void *buf, int access);

/* Another process with pipes to it: the child's is 0. Each opens the device by itself. */
pid_t vt_split(void);
void vt_tell(const void *what, size_t len);
void vt_hear(void *what, size_t len);
/* Makes a side that is connected with the other process's. */
struct vt_address vt_meet(struct vt_side *side, const struct vt_conf *conf);
/* The request goes to another process's memory. */
void vt_aim(struct vt_wr *w, const struct vt_address *to, uint64_t there);

/* One completion within the deadline; false when none came. */
bool vt_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
#define VT_WC(cq, id, status) vt_expect_wc((cq), (id), (status), __FILE__, __LINE__)
/* The same, where devices are known that say other: that is a difference (vt_differs). */
#define VT_WC_OR(cq, id, status, other)                                                            \
    vt_expect_wc_or((cq), (id), (status), (other), __FILE__, __LINE__)
#define VT_QUIET(cq) vt_expect_quiet((cq), __FILE__, __LINE__)
struct ibv_wc vt_expect_wc(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
                           const char *file, int line);
struct ibv_wc vt_expect_wc_or(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status,
                              enum ibv_wc_status other, const char *file, int line);
void vt_expect_quiet(struct ibv_cq *cq, const char *file, int line);
/* The next asynchronous event of the device is of this type (others are passed over). */
void vt_wait_event(enum ibv_event_type type, int ms);
/* A message goes from a to b and one back: the pair works. */
void vt_expect_alive(struct vt_pair *p);
uint64_t vt_now_ms(void);

void vt_fill(void *buf, size_t len, unsigned seed);
/* Whether buf holds what vt_fill put somewhere with that seed. */
bool vt_filled(const void *buf, size_t len, unsigned seed);

#endif

/* Protection domains and memory regions. */
#include "verbs/hca.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault/fault.h"

#ifndef MADV_POPULATE_WRITE /* glibc before 2.35 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { KEY_SHIFT = 8 };

static struct hca_pd *to_pd(struct ibv_pd *pd)
{
    return container_of(pd, struct hca_pd, pd);
}

uint32_t pd_id(struct ibv_pd *pd)
{
    return to_pd(pd)->id;
}

void pd_use(struct ibv_pd *pd, int change)
{
    atomic_fetch_add(&to_pd(pd)->users, change);
}

HCA_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
    struct hca_pd *pd = proc_is_forked() ? NULL : calloc(1, sizeof(*pd));

    if (!pd) {
        return FAIL_WITH(ENOMEM);
    }
    pd->pd.context = ctx;
    pd->id = atomic_fetch_add(&shm.head->pds, 1) + 1;
    pd->pd.handle = pd->id;
    return &pd->pd;
}

struct ibv_pd *pd_alloc_parent(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
    struct hca_pd *pd;

    if (!attr->pd || attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
        return FAIL_WITH(attr->pd ? EOPNOTSUPP : EINVAL);
    }
    pd = calloc(1, sizeof(*pd));
    if (!pd) {
        return FAIL_WITH(ENOMEM);
    }
    pd->pd.context = ctx;
    pd->pd.handle = attr->pd->handle;
    pd->id = to_pd(attr->pd)->id;
    pd->parent = to_pd(attr->pd);
    atomic_fetch_add(&pd->parent->users, 1);
    return &pd->pd;
}

HCA_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    struct hca_pd *pd = to_pd(ibpd);

    if (atomic_load(&pd->users)) {
        return EBUSY;
    }
    if (pd->parent) {
        atomic_fetch_sub(&pd->parent->users, 1);
    }
    free(pd);
    return 0;
}

/* Pinning would fail where the memory is not mapped or not writable as asked. */
static int touch(uintptr_t addr, size_t length, unsigned int access)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = addr & ~(page - 1), to = (addr + length + page - 1) & ~(page - 1);
    int advice = access & MR_WRITES ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    unsigned char map[4096];

    if (length == 0) {
        return 0;
    }
    for (uintptr_t at = from; at < to; at += sizeof(map) * page) {
        size_t n = to - at < sizeof(map) * page ? to - at : sizeof(map) * page;

        if (mincore((void *)at, n, map) != 0 && errno == ENOMEM) {
            return EFAULT;
        }
    }
    if ((madvise((void *)from, page, advice) != 0 && errno == EFAULT) ||
        (madvise((void *)(to - page), page, advice) != 0 && errno == EFAULT)) {
        return EFAULT;
    }
    return 0;
}

static int check_access(unsigned int access)
{
    if (shm.head->conf.relaxed_only && !(access & IBV_ACCESS_RELAXED_ORDERING)) {
        return EOPNOTSUPP;
    }
    access &= ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
    if (access & ~(unsigned int)(MR_ACCESS)) {
        return EOPNOTSUPP;
    }
    return (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
                   !(access & IBV_ACCESS_LOCAL_WRITE)
               ? EINVAL
               : 0;
}

static int lock_bytes(uint64_t bytes)
{
    const struct shm_conf *conf = &shm.head->conf;
    struct shm_proc *p = &shm.procs[proc_self];

    if (atomic_fetch_add(&p->locked_bytes, bytes) + bytes > conf->max_locked && conf->max_locked) {
        atomic_fetch_sub(&p->locked_bytes, bytes);
        return ENOMEM;
    }
    return 0;
}

static int account(size_t length)
{
    struct shm_proc *p = &shm.procs[proc_self];
    int err = atomic_fetch_add(&p->mrs, 1) >= shm.head->conf.max_mr ? ENOMEM : lock_bytes(length);

    if (err) {
        atomic_fetch_sub(&p->mrs, 1);
    }
    return err;
}

static void unaccount(uint32_t proc, size_t length)
{
    atomic_fetch_sub(&shm.procs[proc].mrs, 1);
    atomic_fetch_sub(&shm.procs[proc].locked_bytes, length);
}

/* Of a queue, in whole pages, as drivers lock it. */
static uint64_t ring_locks(const struct shm_ring *ring)
{
    return shm.head->conf.count_queues ? ((uint64_t)ring->slots * ring->stride + 4095) & ~4095ull
                                       : 0;
}

int ring_make(struct shm_ring *ring)
{
    uint64_t bytes = ring_locks(ring);
    int err = ring->slots ? -lock_bytes(bytes) : 0;

    if (err || !ring->slots) {
        return err;
    }
    err = shm_alloc((uint64_t)ring->slots * ring->stride, &ring->offset);
    if (err) {
        atomic_fetch_sub(&shm.procs[proc_self].locked_bytes, bytes);
    }
    return err;
}

/* Forgotten first: who dies here leaves a queue that is freed once more. */
void ring_free(struct shm_ring *ring, uint32_t proc)
{
    uint64_t offset = ring->offset;

    if (offset) {
        ring->offset = 0;
        atomic_fetch_sub(&shm.procs[proc].locked_bytes, ring_locks(ring));
        shm_free(offset, (uint64_t)ring->slots * ring->stride);
    }
}

static int register_shared(struct hca_mr *mr, uint64_t iova, unsigned int access)
{
    int err = account(mr->mr.length);
    struct shm_mr *m;

    if (err) {
        return err;
    }
    err = -shm_slot_get(&shm.head->mrs, &mr->index);
    if (err) {
        unaccount(proc_self, mr->mr.length);
        return err;
    }
    m = &shm.mrs[mr->index];
    m->generation = (m->generation % 0xff) + 1;
    m->proc = proc_self;
    m->pd = pd_id(mr->mr.pd);
    m->access = access;
    m->addr = (uintptr_t)mr->mr.addr;
    m->iova = iova;
    m->length = mr->mr.length;
    mr->mr.lkey = mr->mr.rkey = (mr->index + 1) << KEY_SHIFT | m->generation;
    atomic_store_explicit(&m->key, mr->mr.lkey, memory_order_release);
    return 0;
}

static struct ibv_mr *reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                          unsigned int access)
{
    int err = proc_is_forked() ? EPERM : check_access(access);
    struct hca_mr *mr;

    if (!err && ((length == 0 && !addr) || length > shm.head->conf.max_mr_size ||
                 (uintptr_t)addr + length < (uintptr_t)addr)) {
        err = EINVAL;
    }
    err = err ? err : fault_register(length);
    err = err ? err : touch((uintptr_t)addr, length, access);
    mr = err ? NULL : calloc(1, sizeof(*mr));
    if (!mr) {
        return FAIL_WITH(err ? err : ENOMEM);
    }
    mr->mr.context = pd->context;
    mr->mr.pd = pd;
    mr->mr.addr = addr;
    mr->mr.length = length;
    err = register_shared(mr, iova, access);
    if (err) {
        free(mr);
        return FAIL_WITH(err);
    }
    mr->mr.handle = mr->index;
    pd_use(pd, 1);
    return &mr->mr;
}

HCA_EXPORT struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

HCA_EXPORT struct ibv_mr *(ibv_reg_mr_iova)(struct ibv_pd *pd, void *addr, size_t length,
                                            uint64_t iova, int access)
{
    return reg(pd, addr, length, iova, (unsigned int)access);
}

HCA_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                           uint64_t iova, unsigned int access)
{
    return reg(pd, addr, length, iova, access);
}

void mr_free(uint32_t index)
{
    struct shm_mr *m = &shm.mrs[index];

    atomic_store(&m->key, 0);
    grace_wait();
    unaccount(shm_slot_owner(&shm.head->mrs, index), m->length); /* m->proc may not be set yet */
    shm_slot_put(&shm.head->mrs, index);
}

HCA_EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    struct hca_mr *mr = container_of(ibmr, struct hca_mr, mr);

    if (!proc_is_forked()) {
        mr_free(mr->index);
    }
    pd_use(ibmr->pd, -1);
    free(mr);
    return 0;
}

/* Under the same key, as no peer must be told. */
static int change_shared(struct hca_mr *mr, const struct hca_mr *next, unsigned int access)
{
    struct shm_mr *m = &shm.mrs[mr->index];
    uint32_t key = atomic_exchange(&m->key, 0);
    int err;

    grace_wait();
    unaccount(proc_self, m->length);
    err = account(next->mr.length);
    if (err) {
        return err;
    }
    m->pd = pd_id(next->mr.pd);
    m->access = access;
    m->addr = m->iova = (uintptr_t)next->mr.addr;
    m->length = next->mr.length;
    atomic_store_explicit(&m->key, key, memory_order_release);
    return 0;
}

HCA_EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
                            size_t length, int access)
{
    struct hca_mr *mr = container_of(ibmr, struct hca_mr, mr);
    struct hca_mr next = *mr;
    bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    unsigned int new_access;
    int err;

    if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED ||
        ((flags & IBV_REREG_MR_CHANGE_PD) && !pd) || (moves && (!addr || !length))) {
        errno = EINVAL;
        return IBV_REREG_MR_ERR_INPUT;
    }
    new_access = shm.mrs[mr->index].access;
    if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
        new_access = (unsigned int)access;
    }
    if (flags & IBV_REREG_MR_CHANGE_PD) {
        next.mr.pd = pd;
    }
    if (moves) {
        next.mr.addr = addr;
        next.mr.length = length;
    }
    err = proc_is_forked() ? EPERM : check_access(new_access);
    err = err || !moves ? err : fault_register(length);
    err = err ? err : touch((uintptr_t)next.mr.addr, next.mr.length, new_access);
    if (err) {
        errno = err;
        return IBV_REREG_MR_ERR_INPUT;
    }
    err = change_shared(mr, &next, new_access);
    if (err) {
        errno = err;
        return IBV_REREG_MR_ERR_CMD;
    }
    pd_use(mr->mr.pd, -1);
    pd_use(next.mr.pd, 1);
    *mr = next;
    return 0;
}

bool mr_translate(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr, uint64_t length,
                  uint32_t access, void **where)
{
    uint32_t index = (key >> KEY_SHIFT) - 1;
    const struct shm_mr *m;

    if (index >= SHM_MRS) {
        return false;
    }
    m = &shm.mrs[index];
    if (atomic_load_explicit(&m->key, memory_order_acquire) != key || m->proc != proc ||
        m->pd != pd || (m->access & access) != access) {
        return false;
    }
    if (addr < m->iova || length > m->length || addr - m->iova > m->length - length) {
        return false;
    }
    *where = (void *)(uintptr_t)(m->addr + (addr - m->iova));
    return true;
}

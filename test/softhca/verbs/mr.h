#ifndef SOFTHCA_MR_H
#define SOFTHCA_MR_H

#include "verbs/hca.h"

#define MR_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define MR_ACCESS (MR_WRITES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_HUGETLB)

/* Protection domains are numbers in shared memory; a parent domain has its parent's. */
uint32_t pd_id(struct ibv_pd *pd);
void pd_use(struct ibv_pd *pd, int change);
struct ibv_pd *pd_alloc_parent(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr);

/* Where [addr, addr + length) of a key is in the owner's memory; false: the HCA refuses it.
   Only inside a section. */
bool mr_translate(uint32_t key, uint32_t proc, uint32_t pd, uint64_t addr, uint64_t length,
                  uint32_t access, void **where);
void mr_free(uint32_t index);

/* A queue's memory, of ring->slots times ring->stride bytes. 0 or -errno. */
int ring_make(struct shm_ring *ring);
void ring_free(struct shm_ring *ring, uint32_t proc);

#endif

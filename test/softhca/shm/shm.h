/* The shared file: mapping it, its tables and its memory. */
#ifndef SOFTHCA_SHM_H
#define SOFTHCA_SHM_H

#include "shm/layout.h"
#include "shm/lock.h"

/* Maps the shared file of a folder, and first makes an empty one so many GiB large (0: it is there)
   with so much room for the wire, which lies above. 0 or -errno. */
int shm_map(const char *dir, int fd, uint32_t create_gib, uint64_t wire_bytes);
/* Called before the process ends because the folder is full, unless it is NULL. */
extern void (*shm_when_full)(void);
void shm_say_full(uint64_t wanted);
/* What to do when that failed with `err`. */
const char *shm_advice(int err, const char *otherwise);

/* A free slot's index, or -ENOMEM. It is this process's from then on, before there is anything in it. */
int shm_slot_get(struct shm_table *table, uint32_t *index);
void shm_slot_put(struct shm_table *table, uint32_t index);
/* The process that has the slot, or SHM_NONE. */
uint32_t shm_slot_owner(const struct shm_table *table, uint32_t index);

/* Memory of the arena, zeroed; freed memory of large blocks goes back to the system. */
int shm_alloc(uint64_t bytes, uint64_t *offset);
void shm_free(uint64_t offset, uint64_t bytes);

/* A seeded random number below n. */
uint64_t shm_random(uint64_t n);
uint64_t shm_now(void);

#endif

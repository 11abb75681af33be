/* Digests (FNV-1a) of what all ranks must have alike. */
#ifndef IBSHIFT_CHOOSE_DIGEST_H
#define IBSHIFT_CHOOSE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "choose/param.h"

#define IBSHIFT_DIGEST 0xcbf29ce484222325u

/* sum: IBSHIFT_DIGEST, or what an earlier call returned. */
uint64_t ibshift_digest(uint64_t sum, const void *bytes, size_t size);
/* Of all fields of the model. */
uint64_t ibshift_digest_model(uint64_t sum, const struct ibshift_model *model);

#endif
